// Orders queries so that neighbours in space are asked one after the other.
#pragma once
#include "../algorithms/options.h"

namespace weft {

/// The numbers of the points along a space-filling curve (Morton 1966) through the box around all of them. Neighbouring
/// threads that ask about neighbouring points walk the same parts of a mesh or a hierarchy, read the same memory, and
/// take about as long.
///
///   Array<int> order = spatial_order(points);
///   kernel("ask", [](Arr<const int> order, Arr<const vec3> points, ...) { Int i = order[tid()]; ... points[i] ... });
///
/// \param points  (n), in a box each side of which is 1e-30 to 1e30 long: along other sides all points count as at one
///                place. A point with a NaN or infinite component comes last and does not count for the box.
/// \return        (n) a permutation of 0 .. n - 1, the same on every device; of points in one cell (2^10 along each
///                side of the box) the one with the lower number comes first
/// Gradient: none; points that carry gradients may be given while a tape records.
/// Errors: Error(invalid_argument) for a null array, arrays on two devices, scratch memory that is too small or shared
/// with an array; Error(unsupported) for a strided view and more than 2^31 - 2^16 points.
/// Cost: two reads of the points and a sort of pairs of 31 bits; no wait, and graphs may capture it. Scratch memory of
/// a little more than 12 bytes a point.
Array<int> spatial_order(const Array<vec3>& points, const AlgorithmOptions& options = {}, Loc loc = Loc::here());
/// Writes the order into an array of the caller.
/// \param order  (n)
/// Errors: also Error(invalid_argument) for another length, or an array that shares memory with the points.
void spatial_order(const Array<vec3>& points, const Array<int>& order, const AlgorithmOptions& options = {},
                   Loc loc = Loc::here());

/// Orders rays, by where they begin and where they point.
/// \param directions  (n) 1e-30 to 1e30 long: all others count as one direction; a ray with a NaN or infinite
///                    component, or of direction 0, comes last
Array<int> spatial_order(const Array<vec3>& origins, const Array<vec3>& directions,
                         const AlgorithmOptions& options = {}, Loc loc = Loc::here());
void spatial_order(const Array<vec3>& origins, const Array<vec3>& directions, const Array<int>& order,
                   const AlgorithmOptions& options = {}, Loc loc = Loc::here());

/// The bytes of scratch memory that ordering n points or rays needs.
std::uint64_t spatial_order_scratch_bytes(std::int64_t n);

}  // namespace weft
