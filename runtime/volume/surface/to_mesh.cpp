// Marching cubes on the device. Each voxel has the edges to its next voxels along x, y and z, and the cube of which it
// is the least corner.
//
//   count       which of a voxel's edges are cut, and the triangles of its cube
//   scans       the points and the triangles of all voxels before each
//   points      a point on each edge that is cut
//   triangles   of each cube; an edge's point is found by the voxel where the edge begins
//
// In a volume, cubes reach beyond the leaves: the voxels are those of a second volume, which also has the leaves before
// each along x, y and z.
#include <string>
#include <utility>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/support/invalid.h"
#include "../../algorithms/scan.h"
#include "../../array_create.h"
#include "../../launch.h"
#include "../../tape.h"
#include "../../work/capture.h"
#include "../../work/observe.h"
#include "../tree/leaf_cache.h"
#include "../volume_query.h"
#include "../volume_surface.h"
#include "cube_table.h"

namespace weft {

namespace detail {

namespace {

// ---- What is cut: blocks and volumes

/// The voxels of a block in a kernel, numbered row by row.
struct BlockVoxels {
  using Real = Float;
  Arr<const float, 3> values;

  Vec3i voxel(const Int& n) const {
    const Int row = n / values.shape(2);
    return Vec3i(row / values.shape(1), row % values.shape(1), n % values.shape(2));
  }
  Bool has(const Vec3i& v) const { return (v.x < values.shape(0)) & (v.y < values.shape(1)) & (v.z < values.shape(2)); }
  /// The number of a voxel; -1 for one that is not there.
  Int number(const Vec3i& v) const { return select(has(v), (v.x * values.shape(1) + v.y) * values.shape(2) + v.z, -1); }
  Real value(const Vec3i& v) { return values(v.x, v.y, v.z); }
};

/// The voxels of the leaves of `around`, with values of type T of a volume.
template <class T>
struct VolumeVoxels {
  using Real = VolumeSampled<T>;
  VolumeVoxels(const Var<VolumeArrays>& volume, const Var<VolumeArrays>& around) : around(around), values(volume) {}
  Var<VolumeArrays> around;
  VolumeAccessor<T> values;

