// Keeps the depth of nested control flow below a device's limit.
//
// Drivers keep a stack of the conditions that a thread is under, and some of them (Mesa's for CPUs) have room for 80.
// They also nest what is flat here: after `if (c) return;` the rest of a region becomes the other side of that branch.
// This pass rewrites code that would be too deep so that a branch is not nested but guarded. Where the depth is used
// up, the regions of a branch are laid out one after the other, each under a condition of its own:
//
//   if p {              // p: the condition under which all of this runs
//     A                 A is split where a branch is in it; p itself is a plain value
//     if c { B }
//     else { C }
//     D
//   }
//
// becomes
//
//   if p { A; kept = a }         // values of A that others need are kept in a local
//   q = p and c, r = p and not c
//   if q { B }
//   if r { C }
//   if p { D(kept) }
//
// and B, C are split in the same way. A few cheap operations at the head of each side are outside its guard, so that a
// ladder of early returns costs one branch per rung, as when it nests. A loop stays a loop inside the guard: only loops
// inside loops use up the depth for good.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "../support/error.h"
#include "passes.h"
#include "rewrite.h"

namespace weft::ir {
namespace {

/// Operations at the head of a flat region that may be outside its guard.
constexpr std::size_t kOutside = 8;

/// The nesting depths of a body's regions.
class Heights {
 public:
  explicit Heights(const Module& module) : Heights(module, heights_of(module.functions)) {}

  /// Levels inside a region as it is.
  unsigned full(RegionId region) const { return region == kNone ? 0 : heights_[region].full; }
  /// The least levels inside a region whose branches may be laid out flat.
  unsigned normal(RegionId region) const { return region == kNone ? 0 : heights_[region].normal; }
  /// The least levels inside a region that is itself laid out flat, where everything needs a guard.
  unsigned guarded(RegionId region) const { return region == kNone ? 1 : heights_[region].guarded; }
  /// The least levels inside a region whose branches may be laid out flat, loops alone.
  unsigned loops(RegionId region) const { return region == kNone ? 0 : heights_[region].loops; }
  bool has_exits() const { return has_exits_; }
  /// The location of the deepest loop.
  Loc deepest_loop() const { return deepest_loop_; }

 private:
  Heights(const Module& module, std::span<const unsigned> functions)
      : module_(module), functions_(functions), heights_(module.regions.size()) {
    measure(0);
  }

  /// By number; each function calls only those before it.
  static std::vector<unsigned> heights_of(std::span<const std::shared_ptr<const Module>> functions) {
    std::vector<unsigned> heights;
    for (const auto& function : functions) heights.push_back(Heights(*function, heights).full(0));
    return heights;
  }

  /// The heights of one region: see the functions that give them.
  struct Height {
    unsigned full = 0, normal = 0, guarded = 1, loops = 0;
  };

  /// A region up to one of its instructions.
  struct Walk {
    Height height;
    unsigned below_exits = 0;  ///< levels that the exits so far put around the rest
    bool leaves = false;       ///< an exit leads out of the region

    /// Past a branch or loop with so many levels inside.
    void pass(unsigned inside, bool has_exit) {
      height.full = std::max(height.full, below_exits + 1 + inside);
      if (has_exit) ++below_exits;
      leaves |= has_exit;
    }
  };

  /// Returns whether the region has an exit that leads out of it.
  bool measure(RegionId region) {
    Walk walk;
    for (const Id id : module_.regions[region].insts) {
      switch (module_[id].op) {
        case Op::break_:
        case Op::continue_:
        case Op::return_: walk.leaves = has_exits_ = true; break;
        case Op::call: measure_call(module_[id], walk); break;
        case Op::if_: measure_branch(module_[id], walk); break;
        case Op::loop: measure_loop(module_[id], walk); break;
        default: break;
      }
    }
    heights_[region] = walk.height;
    return walk.leaves;
  }

  void measure_call(const Inst& inst, Walk& walk) const {
    const unsigned inside = functions_[inst.imm];
    walk.height.full = std::max(walk.height.full, walk.below_exits + inside);
    walk.height.normal = std::max(walk.height.normal, inside);
    walk.height.guarded = std::max(walk.height.guarded, 1 + inside);
  }

