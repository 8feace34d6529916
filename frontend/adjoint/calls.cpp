// Calls of functions that have gradient functions of their own, which are called on the way back.
//
// The adjoint does not look into such a function. It may read arrays, and so may its gradient function, which adds to
// gradients of arrays through their addresses, and returns the gradients of values.
#include <fmt/format.h>

#include <algorithm>

#include "../passes/passes.h"
#include "../support/error.h"
#include "reverser.h"

namespace weft::ir {

// ---- Survey of functions and calls

namespace {
bool is_loaded(const Module& module, Id address) {
  const Inst& inst = module[address];
  if (inst.op == Op::load) return bits(inst.type) == 64;
  return inst.op == Op::add &&
         std::ranges::any_of(module.args(address), [&](Id arg) { return is_loaded(module, arg); });
}

// The accesses of a function at addresses that it loads.
Access held_accesses(const Module& function) {
  Access all = Access::none;
  for (Id id = 0; id < function.insts.size(); ++id) {
    const Op op = function[id].op;
    if (is_memory(op) && is_loaded(function, function.arg(id, 0)))
      all = all | (op == Op::load ? Access::read : Access::write);
  }
  return all;
}
}  // namespace

void Analysis::survey_functions() {
  const std::vector<std::vector<Access>> accesses = input_accesses(module_.functions);
  for (std::size_t f = 0; f < module_.functions.size(); ++f) {
    const Module& function = *module_.functions[f];
    CalledFunction called;
    called.accesses = accesses[f];
    called.has_gradient.assign(function.num_inputs, 0);
    called.held = held_accesses(function);
    functions_.push_back(std::move(called));
    if (function.derivatives.gradient == kNone) continue;
    const Module& gradient = *module_.functions[function.derivatives.gradient];
    const std::vector<Access>& theirs = accesses[function.derivatives.gradient];
    CalledFunction& to = functions_.back();
    to.held = to.held | held_accesses(gradient);
    to.gradient_accesses.assign(theirs.begin(), theirs.begin() + std::ptrdiff_t(to.accesses.size()));
    // The inputs whose gradients are named are found by way of pure operations, which compute addresses.
    std::vector<Id> work;
    for (const Inst& inst : gradient.insts)
      if (inst.op == Op::gradient_base) work.push_back(gradient.operands[inst.first_arg]);
    while (!work.empty()) {
      const Id id = work.back();
      work.pop_back();
      for (std::uint32_t k = 0; k < function.num_inputs; ++k)
        if (gradient.regions[0].insts[k] == id) to.has_gradient[k] = 1;
      if (info(gradient[id].op).effect == Effect::pure && gradient[id].op != Op::result)
        for (Id arg : gradient.args(id)) work.push_back(arg);
    }
  }
}

void Analysis::survey_call(Id id) {
  const CalledFunction& called = functions_[module_[id].imm];
  const std::string& name = module_.functions[module_[id].imm]->function;
  const auto note_held = [&](Access access) {
    if (any(access, Access::read)) held_reads_[id] = 1;
    if (any(access, kChanges)) held_changes_ = true;
  };
  note_held(called.held);
  for (std::uint32_t k = 0; k < called.accesses.size(); ++k) {
    const Access both = called.accesses[k] | called.gradient_accesses[k];
    if (both == Access::none && !called.has_gradient[k]) continue;
    const Root at = root(module_.arg(id, static_cast<int>(k)));
    if (at.kind != Root::array) {
      if (called.has_gradient[k])
        refuse(id, fmt::format("func \"{}\" names the gradient of an array that an element of another array holds, or "
                               "of which it depends on a condition which array it is",
                               name));
      if (at.kind == Root::held) note_held(both);
      continue;
    }
    ArrayUse& use = arrays_[at.param];
    if (any(called.gradient_accesses[k], kChanges))
      refuse(id, fmt::format("the gradient function of func \"{}\" writes to {}; it may change gradients only", name,
                             module_.params[at.param].name));
    if (any(both, Access::read)) loaded_groups_[id].push_back(use.group);
    // Any thread's call may add to any element of the gradient.
    if (called.has_gradient[k]) use.own_element = false;
  }
}

bool Analysis::touches_gradients(Id call) const {
  const CalledFunction& called = functions_[module_[call].imm];
  for (std::uint32_t k = 0; k < called.has_gradient.size(); ++k) {
    if (!called.has_gradient[k]) continue;
    const Root at = root(module_.arg(call, static_cast<int>(k)));
    if (at.kind == Root::array && arrays_[at.param].gradient) return true;
  }
  return false;
}

void Analysis::check_runs_again(Id call) const {
  const CalledFunction& called = functions_[module_[call].imm];
  if (std::ranges::any_of(called.accesses, [](Access a) { return any(a, kChanges); }))
    refuse(call, fmt::format("the adjoint needs a result of func \"{}\", which writes to memory and would do so again: "
                             "give it a replay()",
                             module_.functions[module_[call].imm]->function));
}

bool Analysis::is_varied_call(Id id) const {
  return touches_gradients(id) || std::ranges::any_of(module_.args(id), [&](Id arg) { return varied_[arg] != 0; });
}

bool Analysis::is_useful_call(Id id) const {
  return touches_gradients(id) || std::ranges::any_of(results_[id], [&](Id result) { return useful_[result] != 0; });
}

// ---- Calls in the adjoint

void Reverser::adopt_functions() {
  out.functions = from.functions;
  if (extra.first_thread == kNone) return;
  // A dispatch may begin at any thread of the launch, but functions need the thread's number in the launch.
  for (std::shared_ptr<const Module>& function : out.functions) {
    auto moved = std::make_shared<Module>(*function);
    Module& m = *moved;
    const auto old_insts = static_cast<Id>(m.insts.size());
    const std::size_t old_operands = m.operands.size();
    const auto add = [&](Op op, std::uint64_t imm, std::initializer_list<Id> args) {
      return m.add(instruction(op, Type::u32, imm), {args.begin(), args.size()});
    };
    const Id first = add(Op::arg, out.params[extra.first_thread].offset, {});
    const Id thread = add(Op::add, 0, {add(Op::thread_id, 0, {}), first});
    const Id block = add(Op::constant, from.block, {});
    const Id local = add(Op::rem, 0, {thread, block}), group = add(Op::div, 0, {thread, block});
    std::vector<Id>& body = m.regions[0].insts;
    body.insert(body.begin() + m.num_inputs, {thread, local, group});
    for (std::size_t k = 0; k < old_operands; ++k) {
      if (m.operands[k] >= old_insts) continue;
      switch (m[m.operands[k]].op) {
        case Op::thread_id: m.operands[k] = thread; break;
        case Op::local_id: m.operands[k] = local; break;
        case Op::workgroup_id: m.operands[k] = group; break;
        default: break;
      }
    }
    function = std::move(moved);
  }
}

void Reverser::reverse_call(Id id) {
  const std::vector<Id> pending = gradients_.take_results(id);
  const bool asked = std::ranges::any_of(pending, [](Id gradient) { return gradient != kNone; });
  if (!analysis.reverses(id) || (!asked && !analysis.touches_gradients(id))) return;
  const Inst& inst = from[id];
  const Module& function = *from.functions[inst.imm];
  std::vector<Id> args = values(id, 0);
  const auto outputs = function.outputs();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Type type = function[outputs[k]].type;
    if (is_float(type)) args.push_back(k < pending.size() && pending[k] != kNone ? pending[k] : constant(type, 0));
  }
  const Id call = builder.call(function.derivatives.gradient, args, inst.loc());
  std::uint32_t n = 0;
  for (Id operand : from.args(id)) {
    const Type type = from[operand].type;
    if (is_float(type)) gradients_.add(operand, builder.result(call, n++, type));
  }
}

}  // namespace weft::ir
