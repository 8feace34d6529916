// The table of operations and the small functions of a module.
#include "module.h"

#include "../support/error.h"

namespace weft::ir {

const OpInfo& info(Op op) {
  static constexpr OpInfo table[] = {
#define WEFT_OP(name, arity, operands, result, effect, derivative) \
  {#name, arity, OperandClass::operands, ResultRule::result, Effect::effect, Derivative::derivative},
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

void fail(const Module& module, Loc loc, const std::string& message) {
  if (module.place) loc = module.place;
  throw Error(ErrorKind::invalid_kernel, message, module.name, loc ? loc : module.loc);
}

}  // namespace weft::ir
