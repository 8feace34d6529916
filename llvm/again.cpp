// Elements of several scalars that a thread accesses, and accesses again after it has written another array: code of
// gradients does so for each operation. Two arrays may be one, so the element has to be written, and read again, each
// time with its shuffles. Nearly always they are two: the code asks, and then keeps the element in its vectors.
//   store a; store b; load a; store a
// becomes
//   if (not apart) { store a }  store b;  if (not apart) { load a }  store a
// apart: elements of a and b with one index have no byte in common, as their addresses tell. What other threads do to
// an element, while this one has it, is unordered anyway.
#include <algorithm>

#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

namespace {
/// The most other arrays that one access is held against.
constexpr std::size_t kMostOthers = 4;
}  // namespace

/// Whether an access is to whole elements of several scalars in vectors of their own, at a place that addresses tell.
bool Emitter::is_own_element(Id id) const {
  const Inst& inst = kernel_[id];
  if ((inst.op != Op::load && inst.op != Op::store) || inst.width < 2 || inst.type == Type::b1) return false;
  const Id base = kernel_.arg(id, 0);
  if (kernel_[base].op != Op::arg || kernel_.kernel_array_of(base)) return false;
  if (record_of_[id] != kNoRecord && records_[record_of_[id]].members.size() > 1) return false;
  const ir::Shape address = ir::address_shape(kernel_, shapes_, id);
  return address.kind == ir::Shape::Kind::affine && address.step == std::int64_t{inst.width} * ir::bytes(inst.type);
}

/// The value of part k of a load or store, or kNone where nothing has it.
Id Emitter::part_value(Id access, std::uint64_t k) const {
  if (kernel_[access].op == Op::store) return kernel_.arg(access, static_cast<int>(k) + 2);
  const auto found = std::ranges::find_if(results(access), [&](Id result) { return kernel_[result].imm == k; });
  return found == results(access).end() ? ir::kNone : *found;
}

/// An element that the instructions before have accessed, with the arrays that were accessed since.
struct Emitter::OwnElement {
  Id access;                ///< the last one, whose parts are the element's
  std::vector<Id> written;  ///< since then
  Id store = ir::kNone;     ///< the last one, if nothing else is known to need it
  std::vector<Id> touched;  ///< since then
  bool is_of(const ir::Module& kernel, Id id) const {
    return kernel.arg(access, 0) == kernel.arg(id, 0) && kernel[access].width == kernel[id].width &&
           kernel[access].type == kernel[id].type;
  }
  /// Whether an access has the same index, so that addresses tell whether both have bytes in common.
  bool is_beside(const ir::Module& kernel, Id id) const {
    const Inst &a = kernel[access], &b = kernel[id];
    return kernel.arg(access, 1) == kernel.arg(id, 1) && a.stride == b.stride && a.offset == b.offset;
  }
};

void Emitter::plan_again() {
  apart_from_.assign(kernel_.insts.size(), {});
  before_.assign(kernel_.insts.size(), ir::kNone);
  for (const ir::Region& region : kernel_.regions) {
    std::vector<OwnElement> elements;
    for (Id id : region.insts) {
      const Op op = kernel_[id].op;
      if (op == Op::result || op == Op::param || (op != Op::load && ir::info(op).effect == ir::Effect::pure)) continue;
      const bool own = is_own_element(id) && std::ranges::all_of(elements, [&](const OwnElement& element) {
                         return element.is_beside(kernel_, id);
                       });
      if (own) {
        plan_own(elements, id);
      } else if (op != Op::load) {
        elements.clear();
        if (is_own_element(id)) plan_own(elements, id);
      } else {
        for (OwnElement& element : elements) element.store = ir::kNone;
      }
    }
  }
}

void Emitter::plan_own(std::vector<OwnElement>& elements, Id id) {
  const Id base = kernel_.arg(id, 0);
  const bool is_load = kernel_[id].op == Op::load;
  auto add = [](std::vector<Id>& bases, Id base) {
    if (std::ranges::find(bases, base) == bases.end()) bases.push_back(base);
  };
  auto at = elements.end();
  for (auto each = elements.begin(); each != elements.end(); ++each) {
    if (each->is_of(kernel_, id)) {
      at = each;
      continue;
    }
    if (!is_load) add(each->written, base);
    add(each->touched, base);
  }
  if (at == elements.end()) {
    elements.push_back({id, {}, is_load ? ir::kNone : id, {}});
    return;
  }
  if (is_load) {
    const bool has_all = std::ranges::all_of(
        results(id), [&](Id result) { return part_value(at->access, kernel_[result].imm) != ir::kNone; });
    if (!at->written.empty() && at->written.size() <= kMostOthers && has_all) {
      before_[id] = at->access;
      apart_from_[id] = at->written;
    } else {
      at->store = ir::kNone;
    }
  } else {
    if (at->store != ir::kNone && !at->touched.empty() && at->touched.size() <= kMostOthers)
      apart_from_[at->store] = at->touched;
    at->store = id;
    at->touched.clear();
  }
  at->access = id;
  at->written.clear();
}

/// Whether the elements of an access are apart from those of the arrays that it is held against.
std::string Emitter::is_apart_from_others(Id id) {
  const Inst& inst = kernel_[id];
  const std::uint64_t bytes = std::uint64_t{inst.width} * ir::bytes(inst.type);
  std::string all;
  for (Id other : apart_from_[id]) {
    const std::string distance = out_.def("sub i64 {}, {}", scalar(kernel_.arg(id, 0)), scalar(other));
    const std::string from_zero = out_.def("add i64 {}, {}", distance, bytes - 1);
    const std::string apart = out_.def("icmp ugt i64 {}, {}", from_zero, 2 * bytes - 2);
    all = all.empty() ? apart : out_.def("and i1 {}, {}", all, apart);
  }
  return all;
}

void Emitter::load_again(Id id) {
  const std::string type = type_name(kernel_[id].type, lanes_);
  Texts kept, read;
  for (Id result : results(id)) kept.push_back(vector(part_value(before_[id], kernel_[result].imm)));
  const std::string apart = is_apart_from_others(id), near = out_.fresh("near"), join = out_.fresh("join");
  const std::string before = out_.block();
  out_.jump_if(apart, join, near);
  out_.label(near);
  {
    const Scope scope(*this);
    load_now(id);
    for (Id result : results(id)) read.push_back(vector(result));
  }
  const std::string end = out_.block();
  out_.jump(join);
  out_.label(join);
  for (std::size_t k = 0; k < kept.size(); ++k)
    put_vector(results(id)[k], out_.def("phi {} [ {}, %{} ], [ {}, %{} ]", type, kept[k], before, read[k], end));
}

void Emitter::store_unless_again(Id id) {
  const std::string apart = is_apart_from_others(id), near = out_.fresh("near"), after = out_.fresh("after");
  out_.jump_if(apart, after, near);
  out_.label(near);
  {
    const Scope scope(*this);
    store_now(id);
  }
  out_.jump(after);
  out_.label(after);
}

}  // namespace weft::llvm
