// What of the kernel runs forward in its adjoint: values, and stores that loads of the same kernel see.
#include "../support/error.h"
#include "reverser.h"

namespace weft::ir {

std::vector<Id> Reverser::body_of(Id loop) const {
  std::vector<Id> all;
  for (int r = 0; r < 2; ++r)
    for (Id id : from_.regions[from_[loop].regions[static_cast<std::size_t>(r)]].insts)
      if (from_[id].op != Op::yield && from_[id].op != Op::param) all.push_back(id);
  return all;
}

void Reverser::forward_region(RegionId region, CopyMask copy) {
  if (region == kNone) return;
  for (Id id : from_.regions[region].insts) forward(id, copy, false);
}

/// `direct`: the instruction is one of the block that is reversed next, so that what it overwrites may be kept in a
/// value instead of the log.
void Reverser::forward(Id id, CopyMask copy, bool direct) {
  const Inst& inst = from_[id];
  switch (inst.op) {
    case Op::param:
    case Op::yield: return;
    case Op::store:
      if (analysis_.replays(id)) forward_store(id, direct);
      return;
    case Op::if_:
    case Op::loop: {
      bool wanted = analysis_.replays(id);
      for (Id result : analysis_.results(id)) wanted = wanted || (analysis_.needed(result) & copy) != 0;
      if (!wanted) return;
      return inst.op == Op::if_ ? forward_branch(id) : forward_loop(id);
    }
    case Op::result:
      // Those of branches and loops are mapped with them.
      if (from_[from_.arg(id, 0)].op != Op::load && from_[from_.arg(id, 0)].op != Op::call) return;
      break;
    case Op::call:
      if (analysis_.needed(id) & copy) map_[id] = builder_.copy(inst, call_args(id));
      return;
    default:
      if (is_atomic(inst.op)) return;
  }
  if ((analysis_.needed(id) & copy) == 0) return;
  Id args[4];
  if (inst.num_args > 4) internal_error("an operation with more than four operands", inst.loc());
  for (std::uint32_t k = 0; k < inst.num_args; ++k) args[k] = value(from_.arg(id, static_cast<int>(k)));
  map_[id] = builder_.copy(inst, {args, inst.num_args});
}

void Reverser::forward_branch(Id id) {
  const Inst& inst = from_[id];
  std::vector<std::pair<Id, std::uint32_t>> results;
  for (Id result : analysis_.results(id))
    if (analysis_.needed(result)) results.emplace_back(result, builder_.local(from_[result].type));
  builder_.open_if(value(from_.arg(id, 0)), inst.loc());
  for (int r = 0; r < 2; ++r) {
    if (r == 1) builder_.open_else();
    const RegionId region = inst.regions[static_cast<std::size_t>(r)];
    forward_region(region, kRunCopy);
    for (const auto& [result, local] : results)
      set(local, value(analysis_.yielded(region, static_cast<std::uint32_t>(from_[result].imm))));
  }
  builder_.close_if();
  for (const auto& [result, local] : results) map_[result] = get(local);
}

void Reverser::forward_loop(Id id) {
  const Inst& inst = from_[id];
  std::vector<std::uint32_t> locals(inst.num_args, kNone);
  for (std::uint32_t k = 0; k < inst.num_args; ++k) {
    const Id param = analysis_.param(id, k);
    if ((analysis_.needed(param) & kRunCopy) == 0) continue;
    locals[k] = builder_.local(from_[param].type);
    set(locals[k], value(from_.arg(id, static_cast<int>(k))));
  }
  const std::uint32_t count = builder_.local(Type::u32);
  set(count, u32(0));
  builder_.open_loop({}, inst.loc());
  for (std::uint32_t k = 0; k < inst.num_args; ++k)
    if (locals[k] != kNone) map_[analysis_.param(id, k)] = get(locals[k]);
  forward_region(inst.regions[0], kRunCopy);
  builder_.loop_body(value(analysis_.yielded(inst.regions[0], 0)));
  forward_region(inst.regions[1], kRunCopy);
  std::vector<Id> next(inst.num_args, kNone);
  for (std::uint32_t k = 0; k < inst.num_args; ++k)
    if (locals[k] != kNone) next[k] = value(analysis_.yielded(inst.regions[1], k));
  for (std::uint32_t k = 0; k < inst.num_args; ++k)
    if (locals[k] != kNone) set(locals[k], next[k]);
  set(count, pure(Op::add, Type::u32, {get(count), u32(1)}));
  builder_.close_loop();
  for (Id result : analysis_.results(id))
    if (analysis_.needed(result)) map_[result] = get(locals[from_[result].imm]);
  trips_[id] = get(count);
}

void Reverser::forward_store(Id id, bool direct) {
  if (!direct) return push_store(id);
  const Inst& inst = from_[id];
  const MemoryRef ref = primal_ref(id, 0);
  std::vector<Id>& old = old_[id];
  old.clear();
  const Id loaded = builder_.load(inst.type, inst.width, ref, inst.loc());
  for (std::uint32_t k = 0; k < inst.width; ++k)
    old.push_back(inst.width == 1 ? loaded : builder_.result(loaded, k, inst.type));
  std::vector<Id> values;
  for (std::uint32_t k = 2; k < inst.num_args; ++k) values.push_back(value(from_.arg(id, static_cast<int>(k))));
  builder_.store(inst.type, values, ref, inst.loc());
}

}  // namespace weft::ir
