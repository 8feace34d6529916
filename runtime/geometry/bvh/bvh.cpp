// Bvh, the handle of a hierarchy that programs hold.
#include "../bvh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../detail/given_structures.h"
#include "../../work/capture.h"
#include "../../work/observe.h"
#include "bvh_tree.h"

namespace weft {

namespace detail {

namespace {

void check(const BvhOptions& options) {
  if (options.builder != BvhBuilder::hploc && options.builder != BvhBuilder::lbvh)
    invalid("a hierarchy of boxes by builder {}; there are hploc and lbvh", int(options.builder));
  if (options.leaf_size < 1 || options.leaf_size > 8)
    invalid("a hierarchy of boxes with {} primitives in a leaf; 1 to 8 are possible", options.leaf_size);
  if (options.curve_bits != 30 && options.curve_bits != 60)
    invalid(
        fmt::format("a hierarchy of boxes with {} bits along the curve; 30 and 60 are possible", options.curve_bits));
  if (const Capture* const capture = Capture::current())
    invalid(
        fmt::format("a hierarchy of boxes is made while {}: make it before; its refit() and rebuild() may be "
                    "captured",
                    capture->doing()));
}
}  // namespace

void check_boxes(std::span<const vec3> lowers, std::span<const vec3> uppers) {
  if (lowers.size() != uppers.size())
    invalid(
        fmt::format("a hierarchy of boxes is given {} lower bounds and {} upper ones", lowers.size(), uppers.size()));
  for (std::size_t i = 0; i < lowers.size(); ++i)
    for (int k = 0; k < 3; ++k) {
      const float lower = lowers[i][k], upper = uppers[i][k];
      if (!(lower <= upper && lower >= -FLT_MAX && upper <= FLT_MAX))
        invalid("box {} of a hierarchy goes from {} to {} along axis {}", i, lower, upper, k);
    }
}

}  // namespace detail

Bvh::Bvh(const Device& device, const Array<vec3>& lowers, const Array<vec3>& uppers, const BvhOptions& options,
         Loc loc) {
  detail::called_from(loc, [&] {
    detail::check(options);
    const detail::Quiet quiet;
    auto made = std::make_shared<detail::BvhTree>(device, options);
    made->build(lowers, uppers, options.groups);
    tree_ = std::move(made);
  });
}

detail::BvhTree& Bvh::tree() const {
  if (!tree_) invalid("a null hierarchy of boxes is used");
  return *tree_;
}

detail::BvhTree& Bvh::hand_over() {
  tree().of_mesh = true;
  tree().data.nodes.storage()->structure.reset();
  return tree();
}

detail::BvhTree& Bvh::own_tree() {
  if (tree().of_mesh) invalid("the hierarchy of a mesh is refitted or rebuilt: call that of the mesh");
  return tree();
}

void Bvh::refit(const Array<vec3>& lowers, const Array<vec3>& uppers, Loc loc) {
  detail::called_from(loc, [&] { own_tree().refit(lowers, uppers); });
}
void Bvh::refit(Loc loc) {
  detail::called_from(loc, [&] {
    detail::BvhTree& tree = own_tree();
    tree.refit(Array<vec3>(tree.lowers), Array<vec3>(tree.uppers));
  });
}

void Bvh::rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, Loc loc) {
  detail::called_from(loc, [&] { own_tree().build(lowers, uppers, Array<int>(own_tree().options.groups)); });
}
void Bvh::rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups, Loc loc) {
  detail::called_from(loc, [&] { own_tree().build(lowers, uppers, groups); });
}
void Bvh::rebuild(Loc loc) {
  detail::called_from(loc, [&] {
    detail::BvhTree& tree = own_tree();
    tree.build(Array<vec3>(tree.lowers), Array<vec3>(tree.uppers), Array<int>(tree.options.groups));
  });
}

Device Bvh::device() const { return tree().device; }
std::int64_t Bvh::size() const { return tree().data.count; }
const BvhOptions& Bvh::options() const { return tree().options; }
int Bvh::depth(Loc loc) const {
  return detail::called_from(loc, [&] { return std::max(1, int(data().info.at(detail::kBvhDepth))); });
}
std::int64_t Bvh::ignored(Loc loc) const {
  return detail::called_from(loc, [&] { return data().info.at(detail::kBvhIgnored); });
}
const BvhData& Bvh::data() const {
  tree().check_whole();
  return tree().data;
}
std::uint64_t Bvh::id(Loc loc) const {
  return detail::called_from(loc, [&] {
    detail::BvhTree& t = tree();
    t.check_whole();
    return t.element.id(
        t.device, [&] { return t.contiguous_data(); }, t.generation);
  });
}

detail::StructureUse stored::weft_structure_of(const BvhData& tree) {
  if (tree.nodes.is_null() || !tree.nodes.storage()->structure) return {};
  return {tree.nodes.storage()->structure, detail::generation_number(tree), tree.count};
}

}  // namespace weft