  void measure_branch(const Inst& inst, Walk& walk) {
    bool leaves = false;
    unsigned deepest = 0;
    for (const RegionId inner : {inst.regions[0], inst.regions[1]}) {
      if (inner == kNone) continue;
      leaves |= measure(inner);
      const Height& inside = heights_[inner];
      deepest = std::max(deepest, inside.full);
      walk.height.normal = std::max(walk.height.normal, inside.guarded);
      walk.height.guarded = std::max(walk.height.guarded, inside.guarded);
      walk.height.loops = std::max(walk.height.loops, inside.loops);
    }
    walk.pass(deepest, leaves);
  }

  void measure_loop(const Inst& inst, Walk& walk) {
    bool leaves = false;
    unsigned deepest = 0, least = 0;
    for (const RegionId inner : inst.regions) {
      if (inner == kNone) continue;
      leaves |= measure(inner);
      deepest = std::max(deepest, heights_[inner].full);
      least = std::max(least, heights_[inner].normal);
      walk.height.loops = std::max(walk.height.loops, 1 + heights_[inner].loops);
    }
    walk.height.normal = std::max(walk.height.normal, 1 + least);
    if (2 + least > walk.height.guarded) {
      walk.height.guarded = 2 + least;
      deepest_loop_ = inst.loc();
    }
    // Breaks end here, a return goes on: counted for either.
    walk.pass(deepest, leaves);
  }

  const Module& module_;
  std::span<const unsigned> functions_;  ///< by number: full height of the body; valid during construction only
  std::vector<Height> heights_;          ///< by region
  bool has_exits_ = false;
  Loc deepest_loop_;
};

class Flattener : KeepingRewriter {
 public:
  Flattener(const Module& from, const Heights& heights, unsigned limit)
      : KeepingRewriter(from), heights_(heights), limit_(limit), results_of_(from.insts.size()) {
    for (const Region& region : from.regions) {
      for (const Id id : region.insts) {
        if (from[id].op == Op::result) results_of_[from.arg(id, 0)].push_back(id);
      }
    }
  }

  Module run() {
    out_.locals = from_.locals;
    nested(0, 0);
    return sweep_body(out_);
  }

 private:
  /// A run of instructions of a flat region that is, or will be, under the region's condition.
  struct Segment {
    Id guard;
    bool open = false;
    std::vector<Id> defined = {};  ///< old values whose new ones are visible only inside it
  };

  bool is_deep(Id branch, unsigned depth) const {
    const Inst& inst = from_[branch];
    return depth + 1 + std::max(heights_.normal(inst.regions[0]), heights_.normal(inst.regions[1])) > limit_;
  }

  // ---- Regions that stay nested

  /// Rebuilds one instruction that needs no guard, at this depth.
  void instruction(Id id, unsigned depth) {
    const Inst& inst = from_[id];
    switch (inst.op) {
      case Op::param: break;  // mapped when the loop is opened
      case Op::local_get: map(id, builder_.local_get(static_cast<std::uint32_t>(inst.imm), inst.loc())); break;
      case Op::local_set:
        builder_.local_set(static_cast<std::uint32_t>(inst.imm), use(from_.arg(id, 0)), inst.loc());
        break;
      case Op::if_: branch(id, depth); break;
      case Op::loop: loop(id, depth); break;
      case Op::result:
        if (is_kept(id)) break;  // result of a branch that was laid out flat
        [[fallthrough]];
      default: use_all(id); copy(id);
    }
  }

  void nested(RegionId region, unsigned depth) {
    for (const Id id : from_.regions[region].insts) {
      if (from_[id].op == Op::if_ && is_deep(id, depth))
        lay_out(id, depth, kNone);
      else
        instruction(id, depth);
    }
  }

  void branch(Id id, unsigned depth) {
    const Inst& inst = from_[id];
    builder_.open_if(use(from_.arg(id, 0)), inst.loc());
    nested(inst.regions[0], depth + 1);
    if (inst.regions[1] != kNone) {
      builder_.open_else();
      nested(inst.regions[1], depth + 1);
    }
    map(id, builder_.close_if());
  }

  void loop(Id id, unsigned depth) {
    const Inst& inst = from_[id];
    open_loop(id, used(id));
    const std::vector<Id>& condition = from_.regions[inst.regions[0]].insts;
    for (const Id part : condition) {
      if (from_[part].op == Op::yield)
        builder_.loop_body(use(from_.arg(part, 0)));
      else if (from_[part].op == Op::if_ && is_deep(part, depth + 1))
        lay_out(part, depth + 1, kNone);
      else
        instruction(part, depth + 1);
    }
    nested(inst.regions[1], depth + 1);
    if (inst.regions[2] != kNone) {
      builder_.loop_step();
      nested(inst.regions[2], depth + 1);
    }
    map(id, builder_.close_loop());
  }

