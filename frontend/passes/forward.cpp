// Replaces reads of locals by values that are known.
#include <algorithm>
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
    mark_accesses(out_, from_, kept_from_running_);
    dropped_.resize(out_.insts.size(), 0);
    return sweep_body(out_, dropped_);
  }

 private:
  // ---- What is known

  /// Facts that become known inside a region are forgotten at its end: rollback(mark()).
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

  /// How control leaves code: it falls through to what follows, or it does not.
  enum class End : std::uint8_t { none, exit, failure };

  End region(RegionId id) { return sequence(from_.regions[id].insts); }

  End sequence(std::span<const Id> insts) {
    for (std::size_t k = 0; k < insts.size(); ++k) {
      const End end = instruction(insts[k]);
      if (end == End::failure) keep_from_running(insts.subspan(k + 1));
      if (end != End::none) return end;
    }
    return End::none;
  }

  /// Notes code that is dropped because its thread is certain to fail, or because a check guards it.
  void keep_from_running(std::span<const Id> insts) {
    kept_from_running_.insert(kept_from_running_.end(), insts.begin(), insts.end());
  }

  End instruction(Id id) {
    const Inst& inst = from_[id];
    const auto local = static_cast<std::uint32_t>(inst.imm);
    switch (inst.op) {
      case Op::param: return End::none;  // mapped when the loop is opened
      case Op::local_get:
        if (known_[local] == kNone) learn(local, builder_.local_get(local, inst.loc()));
        map(id, known_[local]);
        return End::none;
      case Op::local_set: assign(id, local); return End::none;
      case Op::break_:
      case Op::continue_:
      case Op::return_:
        builder_.leave(inst.op, inst.loc(), inst.imm);
        return inst.op == Op::return_ && inst.imm == 1 ? End::failure : End::exit;
      case Op::if_: return branch(id);
      case Op::loop: loop(id); return End::none;
      default: copy(id); return End::none;
    }
  }

  void assign(Id id, std::uint32_t local) {
    const Id value = this->value(from_.arg(id, 0));
    // Assigning the value that it holds changes nothing.
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

  End branch(Id id) {
    const Inst& inst = from_[id];
    if (const int k = taken(id); k >= 0) return inlined(id, k);
    ++stretch_;
    builder_.open_if(value(from_.arg(id, 0)), inst.loc());
    End ends[2] = {End::none, End::none};
    for (int k = 0; k < 2; ++k) {
      if (inst.regions[k] == kNone) continue;
      if (k == 1) builder_.open_else();
      const std::size_t before = mark();
      ends[k] = region(inst.regions[k]);
      rollback(before);
      ++stretch_;
    }
    map(id, builder_.close_if());
    // Assignments of a region that leaves are not seen after the branch. A failing region is different: its thread may
    // go on (outlive_failures()), and what it would have assigned keeps alive the code after the branch, whose accesses
    // count.
    for (int k = 0; k < 2; ++k) {
      if (ends[k] != End::exit) forget(uses_.sets(inst.regions[k]));
    }
    return ends[0] == End::none || ends[1] == End::none ? End::none : std::max(ends[0], ends[1]);
  }

  /// Handles a branch on a constant: the region taken becomes part of the present one.
  End inlined(Id id, int k) {
    const RegionId region = from_[id].regions[k], other = from_[id].regions[1 - k];
    if (region == kNone) return End::none;
    std::span<const Id> insts = from_.regions[region].insts;
    Id results = kNone;
    if (has_results(id)) {
      results = insts.back();
      insts = insts.first(insts.size() - 1);
    }
    const End end = sequence(insts);
    // A check leaves the guarded code in its other branch.
    if (end == End::failure && other != kNone) keep_from_running(from_.regions[other].insts);
    if (end != End::none || results == kNone) return end;
    const std::span<const Id> args = values(results);
    inline_results(id, {args.begin(), args.end()});
    return End::none;
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

  /// The last assignment to a local in the present stretch of straight code. Nothing has read it there, because within
  /// the stretch its value is known.
  struct Pending {
    Id set = kNone;
    std::uint32_t stretch = 0;
  };

  LocalUses uses_;
  std::vector<Id> known_;  ///< by local: the new value that it holds
  std::vector<std::pair<std::uint32_t, Id>> log_;
  std::vector<Pending> pending_;
  std::vector<char> dropped_;  ///< by new instruction: assignments that were overwritten unread
  std::vector<Id> kept_from_running_;
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
