// Removes exits and step regions.
#include <algorithm>
#include <utility>

#include "../support/error.h"
#include "passes.h"
#include "rewrite.h"

namespace weft::ir {
namespace {

/// Where control may go from inside an instruction, other than to the next one.
enum Exit : std::uint8_t { kBreak = 1, kContinue = 2, kReturn = 4 };

class Normaliser : Rewriter {
 public:
  explicit Normaliser(const Module& from)
      : Rewriter(from),
        uses_(from),
        exits_(from.insts.size(), 0),
        completes_(from.regions.size(), 1),
        is_condition_(from.regions.size(), 0) {}

  Module run() {
    out_.locals = from_.locals;
    if (survey(0) & kReturn) returned_ = new_flag(from_.loc);
    sequence(0, 0, nullptr);
    return sweep_body(out_);
  }

 private:
  /// What is to run after a region: the rest of another, and so on. Lives on the stack of the walk.
  struct Rest {
    RegionId region;
    std::size_t next;
    const Rest* after;
  };

  /// The flags of the loop whose body is being rebuilt.
  struct Loop {
    std::uint32_t stop = kNone;  ///< the loop is to end
    std::uint32_t skip = kNone;  ///< the iteration is to end
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
      if (exits & exit) taken = builder_.pure(Op::bit_or, Type::b1, {taken, builder_.local_get(flag, loc)}, loc);
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

  /// Rebuilds a region from its instruction `next` on, then what comes after it.
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
      const Rest rest{region, next, after};
      switch (inst.op) {
        case Op::break_: return set(loop_.stop, true, inst.loc());
        case Op::continue_: return set(loop_.skip, true, inst.loc());
        case Op::return_: return set(returned_, true, inst.loc());
        case Op::param: break;  // mapped when the loop is opened
        case Op::yield:
          if (!is_condition_[region]) copy(id);
          return;
        case Op::local_get: map(id, builder_.local_get(static_cast<std::uint32_t>(inst.imm), inst.loc())); break;
        case Op::local_set:
          builder_.local_set(static_cast<std::uint32_t>(inst.imm), value(from_.arg(id, 0)), inst.loc());
          break;
        case Op::if_:
          if (branch(id, rest)) return;
          break;
        case Op::loop:
          loop(id);
          if (exits_[id] & kReturn) return guarded(kReturn, rest, inst.loc());
          break;
        default: copy(id);
      }
    }
  }

  void guarded(std::uint8_t exits, const Rest& rest, Loc loc) {
    if (empty(from_, &rest)) return;
    builder_.open_if(none_of(exits, loc), loc);
    sequence(rest.region, rest.next, rest.after);
    builder_.close_if();
  }

  /// Returns whether the rest has been rebuilt too.
  bool branch(Id id, const Rest& rest) {
    const Inst& inst = from_[id];
    const bool go_on[2] = {completes(inst.regions[0]), completes(inst.regions[1])};
    // Where one side always leaves, the rest belongs to the other side and needs no flag.
    const bool split = exits_[id] != 0 && !(go_on[0] && go_on[1]);
    const Rest* after = split && !empty(from_, &rest) ? &rest : nullptr;
    builder_.open_if(value(from_.arg(id, 0)), inst.loc());
    sequence(inst.regions[0], 0, go_on[0] ? after : nullptr);
    if (inst.regions[1] != kNone) {
      builder_.open_else();
      sequence(inst.regions[1], 0, go_on[1] ? after : nullptr);
    } else if (after != nullptr) {
      builder_.open_else();
      sequence(after->region, after->next, after->after);
    }
    map(id, builder_.close_if());
    if (split) return true;
    if (exits_[id] == 0) return false;
    guarded(exits_[id], rest, inst.loc());
    return true;
  }

  /// May the condition be computed again after a break? It must not read memory that the break guarded, nor run code.
  bool is_plain(RegionId condition) const {
    return std::ranges::all_of(from_.regions[condition].insts, [&](Id id) {
      const Op op = from_[id].op;
      return op == Op::yield || op == Op::local_get || info(op).effect == Effect::pure;
    });
  }

  /// Rebuilds the condition region without its yield and returns the condition.
  Id condition(Id id) {
    const RegionId region = from_[id].regions[0];
    sequence(region, 0, nullptr);
    return value(from_.arg(from_.regions[region].insts.back(), 0));
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
    const std::span<const Id> given = values(id);
    const std::vector<Id> initial(given.begin(), given.end());
    open_loop(id, initial);
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
    if (step == kNone) return sequence(inst.regions[1], 0, nullptr);
    const Rest rest{step, 0, nullptr};
    if (!(exits & kContinue)) return sequence(inst.regions[1], 0, &rest);
    // The step runs after a continue too, but not after a break.
    sequence(inst.regions[1], 0, nullptr);
    if (const std::uint8_t leaving = exits & (kBreak | kReturn)) return guarded(leaving, rest, inst.loc());
    sequence(step, 0, nullptr);
  }

  LocalUses uses_;
  std::vector<std::uint8_t> exits_;  ///< by instruction: Exit bits
  std::vector<char> completes_;      ///< by region: may its end be reached?
  std::vector<char> is_condition_;   ///< by region
  std::uint32_t returned_ = kNone;
  Loop loop_;
};

}  // namespace

Module normalise(const Module& module) {
  return for_each_body(module, [](const Module& body) { return Normaliser(body).run(); });
}

}  // namespace weft::ir
