// The parts of a kernel that run forward in its adjoint: values, and stores that loads of the same kernel see.
#include "../support/error.h"
#include "reverser.h"

namespace weft::ir {

std::vector<Id> Reverser::body_of(Id loop) const {
  std::vector<Id> all;
  for (int r = 0; r < 2; ++r)
    for (Id id : from.regions[from[loop].regions[static_cast<std::size_t>(r)]].insts)
      if (from[id].op != Op::yield && from[id].op != Op::param) all.push_back(id);
  return all;
}

void Reverser::forward_region(RegionId region, CopyMask copy) {
  if (region == kNone) return;
  for (Id id : from.regions[region].insts) forward(id, copy, false);
}

/// Copies an instruction if the copy of this kind needs it.
/// \param direct  the instruction is one of the block that is reversed next, so that values may keep the elements which
///                it overwrites, instead of the log
void Reverser::forward(Id id, CopyMask copy, bool direct) {
  const Inst& inst = from[id];
  switch (inst.op) {
    case Op::param:
    case Op::yield: return;
    case Op::store:
      if (analysis.replays(id)) undo_.store(id, direct);
      return;
    case Op::if_:
    case Op::loop: {
      bool wanted = analysis.replays(id);
      for (Id result : analysis.results(id)) wanted = wanted || (analysis.needed(result) & copy) != 0;
      if (!wanted) return;
      return inst.op == Op::if_ ? forward_branch(id) : forward_loop(id);
    }
    case Op::result:
      // Results of branches and loops are mapped with these.
      if (const Op source = from[from.arg(id, 0)].op; source == Op::if_ || source == Op::loop) return;
      break;
    case Op::call:
      if (analysis.needed(id) & copy) map(id, builder.copy(inst, values(id, 0)));
      return;
    default:
      if (is_atomic(inst.op)) return;
  }
  if ((analysis.needed(id) & copy) == 0) return;
  Id args[9];
  if (inst.num_args > 9) internal_error("an operation with more than nine operands", inst.loc());
  for (std::uint32_t k = 0; k < inst.num_args; ++k) args[k] = value(from.arg(id, static_cast<int>(k)));
  map(id, builder.copy(inst, {args, inst.num_args}));
}

void Reverser::forward_branch(Id id) {
  const Inst& inst = from[id];
  std::vector<std::pair<Id, std::uint32_t>> results;
  for (Id result : analysis.results(id))
    if (analysis.needed(result)) results.emplace_back(result, builder.local(from[result].type));
  builder.open_if(value(from.arg(id, 0)), inst.loc());
  for (int r = 0; r < 2; ++r) {
    if (r == 1) builder.open_else();
    const RegionId region = inst.regions[static_cast<std::size_t>(r)];
    forward_region(region, kRunCopy);
    for (const auto& [result, local] : results)
      set(local, value(analysis.yielded(region, static_cast<std::uint32_t>(from[result].imm))));
  }
  builder.close_if();
  for (const auto& [result, local] : results) map(result, get(local));
}

void Reverser::forward_loop(Id id) {
  const Inst& inst = from[id];
  std::vector<std::uint32_t> locals(inst.num_args, kNone);
  for (std::uint32_t k = 0; k < inst.num_args; ++k) {
    const Id param = analysis.param(id, k);
    if ((analysis.needed(param) & kRunCopy) == 0) continue;
    locals[k] = builder.local(from[param].type);
    set(locals[k], value(from.arg(id, static_cast<int>(k))));
  }
  const std::uint32_t count = builder.local(Type::u32);
  set(count, u32(0));
  builder.open_loop({}, inst.loc());
  for (std::uint32_t k = 0; k < inst.num_args; ++k)
    if (locals[k] != kNone) map(analysis.param(id, k), get(locals[k]));
  forward_region(inst.regions[0], kRunCopy);
  builder.loop_body(value(analysis.yielded(inst.regions[0], 0)));
  forward_region(inst.regions[1], kRunCopy);
  std::vector<Id> next(inst.num_args, kNone);
  for (std::uint32_t k = 0; k < inst.num_args; ++k)
    if (locals[k] != kNone) next[k] = value(analysis.yielded(inst.regions[1], k));
  for (std::uint32_t k = 0; k < inst.num_args; ++k)
    if (locals[k] != kNone) set(locals[k], next[k]);
  set(count, pure(Op::add, Type::u32, {get(count), u32(1)}));
  builder.close_loop();
  for (Id result : analysis.results(id))
    if (analysis.needed(result)) map(result, get(locals[from[result].imm]));
  trips_[id] = get(count);
}

}  // namespace weft::ir
