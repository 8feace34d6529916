// Sorts queries: keys of points and rays along a space-filling curve.
#include "../spatial_order.h"

#include <algorithm>

#include "../../../frontend/support/invalid.h"
#include "../../algorithms/sort/sort_passes.h"
#include "../../array_create.h"
#include "../shapes/finite.h"
#include "curve.h"

namespace weft {

namespace detail {

namespace {

constexpr int kBlock = 256;
/// Points per thread in the search for the bounds: few threads then meet in the atomic operations at the end.
constexpr int kPerThread = 16;
/// Keys have 30 bits; what has no place comes after them all.
constexpr int kKeyBits = 31;
constexpr unsigned kNowhere = 1u << 30;

// Finds the bounds of all points that have a place.
void find_bounds(const AlgorithmCall& call, const Array<vec3>& points, const Array<unsigned>& bounds) {
  static const auto find = kernel("bounds of points",
                                  [](Arr<const vec3> points, Arr<unsigned> bounds, Int n, Int threads) {
                                    CurveBounds found;
                                    for (auto i : range(tid(), n, threads)) {
                                      Vec3 p = points[i];
                                      If (is_finite(p)) {
                                        found.add(p);
                                      }
                                    }
                                    found.join_into(bounds, 0);
                                  },
                                  {.block = kBlock});
  const std::int64_t n = points.size(), blocks = std::clamp<std::int64_t>(n / (kBlock * kPerThread), 1, 1024);
  set_all(call, bounds, 0u);
  call.run(find, blocks * kBlock, points, bounds, n, blocks * kBlock);
}

// Joins the octant of the direction, 2^6 cells of origins along each axis, then finer directions: only these tell rays
// apart that begin in the same place, as those of a lamp do. Rays of one octant visit the children of a node in the
// same order; among those, their origins matter more than their exact directions. Putting finer directions before the
// origins was slower for rays from anywhere to anywhere.
UInt key_of(const CurveGrid& grid, const Vec3& origin, const Vec3& direction) {
  const Vec3 size = abs(direction);
  const UInt towards = morton_code(CurveGrid(max(size.x, max(size.y, size.z)), 4), direction);
  return (towards >> 9u) << 27u | morton_code(grid, origin) << 9u | (towards & 511u);
}

void write_keys(const AlgorithmCall& call, const Array<vec3>& points, const Array<vec3>* directions,
                const Array<unsigned>& bounds, const Array<unsigned>& keys, const Array<int>& order) {
  static const auto of_points = kernel(
      "keys of points", [](Arr<const vec3> points, Arr<const unsigned> bounds, Arr<unsigned> keys, Arr<int> order) {
        const tracing::AsWritten as_written;
        Int i = tid();
        Vec3 p = points[i];
        keys[i] = select(is_finite(p), morton_code(CurveGrid(bounds, 0, 10), p), kNowhere);
        order[i] = i;
      });
  static const auto of_rays =
      kernel("keys of rays", [](Arr<const vec3> origins, Arr<const vec3> directions, Arr<const unsigned> bounds,
                                Arr<unsigned> keys, Arr<int> order) {
        const tracing::AsWritten as_written;
        Int i = tid();
        Vec3 o = origins[i], d = directions[i];
        const Bool somewhere = is_finite(o) & is_finite(d) & any(not_equal(d, Vec3()));
        keys[i] = select(somewhere, key_of(CurveGrid(bounds, 0, 6), o, d), kNowhere);
        order[i] = i;
      });
  if (directions)
    call.run(of_rays, points.size(), points, *directions, bounds, keys, order);
  else
    call.run(of_points, points.size(), points, bounds, keys, order);
}

std::uint64_t scratch(std::int64_t n) {
  return scratch_piece(n, sizeof(unsigned)) + scratch_piece(kCurveBounds, sizeof(unsigned)) + sort_scratch(n, 4, 4);
}

// \param directions  null for points
void order_into(const Array<vec3>& points, const Array<vec3>* directions, const Array<int>& order,
                const AlgorithmOptions& options) {
  AlgorithmCall call("spatial_order", options);
  const char* const what = directions ? "the array of origins" : "the array of points";
  call.takes(points, what);
  const std::int64_t n = points.size();
  if (directions) {
    call.takes(*directions, "the array of directions");
    call.has_length(*directions, "the array of directions", n);
  }
  call.takes(order, "the order");
  call.has_length(order, "the order", n);
  call.are_apart(points, what, order, "the order");
  if (directions) call.are_apart(*directions, "the array of directions", order, "the order");
  call.begin(scratch(n));
  if (n == 0) return;
  const Array<unsigned> keys = call.take<unsigned>(n), bounds = call.take<unsigned>(kCurveBounds);
  find_bounds(call, points, bounds);
  write_keys(call, points, directions, bounds, keys, order);
  const Array<unsigned> numbers = Row<unsigned>(order);
  sort_elements<std::uint32_t, std::uint32_t>(call, keys, numbers, true, KeyOrder::without_sign, 0, kKeyBits);
}

Array<int> new_order(const Array<vec3>& points) {
  if (points.is_null()) invalid("spatial_order: the array of points is a null array");
  return empty<int>(points.device(), points.size());
}

}  // namespace

}  // namespace detail

Array<int> spatial_order(const Array<vec3>& points, const AlgorithmOptions& options, Loc loc) {
  const Array<int> order = detail::called_from(loc, [&] { return detail::new_order(points); });
  spatial_order(points, order, options, loc);
  return order;
}
void spatial_order(const Array<vec3>& points, const Array<int>& order, const AlgorithmOptions& options, Loc loc) {
  detail::called_from(loc, [&] { detail::order_into(points, nullptr, order, options); });
}
Array<int> spatial_order(const Array<vec3>& origins, const Array<vec3>& directions, const AlgorithmOptions& options,
                         Loc loc) {
  const Array<int> order = detail::called_from(loc, [&] { return detail::new_order(origins); });
  spatial_order(origins, directions, order, options, loc);
  return order;
}
void spatial_order(const Array<vec3>& origins, const Array<vec3>& directions, const Array<int>& order,
                   const AlgorithmOptions& options, Loc loc) {
  detail::called_from(loc, [&] { detail::order_into(origins, &directions, order, options); });
}

std::uint64_t spatial_order_scratch_bytes(std::int64_t n) {
  return detail::scratch(detail::checked_count("spatial_order", n));
}

}  // namespace weft
