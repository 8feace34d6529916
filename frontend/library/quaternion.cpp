// Bodies of the quaternion functions, once for all scalar faces.
#include "quaternion.h"

#include <limits>

#include "float_format.h"

namespace weft::lib {

template <class S>
QuatOf<S> quat_from_axis_angle(const VecOf<3, S>& axis, const S& angle) {
  const S half_angle = S(angle * S(0.5));
  return QuatOf<S>(VecOf<3, S>(normalize(axis) * S(sin(half_angle))), S(cos(half_angle)));
}

template <class S>
AxisAngle<S> quat_to_axis_angle(const QuatOf<S>& q) {
  // q and -q are one rotation: the one with w >= 0 has an angle below pi.
  const VecOf<3, S> v(q.x, q.y, q.z);
  const S turn = select(q.w < S(0), S(-1), S(1));
  return {VecOf<3, S>(normalize(v) * turn), S(S(2) * atan2(length(v), S(q.w * turn)))};
}

template <class S>
QuatOf<S> quat_from_matrix(const MatOf<3, 3, S>& m) {
  const S x = m(0, 0), y = m(1, 1), z = m(2, 2), one = S(1);
  const S tx = S(one + x - y - z), ty = S(one - x + y - z), tz = S(one - x - y + z), tw = S(one + x + y + z);
  const S xy = S(m(0, 1) + m(1, 0)), yz = S(m(1, 2) + m(2, 1)), zx = S(m(2, 0) + m(0, 2));
  const S wx = S(m(2, 1) - m(1, 2)), wy = S(m(0, 2) - m(2, 0)), wz = S(m(1, 0) - m(0, 1));
  // The largest part is safe for the root and the division: 4 times its square is at least 1.
  const QuatOf<S> low = select(x > y, QuatOf<S>(tx, xy, zx, wx), QuatOf<S>(xy, ty, yz, wy));
  const QuatOf<S> high = select(x < S(-y), QuatOf<S>(zx, yz, tz, wz), QuatOf<S>(wx, wy, wz, tw));
  const S t_low = select(x > y, tx, ty), t_high = select(x < S(-y), tz, tw);
  const auto is_low = z < S(0);
  const QuatOf<S> q(select(is_low, low, high) * S(S(0.5) / sqrt(select(is_low, t_low, t_high))));
  // The part that was divided by its own root is positive and among the largest, but another may be larger, truly or by
  // rounding.
  S largest = q.x;
  for (int i = 1; i < 4; ++i) largest = select(abs(q[i]) > abs(largest), S(q[i]), largest);
  return QuatOf<S>(q * select(largest < S(0), S(-1), S(1)));
}

template <class S>
MatOf<3, 3, S> quat_to_matrix(const QuatOf<S>& q) {
  const S one = S(1), two = S(2);
  const S xx = S(two * q.x * q.x), yy = S(two * q.y * q.y), zz = S(two * q.z * q.z);
  const S xy = S(two * q.x * q.y), yz = S(two * q.y * q.z), zx = S(two * q.z * q.x);
  const S wx = S(two * q.w * q.x), wy = S(two * q.w * q.y), wz = S(two * q.w * q.z);
  return MatOf<3, 3, S>(S(one - yy - zz), S(xy - wz), S(zx + wy),  //
                        S(xy + wz), S(one - xx - zz), S(yz - wx),  //
                        S(zx - wy), S(yz + wx), S(one - xx - yy));
}

template <class S>
QuatOf<S> quat_rpy(const S& roll, const S& pitch, const S& yaw) {
  const S r = S(roll * S(0.5)), p = S(pitch * S(0.5)), y = S(yaw * S(0.5));
  const S cr = cos(r), sr = sin(r), cp = cos(p), sp = sin(p), cy = cos(y), sy = sin(y);
  return QuatOf<S>(S(sr * cp * cy - cr * sp * sy), S(cr * sp * cy + sr * cp * sy), S(cr * cp * sy - sr * sp * cy),
                   S(cr * cp * cy + sr * sp * sy));
}

template <class S>
QuatOf<S> quat_slerp(const QuatOf<S>& a, const QuatOf<S>& b, const S& t) {
  // The angle comes from the arc tangent, which keeps its digits if a and b are close. Equal rotations have no axis,
  // but the ratio by which the vector part shrinks is known, and with it the gradient.
  const QuatOf<S> between = quat_inverse(a) * b;
  const VecOf<3, S> v(between.x, between.y, between.z);
  const S turn = select(between.w < S(0), S(-1), S(1)), l = length(v);
  const S half_angle = S(atan2(l, S(between.w * turn)) * t);
  const auto apart = l > S(0);
  const S ratio = select(apart, S(sin(half_angle) / select(apart, l, S(1))), t);
  return QuatOf<S>(a * QuatOf<S>(VecOf<3, S>(v * S(ratio * turn)), S(cos(half_angle))));
}

template <class S>
QuatOf<S> quat_between(const VecOf<3, S>& a, const VecOf<3, S>& b) {
  if constexpr (std::is_same_v<HostOf<S>, half>) {
    using W = Wide<S>;
    return QuatOf<S>(quat_between<W>(VecOf<3, W>(a), VecOf<3, W>(b)));
  } else {
    constexpr HostOf<S> epsilon = std::numeric_limits<HostOf<S>>::epsilon();
    const VecOf<3, S> u = normalize(a), v = normalize(b);
    const S none = S(0);
    // Computes u x v and 1 + u v without cancellation, from the small remainder if the two nearly meet or nearly oppose
    // each other: u x v = u x (v - u) = u x (v + u), and 1 + u v = (u + v)^2 / 2. The error is that of u + v, times u +
    // v.
    const VecOf<3, S> sum = u + v;
    const S w = S(length_sq(sum) * S(0.5));
    const auto apart = w < S(1);  // by more than a right angle
    const VecOf<3, S> turn = cross(u, select(apart, sum, VecOf<3, S>(v - u)));
    // Opposite vectors get half a turn about an axis across u and the coordinate axis that u is farthest from.
    const VecOf<3, S> across =
        select(abs(u.x) < abs(u.z), VecOf<3, S>(none, S(-u.z), u.y), VecOf<3, S>(S(-u.y), u.x, none));
    const FaceLike<S, bool> opposite = apart & (length_sq(turn) < S(epsilon * epsilon));
    return normalize(select(opposite, QuatOf<S>(across, none), QuatOf<S>(turn, w)));
  }
}

#define WEFT_INSTANTIATE(S)                                                       \
  template QuatOf<S> quat_from_axis_angle<S>(const VecOf<3, S>&, const S&);       \
  template AxisAngle<S> quat_to_axis_angle<S>(const QuatOf<S>&);                  \
  template QuatOf<S> quat_from_matrix<S>(const MatOf<3, 3, S>&);                  \
  template MatOf<3, 3, S> quat_to_matrix<S>(const QuatOf<S>&);                    \
  template QuatOf<S> quat_rpy<S>(const S&, const S&, const S&);                   \
  template QuatOf<S> quat_slerp<S>(const QuatOf<S>&, const QuatOf<S>&, const S&); \
  template QuatOf<S> quat_between<S>(const VecOf<3, S>&, const VecOf<3, S>&);
WEFT_INSTANTIATE(half)
WEFT_INSTANTIATE(float)
WEFT_INSTANTIATE(double)
WEFT_INSTANTIATE(Var<half>)
WEFT_INSTANTIATE(Var<float>)
WEFT_INSTANTIATE(Var<double>)
#undef WEFT_INSTANTIATE

}  // namespace weft::lib
