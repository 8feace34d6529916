// The types of values that volumes have, as types of C++.
#pragma once
#include "volume_info.h"

namespace weft {

/// The types of values: the type of C++, the VolumeType, which also names the array of VolumeArrays, the type between
/// voxels, and that of the slope, row by component.
// clang-format off
#define WEFT_VOLUME_TYPES(f)                     \
  f(half,         float16, float,        vec3)   \
  f(float,        float32, float,        vec3)   \
  f(double,       float64, double,       vec3d)  \
  f(int,          int32,   int,          vec3)   \
  f(unsigned,     uint32,  unsigned,     vec3)   \
  f(std::int64_t, int64,   std::int64_t, vec3)   \
  f(vec3,         vec3f,   vec3,         mat33)  \
  f(vec3d,        vec3d,   vec3d,        mat33d) \
  f(vec4,         vec4f,   vec4,         mat43)  \
  f(vec4d,        vec4d,   vec4d,        mat43d)
// clang-format on

namespace detail {
/// A row of the table, by the type of C++. values() chooses from VolumeArrays, or from its traced face, the array that
/// has the scalars of the values.
template <class T>
struct VolumeValueOf;
using mat43 = mat<4, 3, float>;
using mat43d = mat<4, 3, double>;
#define WEFT_VOLUME_VALUE(T, kind, S, slope)             \
  template <>                                            \
  struct VolumeValueOf<T> {                              \
    static constexpr VolumeType type = VolumeType::kind; \
    using Sampled = S;                                   \
    using Slope = slope;                                 \
    template <class A>                                   \
    static const auto& values(const A& arrays) {         \
      return arrays.kind##_values;                       \
    }                                                    \
  };
WEFT_VOLUME_TYPES(WEFT_VOLUME_VALUE)
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
