// Runs functions of the library on the host: traces them on constants, which the trace computes with at once.
#include "host_call.h"

#include "../../../frontend/support/platform.h"
#include "../../../runtime/array_create.h"
#include "../../../runtime/launch.h"
#include "../pack.h"
#include "library.h"

namespace weft::python {

namespace {

/// A call: the types of its values, and their bytes.
struct Call {
  const std::string& name;
  std::vector<const DType*> types;
  std::vector<std::vector<std::byte>> bytes;

  std::vector<Result> trace() const {
    std::vector<Ids> ids;
    for (std::size_t k = 0; k < types.size(); ++k) {
      ids.emplace_back(std::size_t(types[k]->count()));
      detail::leaf_constants(bytes[k].data(), types[k]->leaves, ids.back().data(), here());
    }
    return call_library(name, types, ids);
  }
};

nb::object number(ir::Type type, std::uint64_t bits) {
  std::byte bytes[sizeof bits];
  std::memcpy(bytes, &bits, sizeof bits);
  return unpack_scalar(bytes, type);
}

/// The numbers of the results, if the trace has computed all of them.
nb::object constants(const ir::Module& module, const std::vector<Result>& results) {
  nb::list lists;
  for (const Result& r : results) {
    nb::list numbers;
    for (const Id id : r.ids.span()) {
      const ir::Inst& inst = module[id];
      if (inst.op != ir::Op::constant) return {};
      numbers.append(number(inst.type, inst.imm));
    }
    lists.append(numbers);
  }
  return lists;
}

nb::object folded(const Call& call) {
  const platform::FloatMode mode;
  ir::Module module;
  module.name = call.name;
  tracing::Trace trace(module, {});
  const std::vector<Result> results = call.trace();
  return constants(module, results);
}

/// The bits of a scalar as a number of 64.
Var<std::uint64_t> bits_of(Id id) {
  const ir::Type type = type_of(id);
  constexpr ir::Type words[] = {ir::Type::u8, ir::Type::u16, ir::Type::u32, ir::Type::u64};
  const int bits = ir::bits(type);
  const ir::Type word = words[bits <= 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
  if (!ir::is_bool(type) && type != word) id = tracing::bitcast(word, id, here());
  return {tracing::convert(ir::Type::u64, id, here()), detail::FromId{}};
}

nb::object interpreted(const Call& call) {
  std::vector<const DType*> gives;
  std::size_t count = 0;
  const auto body = [&](const Arr<std::uint64_t>& out) {
    gives.clear();
    count = 0;
    for (const Result& r : call.trace()) {
      gives.push_back(r.dtype);
      for (const Id id : r.ids.span()) out[int(count++)] = bits_of(id);
    }
  };
  constexpr int kMost = 4096;
  const Device interpreter("reference");
  const weft::Array<std::uint64_t> out = zeros<std::uint64_t>(interpreter, kMost);
  const auto k = kernel(call.name, [&](Arr<std::uint64_t> out) { body(out); });
  weft::launch(k, 1, out);
  const std::vector<std::uint64_t> bits = out.to_vector();
  nb::list lists;
  std::size_t at = 0;
  for (const DType* t : gives) {
    nb::list numbers;
    for (const detail::Leaf& l : t->leaves) numbers.append(number(l.type, bits[at++]));
    lists.append(numbers);
  }
  return lists;
}

}  // namespace

nb::object call_host(const std::string& name, nb::tuple dtypes, nb::tuple values) {
  if (dtypes.size() != values.size()) throw nb::type_error("there is a type for each value");
  if (tracing::Trace::active())
    throw Error(ErrorKind::invalid_kernel, name + " of the host is called while a kernel is traced");
  Call call{name, {}, {}};
  for (std::size_t k = 0; k < dtypes.size(); ++k) {
    call.types.push_back(&type_from(dtypes[k]));
    call.bytes.emplace_back(call.types.back()->size);
    pack_value(nb::handle(values[k]).ptr(), *call.types.back(), call.bytes.back().data());
  }
  nb::object lists = folded(call);
  return lists.is_valid() ? lists : interpreted(call);
}

}  // namespace weft::python
