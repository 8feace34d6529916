// Removes exits and step regions.
//
// The code after an exit is nested: the rest of the region becomes the other side of the branch that leaves, and so on
// for the exits in that rest. If too many rests are open, the chain is cut: all its blocks are closed, and the rest
// goes on under one flag. Flat code therefore does not become deep, however long it is.
//
//   if a { A; return }           if a { A; returned = true }
//   B                            else {
//   if c { return }                B; kept = b
//   D(b)                           if c { returned = true }
//                                }
//                                if not returned { D(kept) }        // the chain was one exit long
#include <algorithm>
#include <deque>
#include <utility>

#include "../support/error.h"
#include "passes.h"
#include "rewrite.h"

namespace weft::ir {
namespace {

/// Where control may go from inside an instruction, other than to the next one.
enum Exit : std::uint8_t { kBreak = 1, kContinue = 2, kReturn = 4 };

class Normaliser : KeepingRewriter {
 public:
  Normaliser(const Module& from, unsigned max_chain)
      : KeepingRewriter(from),
        max_chain_(max_chain),
        uses_(from),
        exits_(from.insts.size(), 0),
        completes_(from.regions.size(), 1),
        is_condition_(from.regions.size(), 0) {}

  Module run() {
    out_.locals = from_.locals;
    if (survey(0) & kReturn) returned_ = new_flag(from_.loc);
    whole(0);
    return sweep_body(out_);
  }

 private:
  /// The code that runs after a region: the rest of another, and so on.
  struct Rest {
    RegionId region;
    std::size_t next;
    const Rest* after;
  };

  /// A region with the rests that are nested in it.
  struct Chain {
    unsigned depth;                 ///< rests around it
    const Rest* pending = nullptr;  ///< goes on when all of the chain's own rests are closed
    Loc loc = {};                   ///< where it was cut
    std::size_t first = 0;          ///< start in `defined_` of what was rebuilt inside the rests of this chain
  };

  /// The flags of the loop whose body is being rebuilt.
  struct Loop {
    std::uint32_t stop = kNone;  ///< the loop must end
    std::uint32_t skip = kNone;  ///< the iteration must end
  };

  // ---- Survey

  std::uint8_t survey(RegionId region) {
    std::uint8_t all = 0;
    for (Id id : from_.regions[region].insts) {
      const Inst& inst = from_[id];
      std::uint8_t exits = 0;
      switch (inst.op) {
        case Op::break_: exits = kBreak; break;
        case Op::continue_: exits = kContinue; break;
        case Op::return_: exits = kReturn; break;
        case Op::if_:
        case Op::loop:
          if (inst.op == Op::loop) is_condition_[inst.regions[0]] = 1;
          for (RegionId inner : inst.regions) {
            if (inner != kNone) exits |= survey(inner);
          }
          break;
        default: break;
      }
      exits_[id] = exits;
      const bool both = inst.op == Op::if_ && !completes(inst.regions[0]) && !completes(inst.regions[1]);
      if (both || inst.op == Op::break_ || inst.op == Op::continue_ || inst.op == Op::return_) completes_[region] = 0;
      // Breaks and continues end at their loop.
      all |= inst.op == Op::loop ? exits & kReturn : exits;
    }
    return all;
  }

  bool completes(RegionId region) const { return region == kNone || completes_[region]; }

  // ---- Flags

  std::uint32_t new_flag(Loc loc) {
    const std::uint32_t flag = builder_.local(Type::b1);
    set(flag, false, loc);
    return flag;
  }

  void set(std::uint32_t flag, bool value, Loc loc) {
    builder_.local_set(flag, builder_.constant(Type::b1, value), loc);
  }

  /// True when none of these exits has been taken.
  Id none_of(std::uint8_t exits, Loc loc) {
    Id taken = builder_.constant(Type::b1, 0);
    const std::pair<std::uint8_t, std::uint32_t> flags[] = {
        {kBreak, loop_.stop}, {kContinue, loop_.skip}, {kReturn, returned_}};
    for (const auto& [exit, flag] : flags) {
      if ((exits & exit) && flag != kNone)
        taken = builder_.pure(Op::bit_or, Type::b1, {taken, builder_.local_get(flag, loc)}, loc);
    }
    return builder_.pure(Op::bit_not, Type::b1, {taken}, loc);
  }

