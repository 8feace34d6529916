// Finds how the values of a kernel differ among threads with neighbouring numbers.
#include "shapes.h"

#include <algorithm>
#include <optional>

#include "../support/error.h"
#include "coordinates.h"
#include "shape_rules.h"

namespace weft::ir {
namespace {

using Kind = Shape::Kind;

constexpr Shape kVarying = {Kind::varying, 0};
/// The greatest number of a thread: a dispatch has fewer than 2^31.
constexpr std::int64_t kLastThread = (std::int64_t{1} << 31) - 2;

/// A fixed point over the tree of regions. Shapes only move towards varying: the carried values of a loop start with
/// the shapes of their first values, and each round joins those of the values that replace them.
class ShapeFinder {
 public:
  ShapeFinder(const Module& module, std::uint32_t lanes, bool by_rows)
      : module_(module), values_(module.insts.size()), seen_(module.insts.size(), 0) {
    found_.lanes = lanes;
    found_.of.assign(module.insts.size(), kVarying);
    found_.divergent.assign(module.insts.size(), 0);
    found_.exact.assign(module.insts.size(), 0);
    found_.groups = group_use(module).together || std::ranges::any_of(module.insts, [](const Inst& inst) {
                      return inst.op == Op::local_id || inst.op == Op::workgroup_id;
                    });
    found_.lone = found_.groups && module.block == 1;
    if (by_rows && !found_.groups && module.tid_rank > 1) find_rows();
  }

  Shapes run() {
    for (Id id = 0; id < module_.insts.size(); ++id)
      if (is_global(module_[id].op)) set(id, source(id));
    do {
      changed_ = false;
      region(0);
    } while (changed_);
    return std::move(found_);
  }

 private:
  // ---- The place of vectors in the launch

  void find_rows() {
    const int last = static_cast<int>(module_.tid_rank) - 1;
    for (const Region& region : module_.regions) {
      for (Id id : region.insts) {
        if (is_tid_quotient(module_, id, last))
          found_.row.push_back(id);
        else if (module_[id].op == Op::sub && tid_coordinate(module_, id) == last)
          found_.column.push_back(id);
      }
    }
    found_.rows = !found_.row.empty() || !found_.column.empty();
    for (Id id : found_.row) set(id, {{}, LaneValue::Range{0, kLastThread}, 1});
    for (Id id : found_.column) set(id, counting_lanes(kLastThread, found_.lanes));
  }

  /// Whether the place of the vector gives the value.
  bool is_placed(Id id) const {
    return found_.rows && (std::ranges::count(found_.row, id) || std::ranges::count(found_.column, id));
  }

  LaneValue source(Id id) const {
    const Inst& inst = module_[id];
    const std::uint64_t lanes = found_.lanes, unit = lanes | module_.block;
    const LaneValue number = {{}, LaneValue::Range{0, kLastThread}, 1};
    switch (inst.op) {
      case Op::constant: return constant_lanes(inst);
      case Op::subgroup_size: return {{}, LaneValue::Range{std::int64_t(lanes), std::int64_t(lanes)}, lanes};
      case Op::workgroup_id: return number;
      case Op::subgroup_id: return {{}, LaneValue::Range{0, std::int64_t(module_.block)}, 1};
      case Op::subgroup_lane: return counting_lanes(std::int64_t(lanes) - 1, std::uint64_t{1} << 62);
      case Op::local_id: return counting_lanes(std::int64_t(module_.block) - 1, lanes);
      case Op::thread_id:
        return counting_lanes(kLastThread, found_.rows ? 1 : found_.groups ? unit & (~unit + 1) : lanes);
      default: return {};
    }
  }

  // ---- Values

  const LaneValue& value(Id id) const { return values_[id]; }
  const Shape& shape(Id id) const { return values_[id].shape; }

  void set(Id id, LaneValue made) {
    if (seen_[id]) made.shape = join({values_[id].shape, {}, 1}, {made.shape, {}, 1}).shape;
    if (found_.lone) made.shape = {};
    if (made.shape.kind == Kind::varying) made = {kVarying, {}, 1};
    changed_ = changed_ || !seen_[id] || !(made.shape == values_[id].shape);
    seen_[id] = 1;
    values_[id] = made;
    found_.of[id] = made.shape;
    found_.exact[id] = made.shape.kind == Kind::affine && made.range;
  }

  void region(RegionId id) {
    if (id == kNone) return;
    for (Id inst : module_.regions[id].insts) instruction(inst);
  }

  void instruction(Id id) {
    const Inst& inst = module_[id];
    switch (info(inst.op).spread) {
      case Spread::none: return;
      case Spread::operands:
        if (!is_placed(id)) set(id, pure(id));
        return;
      case Spread::pooled: return set(id, {});
      case Spread::exchanged:
        // The lane from which the value comes does not matter if all give the same.
        return set(id, shape(module_.arg(id, 0)).is_uniform() ? LaneValue{} : LaneValue{kVarying, {}, 1});
      case Spread::memory: return set(id, loaded(id));
      case Spread::thread:
        if (inst.op == Op::call) internal_error("find_shapes() takes kernels without calls", inst.loc());
        return set(id, {kVarying, {}, 1});
      case Spread::control: return control(id);
      default: internal_error("a value that is visible everywhere stands in a region", inst.loc());
    }
  }

