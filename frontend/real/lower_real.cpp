// Turns functions of real numbers into calls: each function is traced once and called wherever it is used.
#include "lower_real.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "real_function.h"

namespace weft::lib {

namespace {

using ir::Id;
using ir::Inst;
using ir::Module;
using ir::Op;
using ir::Type;

using Function = std::pair<Op, Type>;

/// The functions to replace, in the order of the new table.
class Lowering {
 public:
  Lowering(const Module& kernel, std::initializer_list<Type> lacking) : lacking_(lacking) {
    collect(kernel);
    for (const auto& function : kernel.functions) collect(*function);
  }

  const std::vector<Function>& functions() const { return functions_; }
  void rewrite(Module& module) const;

 private:
  bool is_lacking(const Inst& inst) const {
    return is_real_function(inst.op) && std::find(lacking_.begin(), lacking_.end(), inst.type) != lacking_.end();
  }
  void collect(const Module& module);
  std::uint64_t number_of(const Inst& inst) const {
    return std::uint64_t(std::find(functions_.begin(), functions_.end(), Function(inst.op, inst.type)) -
                         functions_.begin());
  }

  std::vector<Type> lacking_;
  std::vector<Function> functions_;
};

void Lowering::collect(const Module& module) {
  for (const ir::Region& region : module.regions)
    for (Id id : region.insts)
      if (is_lacking(module[id]) && number_of(module[id]) == functions_.size())
        functions_.push_back({module[id].op, module[id].type});
}

/// Renumbers calls of existing functions, which come after the new ones.
void Lowering::rewrite(Module& module) const {
  for (ir::Region& region : module.regions) {
    std::vector<Id> insts;
    insts.reserve(region.insts.size());
    for (Id id : region.insts) {
      Inst inst = module[id];
      if (inst.op == Op::call) module.insts[id].imm += functions_.size();
      if (is_lacking(inst)) {
        // The instruction keeps its number, and becomes the result of a call inserted before it.
        Inst call = inst;
        call.op = Op::call;
        call.type = Type::none;
        call.imm = number_of(inst);
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

std::optional<Module> lower_real(const Module& kernel, std::initializer_list<Type> lacking) {
  const Lowering lowering(kernel, lacking);
  if (lowering.functions().empty()) return {};

  Module lowered = kernel;
  lowered.functions.clear();
  for (const Function& function : lowering.functions())
    lowered.functions.push_back(std::make_shared<const Module>(real_function(function.first, function.second, kernel)));
  for (const auto& function : kernel.functions) {
    Module copy = *function;
    lowering.rewrite(copy);
    lowered.functions.push_back(std::make_shared<const Module>(std::move(copy)));
  }
  lowering.rewrite(lowered);
  return lowered;
}

}  // namespace weft::lib
