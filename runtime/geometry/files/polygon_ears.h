// Cuts off the ears of a polygon: corners whose triangle lies inside.
#pragma once
#include <span>
#include <vector>

#include "polygon_plane.h"

namespace weft::polygons {

/// Cuts ears off a polygon until `enough` corners or no ears are left. A simple polygon always has an ear, and so has
/// one that touches itself without crossing itself, unless only corners without area are left.
/// \param flat       runs counter-clockwise
/// \param triangles  the ears are appended, three corners each
/// \return           the corners that are left, in their order
/// Cost: a visit to each corner, and after each cut to its neighbours, which searches a tree of the corners that are
/// not convex: 20 to 60 times as much for 32,000 corners as for 2,000. After 500 looks per corner, which only polygons
/// that cross themselves were seen to take, it leaves the rest.
std::vector<int> cut_ears(std::span<const PlanePoint> flat, std::size_t enough, std::vector<int>& triangles);

}  // namespace weft::polygons
