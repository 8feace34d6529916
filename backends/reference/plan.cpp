// Turns the tree of regions into a flat list of steps.
#include "plan.h"

#include <algorithm>
#include <limits>
#include <span>

#include "../../frontend/passes/passes.h"
#include "../../frontend/support/error.h"

namespace weft::backend {

namespace {

using ir::Id;
using ir::Inst;
using ir::kNone;
using ir::Op;
using ir::RegionId;
using ir::Type;
using Code = Step::Code;

/// Walks the regions in order. Traced and normal form are handled alike: results and carried values become slots into
/// which the yields move, so `result` and `param` cost nothing when the kernel runs.
class Planner {
 public:
  Planner(Plan& plan, const ir::Module& module, FusedTypes fused)
      : plan_(plan), module_(module), fused_(fused), slots_(module.insts.size(), kNone) {}

  void run() {
    plan_.thread_slot = new_slot();
    plan_.together = ir::group_use(module_).together;
    for (const ir::KernelArray& array : module_.arrays) {
      std::uint64_t& end = array.is_private ? plan_.private_bytes : plan_.shared_bytes;
      const std::uint64_t size = std::uint64_t{array.count} * ir::bytes(array.type);
      plan_.arrays.push_back({end, size, array.is_private, kNone});
      end += (size + 15) / 16 * 16;
    }
    for (Id id = 0; id < module_.insts.size(); ++id) place_global(id);
    plan_.num_locals = static_cast<std::uint32_t>(module_.locals.size());
    plan_.first_local = new_slots(plan_.num_locals);
    region(0);
    add({Code::end});
  }

 private:
  struct Loop {
    Slot carried;  ///< the first of the loop's carried values
    std::uint32_t num_carried;
    std::vector<std::size_t> breaks;     ///< steps that jump past the loop
    std::vector<std::size_t> continues;  ///< steps that jump to its step region
  };

  // ---- slots ----

  Slot new_slots(std::uint32_t count) {
    const auto first = static_cast<Slot>(plan_.initial.size());
    plan_.initial.resize(plan_.initial.size() + count);
    return first;
  }
  Slot new_slot() { return new_slots(1); }

  Slot define(Id id) { return slots_[id] = new_slot(); }
  Slot use(Id id) const {
    if (id >= slots_.size() || slots_[id] == kNone)
      internal_error("reference: a value is used where it is not visible");
    return slots_[id];
  }
  Slot operand(const Inst& inst, std::uint32_t k) const {
    if (k >= inst.num_args) internal_error("reference: an operation lacks an operand");
    return use(module_.operands[inst.first_arg + k]);
  }
  Type operand_type(const Inst& inst, std::uint32_t k) const {
    return module_.insts[module_.operands[inst.first_arg + k]].type;
  }
  Slot local(const Inst& inst) const {
    if (inst.imm >= plan_.num_locals) internal_error("reference: a local that does not exist");
    return plan_.first_local + static_cast<Slot>(inst.imm);
  }

  /// Values that are in no region are ready before the first step.
  void place_global(Id id) {
    const Inst& inst = module_.insts[id];
    if (inst.op == Op::constant) {
      plan_.initial[define(id)] = inst.imm & ir::mask(inst.type);
    } else if (inst.op == Op::arg) {
      if (inst.imm + static_cast<std::uint64_t>(ir::bytes(inst.type)) > module_.args_bytes) {
        internal_error("reference: a value lies outside the argument block");
      }
      plan_.arguments.push_back({define(id), static_cast<std::uint32_t>(inst.imm), inst.type});
    } else if (ir::is_global(inst.op)) {
      place_number(id, inst);
    }
  }

  void place_number(Id id, const Inst& inst) {
    switch (inst.op) {
      case Op::thread_id: slots_[id] = plan_.thread_slot; return;
      case Op::subgroup_size: plan_.initial[define(id)] = plan_.subgroup_size; return;
      case Op::local_id:
      case Op::workgroup_id:
      case Op::subgroup_lane:
      case Op::subgroup_id: plan_.numbers.push_back({inst.op, define(id)}); return;
      case Op::kernel_array:
        if (inst.imm >= plan_.arrays.size()) internal_error("reference: an array of the kernel that does not exist");
        plan_.arrays[inst.imm].slot = define(id);
        return;
      default: internal_error("reference: a value that is visible everywhere and unknown");
    }
  }

  // ---- steps ----

  std::size_t here() const { return plan_.steps.size(); }
  std::size_t add(const Step& step) {
    plan_.steps.push_back(step);
    return plan_.steps.size() - 1;
  }
  std::size_t jump() { return add({Code::jump}); }
  std::size_t jump_unless(Slot condition) { return add({Code::jump_unless, 0, condition}); }
  void land(std::size_t step) { plan_.steps[step].to = static_cast<std::uint32_t>(here()); }
  void move(Slot to, Slot from) {
    if (to != from) add({Code::move, to, from});
  }

