// Queries for the closest and furthest points of meshes, and for the side on which a point lies.
#include "../../../frontend/kernels/func_derivatives.h"
#include "../../../frontend/language/own_gradient.h"
#include "../../../frontend/library/vector.h"
#include "../shapes/closest.h"
#include "../structures/query_loop.h"
#include "mesh_walks.h"

namespace weft {

namespace detail {

namespace {

struct PointFound {
  Int place = -1, face = -1;
  Vec3 weights;
  Float distance_sq;
};

/// The distance of a point from a triangle, to compare triangles by: as many digits as closest_point_triangle() for a
/// third of its cost, if it can be computed so.
struct Distance {
  Float squared;
  Float doubt;  ///< bound of the error of `squared`
  Bool rough;   ///< closest_point_triangle() has to decide
};

// Strategy (Ericson, Real-Time Collision Detection, 5.1.5, without its branches): the products of the two edges and the
// vector p to the point tell whether the point lies in the region of a corner, of an edge or of the inside, and that
// gives the weights of the closest point; its distance is then taken from the point itself. Thus an error in the
// weights moves the closest point within the triangle, by some ulps of |p| / sin^2 of the angle at a, and the result is
// too far by the square of that.
//
// Edge cases, all of them `rough`: an angle at a below 11.5 degrees, or as close to 180; a point that nearly touches
// the triangle, so that this square is no small part of the distance's; a triangle that is a line or a point; products
// above or below the range of floats.
//
// Worked example: a, b, c = (0,0,0), (2,0,0), (0,2,0) and p = (1,-1,3): along_b 2, along_c -2, of 4 and 4; weight_c is
// negative and 0 <= along_b <= 4, so the closest point lies on ab, at 2/4, and the square is 0 + 1 + 9.
Distance quick_distance(const Vec3& point, const Vec3& a, const Vec3& b, const Vec3& c) {
  const Vec3 ab = b - a, ac = c - a, p = point - a;
  const Float bb = dot(ab, ab), cc = dot(ac, ac), bc = dot(ab, ac);
  const Float along_b = dot(ab, p), along_c = dot(ac, p);
  const Float both = bb * cc, area = both - bc * bc;  // squared area of the parallelogram
  // Weights inside, times `area`.
  const Float weight_b = cc * along_b - bc * along_c, weight_c = bb * along_c - bc * along_b;
  // Distances past b and past c, along the edges that meet there.
  const Float b_from_a = along_b - bb, b_to_c = (along_c - bc) - b_from_a;
  const Float c_from_a = along_c - cc, c_to_b = (along_b - bc) - c_from_a;

  Float v = weight_b, w = weight_c, whole = area;
  const auto take = [&](const Bool& here, const Float& new_v, const Float& new_w, const Float& new_whole) {
    v = select(here, new_v, v), w = select(here, new_w, w), whole = select(here, new_whole, whole);
  };
  take((area - weight_b - weight_c <= 0) & (b_to_c >= 0) & (c_to_b >= 0), c_to_b, b_to_c, b_to_c + c_to_b);
  take((weight_b <= 0) & (along_c >= 0) & (c_from_a <= 0), 0, along_c, cc);
  take((weight_c <= 0) & (along_b >= 0) & (b_from_a <= 0), along_b, 0, bb);
  take((c_from_a >= 0) & (c_to_b <= 0), 0, 1, 1);
  take((b_from_a >= 0) & (b_to_c <= 0), 1, 0, 1);
  take((along_b <= 0) & (along_c <= 0), 0, 0, 1);
  const Float scale = 1 / whole;
  const Vec3 apart = p - ab * (v * scale) - ac * (w * scale);
  const Float squared = dot(apart, apart);
  const Float size = bb + cc;
  // Products of four edges lose digits below the smallest numbers; from 1e36 on 1 / whole may be 0.
  const Bool in_range = (both > 1e-30f) & (both < 1e36f);
  const Bool wide = in_range & (area > both * 0.04f), away = squared >= size * 2e-8f;
  return {squared, (squared + size) * 4e-7f, !(wide & away & (squared < std::numeric_limits<float>::infinity()))};
}

PointFound closest(const Var<MeshArrays>& mesh, const Vec3& point, const Float& max_dist) {
  PointFound best;
  const Float limit = select(max_dist > 0, max_dist * max_dist, 0.f);
  best.distance_sq = limit;
  const auto choose = [&](const Children& c) {
    const Float one = distance_sq_point_box(point, c.lower[0], c.upper[0]);
    const Float two = distance_sq_point_box(point, c.lower[1], c.upper[1]);
    return Choice{{one < best.distance_sq, two < best.distance_sq}, two < one};
  };
  walk_tree(mesh.tree, false, choose, [&](const Int& place) {
    const Corners t(mesh, place);
    Distance d = quick_distance(point, t.a, t.b, t.c);
    If (d.rough | (abs(d.squared - limit) <= d.doubt)) {
      d.squared = closest_point_triangle(point, t.a, t.b, t.c).distance_sq;
    }
    If (d.squared < best.distance_sq) {
      best.distance_sq = d.squared;
      best.place = place;
    }
  });
  If (best.place >= 0) {
    const Corners t(mesh, best.place);
    const TrianglePoint<Float> p = closest_point_triangle(point, t.a, t.b, t.c);
    best.distance_sq = p.distance_sq;
    // Squares are ordered as their roots, but roots may be equal although squares differ.
    If (sqrt(p.distance_sq) < max_dist) {
      best.weights = p.weights;
      best.face = t.face;
    }
  }
  return best;
}

PointFound furthest(const Var<MeshArrays>& mesh, const Vec3& point, const Float& min_dist) {
  PointFound best;
  // Every point is further than a negative distance, and none further than NaN.
  best.distance_sq =
      select(min_dist >= 0, min_dist * min_dist, select(min_dist < 0, -1.f, std::numeric_limits<float>::infinity()));
  const auto corner_distance_sq = [&](const Vec3& lower, const Vec3& upper) {
    const Vec3 d = max(abs(lower - point), abs(upper - point));
    return dot(d, d);
  };
  const auto choose = [&](const Children& c) {
    const Float one = corner_distance_sq(c.lower[0], c.upper[0]), two = corner_distance_sq(c.lower[1], c.upper[1]);
    return Choice{{one > best.distance_sq, two > best.distance_sq}, two > one};
  };
  walk_tree(mesh.tree, false, choose, [&](const Int& place) {
    const Corners t(mesh, place);
    const Vec3 corners[3] = {t.a, t.b, t.c};
    Float distances[3];
    Bool finite = true;
    for (int k = 0; k < 3; ++k) {
      const Vec3 d = corners[k] - point;
      distances[k] = dot(d, d);
      finite &= isfinite(distances[k]);
    }
    for (int k = 0; k < 3; ++k) {
      const Float& distance_sq = distances[k];
      // A triangle with one point at infinity is not found at all.
      If ((distance_sq > best.distance_sq) & finite) {
        best.distance_sq = distance_sq;
        best.weights = Vec3(k == 0 ? 1 : 0, k == 1 ? 1 : 0, k == 2 ? 1 : 0);
        best.place = place;
        best.face = t.face;
      }
    }
  });
  If ((best.face >= 0) & !(sqrt(best.distance_sq) > min_dist)) {
    best.face = -1;
    best.weights = Vec3();
  }
  return best;
}

/// The vector from the point with these weights to another one. It sums differences, because a point computed far from
/// the origin may be off by more than the distance between the two.
Vec3 way_from(const Vec3& a, const Vec3& b, const Vec3& c, const Vec3& weights, const Vec3& to) {
  return (to - a) * weights.x + (to - b) * weights.y + (to - c) * weights.z;
}

// Decides by the normal: that of the face, or, on an edge or a vertex, the sum over all faces that have it. Points are
// compared by position, bit by bit, so that faces count that do not share the points themselves.
Float sign_by_normal(const Var<MeshArrays>& mesh, const Vec3& point, const PointFound& found) {
  const Corners own(mesh, found.place);
  const Vec3 w = found.weights;
  // Edges are scaled to length 1, because products of four edges may leave the range of floats.
  Vec3 normal = cross(normalize(own.b - own.a), normalize(own.c - own.a));
  If ((w.x == 0) | (w.y == 0) | (w.z == 0)) {
    const Bool has_a = w.x != 0, has_b = w.y != 0, has_c = w.z != 0;
    const Vec3 one = select(has_a, own.a, select(has_b, own.b, own.c));
    const Vec3 two = select(has_c, own.c, select(has_b, own.b, own.a));
    const Bool vertex = (one == two);
    const auto choose = [&](const Children& c) {
      return Choice{{boxes_touch(c.lower[0], c.upper[0], one, one), boxes_touch(c.lower[1], c.upper[1], one, one)},
                    false};
    };
    normal = Vec3();
    walk_tree(mesh.tree, false, choose, [&](const Int& place) {
      const Corners t(mesh, place);
      const auto has = [&](const Vec3& p) { return (t.a == p) | (t.b == p) | (t.c == p); };
      If (has(one) & has(two)) {
        const Bool is_a = (t.a == one), is_b = (!is_a) & (t.b == one);
        const Vec3 next = normalize(select(is_a, t.b, select(is_b, t.c, t.a)) - one);
        const Vec3 last = normalize(select(is_a, t.c, select(is_b, t.a, t.b)) - one);
        const Vec3 across = cross(next, last);
        const Float area = length(across);
        const Float angle = select(vertex, atan2(area, dot(next, last)), 1.f);
        If (area > 0) {
          normal += across * (angle / area);
        }
      }
    });
  }
  return select(dot(way_from(own.a, own.b, own.c, w, point), normal) < 0, -1.f, 1.f);
}

Float sign_by_majority(const Var<MeshArrays>& mesh, const Vec3& point) {
  Int inside = 0;
  for (auto axis : range(3)) {
    const Vec3 along(select(axis == 0, 1.f, 0.f), select(axis == 1, 1.f, 0.f), select(axis == 2, 1.f, 0.f));
    inside += count_hits(mesh, point, along, std::numeric_limits<float>::infinity()) & 1;
  }
  return select(inside >= 2, -1.f, 1.f);
}

using PointResult = std::tuple<Bool, Float, Float, Float, Float, Int>;

PointResult result_of(const PointFound& f, const Float& sign) {
  const Bool hit = f.face >= 0;
  return {hit, select(hit, sign, 0.f), f.weights.x, f.weights.y, select(hit, sqrt(f.distance_sq), 0.f), f.face};
}

constexpr auto kNoGradient = [](const Var<MeshArrays>&, const Vec3&, const Float&, const Float&, const Float&,
                                const Float&, const Float&) { return std::tuple<Vec3, Float>(); };

auto make_closest(const char* name, MeshSign sign) {
  return grad(func(name,
                   [sign](Var<MeshArrays> mesh, Vec3 point, Float max_dist) {
                     const PointFound f = closest(mesh, point, max_dist);
                     Float side = 1;
                     if (sign != MeshSign::none) {
                       If (f.face >= 0) {
                         if (sign == MeshSign::normal) side = sign_by_normal(mesh, point, f);
                         if (sign == MeshSign::majority) side = sign_by_majority(mesh, point);
                         if (sign == MeshSign::winding) {
                           const Float number = winding_number(mesh, point, 2);
                           side = select(isnan(number), number, select(number > 0.5f, -1.f, 1.f));
                         }
                       }
                     }
                     return result_of(f, side);
                   }),
              kNoGradient);
}
const auto& closest_func(MeshSign sign) {
  static const auto none = make_closest("mesh_query_point", MeshSign::none);
  static const auto majority = make_closest("mesh_query_point by majority", MeshSign::majority);
  static const auto normal = make_closest("mesh_query_point by normal", MeshSign::normal);
  static const auto winding = make_closest("mesh_query_point by winding", MeshSign::winding);
  switch (sign) {
    case MeshSign::majority: return majority;
    case MeshSign::normal: return normal;
    case MeshSign::winding: return winding;
    default: return none;
  }
}
const auto& furthest_func() {
  static const auto f = grad(
      func("mesh_query_furthest_point", [](Var<MeshArrays> mesh, Vec3 point,
                                           Float min_dist) { return result_of(furthest(mesh, point, min_dist), 1); }),
      kNoGradient);
  return f;
}

MeshPointHit with_face(const PointResult& r, const MeshInKernel& mesh, const Vec3& point, bool far) {
  const auto& [hit, sign, u, v, distance, face] = r;
  MeshPointHit h{hit, sign, u, v, distance, face};
  if (!lib::tracing_adjoint()) {
    depend_on_points(mesh, face, {&h.u, &h.v, &h.distance});
    return h;
  }
  If (hit) {
    const auto [a, b, c] = points_of(mesh, face);
    // The furthest point is a vertex and stays where it is on its face. The closest one follows: this changes the
    // distance only by rounding, and removes the part of that within the face.
    Vec3 weights(detach(u), detach(v), detach(Float(1 - u - v)));
    if (!far) {
      weights = closest_point_triangle(point, a, b, c).weights;
      h.u = lib::with_gradient_of<Float>(u, weights.x);
      h.v = lib::with_gradient_of<Float>(v, weights.y);
    }
    const Float d = length(way_from(a, b, c, weights, point));
    h.distance = lib::with_gradient_of<Float>(distance, select(distance > 0, d, 0.f));
  }
  return h;
}

}  // namespace

}  // namespace detail

using detail::value;

MeshPointHit mesh_query_point(const MeshInKernel& mesh, In<vec3> point, In<float> max_dist, MeshSign sign, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Vec3 p = value(point);
  detail::check_limit("mesh_query_point", "max_dist", value(max_dist), loc);
  if (sign == MeshSign::winding) detail::check_winding_numbers("mesh_query_point", mesh.arrays, loc);
  return detail::with_face(detail::closest_func(sign)(mesh.arrays, p, max_dist, loc), mesh, p, false);
}

MeshPointHit mesh_query_furthest_point(const MeshInKernel& mesh, In<vec3> point, In<float> min_dist, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Vec3 p = value(point);
  return detail::with_face(detail::furthest_func()(mesh.arrays, p, min_dist, loc), mesh, p, true);
}

}  // namespace weft
