// The table of operations and the small functions of a module.
#include "module.h"

#include <algorithm>

#include "../support/error.h"

namespace weft::ir {

const OpInfo& info(Op op) {
  static constexpr OpInfo table[] = {
#define WEFT_OP(name, arity, operands, result, effect, derivative, spread) \
  {#name, arity, OperandClass::operands, ResultRule::result, Effect::effect, Derivative::derivative, Spread::spread},
#include "ops.def"
#undef WEFT_OP
  };
  static_assert(std::size(table) == static_cast<std::size_t>(Op::count));
  if (op >= Op::count) internal_error("an operation that does not exist");
  return table[static_cast<std::size_t>(op)];
}

std::uint32_t Message::words() const {
  std::uint32_t n = report::kRecordHead;
  for (const MessagePiece& piece : pieces) n += piece.words();
  return n;
}

const Param* Module::array_of(Id base) const {
  if (base >= insts.size() || insts[base].op != Op::arg || insts[base].type != Type::u64) return nullptr;
  for (const Param& param : params) {
    if (param.kind == Param::Kind::array && param.offset == insts[base].imm) return &param;
  }
  return nullptr;
}

Id Module::add(const Inst& inst, std::span<const Id> args) {
  insts.push_back(inst);
  insts.back().first_arg = static_cast<std::uint32_t>(operands.size());
  insts.back().num_args = static_cast<std::uint32_t>(args.size());
  operands.insert(operands.end(), args.begin(), args.end());
  return static_cast<Id>(insts.size() - 1);
}

std::span<const Id> Module::outputs() const {
  const std::vector<Id>& body = regions[0].insts;
  if (body.empty() || body.back() >= insts.size() || insts[body.back()].op != Op::yield) return {};
  return args(body.back());
}

std::vector<char> have_effects(std::span<const std::shared_ptr<const Module>> functions) {
  std::vector<char> known;
  for (const auto& function : functions) {
    const Module& f = *function;
    // A gradient function is a reason to keep a call, because it may add to gradients.
    known.push_back(f.derivatives.gradient != kNone || std::ranges::any_of(f.regions, [&](const Region& region) {
                      return std::ranges::any_of(region.insts, [&](Id id) {
                        const Inst& inst = f[id];
                        if (inst.op == Op::call) return known[inst.imm] != 0;
                        return info(inst.op).effect == Effect::writes && inst.op != Op::local_set;
                      });
                    }));
  }
  return known;
}

const KernelArray* Module::kernel_array_of(Id base) const {
  if (base >= insts.size() || insts[base].op != Op::kernel_array || insts[base].imm >= arrays.size()) return nullptr;
  return &arrays[insts[base].imm];
}

GroupUse group_use(const Module& module) {
  GroupUse use;
  for (const Inst& inst : module.insts) {
    const bool subgroup = is_subgroup(inst.op) || inst.op == Op::subgroup_size || inst.op == Op::subgroup_lane ||
                          inst.op == Op::subgroup_id;
    if (subgroup && !use.subgroups) {
      use.subgroups = true;
      use.subgroup_loc = inst.loc();
    }
    use.fences = use.fences || inst.op == Op::fence;
    if ((subgroup || inst.op == Op::barrier) && !use.together) {
      use.together = true;
      use.loc = inst.loc();
    }
  }
  for (const KernelArray& array : module.arrays) {
    if (array.is_private) continue;
    if (!use.together) use.loc = array.loc;
    use.together = true;
    use.shared_bytes = (use.shared_bytes + 15) / 16 * 16 + array.bytes();
  }
  return use;
}

namespace {
thread_local std::uint64_t t_failures = 0;
}

void refuse(ErrorKind kind, const Module& module, const std::string& message, Loc loc) {
  throw Error(kind, message, module.name, loc ? loc : module.loc);
}

void fail(const Module& module, Loc loc, const std::string& message) {
  ++t_failures;
  if (module.place) loc = module.place;
  const std::string place = module.function.empty() ? "" : "in func \"" + module.function + "\": ";
  refuse(ErrorKind::invalid_kernel, module, place + message, loc);
}

std::uint64_t failures() { return t_failures; }

}  // namespace weft::ir
