// Calls of functions whose gradient the user gives.
//
// A gradient function names states of arrays (ops.def: gradient_base, after_base), of which it knows no more than the
// address of the array. In the adjoint it takes one more input for each array and state that it names: the distance
// from the array to that state, which the call knows.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "../support/error.h"
#include "reverser.h"

namespace weft::ir {

namespace {

bool is_state(Op op) { return op == Op::gradient_base || op == Op::after_base; }

}  // namespace

/// The functions that run forward; gradient functions are added where they are called.
void Reverser::take_functions() {
  std::vector<char> is_gradient(from_.functions.size(), 0);
  for (const auto& function : from_.functions)
    if (function->derivatives.gradient != kNone) is_gradient[function->derivatives.gradient] = 1;
  calls_.assign(from_.functions.size(), kNone);
  for (std::size_t i = 0; i < from_.functions.size(); ++i) {
    if (is_gradient[i]) continue;
    auto function = std::make_shared<Module>(*from_.functions[i]);
    function->derivatives = {};
    calls_[i] = static_cast<std::uint32_t>(out_.functions.size());
    out_.functions.push_back(std::move(function));
  }
}

Id Reverser::distance(std::uint32_t param, Op state, Loc loc) {
  const std::uint32_t other = state == Op::gradient_base ? extra_.gradient[param] : extra_.after[param];
  if (other == kNone)
    throw Error(ErrorKind::not_differentiable,
                fmt::format("the gradient of {} is asked for, which holds no real numbers", from_.params[param].name),
                from_.name, loc);
  return pure(Op::sub, Type::u64, {array_base(other), array_base(param)});
}

/// Adds the gradient function of a call to the adjoint, and to `inputs` what it takes beside its own.
std::uint32_t Reverser::add_gradient_function(Id call, std::vector<Id>& inputs) {
  const std::uint32_t number = from_.functions[from_[call].imm]->derivatives.gradient;
  auto made = std::make_shared<Module>(*from_.functions[number]);
  Module& function = *made;
  function.derivatives = {};
  std::map<std::pair<std::uint32_t, Op>, Id> known;  // by parameter of the kernel and state
  const auto count = static_cast<Id>(function.insts.size());
  for (Id id = 0; id < count; ++id) {
    if (!is_state(function[id].op)) continue;
    const Op state = function[id].op;
    const Loc loc = function[id].loc();
    const std::uint32_t param = analysis_.param_behind(call, function.arg(id, 0));
    if (param == kNone)
      throw Error(ErrorKind::not_differentiable,
                  fmt::format("func \"{}\" names the gradient of an array that is none of the kernel's arguments",
                              function.function),
                  from_.name, loc);
    auto found = known.find({param, state});
    if (found == known.end()) {
      Inst input;
      input.op = Op::param;
      input.type = Type::u64;
      input.imm = function.num_inputs;
      input.file = function[id].file;
      input.line = function[id].line;
      const auto made_input = static_cast<Id>(function.insts.size());
      function.insts.push_back(input);
      std::vector<Id>& body = function.regions[0].insts;
      body.insert(body.begin() + function.num_inputs, made_input);
      ++function.num_inputs;
      found = known.emplace(std::pair(param, state), made_input).first;
      inputs.push_back(distance(param, state, loc));
    }
    // The state begins at that distance.
    const Id address = function.arg(id, 0);
    Inst& inst = function.insts[id];
    inst.op = Op::add;
    inst.first_arg = static_cast<std::uint32_t>(function.operands.size());
    inst.num_args = 2;
    function.operands.push_back(address);
    function.operands.push_back(found->second);
  }
  out_.functions.push_back(std::move(made));
  return static_cast<std::uint32_t>(out_.functions.size() - 1);
}

void Reverser::reverse_call(Id id) {
  std::vector<Id> pending = std::exchange(pending_[id], {});
  if (!analysis_.reverses_call(id)) return;
  const Inst& inst = from_[id];
  const Module& function = *from_.functions[inst.imm];
  std::vector<Id> inputs;
  for (Id arg : from_.args(id)) inputs.push_back(value(arg));
  pending.resize(function.outputs().size(), kNone);
  for (std::size_t k = 0; k < pending.size(); ++k) {
    const Type type = function[function.outputs()[k]].type;
    if (is_float(type)) inputs.push_back(pending[k] == kNone ? constant(type, 0) : pending[k]);
  }
  const std::uint32_t number = add_gradient_function(id, inputs);
  const Id call = builder_.call(number, inputs, inst.loc());
  std::uint32_t result = 0;
  for (Id arg : from_.args(id)) {
    const Type type = from_[arg].type;
    if (!is_float(type)) continue;
    add_gradient(arg, builder_.result(call, result++, type));
  }
}

}  // namespace weft::ir
