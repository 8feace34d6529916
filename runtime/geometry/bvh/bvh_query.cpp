// Queries that walk a hierarchy box by box.
#include "../bvh_query.h"

#include "../shapes/closest.h"
#include "../shapes/overlap.h"
#include "bvh_build.h"
#include "query_walk.h"

namespace weft {

namespace detail {

QueryWalk::QueryWalk(const Var<BvhData>& tree, Loc loc, const BvhRoot& root, Wants wants, Takes takes)
    : QueryState(loc),
      tree_(tree),
      wants_(std::move(wants)),
      takes_(std::move(takes)),
      walk_(tree.nodes, tree.parents, root) {}

Bool QueryWalk::next(Int& found, Loc) {
  const auto choose = [&](const Children& c) {
    return Choice{{finds(c.lower[0], c.upper[0]), finds(c.lower[1], c.upper[1])}, false};
  };
  Bool done = false;
  While ((!done) & ((at_ < leaves_.count) | walk_.going())) {
    const Searching searching;
    While (walk_.going() & (at_ >= leaves_.count) & searching.goes_on()) {
      walk_.visit(choose, leaves_);
      at_ = 0;
    }
    While ((!done) & (at_ < leaves_.count)) {
      const Int place = leaves_.place(at_);
      at_ += 1;
      const Int primitive = tree_.primitives[place];
      const Bool several = leaves_.count > 1;
      done = takes_ ? takes_(place, primitive, several) : takes_box(primitive, several);
      found = select(done, primitive, found);
    }
  }
  return done;
}

Bool QueryWalk::takes_box(const Int& primitive, const Bool& several) const {
  Bool taken = true;
  If (several) {
    const TracedBox box = box_of(tree_.lowers, tree_.uppers, primitive);
    taken = finds(box.lower, box.upper);
  }
  return taken;
}

Bool QueryWalk::finds(const Vec3& lower, const Vec3& upper) const {
  return wants_(lower, upper) & is_filled(lower, upper);
}

}  // namespace detail

using detail::value;

TreeQuery bvh_query_aabb(const BvhInKernel& bvh, In<vec3> lower, In<vec3> upper, const BvhRoot& root, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const auto wants = [from = detail::asked_lower(value(lower), value(upper)), to = value(upper)](
                         const Vec3& lower, const Vec3& upper) { return detail::boxes_touch(lower, upper, from, to); };
  return TreeQuery(std::make_unique<detail::QueryWalk>(bvh.data, loc, root, wants));
}

TreeQuery bvh_query_ray(const BvhInKernel& bvh, In<vec3> origin, In<vec3> direction, In<float> max_dist,
                        const BvhRoot& root, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Float limit = value(max_dist);
  detail::check_limit("bvh_query_ray", "max_dist", limit, loc);
  const RayData<Float> ray = detail::ray_through(bvh.data.nodes, value(origin), value(direction));
  const auto wants = [=](const Vec3& lower, const Vec3& upper) {
    return intersect_ray_box(ray, lower, upper, limit).hit;
  };
  // The walk meets boxes a little early, so that rounding loses none; whether this one begins before the limit is a
  // question for this box alone.
  const auto takes = [=, limited = limit < lib::kNoLimit](const Int&, const Int& primitive, const Bool& several) {
    Bool taken = true;
    If (several | limited) {
      const detail::TracedBox box = detail::box_of(bvh.data.lowers, bvh.data.uppers, primitive);
      taken = wants(box.lower, box.upper) & detail::is_filled(box.lower, box.upper) &
              lib::enters_before<Float>(ray, box.lower, box.upper, limit);
    }
    return taken;
  };
  return TreeQuery(std::make_unique<detail::QueryWalk>(bvh.data, loc, root, wants, takes));
}

TreeQuery bvh_query_sphere(const BvhInKernel& bvh, In<vec3> center, In<float> radius, const BvhRoot& root, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Float r = value(radius);
  detail::check_limit("bvh_query_sphere", "radius", r, loc);
  const auto wants = [c = value(center), r](const Vec3& lower, const Vec3& upper) {
    return intersect_sphere_box(c, r, lower, upper);
  };
  return TreeQuery(std::make_unique<detail::QueryWalk>(bvh.data, loc, root, wants));
}

TreeQuery bvh_query_capsule(const BvhInKernel& bvh, In<vec3> a, In<vec3> b, In<float> radius, const BvhRoot& root,
                            Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Float r = value(radius);
  detail::check_limit("bvh_query_capsule", "radius", r, loc);
  const auto wants = [from = value(a), to = value(b), r](const Vec3& lower, const Vec3& upper) {
    return intersect_capsule_box(from, to, r, lower, upper);
  };
  return TreeQuery(std::make_unique<detail::QueryWalk>(bvh.data, loc, root, wants));
}

}  // namespace weft
