// The walk through the cells of a hash grid around a position.
#include "../hash_grid_query.h"

#include <optional>

#include "../../../frontend/language/checks.h"
#include "../../../frontend/language/detach.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/library/search.h"
#include "../../../frontend/library/vector.h"
#include "../bvh/traverse.h"
#include "../shapes/finite.h"
#include "hash_grid_cell.h"

namespace weft {

namespace detail {

/// A thread's position in the cells of a box.
///
/// The box covers `wide` cells along each axis, from `from` on, modulo the dimensions, and never more than those. Cells
/// that follow each other along x hold points that follow each other in memory, so that a row of the box is one run of
/// places, or two if it wraps. With a group, each cell is a run of its own, narrowed to the group's part.
///
/// Worked example, 4 cells along x and a box of cells 3, 4 and 5 of the plane, which are 3, 0 and 1: the first run is
/// that of cell 3, where 1 cell is left before the end of the row, the second that of cells 0 and 1.
class GridWalk : public QueryState<Int> {
 public:
  GridWalk(const Var<HashGridArrays>& grid, const Vec3& p, const Float& radius, const Int* group, Loc loc)
      : QueryState(loc), grid_(grid) {
    if (group) group_.push_back(*group);
    // Sums and distances of three coordinates have a smaller rounding error than this.
    const Bool asks = is_finite(p) & (radius >= 0.f);
    for (int k = 0; k < 3; ++k) {
      const Float dim = Float(grid.dims[k]), margin = (abs(p[k]) + radius) * 0x1p-21f;
      const Float first = cell_along((p[k] - radius) - margin, grid.per_width);
      const Float last = cell_along((p[k] + radius) + margin, grid.per_width);
      const Bool all = last - first >= dim - 1.f;
      from_[k] = select(all, 0, Int(wrapped(first, dim, grid.per_dim[k])));
      wide_[k] = select(all, grid.dims[k], Int(last - first) + 1);
      at_[k] = from_[k];
      left_[k] = wide_[k];
    }
    left_[2] = select(asks, left_[2], 0);
    if (group) left_[2] = select(grid.has_groups != 0, left_[2], 0);
  }

  Bool next(Int& found, Loc) override {
    While ((place_ >= end_) & (left_[2] > 0)) {
      next_run();
    }
    const Bool done = place_ < end_;
    If (done) {
      found = grid_.points[place_];
      place_ += 1;
    }
    return done;
  }
  Int place() const { return place_ - 1; }

  // A range-for is two loops, over the runs and over the places of a run. Threads with neighbouring places then stay
  // together, while next() makes all of them wait whenever one comes to the end of a run. A break from the body, which
  // must leave both loops, is told by in_body_: the inner loop's head, which clears it, was not reached again.
  Int open() override {
    loop_.emplace(Block::Kind::while_, loc);
    loop_->enter([&] { return condition(left_[2] > 0, loc); });
    next_run();
    in_body_ = false;
    run_.emplace(Block::Kind::while_, loc);
    run_->enter([&] {
      tracing::CallPlace place(loc, tracing::Rounding::as_written);
      in_body_ = false;
      return condition(place_ < end_, loc);
    });
    tracing::CallPlace place(loc, tracing::Rounding::as_written);
    in_body_ = true;
    const Int found = grid_.points[place_];
    place_ += 1;
    return found;
  }
  void close() override {
    run_->leave();
    {
      tracing::CallPlace place(loc, tracing::Rounding::as_written);
      If (in_body_) {
        Break();
      }
    }
    loop_->leave();
  }

 private:
  void next_run() {
    const Vec3i dims = grid_.dims;
    Int length = 1;
    if (group_.empty()) length = min(left_[0], dims.x - at_[0]);
    const Int cell = at_[0] + dims.x * (at_[1] + dims.y * at_[2]);
    place_ = grid_.begins[cell];
    end_ = grid_.begins[cell + length];
    if (!group_.empty()) keep_group();
    // Advances one run along x, at the end of a row one row along y, and at the end of a layer one layer along z.
    advance(0, length);
    for (int k = 1; k < 3; ++k) {
      const Bool through = left_[k - 1] == 0;
      advance(k, select(through, 1, 0));
      at_[k - 1] = select(through, from_[k - 1], at_[k - 1]);
      left_[k - 1] = select(through, wide_[k - 1], left_[k - 1]);
    }
  }
  void advance(int k, const Int& by) {
    const Int next = at_[k] + by;
    at_[k] = select(next == grid_.dims[k], 0, next);
    left_[k] -= by;
  }

  // Narrows the run to the group by two binary searches, since groups ascend within a cell.
  void keep_group() {
    place_ = lower_bound(grid_.groups, place_, end_, group_[0], loc);
    end_ = upper_bound(grid_.groups, place_, end_, group_[0], loc);
  }

  const Var<HashGridArrays> grid_;
  std::vector<Int> group_;    ///< empty without a group
  Int from_[3], wide_[3];     ///< the box
  Int at_[3], left_[3];       ///< the next run, and the cells, rows and layers left from it on
  std::optional<Block> run_;  ///< the inner loop of a range-for, while it is open
  Bool in_body_ = false;
  Int place_ = 0, end_ = 0;  ///< the rest of the current run
};

namespace {

HashGridQuery query(const HashGridInKernel& grid, const In<vec3>& point, const In<float>& radius, const Int* group,
                    Loc loc) {
  // The point is detached, because cells are counted: a small change of the point changes nothing that is found.
  const Vec3 p = detach(value(point));
  const Float r = detach(value(radius));
  check_limit("hash_grid_query", "radius", r, loc);
  if (group && tracing::Trace::current(loc).debug().checks)
    assert_(In<bool>(grid.data.has_groups != 0, loc), "hash_grid_query: the grid was built without groups");
  return HashGridQuery(std::make_unique<GridWalk>(grid.data, p, r, group, loc));
}

}  // namespace

}  // namespace detail

using detail::value;

Int HashGridQuery::place(Loc loc) const {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  return static_cast<const detail::GridWalk&>(*state_).place();
}

HashGridQuery hash_grid_query(const HashGridInKernel& grid, In<vec3> point, In<float> radius, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  return detail::query(grid, point, radius, nullptr, loc);
}

HashGridQuery hash_grid_query(const HashGridInKernel& grid, In<vec3> point, In<float> radius, In<int> group, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Int g = value(group);
  return detail::query(grid, point, radius, &g, loc);
}

Int hash_grid_point_id(const HashGridInKernel& grid, In<int> i, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  return grid.data.points[value(i)];
}

}  // namespace weft