  /// Assigns all at once, because a value may be the next value of another.
  void move_together(Slot first, std::span<const Id> values) {
    const auto count = static_cast<std::uint32_t>(values.size());
    std::vector<Slot> from(count);
    for (std::uint32_t k = 0; k < count; ++k) {
      from[k] = use(values[k]);
      if (from[k] >= first && from[k] < first + k) {
        const Slot copy = new_slot();
        move(copy, from[k]);
        from[k] = copy;
      }
    }
    for (std::uint32_t k = 0; k < count; ++k) move(first + k, from[k]);
  }

  // ---- regions ----

  /// Appends the region's steps; returns the operands of the yield that ends it, none when it ends otherwise.
  std::span<const Id> region(RegionId id) {
    for (const Id inst : module_.regions[id].insts) {
      if (module_.insts[inst].op == Op::yield) return module_.args(inst);
      instruction(inst);
    }
    return {};
  }

  void instruction(Id id) {
    const Inst& inst = module_.insts[id];
    if (ir::is_memory(inst.op)) return memory(id, inst);
    if (ir::is_global(inst.op)) return;
    switch (inst.op) {
      case Op::barrier: add({Code::barrier, 0, id}); return;
      case Op::trace_ray:
        throw Error(ErrorKind::unsupported, "the device lacks ray queries", module_.name,
                    inst.loc() ? inst.loc() : module_.loc);
      case Op::fence: return;  // threads run in turns
      case Op::running_lanes: plan_.initial[define(id)] = 1; return;
      case Op::subgroup_barrier:
      case Op::subgroup_reduce:
      case Op::subgroup_inclusive:
      case Op::subgroup_exclusive:
      case Op::subgroup_broadcast:
      case Op::subgroup_shuffle:
      case Op::subgroup_ballot: return collective(id, inst);
      case Op::local_get: return move(define(id), local(inst));
      case Op::local_set: return move(local(inst), operand(inst, 0));
      case Op::if_: return branch(id, inst);
      case Op::loop: return loop(id, inst);
      case Op::break_: return leave(&Loop::breaks);
      case Op::continue_: return leave(&Loop::continues);
      case Op::return_: add({Code::end}); return;
      case Op::call: internal_error("reference: a call that was not inlined");
      case Op::gradient_base:
      case Op::after_base: internal_error("reference: a state of an array that only an adjoint knows");
      case Op::param:
        if (loops_.empty() || inst.imm >= loops_.back().num_carried) internal_error("reference: a stray param");
        slots_[id] = loops_.back().carried + static_cast<Slot>(inst.imm);
        return;
      case Op::result:
        // The parts of a wide load, the results of an if_ and the carried values of a loop lie side by side.
        slots_[id] = operand(inst, 0) + static_cast<Slot>(inst.imm);
        return;
      default: return pure(id, inst);
    }
  }

  void pure(Id id, const Inst& inst) {
    if (inst.num_args == 0 || inst.num_args > 3) internal_error("reference: an operation with a wrong arity");
    // The condition of `select` has another type than the one that the operation works on.
    const Type type = operand_type(inst, inst.op == Op::select ? 1 : 0);
    Step step{Code::pure};
    step.function = splits(inst) ? ir::split_fma(type) : ir::evaluator(inst.op, type, inst.type);
    if (!step.function) internal_error("reference: an operation on a type that it is not defined on");
    step.a = operand(inst, 0);
    step.b = inst.num_args > 1 ? operand(inst, 1) : step.a;
    step.c = inst.num_args > 2 ? operand(inst, 2) : step.a;
    step.to = define(id);
    add(step);
  }

  bool splits(const Inst& inst) const {
    return inst.op == Op::fma && ((inst.type == Type::f32 && !fused_.f32) || (inst.type == Type::f64 && !fused_.f64));
  }

  void memory(Id id, const Inst& inst) {
    const Type index_type = operand_type(inst, 1);
    MemoryAccess access;
    access.base = operand(inst, 0);
    access.index = operand(inst, 1);
    access.stride = inst.stride;
    access.offset = inst.offset;
    access.align = std::max<std::uint32_t>(inst.align, 1);
    access.width = inst.width;
    access.scalar_bytes = static_cast<std::uint8_t>(ir::bytes(inst.type));
    access.index_shift = ir::is_signed(index_type) ? static_cast<std::uint8_t>(64 - ir::bits(index_type)) : 0;
    access.array = module_.array_of(module_.operands[inst.first_arg]);
    const Inst& base = module_.insts[module_.operands[inst.first_arg]];
    const bool own = base.op == Op::kernel_array;
    if (own) access.own = static_cast<std::uint32_t>(base.imm);
    access.inst = id;
    if (!ir::is_numeric(inst.type) || inst.width < 1 || inst.width > 4 || !ir::is_int(index_type)) {
      internal_error("reference: a memory operation of a wrong type or width");
    }

    Code code = own ? Code::load_own : Code::load;
    if (inst.op == Op::load) {
      slots_[id] = new_slots(inst.width);
      for (std::uint32_t k = 0; k < inst.width; ++k) access.values[k] = slots_[id] + k;
    } else if (inst.op == Op::store) {
      code = own ? Code::store_own : Code::store;
      for (std::uint32_t k = 0; k < inst.width; ++k) access.values[k] = operand(inst, 2 + k);
    } else {
      code = Code::atomic;
      access.combine = combine(inst);
      access.compares = inst.op == Op::atomic_cas;
      access.align = std::max<std::uint32_t>(access.align, access.scalar_bytes);
      access.values = {operand(inst, 2), 0, access.compares ? operand(inst, 3) : 0};
      access.values[1] = define(id);
    }
    add({code, 0, static_cast<std::uint32_t>(plan_.accesses.size())});
    plan_.accesses.push_back(access);
  }

