// Values, regions and structured control flow.
#include <algorithm>
#include <iterator>
#include <vector>

#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::spirv {

using ir::Id;
using ir::kNone;
using ir::Op;
using ir::Type;

// ---- Values

void Emitter::open_block(Word label) {
  block_ = label;
  body_.emit(spv::Op::OpLabel, {label});
}

bool Emitter::is_uniform_entry(Id id) const { return is_global(module_[id].op); }

Word Emitter::value(Id id) {
  Word& known = value_[id];
  if (known) return known;
  const ir::Inst& inst = module_[id];
  switch (inst.op) {
    case Op::constant: return known = w_.constant(inst.type, inst.imm);
    case Op::arg: return known = argument(inst.type, std::uint32_t(inst.imm));
    case Op::thread_id: return known = thread_number();
    case Op::local_id: return known = local_number();
    case Op::workgroup_id: return known = workgroup_number();
    case Op::subgroup_size: return known = w_.u32(target_.subgroup_size);
    case Op::subgroup_lane: return known = lane_number();
    case Op::subgroup_id: return known = subgroup_number();
    default: internal_error("a value is used before it is computed");
  }
}

Word Emitter::local(std::uint64_t number) {
  if (number >= local_.size()) internal_error("a local that does not exist");
  Word& known = local_[number];
  if (!known) {
    const Type type = module_.locals[number].type;
    Word pointer = w_.pointer_type(spv::StorageClass::Function, w_.type(type));
    // Locals are zero at first, as on the reference device.
    locals_.emit(spv::Op::OpVariable,
                 {pointer, known = w_.id(), Word(spv::StorageClass::Function), w_.constant(type, 0)});
  }
  return known;
}

// ---- Regions

Emitter::Flow Emitter::emit_region(ir::RegionId region) {
  const std::span<const Id> insts = module_.regions[region].insts;
  for (std::size_t at = 0; at < insts.size(); ++at) {
    const Id id = insts[at];
    switch (module_[id].op) {
      case Op::yield: return {true, id};
      case Op::break_:
      case Op::continue_:
        if (loops_.empty()) internal_error("break or continue outside a loop");
        if (module_[id].op == Op::break_) {
          branch(loops_.back().merge);
        } else {
          loops_.back().continued = true;
          branch(loops_.back().next);
        }
        return {false, kNone};
      case Op::return_: body_.emit(spv::Op::OpReturn, {}); return {false, kNone};
      case Op::if_:
        if (!emit_if(id)) return {false, kNone};
        break;
      case Op::loop: emit_loop(id); break;
      default:
        if (!needs_.gathers || !gathers(module_, id, target_)) {
          emit_inst(id);
          break;
        }
        // The parts of one element share one vote.
        std::size_t end = at + 1;
        while (end < insts.size() && gathers(module_, insts[end], target_) &&
               module_.arg(insts[end], 0) == module_.arg(id, 0) && module_.arg(insts[end], 1) == module_.arg(id, 1))
          ++end;
        gather(insts.subspan(at, end - at));
        at = end - 1;
    }
  }
  return {};
}

void Emitter::emit_inst(Id id) {
  const ir::Inst& inst = module_[id];
  if (is_atomic(inst.op)) {
    value_[id] = atomic(id);
    return;
  }
  if (is_subgroup(inst.op)) {
    value_[id] = subgroup(id);
    return;
  }
  const bool own = is_memory(inst.op) && module_[module_.arg(id, 0)].op == Op::kernel_array;
  switch (inst.op) {
    case Op::load: value_[id] = own ? own_load(id) : load(id); break;
    case Op::store: own ? own_store(id) : store(id); break;
    case Op::trace_ray: value_[id] = trace_ray(id); break;
    case Op::running_lanes: value_[id] = w_.u32(1); break;
    case Op::barrier: emit_barrier(); break;
    case Op::fence: emit_fence(); break;
    case Op::local_get: value_[id] = make(spv::Op::OpLoad, inst.type, {local(inst.imm)}); break;
    case Op::local_set: body_.emit(spv::Op::OpStore, {local(inst.imm), value(module_.arg(id, 0))}); break;
    case Op::param: value_[id] = loops_.empty() ? inputs_.at(inst.imm) : loops_.back().carried.at(inst.imm); break;
    case Op::call: value_[id] = call(id); break;
    case Op::result: {
      Id from = module_.arg(id, 0);
      Op op = module_[from].op;
      if (op == Op::load || op == Op::trace_ray) {
        value_[id] = module_[from].width == 1
                         ? value(from)
                         : make(spv::Op::OpCompositeExtract, inst.type, {value(from), Word(inst.imm)});
      } else if (op == Op::call) {
        value_[id] = call_result(id);
      } else {
        value_[id] = results_.at(value_[from] + inst.imm);
      }
      break;
    }
    default: value_[id] = pure(id);
  }
}

