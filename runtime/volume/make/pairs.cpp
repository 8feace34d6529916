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
#include "../../geometry/shapes/closest.h"
#include "../../launch.h"
#include "key.h"

namespace weft::detail {

namespace {

/// The largest radius of a sphere in voxels: a thread goes through all of its leaves.
constexpr float kMostRadius = 1000;

/// A box of leaves, in leaves.
struct LeafBox {
  LeafBox(const Vec3& lower, const Vec3& upper) {
    for (int k = 0; k < 3; ++k) {
      low[k] = Int(floor(lower[k] * 0.125f));
      high[k] = Int(floor(upper[k] * 0.125f)) + 1;
    }
  }
  template <class F>
  void each(F f) const {
    for (auto x : range(low[0], high[0]))
      for (auto y : range(low[1], high[1]))
        for (auto z : range(low[2], high[2])) f(Vec3i(x, y, z));
  }
  Int low[3], high[3];
};

/// Calls f(leaf) for the coordinates, in leaves, of each leaf of whose voxels one may lie within a radius of a point.
template <class F>
void for_leaves(const Vec3& center, const Float& radius, F f) {
  const Vec3 reach(radius, radius, radius);
  LeafBox(center - reach, center + reach).each([&](const Vec3i& leaf) {
    Float squared = 0.f;
    for (int k = 0; k < 3; ++k) {
      const Float first = Float(leaf[k] * 8);
      const Float apart = max(max(first - center[k], center[k] - (first + 7.f)), 0.f);
      squared += apart * apart;
    }
    If (squared <= radius * radius) {
      f(leaf);
    }
  });
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

// ---- Triangles

/// A triangle in index space.
struct TracedTriangle {
  TracedTriangle(const Arr<const vec3>& points, const Arr<const int>& indices, const Int& i, const Float& scale)
      : a(points[indices[3 * i]] * scale),
        b(points[indices[3 * i + 1]] * scale),
        c(points[indices[3 * i + 2]] * scale) {}
  /// Whether it is finite, near enough, and not too large.
  Bool fits(const Float& margin) const {
    Bool all = true;
    for (int k = 0; k < 3; ++k) {
      for (const Vec3* p : {&a, &b, &c}) all = all & (abs((*p)[k]) + margin < float(kMostCoordinate - 8));
      const Float low = min(min(a[k], b[k]), c[k]), high = max(max(a[k], b[k]), c[k]);
      all = all & (high - low <= 2 * kMostRadius);
    }
    return all;
  }
  /// Calls f(leaf) for each leaf of whose voxels one may lie within a distance of the triangle.
  template <class F>
  void for_leaves(const Float& margin, F f) const {
    const Vec3 reach(margin, margin, margin);
    LeafBox(min(min(a, b), c) - reach, max(max(a, b), c) + reach).each([&](const Vec3i& leaf) {
      constexpr float half = 3.5f, diagonal = 6.0622f;  // of the box of a leaf's voxels
      const Vec3 middle(Float(leaf.x * 8) + half, Float(leaf.y * 8) + half, Float(leaf.z * 8) + half);
      const Float most = margin + diagonal;
      If (closest_point_triangle(middle, a, b, c).distance_sq <= most * most) {
        f(leaf);
      }
    });
  }
  Vec3 a, b, c;
};

const auto& count_triangles_kernel() {
  static const auto k = kernel("volume_count_triangles", [](Arr<const vec3> points, Arr<const int> indices, Float scale,
                                                            Float margin, Arr<int> counts, Arr<int> faults) {
    Int i = tid(), count = 0;
    const TracedTriangle t(points, indices, i, scale);
    If (t.fits(margin)) {
      t.for_leaves(margin, [&](const Vec3i&) { count += 1; });
    }
    Else { atomic_add(faults[0], 1); }
    counts[i] = count;
  });
  return k;
}

const auto& write_triangles_kernel() {
  static const auto k =
      kernel("volume_write_triangles", [](Arr<const vec3> points, Arr<const int> indices, Float scale, Float margin,
                                          Arr<const int> before, Arr<std::uint64_t> keys) {
        Int i = tid(), at = before[i];
        TracedTriangle(points, indices, i, scale).for_leaves(margin, [&](const Vec3i& leaf) {
          keys[at] = key_of(leaf * 8);
          at += 1;
        });
      });
  return k;
}

/// Sums up the counts, to each of which the memory then has a place. \param counts  (n + 1), the last one not set
std::int64_t places_for(const Array<int>& counts) {
  const std::int64_t last = counts.size() - 1;
  Array<int>(counts.slice(last)).zero();
  exclusive_scan(counts, counts);
  // A sum below 2^32 that wraps is negative; each thing has at most 16 million leaves.
  const std::int64_t all = counts.slice(last).to_vector()[0];
  if (all < 0) unsupported("more than 2^31 pairs of a leaf and what touches it");
  return all;
}

}  // namespace

TopologyMemory leaves_of_triangles(const Array<vec3>& points, const Array<int>& indices, float scale, float margin,
                                   std::int64_t& pairs) {
  const Device device = points.device();
  const std::int64_t n = indices.size() / 3;
  const Array<int> faults = zeros<int>(device, 1);
  const Array<int> counts = empty<int>(device, n + 1), own = counts.slice(0, n);
  launch(count_triangles_kernel(), n, points, indices, scale, margin, own, faults);
  if (const int fault = faults.to_vector()[0]; fault > 0)
    invalid("{} of {} triangles lie beyond 2^20 voxels from the origin, or extend over more than {} voxels", fault, n,
            2 * kMostRadius);
  pairs = places_for(counts);
  TopologyMemory memory;
  memory.reserve(device, pairs);
  Array<int>(memory.counts).zero();
  if (pairs == 0) return memory;
  const Array<std::uint64_t> keys = memory.keys.slice(0, pairs);
  launch(write_triangles_kernel(), n, points, indices, scale, margin, own, keys);
  weft::radix_sort(keys, {.scratch = memory.scratch});
  number_nodes(memory, pairs);
  return memory;
}

LeafPairs pairs_of_spheres(const Array<vec3>& centers, const Array<float>& radii, float scale, float margin) {
  const Device device = centers.device();
  const std::int64_t n = centers.size();
  LeafPairs pairs;
  Array<int> faults = zeros<int>(device, 2);
  const Array<int> counts = empty<int>(device, n + 1);
  if (n > 0) launch(count_kernel(), n, centers, radii, scale, margin, counts.slice(0, n), faults);
  const std::vector<int> fault = faults.to_vector();
  if (fault[0] > 0)
    invalid("{} of {} spheres have no radius, are not finite, or lie beyond 2^20 voxels from the origin", fault[0], n);
  if (fault[1] > 0) unsupported("{} of {} spheres have a radius of more than {} voxels", fault[1], n, kMostRadius);
  pairs.count = places_for(counts);
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
