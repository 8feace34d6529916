// Ears of a polygon: corners that can be cut off.
#pragma once
#include <span>
#include <vector>

#include "polygon_plane.h"

namespace weft::polygons {

/// Cuts ears off a polygon until `enough` corners are left, or no ear: of a simple polygon there always is one, and of
/// one that touches itself while it does not cross itself unless only corners without area are left.
/// \param flat       runs counter-clockwise
/// \param triangles  the ears are appended, three corners each
/// \return           the corners that are left, in their order
/// Cost: a visit of each corner and of its neighbours after each cut, which asks a tree of the corners that are not
/// convex: 20 to 60 times as much for 32,000 corners as for 2,000. After 500 looks for each corner, which only polygons
/// that cross themselves were seen to take, it leaves the rest.
std::vector<int> cut_ears(std::span<const PlanePoint> flat, std::size_t enough, std::vector<int>& triangles);

}  // namespace weft::polygons
