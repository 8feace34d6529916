// Hash grids: points sorted into the cells of a periodic grid on the device, so that kernels find neighbours.
#pragma once
#include <memory>

#include "hash_grid/hash_grid_arrays.h"

namespace weft {

struct HashGridOptions {
  /// The points of a cell in the order of their numbers, so that sums over neighbours are the same in each run: a radix
  /// sort in place of counting. Grids with groups are always like this.
  bool deterministic = false;
  /// Keep the positions by place too (HashGridArrays::positions): kernels that read them there, at
  /// HashGridQuery::place(), read memory in order.
  bool keep_positions = false;
};

namespace detail {
struct HashGridState;
}

/// Points by the cells of a grid, for queries of what is near (hash_grid_query.h). A handle: copies are the same grid.
///
/// Space is divided into cubes of one width, which belong to dim_x * dim_y * dim_z cells in turn: cube (i, j, k) to
/// cell (i mod dim_x, j mod dim_y, k mod dim_z), for negative numbers too. So the grid has no bounds; cubes that are
/// further apart than the dimensions share cells, and a query finds what is in them as well. Cubes more than 2^23
/// widths from the origin along an axis count as that one. Build it with a width of about the radius of the queries,
/// and dimensions of about as many cells as there are points.
///
/// A point of which a coordinate is NaN or infinite is in no cell, so that no query finds it. In debug mode (set_debug)
/// the build reports it as a failed assertion, to whoever waits; ignored() says how many there are.
///
/// Kernels take it as `Var<HashGridArrays>`, or by id().
///
/// Errors: Error(invalid_argument) for dimensions that are not positive or beyond 2^22, more than 2^30 cells, and calls
/// of a null grid; Error(out_of_memory).
/// Cost: 4 bytes for each cell; for each point 12 bytes, deterministic 19, with groups 31, and 12 more with positions.
/// Source: NVIDIA Warp's HashGrid; Green, "Particle Simulation using CUDA" (2010).
class HashGrid {
 public:
  /// A null grid.
  HashGrid() = default;
  HashGrid(const Device& device, int dim_x, int dim_y, int dim_z, const HashGridOptions& options = {},
           Loc loc = Loc::here());

  /// Sorts the points into cells of this width; what the grid held is forgotten. The points are read now, in order with
  /// launches: who moves them afterwards builds again.
  /// \param points  (n) any number, another in each build
  /// \param cell_width  of the sides of a cell, in the units of the points
  /// \param groups  (n) a number for each point: queries may ask for the points of one group alone. Or none.
  ///
  /// Gradient: none of what is found. A tape may record while grids are built, and builds between its launches do not
  /// disturb its way back: it goes by the cells that the launches went by. Positions that are kept are a copy of the
  /// points that gradients pass, where a tape records the build.
  /// Errors: Error(invalid_argument) for a width that is no positive number or so small or large that its inverse is
  /// none, groups that are not as many as points, null arrays (but for no groups) and arrays on another device;
  /// Error(unsupported) for more than 2^31 - 2^16 points.
  /// Cost: launches on Device::stream(), and no wait; no allocation unless there are more points than in all builds
  /// before, see reserve().
  void build(const Array<vec3>& points, float cell_width, const Array<int>& groups = {}, Loc loc = Loc::here());
  /// Memory for builds of that many points.
  void reserve(std::int64_t points, Loc loc = Loc::here());

  bool is_null() const { return !state_; }
  Device device() const;
  vec3i dims() const;
  const HashGridOptions& options() const;
  /// Of points in the last build that was called, captured or not; 0 before the first.
  std::int64_t size() const;
  /// Points of the last build that are in no cell. Waits.
  std::int64_t ignored(Loc loc = Loc::here()) const;

  /// A value by which kernels find the grid (hash_grid_at()), in arrays and structs too: stays the same as long as the
  /// grid lives. Before the first build there is nothing to find by it.
  std::uint64_t id(Loc loc = Loc::here()) const;
  /// What kernels are given, also as a member of a struct of yours: as it is now, with all of its arrays. Launches
  /// refuse it once the device holds something else: taken anew behind each build that has another number of points,
  /// another width, groups or none, or other memory. Errors: Error(invalid_argument) before the first build.
  const HashGridArrays& kernel_argument() const;

 private:
  detail::HashGridState& state() const;
  std::shared_ptr<detail::HashGridState> state_;
};

}  // namespace weft
