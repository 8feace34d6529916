// The order in which queries that lie beside each other are asked one after the other.
#pragma once
#include "../algorithms/options.h"

namespace weft {

/// The numbers of the points along a space-filling curve (Morton 1966) through the box around all of them: threads side
/// by side that ask about points side by side walk the same parts of a mesh or a hierarchy, read the same memory, and
/// take about as long.
///
///   Array<int> order = spatial_order(points);
///   kernel("ask", [](Arr<const int> order, Arr<const vec3> points, ...) { Int i = order[tid()]; ... points[i] ... });
///
/// \param points  (n), in a box of which each side is from 1e-30 to 1e30 long: along one that is not, all are at one
///                place; a point with a NaN or infinite component comes last, and the box knows nothing of it
/// \return        (n) a permutation of 0 .. n - 1; of points in the same cell (2^10 along each side of the box) the one
///                with the lower number comes first. The same on every device.
/// Gradient: none; points that carry gradients may be given while a tape records.
/// Errors: Error(invalid_argument) for a null array, arrays on two devices, too little scratch memory or such that is
/// shared with an array; Error(unsupported) for a strided view and more than 2^31 - 2^16 points. Cost: the points are
/// read twice, then a sort of pairs of 31 bits; no wait, and in captures of graphs too. Scratch memory of 12 bytes a
/// point and some more.
Array<int> spatial_order(const Array<vec3>& points, const AlgorithmOptions& options = {}, Loc loc = Loc::here());
/// Into an array of the caller. \param order  (n) Errors: also Error(invalid_argument) for another length, or memory
/// that it shares with the points.
void spatial_order(const Array<vec3>& points, const Array<int>& order, const AlgorithmOptions& options = {},
                   Loc loc = Loc::here());

/// The same for rays: by where they begin and where they point.
/// \param directions  (n) from 1e-30 to 1e30 long: beyond, all count as one; a ray with a NaN or infinite component, or
///                    of direction 0, comes last
Array<int> spatial_order(const Array<vec3>& origins, const Array<vec3>& directions,
                         const AlgorithmOptions& options = {}, Loc loc = Loc::here());
void spatial_order(const Array<vec3>& origins, const Array<vec3>& directions, const Array<int>& order,
                   const AlgorithmOptions& options = {}, Loc loc = Loc::here());

/// Bytes of scratch memory to order n points or rays.
std::uint64_t spatial_order_scratch_bytes(std::int64_t n);

}  // namespace weft
