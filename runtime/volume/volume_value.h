// The types of values that volumes have, as types of C++.
#pragma once
#include "volume_info.h"

namespace weft {

namespace detail {
/// The type of a value's number in a volume, the type between voxels, and that of the slope, row by component.
template <class T>
struct VolumeValueOf;
using mat43 = mat<4, 3, float>;
using mat43d = mat<4, 3, double>;
#define WEFT_VOLUME_VALUE(T, kind, S, slope) \
  template <>                                \
  struct VolumeValueOf<T> {                  \
    static constexpr VolumeType type = kind; \
    using Sampled = S;                       \
    using Slope = slope;                     \
  };
WEFT_VOLUME_VALUE(half, VolumeType::float16, float, vec3)
WEFT_VOLUME_VALUE(float, VolumeType::float32, float, vec3)
WEFT_VOLUME_VALUE(double, VolumeType::float64, double, vec3d)
WEFT_VOLUME_VALUE(int, VolumeType::int32, int, vec3)
WEFT_VOLUME_VALUE(unsigned, VolumeType::uint32, unsigned, vec3)
WEFT_VOLUME_VALUE(std::int64_t, VolumeType::int64, std::int64_t, vec3)
WEFT_VOLUME_VALUE(vec3, VolumeType::vec3f, vec3, mat33)
WEFT_VOLUME_VALUE(vec3d, VolumeType::vec3d, vec3d, mat33d)
WEFT_VOLUME_VALUE(vec4, VolumeType::vec4f, vec4, mat43)
WEFT_VOLUME_VALUE(vec4d, VolumeType::vec4d, vec4d, mat43d)
#undef WEFT_VOLUME_VALUE
}  // namespace detail

/// A type of values of volumes: half, float, double, int, unsigned, std::int64_t, vec3, vec3d, vec4, vec4d.
template <class T>
concept VolumeValue = requires {
  detail::VolumeValueOf<T>::type;
};
/// Real values, which have slopes: a vector for numbers, a matrix for vectors, row by component.
template <class T>
concept VolumeSloped = VolumeValue<T> && RealScalar<typename Flat<T>::scalar>;

}  // namespace weft