  Vec3i voxel(const Int& n) const {
    return detail::voxel_in_leaf(around, around.leaf + (n >> 9) * around.leaf_words, n & 511);
  }
  Bool has(const Vec3i&) const { return true; }
  Int number(const Vec3i& v) const { return volume_lookup_index(around, v); }
  Real value(const Vec3i& v) {
    if constexpr (std::is_same_v<T, half>)
      return cast<float>(values.lookup(v));
    else
      return values.lookup(v);
  }
};

// ---- Passes

/// The arrays of the passes, by voxel.
struct Cuts {
  Array<int> masks;      ///< bit k: the edge along axis k is cut
  Array<int> points;     ///< the points before
  Array<int> triangles;  ///< the triangles before
};

Vec3i corner(const Vec3i& v, int c) { return v + Vec3i(c >> 2, c >> 1 & 1, c & 1); }

/// The corners of a voxel's cube whose values are less; all its corners are there, or it has none.
template <class V, class S>
Int corners_inside(V& voxels, const Vec3i& v, const S& value) {
  Int inside = 0;
  If (voxels.has(corner(v, 7))) {
    for (int c = 0; c < 8; ++c) inside |= select(voxels.value(corner(v, c)) < value, 1 << c, 0);
  }
  return inside;
}

template <class V, class S>
void count_cuts(V& voxels, const S& value, const Arr<const int>& table, const Arr<int>& masks, const Arr<int>& points,
                const Arr<int>& triangles) {
  Int n = tid();
  const Vec3i v = voxels.voxel(n);
  const Bool inside = voxels.value(v) < value;
  Int mask = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const Vec3i next = corner(v, 4 >> axis);
    If (voxels.has(next)) {
      mask |= select((voxels.value(next) < value) != inside, 1 << axis, 0);
    }
  }
  masks[n] = mask;
  points[n] = Int(popcount(bitcast<unsigned>(mask)));
  triangles[n] = table[corners_inside(voxels, v, value) * kCutRow];
}

template <class V, class S>
void put_points(V& voxels, const S& value, const Arr<const int>& masks, const Arr<const int>& before,
                const Mat33& matrix, const Vec3& translation, const Arr<vec3>& points) {
  Int n = tid(), mask = masks[n], at = before[n];
  If (mask != 0) {
    const Vec3i v = voxels.voxel(n);
    const S from = voxels.value(v);
    for (int axis = 0; axis < 3; ++axis) {
      If ((mask & (1 << axis)) != 0) {
        const S to = voxels.value(corner(v, 4 >> axis));
        Vec3 p(Float(v.x), Float(v.y), Float(v.z));
        // A NaN, or a difference that is not finite, gives the middle.
        const Float t = cast<float>((value - from) / (to - from));
        p[axis] = p[axis] + select((t >= 0.f) & (t <= 1.f), t, 0.5f);
        points[at] = matrix * p + translation;
        at += 1;
      }
    }
  }
}

template <class V, class S>
void put_triangles(V& voxels, const S& value, const Arr<const int>& table, const Arr<const int>& masks,
                   const Arr<const int>& points, const Arr<const int>& before, const Arr<int>& indices) {
  Int n = tid();
  const Vec3i v = voxels.voxel(n);
  const Int row = corners_inside(voxels, v, value) * kCutRow;
  for (auto k : range(3 * table[row])) {
    const Int edge = table[row + 1 + k], axis = edge >> 3, c = edge & 7;
    const Int begin = voxels.number(Vec3i(v.x + (c >> 2), v.y + ((c >> 1) & 1), v.z + (c & 1)));
    Int point = 0;
    If (begin >= 0) {
      point = points[begin] + Int(popcount(bitcast<unsigned>(masks[begin] & ((1 << axis) - 1))));
    }
    indices[3 * before[n] + k] = point;
  }
}

/// Makes the exclusive scans, and reads the two sums back.
std::pair<int, int> sums(const Cuts& cuts) {
  const std::int64_t last = cuts.points.size() - 1;
  int total[2] = {0, 0};
  const Array<int> both[] = {cuts.points, cuts.triangles};
  for (int k = 0; k < 2; ++k) {
    total[k] = both[k].slice(last).to_vector()[0];
    exclusive_scan(both[k], both[k]);
    total[k] += both[k].slice(last).to_vector()[0];
  }
  return {total[0], total[1]};
}

/// The surface of voxels V, which kernels make from parameters P.
template <class V, class... P>
class Surface {
 public:
  using Real = typename V::Real;

  template <class S, class... A>
  static VolumeSurface of(const Device& device, std::int64_t voxels, S value, const mat33& matrix,
                          const vec3& translation, const A&... source) {
    if (voxels > kMostVoxels) unsupported("to_mesh() of {} voxels; it counts to {}", voxels, kMostVoxels);
    const Array<int> table(device, cube_table());
    VolumeSurface made{empty<vec3>(device, 0), empty<int>(device, 0)};
    if (voxels == 0) return made;
    const Cuts cuts{empty<int>(device, voxels), empty<int>(device, voxels), empty<int>(device, voxels)};
    launch(count_kernel(), voxels, source..., value, table, cuts.masks, cuts.points, cuts.triangles);
    const auto [points, triangles] = sums(cuts);
    if (points == 0) return made;
    made.points = empty<vec3>(device, points);
    launch(points_kernel(), voxels, source..., value, cuts.masks, cuts.points, matrix, translation, made.points);
    if (triangles == 0) return made;
    made.indices = empty<int>(device, 3 * std::int64_t(triangles));
    launch(triangles_kernel(), voxels, source..., value, table, cuts.masks, cuts.points, cuts.triangles, made.indices);
    return made;
  }

 private:
  /// Five triangles for each are numbers of 31 bits.
  static constexpr std::int64_t kMostVoxels = 0x7fffffff / kMostCuts;

