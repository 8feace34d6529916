// Bodies of the ray tests, once for both faces.
#include "ray.h"

#include "../../../frontend/language/own_gradient.h"
#include "pick.h"

namespace weft::lib {

namespace {

/// A point in the ray's coordinates, in which the ray goes from the origin along z.
template <class S>
struct Sheared {
  S x, y, z;
};
// Depends on the ray and the point alone, so that triangles that share a vertex see it in the same place.
template <class S>
Sheared<S> sheared(const RayData<S>& ray, const VecOf<3, S>& p) {
  const S px = p.x - ray.origin.x, py = p.y - ray.origin.y, pz = p.z - ray.origin.z;
  // The axes are rotated, not swapped, so that a triangle keeps its orientation.
  const S x = select(ray.along_x, py, select(ray.along_y, pz, px));
  const S y = select(ray.along_x, pz, select(ray.along_y, px, py));
  const S z = select(ray.along_x, px, select(ray.along_y, py, pz));
  return {S(x - ray.shear.x * z), S(y - ray.shear.y * z), z};
}

/// The rounding error of a product, exactly (Veltkamp's splitting, Dekker's product; fma in kernels may round twice).
template <class S>
S lost(const S& a, const S& b, const S& product) {
  using T = HostOf<S>;
  constexpr T splitter = T((std::uint64_t(1) << (std::numeric_limits<T>::digits + 1) / 2) + 1);
  const S as = a * splitter, bs = b * splitter;
  const S ah = as - (as - a), bh = bs - (bs - b);
  const S al = a - ah, bl = b - bh;
  return ((ah * bh - product) + ah * bl + al * bh) + al * bl;
}

/// The side on which the ray passes the edge from p to q: value = p.x q.y - p.y q.x.
template <class S>
struct Edge {
  using B = FaceLike<S, bool>;
  const Sheared<S>&p, &q;
  S left, right, value;
  B positive, negative;

  Edge(const Sheared<S>& from, const Sheared<S>& to)
      : p(from),
        q(to),
        left(from.x * to.y),
        right(from.y * to.x),
        value(left - right),
        // Rounding keeps the order of two products unless it makes them equal, while their difference may underflow.
        positive(left > right),
        negative(left < right) {}

  B unsure() const { return left == right; }
  void settle() {
    const B tie = unsure();
    const S l = lost<S>(p.x, q.y, left), r = lost<S>(p.y, q.x, right);
    value = select(tie, S(l - r), value);
    // A ray through the edge itself is decided as if it were moved by (e, e^2). The edge from q to p gives the opposite
    // answer, so that one of two triangles that share it is met, and all edges are asked about the same ray. An edge
    // seen as a point has no answer: its triangle is seen edge-on.
    const B rule_positive = (p.y > q.y) | ((p.y == q.y) & (q.x > p.x));
    const B rule_negative = (p.y < q.y) | ((p.y == q.y) & (q.x < p.x));
    const B through = l == r;
    positive = positive | (tie & ((l > r) | (through & rule_positive)));
    negative = negative | (tie & ((l < r) | (through & rule_negative)));
  }
};

}  // namespace

template <class S>
RayData<S> ray_data(const VecOf<3, S>& origin, const VecOf<3, S>& direction) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  RayData<S> ray;
  ray.origin = origin;
  ray.direction = direction;
  const S x = abs(direction.x), y = abs(direction.y), z = abs(direction.z);
  ray.along_x = B((x > y) & (x > z));
  ray.along_y = select(ray.along_x, B(false), B(y > z));
  const S along = select(ray.along_x, direction.x, select(ray.along_y, direction.y, direction.z));
  const S first = select(ray.along_x, direction.y, select(ray.along_y, direction.z, direction.x));
  const S second = select(ray.along_x, direction.z, select(ray.along_y, direction.x, direction.y));
  // All components must be finite: comparisons with a plane at NaN would leave its axis out.
  B finite = B(true);
  for (int i = 0; i < 3; ++i) finite = B(finite & isfinite(origin[i]) & isfinite(direction[i]));
  ray.valid = B((S(abs(along)) > T(0)) & finite);
  const S divisor = select(ray.valid, along, S(T(1)));
  ray.shear.x = first / divisor;
  ray.shear.y = second / divisor;
  ray.shear.z = T(1) / divisor;
  // The inverse stays finite, so that no plane gives 0 * infinity: a component this small changes nothing within the
  // range of lengths.
  constexpr T least_component = T(1) / T(1.2676506002282294e30);  // 2^-100
  for (int i = 0; i < 3; ++i) {
    const S d = direction[i];
    const B small = B(!(S(abs(d)) >= least_component));
    ray.inverse[i] = T(1) / select(small, S(select(d < T(0), S(-least_component), S(least_component))), d);
    ray.slack[i] = T(0);
  }
  return ray;
}

template <class S>
RayData<S> ray_data(const VecOf<3, S>& origin, const VecOf<3, S>& direction, const VecOf<3, S>& lower,
                    const VecOf<3, S>& upper) {
  using T = HostOf<S>;
  RayData<S> ray = ray_data<S>(origin, direction);
  S furthest = T(0);
  for (int i = 0; i < 3; ++i)
    furthest = larger(larger(S(abs(lower[i] - origin[i])), S(abs(upper[i] - origin[i]))), furthest);
  // The slack is in units of half an ulp, with quotients 2.5 ulp off: the shear moves a vertex by 10 across the ray,
  // the planes' t by 8 and the hit's by 18, which goes through two quotients.
  const S pad = detach(S(furthest * T(20 * std::numeric_limits<T>::epsilon())));
  for (int i = 0; i < 3; ++i) ray.slack[i] = pad * detach(S(abs(ray.inverse[i])));
  return ray;
}