  // ---- The walk

  static bool empty(const Module& module, const Rest* rest) {
    for (; rest != nullptr; rest = rest->after) {
      if (rest->next < module.regions[rest->region].insts.size()) return false;
    }
    return true;
  }

  /// Rebuilds a region and the code after it, all inside the open block.
  void whole(RegionId region, const Rest* after = nullptr) {
    const Chain outer = std::exchange(chain_, {.depth = depth_, .first = defined_.size()});
    sequence(region, 0, after);
    while (const Rest* rest = std::exchange(chain_.pending, nullptr)) {
      builder_.open_if(none_of(kBreak | kContinue | kReturn, chain_.loc), chain_.loc);
      nested(rest->region, rest->next, rest->after);
      builder_.close_if();
    }
    defined_.resize(chain_.first);
    chain_ = outer;
  }

  void nested(RegionId region, std::size_t next, const Rest* after) {
    ++depth_;
    sequence(region, next, after);
    --depth_;
  }

  /// Rebuilds one side of a branch, with the rest that belongs to it.
  void side(RegionId region, const Rest* rest, Loc loc) {
    if (rest == nullptr) return whole(region);
    if (is_cut_before(*rest)) {
      if (region != kNone) whole(region);
      return cut(*rest, loc);
    }
    if (region != kNone) return nested(region, 0, rest);
    nested(rest->region, rest->next, rest->after);
  }

  /// Whether the chain is so long that the rest must go on after it. Results stay beside the instruction that gives
  /// them.
  bool is_cut_before(const Rest& rest) const {
    if (depth_ < max_chain_) return false;
    const std::vector<Id>& insts = from_.regions[rest.region].insts;
    return rest.next == insts.size() || from_[insts[rest.next]].op != Op::result;
  }

  void cut(const Rest& rest, Loc loc) {
    keep(std::span(defined_).subspan(chain_.first));
    defined_.resize(chain_.first);
    chain_.pending = &rest;
    chain_.loc = loc;
  }

  /// Rebuilds a region from its instruction `next` on, then the code after it.
  void sequence(RegionId region, std::size_t next, const Rest* after) {
    for (;;) {
      const std::vector<Id>& insts = from_.regions[region].insts;
      if (next == insts.size()) {
        if (after == nullptr) return;
        region = after->region;
        next = after->next;
        after = after->after;
        continue;
      }
      const Id id = insts[next++];
      const Inst& inst = from_[id];
      switch (inst.op) {
        case Op::break_: return set(loop_.stop, true, inst.loc());
        case Op::continue_: return set(loop_.skip, true, inst.loc());
        case Op::return_: return set(returned_, true, inst.loc());
        case Op::param: break;  // mapped when the loop is opened
        case Op::yield:
          if (is_condition_[region]) return;
          use_all(id);
          return copy(id);
        case Op::local_get: map(id, builder_.local_get(static_cast<std::uint32_t>(inst.imm), inst.loc())); break;
        case Op::local_set:
          builder_.local_set(static_cast<std::uint32_t>(inst.imm), use(from_.arg(id, 0)), inst.loc());
          break;
        case Op::if_:
          if (branch(id, rests_.emplace_back(region, next, after))) return;
          break;
        case Op::loop:
          loop(id);
          if (exits_[id] & kReturn) return guarded(kReturn, rests_.emplace_back(region, next, after), inst.loc());
          break;
        default: use_all(id); copy(id);
      }
      if (depth_ > chain_.depth) defined_.push_back(id);
    }
  }

  void guarded(std::uint8_t exits, const Rest& rest, Loc loc) {
    if (empty(from_, &rest)) return;
    if (is_cut_before(rest)) return cut(rest, loc);
    builder_.open_if(none_of(exits, loc), loc);
    nested(rest.region, rest.next, rest.after);
    builder_.close_if();
  }

