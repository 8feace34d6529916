// Turns float64 functions that SPIR-V lacks into calls: each function is traced once and called wherever it is used.
#include "lower_real64.h"

#include <algorithm>
#include <memory>
#include <string>

#include "../frontend/passes/passes.h"
#include "real64.h"

namespace weft::spirv {

namespace {

using ir::Id;
using ir::Inst;
using ir::Module;
using ir::Op;
using ir::Type;

bool is_lacking(const Inst& inst) { return inst.type == Type::f64 && inst.op >= Op::exp && inst.op <= Op::tanh; }

void collect(const Module& module, std::vector<Op>& ops) {
  for (const ir::Region& region : module.regions)
    for (Id id : region.insts)
      if (is_lacking(module[id]) && std::find(ops.begin(), ops.end(), module[id].op) == ops.end())
        ops.push_back(module[id].op);
}

std::shared_ptr<const Module> function_of(Op op, const Module& kernel) {
  Module host, function;
  host.name = kernel.name;
  static_cast<ir::Interface&>(function) = kernel.as_interface();
  function.function = std::string(ir::info(op).name) + "_f64";
  {
    tracing::Trace around(host, {});
    tracing::Trace trace(function, around);
    const Double x(trace.builder().input(Type::f64), detail::FromId{});
    Double y = 0;
    if (ir::info(op).arity == 2) {
      const Double second(trace.builder().input(Type::f64), detail::FromId{});
      y = real64(op, x, second);
    } else {
      y = real64(op, x);
    }
    const Id result = y.read();
    trace.finish();
    trace.builder().yield({&result, 1});
  }
  return std::make_shared<const Module>(ir::forward(function));
}

/// Renumbers calls of existing functions, which come after the new ones.
void rewrite(Module& module, const std::vector<Op>& ops) {
  for (ir::Region& region : module.regions) {
    std::vector<Id> insts;
    insts.reserve(region.insts.size());
    for (Id id : region.insts) {
      Inst inst = module[id];
      if (inst.op == Op::call) module.insts[id].imm += ops.size();
      if (is_lacking(inst)) {
        // The instruction keeps its number, and becomes the result of a call inserted before it.
        Inst call = inst;
        call.op = Op::call;
        call.type = Type::none;
        call.imm = std::uint64_t(std::find(ops.begin(), ops.end(), inst.op) - ops.begin());
        const Id made = Id(module.insts.size());
        module.insts.push_back(call);
        insts.push_back(made);
        inst.op = Op::result;
        inst.imm = 0;
        inst.num_args = 1;
        inst.first_arg = std::uint32_t(module.operands.size());
        module.operands.push_back(made);
        module.insts[id] = inst;
      }
      insts.push_back(id);
    }
    region.insts = std::move(insts);
  }
}

}  // namespace

std::optional<Module> lower_real64(const Module& kernel) {
  std::vector<Op> ops;
  collect(kernel, ops);
  for (const auto& function : kernel.functions) collect(*function, ops);
  if (ops.empty()) return {};

  Module lowered = kernel;
  lowered.functions.clear();
  for (Op op : ops) lowered.functions.push_back(function_of(op, kernel));
  for (const auto& function : kernel.functions) {
    Module copy = *function;
    rewrite(copy, ops);
    lowered.functions.push_back(std::make_shared<const Module>(std::move(copy)));
  }
  rewrite(lowered, ops);
  return lowered;
}

}  // namespace weft::spirv