template <class S>
RayBox<S> ray_box(const RayData<S>& ray, const VecOf<3, S>& lower, const VecOf<3, S>& upper, const S& max_t) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  S enter = T(0), leave = T(0);
  for (int i = 0; i < 3; ++i) {
    // The direction chooses the plane, not the smaller t, so that an empty box stays empty.
    const B backwards = ray.inverse[i] < T(0);
    const S in = select(backwards, upper[i], lower[i]), out = select(backwards, lower[i], upper[i]);
    const S from = (in - ray.origin[i]) * ray.inverse[i] - ray.slack[i];
    const S to = (out - ray.origin[i]) * ray.inverse[i] + ray.slack[i];
    enter = larger(from, enter);
    leave = i == 0 ? to : smaller(to, leave);
  }
  return {B(ray.valid & (enter <= leave) & (enter < max_t)), enter, leave};
}

template <class S>
FaceLike<S, bool> enters_before(const RayData<S>& ray, const VecOf<3, S>& lower, const VecOf<3, S>& upper,
                                const S& max_t) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  B before = true;
  for (int i = 0; i < 3; ++i) {
    // Compares plane - origin < max_t * direction, each side as a rounded number and its rounding error: rounding keeps
    // the order of the two sides unless it makes them equal.
    const S d = ray.direction[i];
    const B backwards = d < T(0);
    const S plane = select(backwards, S(-upper[i]), lower[i]);
    const S origin = select(backwards, S(-ray.origin[i]), ray.origin[i]);
    const S way = plane - origin, from = way - plane;
    const S way_lost = (plane - (way - from)) - (origin + from);  // Knuth's sum
    const S along = abs(d), reach = along * max_t, reach_lost = lost<S>(along, max_t, reach);
    before = before & (B(d == T(0)) | (way < reach) | (B(way == reach) & (way_lost < reach_lost)));
  }
  return before;
}

template <class S>
RayTriangle<S> ray_triangle(const RayData<S>& ray, const VecOf<3, S>& a, const VecOf<3, S>& b, const VecOf<3, S>& c,
                            const S& max_t) {
  using T = HostOf<S>;
  using B = FaceLike<S, bool>;
  const Sheared<S> p = sheared<S>(ray, a), q = sheared<S>(ray, b), r = sheared<S>(ray, c);
  Edge<S> u(r, q), v(p, r), w(q, p);
  if_(B(u.unsure() | v.unsure() | w.unsure()), [&] { u.settle(), v.settle(), w.settle(); });

  const S det = u.value + v.value + w.value;
  const S factor = T(1) / select(det == T(0), S(T(1)), det);
  // The weights are formed first, so that no product has more than two lengths.
  const S u_weight = u.value * factor, v_weight = v.value * factor, w_weight = w.value * factor;
  const S t = (u_weight * p.z + v_weight * q.z + w_weight * r.z) * ray.shear.z;
  const B inside = (u.positive & v.positive & w.positive) | (u.negative & v.negative & w.negative);
  const B hit = ray.valid & inside & (det != T(0)) & (t >= T(0)) & (t < max_t);
  const B front = (det > T(0)) != (ray.shear.z < T(0));
  const S none = T(0);
  RayTriangle<S> found{hit, select(hit, t, none), select(hit, u_weight, none), select(hit, v_weight, none),
                       select(hit, S(select(front, S(T(1)), S(T(-1)))), none)};

  if constexpr (any_traced<S>) {
    if (tracing_adjoint()) {
      // Solves origin + t direction = u a + v b + w c by Cramer's rule, with all but the moving point held fixed.
      using V = VecOf<3, S>;
      const V d = detach(ray.direction), ca = detach(a - c), cb = detach(b - c), normal = cross(ca, cb);
      const S slope = dot(d, normal);
      const S scale = S(T(-1)) / select(slope == T(0), S(T(1)), slope);
      const B regular = hit & (slope != T(0)) & isfinite(scale);
      const S t0 = detach(found.t), u0 = detach(found.u), v0 = detach(found.v);
      const V apart = ray.origin + ray.direction * t0 - (a * u0 + b * v0 + c * S(T(1) - u0 - v0));
      auto along = [&](const V& row) { return S(select(regular, S(dot(V(row * scale), apart)), none)); };
      found.t = with_gradient_of<S>(found.t, along(normal));
      found.u = with_gradient_of<S>(found.u, along(cross(d, cb)));
      found.v = with_gradient_of<S>(found.v, along(cross(ca, d)));
    }
  }
  return found;
}

#define WEFT_INSTANCES(S)                                                                                           \
  template RayData<S> ray_data<S>(const VecOf<3, S>&, const VecOf<3, S>&);                                          \
  template RayData<S> ray_data<S>(const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&, const VecOf<3, S>&);  \
  template RayBox<S> ray_box<S>(const RayData<S>&, const VecOf<3, S>&, const VecOf<3, S>&, const S&);               \
  template FaceLike<S, bool> enters_before<S>(const RayData<S>&, const VecOf<3, S>&, const VecOf<3, S>&, const S&); \
  template RayTriangle<S> ray_triangle<S>(const RayData<S>&, const VecOf<3, S>&, const VecOf<3, S>&,                \
                                          const VecOf<3, S>&, const S&);
WEFT_INSTANCES(float)
WEFT_INSTANCES(double)
WEFT_INSTANCES(Var<float>)
WEFT_INSTANCES(Var<double>)
#undef WEFT_INSTANCES

}  // namespace weft::lib