  LaneValue pure(Id id) const {
    LaneValue args[3];
    const std::span<const Id> ids = module_.args(id);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (shape(ids[k]).kind == Kind::varying) return {kVarying, {}, 1};
      args[k] = value(ids[k]);
    }
    return pure_lanes(module_, module_[id], {args, ids.size()}, found_.lanes);
  }

  LaneValue loaded(Id id) const {
    const Shape address = address_shape(module_, found_, id);
    const KernelArray* own = module_.kernel_array_of(module_.arg(id, 0));
    return !address.is_uniform() || (own && own->is_private) ? LaneValue{kVarying, {}, 1} : LaneValue{};
  }

  // ---- Control flow

  void control(Id id) {
    switch (module_[id].op) {
      case Op::if_: return branch(id);
      case Op::loop: return loop(id);
      case Op::param: return;  // its loop sets it
      case Op::result: return set(id, result(id));
      default: internal_error("find_shapes() takes kernels in normal form", module_[id].loc());
    }
  }

  void set_condition(Id control, Id condition) {
    set(control, {shape(condition), {}, 1});
    found_.divergent[control] = !shape(condition).is_uniform();
  }

  void branch(Id id) {
    set_condition(id, module_.arg(id, 0));
    for (RegionId inner : module_[id].regions) region(inner);
  }

  void loop(Id id) {
    const Inst& inst = module_[id];
    for (std::uint32_t k = 0; k < inst.num_args; ++k) set(carried(id, k), shaped(shape(module_.arg(id, int(k)))));
    region(inst.regions[0]);
    set_condition(id, module_.arg(last(inst.regions[0]), 0));
    region(inst.regions[1]);
    for (std::uint32_t k = 0; k < inst.num_args; ++k)
      set(carried(id, k), shaped(shape(module_.arg(last(inst.regions[1]), int(k)))));
  }

  /// A carried value: of its number nothing is known, because it changes.
  static LaneValue shaped(const Shape& shape) { return {shape, {}, 1}; }

  Id carried(Id loop, std::uint32_t k) const { return module_.regions[module_[loop].regions[0]].insts[k]; }
  Id last(RegionId region) const { return module_.regions[region].insts.back(); }

  LaneValue result(Id id) const {
    const Id from = module_.arg(id, 0);
    const Inst& inst = module_[from];
    const auto k = static_cast<std::uint32_t>(module_[id].imm);
    if (inst.op != Op::if_ && inst.op != Op::loop) return shaped(shape(from));
    if (found_.divergent[from]) return {kVarying, {}, 1};
    return inst.op == Op::loop ? shaped(shape(carried(from, k)))
                               : join(shaped(shape(module_.arg(last(inst.regions[0]), int(k)))),
                                      shaped(shape(module_.arg(last(inst.regions[1]), int(k)))));
  }

  const Module& module_;
  std::vector<LaneValue> values_;
  std::vector<char> seen_;
  Shapes found_;
  bool changed_ = false;
};

/// The shape of an index times the stride, in bytes.
Shape offset_shape(const Module& kernel, const Shapes& shapes, Id memory) {
  const Inst& inst = kernel[memory];
  const Id index = kernel.arg(memory, 1);
  const Shape& shape = shapes.of[index];
  if (shape.kind != Kind::affine) return shape;
  const int width = bits(kernel[index].type);
  if (width < 64 && !shapes.exact[index]) {
    // Two elements that exist are less than 2^31 apart. If the lanes are so too, they are as far apart as the lanes.
    const std::int64_t step = shape.step < 0 ? -shape.step : shape.step;
    if (width < 32 || step * (std::int64_t{shapes.lanes} - 1) >= std::int64_t{1} << 31) return kVarying;
  }
  const auto step = static_cast<std::int64_t>(static_cast<std::uint64_t>(shape.step) * inst.stride);
  return step ? Shape{Kind::affine, step} : Shape{};
}

}  // namespace

Shapes find_shapes(const Module& kernel, std::uint32_t lanes, bool by_rows) {
  return ShapeFinder(kernel, lanes, by_rows).run();
}

Shape address_shape(const Module& kernel, const Shapes& shapes, Id memory) {
  const Shape& base = shapes.of[kernel.arg(memory, 0)];
  const Shape offset = offset_shape(kernel, shapes, memory);
  if (base.kind == Kind::varying || offset.kind == Kind::varying) return kVarying;
  if (base.is_uniform() && offset.is_uniform()) return {};
  const auto step =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(base.step) + static_cast<std::uint64_t>(offset.step));
  return step ? Shape{Kind::affine, step} : Shape{};
}

}  // namespace weft::ir
