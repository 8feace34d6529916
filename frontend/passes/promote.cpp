// Turns locals into results of branches and values carried by loops.
#include <algorithm>

#include "../support/error.h"
#include "passes.h"
#include "rewrite.h"

namespace weft::ir {
namespace {

class Promoter : Rewriter {
 public:
  explicit Promoter(const Module& from)
      : Rewriter(from), uses_(from), now_(from.locals.size(), kNone), seen_(from.locals.size(), 0) {}

  Module run() {
    region(0);
    if (!from_.outputs().empty()) builder_.yield(handed_on(0, {}));
    return forward_body(sweep_body(out_));
  }

 private:
  using Locals = std::vector<std::uint32_t>;

  Id now(std::uint32_t local) {
    if (now_[local] == kNone) return builder_.constant(from_.locals[local].type, 0);
    return now_[local];
  }

  /// The locals that a branch or loop assigns, each once.
  Locals assigned(const Inst& inst) {
    Locals locals;
    for (std::uint32_t local : uses_.sets(inst)) {
      if (!seen_[local]) locals.push_back(local);
      seen_[local] = 1;
    }
    for (std::uint32_t local : locals) seen_[local] = 0;
    return locals;
  }

  void region(RegionId id) {
    for (Id inst : from_.regions[id].insts) instruction(inst);
  }

  void instruction(Id id) {
    const Inst& inst = from_[id];
    const auto local = static_cast<std::uint32_t>(inst.imm);
    switch (inst.op) {
      case Op::param:
      case Op::yield: return;  // the branch or loop that it belongs to handles it
      case Op::local_get: return map(id, now(local));
      case Op::local_set: now_[local] = value(from_.arg(id, 0)); return;
      case Op::if_: return branch(id);
      case Op::loop: return loop(id);
      case Op::break_:
      case Op::continue_:
      case Op::return_: internal_error("promote() takes modules without exits", inst.loc());
      default: copy(id);
    }
  }

  /// The values that a region passes on: those that it yields already, then the present ones of the locals.
  std::vector<Id> handed_on(RegionId region, const Locals& locals) {
    std::vector<Id> all;
    if (region != kNone && !from_.regions[region].insts.empty()) {
      const Id last = from_.regions[region].insts.back();
      if (from_[last].op == Op::yield) {
        const std::span<const Id> args = values(last);
        all.assign(args.begin(), args.end());
      }
    }
    for (std::uint32_t local : locals) all.push_back(now(local));
    return all;
  }

  void branch(Id id) {
    const Inst& inst = from_[id];
    if (const int k = taken(id); k >= 0) {
      if (inst.regions[k] == kNone) return;
      region(inst.regions[k]);
      if (has_results(id)) inline_results(id, handed_on(inst.regions[k], {}));
      return;
    }
    const Locals locals = assigned(inst);
    const std::vector<Id> before = keep(locals);
    std::vector<Id> ends[2];
    builder_.open_if(value(from_.arg(id, 0)), inst.loc());
    for (int k = 0; k < 2; ++k) {
      if (k == 1) builder_.open_else();
      if (inst.regions[k] != kNone) region(inst.regions[k]);
      ends[k] = handed_on(inst.regions[k], locals);
      if (!ends[k].empty()) builder_.yield(ends[k]);
      for (std::size_t i = 0; i < locals.size(); ++i) now_[locals[i]] = before[i];
    }
    const Id made = builder_.close_if();
    map(id, made);
    const std::size_t own = ends[0].size() - locals.size();
    for (std::size_t i = 0; i < locals.size(); ++i) {
      const std::size_t k = own + i;
      const Type type = from_.locals[locals[i]].type;
      now_[locals[i]] =
          ends[0][k] == ends[1][k] ? ends[0][k] : builder_.result(made, static_cast<std::uint32_t>(k), type);
    }
  }

  std::vector<Id> keep(const Locals& locals) const {
    std::vector<Id> values;
    for (std::uint32_t local : locals) values.push_back(now_[local]);
    return values;
  }

  void loop(Id id) {
    const Inst& inst = from_[id];
    if (inst.regions[2] != kNone) internal_error("promote() takes loops without step regions", inst.loc());
    // A loop that ends passes on only the values at the start of an iteration.
    if (uses_.escapes_condition(id)) internal_error("promote() takes what normalise() returns", inst.loc());
    const Locals locals = assigned(inst);
    const std::span<const Id> given = values(id);
    std::vector<Id> initial(given.begin(), given.end());
    for (std::uint32_t local : locals) initial.push_back(now(local));
    open_loop(id, initial);
    for (std::size_t i = 0; i < locals.size(); ++i) {
      now_[locals[i]] = builder_.loop_param(inst.num_args + static_cast<std::uint32_t>(i));
    }
    region(inst.regions[0]);
    builder_.loop_body(value(from_.arg(from_.regions[inst.regions[0]].insts.back(), 0)));
    region(inst.regions[1]);
    if (const std::vector<Id> next = handed_on(inst.regions[1], locals); !next.empty()) builder_.yield(next);
    const Id made = builder_.close_loop();
    map(id, made);
    for (std::size_t i = 0; i < locals.size(); ++i) {
      const auto k = inst.num_args + static_cast<std::uint32_t>(i);
      now_[locals[i]] = builder_.result(made, k, from_.locals[locals[i]].type);
    }
  }

  LocalUses uses_;
  std::vector<Id> now_;  ///< by local: its present value; kNone before the first assignment
  std::vector<char> seen_;
};

}  // namespace

Module promote(const Module& module) {
  return for_each_body(module, [](const Module& body) { return Promoter(body).run(); });
}

}  // namespace weft::ir
