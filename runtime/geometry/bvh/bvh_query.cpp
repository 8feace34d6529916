// Queries that walk a hierarchy box by box.
#include "../bvh_query.h"

#include "../shapes/closest.h"
#include "../shapes/overlap.h"
#include "bvh_build.h"
#include "query_walk.h"

namespace weft {

namespace detail {

Bool QueryWalk::next(Int& to) {
  const auto choose = [&](const Children& c) {
    return Choice{{finds(c.lower[0], c.upper[0]), finds(c.lower[1], c.upper[1])}, false};
  };
  Bool done = false;
  While ((!done) & ((at_ < leaves_.count) | walk_.going())) {
    While (walk_.going() & (at_ >= leaves_.count)) {
      walk_.visit(choose, leaves_);
      at_ = 0;
    }
    While ((!done) & (at_ < leaves_.count)) {
      const Int place = leaves_.place(at_);
      at_ += 1;
      const Int primitive = tree_.primitives[place];
      done = takes(place, primitive, leaves_.count > 1);
      to = select(done, primitive, to);
    }
  }
  return done;
}

Bool QueryWalk::takes(const Int&, const Int& primitive, const Bool& several) const {
  Bool taken = true;
  If (several) {
    const TracedBox box = box_of(tree_.lowers, tree_.uppers, primitive);
    taken = finds(box.lower, box.upper);
  }
  return taken;
}

// Empty boxes are excluded, because they go from +infinity to -infinity and a query without bounds would touch them.
Bool QueryWalk::finds(const Vec3& lower, const Vec3& upper) const { return wants(lower, upper) & (lower.x <= upper.x); }

namespace {

class AabbWalk : public QueryWalk {
 public:
  AabbWalk(const Var<BvhData>& tree, const Vec3& lower, const Vec3& upper, const BvhRoot& root, Loc loc)
      : QueryWalk(tree, loc, root), lower_(asked_lower(lower, upper)), upper_(upper) {}

 private:
  Bool wants(const Vec3& lower, const Vec3& upper) const override { return boxes_touch(lower, upper, lower_, upper_); }
  const Vec3 lower_, upper_;
};

class RayWalk : public QueryWalk {
 public:
  RayWalk(const Var<BvhData>& tree, const RayData<Float>& ray, const Float& max_dist, const BvhRoot& root, Loc loc)
      : QueryWalk(tree, loc, root), ray_(ray), max_dist_(max_dist), limited_(max_dist < lib::kNoLimit) {}

 private:
  Bool wants(const Vec3& lower, const Vec3& upper) const override {
    return intersect_ray_box(ray_, lower, upper, max_dist_).hit;
  }
  // The walk meets boxes a little early, so that rounding loses none; whether this one begins before the limit is a
  // question for this box alone.
  Bool takes(const Int&, const Int& primitive, const Bool& several) const override {
    Bool taken = true;
    If (several | limited_) {
      const TracedBox box = box_of(tree_.lowers, tree_.uppers, primitive);
      taken = finds(box.lower, box.upper) & lib::enters_before<Float>(ray_, box.lower, box.upper, max_dist_);
    }
    return taken;
  }
  const RayData<Float> ray_;
  const Float max_dist_;
  const Bool limited_;
};

class SphereWalk : public QueryWalk {
 public:
  SphereWalk(const Var<BvhData>& tree, const Vec3& center, const Float& radius, const BvhRoot& root, Loc loc)
      : QueryWalk(tree, loc, root), center_(center), radius_(radius) {}

 private:
  Bool wants(const Vec3& lower, const Vec3& upper) const override {
    return intersect_sphere_box(center_, radius_, lower, upper);
  }
  const Vec3 center_;
  const Float radius_;
};

class CapsuleWalk : public QueryWalk {
 public:
  CapsuleWalk(const Var<BvhData>& tree, const Vec3& a, const Vec3& b, const Float& radius, const BvhRoot& root, Loc loc)
      : QueryWalk(tree, loc, root), a_(a), b_(b), radius_(radius) {}

 private:
  Bool wants(const Vec3& lower, const Vec3& upper) const override {
    return intersect_capsule_box(a_, b_, radius_, lower, upper);
  }
  const Vec3 a_, b_;
  const Float radius_;
};

}  // namespace

}  // namespace detail

using detail::value;

TreeQuery::TreeQuery(std::unique_ptr<detail::QueryWalk> walk) : walk_(std::move(walk)) {}
TreeQuery::TreeQuery(TreeQuery&&) noexcept = default;
TreeQuery::~TreeQuery() = default;

Bool TreeQuery::next(Int& found, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  return walk_->next(found);
}

TreeQuery::Iterator TreeQuery::begin() {
  walk_->once.begin();
  return {this};
}

Int TreeQuery::open() {
  walk_->loop.emplace(detail::Block::Kind::while_, walk_->loc);
  walk_->loop->enter([&] {
    tracing::CallPlace place(walk_->loc, tracing::Rounding::as_written);
    return detail::condition(walk_->next(walk_->found), walk_->loc);
  });
  return walk_->found;
}

void TreeQuery::close() { walk_->loop->leave(); }

bool TreeQuery::fresh() const { return !walk_->loop; }

TreeQuery bvh_query_aabb(const BvhInKernel& bvh, In<vec3> lower, In<vec3> upper, const BvhRoot& root, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  return TreeQuery(std::make_unique<detail::AabbWalk>(bvh.data, value(lower), value(upper), root, loc));
}

TreeQuery bvh_query_ray(const BvhInKernel& bvh, In<vec3> origin, In<vec3> direction, In<float> max_dist,
                        const BvhRoot& root, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Float limit = value(max_dist);
  detail::check_limit("bvh_query_ray", "max_dist", limit, loc);
  const RayData<Float> ray = detail::ray_through(bvh.data.nodes, value(origin), value(direction));
  return TreeQuery(std::make_unique<detail::RayWalk>(bvh.data, ray, limit, root, loc));
}

TreeQuery bvh_query_sphere(const BvhInKernel& bvh, In<vec3> center, In<float> radius, const BvhRoot& root, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Float r = value(radius);
  detail::check_limit("bvh_query_sphere", "radius", r, loc);
  return TreeQuery(std::make_unique<detail::SphereWalk>(bvh.data, value(center), r, root, loc));
}

TreeQuery bvh_query_capsule(const BvhInKernel& bvh, In<vec3> a, In<vec3> b, In<float> radius, const BvhRoot& root,
                            Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Float r = value(radius);
  detail::check_limit("bvh_query_capsule", "radius", r, loc);
  return TreeQuery(std::make_unique<detail::CapsuleWalk>(bvh.data, value(a), value(b), r, root, loc));
}

}  // namespace weft
