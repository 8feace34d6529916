// The walk backwards through blocks and branches.
#include "reverser.h"

#include <algorithm>

#include "rules.h"

namespace weft::ir {

Reverser::Reverser(const Module& kernel, const Analysis& analysis, const ExtraParams& extra,
                   const AdjointOptions& options, Module& out, bool counting)
    : AdjointCode(kernel, analysis, extra, out),
      slots_(std::max(options.slots, 1u)),
      gradients_(*this),
      array_gradients_(*this, options.deterministic),
      undo_(*this, counting),
      trips_(kernel.insts.size(), kNone) {}

void Reverser::run() {
  enter();
  undo_.open();
  adopt_functions();
  reverse_block(from.regions[0].insts);
}

void Reverser::count() {
  enter();
  undo_.open();
  adopt_functions();
  for (Id id : from.regions[0].insts) {
    // Stores that stand in the body itself need no log.
    if (from[id].op == Op::store && analysis.replays(id)) {
      const std::vector<Id> stored = values(id, 2);
      builder.store(from[id].type, stored, place(id, 0), from[id].loc());
    } else {
      forward(id, kRunCopy, false);
    }
  }
  builder.atomic(Op::atomic_max, Type::u32, {undo_.height()}, {array_base(extra.scratch), u32(0), 4, 0, 4});
}

// ---- Blocks

/// By instruction of a block: whether it stores to arrays from which an instruction after it loads.
std::vector<char> Reverser::observed_later(std::span<const Id> insts) const {
  std::vector<char> observed(insts.size(), 0), loaded(from.params.size(), 0);
  for (std::size_t i = insts.size(); i-- > 0;) {
    observed[i] =
        std::ranges::any_of(analysis.stored_groups(insts[i]), [&](std::uint32_t g) { return loaded[g] != 0; });
    for (const std::uint32_t group : analysis.loaded_groups(insts[i])) loaded[group] = 1;
  }
  return observed;
}

void Reverser::reverse_block(std::span<const Id> insts) {
  const std::vector<char> observed = observed_later(insts);
  for (std::size_t i = 0; i < insts.size(); ++i) {
    const Id id = insts[i];
    const Inst& inst = from[id];
    undo_.forget(id);
    const bool stores = analysis.replays(id) && observed[i];
    if (inst.op == Op::store) {
      if (stores) undo_.store(id, true);
    } else if (inst.op == Op::if_ || inst.op == Op::loop) {
      bool wanted = stores;
      for (Id result : analysis.results(id)) wanted = wanted || (analysis.needed(result) & kAdjointCopy) != 0;
      if (inst.op == Op::loop && analysis.reverses(id) && !analysis.plan(id).trips) wanted = true;
      if (!wanted) continue;
      if (analysis.replays(id)) undo_.mark(id);
      if (inst.op == Op::if_)
        forward_branch(id);
      else
        forward_loop(id);
    } else {
      forward(id, kAdjointCopy, true);
    }
  }
  for (std::size_t i = insts.size(); i-- > 0;) reverse(insts[i]);
}

void Reverser::reverse(Id id) {
  const Inst& inst = from[id];
  switch (inst.op) {
    case Op::param:
    case Op::yield: return;
    case Op::result: {
      const Id gradient = gradients_.take(id), source = from.arg(id, 0);
      if (gradient == kNone) return;
      const auto k = static_cast<std::uint32_t>(inst.imm);
      if (from[source].op == Op::load) return reverse_load(source, k, gradient);
      return gradients_.add_to_result(source, k, gradient);
    }
    case Op::load:
      if (const Id gradient = gradients_.take(id); gradient != kNone) reverse_load(id, 0, gradient);
      return;
    case Op::store: return reverse_store(id);
    case Op::call: return reverse_call(id);
    case Op::if_: return reverse_branch(id);
    case Op::loop: return reverse_loop(id);
    default:
      if (is_atomic(inst.op)) return reverse_atomic(id);
      return reverse_pure(id);
  }
}

void Reverser::reverse_pure(Id id) {
  const Inst& inst = from[id];
  const Id gradient = gradients_.take(id);
  if (gradient == kNone || info(inst.op).derivative != Derivative::differentiable) return;
  const std::uint8_t uses = analysis.derivative_uses_of(id);
  DerivativeSite site{inst};
  site.gradient = gradient;
  const int count = static_cast<int>(inst.num_args);
  for (int k = 0; k < count; ++k)
    if (uses >> k & 1) site.operands[k] = value(from.arg(id, k));
  if (uses & kUseResult) site.result = value(id);
  for (int k = 0; k < count; ++k) {
    const Id operand = from.arg(id, k);
    if (analysis.passes_gradient(id, k)) gradients_.add(operand, derivative(builder, site, k, from[operand].type));
  }
}

void Reverser::reverse_load(Id id, std::uint32_t part, Id gradient) {
  const Type type = from[id].type;
  if (const auto sink = sinks_.find(sink_key(id, part)); sink != sinks_.end())
    return set(sink->second, pure(Op::add, type, {get(sink->second), gradient}));
  array_gradients_.add(id, part, gradient);
}

void Reverser::reverse_store(Id id) {
  const Inst& inst = from[id];
  const Root root = analysis.root(from.arg(id, 0));
  if (root.kind != Root::array) return;
  const ArrayUse& use = analysis.array(root.param);
  if (use.gradient && is_float(inst.type)) {
    const std::vector<Id> gradients = array_gradients_.take(id);
    for (std::uint32_t k = 0; k < inst.width; ++k) gradients_.add(from.arg(id, static_cast<int>(k) + 2), gradients[k]);
  }
  undo_.put_back(id);
}

void Reverser::reverse_atomic(Id id) {
  const Inst& inst = from[id];
  const bool extremum = analysis.is_extremum(id);
  if ((inst.op != Op::atomic_add && !extremum) || !is_float(inst.type)) return;
  const Root root = analysis.root(from.arg(id, 0));
  const Id operand = from.arg(id, 2);
  if (root.kind != Root::array || !analysis.array(root.param).gradient || !analysis.active(operand)) return;
  Id gradient = builder.load(inst.type, 1, array_gradients_.place(id, 0), inst.loc());
  if (extremum) {
    // The gradient goes to the value that was left; if several equal it, to each.
    MemoryRef ref = place(id, 0);
    ref.base = pure(Op::after_base, Type::u64, {ref.base}, inst.loc());
    const Id left = builder.load(inst.type, 1, ref, inst.loc());
    const Id won = pure(Op::eq, Type::b1, {value(operand), left});
    gradient = pure(Op::select, inst.type, {won, gradient, constant(inst.type, 0)});
  }
  gradients_.add(operand, gradient);
}

void Reverser::reverse_branch(Id id) {
  const Inst& inst = from[id];
  const std::vector<Id> pending = gradients_.take_results(id);
  undo_.rewind(id);
  if (!analysis.reverses(id)) return;
  const auto spilled = gradients_.spill(analysis.outer(id));
  builder.open_if(value(from.arg(id, 0)), inst.loc());
  for (int r = 0; r < 2; ++r) {
    if (r == 1) builder.open_else();
    const RegionId region = inst.regions[static_cast<std::size_t>(r)];
    if (region == kNone) continue;
    for (std::uint32_t k = 0; k < pending.size(); ++k)
      if (pending[k] != kNone) gradients_.add(analysis.yielded(region, k), pending[k]);
    reverse_block(from.regions[region].insts);
  }
  builder.close_if();
  gradients_.unspill(spilled);
}

}  // namespace weft::ir