  static const auto& count_kernel() {
    static const auto k = kernel("surface_count", [](P... source, Real value, Arr<const int> table, Arr<int> masks,
                                                     Arr<int> points, Arr<int> triangles) {
      V voxels{source...};
      count_cuts(voxels, value, table, masks, points, triangles);
    });
    return k;
  }
  static const auto& points_kernel() {
    static const auto k =
        kernel("surface_points", [](P... source, Real value, Arr<const int> masks, Arr<const int> before, Mat33 matrix,
                                    Vec3 translation, Arr<vec3> points) {
          V voxels{source...};
          put_points(voxels, value, masks, before, matrix, translation, points);
        });
    return k;
  }
  static const auto& triangles_kernel() {
    static const auto k =
        kernel("surface_triangles", [](P... source, Real value, Arr<const int> table, Arr<const int> masks,
                                       Arr<const int> points, Arr<const int> before, Arr<int> indices) {
          V voxels{source...};
          put_triangles(voxels, value, table, masks, points, before, indices);
        });
    return k;
  }
};

/// The leaves of a volume, and those before each along the axes.
Volume around(const Volume& volume) {
  static const auto list = kernel("surface_leaves", [](Var<VolumeArrays> volume, Arr<vec3i> voxels) {
    auto [l, c] = tid<2>();
    const Vec3i before(c >> 2, (c >> 1) & 1, c & 1);
    voxels[l * 8 + c] = detail::leaf_corner(volume, volume.leaf + l * volume.leaf_words) - before;
  });
  const std::int64_t leaves = volume.info().leaves;
  const auto voxels = empty<vec3i>(volume.device(), 8 * leaves);
  if (leaves > 0) launch(list, {leaves, 8}, volume, voxels);
  return Volume::allocate_by_tiles<half>(voxels, half());
}

void check(const ArrayBase& values) {
  if (Capture::current()) invalid("to_mesh() in a capture: how large a surface is, must be known on the host");
  tell_recorder({.kind = OperationKind::untaped,
                 .to = &values,
                 .from = &values,
                 .what = "to_mesh() of an array",
                 .instead = "detach() the values, or make the surface in unrecorded()"});
}

template <class T>
VolumeSurface surface_of(const Volume& volume, double value) {
  check(VolumeValueOf<T>::values(volume.kernel_argument()));
  const HeardBy nobody(nullptr);
  const Volume voxels = around(volume);
  const std::vector<float> map = volume.transform().to_vector();
  const mat33 matrix(map[0], map[1], map[2], map[3], map[4], map[5], map[6], map[7], map[8]);
  using Number = typename VolumeValueOf<T>::Sampled;
  return Surface<VolumeVoxels<T>, Var<VolumeArrays>, Var<VolumeArrays>>::of(
      volume.device(), voxels.info().leaves * 512, Number(value), matrix, vec3{map[18], map[19], map[20]}, volume,
      voxels);
}

}  // namespace
}  // namespace detail

VolumeSurface to_mesh(const Volume& volume, double value, Loc loc) {
  return detail::called_from(loc, [&] {
    switch (volume.info().type) {
      case VolumeType::float32: return detail::surface_of<float>(volume, value);
      case VolumeType::float16: return detail::surface_of<half>(volume, value);
      case VolumeType::float64: return detail::surface_of<double>(volume, value);
      default:
        invalid("to_mesh() of a volume of type {}, whose values are no real numbers", to_string(volume.info().type));
    }
  });
}

VolumeSurface to_mesh(const Array<float, 3>& values, double value, const mat33& matrix, const vec3& translation,
                      Loc loc) {
  return detail::called_from(loc, [&] {
    if (values.is_null()) invalid("to_mesh() of a null array");
    detail::check(values);
    const detail::HeardBy nobody(nullptr);
    return detail::Surface<detail::BlockVoxels, Arr<const float, 3>>::of(values.device(), values.size(), float(value),
                                                                         matrix, translation, values);
  });
}

}  // namespace weft
