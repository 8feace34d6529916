// A thread for each sphere counts the leaves that it touches, a scan finds the places of its pairs, and the thread
// writes them; then pairs are sorted by the keys of their leaves. The sort keeps the order of spheres in a leaf.
#include "pairs.h"

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/atomic.h"
#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../algorithms/scan.h"
#include "../../algorithms/sort.h"
#include "../../array_create.h"
#include "../../launch.h"
#include "key.h"

namespace weft::detail {

namespace {

/// The largest radius of a sphere in voxels: a thread goes through all of its leaves.
constexpr float kMostRadius = 1000;

/// Calls f(leaf) for the coordinates, in leaves, of each leaf of whose voxels one may lie within a radius of a point.
template <class F>
void for_leaves(const Vec3& center, const Float& radius, F f) {
  Int low[3], high[3];
  for (int k = 0; k < 3; ++k) {
    low[k] = Int(floor((center[k] - radius) * 0.125f));
    high[k] = Int(floor((center[k] + radius) * 0.125f)) + 1;
  }
  for (auto x : range(low[0], high[0]))
    for (auto y : range(low[1], high[1]))
      for (auto z : range(low[2], high[2])) {
        const Vec3i leaf(x, y, z);
        Float squared = 0.f;
        for (int k = 0; k < 3; ++k) {
          const Float first = Float(leaf[k] * 8);
          const Float apart = max(max(first - center[k], center[k] - (first + 7.f)), 0.f);
          squared += apart * apart;
        }
        If (squared <= radius * radius) {
          f(leaf);
        }
      }
}

struct TracedSphere {
  Vec3 center;
  Float radius;
};
TracedSphere sphere_at(const Arr<const vec3>& centers, const Arr<const float>& radii, const Int& i, const Float& scale,
                       const Float& margin) {
  return {centers[i] * scale, radii[select(radii.shape(0) == 1, 0, i)] * scale + margin};
}

/// faults[0] counts spheres that are none or too far away, faults[1] those that are too large.
const auto& count_kernel() {
  static const auto k = kernel("volume_count_pairs", [](Arr<const vec3> centers, Arr<const float> radii, Float scale,
                                                        Float margin, Arr<int> counts, Arr<int> faults) {
    Int i = tid(), count = 0;
    const TracedSphere s = sphere_at(centers, radii, i, scale, margin);
    Bool near = (s.radius > margin) & (s.radius - s.radius == 0.f);
    for (int k = 0; k < 3; ++k) near = near & (abs(s.center[k]) + s.radius < float(kMostCoordinate - 8));
    const Bool small = s.radius <= margin + kMostRadius;
    If (near & small) {
      for_leaves(s.center, s.radius, [&](const Vec3i&) { count += 1; });
    }
    If (!near) {
      atomic_add(faults[0], 1);
    }
    If (near & !small) {
      atomic_add(faults[1], 1);
    }
    counts[i] = count;
  });
  return k;
}

const auto& write_kernel() {
  static const auto k =
      kernel("volume_write_pairs", [](Arr<const vec3> centers, Arr<const float> radii, Float scale, Float margin,
                                      Arr<const int> before, Arr<std::uint64_t> keys, Arr<int> things) {
        Int i = tid(), at = before[i];
        const TracedSphere s = sphere_at(centers, radii, i, scale, margin);
        for_leaves(s.center, s.radius, [&](const Vec3i& leaf) {
          keys[at] = key_of(leaf * 8);
          things[at] = i;
          at += 1;
        });
      });
  return k;
}

}  // namespace

LeafPairs pairs_of_spheres(const Array<vec3>& centers, const Array<float>& radii, float scale, float margin) {
  const Device device = centers.device();
  const std::int64_t n = centers.size();
  LeafPairs pairs;
  Array<int> faults = zeros<int>(device, 2);
  // One more, whose count is 0, so that the last of the sums is that of all.
  const Array<int> counts = empty<int>(device, n + 1);
  Array<int>(counts.slice(n)).zero();
  if (n > 0) launch(count_kernel(), n, centers, radii, scale, margin, counts.slice(0, n), faults);
  const std::vector<int> fault = faults.to_vector();
  if (fault[0] > 0)
    invalid("{} of {} spheres have no radius, are not finite, or lie beyond 2^20 voxels from the origin", fault[0], n);
  if (fault[1] > 0) unsupported("{} of {} spheres have a radius of more than {} voxels", fault[1], n, kMostRadius);
  exclusive_scan(counts, counts);
  pairs.count = counts.slice(n).to_vector()[0];
  // A sum of less than 2^32 that wraps is negative; each sphere has at most 16 million leaves.
  if (pairs.count < 0) unsupported("more than 2^31 pairs of a sphere and a leaf");
  pairs.memory.reserve(device, pairs.count);
  pairs.things = empty<int>(device, std::max<std::int64_t>(pairs.count, 1));
  Array<int>(pairs.memory.counts).zero();
  if (pairs.count == 0) return pairs;
  const Array<std::uint64_t> keys = pairs.memory.keys.slice(0, pairs.count);
  launch(write_kernel(), n, centers, radii, scale, margin, counts.slice(0, n), keys, pairs.things);
  weft::radix_sort_pairs(keys, pairs.things);
  number_nodes(pairs.memory, pairs.count);
  return pairs;
}

}  // namespace weft::detail