  /// Returns whether the rest has been rebuilt too.
  bool branch(Id id, const Rest& rest) {
    const Inst& inst = from_[id];
    const bool go_on[2] = {completes(inst.regions[0]), completes(inst.regions[1])};
    // If one side always leaves, the rest belongs to the other side and needs no flag.
    const bool split = exits_[id] != 0 && !(go_on[0] && go_on[1]);
    const Rest* after = split && !empty(from_, &rest) ? &rest : nullptr;
    Id condition = use(from_.arg(id, 0));
    // The side with the rest comes last: if the chain is cut in it, values are in locals that no other side has.
    const int first = after != nullptr && go_on[0] ? 1 : 0;
    if (first == 1) condition = builder_.pure(Op::bit_not, Type::b1, {condition}, inst.loc());
    builder_.open_if(condition, inst.loc());
    side(inst.regions[first], go_on[first] ? after : nullptr, inst.loc());
    if (inst.regions[1 - first] != kNone || after != nullptr) {
      builder_.open_else();
      side(inst.regions[1 - first], go_on[1 - first] ? after : nullptr, inst.loc());
    }
    map(id, builder_.close_if());
    if (split) return true;
    if (exits_[id] == 0) return false;
    guarded(exits_[id], rest, inst.loc());
    return true;
  }

  /// Whether the condition may be computed again after a break: it must not read memory that the break guarded, nor run
  /// code.
  bool is_plain(RegionId condition) const {
    return std::ranges::all_of(from_.regions[condition].insts, [&](Id id) {
      const Op op = from_[id].op;
      return op == Op::yield || op == Op::local_get || info(op).effect == Effect::pure;
    });
  }

  /// Rebuilds the condition region without its yield and returns the condition.
  Id condition(Id id) {
    const RegionId region = from_[id].regions[0];
    whole(region);
    return use(from_.arg(from_.regions[region].insts.back(), 0));
  }

  void loop(Id id) {
    const Inst& inst = from_[id];
    const Loc loc = inst.loc();
    const std::uint8_t exits = exits_[id];
    const std::uint8_t leaving = exits & (kBreak | kReturn);
    const bool rotate = uses_.escapes_condition(id) || (leaving != 0 && !is_plain(inst.regions[0]));
    if (rotate && inst.num_args > 0) internal_error("normalise() takes no loop with carried values and locals", loc);
    const Loop outer = loop_;
    loop_ = {};
    if (rotate || (exits & kBreak)) loop_.stop = new_flag(loc);
    if (exits & kContinue) loop_.skip = builder_.local(Type::b1);
    open_loop(id, used(id));
    if (rotate) {
      builder_.loop_body(none_of(leaving | kBreak, loc));
      builder_.open_if(condition(id), loc);
      body(id);
      builder_.open_else();
      set(loop_.stop, true, loc);
      builder_.close_if();
    } else {
      const Id go_on = condition(id);
      builder_.loop_body(leaving ? builder_.pure(Op::bit_and, Type::b1, {go_on, none_of(leaving, loc)}, loc) : go_on);
      body(id);
    }
    map(id, builder_.close_loop());
    loop_ = outer;
  }

  void body(Id id) {
    const Inst& inst = from_[id];
    const std::uint8_t exits = exits_[id];
    const RegionId step = inst.regions[2];
    if (exits & kContinue) set(loop_.skip, false, inst.loc());
    const Rest rest{step, 0, nullptr};
    if (!(exits & kContinue)) return whole(inst.regions[1], step == kNone ? nullptr : &rest);
    // The step runs after a continue too, but not after a break.
    whole(inst.regions[1]);
    if (step == kNone) return;
    const std::uint8_t leaving = exits & (kBreak | kReturn);
    if (leaving == 0) return whole(step);
    builder_.open_if(none_of(leaving, inst.loc()), inst.loc());
    whole(step);
    builder_.close_if();
  }

  const unsigned max_chain_;
  LocalUses uses_;
  std::vector<std::uint8_t> exits_;  ///< by instruction: Exit bits
  std::vector<char> completes_;      ///< by region: whether its end may be reached
  std::vector<char> is_condition_;   ///< by region
  std::uint32_t returned_ = kNone;
  Loop loop_;
  Chain chain_{};
  unsigned depth_ = 0;       ///< rests around the present place, in all chains
  std::deque<Rest> rests_;   ///< a deque, because their addresses must stay valid
  std::vector<Id> defined_;  ///< values rebuilt in the chains around the present place that are not kept
};

}  // namespace

Module normalise(const Module& module, unsigned chain) {
  return for_each_body(module, [chain](const Module& body) { return Normaliser(body, chain).run(); });
}

}  // namespace weft::ir
