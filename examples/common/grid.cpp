// The triangle grid: sorting by two kernels and a prefix sum, and the walk of a ray through the cells.
#include "grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

using namespace weft;

namespace {

constexpr int kMostCells = 128;              // along one axis
constexpr double kMostEntries = 48'000'000;  // of the list: large triangles lie in many cells

/// Calls body(c) for each cell that the bounding box of a triangle touches.
template <class F>
void for_cells_of(const Arr<const vec3>& x, const Arr<const vec3i>& triangles, const Int& t, const Vec3& origin,
                  const Float& cell, const Vec3i& cells, F body) {
  Vec3i corner = triangles[t];
  Vec3 a = x[corner.x], b = x[corner.y], c = x[corner.z];
  Vec3i last = cells - vec3i{1, 1, 1};
  Vec3i lo = min(max(Vec3i((min(a, min(b, c)) - origin) / cell), vec3i{0, 0, 0}), last);
  Vec3i hi = min(max(Vec3i((max(a, max(b, c)) - origin) / cell), vec3i{0, 0, 0}), last);
  for (auto z : range(lo.z, hi.z + 1))
    for (auto y : range(lo.y, hi.y + 1))
      for (auto n : range(lo.x, hi.x + 1)) body(Int((z * cells.y + y) * cells.x + n));
}

// Strategy: a counting sort. count_kernel adds up how many triangles each cell has, the host turns the counts into
// the place where each cell's part of the list begins, fill_kernel puts each triangle there, at a place of its own
// that the same atomic_add hands out.
// Edge cases: a triangle on the far boundary is clamped into the last cell; the order within a cell is open, which
// the nearest hit does not depend on.
// Example: triangles 0 and 1 touch cells {0, 1} and {1}. Counts 1, 2; first 0, 1, 3; list 0 | 0 1 (or 0 | 1 0).
auto count_kernel = kernel("grid_count", [](Arr<const vec3> x, Arr<const vec3i> triangles, Vec3 origin, Float cell,
                                            Vec3i cells, Arr<int> count) {
  Int t = tid();
  for_cells_of(x, triangles, t, origin, cell, cells, [&](const Int& c) { atomic_add(count[c], 1); });
});
auto fill_kernel = kernel("grid_fill", [](Arr<const vec3> x, Arr<const vec3i> triangles, Vec3 origin, Float cell,
                                          Vec3i cells, Arr<int> next, Arr<int> list) {
  Int t = tid();
  for_cells_of(x, triangles, t, origin, cell, cells, [&](const Int& c) { list[atomic_add(next[c], 1)] = t; });
});

/// How long the list is if cells have this size.
double entries(const std::vector<vec3>& x, const std::vector<vec3i>& triangles, float cell) {
  double sum = 0;
  for (const vec3i& t : triangles) {
    double boxes = 1;
    for (int k = 0; k < 3; ++k) {
      auto [lo, hi] = std::minmax({x[std::size_t(t.x)][k], x[std::size_t(t.y)][k], x[std::size_t(t.z)][k]});
      boxes *= double(hi - lo) / double(cell) + 2;
    }
    sum += boxes;
  }
  return sum;
}

}  // namespace

TriangleGrid build_grid(const Array<vec3>& positions, const Array<vec3i>& triangles) {
  const std::vector<vec3> x = positions.to_vector();
  vec3 lo(std::numeric_limits<float>::max()), hi(-std::numeric_limits<float>::max());
  for (const vec3& p : x)
    for (int k = 0; k < 3; ++k) {
      if (!(std::abs(p[k]) < 1e6f)) throw std::runtime_error("the body has left the world: the simulation is unstable");
      lo[k] = std::min(lo[k], p[k]);
      hi[k] = std::max(hi[k], p[k]);
    }
  vec3 sides = hi - lo;
  const float longest = std::max({sides.x, sides.y, sides.z, 1e-6f});
  for (int k = 0; k < 3; ++k) sides[k] = std::max(sides[k], longest * 1e-2f);  // a flat mesh has cells too

  TriangleGrid grid;
  grid.origin = lo;
  const auto count = triangles.size();
  grid.cell = std::max(std::cbrt(sides.x * sides.y * sides.z / float(4 * count)), longest / (kMostCells - 1));
  const std::vector<vec3i> corners = triangles.to_vector();
  while (grid.cell < longest && entries(x, corners, grid.cell) > kMostEntries) grid.cell *= 2;
  for (int k = 0; k < 3; ++k) grid.cells[k] = int(sides[k] / grid.cell) + 1;

  const std::int64_t number = std::int64_t(grid.cells.x) * grid.cells.y * grid.cells.z;
  const Device device = positions.device();
  Array<int> counts = zeros<int>(device, number);
  launch(count_kernel, count, positions, triangles, grid.origin, grid.cell, grid.cells, counts);

  std::vector<int> first = counts.to_vector();
  first.push_back(0);
  std::exclusive_scan(first.begin(), first.end(), first.begin(), 0);
  grid.first = Array<int>(device, first);
  grid.list = empty<int>(device, std::max(first.back(), 1));
  counts.assign(std::span<const int>(first.data(), std::size_t(number)));
  launch(fill_kernel, count, positions, triangles, grid.origin, grid.cell, grid.cells, counts, grid.list);
  return grid;
}

