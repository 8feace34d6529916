// The triangles by which a surface cuts a cube, for each set of corners inside. Internal to volumes.
#pragma once
#include <vector>

namespace weft::detail {

/// The most triangles of a cube.
inline constexpr int kMostCuts = 5;
/// The numbers of a row of the table.
inline constexpr int kCutRow = 1 + 3 * kMostCuts;

/// A row for each set of corners whose values are below the surface's, where corner 4 x + 2 y + z has that bit: the
/// number of triangles, and for each of their corners the edge on which it lies, as 8 * axis + the corner at which the
/// edge begins. Seen from the greater values, triangles turn counterclockwise.
///
/// Two cubes cut the face between them in the same lines, so that the surface has no holes: the lines of a face depend
/// on its own four corners, and where these could be joined in two ways, corners inside are always apart.
/// Source: Lorensen and Cline 1987, whose table has such holes; the rule is that of Nielson and Hamann 1991.
std::vector<int> cube_table();

}  // namespace weft::detail
