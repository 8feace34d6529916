// Recognises the coordinates of tid<N>(): quotients and remainders of the thread's number by the extents.
#include "coordinates.h"

#include <algorithm>

namespace weft::ir {
namespace {

bool is_arg(const Module& m, Id id, std::uint32_t offset) { return m[id].op == Op::arg && m[id].imm == offset; }

/// Whether a value is the rest of dimension k: the thread's number without the faster dimensions.
bool is_rest(const Module& m, Id value, int k) {
  if (k + 1 >= static_cast<int>(std::max(m.tid_rank, 1u))) return m[value].op == Op::thread_id;
  return is_tid_quotient(m, value, k + 1);
}

/// The value under conversions that keep its number: those among integers of 32 bits or more. A float may round it.
Id opened(const Module& m, Id value) {
  const auto counts = [&](Id id) { return is_int(m[id].type) && bits(m[id].type) >= 32; };
  while ((m[value].op == Op::bitcast || m[value].op == Op::convert) && counts(value) && counts(m.arg(value, 0)))
    value = m.arg(value, 0);
  return value;
}

bool is_doubled_rest(const Module& m, Id value, int k) {
  if (m[value].op != Op::shl) return false;
  const Inst& one = m[m.arg(value, 1)];
  return one.op == Op::constant && one.imm == 1 && is_rest(m, m.arg(value, 0), k);
}

/// Whether a value is the quotient of dimension k times its extent.
bool is_whole(const Module& m, Id value, int k) {
  if (m[value].op != Op::mul) return false;
  const Id a = m.arg(value, 0), b = m.arg(value, 1);
  const std::uint32_t at = m.extent_offset(k);
  return (is_arg(m, b, at) && is_tid_quotient(m, a, k)) || (is_arg(m, a, at) && is_tid_quotient(m, b, k));
}

}  // namespace

// mul_hi(2 * rest, multiplier) >> shift
bool is_tid_quotient(const Module& m, Id value, int k) {
  const std::uint32_t at = m.extent_offset(k);
  if (m[value].op != Op::shr || !is_arg(m, m.arg(value, 1), at + 8)) return false;
  const Id high = m.arg(value, 0);
  if (m[high].op != Op::mul_hi) return false;
  const Id a = m.arg(high, 0), b = m.arg(high, 1);
  return (is_arg(m, b, at + 4) && is_doubled_rest(m, a, k)) || (is_arg(m, a, at + 4) && is_doubled_rest(m, b, k));
}

// rest - quotient * extent; of the first dimension, the rest itself
int tid_coordinate(const Module& m, Id value) {
  value = opened(m, value);
  if (is_rest(m, value, 0)) return 0;
  if (m[value].op != Op::sub) return -1;
  for (int k = 1; k < static_cast<int>(m.tid_rank); ++k)
    if (is_rest(m, m.arg(value, 0), k) && is_whole(m, m.arg(value, 1), k)) return k;
  return -1;
}

}  // namespace weft::ir
