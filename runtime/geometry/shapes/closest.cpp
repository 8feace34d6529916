// Bodies of the closest points, once for both faces and free of branches.
#include "closest.h"

#include "../../../frontend/language/own_gradient.h"
#include "pick.h"

namespace weft::lib {

namespace {

/// a / b, or 0 if b is 0 or the quotient is NaN.
template <class S>
S ratio(const S& a, const S& b) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  const B some = b > T(0);
  return select(some, S(a / select(some, b, S(T(1)))), S(T(0)));
}
/// 1 / b for use in a gradient: 0 if there is none.
template <class S>
S inverse_or_zero(const S& b) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  const S r = ratio<S>(S(T(1)), b);
  return select(B(isfinite(r)), r, S(T(0)));
}
template <class S>
S to_unit_interval(const S& x) {
  using T = HostOf<S>;
  return smaller(larger(x, S(T(0))), S(T(1)));
}

/// The best of several candidates so far.
template <class S>
struct Best {
  using B = FaceLike<S, bool>;
  S x, y, distance_sq;
  void offer(const S& cx, const S& cy, const S& d, const B& allowed) {
    const B better = allowed & (d < distance_sq);
    x = select(better, cx, x), y = select(better, cy, y), distance_sq = select(better, d, distance_sq);
  }
};

}  // namespace

template <class S>
VecOf<3, S> point_of_triangle(const VecOf<3, S>& a, const VecOf<3, S>& b, const VecOf<3, S>& c,
                              const VecOf<3, S>& weights) {
  using B = FaceLike<S, bool>;
  using V = VecOf<3, S>;
  const S x = weights.x, y = weights.y, z = weights.z;
  const V ab = select(B(y > x), b, a);
  const V base = select(B(z > larger(x, y)), c, ab);
  return base + ((a - base) * x + (b - base) * y + (c - base) * z);
}

