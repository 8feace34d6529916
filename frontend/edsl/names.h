// The names that kernels are written in: Float, Int, Vec3, Mat44, ...
#pragma once
#include "face.h"
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

using Vec2 = Vec<2, float>;
using Vec3 = Vec<3, float>;
using Vec4 = Vec<4, float>;
using Vec2d = Vec<2, double>;
using Vec3d = Vec<3, double>;
using Vec4d = Vec<4, double>;
using Vec2i = Vec<2, int>;
using Vec3i = Vec<3, int>;
using Vec4i = Vec<4, int>;
using Mat22 = Mat<2, 2, float>;
using Mat33 = Mat<3, 3, float>;
using Mat44 = Mat<4, 4, float>;
using Mat33d = Mat<3, 3, double>;
using Mat44d = Mat<4, 4, double>;

}  // namespace weft
