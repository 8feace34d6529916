// Hash grids: points sorted into the cells of a periodic grid on the device, so that kernels find neighbours.
#pragma once
#include <memory>

#include "hash_grid/hash_grid_arrays.h"

namespace weft {

struct HashGridOptions {
  /// Keeps the points of a cell in the order of their numbers, so that sums over neighbours are the same in each run.
  /// The build then uses a radix sort instead of counting. Grids with groups are always like this, and all grids on the
  /// device "cpu", where the sort is faster.
  bool deterministic = false;
  /// Also keeps the positions by place (HashGridArrays::positions): kernels that read them at HashGridQuery::place()
  /// read memory in order.
  bool keep_positions = false;
};

namespace detail {
struct HashGridState;
}

/// Points in the cells of a grid, for queries of nearby points (hash_grid_query.h). A handle: copies are the same grid.
///
/// Space is divided into cubes of one width, which share dim_x * dim_y * dim_z cells periodically: cube (i, j, k)
/// belongs to cell (i mod dim_x, j mod dim_y, k mod dim_z), for negative numbers too. The grid has therefore no bounds;
/// cubes that are a multiple of the dimensions apart share a cell, and a query finds the points of all of them. Cubes
/// more than 2^23 widths from the origin along an axis count as the cube at that distance. Build the grid with a width
/// of about the radius of the queries, and dimensions of about as many cells as there are points.
///
/// A point with a NaN or infinite coordinate is in no cell, so no query finds it. In debug mode (set_debug) the build
/// reports it as a failed assertion, by the next wait; ignored() returns the number of such points.
///
/// Kernels take the grid as `Var<HashGridArrays>`, or by id().
///
/// Errors: Error(invalid_argument) for dimensions that are not positive or beyond 2^22, more than 2^30 cells, and calls
/// of a null grid; Error(out_of_memory).
/// Cost: 4 bytes for each cell; for each point 12 bytes, 19 if the build sorts, 31 with groups, and 12 more with
/// positions.
/// Source: NVIDIA Warp's HashGrid; Green, "Particle Simulation using CUDA" (2010).
class HashGrid {
 public:
  /// A null grid.
  HashGrid() = default;
  HashGrid(const Device& device, int dim_x, int dim_y, int dim_z, const HashGridOptions& options = {},
           Loc loc = Loc::here());

  /// Sorts the points into cells of this width, and forgets what the grid held. The points are read now, in order with
  /// launches: build again after moving them.
  /// \param points  (n) any number, another in each build
  /// \param cell_width  the side of a cell, in the units of the points
  /// \param groups  (n) a number for each point, so that queries may ask for the points of one group alone; or none
  ///
  /// Gradient: none of what queries find. A tape may record while grids are built. Builds between its launches do not
  /// disturb its way back, which uses the cells that the launches used. Positions that are kept (HashGridOptions) are a
  /// copy of the points, through which gradients pass if a tape records the build.
  /// Errors: Error(invalid_argument) for a width that is no positive number, or whose inverse is none; groups that are
  /// not as many as points; null arrays (except for no groups) and arrays on another device; in a capture, another
  /// number of points, width or memory than the grid has. Error(unsupported) for more than 2^31 - 2^16 points.
  /// Cost: launches on Device::stream(), no wait; no allocation unless there are more points than in all earlier
  /// builds, see reserve().
  void build(const Array<vec3>& points, float cell_width, const Array<int>& groups = {}, Loc loc = Loc::here());
  /// Allocates the memory for builds of that many points.
  void reserve(std::int64_t points, Loc loc = Loc::here());

  bool is_null() const { return !state_; }
  Device device() const;
  vec3i dims() const;
  const HashGridOptions& options() const;
  /// The number of points in the last build that was called, captured or not; 0 before the first.
  std::int64_t size() const;
  /// The number of points of the last build that are in no cell. Waits.
  std::int64_t ignored(Loc loc = Loc::here()) const;

  /// A value by which kernels find the grid (hash_grid_at()), in arrays and structs too. It stays the same as long as
  /// the grid lives; before the first build it leads to nothing.
  std::uint64_t id(Loc loc = Loc::here()) const;
  /// The value that kernels take, also as a member of a struct of yours: the grid as it is now, with all of its arrays.
  /// Launches refuse this value once the device holds other data, so take it anew after each build that has another
  /// number of points, another width, groups or none, or other memory.
  /// Errors: Error(invalid_argument) before the first build.
  const HashGridArrays& kernel_argument() const;

 private:
  detail::HashGridState& state() const;
  std::shared_ptr<detail::HashGridState> state_;
};

}  // namespace weft
