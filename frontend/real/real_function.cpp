// Functions of real numbers, traced to modules of the IR.
#include "real_function.h"

#include <string>
#include <vector>

#include "../passes/passes.h"
#include "real32.h"
#include "real64.h"

namespace weft::lib {

namespace {

using ir::Id;
using ir::Module;
using ir::Op;
using ir::Type;

template <class T>
Id traced(Op op, const std::vector<Id>& inputs) {
  const auto input = [&](std::size_t k) { return Var<T>(inputs[k], detail::FromId{}); };
  if constexpr (std::is_same_v<T, double>)
    return (inputs.size() == 2 ? real64(op, input(0), input(1)) : real64(op, input(0))).read();
  else
    return (inputs.size() == 2 ? real32(op, input(0), input(1)) : real32(op, input(0))).read();
}

}  // namespace

Module real_function(Op op, Type type, const ir::Interface& kernel) {
  Module host, function;
  host.name = kernel.name;
  static_cast<ir::Interface&>(function) = kernel;
  function.function = std::string(ir::info(op).name) + "_" + ir::name(type);
  tracing::Trace around(host, {});
  tracing::Trace trace(function, around);
  std::vector<Id> inputs;
  for (int k = 0; k < ir::info(op).arity; ++k) inputs.push_back(trace.builder().input(type));
  const Id result = type == Type::f64 ? traced<double>(op, inputs) : traced<float>(op, inputs);
  trace.finish();
  trace.builder().yield({&result, 1});
  return ir::forward(function);
}

}  // namespace weft::lib
