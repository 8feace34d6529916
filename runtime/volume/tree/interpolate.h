// Values between voxels: linear and cubic, for any type with sums and products. Internal to volumes.
#pragma once
#include "../../../frontend/kernels/names.h"

namespace weft::detail {

/// A point as the voxel below it and the rest.
struct CellPoint {
  explicit CellPoint(const Vec3& point) {
    for (int k = 0; k < 3; ++k) {
      const Float below = floor(point[k]);
      cell[k] = Int(below);
      rest[k] = point[k] - below;
    }
  }
  Int cell[3];
  Float rest[3];
};

/// The closest voxel along an axis; halves away from 0.
inline Int closest_voxel(const Float& x) { return Int(round(x)); }

template <class V, class W>
V between(const V& a, const V& b, const W& w) {
  return a + (b - a) * w;
}

/// The value in a cube, whose corner (a, b, c) is v[4 a + 2 b + c], along z first, then y, then x, as NanoVDB has it.
template <class V, class W>
V trilinear(const V (&v)[8], const W (&w)[3]) {
  const auto along_z = [&](int corner) { return between(v[corner], v[corner + 1], w[2]); };
  return between(between(along_z(0), along_z(2), w[1]), between(along_z(4), along_z(6), w[1]), w[0]);
}

/// Its derivatives along x, y and z.
template <class V, class W>
std::array<V, 3> trilinear_slope(const V (&v)[8], const W (&w)[3]) {
  const auto along_z = [&](int corner) { return between(v[corner], v[corner + 1], w[2]); };
  const V p[4] = {along_z(0), along_z(2), along_z(4), along_z(6)};
  const V d[4] = {v[1] - v[0], v[3] - v[2], v[5] - v[4], v[7] - v[6]};
  return {between(p[2], p[3], w[1]) - between(p[0], p[1], w[1]), between(V(p[1] - p[0]), V(p[3] - p[2]), w[0]),
          between(between(d[0], d[1], w[1]), between(d[2], d[3], w[1]), w[0])};
}

/// The weights of four values of a Catmull-Rom spline at t between the second and the third, and their derivatives.
template <class W>
struct CubicWeights {
  explicit CubicWeights(const W& t)
      : value{((t * -0.5f + 1.f) * t - 0.5f) * t, (t * 1.5f - 2.5f) * t * t + 1.f, ((t * -1.5f + 2.f) * t + 0.5f) * t,
              (t * 0.5f - 0.5f) * t * t},
        slope{(t * -1.5f + 2.f) * t - 0.5f, (t * 4.5f - 5.f) * t, (t * -4.5f + 4.f) * t + 0.5f, (t * 1.5f - 1.f) * t} {}
  W value[4], slope[4];
  /// One of them by a traced index.
  static W at(const W (&all)[4], const Int& k) {
    return select(k < 2, select(k == 0, all[0], all[1]), select(k == 2, all[2], all[3]));
  }
};

}  // namespace weft::detail
