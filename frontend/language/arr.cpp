// Addresses of array elements, parameters and slices.
#include "arr.h"

#include <fmt/format.h>

#include <algorithm>

#include "../support/error.h"
#include "checks.h"

namespace weft::detail {

using ir::Op;
using ir::Type;
using tracing::Id;

namespace {
Type type_of(Id id) { return tracing::Trace::current().module()[id].type; }

// Two's complement keeps the value of every index that is in range.
Id as(Type type, Id id, Loc loc) { return type_of(id) == type ? id : tracing::convert(type, id, loc); }
}  // namespace

std::string named_type(const char* base, Type scalar) {
  constexpr const char* letters[ir::kTypeCount] = {"", "", "b", "s", "i", "l", "ub", "us", "u", "ul", "h", "", "d"};
  return std::string(base) + letters[int(scalar)];
}

std::string type_name(Type scalar, int rows, int columns) {
  if (rows == 1 && columns == 1) return user_name(scalar);
  const bool is_vec = columns == 1;
  if (!is_bool(scalar) && rows >= 2 && rows <= 4) {
    if (is_vec) return named_type(fmt::format("vec{}", rows).c_str(), scalar);
    if (columns == rows && is_float(scalar)) return named_type(fmt::format("mat{}{}", rows, rows).c_str(), scalar);
  }
  if (is_vec) return fmt::format("vec<{}, {}>", rows, user_name(scalar));
  return fmt::format("mat<{}, {}, {}>", rows, columns, user_name(scalar));
}

namespace {
// The greatest power of two that divides the size of an element, as far as wide accesses use it.
std::uint32_t compact_align(std::uint32_t element_bytes) { return std::min(16u, element_bytes & (~element_bytes + 1)); }
}  // namespace

ArrLayout make_array_param(std::uint32_t element_bytes, std::uint32_t align, int ndim, bool read_only,
                           const std::string& type_name) {
  tracing::Trace& t = tracing::Trace::current();
  ArrLayout a;
  a.trace = t.serial();
  a.param = std::uint16_t(t.module().params.size());
  a.strided = t.next_param_is_strided();
  a.ndim = std::uint8_t(ndim);
  a.element_bytes = element_bytes;
  a.element_align = compact_align(element_bytes);

  ir::Param p;
  p.kind = t.next_param_is_absent() ? ir::Param::Kind::absent : ir::Param::Kind::array;
  p.type_name = ndim == 1 ? fmt::format("Array<{}>", type_name) : fmt::format("Array<{}, {}>", type_name, ndim);
  p.ndim = a.ndim;
  if (p.kind == ir::Param::Kind::absent) {
    t.add_param(std::move(p));
    return a;
  }
  p.strided = a.strided;
  p.read_only = read_only;
  p.bytes = 8 + std::uint32_t(ndim) * (a.strided ? 16 : 4);
  p.element_bytes = a.element_bytes;
  // Strides are arbitrary multiples of a scalar: rows of a wider array, fields of a record.
  p.element_align = a.strided ? align : a.element_align;
  if (a.strided) a.element_align = p.element_align;
  const std::uint32_t at = t.add_param(std::move(p)).offset;

  ir::Builder& b = t.builder();
  a.base = b.arg(Type::u64, at);
  for (int k = 0; k < ndim; ++k) {
    const std::uint32_t d = std::uint32_t(k);
    a.shape[d] = a.strided ? b.arg(Type::i64, at + 8 + 8 * d) : b.arg(Type::i32, at + 8 + 4 * d);
    if (a.strided) a.stride[d] = b.arg(Type::i64, at + 8 + 8 * std::uint32_t(ndim) + 8 * d);
  }
  return a;
}

ArrLayout load_array_handle(const tracing::Address& at, int ndim, std::uint32_t element_bytes, Loc loc) {
  ArrLayout a;
  a.trace = tracing::Trace::current(loc).serial();
  a.ndim = std::uint8_t(ndim);
  a.element_bytes = element_bytes;
  a.element_align = compact_align(element_bytes);
  tracing::load(at, Type::u64, 1, &a.base, loc);
  if (tracing::Trace& t = tracing::Trace::current(loc); t.debug() != Debug()) {
    t.held_arrays.push_back("an array in " + (at.element ? t.elements[at.element - 1].array : "a struct"));
    a.held = std::uint16_t(t.held_arrays.size());
  }
  tracing::Address shape = at;
  shape.offset += 8;
  tracing::load(shape, Type::i32, ndim, a.shape.data(), loc);
  return a;
}

namespace {
// In messages.
std::string name_of(const ArrLayout& a) {
  tracing::Trace& t = tracing::Trace::current();
  if (const ir::KernelArray* own = t.module().kernel_array_of(a.base))
    return fmt::format("{} array {}", own->is_private ? "private" : "shared", t.module()[a.base].imm + 1);
  // A function does not know what its callers give it; where something is reported it is traced in their place.
  if (t.caller()) return fmt::format("an array of func \"{}\"", t.module().function);
  return a.held ? t.held_arrays[std::size_t(a.held - 1)] : t.module().params[a.param].name;
}

// The extent of dimension `d` where the trace knows it; else -1.
std::int64_t known_extent(const ArrLayout& a, int d) {
  if (a.base == ir::kNone) return -1;
  const ir::Inst& inst = tracing::Trace::current().module()[a.shape[std::size_t(d)]];
  return inst.op == Op::constant ? std::int64_t(inst.imm) : -1;
}

void check_index(const ArrLayout& a, int d, const Index& index) {
  if (!index.is_known) return;
  const std::int64_t extent = known_extent(a, d);
  if (index.known >= 0 && (extent < 0 || index.known < extent)) return;
  // If (k > 0) { x[k - 1] } of a host number k, in a loop that is unrolled.
  if (tracing::Trace::current(index.loc).builder().in_dead_block()) return;
  const std::string size = extent < 0 ? "" : fmt::format(", which has {} element{}", extent, extent == 1 ? "" : "s");
  ir::fail(tracing::Trace::current(index.loc).module(), index.loc,
           fmt::format("index {} is outside dimension {} of {}{}", index.known, d, name_of(a), size));
}

void check_slice(const ArrLayout& a, const Index& lo, const Index& hi, const Index& step) {
  const std::int64_t extent = known_extent(a, a.first);
  const bool wrong = (lo.is_known && lo.known < 0) || (hi.is_known && hi.known < 0) ||
                     (lo.is_known && hi.is_known && hi.known < lo.known) || (step.is_known && step.known < 1) ||
                     (extent >= 0 && ((hi.is_known && hi.known > extent) || (lo.is_known && lo.known > extent)));
  if (!wrong || tracing::Trace::current(lo.loc).builder().in_dead_block()) return;
  const auto text = [](const Index& i) { return i.is_known ? fmt::format("{}", i.known) : std::string("(traced)"); };
  const std::string size = extent < 0 ? "" : fmt::format(" of {}", extent);
  ir::fail(tracing::Trace::current(lo.loc).module(), lo.loc,
           fmt::format("slice({}, {}, {}) of {}: it takes 0 <= lo <= hi <= extent{} and a step of 1 or more", text(lo),
                       text(hi), text(step), name_of(a), size));
}

// Start of the part that the indices choose: in elements, scaled to the extent of dimension `first + n`, or in bytes.
Id advance(const ArrLayout& a, const Index* indices, int n) {
  const Loc loc = indices[0].loc;
  tracing::Trace::owner_of(a.trace, loc);
  for (int k = 0; k < n; ++k) check_index(a, a.first + k, indices[k]);
  Id at = a.start;
  if (a.strided) {
    for (int k = 0; k < n; ++k) {
      Id step = tracing::binary(Op::mul, as(Type::i64, indices[k].id, loc), a.stride[std::size_t(a.first + k)], loc);
      at = at == ir::kNone ? step : tracing::binary(Op::add, at, step, loc);
    }
    return at;
  }
  if (a.ndim == 1 && n == 1) return indices[0].id;
  for (int k = 0; k < n; ++k) {
    Id i = as(Type::i32, indices[k].id, loc);
    if (at == ir::kNone) {
      at = i;
      continue;
    }
    at = tracing::binary(Op::add, tracing::binary(Op::mul, at, a.shape[std::size_t(a.first + k)], loc), i, loc);
  }
  return at;
}
}  // namespace

tracing::Address address_of(const ArrLayout& a, const Index* indices, int n) {
  tracing::Address at;
  at.base = a.base;
  at.index = advance(a, indices, n);
  at.stride = a.strided ? 1 : a.element_bytes;
  at.align = a.element_align;
  at.loc = indices[0].loc;
  if (tracing::Trace& t = tracing::Trace::current(at.loc); t.debug() != Debug()) {
    tracing::Element e;
    e.array = name_of(a);
    e.ndim = a.ndim;
    for (int k = 0; k < a.ndim; ++k) {
      e.index[k] = k < a.first ? a.index[std::size_t(k)] : indices[k - a.first].id;
      e.extent[k] = a.shape[std::size_t(k)];
    }
    t.elements.push_back(std::move(e));
    at.element = std::uint32_t(t.elements.size());
  }
  return at;
}

ArrLayout slice_of(const ArrLayout& a, const Index& index) {
  ArrLayout s = a;
  s.start = advance(a, &index, 1);
  s.index[a.first] = index.id;
  ++s.first;
  return s;
}

namespace {
// The same array with strides, as what follows is no longer contiguous.
ArrLayout with_strides(const ArrLayout& a, Loc loc) {
  tracing::Trace::owner_of(a.trace, loc);
  if (a.strided) return a;
  ArrLayout s = a;
  s.strided = true;
  Id step = tracing::literal_int(Type::i64, a.element_bytes, loc);
  for (std::size_t k = a.ndim; k-- > 0;) {
    s.stride[k] = step;
    if (k > 0) step = tracing::binary(Op::mul, step, as(Type::i64, a.shape[k], loc), loc);
  }
  if (a.start != ir::kNone)
    s.start = tracing::binary(Op::mul, as(Type::i64, a.start, loc), s.stride[std::size_t(a.first - 1)], loc);
  return s;
}
}  // namespace

ArrLayout range_of(const ArrLayout& a, const Index& lo, const Index& hi, const Index& step) {
  const Loc loc = lo.loc;
  check_slice(a, lo, hi, step);
  ArrLayout s = with_strides(a, loc);
  const Id good = tracing::check_range(name_of(a), as(Type::i64, lo.id, loc), as(Type::i64, hi.id, loc),
                                       as(Type::i64, step.id, loc), as(Type::i64, a.shape[a.first], loc), loc);
  const Id from = as(Type::i64, lo.id, loc), by = as(Type::i64, step.id, loc);
  Id& stride = s.stride[a.first];
  Id skipped = tracing::binary(Op::mul, from, stride, loc);
  s.start = s.start == ir::kNone ? skipped : tracing::binary(Op::add, s.start, skipped, loc);
  stride = tracing::binary(Op::mul, stride, by, loc);
  Id n = tracing::binary(Op::sub, as(Type::i64, hi.id, loc), from, loc);
  n = tracing::binary(Op::add, n, tracing::binary(Op::sub, by, tracing::literal_int(Type::i64, 1, loc), loc), loc);
  n = tracing::binary(Op::div, n, by, loc);
  // A thread that failed may have to go on, for others wait for it: a range that is not there has no elements.
  if (good != ir::kNone) n = tracing::ternary(Op::select, good, n, tracing::literal_int(Type::i64, 0, loc), loc);
  s.shape[a.first] = n;
  return s;
}

ArrLayout transposed(const ArrLayout& a, Loc loc) {
  ArrLayout s = with_strides(a, loc);
  std::reverse(s.shape.begin() + s.first, s.shape.begin() + s.ndim);
  std::reverse(s.stride.begin() + s.first, s.stride.begin() + s.ndim);
  return s;
}

tracing::Id shape_of(const ArrLayout& a, int k, Type type, Loc loc) {
  if (k < 0 || k >= a.ndim - a.first)
    ir::fail(tracing::Trace::owner_of(a.trace, loc).module(), loc,
             fmt::format("shape({}) of an array of {} dimension(s)", k, a.ndim - a.first));
  ir::Module& m = tracing::Trace::owner_of(a.trace, loc).module();
  const Id size = a.shape[std::size_t(a.first + k)];
  // The launch checks that it fits.
  if (type == Type::i32 && type_of(size) == Type::i64)
    tracing::Trace::current(loc).kernel().module().narrow_shapes.push_back(
        {m[size].op == Op::arg ? std::uint32_t(m[size].imm) : ir::kNone, loc});
  return as(type, size, loc);
}

}  // namespace weft::detail
