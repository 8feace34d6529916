// The device's own search for what a ray hits, as the library's queries use it.
#pragma once
#include "names.h"

namespace weft::detail {

/// What a ray hits of a structure (backend::RayStructure).
struct TracedRay {
  Int triangle = -1;  ///< -1: none; the rest is then undefined
  Float t;
  Float second, third;  ///< weights of the triangle's second and third point
};

/// The nearest hit with 0 <= t <= max_t, or any.
/// \param memory  of the structure: the launch is ordered with what changes it
/// \param number  RayStructure::number()
/// Origin and direction are finite, the direction is not 0, max_t is neither negative nor NaN.
/// Gradient: none. Errors: Error(unsupported) when the kernel is compiled for a device without ray queries.
TracedRay trace_ray(const Arr<std::uint8_t>& memory, const UInt64& number, const Vec3& origin, const Vec3& direction,
                    const Float& max_t, bool any, Loc loc = Loc::here());

}  // namespace weft::detail
