// Follows the lines of a cube's faces from edge to edge. On a face, seen from outside the cube, each run of corners
// inside is cut off by a line from the edge where the run ends to the edge where it begins. Each edge that is cut is
// the end of a run on one of its two faces, and the beginning of one on the other, so that the lines form closed loops.
#include "cube_table.h"

#include <array>
#include <cstddef>
#include <utility>

#include "../../../frontend/support/error.h"

namespace weft::detail {

namespace {

using Face = std::array<int, 4>;

/// The corners of a face, counterclockwise as seen from outside.
Face face_of(int axis, bool upper) {
  const int bit = 4 >> axis, next = 4 >> (axis + 1) % 3, last = 4 >> (axis + 2) % 3, base = upper ? bit : 0;
  if (upper) return {base, base | next, base | next | last, base | last};
  return {base, base | last, base | next | last, base | next};
}

/// The edge between two neighbouring corners.
int edge_between(int a, int b) {
  const int bit = a ^ b, axis = bit == 4 ? 0 : bit == 2 ? 1 : 2;
  return 8 * axis + (a & b);
}

/// The edge that follows each on its loop; -1 for one that is not cut.
std::array<int, 24> lines_of(unsigned inside) {
  std::array<int, 24> next;
  next.fill(-1);
  for (int f = 0; f < 6; ++f) {
    const Face face = face_of(f / 2, f % 2 != 0);
    const auto is_inside = [&](int k) { return (inside >> face[std::size_t(k & 3)] & 1) != 0; };
    for (int k = 0; k < 4; ++k) {
      if (!is_inside(k) || is_inside(k + 1)) continue;
      int first = k;
      while (is_inside(first + 3)) first += 3;
      const auto edge = [&](int a) { return edge_between(face[std::size_t(a & 3)], face[std::size_t((a + 1) & 3)]); };
      next[std::size_t(edge(k))] = edge(first + 3);
    }
  }
  return next;
}

}  // namespace

std::vector<int> cube_table() {
  std::vector<int> table(std::size_t(256 * kCutRow), 0);
  for (unsigned inside = 0; inside < 256; ++inside) {
    int* const row = table.data() + inside * kCutRow;
    std::array<int, 24> next = lines_of(inside);
    for (int start = 0; start < 24; ++start) {
      std::vector<int> loop;
      for (int edge = start; next[std::size_t(edge)] >= 0;) {
        loop.push_back(edge);
        edge = std::exchange(next[std::size_t(edge)], -1);
      }
      for (std::size_t k = 2; k < loop.size(); ++k) {
        if (row[0] == kMostCuts) internal_error("a cube is cut into more triangles than its table has");
        int* const triangle = row + 1 + 3 * row[0]++;
        triangle[0] = loop[0], triangle[1] = loop[k], triangle[2] = loop[k - 1];
      }
    }
  }
  return table;
}

}  // namespace weft::detail