// In one piece: products that all regions around a triangle share tell these apart.
template <class S>
TrianglePoint<S> closest_point_triangle(const VecOf<3, S>& query, const VecOf<3, S>& a, const VecOf<3, S>& b,
                                        const VecOf<3, S>& c) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  using V = VecOf<3, S>;
  const S zero = T(0), one = T(1);
  const V to_b = b - a, to_c = c - a;
  // Edges are scaled where products of four of them would overflow or underflow, by a power of two, which rounds
  // nothing. Distances are not scaled: the query may be far from a small triangle.
  constexpr bool is_float = std::is_same_v<T, float>;
  constexpr T long_edge = is_float ? T(0x1p16) : T(0x1p128), step = is_float ? T(0x1p33) : T(0x1p350);
  S longest = zero;
  for (int i = 0; i < 3; ++i) longest = larger(larger(S(abs(to_b[i])), S(abs(to_c[i]))), longest);
  const S short_scale = select(B(longest < T(1) / long_edge), S(step), one);
  const S scale = detach(S(select(B(longest > long_edge), S(T(1) / step), short_scale)));
  const V ab = to_b * scale, ac = to_c * scale, bc = (c - b) * scale, normal = cross(ab, ac);
  const S ab2 = length_sq(ab), ac2 = length_sq(ac), bc2 = length_sq(bc), n2 = length_sq(normal);
  const V pa = a - query, pb = b - query, pc = c - query;

  // Distances are compared within the triangle's plane: seen from far above, all of its points are equally far away in
  // the digits of the squares. A sliver's normal is too coarse for that, and moves the point by less than those digits.
  const B flat = n2 > ab2 * ac2 * std::numeric_limits<T>::epsilon();
  const V up = normal * select(flat, ratio<S>(dot(normal, pa), n2), zero);
  // b is reached by way of a, so that the query is rounded once for all candidates.
  const V fa = pa - up, fb = fa + to_b;

  // Weights of b and c: the best point of each edge, then the inner one.
  const S on_ab = to_unit_interval<S>(S(ratio<S>(S(-dot(fa, ab)), ab2) * scale));
  const S on_ac = to_unit_interval<S>(S(ratio<S>(S(-dot(fa, ac)), ac2) * scale));
  const S on_bc = to_unit_interval<S>(S(ratio<S>(S(-dot(fb, bc)), bc2) * scale));
  Best<S> best{on_ab, zero, length_sq(V(fa + to_b * on_ab))};
  best.offer(zero, on_ac, length_sq(V(fa + to_c * on_ac)), B(true));
  const S b_on_bc = one - on_bc;
  best.offer(b_on_bc, on_bc, length_sq(V(fb + (c - b) * on_bc)), B(true));
  // The weights of a narrow triangle are corrected once by their residual, because a sliver loses 4 digits.
  auto by_b = [&](const V& p) { return S(ratio<S>(dot(cross(ac, p), normal), n2) * scale); };
  auto by_c = [&](const V& p) { return S(ratio<S>(dot(cross(p, ab), normal), n2) * scale); };
  const S rough_b = by_b(fa), rough_c = by_c(fa);
  const V left = fa + to_b * rough_b + to_c * rough_c;
  const S inner_b = rough_b + by_b(left), inner_c = rough_c + by_c(left);
  const B inside = (inner_b > zero) & (inner_c > zero) & (S(inner_b + inner_c) < one);
  best.offer(inner_b, inner_c, length_sq(V(fa + to_b * inner_b + to_c * inner_c)), inside);

  // A point on an edge has a weight of exactly 0, which tells it from one on the face.
  const S wb = best.x, wc = best.y;
  const S wa = select(B((wb == b_on_bc) & (wc == on_bc)), zero, larger(S(one - wb - wc), zero));
  const V apart = pa * wa + pb * wb + pc * wc;
  TrianglePoint<S> found{point_of_triangle<S>(a, b, c, V(wa, wb, wc)), V(wa, wb, wc), length_sq(apart)};

  if constexpr (any_traced<S>) {
    if (tracing_adjoint()) {
      // The weights of b and c solve g . (query - point) = 0 for the edges g along which the point may move. With the
      // rows rb and rc dual to these edges, and the distance vector perpendicular to them:
      //   d(weight of b) = rb . d(query - point at fixed weights) + (distance vector) . (rb.rb d(ab) + rb.rc d(ac)).
      const B has_b = wb > zero, has_c = wc > zero, has_a = wa > zero;
      const B face = has_a & has_b & has_c;
      const S by_n2 = select(face, inverse_or_zero<S>(n2), zero);
      const S by_ab = select(B(has_a & has_b & !has_c), inverse_or_zero<S>(ab2), zero);
      const S by_ac = select(B(has_a & has_c & !has_b), inverse_or_zero<S>(ac2), zero);
      const S by_bc = select(B(has_b & has_c & !has_a), inverse_or_zero<S>(bc2), zero);
      const V row_b = detach(V((cross(ac, normal) * by_n2 + ab * by_ab - bc * by_bc) * scale));
      const V row_c = detach(V((cross(normal, ab) * by_n2 + ac * by_ac + bc * by_bc) * scale));
      const S fixed_a = detach(wa), fixed_b = detach(wb), fixed_c = detach(wc);
      const V middle = a * fixed_a + b * fixed_b + c * fixed_c;
      const V away = -(pa * fixed_a + pb * fixed_b + pc * fixed_c), arm = detach(away);
      const S by_arm_b = dot(arm, to_b), by_arm_c = dot(arm, to_c);
      const S like_b = dot(row_b, away) + dot(row_b, row_b) * by_arm_b + dot(row_b, row_c) * by_arm_c;
      const S like_c = dot(row_c, away) + dot(row_c, row_b) * by_arm_b + dot(row_c, row_c) * by_arm_c;
      const V like = middle + detach(to_b) * like_b + detach(to_c) * like_c;
      for (int i = 0; i < 3; ++i) found.point[i] = with_gradient_of<S>(found.point[i], like[i]);
      found.weights = V(with_gradient_of<S>(wa, S(-like_b - like_c)), with_gradient_of<S>(wb, like_b),
                        with_gradient_of<S>(wc, like_c));
      found.distance_sq = with_gradient_of<S>(found.distance_sq, S(dot(arm, away) * T(2)));
    }
  }
  return found;
}

