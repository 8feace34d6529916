// Proves where all threads of a workgroup or subgroup come together, and refuses operations that need this elsewhere.
#include "uniformity.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "passes.h"

namespace weft::ir {
namespace {

/// The threads that are certain to agree on a value, or on being at a place.
enum Agreement : std::uint8_t { kWorkgroup, kSubgroup, kNobody };

struct Level {
  Agreement agreement = kWorkgroup;
  Loc cause;  ///< the condition on which threads may part
};

/// A fixed point over the tree of regions: levels only fall, from the whole workgroup to the single thread. The level
/// of a value follows from its operands, that of a local from all its assignments and their places, that of a place
/// from the conditions around it and the exits taken before it. Failures do not count: where threads meet, a failed one
/// goes on (outlive_failures), and leaves no loop that the others run in step.
class Uniformity {
 public:
  explicit Uniformity(const Module& module)
      : module_(module),
        values_(module.insts.size(), kWorkgroup),
        locals_(module.locals.size()),
        loops_(module.insts.size()) {
    for (Id id = 0; id < module.insts.size(); ++id) values_[id] = source(module[id].op);
  }

  void run() {
    settle();
    checks_ = true;
    walk();
  }

  Id first_in_subgroup_flow() {
    settle();
    first_ = kNone;
    walk();
    return first_;
  }

  std::vector<char> failures_that_part() {
    settle();
    parts_.assign(module_.insts.size(), 0);
    walk();
    return std::move(parts_);
  }

 private:
  void settle() {
    do {
      changed_ = false;
      walk();
    } while (changed_);
  }

  static Agreement source(Op op) {
    switch (info(op).spread) {
      case Spread::number: return kNobody;
      case Spread::subgroup: return kSubgroup;
      default: return kWorkgroup;
    }
  }

  static Level lower(Level a, const Level& b) { return b.agreement > a.agreement ? b : a; }

  void lower_to(Level& level, const Level& by) {
    if (by.agreement <= level.agreement) return;
    level = by;
    changed_ = true;
  }

  void set(Id id, Agreement agreement) {
    if (agreement <= values_[id]) return;
    values_[id] = agreement;
    changed_ = true;
  }

  void walk() {
    returned_ = skipped_ = {};
    open_.clear();
    region(0, {});
  }

  Agreement operands(Id id) const {
    Agreement all = kWorkgroup;
    for (Id arg : module_.args(id)) all = std::max(all, values_[arg]);
    return all;
  }

  void region(RegionId id, const Level& around) {
    for (Id inst : module_.regions[id].insts) instruction(inst, lower(lower(around, returned_), skipped_));
  }

  void instruction(Id id, const Level& here) {
    const Inst& inst = module_[id];
    switch (inst.op) {
      case Op::local_get: return set(id, locals_[inst.imm].agreement);
      case Op::local_set: return lower_to(locals_[inst.imm], lower(here, {operands(id), inst.loc()}));
      case Op::if_: return branch(id, here);
      case Op::loop: return loop(id, here);
      case Op::break_: return lower_to(loops_[open_.back()], here);
      case Op::continue_: skipped_ = lower(skipped_, here); return;
      case Op::return_:
        if (inst.imm == 1) return failure(id, here);
        returned_ = lower(returned_, here);
        for (Id outer : open_) lower_to(loops_[outer], here);
        return;
      case Op::param: {
        if (open_.empty()) return set(id, kNobody);  // a function's input: its callers decide
        const Id carrier = open_.back();
        const Id next = module_.regions[module_[carrier].regions[1]].insts.back();
        const int k = static_cast<int>(inst.imm);
        return set(
            id, std::max({values_[module_.arg(carrier, k)], values_[module_.arg(next, k)], loops_[carrier].agreement}));
      }
      case Op::barrier:
        if (here.agreement != kWorkgroup) refuse(id, "barrier()", "workgroup", here);
        return;
      default: break;
    }
    if (is_subgroup(inst.op)) together(id, here);
    set(id, computed(id));
  }

  /// The agreement on what an operation without regions computes.
  Agreement computed(Id id) const {
    switch (info(module_[id].op).spread) {
      case Spread::pooled: return std::min(kSubgroup, operands(id));
      case Spread::exchanged:
      case Spread::memory:
      case Spread::thread: return kNobody;
      default: return operands(id);
    }
  }

