// A voxel's key has its place in the tree, from the root down: a tile of the root, an entry of an upper node, one of a
// lower node, and the voxel of a leaf. Sorted keys are in the order in which a grid has its leaves, and a node begins
// where the upper part of the key differs from the one before.
//
//   voxel            tile (27 bits)   upper (15)  lower (12)  leaf (9)
//   (0, 0, 1)        0                0           0           1
//   (0, 0, 9)        0                0           1           1         the second leaf of the same lower node
//   (0, 130, 0)      0                0 1 0       0           16        the second lower node of the same upper node
//
// The scan of the marks of beginnings numbers the nodes of a level.
#include "topology.h"

#include "../../../frontend/language/atomic.h"
#include "../../algorithms/scan.h"
#include "../../algorithms/sort.h"
#include "../../array_create.h"
#include "../../core/view.h"
#include "../../launch.h"
#include "key.h"

namespace weft::detail {

namespace {

const auto& keys_kernel() {
  static const auto k = kernel("volume_keys", [](Arr<const vec3i> voxels, Arr<std::uint64_t> keys, Arr<int> counts) {
    Int i = tid();
    Vec3i v = voxels[i];
    const auto is_near = [](const Int& x) { return (x >= -kMostCoordinate) & (x < kMostCoordinate); };
    const Bool near = is_near(v.x) & is_near(v.y) & is_near(v.z);
    keys[i] = select(near, key_of(v), UInt64(kNoKey));
    If (!near) {
      atomic_add(counts[3], 1);
    }
  });
  return k;
}

const auto& marks_kernel() {
  static const auto k =
      kernel("volume_marks", [](Arr<const std::uint64_t> keys, Arr<int> leaf, Arr<int> lower, Arr<int> upper) {
        Int i = tid();
        UInt64 key = keys[i], before = keys[max(i - 1, 0)];
        const auto begins = [&](int bits) {
          const UInt64 shift = std::uint64_t(bits);
          return Int((key != kNoKey) & ((i == 0) | ((key >> shift) != (before >> shift))));
        };
        leaf[i] = begins(kLeafBits);
        lower[i] = begins(kLowerBits);
        upper[i] = begins(kUpperBits);
      });
  return k;
}

}  // namespace

void TopologyMemory::reserve(const Device& device, std::int64_t voxels) {
  if (!counts.is_null() && keys.size() >= voxels) return;
  const std::int64_t n = std::max<std::int64_t>(voxels, 1);
  keys = empty<std::uint64_t>(device, n);
  for (Array<int>& r : ranks) r = empty<int>(device, n);
  lower_of = empty<int>(device, n);
  upper_of = empty<int>(device, n);
  counts = empty<int>(device, 6);
  scratch = empty<std::uint8_t>(device, std::int64_t(std::max(weft::radix_sort_scratch_bytes<std::uint64_t>(n),
                                                              weft::scan_scratch_bytes<int>(n + 1))));
}

void find_topology(TopologyMemory& memory, const Array<vec3i>& voxels) {
  const std::int64_t n = voxels.size();
  memory.counts.zero();
  if (n == 0) return;
  const Array<std::uint64_t> keys = memory.keys.slice(0, n);
  launch(keys_kernel(), n, voxels, keys, memory.counts);
  weft::radix_sort(keys, {.scratch = memory.scratch});
  number_nodes(memory, n);
}

void number_nodes(TopologyMemory& memory, std::int64_t n) {
  const Array<std::uint64_t> keys = memory.keys.slice(0, n);
  const Array<int> leaf = memory.ranks[0].slice(0, n), lower = memory.ranks[1].slice(0, n),
                   upper = memory.ranks[2].slice(0, n);
  launch(marks_kernel(), n, keys, leaf, lower, upper);
  for (const Array<int>& level : {leaf, lower, upper}) inclusive_scan(level, level, {.scratch = memory.scratch});
}

}  // namespace weft::detail