template <class S>
EdgePair<S> closest_point_edge_edge(const VecOf<3, S>& p1, const VecOf<3, S>& q1, const VecOf<3, S>& p2,
                                    const VecOf<3, S>& q2, const S& epsilon) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  using V = VecOf<3, S>;
  const S zero = T(0), one = T(1);
  const V d1 = q1 - p1, d2 = q2 - p2, r = p1 - p2, normal = cross(d1, d2);
  const S length1 = length_sq(d1), length2 = length_sq(d2), n2 = length_sq(normal);
  const S a = select(B(length1 > epsilon), length1, zero), e = select(B(length2 > epsilon), length2, zero);

  // Distances are compared in the common plane of the edges, as in closest_point_triangle.
  const B crossing = n2 > length1 * length2 * std::numeric_limits<T>::epsilon();
  const V flat = r - normal * select(crossing, ratio<S>(dot(normal, r), n2), zero);
  auto distance_sq = [&](const S& s, const S& t) { return S(length_sq(V(flat + d1 * s - d2 * t))); };
  auto opposite1 = [&](const V& from) { return to_unit_interval<S>(ratio<S>(S(-dot(d1, from)), a)); };
  auto opposite2 = [&](const V& from) { return to_unit_interval<S>(ratio<S>(dot(d2, from), e)); };

  const S t0 = opposite2(flat), t1 = opposite2(V(flat + d1)), s0 = opposite1(flat), s1 = opposite1(V(flat - d2));
  const B some1 = a > zero, some2 = e > zero;
  Best<S> best{zero, t0, distance_sq(zero, t0)};
  best.offer(s0, zero, distance_sq(s0, zero), B(true));
  best.offer(one, t1, distance_sq(one, t1), some1);
  best.offer(s1, one, distance_sq(s1, one), some2);
  // The closest points of the lines count if they lie between the ends of both.
  const S s = ratio<S>(dot(cross(d2, flat), normal), n2), t = ratio<S>(dot(cross(d1, flat), normal), n2);
  const B inside = some1 & some2 & (s > zero) & (s < one) & (t > zero) & (t < one);
  best.offer(s, t, distance_sq(s, t), inside);

  EdgePair<S> found{best.x, best.y, length(V(r + d1 * best.x - d2 * best.y))};

  if constexpr (any_traced<S>) {
    if (tracing_adjoint()) {
      const S at1 = detach(found.s), at2 = detach(found.t);
      const V away = r + d1 * at1 - d2 * at2, arm = detach(away);
      const S scale = inverse_or_zero<S>(detach(found.distance));
      found.distance = with_gradient_of<S>(found.distance, dot(V(arm * scale), away));
      // If both parameters are free:  a ds - b dt = -(d1 . away + arm . d1)',  -b ds + e dt = (d2 . away + arm . d2)'.
      const B free1 = (at1 > zero) & (at1 < one), free2 = (at2 > zero) & (at2 < one), both = free1 & free2;
      const S by_n2 = select(both, inverse_or_zero<S>(n2), zero);
      const S i11 = detach(S(e * by_n2 + select(B(free1 & !free2), inverse_or_zero<S>(a), zero)));
      const S i22 = detach(S(a * by_n2 + select(B(free2 & !free1), inverse_or_zero<S>(e), zero)));
      const S i12 = detach(S(dot(d1, d2) * by_n2));
      const S by1 = dot(detach(d1), away) + dot(arm, d1), by2 = dot(detach(d2), away) + dot(arm, d2);
      found.s = with_gradient_of<S>(found.s, S(i12 * by2 - i11 * by1));
      found.t = with_gradient_of<S>(found.t, S(i22 * by2 - i12 * by1));
    }
  }
  return found;
}

template <class S>
S distance_sq_point_box(const VecOf<3, S>& query, const VecOf<3, S>& lower, const VecOf<3, S>& upper) {
  using T = HostOf<S>;
  S sum = T(0);
  for (int i = 0; i < 3; ++i) {
    // A NaN query stays NaN, and is near nothing.
    const S out = larger(S(T(0)), larger(S(lower[i] - query[i]), S(query[i] - upper[i])));
    sum = i == 0 ? S(out * out) : S(sum + out * out);
  }
  return sum;
}

template <class S>
S distance_sq_segment_box(const VecOf<3, S>& a, const VecOf<3, S>& b, const VecOf<3, S>& lower,
                          const VecOf<3, S>& upper) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  using V = VecOf<3, S>;
  const S zero = T(0), one = T(1);
  // Vectors start at the segment's first point: a point along the segment that is computed far from the origin is off
  // by more than the distance of the box may be.
  const V way = b - a, nearer = lower - a, further = upper - a;
  const V d = detach(way), lo = detach(nearer), hi = detach(further);
  // Half of the derivative of the squared distance at t.
  auto slope = [&](const S& t) {
    S sum = zero;
    for (int i = 0; i < 3; ++i) {
      const S x = d[i] * t;
      sum = sum + d[i] * (larger(S(x - hi[i]), zero) - larger(S(lo[i] - x), zero));
    }
    return sum;
  };
  S first = zero, last = one, before = slope(zero), after = slope(one);
  auto narrow = [&](const S& plane, int i) {
    const B moves = d[i] != zero;
    const S t = to_unit_interval<S>(select(moves, S(plane / select(moves, d[i], one)), zero));
    const S here = slope(t);
    const B left = (here <= zero) & (t > first), right = (here > zero) & (t < last);
    first = select(left, t, first), before = select(left, here, before);
    last = select(right, t, last), after = select(right, here, after);
  };
  for (int i = 0; i < 3; ++i) narrow(lo[i], i), narrow(hi[i], i);
  S t = first + (last - first) * to_unit_interval<S>(ratio<S>(S(-before), S(after - before)));
  t = detach(S(select(B(before >= zero), first, select(B(after <= zero), last, t))));
  return distance_sq_point_box<S>(V(way * t), nearer, further);
}

#define WEFT_INSTANCES(S)                                                                                         \
  template VecOf<3, S> point_of_triangle<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&,           \
                                            const VecOf<3, S>&);                                                  \
  template TrianglePoint<S> closest_point_triangle<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&, \
                                                      const VecOf<3, S>&);                                        \
  template EdgePair<S> closest_point_edge_edge<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&,     \
                                                  const VecOf<3, S>&, const S&);                                  \
  template S distance_sq_point_box<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&);                \
  template S distance_sq_segment_box<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&);
WEFT_INSTANCES(float)
WEFT_INSTANCES(double)
WEFT_INSTANCES(Var<float>)
WEFT_INSTANCES(Var<double>)
#undef WEFT_INSTANCES

}  // namespace weft::lib
