// Finds how a kernel accesses the memory of its arguments, through its functions too.
#include "passes.h"

namespace weft::ir {
namespace {

/// A body's accesses through its own address inputs (a function) and to the arrays among the kernel's arguments.
struct Summary {
  std::vector<Access> inputs;
  std::vector<Access> params;
};

Access access_of(Op op) {
  switch (op) {
    case Op::load:
    case Op::trace_ray: return Access::read;
    case Op::store: return Access::write;
    default: return is_atomic(op) ? Access::atomic : Access::none;
  }
}

class Marker {
 public:
  Marker(const Module& module, const std::vector<Summary>& callees)
      : module_(module), callees_(callees), seen_(module.insts.size(), Access::none) {
    summary_.inputs.assign(module.num_inputs, Access::none);
    summary_.params.assign(module.params.size(), Access::none);
  }

  Summary run() { return run(module_.regions[0].insts); }

  Summary run(std::span<const Id> insts) {
    sequence(insts);
    return std::move(summary_);
  }

 private:
  void sequence(std::span<const Id> insts) {
    for (Id inst : insts) instruction(inst);
  }

  void instruction(Id id) {
    const Inst& inst = module_[id];
    for (RegionId inner : inst.regions) {
      if (inner != kNone) sequence(module_.regions[inner].insts);
    }
    if (const Access access = access_of(inst.op); access != Access::none) mark(module_.arg(id, 0), access);
    if (inst.op != Op::call) return;
    const Summary& callee = callees_[inst.imm];
    for (std::size_t k = 0; k < callee.inputs.size(); ++k) {
      if (callee.inputs[k] != Access::none) mark(module_.arg(id, static_cast<int>(k)), callee.inputs[k]);
    }
    for (std::size_t k = 0; k < callee.params.size(); ++k) add(summary_.params[k], callee.params[k]);
  }

  static void add(Access& to, Access access) { to = to | access; }

  /// Follows an address, or a part of one, to its origins.
  void mark(Id address, Access access) {
    const Inst& inst = module_[address];
    if (bits(inst.type) != 64 || (seen_[address] | access) == seen_[address]) return;  // a narrow value is no address
    add(seen_[address], access);
    if (const Param* param = module_.array_of(address)) {
      return add(summary_.params[static_cast<std::size_t>(param - module_.params.data())], access);
    }
    if (is_global(inst.op) || inst.op == Op::gradient_base || inst.op == Op::after_base) return;  // other memory
    if (inst.op == Op::param && inst.imm < module_.num_inputs && module_.regions[0].insts[inst.imm] == address)
      return add(summary_.inputs[inst.imm], access);
    if (info(inst.op).effect == Effect::pure && inst.op != Op::param && inst.op != Op::result) {
      for (Id arg : module_.args(address)) mark(arg, access);
      return;
    }
    // An address from a variable, a branch, a loop, a function or memory may be that of any array.
    for (Access& input : summary_.inputs) add(input, access);
    for (std::size_t k = 0; k < summary_.params.size(); ++k) {
      if (module_.params[k].kind == Param::Kind::array) add(summary_.params[k], access);
    }
  }

  const Module& module_;
  const std::vector<Summary>& callees_;
  std::vector<Access> seen_;  ///< by value: accesses that have been followed
  Summary summary_;
};

}  // namespace

namespace {
std::vector<Summary> summaries(std::span<const std::shared_ptr<const Module>> functions) {
  std::vector<Summary> made;
  for (const auto& function : functions) {
    Summary summary = Marker(*function, made).run();
    made.push_back(std::move(summary));
  }
  return made;
}
}  // namespace

std::vector<std::vector<Access>> input_accesses(std::span<const std::shared_ptr<const Module>> functions) {
  std::vector<std::vector<Access>> accesses;
  for (Summary& summary : summaries(functions)) accesses.push_back(std::move(summary.inputs));
  return accesses;
}

namespace {
void add_accesses(Interface& kernel, const Summary& code) {
  for (std::size_t k = 0; k < kernel.params.size(); ++k)
    kernel.params[k].access = kernel.params[k].access | code.params[k];
}
}  // namespace

void mark_accesses(Module& module) {
  const std::vector<Summary> callees = summaries(module.functions);
  add_accesses(module, Marker(module, callees).run());
}

std::uint64_t kept_from_access(const Module& kernel) {
  const std::vector<Summary> callees = summaries(kernel.functions);
  const Summary code = Marker(kernel, callees).run();
  std::uint64_t found = 0;
  for (std::size_t k = 0; k < kernel.params.size(); ++k)
    if ((code.params[k] | kernel.params[k].access) != code.params[k]) found |= 1ull << k;
  return found;
}

void mark_accesses(Interface& kernel, const Module& module, std::span<const Id> insts) {
  if (insts.empty()) return;
  const std::vector<Summary> callees = summaries(module.functions);
  add_accesses(kernel, Marker(module, callees).run(insts));
}

}  // namespace weft::ir
