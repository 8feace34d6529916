// The walk backwards through blocks and branches.
#include "reverser.h"

#include <algorithm>
#include <unordered_set>

#include "../support/error.h"
#include "rules.h"

namespace weft::ir {

Reverser::Reverser(const Module& kernel, const Analysis& analysis, const ExtraParams& extra,
                   const AdjointOptions& options, Module& out)
    : from_(kernel),
      analysis_(analysis),
      extra_(extra),
      slots_(std::max(options.slots, 1u)),
      out_(out),
      builder_(out),
      deterministic_(options.deterministic),
      map_(kernel.insts.size(), kNone),
      gradient_(kernel.insts.size(), kNone),
      spill_(kernel.insts.size(), kNone),
      pending_(kernel.insts.size()),
      trips_(kernel.insts.size(), kNone),
      heights_(kernel.insts.size(), kNone),
      old_(kernel.insts.size()) {
  for (Id id = 0; id < kernel.insts.size(); ++id) {
    if (kernel[id].op != Op::store || !analysis.replays(id)) continue;
    if (std::ranges::find(log_kinds_, kernel[id].type) == log_kinds_.end()) log_kinds_.push_back(kernel[id].type);
  }
}

void Reverser::enter() {
  lane_ = thread_ = builder_.thread_id();
  if (extra_.first_thread != kNone)
    thread_ = pure(Op::add, Type::u32, {lane_, builder_.arg(Type::u32, out_.params[extra_.first_thread].offset)});
  if (extra_.lanes != kNone) {
    lanes_ = builder_.arg(Type::u32, out_.params[extra_.lanes].offset);
    lanes64_ = pure(Op::convert, Type::u64, {lanes_});
  }
  if (analysis_.has_log()) {
    log_height_ = builder_.local(Type::u32);
    set(log_height_, u32(0));
  }
}

void Reverser::run() {
  enter();
  adopt_functions();
  reverse_block(from_.regions[0].insts);
}

void Reverser::count() {
  counting_ = true;
  enter();
  adopt_functions();
  for (Id id : from_.regions[0].insts) {
    // What stands in the body itself needs no log.
    if (from_[id].op == Op::store && analysis_.replays(id)) {
      std::vector<Id> values;
      for (std::uint32_t k = 2; k < from_[id].num_args; ++k)
        values.push_back(value(from_.arg(id, static_cast<int>(k))));
      builder_.store(from_[id].type, values, primal_ref(id, 0), from_[id].loc());
    } else {
      forward(id, kRunCopy, false);
    }
  }
  builder_.atomic(Op::atomic_max, Type::u32, {get(log_height_)}, {array_base(extra_.scratch), u32(0), 4, 0, 4});
}

// ---- Values

Id Reverser::value(Id old) {
  const Inst& inst = from_[old];
  switch (inst.op) {
    case Op::constant: return builder_.constant(inst.type, inst.imm);
    case Op::arg: return builder_.arg(inst.type, static_cast<std::uint32_t>(inst.imm));
    case Op::thread_id: return thread_;
    case Op::local_id: return pure(Op::rem, Type::u32, {thread_, u32(from_.block)});
    case Op::workgroup_id: return pure(Op::div, Type::u32, {thread_, u32(from_.block)});
    default: break;
  }
  if (is_global(inst.op))
    throw Error(ErrorKind::not_differentiable,
                "what it computes depends on subgroups, which an adjoint cannot form again", from_.name, inst.loc());
  if (map_[old] == kNone) internal_error("an adjoint needs a value that was not computed again", inst.loc());
  return map_[old];
}

// ---- Gradients of values

void Reverser::add_gradient(Id old, Id gradient) {
  if (!analysis_.active(old)) return;
  const Type type = from_[old].type;
  if (spill_[old] != kNone) {
    set(spill_[old], pure(Op::add, type, {get(spill_[old]), gradient}));
  } else {
    Id& sum = gradient_[old];
    sum = sum == kNone ? gradient : pure(Op::add, type, {sum, gradient});
  }
}

Id Reverser::take_gradient(Id old) { return std::exchange(gradient_[old], kNone); }

std::vector<std::pair<Id, std::uint32_t>> Reverser::spill(std::span<const Id> values) {
  std::vector<std::pair<Id, std::uint32_t>> spilled;
  for (Id old : values) {
    if (spill_[old] != kNone) continue;
    const std::uint32_t local = builder_.local(from_[old].type);
    const Id now = take_gradient(old);
    set(local, now == kNone ? constant(from_[old].type, 0) : now);
    spill_[old] = local;
    spilled.emplace_back(old, local);
  }
  return spilled;
}

void Reverser::unspill(const std::vector<std::pair<Id, std::uint32_t>>& spilled) {
  for (const auto& [old, local] : spilled) {
    spill_[old] = kNone;
    gradient_[old] = get(local);
  }
}

// ---- Memory

MemoryRef Reverser::primal_ref(Id memory, std::uint32_t part) {
  const Inst& inst = from_[memory];
  const auto width = static_cast<std::uint32_t>(bytes(inst.type));
  // A part of a wide access is as aligned as a scalar.
  const std::uint32_t align = part == 0 ? inst.align : std::min<std::uint32_t>(inst.align, width);
  return {value(from_.arg(memory, 0)), value(from_.arg(memory, 1)), inst.stride, inst.offset + part * width, align};
}

MemoryRef Reverser::gradient_ref(Id memory, std::uint32_t part) {
  MemoryRef ref = primal_ref(memory, part);
  const std::uint32_t param = analysis_.root(from_.arg(memory, 0)).param;
  const Id primal = array_base(param), gradient = array_base(extra_.gradient[param]);
  // A slice has its distance from the start in both.
  ref.base = ref.base == primal ? gradient
                                : pure(Op::add, Type::u64, {gradient, pure(Op::sub, Type::u64, {ref.base, primal})});
  return ref;
}

void Reverser::accumulate(Id memory, std::uint32_t part, Id gradient) {
  const Inst& inst = from_[memory];
  const MemoryRef ref = gradient_ref(memory, part);
  const std::uint32_t param = analysis_.root(from_.arg(memory, 0)).param;
  if (extra_.sums[param] != kNone) return add_exactly(memory, part, gradient);
  // Where sums have an order, an element that is stored is some thread's own, or refused.
  if (part == 0 && extra_.owners[param] != kNone && deterministic_) check_owner(memory);
  if (analysis_.array(param).own_element) {
    // No other thread comes here.
    const Id sum[] = {pure(Op::add, inst.type, {builder_.load(inst.type, 1, ref, inst.loc()), gradient})};
    builder_.store(inst.type, sum, ref, inst.loc());
  } else if (follows_thread(ref.index)) {
    builder_.atomic(Op::atomic_add, inst.type, {gradient}, ref, inst.loc());
  } else {
    builder_.gather(inst.type, gradient, ref, inst.loc());
  }
}

/// Is an index computed from the number of the thread? Then neighbours hardly mean one element.
bool Reverser::follows_thread(Id index) const {
  std::vector<Id> work{index};
  std::unordered_set<Id> seen;
  while (!work.empty()) {
    const Id id = work.back();
    work.pop_back();
    const Inst& inst = out_[id];
    if (inst.op == Op::thread_id) return true;
    if (info(inst.op).effect != Effect::pure || inst.op == Op::result || inst.op == Op::param) continue;
    for (Id arg : out_.args(id))
      if (seen.insert(arg).second) work.push_back(arg);
  }
  return false;
}

// ---- Blocks

bool Reverser::observed_later(std::span<const Id> insts, std::size_t at) const {
  for (std::size_t later = at + 1; later < insts.size(); ++later)
    for (std::uint32_t param = 0; param < from_.params.size(); ++param) {
      const std::uint32_t group = analysis_.array(param).group;
      if (analysis_.stores_group(insts[at], group) && analysis_.loads_group(insts[later], group)) return true;
    }
  return false;
}

void Reverser::reverse_block(std::span<const Id> insts) {
  for (std::size_t i = 0; i < insts.size(); ++i) {
    const Id id = insts[i];
    const Inst& inst = from_[id];
    old_[id].clear();
    heights_[id] = kNone;
    const bool stores = analysis_.replays(id) && observed_later(insts, i);
    if (inst.op == Op::store) {
      if (stores) forward(id, kAdjointCopy, true);
    } else if (inst.op == Op::if_ || inst.op == Op::loop) {
      bool wanted = stores;
      for (Id result : analysis_.results(id)) wanted = wanted || (analysis_.needed(result) & kAdjointCopy) != 0;
      if (inst.op == Op::loop && analysis_.reverses(id) && !analysis_.plan(id).trips) wanted = true;
      if (!wanted) continue;
      if (analysis_.replays(id)) heights_[id] = get(log_height_);
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
  const Inst& inst = from_[id];
  switch (inst.op) {
    case Op::param:
    case Op::yield: return;
    case Op::result: {
      const Id gradient = take_gradient(id), source = from_.arg(id, 0);
      if (gradient == kNone) return;
      const auto k = static_cast<std::uint32_t>(inst.imm);
      if (from_[source].op == Op::load) return reverse_load(source, k, gradient);
      std::vector<Id>& pending = pending_[source];
      if (pending.size() <= k) pending.resize(k + 1, kNone);
      pending[k] = pending[k] == kNone ? gradient : pure(Op::add, inst.type, {pending[k], gradient});
      return;
    }
    case Op::load:
      if (const Id gradient = take_gradient(id); gradient != kNone) reverse_load(id, 0, gradient);
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
  const Inst& inst = from_[id];
  const Id gradient = take_gradient(id);
  if (gradient == kNone || info(inst.op).derivative != Derivative::differentiable) return;
  std::uint8_t uses = 0;
  for (std::uint32_t k = 0; k < inst.num_args; ++k) {
    const int n = static_cast<int>(k);
    if (is_differentiable(from_, id, n) && analysis_.active(from_.arg(id, n))) uses |= derivative_uses(inst.op, n);
  }
  DerivativeSite site{inst};
  site.gradient = gradient;
  for (std::uint32_t k = 0; k < inst.num_args; ++k)
    if (uses >> k & 1) site.operands[k] = value(from_.arg(id, static_cast<int>(k)));
  if (uses & kUseResult) site.result = value(id);
  for (std::uint32_t k = 0; k < inst.num_args; ++k) {
    const int n = static_cast<int>(k);
    const Id operand = from_.arg(id, n);
    if (is_differentiable(from_, id, n) && analysis_.active(operand))
      add_gradient(operand, derivative(builder_, site, n, from_[operand].type));
  }
}

void Reverser::reverse_load(Id id, std::uint32_t part, Id gradient) {
  const Type type = from_[id].type;
  if (const auto sink = sinks_.find(std::uint64_t{id} << 2 | part); sink != sinks_.end())
    return set(sink->second, pure(Op::add, type, {get(sink->second), gradient}));
  accumulate(id, part, gradient);
}

void Reverser::reverse_store(Id id) {
  const Inst& inst = from_[id];
  const Root root = analysis_.root(from_.arg(id, 0));
  if (root.kind != Root::array) return;
  const ArrayUse& use = analysis_.array(root.param);
  if (use.gradient && is_float(inst.type)) {
    if (extra_.owners[root.param] != kNone) check_owner(id);
    const MemoryRef ref = gradient_ref(id, 0);
    const Id loaded = builder_.load(inst.type, inst.width, ref, inst.loc());
    std::vector<Id> gradients;
    for (std::uint32_t k = 0; k < inst.width; ++k)
      gradients.push_back(inst.width == 1 ? loaded : builder_.result(loaded, k, inst.type));
    // What was there before has no part in what came after.
    const std::vector<Id> zeros(inst.width, constant(inst.type, 0));
    builder_.store(inst.type, zeros, ref, inst.loc());
    for (std::uint32_t k = 0; k < inst.width; ++k) add_gradient(from_.arg(id, static_cast<int>(k) + 2), gradients[k]);
  }
  if (!old_[id].empty()) builder_.store(inst.type, old_[id], primal_ref(id, 0), inst.loc());
}

/// How many bytes behind the start of the parameter a part of what is accessed lies, u64.
Id Reverser::byte_in_array(Id memory, std::uint32_t part) {
  const MemoryRef ref = primal_ref(memory, part);
  Id index = ref.index;
  const Type index_type = builder_.module()[index].type;
  if (is_signed(index_type) && index_type != Type::i64) index = pure(Op::convert, Type::i64, {index});
  index = is_signed(index_type) ? pure(Op::bitcast, Type::u64, {index}) : pure(Op::convert, Type::u64, {index});
  Id at = pure(Op::mul, Type::u64, {index, builder_.constant(Type::u64, ref.stride)});
  at = pure(Op::add, Type::u64, {at, builder_.constant(Type::u64, ref.offset)});
  const Id start = array_base(analysis_.root(from_.arg(memory, 0)).param);
  return ref.base == start ? at : pure(Op::add, Type::u64, {at, pure(Op::sub, Type::u64, {ref.base, start})});
}

// The way back takes a stored element's gradient for the thread that stored it. Of two threads the first to come would
// get it: each leaves its number where it stored, and finds the other's.
void Reverser::check_owner(Id store) {
  const Inst& inst = from_[store];
  const std::uint32_t param = analysis_.root(from_.arg(store, 0)).param;
  const Id own = pure(Op::add, Type::u32, {thread_, u32(1)});
  Id shared = builder_.constant(Type::b1, 0);
  for (std::uint32_t part = 0; part < inst.width; ++part) {
    const Id unit = builder_.constant(Type::u64, analysis_.array(param).narrow ? 1 : 2);
    const Id at = pure(Op::shr, Type::u64, {byte_in_array(store, part), unit});
    const Id other =
        builder_.atomic(Op::atomic_cas, Type::u32, {u32(0), own},
                        {array_base(extra_.owners[param]), pure(Op::bitcast, Type::i64, {at}), 4, 0, 4}, inst.loc());
    const Id taken =
        pure(Op::bit_and, Type::b1, {pure(Op::ne, Type::b1, {other, u32(0)}), pure(Op::ne, Type::b1, {other, own})});
    shared = pure(Op::bit_or, Type::b1, {shared, taken});
  }
  builder_.open_if(shared, inst.loc());
  Message message;
  message.kind = Message::Kind::gradient;
  message.pieces.emplace_back().text =
      from_.params[param].name +
      (inst.op == Op::store
           ? " gets an element from several threads of this store: whose value is left, and so its gradient, depends "
             "on their order; to sum what they give, write atomic_add(), else let each thread store elements of its own"
           : " is stored, and an element of it is read here by several threads: the order in which they add to its "
             "gradient, which a deterministic tape needs, is not known");
  append_report(builder_, out_, std::move(message), {}, inst.loc());
  builder_.close_if();
}

void Reverser::reverse_atomic(Id id) {
  const Inst& inst = from_[id];
  const bool extremum = analysis_.is_extremum(id);
  if ((inst.op != Op::atomic_add && !extremum) || !is_float(inst.type)) return;
  const Root root = analysis_.root(from_.arg(id, 0));
  const Id operand = from_.arg(id, 2);
  if (root.kind != Root::array || !analysis_.array(root.param).gradient || !analysis_.active(operand)) return;
  Id gradient = builder_.load(inst.type, 1, gradient_ref(id, 0), inst.loc());
  if (extremum) {
    // The gradient is that of the value which was left; of equal ones, of each.
    MemoryRef ref = primal_ref(id, 0);
    ref.base = pure(Op::after_base, Type::u64, {ref.base}, inst.loc());
    const Id left = builder_.load(inst.type, 1, ref, inst.loc());
    const Id won = pure(Op::eq, Type::b1, {value(operand), left});
    gradient = pure(Op::select, inst.type, {won, gradient, constant(inst.type, 0)});
  }
  add_gradient(operand, gradient);
}

void Reverser::reverse_branch(Id id) {
  const Inst& inst = from_[id];
  const std::vector<Id> pending = std::exchange(pending_[id], {});
  if (heights_[id] != kNone) rollback(heights_[id]);
  if (!analysis_.reverses(id)) return;
  const auto spilled = spill(analysis_.outer(id));
  builder_.open_if(value(from_.arg(id, 0)), inst.loc());
  for (int r = 0; r < 2; ++r) {
    if (r == 1) builder_.open_else();
    const RegionId region = inst.regions[static_cast<std::size_t>(r)];
    if (region == kNone) continue;
    for (std::uint32_t k = 0; k < pending.size(); ++k)
      if (pending[k] != kNone) add_gradient(analysis_.yielded(region, k), pending[k]);
    reverse_block(from_.regions[region].insts);
  }
  builder_.close_if();
  unspill(spilled);
}

}  // namespace weft::ir
