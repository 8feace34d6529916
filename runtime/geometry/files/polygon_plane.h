// Lays polygons into a plane, and tells on which side of a line a point lies: exactly, for coordinates of float.
#pragma once
#include <span>
#include <vector>

#include "../../../frontend/types/names.h"

namespace weft::polygons {

/// A point of the plane. Both coordinates are numbers of float, whose products are exact in double.
struct PlanePoint {
  double x = 0, y = 0;
  bool operator==(const PlanePoint&) const = default;
};

/// Twice the signed area of a triangle: positive if it runs counter-clockwise. Its sign is exact, and so is zero; its
/// value is rounded.
/// Source: the filter of Shewchuk, "Adaptive Precision Floating-Point Arithmetic", 1997.
double orientation(const PlanePoint& a, const PlanePoint& b, const PlanePoint& c);

inline double square_of_distance(const PlanePoint& p, const PlanePoint& q) {
  return (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y);
}

/// How far a triangle is from an equilateral one, whatever its size: the sum of the squares of its sides divided by
/// twice its area, which is given and positive.
inline double shape_of(const PlanePoint& a, const PlanePoint& b, const PlanePoint& c, double area) {
  return (square_of_distance(a, b) + square_of_distance(b, c) + square_of_distance(c, a)) / area;
}

/// Lays a polygon flat, counter-clockwise, by dropping the coordinate along which its area is seen largest. A polygon
/// that is simple in its own plane stays simple, and no coordinate is rounded. Points are finite, indices in range.
void lay_flat(std::span<const vec3> points, std::span<const int> corners, std::vector<PlanePoint>& flat);

}  // namespace weft::polygons
