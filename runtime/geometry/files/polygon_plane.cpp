// Computes exact signs of areas, and chooses the plane in which a polygon is cut.
#include "polygon_plane.h"

#include <algorithm>
#include <cmath>

namespace weft::polygons {

namespace {

constexpr double kEpsilon = 0x1p-53;

/// A sum of products of floats without rounding: parts that do not overlap, the largest last (Shewchuk's expansions).
class ExactSum {
 public:
  void add(double x) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < count_; ++k) {
      const double part = parts_[k], sum = x + part, of_part = sum - x;
      const double lost = (x - (sum - of_part)) + (part - of_part);
      if (lost != 0) parts_[kept++] = lost;
      x = sum;
    }
    if (x != 0) parts_[kept++] = x;
    count_ = kept;
  }
  /// The sum, rounded; its sign is exact.
  double value() const { return count_ ? parts_[count_ - 1] : 0; }

 private:
  // Products of floats have bits from 2^-298 to 2^255, sums of 2^32 of them up to 2^287, and each part has a bit of its
  // own.
  double parts_[640];
  std::size_t count_ = 0;
};

/// Calls f with the edges' contributions to twice the area seen along an axis, two products each.
template <class F>
void for_each_product(std::span<const vec3> points, std::span<const int> corners, int axis, F f) {
  const int u = (axis + 1) % 3, v = (axis + 2) % 3;
  const vec3* last = &points[std::size_t(corners.back())];
  for (const int corner : corners) {
    const vec3& p = points[std::size_t(corner)];
    f(double((*last)[u]) * double(p[v]));
    f(-double((*last)[v]) * double(p[u]));
    last = &p;
  }
}

/// Twice the areas seen along the three axes; the largest has the right sign.
vec3d areas_of(std::span<const vec3> points, std::span<const int> corners) {
  vec3d areas;
  double largest = 0, bound = 0;
  for (int axis = 0; axis < 3; ++axis) {
    double sizes = 0;
    for_each_product(points, corners, axis, [&](double x) { areas[axis] += x, sizes += std::abs(x); });
    largest = std::max(largest, std::abs(areas[axis]));
    bound = std::max(bound, 4 * kEpsilon * double(corners.size()) * sizes);
  }
  if (largest > bound) return areas;
  for (int axis = 0; axis < 3; ++axis) {
    ExactSum sum;
    for_each_product(points, corners, axis, [&](double x) { sum.add(x); });
    areas[axis] = sum.value();
  }
  return areas;
}

/// The axis along which all corners lie closest together.
int thinnest_axis(std::span<const vec3> points, std::span<const int> corners) {
  int thinnest = 0;
  double least = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const auto [low, high] = std::minmax_element(corners.begin(), corners.end(), [&](int a, int b) {
      return points[std::size_t(a)][axis] < points[std::size_t(b)][axis];
    });
    const double extent = double(points[std::size_t(*high)][axis]) - double(points[std::size_t(*low)][axis]);
    if (axis == 0 || extent < least) thinnest = axis, least = extent;
  }
  return thinnest;
}

}  // namespace

double orientation(const PlanePoint& a, const PlanePoint& b, const PlanePoint& c) {
  const double left = (a.x - c.x) * (b.y - c.y), right = (a.y - c.y) * (b.x - c.x);
  const double area = left - right;
  if (std::abs(area) > 4 * kEpsilon * (std::abs(left) + std::abs(right))) return area;
  ExactSum sum;
  for (const auto& [p, q] : {std::pair(&a, &b), std::pair(&b, &c), std::pair(&c, &a)}) {
    sum.add(p->x * q->y);
    sum.add(-p->y * q->x);
  }
  return sum.value();
}

void lay_flat(std::span<const vec3> points, std::span<const int> corners, std::vector<PlanePoint>& flat) {
  const vec3d areas = areas_of(points, corners);
  int axis = 0;
  for (int k = 1; k < 3; ++k)
    if (std::abs(areas[k]) > std::abs(areas[axis])) axis = k;
  // A polygon without area, whose loops cancel each other or which is a line, has no plane given by its area.
  if (areas[axis] == 0) axis = thinnest_axis(points, corners);
  int u = (axis + 1) % 3, v = (axis + 2) % 3;
  if (areas[axis] < 0) std::swap(u, v);
  flat.clear();
  for (const int corner : corners) {
    const vec3& p = points[std::size_t(corner)];
    flat.push_back({double(p[u]), double(p[v])});
  }
}

}  // namespace weft::polygons
