// Ray queries on meshes.
#include "../../../frontend/kernels/func_derivatives.h"
#include "../../../frontend/kernels/trace_ray.h"
#include "../../../frontend/language/own_gradient.h"
#include "../shapes/ray.h"
#include "mesh_walks.h"

namespace weft {

namespace detail {

namespace {

struct RayFound {
  Bool hit;
  Float t, u, v, sign;
  Int face = -1;
};
using RayResult = std::tuple<Bool, Float, Float, Float, Float, Int>;

/// Walks the tree from near to far. `look` sees each triangle that may matter; it keeps the limit of t in `limit`, and
/// ends the walk by `done`.
template <class F>
void walk_ray(const Var<MeshArrays>& mesh, const RayData<Float>& ray, const Float& limit, const Bool& done, F look) {
  const auto choose = [&](const Children& c) {
    const RayBox<Float> one = intersect_ray_box(ray, c.lower[0], c.upper[0], limit);
    const RayBox<Float> two = intersect_ray_box(ray, c.lower[1], c.upper[1], limit);
    return Choice{{one.hit, two.hit}, two.enter < one.enter};
  };
  walk_tree(mesh.tree, done, choose, [&](const Int& place) { look(Corners(mesh, place)); });
}

RayFound first_hit(const Var<MeshArrays>& mesh, const Vec3& origin, const Vec3& direction, const Float& max_t,
                   bool any) {
  const RayData<Float> ray = ray_through(mesh.tree.nodes, origin, direction);
  RayFound best;
  Float limit = max_t;
  const Bool never = false;
  walk_ray(mesh, ray, limit, any ? best.hit : never, [&](const Corners& triangle) {
    const RayTriangle<Float> r = intersect_ray_triangle(ray, triangle.a, triangle.b, triangle.c, limit);
    If (r.hit) {
      best.hit = true;
      best.t = limit = r.t;
      best.u = r.u, best.v = r.v, best.sign = r.sign;
      best.face = triangle.face;
    }
  });
  return best;
}

/// Finds the first hit after (after_t, after_face), in order of t and then of face.
RayFound next_hit(const Var<MeshArrays>& mesh, const Vec3& origin, const Vec3& direction, const Float& max_t,
                  const Float& after_t, const Int& after_face) {
  const RayData<Float> ray = ray_through(mesh.tree.nodes, origin, direction);
  RayFound best;
  Float limit = max_t;
  walk_ray(mesh, ray, limit, Bool(false), [&](const Corners& triangle) {
    const RayTriangle<Float> r = intersect_ray_triangle(ray, triangle.a, triangle.b, triangle.c, max_t);
    const Bool beyond = (r.t > after_t) | ((r.t == after_t) & (triangle.face > after_face));
    const Bool before = (!best.hit) | (r.t < best.t) | ((r.t == best.t) & (triangle.face < best.face));
    If (r.hit & beyond & before) {
      best.hit = true;
      best.t = r.t, best.u = r.u, best.v = r.v, best.sign = r.sign;
      best.face = triangle.face;
      // Boxes that begin at t itself may hold a hit at the same distance.
      limit = min(max_t, r.t * 1.000001f + 1e-30f);
    }
  });
  return best;
}

RayResult tuple_of(const RayFound& f) { return {f.hit, f.t, f.u, f.v, f.sign, f.face}; }
RayFound found_of(const RayResult& r) {
  const auto& [hit, t, u, v, sign, face] = r;
  return {hit, t, u, v, sign, face};
}

// Adjoints do not differentiate the walks: they recompute the hit on the one triangle, whose gradient it is. Whether a
// ray hits, and how often, has no gradient.
constexpr auto no_gradient = [](const auto&...) { return std::tuple<Vec3, Vec3, Float>(); };

// Asks the device, which accepts t <= max_t, so that the limit is the number before; invalid rays must not reach it.
RayFound device_hit(const Var<MeshArrays>& mesh, const Vec3& origin, const Vec3& direction, const Float& max_t,
                    bool any) {
  RayFound found;
  const auto finite = [](const Vec3& v) { return isfinite(v.x) & isfinite(v.y) & isfinite(v.z); };
  If (mesh.ray_structure == 0) {
    found = first_hit(mesh, origin, direction, max_t, any);
  }
  Else {
    If (finite(origin) & finite(direction) & (max_t > 0) & (dot(direction, direction) > 0)) {
      const Float limit = bitcast<float>(bitcast<unsigned>(max_t) - 1u);
      const TracedRay ray = trace_ray(mesh.ray_memory, mesh.ray_structure, origin, direction, limit, any);
      If (ray.triangle >= 0) {
        const Int corner = ray.triangle * 3;
        const auto point = [&](int k) { return Vec3(mesh.points[mesh.indices[corner + k]]); };
        const Vec3 a = point(0), b = point(1), c = point(2);
        const RayTriangle<Float> exact = intersect_ray_triangle(origin, direction, a, b, c);
        const Bool agrees = exact.hit & (exact.t < max_t);
        found.hit = true;
        found.face = ray.triangle;
        found.t = select(agrees, exact.t, ray.t);
        found.u = select(agrees, exact.u, 1 - ray.second - ray.third);
        found.v = select(agrees, exact.v, ray.second);
        found.sign = select(dot(cross(b - a, c - a), direction) < 0, 1.f, -1.f);
      }
    }
  }
  return found;
}

/// The function of mesh_query_ray(), or with `any` of mesh_query_ray_anyhit().
template <bool any, bool by_device>
const auto& ray_func() {
  static const auto f =
      grad(func(std::string(any ? "mesh_query_ray_anyhit" : "mesh_query_ray") + (by_device ? " by the device" : ""),
                [](Var<MeshArrays> mesh, Vec3 origin, Vec3 direction, Float max_t) {
                  const RayFound found = (by_device ? device_hit : first_hit)(mesh, origin, direction, max_t, any);
                  if constexpr (any)
                    return found.hit;
                  else
                    return tuple_of(found);
                }),
           no_gradient);
  return f;
}

template <bool any>
auto find_hit(const Var<MeshArrays>& mesh, const Vec3& origin, const Vec3& direction, const Float& max_t, RaySearch by,
              Loc loc) {
  // The way back walks: it runs among the structures of its own time, and copies of older ones are no structures.
  if (by == RaySearch::device && !lib::tracing_adjoint())
    return ray_func<any, true>()(mesh, origin, direction, max_t, loc);
  return ray_func<any, false>()(mesh, origin, direction, max_t, loc);
}

const auto& next_func() {
  static const auto f =
      grad(func("mesh_query_ray_all",
                [](Var<MeshArrays> mesh, Vec3 origin, Vec3 direction, Float max_t, Float after_t, Int after_face) {
                  return tuple_of(next_hit(mesh, origin, direction, max_t, after_t, after_face));
                }),
           [](const auto&...) { return std::tuple<Vec3, Vec3, Float, Float>(); });
  return f;
}
const auto& count_func() {
  static const auto f =
      grad(func("mesh_query_ray_count", [](Var<MeshArrays> mesh, Vec3 origin, Vec3 direction,
                                           Float max_t) { return count_hits(mesh, origin, direction, max_t); }),
           no_gradient);
  return f;
}

/// The user's hit, with its gradient.
MeshRayHit with_face(const RayFound& f, const MeshInKernel& mesh, const Vec3& origin, const Vec3& direction) {
  MeshRayHit hit{f.hit, f.t, f.u, f.v, f.sign, {}, f.face};
  if (!lib::tracing_adjoint()) depend_on_points(mesh, f.face, {&hit.t, &hit.u, &hit.v});
  If (f.hit) {
    const auto [a, b, c] = points_of(mesh, f.face);
    hit.normal = normalize(cross(b - a, c - a));
    if (lib::tracing_adjoint()) {
      const auto like = intersect_ray_triangle(origin, direction, a, b, c);
      hit.t = lib::with_gradient_of<Float>(f.t, like.t);
      hit.u = lib::with_gradient_of<Float>(f.u, like.u);
      hit.v = lib::with_gradient_of<Float>(f.v, like.v);
    }
  }
  return hit;
}

class RayHits : public QueryState<MeshRayHit> {
 public:
  RayHits(const MeshInKernel& mesh, const Vec3& origin, const Vec3& direction, const Float& max_t, Loc loc)
      : QueryState(loc), mesh_(mesh), origin_(origin), direction_(direction), max_t_(max_t) {}

