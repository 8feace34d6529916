// Bodies of the overlap tests and of the solid angle, once for both faces and free of branches.
#include "overlap.h"

namespace weft::lib {

namespace {

using weft::detail::greatest;
using weft::detail::least;

/// Searches for a direction along which two triangles are apart.
template <class S>
class Separation {
 public:
  using B = FaceLike<S, bool>;
  using V = VecOf<3, S>;
  Separation(const V (&v)[3], const V (&u)[3]) : v_(v), u_(u) {}
  /// Any direction may be tried: being apart along one proves it. Equal vertices are projected to equal numbers.
  void try_along(const V& axis) {
    const S v[] = {along(axis, v_[0]), along(axis, v_[1]), along(axis, v_[2])};
    const S u[] = {along(axis, u_[0]), along(axis, u_[1]), along(axis, u_[2])};
    found = found | (largest(v) < smallest(u)) | (largest(u) < smallest(v));
  }
  B found = false;

 private:
  static S along(const V& axis, const V& p) { return axis.x * p.x + axis.y * p.y + axis.z * p.z; }
  static S largest(const S (&x)[3]) { return greatest(greatest(x[0], x[1]), x[2]); }
  static S smallest(const S (&x)[3]) { return least(least(x[0], x[1]), x[2]); }
  const V (&v_)[3], (&u_)[3];
};

/// The longer of two vectors.
template <class S>
VecOf<3, S> longer(const VecOf<3, S>& a, const VecOf<3, S>& b) {
  using B = FaceLike<S, bool>;
  return select(B(length_sq(a) < length_sq(b)), b, a);
}

}  // namespace

template <class S>
FaceLike<S, bool> box_box(const VecOf<3, S>& lower1, const VecOf<3, S>& upper1, const VecOf<3, S>& lower2,
                          const VecOf<3, S>& upper2) {
  FaceLike<S, bool> all = true;
  for (int i = 0; i < 3; ++i) all = all & (greatest(S(lower1[i]), S(lower2[i])) <= least(S(upper1[i]), S(upper2[i])));
  return all;
}

template <class S>
FaceLike<S, bool> tri_tri(const VecOf<3, S>& v0, const VecOf<3, S>& v1, const VecOf<3, S>& v2, const VecOf<3, S>& u0,
                          const VecOf<3, S>& u1, const VecOf<3, S>& u2) {
  using V = VecOf<3, S>;
  const V zero(S(HostOf<S>(0)));
  // Coordinates are relative to v0, because projections are most exact near the origin.
  const V v[] = {zero, V(v1 - v0), V(v2 - v0)}, u[] = {V(u0 - v0), V(u1 - v0), V(u2 - v0)};
  const V ev[] = {v[1], V(v2 - v1), V(v0 - v2)}, eu[] = {V(u1 - u0), V(u2 - u1), V(u0 - u2)};
  const V nv = cross(ev[0], ev[1]), nu = cross(eu[0], eu[1]);

  Separation<S> separation(v, u);
  separation.try_along(nv);
  separation.try_along(nu);
  // The product of an edge of each is also a normal of the plane in which two triangles without area lie.
  V across = zero;
  for (const V& a : ev)
    for (const V& b : eu) {
      const V axis = cross(a, b);
      separation.try_along(axis);
      across = longer<S>(across, axis);
    }
  // Edges separate triangles of one plane. Testing triangles of different planes, too, does no harm.
  const V normal = longer<S>(nv, nu);
  const V plane = select(FaceLike<S, bool>(length_sq(normal) > HostOf<S>(0)), normal, across);
  for (const V& e : ev) separation.try_along(cross(plane, e));
  for (const V& e : eu) separation.try_along(cross(plane, e));
  // Triangles that are parallel lines or points are separated along the line and straight from one to the other.
  const V line = longer<S>(longer<S>(longer<S>(ev[0], ev[1]), ev[2]), longer<S>(longer<S>(eu[0], eu[1]), eu[2]));
  separation.try_along(line);
  separation.try_along(cross(line, cross(line, u[0])));
  separation.try_along(u[0]);
  return !separation.found;
}

template <class S>
S solid_angle(const VecOf<3, S>& query, const VecOf<3, S>& a, const VecOf<3, S>& b, const VecOf<3, S>& c) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  using V = VecOf<3, S>;
  const V p = a - query, q = b - query, r = c - query;
  const S lp = length(p), lq = length(q), lr = length(r);
  // Differences are taken, because from far away the three vectors are nearly one.
  const S volume = dot(p, cross(b - a, c - a));
  const S base = lp * lq * lr + dot(p, q) * lr + dot(q, r) * lp + dot(r, p) * lq;
  const B some = (volume != T(0)) | (base != T(0));
  return S(select(some, S(atan2(volume, select(some, base, S(T(1))))), S(T(0))) * T(2));
}

#define WEFT_INSTANCES(S)                                                                            \
  template FaceLike<S, bool> box_box<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&,  \
                                        const VecOf<3, S>&);                                         \
  template FaceLike<S, bool> tri_tri<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&,  \
                                        const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&); \
  template S solid_angle<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&);
WEFT_INSTANCES(float)
WEFT_INSTANCES(double)
WEFT_INSTANCES(Var<float>)
WEFT_INSTANCES(Var<double>)
#undef WEFT_INSTANCES

}  // namespace weft::lib
