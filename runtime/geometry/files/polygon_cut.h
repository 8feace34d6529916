// Polygons become triangles.
#pragma once
#include <compare>
#include <cstddef>
#include <span>
#include <vector>

#include "polygon_plane.h"

namespace weft::polygons {

/// Cuts polygons into triangles, one after another in the same memory.
class Cutter {
 public:
  /// Cuts a polygon into its number of corners - 2 triangles, which run as it does. Of any polygon that does not cross
  /// itself, in any plane and of any size, they cover the polygon and nothing else: it may have corners on straight
  /// edges, touch itself, have holes to which an edge leads and comes back from, and points that it visits again. Where
  /// it does not touch itself, no triangle is without area. One that crosses itself gives triangles of which as few as
  /// possible lie backwards.
  /// \param points   finite
  /// \param corners  in range, three at least
  /// \param indices  takes the triangles
  /// \return         false, and no triangle, for more than kMostCrossed corners that cross themselves
  /// Cost: about a microsecond for four corners; that of cut_ears() for more than a dozen.
  bool cut(std::span<const vec3> points, std::span<const int> corners, std::vector<int>& indices);

  /// So many corners without an ear are cut by trying all ways.
  static constexpr std::size_t kMostCrossed = 128;

 private:
  /// How bad triangles are: first how many lie backwards, then how many are flat, then their shapes.
  struct Cost {
    int backwards = 0, flat = 0;
    double shape = 0;
    Cost operator+(const Cost& o) const { return {backwards + o.backwards, flat + o.flat, shape + o.shape}; }
    auto operator<=>(const Cost&) const = default;
  };
  Cost cost_of(int a, int b, int c) const;
  void cut_best(std::span<const int> corners);
  void take(std::span<const int> corners, std::size_t first, std::size_t last);

  std::vector<PlanePoint> flat_;
  std::vector<int> left_, triangles_;
  struct Best {
    Cost cost;
    std::size_t by = 0;
  };
  std::vector<Best> best_;
};

}  // namespace weft::polygons
