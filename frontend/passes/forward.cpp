// Puts known values in place of reads of locals.
#include <utility>

#include "passes.h"
#include "rewrite.h"

namespace weft::ir {
namespace {

class Forwarder : Rewriter {
 public:
  explicit Forwarder(const Module& from)
      : Rewriter(from), uses_(from), known_(from.locals.size(), kNone), pending_(from.locals.size()) {}

  Module run() {
    out_.locals = from_.locals;
    region(0);
    dropped_.resize(out_.insts.size(), 0);
    return sweep_body(out_, dropped_);
  }

 private:
  // ---- What is known

  /// What becomes known inside a region is forgotten at its end: rollback(mark()).
  std::size_t mark() const { return log_.size(); }

  void learn(std::uint32_t local, Id value) {
    log_.emplace_back(local, known_[local]);
    known_[local] = value;
  }

  void rollback(std::size_t mark) {
    for (; log_.size() > mark; log_.pop_back()) known_[log_.back().first] = log_.back().second;
  }

  void forget(std::span<const std::uint32_t> locals) {
    for (std::uint32_t local : locals) {
      if (known_[local] != kNone) learn(local, kNone);
    }
  }

  // ---- The walk

  /// Returns whether it ended by an exit: what follows cannot run.
  bool region(RegionId id) {
    for (Id inst : from_.regions[id].insts) {
      if (instruction(inst)) return true;
    }
    return false;
  }

  bool instruction(Id id) {
    const Inst& inst = from_[id];
    const auto local = static_cast<std::uint32_t>(inst.imm);
    switch (inst.op) {
      case Op::param: return false;  // mapped when the loop is opened
      case Op::local_get:
        if (known_[local] == kNone) learn(local, builder_.local_get(local, inst.loc()));
        map(id, known_[local]);
        return false;
      case Op::local_set: assign(id, local); return false;
      case Op::break_:
      case Op::continue_:
      case Op::return_: builder_.leave(inst.op, inst.loc(), inst.imm); return true;
      case Op::if_: return branch(id);
      case Op::loop: loop(id); return false;
      default: copy(id); return false;
    }
  }

  void assign(Id id, std::uint32_t local) {
    const Id value = this->value(from_.arg(id, 0));
    // Assigning what it holds changes nothing.
    if (known_[local] == value) return;
    Pending& pending = pending_[local];
    if (pending.set != kNone && pending.stretch == stretch_) {
      dropped_.resize(out_.insts.size(), 0);
      dropped_[pending.set] = 1;
    }
    builder_.local_set(local, value, from_[id].loc());
    pending = {static_cast<Id>(out_.insts.size() - 1), stretch_};
    learn(local, value);
  }

  bool branch(Id id) {
    const Inst& inst = from_[id];
    if (const int k = taken(id); k >= 0) return inlined(id, k);
    ++stretch_;
    builder_.open_if(value(from_.arg(id, 0)), inst.loc());
    bool ended[2] = {false, false};
    for (int k = 0; k < 2; ++k) {
      if (inst.regions[k] == kNone) continue;
      if (k == 1) builder_.open_else();
      const std::size_t before = mark();
      ended[k] = region(inst.regions[k]);
      rollback(before);
      ++stretch_;
    }
    map(id, builder_.close_if());
    // What a region assigns before it leaves is not seen after the branch.
    for (int k = 0; k < 2; ++k) {
      if (!ended[k]) forget(uses_.sets(inst.regions[k]));
    }
    return ended[0] && ended[1];
  }

  /// A branch on a constant: the region taken becomes part of the present one.
  bool inlined(Id id, int k) {
    const RegionId region = from_[id].regions[k];
    if (region == kNone) return false;
    const bool results = has_results(id);
    for (Id inst : from_.regions[region].insts) {
      if (results && from_[inst].op == Op::yield) {
        const std::span<const Id> args = values(inst);
        inline_results(id, {args.begin(), args.end()});
      } else if (instruction(inst)) {
        return true;
      }
    }
    return false;
  }

  void loop(Id id) {
    const Inst& inst = from_[id];
    const std::span<const Id> given = values(id);
    const std::vector<Id> initial(given.begin(), given.end());
    ++stretch_;
    forget(uses_.sets(inst));
    const std::size_t before = mark();
    open_loop(id, initial);
    const std::vector<Id>& condition = from_.regions[inst.regions[0]].insts;
    for (std::size_t i = 0; i + 1 < condition.size(); ++i) instruction(condition[i]);
    ++stretch_;
    builder_.loop_body(value(from_.arg(condition.back(), 0)));
    const std::size_t checked = mark();
    region(inst.regions[1]);
    rollback(checked);
    ++stretch_;
    if (inst.regions[2] != kNone) {
      builder_.loop_step();
      forget(uses_.sets(inst.regions[1]));
      region(inst.regions[2]);
      ++stretch_;
    }
    map(id, builder_.close_loop());
    rollback(before);
  }

  /// The last assignment to a local, in the stretch of straight code in which it stands. Nothing has read it there:
  /// within the stretch its value is known.
  struct Pending {
    Id set = kNone;
    std::uint32_t stretch = 0;
  };

  LocalUses uses_;
  std::vector<Id> known_;  ///< by local: the new value that it holds
  std::vector<std::pair<std::uint32_t, Id>> log_;
  std::vector<Pending> pending_;
  std::vector<char> dropped_;  ///< by new instruction: assignments that were overwritten unread
  std::uint32_t stretch_ = 0;
};

}  // namespace

Module forward_body(const Module& module) { return Forwarder(module).run(); }

Module forward(const Module& module) {
  Module clean = for_each_body(module, forward_body);
  drop_unused_functions(clean);
  return clean;
}

}  // namespace weft::ir