  // ---- Regions that are laid out flat

  /// Whether it may run in threads that do not need it, so that a branch's condition costs no branch of its own.
  static bool is_cheap(Op op) {
    if (op == Op::local_get) return true;
    return info(op).effect == Effect::pure && !(op >= Op::sqrt && op <= Op::tanh) && op != Op::div && op != Op::rem;
  }

  /// Lays out both sides of a branch one after the other. `guard` is the condition under which the branch itself runs;
  /// kNone: always.
  void lay_out(Id id, unsigned depth, Id guard) {
    const Inst& inst = from_[id];
    const Loc loc = inst.loc();
    const Id condition = use(from_.arg(id, 0)), no = builder_.pure(Op::bit_not, Type::b1, {condition}, loc);
    const auto both = [&](Id c) { return guard == kNone ? c : builder_.pure(Op::bit_and, Type::b1, {guard, c}, loc); };
    const Id then = both(condition), otherwise = both(no);
    std::vector<std::uint32_t> results;
    if (has_results(id)) {
      const Id yield = from_.regions[inst.regions[0]].insts.back();
      for (const Id arg : from_.args(yield)) results.push_back(builder_.local(from_[arg].type));
      for (const Id result : results_of_[id]) keep_result(result, results[from_[result].imm]);
    }
    flat(inst.regions[0], depth, then, results);
    if (inst.regions[1] != kNone) flat(inst.regions[1], depth, otherwise, results);
  }

  void flat(RegionId region, unsigned depth, Id guard, const std::vector<std::uint32_t>& results) {
    Segment segment{guard};
    std::size_t outside = 0;
    for (const Id id : from_.regions[region].insts) {
      const Inst& inst = from_[id];
      if (inst.op == Op::if_ && is_deep(id, depth + 1)) {
        close(segment);
        lay_out(id, depth, guard);
      } else if (inst.op == Op::yield) {
        open(segment, inst.loc());
        for (std::size_t k = 0; k < results.size(); ++k)
          builder_.local_set(results[k], use(from_.arg(id, int(k))), inst.loc());
      } else if (inst.op == Op::result) {
        continue;  // came with the instruction whose result it is, or is in a local
      } else if (!segment.open && outside < kOutside && is_cheap(inst.op)) {
        ++outside;
        instruction(id, depth);
      } else {
        open(segment, inst.loc());
        define(segment, id, depth);
      }
    }
    close(segment);
  }

  /// Rebuilds an instruction inside the segment, with its results, which no other segment could read.
  void define(Segment& segment, Id id, unsigned depth) {
    instruction(id, depth + 1);
    segment.defined.push_back(id);
    for (const Id result : results_of_[id]) {
      instruction(result, depth + 1);
      segment.defined.push_back(result);
    }
  }

  void open(Segment& segment, Loc loc) {
    if (segment.open) return;
    builder_.open_if(segment.guard, loc);
    segment.open = true;
  }

  void close(Segment& segment) {
    if (!segment.open) return;
    keep(segment.defined);
    segment.defined.clear();
    builder_.close_if();
    segment.open = false;
  }

  const Heights& heights_;
  const unsigned limit_;
  std::vector<std::vector<Id>> results_of_;  ///< by old instruction: its `result` instructions
};

}  // namespace

std::optional<Module> limit_nesting(const Module& kernel, unsigned limit) {
  if (Heights(kernel).full(0) <= limit) return {};
  Module module = inline_calls(kernel);
  if (Heights(module).has_exits()) module = normalise(module);
  const Heights heights(module);
  if (heights.full(0) <= limit) return module;
  if (heights.normal(0) > limit)
    throw Error(
        ErrorKind::unsupported,
        fmt::format("loops are nested {} deep{}; the device holds {}", heights.normal(0),
                    heights.normal(0) > heights.loops(0) ? ", the branches around and inside them included" : "",
                    limit),
        kernel.name, heights.deepest_loop());
  return Flattener(module, heights, limit).run();
}

}  // namespace weft::ir
