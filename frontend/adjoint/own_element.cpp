// Recognises accesses to an element of the thread's own, by the way in which tid() and a(i, j) are traced.
#include <algorithm>

#include "../passes/coordinates.h"
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

// Adds the coordinates of an index of the form i * extent + j, where i may be such a sum itself.
bool Analysis::add_coordinates(const Param& array, Id index, std::vector<int>& to) const {
  if (const int k = tid_coordinate(module_, index); k >= 0) {
    to.push_back(k);
    return true;
  }
  const Inst& sum = module_[index];
  if (sum.op != Op::add) return false;
  for (int side = 0; side < 2; ++side) {
    const int last = tid_coordinate(module_, module_.arg(index, side));
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

}  // namespace weft::ir
