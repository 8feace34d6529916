// The names of the host's vectors, matrices, quaternions and transforms: vec3, mat44d, quat, ...
#pragma once
#include "mat.h"
#include "quaternion.h"

namespace weft {

// The last letters of a name are its scalar: none and f float, h half, d double; integers b (8 bits), s (16), i (32), l
// (64), preceded by u if unsigned (u alone: 32 bits).
using vec2 = vec<2, float>;
using vec3 = vec<3, float>;
using vec4 = vec<4, float>;

using vec2f = vec<2, float>;
using vec3f = vec<3, float>;
using vec4f = vec<4, float>;

using vec2h = vec<2, half>;
using vec3h = vec<3, half>;
using vec4h = vec<4, half>;

using vec2d = vec<2, double>;
using vec3d = vec<3, double>;
using vec4d = vec<4, double>;

using vec2b = vec<2, std::int8_t>;
using vec3b = vec<3, std::int8_t>;
using vec4b = vec<4, std::int8_t>;

using vec2ub = vec<2, std::uint8_t>;
using vec3ub = vec<3, std::uint8_t>;
using vec4ub = vec<4, std::uint8_t>;

using vec2s = vec<2, std::int16_t>;
using vec3s = vec<3, std::int16_t>;
using vec4s = vec<4, std::int16_t>;

using vec2us = vec<2, std::uint16_t>;
using vec3us = vec<3, std::uint16_t>;
using vec4us = vec<4, std::uint16_t>;

using vec2i = vec<2, std::int32_t>;
using vec3i = vec<3, std::int32_t>;
using vec4i = vec<4, std::int32_t>;

using vec2u = vec<2, std::uint32_t>;
using vec3u = vec<3, std::uint32_t>;
using vec4u = vec<4, std::uint32_t>;

using vec2l = vec<2, std::int64_t>;
using vec3l = vec<3, std::int64_t>;
using vec4l = vec<4, std::int64_t>;

using vec2ul = vec<2, std::uint64_t>;
using vec3ul = vec<3, std::uint64_t>;
using vec4ul = vec<4, std::uint64_t>;

using mat22 = mat<2, 2, float>;
using mat33 = mat<3, 3, float>;
using mat44 = mat<4, 4, float>;

using mat22f = mat<2, 2, float>;
using mat33f = mat<3, 3, float>;
using mat44f = mat<4, 4, float>;

using mat22h = mat<2, 2, half>;
using mat33h = mat<3, 3, half>;
using mat44h = mat<4, 4, half>;

using mat22d = mat<2, 2, double>;
using mat33d = mat<3, 3, double>;
using mat44d = mat<4, 4, double>;

using quat = quaternion<float>;
using quatf = quaternion<float>;
using quath = quaternion<half>;
using quatd = quaternion<double>;

using transform = transformation<float>;
using transformf = transformation<float>;
using transformh = transformation<half>;
using transformd = transformation<double>;

using spatial_vector = vec<6, float>;
using spatial_vectorf = vec<6, float>;
using spatial_vectorh = vec<6, half>;
using spatial_vectord = vec<6, double>;

using spatial_matrix = mat<6, 6, float>;
using spatial_matrixf = mat<6, 6, float>;
using spatial_matrixh = mat<6, 6, half>;
using spatial_matrixd = mat<6, 6, double>;

static_assert(sizeof(vec3) == 12 && alignof(vec4) == 4 && sizeof(mat33) == 36 && sizeof(quath) == 8);
static_assert(sizeof(transform) == 28 && sizeof(transformh) == 14 && sizeof(spatial_matrixd) == 288);
static_assert(std::is_trivially_copyable_v<vec3> && std::is_trivially_copyable_v<mat44> &&
              std::is_trivially_copyable_v<transformd>);

}  // namespace weft