  void branch(Id id, const Level& here) {
    const Inst& inst = module_[id];
    const Level inner = lower(here, {values_[module_.arg(id, 0)], inst.loc()});
    Agreement results = values_[module_.arg(id, 0)];
    for (RegionId r : inst.regions) {
      if (r == kNone) continue;
      region(r, inner);
      const std::vector<Id>& insts = module_.regions[r].insts;
      if (!insts.empty() && module_[insts.back()].op == Op::yield) results = std::max(results, operands(insts.back()));
    }
    set(id, results);
  }

  void loop(Id id, const Level& here) {
    const Inst& inst = module_[id];
    const Level outer = skipped_;
    skipped_ = {};
    open_.push_back(id);
    region(inst.regions[0], lower(here, loops_[id]));
    const std::vector<Id>& condition = module_.regions[inst.regions[0]].insts;
    lower_to(loops_[id], {but_for_failures(module_.arg(condition.back(), 0)), inst.loc()});
    for (Id get : condition)
      if (is_failure(get)) failure(get, locals_[module_[get].imm]);
    region(inst.regions[1], lower(here, loops_[id]));
    // Threads that continued early are back with the others here.
    skipped_ = {};
    if (inst.regions[2] != kNone) region(inst.regions[2], lower(here, loops_[id]));
    open_.pop_back();
    skipped_ = outer;
    Agreement results = loops_[id].agreement;
    for (std::uint32_t k = 0; k < inst.num_args; ++k)
      results = std::max(results, values_[module_.regions[inst.regions[0]].insts[k]]);
    set(id, results);
  }

  /// Whether it reads a local that remembers a failure.
  bool is_failure(Id id) const { return module_[id].op == Op::local_get && module_.locals[module_[id].imm].failure; }

  /// The agreement on a loop's condition without its test whether the thread has failed (unless_stopped).
  Agreement but_for_failures(Id condition) const {
    const auto asks = [&](Id id) { return module_[id].op == Op::bit_not && is_failure(module_.arg(id, 0)); };
    if (asks(condition)) return kWorkgroup;
    if (module_[condition].op != Op::bit_and) return values_[condition];
    Agreement all = kWorkgroup;
    for (Id part : module_.args(condition))
      if (!asks(part)) all = std::max(all, values_[part]);
    return all;
  }

  /// Notes a failure in the innermost loop, on which threads agree so far.
  void failure(Id id, const Level& on) {
    if (!parts_.empty() && !open_.empty()) parts_[id] = on.agreement > loops_[open_.back()].agreement;
  }

  void together(Id id, const Level& here) {
    const Inst& inst = module_[id];
    if (here.agreement == kNobody) refuse(id, "an operation of subgroups", "subgroup", here);
    if (here.agreement != kWorkgroup && first_ == kNone) first_ = id;
    if (checks_ && inst.op == Op::subgroup_broadcast && values_[module_.arg(id, 1)] == kNobody)
      fail(module_, inst.loc(),
           "subgroup_broadcast() takes a lane that is the same in the whole subgroup; subgroup_shuffle() takes any");
  }

  void refuse(Id id, const char* what, const char* group, const Level& here) const {
    if (!checks_) return;
    std::string_view file = here.cause.file ? here.cause.file : "?";
    if (auto slash = file.find_last_of("/\\"); slash != file.npos) file.remove_prefix(slash + 1);
    fail(
        module_, module_[id].loc(),
        fmt::format("{} stands where not every thread of the {} may come: the condition at {}:{} can differ among them",
                    what, group, file, here.cause.line));
  }

  const Module& module_;
  std::vector<Agreement> values_;
  std::vector<Level> locals_;
  std::vector<Level> loops_;  ///< by loop: the threads that run the same iterations
  std::vector<Id> open_;      ///< loops around the present place
  Level returned_;            ///< after the exits passed so far
  Level skipped_;             ///< after a `continue` in this iteration
  std::vector<char> parts_;   ///< see failures_that_part; empty if not requested
  Id first_ = kNone;          ///< first subgroup operation that the whole workgroup may not reach
  bool changed_ = false, checks_ = false;
};

}  // namespace

bool needs_agreement(const Module& module) {
  return std::any_of(module.insts.begin(), module.insts.end(),
                     [](const Inst& inst) { return inst.op == Op::barrier || is_subgroup(inst.op); });
}

std::vector<char> failures_that_part(const Module& module) { return Uniformity(module).failures_that_part(); }

void check_uniform(const Module& module) {
  if (needs_agreement(module)) Uniformity(module).run();
}

Id first_in_subgroup_flow(const Module& module) { return Uniformity(module).first_in_subgroup_flow(); }

}  // namespace weft::ir
