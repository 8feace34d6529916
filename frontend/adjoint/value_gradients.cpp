// The gathering of gradients of values.
#include "value_gradients.h"

namespace weft::ir {

void ValueGradients::add(Id old, Id gradient) {
  if (!code_.analysis.active(old)) return;
  const Type type = code_.from[old].type;
  if (spill_[old] != kNone)
    code_.set(spill_[old], code_.pure(Op::add, type, {code_.get(spill_[old]), gradient}));
  else
    gradient_[old] = sum(gradient_[old], gradient, type);
}

ValueGradients::Spilled ValueGradients::spill(std::span<const Id> values) {
  Spilled spilled;
  for (Id old : values) {
    if (spill_[old] != kNone) continue;
    const Type type = code_.from[old].type;
    const std::uint32_t local = code_.builder.local(type);
    const Id now = take(old);
    code_.set(local, now == kNone ? code_.constant(type, 0) : now);
    spill_[old] = local;
    spilled.emplace_back(old, local);
  }
  return spilled;
}

void ValueGradients::unspill(const Spilled& spilled) {
  for (const auto& [old, local] : spilled) {
    spill_[old] = kNone;
    gradient_[old] = code_.get(local);
  }
}

void ValueGradients::add_to_result(Id source, std::uint32_t k, Id gradient) {
  std::vector<Id>& pending = pending_[source];
  if (pending.size() <= k) pending.resize(k + 1, kNone);
  pending[k] = sum(pending[k], gradient, code_.out[gradient].type);
}

}  // namespace weft::ir