  /// The function by which an atomic operation computes the new value; null if the operand replaces the old one.
  static ir::Evaluator combine(const Inst& inst) {
    switch (inst.op) {
      case Op::atomic_add:
      case Op::atomic_min:
      case Op::atomic_max:
      case Op::atomic_and:
      case Op::atomic_or:
      case Op::atomic_xor: {
        const ir::Evaluator found = ir::evaluator(ir::combination(inst.op), inst.type, inst.type);
        if (!found) internal_error("reference: an atomic operation on a type that it is not defined on");
        return found;
      }
      case Op::atomic_exchange:
      case Op::atomic_cas: return nullptr;
      default: internal_error("reference: not an atomic operation");
    }
  }

  void collective(Id id, const Inst& inst) {
    Collective made;
    made.op = inst.op;
    made.inst = id;
    if (inst.num_args > 0) made.value = operand(inst, 0);
    if (inst.num_args > 1) made.lane = operand(inst, 1);
    if (inst.op == Op::subgroup_ballot) made.word = static_cast<std::uint32_t>(inst.imm);
    if (inst.op >= Op::subgroup_reduce && inst.op <= Op::subgroup_exclusive) {
      made.combine = ir::evaluator(Op(inst.imm), inst.type, inst.type);
      if (!made.combine) internal_error("reference: a reduction that is not defined on its type");
      made.neutral = neutral(Op(inst.imm), inst.type);
    }
    if (inst.op != Op::subgroup_barrier) made.to = define(id);
    add({Code::collective, 0, static_cast<std::uint32_t>(plan_.collectives.size())});
    plan_.collectives.push_back(made);
  }

  /// The neutral element of an operation.
  static std::uint64_t neutral(Op op, Type type) {
    switch (op) {
      case Op::mul: return ir::from_double(type, 1);
      case Op::min: return ir::from_double(type, std::numeric_limits<double>::infinity());
      case Op::max: return ir::from_double(type, -std::numeric_limits<double>::infinity());
      case Op::bit_and: return ir::mask(type);
      default: return 0;
    }
  }

  void branch(Id id, const Inst& inst) {
    const std::size_t to_else = jump_unless(operand(inst, 0));
    const std::span<const Id> then_values = region(inst.regions[0]);
    const auto count = static_cast<std::uint32_t>(then_values.size());
    const Slot results = new_slots(count);
    move_together(results, then_values);
    if (inst.regions[1] == kNone) {
      if (count != 0) internal_error("reference: an if_ with results lacks its else");
      land(to_else);
    } else {
      const std::size_t to_end = jump();
      land(to_else);
      const std::span<const Id> else_values = region(inst.regions[1]);
      if (else_values.size() != count) internal_error("reference: the branches of an if_ give unequal results");
      move_together(results, else_values);
      land(to_end);
    }
    slots_[id] = results;
  }

  void loop(Id id, const Inst& inst) {
    const Slot carried = new_slots(inst.num_args);
    move_together(carried, module_.args(id));
    loops_.push_back({carried, inst.num_args, {}, {}});

    const std::size_t head = here();
    const std::span<const Id> condition = region(inst.regions[0]);
    if (condition.size() != 1) internal_error("reference: a loop's condition region must yield one value");
    const std::size_t to_end = jump_unless(use(condition[0]));
    const std::span<const Id> next = region(inst.regions[1]);
    if (next.size() != inst.num_args) internal_error("reference: a loop's body must yield its carried values");
    move_together(carried, next);
    for (const std::size_t step : loops_.back().continues) land(step);
    if (inst.regions[2] != kNone) region(inst.regions[2]);
    plan_.steps[jump()].to = static_cast<std::uint32_t>(head);

    land(to_end);
    for (const std::size_t step : loops_.back().breaks) land(step);
    loops_.pop_back();
    slots_[id] = carried;
  }

  void leave(std::vector<std::size_t> Loop::*list) {
    if (loops_.empty()) internal_error("reference: break or continue outside a loop");
    (loops_.back().*list).push_back(jump());
  }

  Plan& plan_;
  const ir::Module& module_;
  const FusedTypes fused_;
  std::vector<Slot> slots_;  ///< by instruction
  std::vector<Loop> loops_;  ///< open ones
};

}  // namespace

Plan::Plan(const ir::Module& module, std::uint32_t size, FusedTypes fused)
    : subgroup_size(size), module_(ir::inline_calls(module)) {
  Planner(*this, module_, fused).run();
}

}  // namespace weft::backend
