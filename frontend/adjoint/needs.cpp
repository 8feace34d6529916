// The choice of the values, stores, branches and loops of a kernel that its adjoint runs again, and of the way in which
// loops are reversed.
//
// A value is marked for each kind of copy of its region that computes it. If a branch or loop that is run through, or a
// step of a loop, needs a value from outside, that is marked for all kinds: such a copy may be part of any copy of the
// region around it.
#include <algorithm>

#include "analysis.h"
#include "rules.h"

namespace weft::ir {

bool Analysis::passes_gradient(Id id, int k) const {
  return is_differentiable(module_, id, k) && active(module_.arg(id, k));
}

std::uint8_t Analysis::derivative_uses_of(Id id) const {
  std::uint8_t uses = 0;
  for (int k = 0; k < static_cast<int>(module_[id].num_args); ++k)
    if (passes_gradient(id, k)) uses |= derivative_uses(module_[id].op, k);
  return uses;
}

void Analysis::need_for_reverse() {
  for (Id id : order_) {
    const Inst& inst = module_[id];
    if (is_memory(inst.op) && ((inst.op == Op::load && active(id)) || is_gradient_store(id))) {
      operand(id, module_.arg(id, 0), kAdjointCopy);
      operand(id, module_.arg(id, 1), kAdjointCopy);
      if (is_extremum(id)) operand(id, module_.arg(id, 2), kAdjointCopy);
    } else if (inst.op == Op::if_ && reverses_[id]) {
      operand(id, module_.arg(id, 0), kAdjointCopy);
    } else if (inst.op == Op::call && reverses_[id]) {
      for (Id arg : module_.args(id)) operand(id, arg, kAdjointCopy);
      need_memory(id);
    } else if (active(id) && inst.op != Op::result && inst.op != Op::param && inst.op != Op::load) {
      const std::uint8_t uses = derivative_uses_of(id);
      for (int k = 0; k < 3; ++k)
        if (uses >> k & 1) operand(id, module_.arg(id, k), kAdjointCopy);
      if (uses & kUseResult) mark(id, kAdjointCopy);
    }
  }
  // The trips of a loop of the plain form are computed from its counter and bound; other loops are run to count them.
  for (Id id : order_) {
    if (module_[id].op != Op::loop || !reverses_[id]) continue;
    if (const auto trips = find_trips(id)) {
      operand(id, module_.arg(id, static_cast<int>(trips->param)), kAdjointCopy);
      operand(id, trips->bound, kAdjointCopy);
    } else {
      run(id);
    }
  }
  while (!work_.empty()) {
    const auto [id, copies] = work_.back();
    work_.pop_back();
    follow(id, copies);
  }
}

void Analysis::mark(Id id, std::uint8_t copies) {
  const std::uint8_t fresh = copies & ~needed_[id];
  if (fresh == 0) return;
  needed_[id] |= fresh;
  if (!is_global(module_[id].op)) work_.emplace_back(id, fresh);
}

void Analysis::operand(Id user, Id value, std::uint8_t copies) {
  if (owner_[value] != owner_[user] && (copies & (kStepCopy | kRunCopy)) != 0) copies = kAllCopies;
  mark(value, copies);
}

void Analysis::follow(Id id, std::uint8_t copies) {
  const Inst& inst = module_[id];
  switch (inst.op) {
    case Op::param: {
      const Id loop = owner_[id];
      const auto k = static_cast<std::uint32_t>(inst.imm);
      const Id next = yielded(module_[loop].regions[1], k), first = module_.arg(loop, static_cast<int>(k));
      if (copies & (kAdjointCopy | kStepCopy)) {
        mark(id, kStepCopy);
        operand(loop, first, kAdjointCopy);
        operand(id, next, kStepCopy);
      }
      if (copies & kRunCopy) {
        mark(first, kAllCopies);
        operand(id, next, kRunCopy);
      }
      return;
    }
    case Op::result: {
      const Id source = module_.arg(id, 0);
      const auto k = static_cast<std::uint32_t>(inst.imm);
      const Inst& from = module_[source];
      if (from.op != Op::if_ && from.op != Op::loop) return operand(id, source, copies);
      run(source);
      if (from.op == Op::if_) {
        for (int r = 0; r < 2; ++r) operand(yield_of(from.regions[r]), yielded(from.regions[r], k), kRunCopy);
      } else {
        mark(param(source, k), kRunCopy);
      }
      return;
    }
    default: break;
  }
  if (is_atomic(inst.op))
    refuse(id,
           "the adjoint needs the value that an atomic operation returns, and running it again gives another: put "
           "it into a func() with replay()");
  if (inst.op == Op::call) check_runs_again(id);
  need_memory(id);
  for (Id arg : module_.args(id)) operand(id, arg, copies);
}

/// Makes sure that the memory which the load or call reads holds the same elements again.
void Analysis::need_memory(Id id) {
  if (module_[id].op != Op::load && module_[id].op != Op::call) return;
  if (held_reads_[id] && held_changes_)
    refuse(id,
           "the adjoint needs a value that is read here from an array that an element of another array holds, and the "
           "kernel changes such arrays: which value stood there is not known; pass the array as an argument");
  for (std::uint32_t group : loaded_groups_[id]) {
    for (std::size_t k = 0; k < arrays_.size(); ++k)
      if (arrays_[k].group == group && arrays_[k].atomic)
        refuse(id, "the adjoint needs a value that is read here from " + module_.params[k].name +
                       ", which atomic operations of the same kernel change: it depends on the order of the threads");
    replay(group);
  }
}

void Analysis::run(Id control) {
  if (runs_[control]) return;
  runs_[control] = 1;
  const Inst& inst = module_[control];
  if (inst.op == Op::if_) {
    mark(module_.arg(control, 0), kAllCopies);
  } else {
    operand(yield_of(inst.regions[0]), yielded(inst.regions[0], 0), kRunCopy);
  }
}

// Marks all stores to the arrays of a group as made again, because loads of these arrays are needed.
void Analysis::replay(std::uint32_t group) {
  if (replayed_groups_[group]) return;
  replayed_groups_[group] = 1;
  for (Id id : order_) {
    if (module_[id].op != Op::store) continue;
    const Root at = root(module_.arg(id, 0));
    if (at.kind != Root::array || arrays_[at.param].group != group) continue;
    replays_[id] = 1;
    for (Id arg : module_.args(id)) mark(arg, kAllCopies);
    for (Id control = owner_[id]; control != kNone; control = owner_[control]) {
      replays_[control] = 1;
      run(control);
    }
  }
}

// ---- Loops

std::optional<std::uint64_t> Analysis::constant_step(Id loop, std::uint32_t k) const {
  const Id p = param(loop, k);
  const Inst& next = module_[yielded(module_[loop].regions[1], k)];
  const Type type = module_[p].type;
  if (!is_int(type) || bits(type) < 32 || next.op != Op::add || next.num_args != 2) return std::nullopt;
  const Id a = module_.operands[next.first_arg], b = module_.operands[next.first_arg + 1];
  if (a == p && module_[b].op == Op::constant) return module_[b].imm;
  if (b == p && module_[a].op == Op::constant) return module_[a].imm;
  return std::nullopt;
}

namespace {
std::int64_t number_of(Type type, std::uint64_t imm) {
  const auto word = static_cast<std::uint32_t>(imm);
  return type == Type::i32 ? std::int64_t(static_cast<std::int32_t>(word)) : std::int64_t(word);
}
}  // namespace

// The trips between constant ends; nothing if an end is not constant, or the counter would leave the range of its type.
std::optional<std::uint32_t> Analysis::constant_trips(Id loop, const ClosedTrips& closed) const {
  const Inst &first = module_[module_.arg(loop, static_cast<int>(closed.param))], &bound = module_[closed.bound];
  if (first.op != Op::constant || bound.op != Op::constant) return std::nullopt;
  const Type type = first.type;
  const std::int64_t from = number_of(type, first.imm), step = number_of(type, *constant_step(loop, closed.param));
  const std::int64_t way = (number_of(type, bound.imm) - from) * (step < 0 ? -1 : 1), stride = std::abs(step);
  const std::int64_t trips = way > 0 ? (way + stride - 1) / stride : 0, last = from + trips * step;
  if (number_of(type, static_cast<std::uint64_t>(last)) != last) return std::nullopt;
  return static_cast<std::uint32_t>(trips);
}

std::optional<ClosedTrips> Analysis::find_trips(Id loop) const {
  const Inst& inst = module_[loop];
  const Id condition = yielded(inst.regions[0], 0);
  const Inst& test = module_[condition];
  if (test.op != Op::lt && test.op != Op::le) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const Id counter = module_.arg(condition, side), bound = module_.arg(condition, 1 - side);
    const Inst& p = module_[counter];
    if (p.op != Op::param || owner_[counter] != loop || (p.type != Type::i32 && p.type != Type::u32)) continue;
    if (owner_[bound] == loop && !is_global(module_[bound].op)) continue;
    const auto k = static_cast<std::uint32_t>(p.imm);
    const auto step = constant_step(loop, k);
    if (!step || *step == 0) continue;
    const bool down = p.type == Type::i32 && (*step >> 31 & 1) != 0;
    // The counter must be below the bound if it goes up, and above it if it goes down. Inclusive bounds are left out,
    // because one may be the last number of the type, and then the loop never ends.
    if (down != (side == 1) || test.op == Op::le) continue;
    // A step down of an unsigned counter is a huge step up, past the last number.
    if (p.type == Type::u32 && (*step >> 31 & 1) != 0) continue;
    const ClosedTrips trips{k, bound};
    // A longer step may pass the bound and the last number of the type at once, and then the loop goes on.
    if (number_of(p.type, *step) != 1 && number_of(p.type, *step) != -1 && !constant_trips(loop, trips)) continue;
    return trips;
  }
  return std::nullopt;
}

