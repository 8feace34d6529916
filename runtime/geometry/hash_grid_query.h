// Queries on hash grids, in kernels: the points near a place.
#pragma once
#include <memory>

#include "../../frontend/kernels/names.h"
#include "../../frontend/language/control.h"
#include "../../frontend/language/struct_var.h"
#include "structures/handle.h"

namespace weft {

namespace detail {
class GridWalk;
}

/// What a query finds, point by point, cell by cell. Two ways to go through it:
///
///   for (auto i : hash_grid_query(grid, p, radius)) {
///     If (length(points[i] - p) <= radius) { sum += weight[i]; }
///   }
///
///   auto query = hash_grid_query(grid, p, radius);
///   Int i = -1;
///   While (query.next(i)) {...}
///
/// Both are loops of the kernel: Break(), Continue() and Return() do there what they do in others. Any number of
/// queries may be open at once. A query is gone through once. Gradient: none of what is found; what the loop computes
/// with it has one as in any loop.
class HashGridQuery {
 public:
  explicit HashGridQuery(std::unique_ptr<detail::GridWalk> walk);
  HashGridQuery(HashGridQuery&&) noexcept;
  ~HashGridQuery();

  /// Finds the next one: `found` is its number and the result true; at the end `found` stays as it is.
  Bool next(Int& found, Loc loc = Loc::here());
  /// Of the point that was found last: where it stands in the order of cells, see HashGridArrays. Numbers that follow
  /// each other, for memory that is read in order.
  Int place(Loc loc = Loc::here()) const;

  struct End {};
  struct Iterator {
    HashGridQuery* query;
    Int operator*() const { return query->open(); }
    void operator++() { query->close(); }
    bool operator!=(End) const { return query->fresh(); }
  };
  /// Errors: Error(invalid_kernel) for a second loop over the same query, and for one in a loop of the kernel around
  /// which the query was made.
  Iterator begin();
  End end() { return {}; }

 private:
  Int open();
  void close();
  bool fresh() const;

  std::unique_ptr<detail::GridWalk> walk_;
};

/// The grid that a query is about: an argument of the kernel, or a handle (HashGrid::id(), see handle.h).
class HashGridInKernel {
 public:
  HashGridInKernel(const Var<HashGridArrays>& data) : data(data) {}
  HashGridInKernel(const UInt64& id, Loc loc = Loc::here()) : data(hash_grid_at(id, loc)) {}
  Var<HashGridArrays> data;
};

/// The numbers of all points in the cells that the box from p - radius to p + radius touches, each once, though the box
/// be wider than the grid. There are points further away among them, in corners and in cells that stand for other
/// places too: the kernel looks at the distance itself. No point is left out whose distance, as floats have it, is at
/// most the radius: the box is a little wider than its bounds, by 5e-7 of |p| + radius.
///
/// A radius of 0 asks for the cell of the point. One that is negative or NaN finds nothing, and debug mode reports it;
/// so does a point that is not finite. An infinite radius finds all points.
HashGridQuery hash_grid_query(const HashGridInKernel& grid, In<vec3> point, In<float> radius, Loc loc = Loc::here());
/// Of these the points of one group. In a grid that was built without groups there are none; debug mode reports that.
/// Cost: a search in each cell; the points of other groups are not read.
HashGridQuery hash_grid_query(const HashGridInKernel& grid, In<vec3> point, In<float> radius, In<int> group,
                              Loc loc = Loc::here());

/// The number of the i-th point in the order of cells: threads that go by it have neighbours side by side. All points
/// are there, those that no query finds at the end.
/// \param i  0 up to HashGridArrays::count
Int hash_grid_point_id(const HashGridInKernel& grid, In<int> i, Loc loc = Loc::here());

}  // namespace weft
