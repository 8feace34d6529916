// The names that kernels are written in: Float, Int, Vec3, Mat44, ...
#pragma once
#include "../language/face.h"
#include "../language/quaternion_var.h"
#include "func.h"

namespace weft {

using Bool = Var<bool>;
using Int8 = Var<std::int8_t>;
using Int16 = Var<std::int16_t>;
using Int = Var<std::int32_t>;
using Int64 = Var<std::int64_t>;
using UInt8 = Var<std::uint8_t>;
using UInt16 = Var<std::uint16_t>;
using UInt = Var<std::uint32_t>;
using UInt64 = Var<std::uint64_t>;
using Half = Var<half>;
using Float = Var<float>;
using Double = Var<double>;

template <int N, class T>
using Vec = Var<vec<N, T>>;
template <int R, int C, class T>
using Mat = Var<mat<R, C, T>>;
template <class T>
using Quaternion = Var<quaternion<T>>;
template <class T>
using Transformation = Var<transformation<T>>;

using Vec2 = Vec<2, float>;
using Vec3 = Vec<3, float>;
using Vec4 = Vec<4, float>;

using Vec2f = Vec<2, float>;
using Vec3f = Vec<3, float>;
using Vec4f = Vec<4, float>;

using Vec2h = Vec<2, half>;
using Vec3h = Vec<3, half>;
using Vec4h = Vec<4, half>;

using Vec2d = Vec<2, double>;
using Vec3d = Vec<3, double>;
using Vec4d = Vec<4, double>;

using Vec2b = Vec<2, std::int8_t>;
using Vec3b = Vec<3, std::int8_t>;
using Vec4b = Vec<4, std::int8_t>;

using Vec2ub = Vec<2, std::uint8_t>;
using Vec3ub = Vec<3, std::uint8_t>;
using Vec4ub = Vec<4, std::uint8_t>;

using Vec2s = Vec<2, std::int16_t>;
using Vec3s = Vec<3, std::int16_t>;
using Vec4s = Vec<4, std::int16_t>;

using Vec2us = Vec<2, std::uint16_t>;
using Vec3us = Vec<3, std::uint16_t>;
using Vec4us = Vec<4, std::uint16_t>;

using Vec2i = Vec<2, std::int32_t>;
using Vec3i = Vec<3, std::int32_t>;
using Vec4i = Vec<4, std::int32_t>;

using Vec2u = Vec<2, std::uint32_t>;
using Vec3u = Vec<3, std::uint32_t>;
using Vec4u = Vec<4, std::uint32_t>;

using Vec2l = Vec<2, std::int64_t>;
using Vec3l = Vec<3, std::int64_t>;
using Vec4l = Vec<4, std::int64_t>;

using Vec2ul = Vec<2, std::uint64_t>;
using Vec3ul = Vec<3, std::uint64_t>;
using Vec4ul = Vec<4, std::uint64_t>;

using Mat22 = Mat<2, 2, float>;
using Mat33 = Mat<3, 3, float>;
using Mat44 = Mat<4, 4, float>;

using Mat22f = Mat<2, 2, float>;
using Mat33f = Mat<3, 3, float>;
using Mat44f = Mat<4, 4, float>;

using Mat22h = Mat<2, 2, half>;
using Mat33h = Mat<3, 3, half>;
using Mat44h = Mat<4, 4, half>;

using Mat22d = Mat<2, 2, double>;
using Mat33d = Mat<3, 3, double>;
using Mat44d = Mat<4, 4, double>;

using Quat = Var<quaternion<float>>;
using Quatf = Var<quaternion<float>>;
using Quath = Var<quaternion<half>>;
using Quatd = Var<quaternion<double>>;

using Transform = Var<transformation<float>>;
using Transformf = Var<transformation<float>>;
using Transformh = Var<transformation<half>>;
using Transformd = Var<transformation<double>>;

using SpatialVector = Var<vec<6, float>>;
using SpatialVectorf = Var<vec<6, float>>;
using SpatialVectorh = Var<vec<6, half>>;
using SpatialVectord = Var<vec<6, double>>;

using SpatialMatrix = Var<mat<6, 6, float>>;
using SpatialMatrixf = Var<mat<6, 6, float>>;
using SpatialMatrixh = Var<mat<6, 6, half>>;
using SpatialMatrixd = Var<mat<6, 6, double>>;

}  // namespace weft