void Analysis::find_plans() {
  for (Id id : order_) {
    if (module_[id].op != Op::loop) continue;
    LoopPlan& plan = plans_[id];
    plan.trips = find_trips(id);
    plan.replays_stores = replays_[id];
    for (std::uint32_t k = 0; k < module_[id].num_args; ++k) {
      if ((needed_[param(id, k)] & (kAdjointCopy | kStepCopy)) == 0) continue;
      if (const auto step = constant_step(id, k))
        plan.affine.emplace_back(k, *step);
      else
        plan.state.push_back(k);
    }
    if (reverses_[id] && !plan.is_direct()) has_slots_ = true;
  }
  for (Id id : order_)
    if (module_[id].op == Op::store && replays_[id] && owner_[id] != kNone) has_log_ = true;
}

// A small size counts as certain, because it wastes little memory even if threads need less.
std::optional<LogSize> Analysis::log_entries() const {
  constexpr std::uint32_t kLittle = 64;
  std::optional<LogSize> size = stores_in(0, false);
  if (size && size->most <= kLittle) size->certain = true;
  return size;
}

std::optional<LogSize> Analysis::stores_in(RegionId region, bool nested) const {
  LogSize sum;
  for (Id id : module_.regions[region].insts) {
    const Inst& inst = module_[id];
    if (!replays_[id]) continue;
    std::uint64_t n = 0;
    if (inst.op == Op::store) {
      n = nested ? inst.width : 0;
    } else if (inst.op == Op::loop) {
      const auto closed = find_trips(id);
      const auto trips = closed ? constant_trips(id, *closed) : std::nullopt;
      const auto test = stores_in(inst.regions[0], true), body = stores_in(inst.regions[1], true);
      if (!trips || !test || test->most || !body) return std::nullopt;
      n = std::uint64_t(*trips) * body->most;
      sum.certain = sum.certain && body->certain && body->even;
      sum.loops = true;
    } else {
      LogSize sides[2];
      for (int k = 0; k < 2; ++k) {
        const RegionId inner = inst.regions[std::size_t(k)];
        const auto side = inner == kNone ? std::optional(LogSize{}) : stores_in(inner, true);
        if (!side) return std::nullopt;
        sides[k] = *side;
      }
      n = std::max(sides[0].most, sides[1].most);
      const bool loops = sides[0].loops || sides[1].loops;
      sum.loops = sum.loops || loops;
      const bool even = sides[0].even && sides[1].even && sides[0].most == sides[1].most;
      sum.even = sum.even && even;
      sum.certain = sum.certain && sides[0].certain && sides[1].certain && (even || !loops);
    }
    n += sum.most;
    if (n >= kNone) return std::nullopt;
    sum.most = static_cast<std::uint32_t>(n);
  }
  return sum;
}

std::uint64_t real_arrays(const Module& kernel) {
  std::uint64_t found = 0;
  const auto look = [&](const Module& body) {
    for (const Inst& inst : body.insts) {
      if (!is_memory(inst.op) || !is_float(inst.type)) continue;
      std::vector<Id> work{body.operands[inst.first_arg]};
      while (!work.empty()) {
        const Id at = work.back();
        work.pop_back();
        if (const Param* param = body.array_of(at)) {
          found |= 1ull << (param - body.params.data());
        } else if (body[at].op == Op::param && &body != &kernel) {
          // The address is a function's input, so it may be that of any array of the kernel.
          for (std::size_t k = 0; k < kernel.params.size(); ++k)
            if (kernel.params[k].kind == Param::Kind::array) found |= 1ull << k;
        } else if (bits(body[at].type) == 64) {
          for (Id arg : body.args(at)) work.push_back(arg);
        }
      }
    }
  };
  look(kernel);
  for (const auto& function : kernel.functions) look(*function);
  return found;
}

}  // namespace weft::ir
