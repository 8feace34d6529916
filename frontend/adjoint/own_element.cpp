// Recognises accesses to an element of the thread's own, by the way in which tid() and a(i, j) are traced.
#include <algorithm>

#include "analysis.h"

namespace weft::ir {

// If the index has each coordinate of tid() once, threads that stay within the bounds of the array access different
// elements.
std::vector<int> Analysis::own_element(Id memory) const {
  const Inst& inst = module_[memory];
  if (module_.wide || module_[module_.arg(memory, 0)].op != Op::arg) return {};
  const Param& array = *module_.array_of(module_.arg(memory, 0));
  // Other threads may reach the element through an argument that overlaps this one.
  if (arrays_[static_cast<std::size_t>(&array - module_.params.data())].overlaps) return {};
  if (inst.offset + inst.width * static_cast<std::uint32_t>(bytes(inst.type)) > inst.stride) return {};
  std::vector<int> found;
  if (!add_coordinates(array, module_.arg(memory, 1), found) || found.size() != array.ndim) return {};
  if (found.size() != std::max(module_.tid_rank, 1u)) return {};
  std::vector<int> sorted = found;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) == sorted.end() ? found : std::vector<int>();
}

namespace {
// The value under conversions that keep its number.
Id opened(const Module& m, Id value) {
  while (m[value].op == Op::bitcast || (m[value].op == Op::convert && bits(m[value].type) >= 32))
    value = m.arg(value, 0);
  return value;
}
}  // namespace

// Adds the coordinates of an index of the form i * extent + j, where i may be such a sum itself.
bool Analysis::add_coordinates(const Param& array, Id index, std::vector<int>& to) const {
  if (const int k = coordinate(index); k >= 0) {
    to.push_back(k);
    return true;
  }
  const Inst& sum = module_[index];
  if (sum.op != Op::add) return false;
  for (int side = 0; side < 2; ++side) {
    const int last = coordinate(module_.arg(index, side));
    const Id rows = module_.arg(index, 1 - side);
    if (last < 0 || module_[rows].op != Op::mul) continue;
    for (int factor = 0; factor < 2; ++factor) {
      // The extent must be that of this array and of the dimension that is added; with another number rows may overlap.
      const Id extent = module_.arg(rows, 1 - factor);
      if (module_[extent].op != Op::arg || !add_coordinates(array, module_.arg(rows, factor), to)) continue;
      if (module_[extent].imm != array.offset + 8 + 4 * to.size()) return false;
      to.push_back(last);
      return true;
    }
  }
  return false;
}

// Returns whether a value is the rest of dimension k: the thread's number without the faster dimensions, as
// tracing::thread_coordinate() computes it.
bool Analysis::is_rest(Id value, int k) const {
  if (k + 1 >= static_cast<int>(std::max(module_.tid_rank, 1u))) return module_[value].op == Op::thread_id;
  return is_quotient(value, k + 1);
}

// Returns whether a value is the rest of dimension k, divided by its extent.
bool Analysis::is_quotient(Id value, int k) const {
  const auto at = module_.tid_offset + 12 * static_cast<std::uint32_t>(k - 1);
  const auto is_arg = [&](Id id, std::uint32_t offset) {
    return module_[id].op == Op::arg && module_[id].imm == offset;
  };
  if (module_[value].op != Op::shr || !is_arg(module_.arg(value, 1), at + 8)) return false;
  const Id high = module_.arg(value, 0);
  if (module_[high].op != Op::mul_hi) return false;
  for (int side = 0; side < 2; ++side) {
    const Id doubled = module_.arg(high, side);
    if (module_[doubled].op == Op::shl && is_arg(module_.arg(high, 1 - side), at + 4) &&
        is_rest(module_.arg(doubled, 0), k))
      return true;
  }
  return false;
}

/// The number of the thread's coordinate that the value is; -1 for other values.
int Analysis::coordinate(Id value) const {
  value = opened(module_, value);
  if (is_rest(value, 0)) return 0;
  if (module_[value].op != Op::sub) return -1;
  const Id rest = module_.arg(value, 0), whole = module_.arg(value, 1);
  if (module_[whole].op != Op::mul) return -1;
  for (int k = 1; k < static_cast<int>(module_.tid_rank); ++k)
    if (is_rest(rest, k) && (is_quotient(module_.arg(whole, 0), k) || is_quotient(module_.arg(whole, 1), k))) return k;
  return -1;
}

}  // namespace weft::ir
