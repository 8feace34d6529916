// The host's part of a hierarchy: arrays, checks, and the order of the passes.
#include "bvh_tree.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../array_create.h"
#include "../structures/change.h"
#include "bvh_build.h"

namespace weft::detail {

namespace {

void check_groups(const Device& device, const Array<int>& groups, std::int64_t boxes) {
  if (groups.is_null()) return;
  require_array(device, groups, "a hierarchy", "groups");
  if (groups.size() != boxes)
    invalid("a hierarchy of {} boxes is given {} groups: one for each box", boxes, groups.size());
}

void check(const Device& device, const Array<vec3>& lowers, const Array<vec3>& uppers) {
  for (const Array<vec3>* bounds : {&lowers, &uppers}) require_array(device, *bounds, "a hierarchy", "boxes");
  if (lowers.size() != uppers.size())
    invalid(
        fmt::format("a hierarchy of boxes is given {} lower bounds and {} upper ones", lowers.size(), uppers.size()));
  // Rows of nodes are counted in 32 bits, four for each node.
  if (lowers.size() > 1 << 29) unsupported("a hierarchy of {} boxes; 2^29 are possible", lowers.size());
}

// Launches refuse empty arrays, so an empty tree has arrays of one element. Other arrays stay themselves: kernels that
// read boxes pass gradients to them.
Array<vec3> never_empty(const Device& device, const Array<vec3>& bounds) {
  return bounds.size() == 0 ? zeros<vec3>(device, 1) : bounds;
}

// Makes a tree of nothing.
void make_empty(BvhData& d) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const vec4 lower(inf, inf, inf, std::bit_cast<float>(-1)), upper(-inf, -inf, -inf, 0);
  d.nodes.fill({lower, upper, lower, upper});
  d.primitives.zero();
  d.parents.fill(-1);
}

// Compares storages too, because another allocation may take the address of a freed one.
bool is_same(const Array<vec3>& now, const Array<vec3>& was) {
  return now.storage() == was.storage() && same_elements(now, was);
}

}  // namespace

std::uint64_t generation_number(const BvhData& d) {
  GenerationNumber number;
  number.add(std::uint64_t(d.count)).add(d.nodes).add(d.primitives).add(d.parents).add(d.groups).add(d.group_roots);
  if (d.count > 0) number.add(d.lowers).add(d.uppers);  // without boxes, the arrays belong to no caller
  return number.value();
}

BvhTree::BvhTree(const Device& device, const BvhOptions& options) : device(device), options(options) {
  data.leaf_size = options.leaf_size;
  data.tag = kBvhTag;
}

StructureUse BvhTree::use() const { return {generation, generation_number(data), data.count}; }

void BvhTree::check_whole() const {
  if (generation->held() == Generation::kNone)
    invalid("the last refit or rebuild of a hierarchy of boxes failed: call its rebuild()");
}

void BvhTree::refuse_captured(const Array<vec3>& new_lowers, const Array<vec3>& new_uppers, bool grouped) const {
  const Capture* const capture = Capture::current();
  if (!capture) return;
  check_whole();
  const bool was_grouped = data.count > 0 && data.groups.size() == data.count && !options.groups.is_null();
  if (new_lowers.size() == data.count && grouped == was_grouped && is_same(new_lowers, lowers) &&
      is_same(new_uppers, uppers))
    return;
  invalid(
      "a hierarchy of {} boxes{} is built or refitted with {} boxes of other arrays{} while {}: what is captured works "
      "with the arrays that it has; build it with these before",
      data.count, was_grouped ? " in groups" : "", new_lowers.size(), grouped ? ", in groups," : "", capture->doing());
}

void BvhTree::take_boxes(const Array<vec3>& new_lowers, const Array<vec3>& new_uppers) {
  lowers = new_lowers;
  uppers = new_uppers;
  data.lowers = never_empty(device, lowers);
  data.uppers = never_empty(device, uppers);
}

BvhData BvhTree::contiguous_data() {
  BvhData d = data;
  d.lowers = in_rows(d.lowers, lower_rows_);
  d.uppers = in_rows(d.uppers, upper_rows_);
  return d;
}

void BvhTree::write_element() {
  const auto now = [this] { return contiguous_data(); };
  // Captured work changes the data in their arrays, but boxes in strided views have to be copied again, even if id() is
  // called only later.
  if (Capture::current()) {
    if (lowers.is_contiguous() && uppers.is_contiguous()) return;
    element.make(device, now);
  }
  element.write(now);
}

