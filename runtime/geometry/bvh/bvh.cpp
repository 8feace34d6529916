// The host's side of a hierarchy: arrays, checks, and the order of the passes.
#include "../bvh.h"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <cfloat>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "../../../frontend/support/error.h"
#include "../../array_create.h"
#include "../../graph/capture.h"
#include "../../work/observe.h"
#include "../structures/change.h"
#include "../structures/handle.h"
#include "bvh_build.h"

namespace weft {

namespace detail {

struct BvhState {
  BvhState(const Device& device, const BvhOptions& options) : device(device), options(options) {
    data.leaf_size = options.leaf_size;
    data.tag = detail::kBvhTag;
    const OutsideCapture at_once;
    header = zeros<BvhData>(device, 1);
  }
  // Who still holds the id of a hierarchy that is gone finds zeros.
  ~BvhState() {
    if (!has_id) return;
    const Quiet quiet;
    clear_handle(header);
  }
  BvhState(const BvhState&) = delete;
  BvhState& operator=(const BvhState&) = delete;

  const Device device;
  bool of_mesh = false;        ///< which alone says what becomes of it
  BvhOptions options;          ///< but for the groups they stay
  Array<vec3> lowers, uppers;  ///< as they were given; those of `data` are contiguous
  BvhData data;
  Array<int> arrived;  ///< by node; zeros between passes
  Form form;           ///< of data
  const std::shared_ptr<FormCell> cell = std::make_shared<FormCell>();
  Array<BvhData> header;
  bool has_id = false;
  /// A refit or a rebuild has begun and did not come to its end: the arrays are those of no tree.
  const std::shared_ptr<std::atomic<bool>> broken = std::make_shared<std::atomic<bool>>(false);
};

namespace {

[[noreturn]] void invalid(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

void check_groups(const Device& device, const Array<int>& groups, std::int64_t boxes) {
  if (groups.is_null()) return;
  if (groups.is_freed()) invalid("a hierarchy of boxes is given groups that were freed");
  if (groups.size() != boxes)
    invalid(fmt::format("a hierarchy of {} boxes is given {} groups: one for each box", boxes, groups.size()));
  if (groups.device() != device)
    invalid(
        fmt::format("a hierarchy on device {} is given groups on device {}", device.name(), groups.device().name()));
}

void check(const Device& device, const Array<vec3>& lowers, const Array<vec3>& uppers) {
  if (lowers.is_null() || uppers.is_null()) invalid("a hierarchy of boxes is given a null array");
  if (lowers.is_freed() || uppers.is_freed()) invalid("a hierarchy of boxes is given an array that was freed");
  if (lowers.size() != uppers.size())
    invalid(
        fmt::format("a hierarchy of boxes is given {} lower bounds and {} upper ones", lowers.size(), uppers.size()));
  if (lowers.device() != device || uppers.device() != device)
    invalid(fmt::format("a hierarchy on device {} is given boxes on device {}", device.name(),
                        (lowers.device() != device ? lowers : uppers).device().name()));
  // Rows of nodes are counted by 32 bits, four for each node.
  if (lowers.size() > 1 << 29)
    throw Error(ErrorKind::unsupported, fmt::format("a hierarchy of {} boxes; 2^29 are possible", lowers.size()));
}

// Launches refuse empty arrays, so those of a tree of nothing have one element. The arrays themselves: who reads boxes
// in a kernel passes gradients to them.
Array<vec3> never_empty(const Device& device, const Array<vec3>& bounds) {
  return bounds.size() == 0 ? zeros<vec3>(device, 1) : bounds;
}

void take_boxes(BvhState& s, const Array<vec3>& lowers, const Array<vec3>& uppers) {
  s.lowers = lowers;
  s.uppers = uppers;
  s.data.lowers = never_empty(s.device, lowers);
  s.data.uppers = never_empty(s.device, uppers);
}

// Elements hold contiguous arrays alone.
void write_header(BvhState& s) {
  BvhData rows = s.data;
  rows.lowers = rows.lowers.contiguous();
  rows.uppers = rows.uppers.contiguous();
  s.header.assign(std::span<const BvhData>(&rows, 1));
}

// A tree of nothing.
void make_empty(BvhData& d) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const vec4 lower(inf, inf, inf, std::bit_cast<float>(-1)), upper(-inf, -inf, -inf, 0);
  d.nodes.fill({lower, upper, lower, upper});
  d.primitives.zero();
  d.parents.fill(-1);
}

const auto members = [](BvhState& s) {
  return std::tie(s.data, s.options.groups, s.lowers, s.uppers, s.arrived, s.form);
};

std::string name_of(const Form& form) {
  return fmt::format("a hierarchy of {} boxes{}", form.built[0], form.built[6] > 1 ? " in groups" : "");
}
Form form_of(const BvhData& d) {
  Form form{.kind = Form::Kind::known};
  form.built = {std::uint64_t(d.count), serial_of(d.nodes),       serial_of(d.primitives),       serial_of(d.parents),
                serial_of(d.groups),    serial_of(d.group_roots), std::uint64_t(d.groups.size())};
  if (d.count > 0)  // else nobody's arrays are there, but one box anew each time
    form.moved = {serial_of(d.lowers), d.lowers.address(), std::uint64_t(d.lowers.stride(0)),
                  serial_of(d.uppers), d.uppers.address(), std::uint64_t(d.uppers.stride(0))};
  std::copy(form.built.begin() + 1, form.built.begin() + 6, form.memory.begin());
  form.describe = name_of;
  return form;
}

/// Of work that leaves the hierarchy as its members say. \param change  outside of captures
void has_made(BvhState& s, std::optional<FormChange>& change) {
  const Form before = std::exchange(s.form, form_of(s.data));
  Capture* const capture = Capture::current();
  if (!capture)
    change->done(s.form);
  else if (!s.of_mesh)  // that of a mesh stays in its memory, and the mesh knows when it is stale
    capture->make(s.cell, before, s.form);
}

// Changes the tree. What may refuse that was asked, see refuse_change().
template <class F>
void change_tree(const std::shared_ptr<BvhState>& state, const F& f) {
  const Quiet quiet;
  Capture* const capture = Capture::current();
  std::optional<Capture::Undo> undo;
  std::optional<FormChange> changing;
  if (capture)
    undo.emplace(*capture);
  else
    changing.emplace(state->cell);
  Capture::keep(state, members);
  change(state->broken, [&] {
    f(*state);
    has_made(*state, changing);
    *state->broken = false;
  });
  if (undo) undo->done();
}

void check_whole(const BvhState& s) {
  if (*s.broken) invalid("the last refit or rebuild of a hierarchy of boxes failed: call its rebuild()");
}

void build(BvhState& s) {
  BvhData& d = s.data;
  const std::int64_t n = s.lowers.size(), places = std::max<std::int64_t>(n, 1);
  const bool captured = Capture::current();
  // What a failed build has left may be asked before a captured one runs.
  const bool anew = captured && *s.broken;
  if (anew || d.primitives.is_null() || d.primitives.size() != places) {
    const OutsideCapture at_once;
    d.primitives = {};  // who builds again after an error makes all of them
    d.nodes = empty<BvhNode>(s.device, std::max<std::int64_t>(n - 1, 1));
    d.parents = empty<int>(s.device, d.nodes.size());
    s.arrived = zeros<int>(s.device, d.nodes.size());
    d.info = empty<unsigned>(s.device, kBvhInfos);
    d.primitives = empty<int>(s.device, places);
    if (!s.of_mesh) d.nodes.storage()->structure = s.cell;
    if (captured) {  // until the graph runs: who asks the tree before finds nothing
      make_empty(d);
      d.info.zero();
    }
  }
  const bool grouped = !s.options.groups.is_null() && n > 0;
  if (const std::int64_t size = grouped ? n : 1; anew || d.groups.is_null() || d.groups.size() != size) {
    const OutsideCapture at_once;
    d.groups = {};
    d.group_roots = empty<int>(s.device, size);
    d.groups = zeros<int>(s.device, size);
    if (captured) d.group_roots.fill(kBvhNothing);
  }
  if (!grouped) d.group_roots.fill(kBvhNothing);
  d.count = int(n);
  if (anew) {
    const OutsideCapture at_once;
    write_header(s);
  }
  d.info.zero();
  write_header(s);
  if (n == 0) return make_empty(d);
  const bool merges = s.options.builder == BvhBuilder::hploc && n > 1, packs = merges && d.leaf_size > 1;
  BvhBuild b{d, s.arrived, grouped, {}, {}, d.primitives, {}};
  if (s.options.curve_bits == 60)
    b.fine_keys = empty<std::uint64_t>(s.device, n);
  else
    b.keys = empty<unsigned>(s.device, n);
  if (merges) b.spans = empty<vec2i>(s.device, packs ? n - 1 : 1);
  if (packs) b.order = empty<int>(s.device, n);
  order_by_curve(b, grouped ? s.options.groups.contiguous() : Array<int>());
  if (merges)
    build_hploc(b);
  else
    build_lbvh(b);
  if (packs) pack_leaves(b);
  if (grouped) name_group_roots(b);
  move_root(b);
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
        invalid(fmt::format("box {} of a hierarchy goes from {} to {} along axis {}", i, lower, upper, k));
    }
}

}  // namespace detail

Bvh::Bvh(const Device& device, const Array<vec3>& lowers, const Array<vec3>& uppers, const BvhOptions& options,
         Loc loc) {
  detail::called_from(loc, [&] {
    detail::check(device, lowers, uppers);
    if (options.builder != BvhBuilder::hploc && options.builder != BvhBuilder::lbvh)
      detail::invalid(
          fmt::format("a hierarchy of boxes by builder {}; there are hploc and lbvh", int(options.builder)));
    if (options.leaf_size < 1 || options.leaf_size > 8)
      detail::invalid(
          fmt::format("a hierarchy of boxes with {} primitives in a leaf; 1 to 8 are possible", options.leaf_size));
    if (options.curve_bits != 30 && options.curve_bits != 60)
      detail::invalid(
          fmt::format("a hierarchy of boxes with {} bits along the curve; 30 and 60 are possible", options.curve_bits));
    detail::check_groups(device, options.groups, lowers.size());
    const detail::Quiet quiet;
    const detail::Within makes(&detail::Context::makes_structure, true);
    state_ = std::make_shared<detail::BvhState>(device, options);
    detail::take_boxes(*state_, lowers, uppers);
    std::optional<detail::FormChange> changing;
    if (!detail::Capture::current()) changing.emplace(state_->cell);
    detail::build(*state_);
    detail::has_made(*state_, changing);
  });
}

detail::BvhState& Bvh::state() const {
  if (!state_) detail::invalid("a null hierarchy of boxes is used");
  return *state_;
}

void Bvh::hand_over() {
  state().of_mesh = true;
  state().data.nodes.storage()->structure.reset();
}

void Bvh::refit(const Array<vec3>& lowers, const Array<vec3>& uppers, Loc loc) {
  detail::called_from(loc, [&] {
    refuse_if_handed_over();
    refit_now(lowers, uppers);
  });
}
void Bvh::refuse_if_handed_over() const {
  if (state().of_mesh) detail::invalid("the hierarchy of a mesh is refitted or rebuilt: call that of the mesh");
}

void Bvh::refit_now(const Array<vec3>& lowers, const Array<vec3>& uppers) {
  detail::BvhState& s = state();
  detail::check(s.device, lowers, uppers);
  if (lowers.size() != s.data.count)
    detail::invalid(fmt::format("a hierarchy of {} boxes is refitted to {}: rebuild() takes another number",
                                s.data.count, lowers.size()));
  detail::check_whole(s);
  // Who finds the hierarchy by its handle finds the boxes that the device was given last.
  detail::Capture* const capture = detail::Capture::current();
  bool as_host = s.of_mesh;
  if (!s.of_mesh && !capture) as_host = s.cell->check_built(s.form);
  const bool writes_header = !as_host || refit_writes_header(lowers, uppers);
  refuse_refit(lowers, uppers, writes_header);
  detail::change_tree(state_, [&](detail::BvhState& s) {
    if (!s.of_mesh && capture) capture->forms.need({s.cell, s.form, true});
    detail::take_boxes(s, lowers, uppers);
    if (writes_header) detail::write_header(s);
    if (s.data.count > 0) detail::refit_boxes(s.data, s.arrived);
  });
}
bool Bvh::refit_writes_header(const Array<vec3>& lowers, const Array<vec3>& uppers) const {
  const BvhData& d = state().data;
  // Other memory may lie where one was that was freed.
  const auto stays = [](const Array<vec3>& now, const Array<vec3>& was) {
    return now.storage() == was.storage() && detail::same_elements(now, was);
  };
  const bool same = d.count > 0 && stays(lowers, d.lowers) && stays(uppers, d.uppers);
  return !same || !lowers.is_contiguous() || !uppers.is_contiguous();
}
void Bvh::refuse_refit(const Array<vec3>& lowers, const Array<vec3>& uppers, bool writes_header) const {
  if (detail::Capture::current()) return;
  const detail::BvhState& s = state();
  const ArrayBase* const written[] = {&s.data.nodes, &s.arrived, writes_header ? &s.header : nullptr};
  const ArrayBase* const read[] = {&s.data.primitives, &s.data.parents, &lowers, &uppers};
  detail::refuse_change(*s.device.state(), written, read);
}
// Arrays, too, that give way to other memory: recorded work that is not submitted would be of another hierarchy by
// then.
void Bvh::refuse_rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups) const {
  if (detail::Capture::current()) return;
  const detail::BvhState& s = state();
  const BvhData& d = s.data;
  const ArrayBase* const written[] = {&d.nodes,       &d.primitives, &d.parents, &d.groups,
                                      &d.group_roots, &d.info,       &s.arrived, &s.header};
  const ArrayBase* const read[] = {&lowers, &uppers, &groups};
  detail::refuse_change(*s.device.state(), written, read);
}
void Bvh::refit(Loc loc) {
  detail::called_from(loc, [&] {
    const detail::BvhState& s = state();
    refit(s.lowers, s.uppers);
  });
}

