// Cuts polygons into triangles.
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
  /// Cuts a polygon of n corners into n - 2 triangles of the same orientation. They cover exactly the polygon if it
  /// does not cross itself, in any plane and of any size: it may have corners on straight edges, touch itself, visit
  /// points again, and have holes that an edge leads to and comes back from. If it does not touch itself, no triangle
  /// is without area. If it crosses itself, as few triangles as possible lie backwards.
  /// \param points   finite
  /// \param corners  in range, three at least
  /// \param indices  the triangles are appended
  /// \return         false, and no triangle, for more than kMostCrossed corners that cross themselves
  /// Cost: about a microsecond for four corners; that of cut_ears() for more than a dozen.
  bool cut(std::span<const vec3> points, std::span<const int> corners, std::vector<int>& indices);

  /// Polygons without an ear are cut by trying all ways, up to so many corners.
  static constexpr std::size_t kMostCrossed = 128;

 private:
  /// How bad triangles are: first the number that lie backwards, then the number of flat ones, then their shapes.
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
