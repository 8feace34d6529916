// The meshes and the points of the benchmarks of queries: tori of several sizes, scattered points.
#pragma once
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "../../runtime/geometry/mesh_shapes.h"

namespace weft::bench {

inline constexpr std::pair<const char*, int> kTorusSizes[] = {{"10k", 10'000}, {"160k", 160'000}, {"1M", 1'000'000}};

/// A torus of n triangles around the axis y: ring of radius 1, tube of radius 0.35.
inline MeshData torus(int n) {
  const int across = int(std::lround(std::sqrt(n / 4.0)));
  return shapes::torus(1, 0.35f, 2 * across, across);
}

/// Points spread evenly in a box around the torus, in no order.
inline std::vector<vec3> scattered(int n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> place(-1, 1);
  std::vector<vec3> points;
  for (int i = 0; i < n; ++i) {
    const float x = place(engine), y = place(engine), z = place(engine);
    points.push_back({x * 1.4f, y * 0.5f, z * 1.4f});
  }
  return points;
}

}  // namespace weft::bench