void Bvh::rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, Loc loc) {
  detail::called_from(loc, [&] { rebuild(lowers, uppers, state().options.groups); });
}
void Bvh::rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups, Loc loc) {
  detail::called_from(loc, [&] {
    refuse_if_handed_over();
    rebuild_now(lowers, uppers, groups);
  });
}
void Bvh::rebuild_now(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups) {
  detail::check(state().device, lowers, uppers);
  detail::check_groups(state().device, groups, lowers.size());
  refuse_rebuild(lowers, uppers, groups);
  detail::change_tree(state_, [&](detail::BvhState& s) {
    s.options.groups = groups;
    detail::take_boxes(s, lowers, uppers);
    detail::build(s);
  });
}
void Bvh::rebuild(Loc loc) {
  detail::called_from(loc, [&] {
    const detail::BvhState& s = state();
    rebuild(s.lowers, s.uppers);
  });
}

Device Bvh::device() const { return state().device; }
std::int64_t Bvh::size() const { return state().data.count; }
const BvhOptions& Bvh::options() const { return state().options; }
int Bvh::depth(Loc loc) const {
  return detail::called_from(loc, [&] { return std::max(1, int(arrays().info.at(detail::kBvhDepth))); });
}
std::int64_t Bvh::ignored(Loc loc) const {
  return detail::called_from(loc, [&] { return arrays().info.at(detail::kBvhIgnored); });
}
const BvhData& Bvh::arrays() const {
  detail::check_whole(state());
  return state().data;
}
const BvhData& Bvh::data() const { return arrays(); }
const Array<BvhData>& Bvh::header() const {
  detail::check_whole(state());
  return state().header;
}
std::uint64_t Bvh::id(Loc loc) const {
  return detail::called_from(loc, [&] {
    detail::BvhState& s = state();
    detail::check_whole(s);
    if (!s.has_id) {
      detail::become_handle(s.header, s.broken);
      s.has_id = true;
    }
    return s.header.address();
  });
}

void stored::weft_is_given(const BvhData& tree) {
  if (!tree.nodes.is_null() && tree.nodes.storage()->structure)
    detail::use_form(tree.nodes.storage()->structure, detail::form_of(tree));
}

}  // namespace weft