Word Emitter::call(Id id) {
  const Shader::Function& function = shader_.functions.at(module_[id].imm);
  std::vector<Word> words{function.result_type, w_.id(), function.id};
  for (Id arg : module_.args(id)) words.push_back(value(arg));
  body_.emit(spv::Op::OpFunctionCall, words.data(), words.size());
  return words[1];
}

// A single result is the function's value; several are members of it.
Word Emitter::call_result(Id id) {
  const Id from = module_.arg(id, 0);
  if (shader_.kernel.functions[module_[from].imm]->outputs().size() == 1) return value(from);
  return make(spv::Op::OpCompositeExtract, module_[id].type, {value(from), Word(module_[id].imm)});
}

// Returns whether control reaches the instruction after the branch.
bool Emitter::emit_if(Id id) {
  const ir::Inst& inst = module_[id];
  const bool has_else = inst.regions[1] != kNone && !module_.regions[inst.regions[1]].insts.empty();
  Word condition = value(module_.arg(id, 0));
  Word before = block_, then = w_.id(), otherwise = has_else ? w_.id() : 0, merge = w_.id();
  body_.emit(spv::Op::OpSelectionMerge, {merge, Word(spv::SelectionControlMask::MaskNone)});
  body_.emit(spv::Op::OpBranchConditional, {condition, then, has_else ? otherwise : merge});

  open_block(then);
  Flow yes = emit_region(inst.regions[0]);
  Word yes_end = block_;
  if (yes.falls) branch(merge);

  Flow no;
  Word no_end = before;
  if (has_else) {
    open_block(otherwise);
    no = emit_region(inst.regions[1]);
    no_end = block_;
    if (no.falls) branch(merge);
  }

  open_block(merge);
  if (!yes.falls && !no.falls) {
    body_.emit(spv::Op::OpUnreachable, {});
    return false;
  }
  std::size_t count = yes.yield != kNone ? module_[yes.yield].num_args : 0;
  if (count && (no.yield == kNone || module_[no.yield].num_args != count)) {
    internal_error("the two sides of an if differ in their results");
  }
  value_[id] = Word(results_.size());
  for (std::size_t k = 0; k < count; ++k) {
    Id a = module_.arg(yes.yield, int(k)), b = module_.arg(no.yield, int(k));
    // Only literals, arguments and the like are visible in both regions and still unnamed here. They belong to the
    // entry block, so naming them does not come between the phis.
    Word va = value(a), vb = value(b);
    results_.push_back(va == vb ? va : make(spv::Op::OpPhi, module_[a].type, {va, yes_end, vb, no_end}));
  }
  return true;
}

