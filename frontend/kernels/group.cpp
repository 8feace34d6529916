// Workgroups and subgroups in the trace: numbers, barriers, shared arrays, exchange of values.
#include "group.h"

#include <fmt/format.h>

#include "../support/error.h"

namespace weft {

using ir::Op;
using ir::Type;

namespace tracing {

namespace {
// The builder for operations of workgroups. They are traced in the kernel itself, where the place of a function's call
// is known.
ir::Builder& builder(Loc loc) {
  Trace& t = Trace::current(loc);
  t.require_inline();
  t.module().fixed_block = true;
  return t.builder();
}
// INT64_MAX stands for all larger numbers.
void check_scalars(const ir::Module& m, const char* kind, std::int64_t count, std::int64_t most, Loc loc) {
  if (count > 0 && count <= most) return;
  const std::string asked = count == INT64_MAX ? "2^63 scalars or more" : fmt::format("{} scalars", count);
  ir::fail(m, loc, fmt::format("a {} array of {}; {} are possible", kind, asked, most));
}
Type type_of(Id id) { return Trace::current().module()[id].type; }
}  // namespace

Id thread_number(Op op, Loc loc) {
  ir::Builder& b = builder(loc);
  return bitcast(Type::i32, b.source(op, Type::u32, 0, loc), loc);
}

Id block_dim(Loc loc) {
  ir::Builder& b = builder(loc);
  return b.constant(Type::i32, b.module().block);
}

Id workgroup_count(Loc loc) {
  ir::Builder& b = builder(loc);
  // The argument block begins with the number of threads, which is below 2^31.
  const std::uint32_t block = b.module().block;
  Id rounded = binary(Op::add, b.arg(Type::u32, 0), b.constant(Type::u32, block - 1), loc);
  return bitcast(Type::i32, binary(Op::div, rounded, b.constant(Type::u32, block), loc), loc);
}

void barrier(Loc loc) { builder(loc).barrier(loc); }
void subgroup_barrier(Loc loc) { builder(loc).subgroup_barrier(loc); }

void fence(Loc loc) {
  Trace& t = Trace::current(loc);
  // Fences are traced in the kernel itself, which must know how its threads use each other's writes.
  t.require_inline();
  t.builder().fence(loc);
}

Id shared_array(Type type, std::int64_t count, Loc loc) {
  ir::Module& m = builder(loc).module();
  check_scalars(m, "shared", count, std::int64_t(1) << 28, loc);
  m.arrays.push_back({type, std::uint32_t(count), false, loc});
  return builder(loc).source(Op::kernel_array, Type::u64, m.arrays.size() - 1, loc);
}

Id private_array(Type type, std::int64_t count, Loc loc) {
  Trace& t = Trace::current(loc);
  check_scalars(t.module(), "private", count, 1 << 14, loc);
  // Functions have the interface of their kernel.
  ir::Module& m = t.kernel().module();
  m.arrays.push_back({type, std::uint32_t(count), bytes(type) < 4, loc, true});
  return t.builder().source(Op::kernel_array, Type::u64, m.arrays.size() - 1, loc);
}

Id running_lanes(Loc loc) { return builder(loc).running_lanes(loc); }

void subgroup(Op op, const Id* values, int count, Id lane, std::uint64_t imm, Id* out, Loc loc) {
  ir::Builder& b = builder(loc);
  if (lane != ir::kNone) lane = convert(Type::u32, lane, loc);
  for (int k = 0; k < count; ++k) {
    const Type type = op == Op::subgroup_ballot ? Type::u32 : type_of(values[k]);
    const Id args[] = {values[k], lane};
    out[k] = b.subgroup(op, type, {args, lane == ir::kNone ? 1u : 2u}, imm, loc);
  }
}

namespace {
Id u32_source(Op op, Loc loc) { return builder(loc).source(op, Type::u32, 0, loc); }
}  // namespace

Id lane_before(Id delta, Loc loc) {
  const Id lane = u32_source(Op::subgroup_lane, loc), by = convert(Type::u32, delta, loc);
  return ternary(Op::select, binary(Op::le, by, lane, loc), binary(Op::sub, lane, by, loc), lane, loc);
}

Id lane_behind(Id delta, Loc loc) {
  const Id lane = u32_source(Op::subgroup_lane, loc), by = convert(Type::u32, delta, loc);
  const Id left = binary(Op::sub, u32_source(Op::subgroup_size, loc), lane, loc);
  return ternary(Op::select, binary(Op::lt, by, left, loc), binary(Op::add, lane, by, loc), lane, loc);
}

Id lane_across(Id mask, Loc loc) {
  return binary(Op::bit_xor, u32_source(Op::subgroup_lane, loc), convert(Type::u32, mask, loc), loc);
}

}  // namespace tracing

namespace detail {

ArrLayout make_kernel_array(bool is_private, Type scalar, int count, const int* shape, int ndim, Loc loc) {
  tracing::Trace& t = tracing::Trace::current(loc);
  std::int64_t scalars = count;
  for (int k = 0; k < ndim; ++k) {
    if (shape[k] <= 0)
      ir::fail(
          t.module(), loc,
          fmt::format("dimension {} of a {} array has {} elements", k, is_private ? "private" : "shared", shape[k]));
    if (scalars != INT64_MAX && __builtin_mul_overflow(scalars, std::int64_t(shape[k]), &scalars)) scalars = INT64_MAX;
  }
  const Type stored = is_bool(scalar) ? Type::u8 : scalar;
  ArrLayout a;
  a.trace = t.serial();
  a.ndim = std::uint8_t(ndim);
  a.element_bytes = std::uint32_t(bytes(stored) * count);
  a.element_align = std::min(16u, a.element_bytes & (~a.element_bytes + 1));
  a.base = is_private ? tracing::private_array(stored, scalars, loc) : tracing::shared_array(stored, scalars, loc);
  for (int k = 0; k < ndim; ++k) a.shape[std::size_t(k)] = t.builder().constant_int(Type::i32, shape[k]);
  return a;
}

}  // namespace detail
}  // namespace weft