void BvhTree::make_room(std::int64_t boxes, bool grouped) {
  BvhData& d = data;
  if (const std::int64_t places = std::max<std::int64_t>(boxes, 1);
      d.primitives.is_null() || d.primitives.size() != places) {
    d.primitives = {};  // a build after an error then makes all arrays anew
    d.nodes = empty<BvhNode>(device, std::max<std::int64_t>(boxes - 1, 1));
    d.parents = empty<int>(device, d.nodes.size());
    arrived = zeros<int>(device, d.nodes.size());
    d.info = empty<unsigned>(device, kBvhInfos);
    d.primitives = empty<int>(device, places);
    if (!of_mesh) d.nodes.storage()->structure = generation;
  }
  if (const std::int64_t size = grouped ? boxes : 1; d.groups.is_null() || d.groups.size() != size) {
    d.groups = {};
    d.group_roots = empty<int>(device, size);
    d.groups = zeros<int>(device, size);
  }
}

void BvhTree::build_now() {
  BvhData& d = data;
  const std::int64_t n = lowers.size();
  const bool grouped = !options.groups.is_null() && n > 0;
  make_room(n, grouped);
  if (!grouped) d.group_roots.fill(kBvhNothing);
  d.count = int(n);
  d.info.zero();
  write_element();
  if (n == 0) return make_empty(d);
  BvhData made = d;
  made.nodes = empty<BvhNode>(device, d.nodes.size());
  made.primitives = empty<int>(device, n);
  BvhBuild b{made, arrived, grouped, {}, {}, empty<vec4i>(device, d.nodes.size())};
  if (options.curve_bits == 60)
    b.fine_keys = empty<std::uint64_t>(device, n);
  else
    b.keys = empty<unsigned>(device, n);
  order_by_curve(b, grouped ? options.groups.contiguous() : Array<int>());
  if (options.builder == BvhBuilder::hploc && n > 1)
    build_hploc(b);
  else
    build_lbvh(b);
  if (grouped) name_group_roots(b);
  lay_out(b, d);
}

void BvhTree::build(const Array<vec3>& new_lowers, const Array<vec3>& new_uppers, const Array<int>& groups) {
  check(device, new_lowers, new_uppers);
  check_groups(device, groups, new_lowers.size());
  refuse_captured(new_lowers, new_uppers, !groups.is_null() && new_lowers.size() > 0);
  refuse_build(new_lowers, new_uppers, groups);
  change([&] { return use(); },
         [&] {
           options.groups = groups;
           if (!Capture::current()) take_boxes(new_lowers, new_uppers);
           build_now();
         });
}

void BvhTree::refit(const Array<vec3>& new_lowers, const Array<vec3>& new_uppers) {
  check(device, new_lowers, new_uppers);
  if (new_lowers.size() != data.count)
    invalid("a hierarchy of {} boxes is refitted to {}: rebuild() takes another number", data.count, new_lowers.size());
  check_whole();
  refuse_captured(new_lowers, new_uppers, !options.groups.is_null() && data.count > 0);
  refuse_refit(new_lowers, new_uppers);
  const bool same =
      is_same(new_lowers, lowers) && is_same(new_uppers, uppers) && lowers.is_contiguous() && uppers.is_contiguous();
  change([&] { return use(); },
         [&] {
           if (!Capture::current()) take_boxes(new_lowers, new_uppers);
           if (!same) write_element();
           if (data.count > 0) refit_boxes(data, arrived);
         });
}

void BvhTree::refuse_refit(const Array<vec3>& new_lowers, const Array<vec3>& new_uppers) const {
  if (Capture::current()) return;
  const ArrayBase* const written[] = {&data.nodes, &arrived, &element.array()};
  const ArrayBase* const read[] = {&data.primitives, &data.parents, &new_lowers, &new_uppers};
  refuse_change(*device.state(), written, read);
}

// The list includes arrays that are replaced rather than written: recorded work that is not submitted yet would be of
// another hierarchy by then.
void BvhTree::refuse_build(const Array<vec3>& new_lowers, const Array<vec3>& new_uppers,
                           const Array<int>& groups) const {
  if (Capture::current()) return;
  const BvhData& d = data;
  const ArrayBase* const written[] = {&d.nodes,       &d.primitives, &d.parents, &d.groups,
                                      &d.group_roots, &d.info,       &arrived,   &element.array()};
  const ArrayBase* const read[] = {&new_lowers, &new_uppers, &groups};
  refuse_change(*device.state(), written, read);
}

}  // namespace weft::detail