namespace {

/// The most operations of a condition that is emitted twice.
constexpr std::size_t kCheap = 12;

// Whether a condition is a few operations that give the same wherever they are emitted, as long as nothing happens in
// between.
bool is_cheap(const ir::Module& module, ir::RegionId condition) {
  const std::span<const Id> insts = module.regions[condition].insts;
  if (insts.empty() || insts.size() > kCheap || module[insts.back()].op != Op::yield) return false;
  return std::ranges::all_of(insts.first(insts.size() - 1), [&](Id id) {
    const Op op = module[id].op;
    return op == Op::local_get || ir::info(op).effect == ir::Effect::pure;
  });
}

// Marks the values that a region and its inner regions read.
void mark_read(const ir::Module& module, ir::RegionId region, std::vector<bool>& read) {
  for (const Id id : module.regions[region].insts) {
    for (const Id arg : module.args(id)) read[arg] = true;
    for (const ir::RegionId inner : module[id].regions)
      if (inner != kNone) mark_read(module, inner, read);
  }
}

// Whether a loop goes from one constant to another by a constant step. Drivers unroll such loops as they are. (If
// counters are locals, as in kernels that are not adjoints, this is not known.)
bool is_counted(const ir::Module& module, Id loop) {
  const std::span<const Id> body = module.regions[module[loop].regions[1]].insts;
  const Id go = module.arg(module.regions[module[loop].regions[0]].insts.back(), 0);
  if (module[go].num_args != 2 || body.empty() || module[body.back()].op != Op::yield) return false;
  const auto is_constant = [&](Id id) { return module[id].op == Op::constant; };
  for (int side = 0; side < 2; ++side) {
    const Id counter = module.arg(go, side);
    if (module[counter].op != Op::param || !is_constant(module.arg(go, 1 - side))) continue;
    const int k = int(module[counter].imm);
    if (k >= int(module[loop].num_args) || !is_constant(module.arg(loop, k))) continue;
    const Id next = module.arg(body.back(), k);
    if (module[next].op != Op::add && module[next].op != Op::sub) continue;
    for (int a = 0; a < 2; ++a) {
      const Id from = module.arg(next, a);
      if (module[from].op == Op::param && int(module[from].imm) == k && is_constant(module.arg(next, 1 - a)))
        return true;
    }
  }
  return false;
}

}  // namespace

void Emitter::emit_loop(Id id) {
  if (is_cheap(module_, module_[id].regions[0]) && !is_counted(module_, id))
    emit_guarded_loop(id);
  else
    emit_plain_loop(id);
}

// The loop tests its condition at its end, inside a branch that tests it once:
//
//   before: condition region   -> header or end
//   header: phis; merge        carried values, and those of the condition that body or step use
//   body:   body region        -> next
//   next:   step region, condition region -> header or merge
//   merge:  -> end
//   end:    phis               the loop's results
//
// CPU drivers run the threads of a subgroup in step, and skip a branch that no thread takes. But a loop with its
// condition at the head runs once more than any thread needs, with all of them idle. (Measured on lavapipe of Mesa
// 25.0: a loop of one round took twice as long as its body.)
//
// In one piece: the blocks follow each other as in the outline, and each needs what the ones before it have made.
void Emitter::emit_guarded_loop(Id id) {
  const ir::Inst& inst = module_[id];
  const std::size_t count = inst.num_args;
  const std::span<const Id> condition = module_.regions[inst.regions[0]].insts;
  const Word header = w_.id(), body = w_.id(), end = w_.id();
  // Values of the condition that the loop uses, computed once per test.
  std::vector<Id> shared;
  {
    std::vector<bool> read(module_.insts.size());
    for (const int k : {1, 2})
      if (inst.regions[std::size_t(k)] != kNone) mark_read(module_, inst.regions[std::size_t(k)], read);
    std::ranges::copy_if(condition, std::back_inserter(shared),
                         [&](Id c) { return read[c] && module_[c].op != Op::param; });
  }
  std::vector<Word> initial(count), carried(count), after(count);
  for (std::size_t k = 0; k < count; ++k) initial[k] = value(module_.arg(id, int(k)));
  loops_.push_back({.merge = w_.id(), .next = w_.id(), .continued = false, .carried = {}});
  // The list of loops grows inside, so a reference to it would not stay valid.
  const auto ask = [&](const std::vector<Word>& with) {
    loops_.back().carried = with;
    for (const Id c : condition.first(condition.size() - 1)) emit_inst(c);
    return value(module_.arg(condition.back(), 0));
  };
  const Word enters = ask(initial), before = block_;
  body_.emit(spv::Op::OpSelectionMerge, {end, Word(spv::SelectionControlMask::MaskNone)});
  body_.emit(spv::Op::OpBranchConditional, {enters, header, end});

  open_block(header);
  // The second predecessor's values are known only after the body is translated: they are filled in below.
  std::vector<std::size_t> holes;
  const auto phi = [&](ir::Type type, Word first) {
    const Word made = make(spv::Op::OpPhi, type, {first, before, 0, 0});
    holes.push_back(body_.size() - 2);
    return made;
  };
  for (std::size_t k = 0; k < count; ++k) carried[k] = phi(module_[module_.arg(id, int(k))].type, initial[k]);
  for (const Id c : shared) value_[c] = phi(module_[c].type, value(c));
  for (const Id c : condition)
    if (module_[c].op == Op::param) value_[c] = carried[module_[c].imm];
  loops_.back().carried = carried;
  body_.emit(spv::Op::OpLoopMerge, {loops_.back().merge, loops_.back().next, Word(spv::LoopControlMask::MaskNone)});
  branch(body);
  open_block(body);
  const Flow flow = emit_region(inst.regions[1]);
  if (flow.falls) branch(loops_.back().next);
  if (count && (!flow.falls || flow.yield == kNone || module_[flow.yield].num_args != count))
    internal_error("a loop's body does not end with its carried values");

  open_block(loops_.back().next);
  const bool goes_round = flow.falls || loops_.back().continued;
  if (goes_round && inst.regions[2] != kNone) emit_region(inst.regions[2]);
  for (std::size_t k = 0; k < count; ++k) after[k] = value(module_.arg(flow.yield, int(k)));
  const Word merge = loops_.back().merge;
  std::vector<Word> next = after;
  if (goes_round) {
    const Word again = ask(after);
    body_.emit(spv::Op::OpBranchConditional, {again, header, merge});
  } else {
    branch(header);
  }
  for (const Id c : shared) next.push_back(value(c));
  for (std::size_t k = 0; k < next.size(); ++k) {
    body_[holes[k]] = next[k];
    body_[holes[k] + 1] = block_;
  }
  loops_.pop_back();

  open_block(merge);
  branch(end);
  open_block(end);
  value_[id] = Word(results_.size());
  for (std::size_t k = 0; k < count; ++k)
    results_.push_back(
        make(spv::Op::OpPhi, module_[module_.arg(id, int(k))].type, {initial[k], before, after[k], merge}));
}

