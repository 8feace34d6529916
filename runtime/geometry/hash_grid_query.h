// Queries on hash grids, in kernels: the points near a place.
#pragma once
#include "../../frontend/language/struct_var.h"
#include "structures/handle.h"
#include "structures/query_loop.h"

namespace weft {

/// The results of a query, point by point, cell by cell. A kernel goes through them in one of two ways:
///
///   for (auto i : hash_grid_query(grid, p, radius)) {
///     If (length(points[i] - p) <= radius) { sum += weight[i]; }
///   }
///
///   auto query = hash_grid_query(grid, p, radius);
///   Int i = -1;
///   While (query.next(i)) {...}
///
/// Both are loops of the kernel: Break(), Continue() and Return() work there as in others. Any number of queries may be
/// open at once. A query can be gone through once.
/// Gradient: none of the results; values that the loop computes with them have one, as in any loop.
class HashGridQuery : public detail::QueryLoop<Int> {
 public:
  using QueryLoop::QueryLoop;

  /// The place of the last found point in the order of cells, see HashGridArrays. Places follow each other, so that
  /// memory is read in order.
  Int place(Loc loc = Loc::here()) const;
};

/// The grid of a query: an argument of the kernel, or a handle (HashGrid::id(), see structures/handle.h).
class HashGridInKernel {
 public:
  HashGridInKernel(const Var<HashGridArrays>& data) : data(data) {}
  HashGridInKernel(const UInt64& id, Loc loc = Loc::here()) : data(hash_grid_at(id, loc)) {}
  Var<HashGridArrays> data;
};

/// Finds the numbers of all points in the cells that the box from p - radius to p + radius touches, each once, even if
/// the box is wider than the grid. Some of these points are further away, in corners and in cells that also stand for
/// other places: the kernel checks the distance itself. No point is left out whose distance, as floats have it, is at
/// most the radius: the box is a little wider than its bounds, by 5e-7 of |p| + radius.
///
/// A radius of 0 asks for the cell of the point. A negative or NaN radius, or a point that is not finite, finds
/// nothing, and debug mode reports it. An infinite radius finds all points.
HashGridQuery hash_grid_query(const HashGridInKernel& grid, In<vec3> point, In<float> radius, Loc loc = Loc::here());
/// Finds only the points of one group, among those of the query above. A grid that was built without groups has none;
/// debug mode reports that.
/// Cost: a search in each cell; the points of other groups are not read.
HashGridQuery hash_grid_query(const HashGridInKernel& grid, In<vec3> point, In<float> radius, In<int> group,
                              Loc loc = Loc::here());

/// The number of the i-th point in the order of cells: threads that follow this order have neighbours side by side. All
/// points are in it; those that no query finds come last.
/// \param i  0 up to HashGridArrays::count
Int hash_grid_point_id(const HashGridInKernel& grid, In<int> i, Loc loc = Loc::here());

}  // namespace weft