  Bool next(MeshRayHit& hit, Loc loc) override {
    const RayFound found = found_of(next_func()(mesh_.arrays, origin_, direction_, max_t_, after_t_, after_face_, loc));
    // After the last hit there are no more, however often the caller asks.
    after_t_ = select(found.hit, detach(found.t), std::numeric_limits<float>::infinity());
    after_face_ = select(found.hit, found.face, std::numeric_limits<int>::max());
    If (found.hit) {
      hit = with_face(found, mesh_, origin_, direction_);
    }
    return found.hit;
  }

 private:
  const MeshInKernel mesh_;
  const Vec3 origin_, direction_;
  const Float max_t_;
  Float after_t_ = -1;
  Int after_face_ = -1;
};

}  // namespace

Int count_hits(const Var<MeshArrays>& mesh, const Vec3& origin, const Vec3& direction, const Float& max_t) {
  const RayData<Float> ray = ray_through(mesh.tree.nodes, origin, direction);
  Int count = 0;
  walk_ray(mesh, ray, max_t, Bool(false), [&](const Corners& triangle) {
    count += select(intersect_ray_triangle(ray, triangle.a, triangle.b, triangle.c, max_t).hit, 1, 0);
  });
  return count;
}

}  // namespace detail

using detail::value;

MeshRayHit mesh_query_ray(const MeshInKernel& mesh, In<vec3> origin, In<vec3> direction, In<float> max_t, RaySearch by,
                          Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  detail::check_limit("mesh_query_ray", "max_t", value(max_t), loc);
  const Vec3 o = value(origin), d = value(direction);
  const auto found = detail::found_of(detail::find_hit<false>(mesh.arrays, o, d, value(max_t), by, loc));
  return detail::with_face(found, mesh, o, d);
}

Bool mesh_query_ray_anyhit(const MeshInKernel& mesh, In<vec3> origin, In<vec3> direction, In<float> max_t, RaySearch by,
                           Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  detail::check_limit("mesh_query_ray_anyhit", "max_t", value(max_t), loc);
  return detail::find_hit<true>(mesh.arrays, value(origin), value(direction), value(max_t), by, loc);
}

Int mesh_query_ray_count(const MeshInKernel& mesh, In<vec3> origin, In<vec3> direction, In<float> max_t, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  detail::check_limit("mesh_query_ray_count", "max_t", value(max_t), loc);
  return detail::count_func()(mesh.arrays, origin, direction, max_t, loc);
}

MeshRayHits mesh_query_ray_all(const MeshInKernel& mesh, In<vec3> origin, In<vec3> direction, In<float> max_t,
                               Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  detail::check_limit("mesh_query_ray_all", "max_t", value(max_t), loc);
  return MeshRayHits(std::make_unique<detail::RayHits>(mesh, value(origin), value(direction), value(max_t), loc));
}

}  // namespace weft