// The loop tests its condition at its head:
//
//   header: phis; merge        carried values
//   check:  condition region   -> body or merge
//   body:   body region        -> next
//   next:   step region        -> header
void Emitter::emit_plain_loop(Id id) {
  const ir::Inst& inst = module_[id];
  const std::size_t count = inst.num_args;
  Word before = block_, header = w_.id(), check = w_.id(), body = w_.id();
  Loop loop;
  loop.next = w_.id();
  loop.merge = w_.id();
  std::vector<Word> initial(count);
  for (std::size_t k = 0; k < count; ++k) initial[k] = value(module_.arg(id, int(k)));
  branch(header);
  open_block(header);

  // The second predecessor's values are known only after the body is translated: they are filled in below.
  std::vector<std::size_t> holes(count);
  for (std::size_t k = 0; k < count; ++k) {
    Type t = module_[module_.arg(id, int(k))].type;
    loop.carried.push_back(make(spv::Op::OpPhi, t, {initial[k], before, 0, 0}));
    holes[k] = body_.size() - 2;
  }
  const std::vector<Word> carried = loop.carried;
  body_.emit(spv::Op::OpLoopMerge, {loop.merge, loop.next, Word(spv::LoopControlMask::MaskNone)});
  branch(check);
  loops_.push_back(std::move(loop));

  open_block(check);
  Flow condition = emit_region(inst.regions[0]);
  Flow end{false, kNone};
  if (condition.falls) {
    if (condition.yield == kNone) internal_error("a loop without a condition");
    Word go = value(module_.arg(condition.yield, 0));
    body_.emit(spv::Op::OpBranchConditional, {go, body, loops_.back().merge});
    open_block(body);
    end = emit_region(inst.regions[1]);
    if (end.falls) branch(loops_.back().next);
  }
  if (count && (!end.falls || end.yield == kNone || module_[end.yield].num_args != count)) {
    internal_error("a loop's body does not end with its carried values");
  }

  open_block(loops_.back().next);
  if ((end.falls || loops_.back().continued) && inst.regions[2] != kNone) emit_region(inst.regions[2]);
  for (std::size_t k = 0; k < count; ++k) {
    body_[holes[k]] = value(module_.arg(end.yield, int(k)));
    body_[holes[k] + 1] = block_;
  }
  branch(header);
  Word merge = loops_.back().merge;
  loops_.pop_back();

  open_block(merge);
  value_[id] = Word(results_.size());
  results_.insert(results_.end(), carried.begin(), carried.end());
}

}  // namespace weft::spirv
