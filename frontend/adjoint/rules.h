// The derivative of each pure operation.
#pragma once
#include "../ir/builder.h"

namespace weft::ir {

/// The values of the kernel that the derivative with respect to one operand is computed from.
enum DerivativeUse : std::uint8_t { kUseFirst = 1, kUseSecond = 2, kUseResult = 8 };

/// Returns whether gradient may flow from the result of this operation to its operand number k.
bool is_differentiable(const Module& module, Id id, int k);

/// The values that the rule for operand k of a differentiable operation uses, as DerivativeUse bits.
std::uint8_t derivative_uses(Op op, int k);

/// One operation of the kernel, with its values in the adjoint. Values that no derivative_uses() of the wanted operands
/// names may be kNone.
struct DerivativeSite {
  const Inst& inst;
  Id operands[3] = {kNone, kNone, kNone};
  Id result = kNone;
  Id gradient = kNone;  ///< of the result
};

/// Emits the gradient that operand k gets, in that operand's type.
Id derivative(Builder& builder, const DerivativeSite& site, int k, Type operand_type);

}  // namespace weft::ir
