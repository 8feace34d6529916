// The device's own search for the triangle that a ray hits, as the library's queries use it.
#pragma once
#include "names.h"

namespace weft::detail {

/// The hit of a ray on a structure (backend::RayStructure).
struct TracedRay {
  Int triangle = -1;  ///< -1: no hit; the other fields are then undefined
  Float t;
  Float second, third;  ///< weights of the triangle's second and third point
};

/// Finds the nearest hit with 0 <= t <= max_t, or any. Origin and direction are finite, the direction is not 0, max_t
/// is neither negative nor NaN.
/// \param memory  of the structure: the launch is ordered with changes of it
/// \param number  RayStructure::number()
/// Gradient: none.
/// Errors: Error(unsupported) when the kernel is compiled for a device without ray queries.
TracedRay trace_ray(const Arr<std::uint8_t>& memory, const UInt64& number, const Vec3& origin, const Vec3& direction,
                    const Float& max_t, bool any, Loc loc = Loc::here());

}  // namespace weft::detail