// Strategy: Amanatides and Woo, "A fast voxel traversal algorithm for ray tracing" (1987). The ray is cut into its
// pieces in single cells; `next` holds, per axis, the distance at which it crosses into the next cell. In each cell
// all triangles are tested (Moeller and Trumbore, 1997). The walk ends when the nearest hit so far lies before the
// cell, or outside the grid.
// Edge cases: a ray parallel to an axis gets a tiny slope instead, so that no division is by zero; one that starts
// inside the grid starts walking there; a triangle of several cells may be found early, at a place in a later cell:
// that hit is right and only ends the walk there; through the corner of cells the ray steps along all axes at once.
// Example: cells of side 1, origin (0.5, 0.5, 0.5), direction (1, 0.4, 0): next = (0.5, 1.25, far), so the ray goes
// to cell (1, 0, 0) at 0.5, then next = (1.5, 1.25, far) and it goes to (1, 1, 0) at 1.25.
Hit cast(const GridView& grid, const Vec3& origin, const Vec3& direction, const Float& t_max, Find find) {
  Hit hit{t_max, -1, 0, 0};
  Vec3 enter, leave, slope;
  for (int k = 0; k < 3; ++k) {
    slope[k] = 1 / select(abs(direction[k]) < 1e-7f, 1e-7f, direction[k]);
    Float a = (grid.origin[k] - origin[k]) * slope[k];
    Float b = a + grid.cell * Float(grid.cells[k]) * slope[k];
    enter[k] = min(a, b);
    leave[k] = max(a, b);
  }
  Float t = max(max(enter.x, enter.y), max(enter.z, 0));
  If (t < min(min(leave.x, leave.y), min(leave.z, t_max))) {
    Vec3 start = (origin + direction * t - grid.origin) / grid.cell;
    Vec3i at, step;
    Vec3 next, delta;
    for (int k = 0; k < 3; ++k) {
      at[k] = clamp(Int(start[k]), 0, grid.cells[k] - 1);
      Int forward = Int(slope[k] > 0);
      step[k] = 2 * forward - 1;
      delta[k] = abs(slope[k]) * grid.cell;
      Float border = Float(at[k] + forward) * grid.cell + grid.origin[k];
      next[k] = (border - origin[k]) * slope[k];
    }
    While (t < hit.t) {
      Int c = (at.z * grid.cells.y + at.y) * grid.cells.x + at.x;
      for (auto k : range(grid.first[c], grid.first[c + 1])) {
        Int triangle = grid.list[k];
        Vec3i corner = grid.triangles[triangle];
        Vec3 a = grid.positions[corner.x];
        Vec3 ab = grid.positions[corner.y] - a, ac = grid.positions[corner.z] - a, ao = origin - a;
        Vec3 p = cross(direction, ac), q = cross(ao, ab);
        Float det = dot(ab, p);
        Float inverse = 1 / select(abs(det) < 1e-20f, 1e-20f, det);
        Float u = dot(ao, p) * inverse, v = dot(direction, q) * inverse, s = dot(ac, q) * inverse;
        // The margin closes the seam between two triangles, where rounding may put the ray outside of both.
        If ((min(min(u, v), 1 - u - v) > -1e-5f) & (s > 0) & (s < hit.t)) {
          hit.t = s;
          hit.triangle = triangle;
          hit.u = u;
          hit.v = v;
        }
      }
      if (find == Find::any) {
        If (hit.triangle >= 0) {
          Break();
        }
      }
      t = min(min(next.x, next.y), next.z);
      Bool outside = false;
      for (int k = 0; k < 3; ++k) {
        Bool cross = next[k] <= t;
        at[k] += select(cross, step[k], 0);
        next[k] += select(cross, delta[k], 0);
        outside = outside | (at[k] < 0) | (at[k] >= grid.cells[k]);
      }
      If (outside) {
        Break();
      }
    }
  }
  return hit;
}
