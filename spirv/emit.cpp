// The shader as a whole: its sections, its entry point, regions and structured control flow.
#include "emit.h"

#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::spirv {

using ir::Id;
using ir::kNone;
using ir::Op;
using ir::Type;

std::vector<std::uint32_t> emit(const ir::Module& module, const Target& target) {
  return Emitter(module, target).run();
}

Emitter::Emitter(const ir::Module& module, const Target& target)
    : module_(module), target_(target), needs_(survey(module, target)) {
  value_.assign(module.insts.size(), 0);
  local_.assign(module.locals.size(), 0);
  body_.reserve(module.insts.size() * 6 + 64);
  w_.annotations.reserve(module.insts.size() * 2 + 64);
  w_.declarations.reserve(512);
}

std::vector<Word> Emitter::run() {
  glsl_ = w_.id();
  main_ = w_.id();
  declare_arguments();
  emit_entry();
  return assemble();
}

// ---- The entry point

void Emitter::emit_entry() {
  Word start = w_.id(), end = w_.id();
  body_label_ = w_.id();
  // The entry block grows while the body is translated: it holds what the body asks to have computed once.
  out_ = &entry_;
  entry_.emit(spv::Op::OpLabel, {start});
  emit_thread_number();
  Word count = argument(Type::u32, 0);
  Word inside = make(spv::Op::OpULessThan, Type::b1, {thread_, count});

  out_ = &body_;
  open_block(body_label_);
  if (emit_region(0).falls) branch(end);
  open_block(end);
  body_.emit(spv::Op::OpReturn, {});
  body_.emit(spv::Op::OpFunctionEnd, {});

  entry_.emit(spv::Op::OpSelectionMerge, {end, Word(spv::SelectionControlMask::MaskNone)});
  entry_.emit(spv::Op::OpBranchConditional, {inside, body_label_, end});
}

// Workgroups beyond what one dimension of a launch holds continue in the next row.
void Emitter::emit_thread_number() {
  const Word input = Word(spv::StorageClass::Input);
  Word triple = w_.vector_type(Type::u32, 3);
  Word pointer = w_.pointer_type(spv::StorageClass(input), triple);
  auto builtin = [&](spv::BuiltIn which) {
    Word v = w_.variable(pointer, spv::StorageClass::Input);
    w_.decorate(v, spv::Decoration::BuiltIn, {Word(which)});
    return v;
  };
  group_ = builtin(spv::BuiltIn::WorkgroupId);
  groups_ = builtin(spv::BuiltIn::NumWorkgroups);
  lane_ = builtin(spv::BuiltIn::LocalInvocationId);
  auto part = [&](Word variable, Word k) {
    Word all = make(spv::Op::OpLoad, triple, {variable});
    return make(spv::Op::OpCompositeExtract, Type::u32, {all, k});
  };
  Word group = make(spv::Op::OpLoad, triple, {group_});
  Word x = make(spv::Op::OpCompositeExtract, Type::u32, {group, 0});
  Word y = make(spv::Op::OpCompositeExtract, Type::u32, {group, 1});
  Word row = make(spv::Op::OpIMul, Type::u32, {y, part(groups_, 0)});
  Word number = make(spv::Op::OpIAdd, Type::u32, {row, x});
  Word first = make(spv::Op::OpIMul, Type::u32, {number, w_.u32(workgroup_size(module_, target_))});
  thread_ = make(spv::Op::OpIAdd, Type::u32, {first, part(lane_, 0)});
}

std::vector<Word> Emitter::assemble() {
  Section head;
  auto capability = [&](bool used, spv::Capability c) {
    if (used) head.emit(spv::Op::OpCapability, {Word(c)});
  };
  const bool modes16 = needs_.real16, modes32 = needs_.real32, modes64 = needs_.real64;
  const bool even16 = modes16 && target_.round_even16, keep16 = modes16 && target_.keep_nan16;
  const bool even32 = modes32 && target_.round_even32, keep32 = modes32 && target_.keep_nan32;
  const bool even64 = modes64 && target_.round_even64, keep64 = modes64 && target_.keep_nan64;
  capability(true, spv::Capability::Shader);
  capability(true, spv::Capability::PhysicalStorageBufferAddresses);
  capability(needs_.int8, spv::Capability::Int8);
  capability(needs_.int16, spv::Capability::Int16);
  capability(needs_.int64, spv::Capability::Int64);
  capability(needs_.float16, spv::Capability::Float16);
  capability(needs_.float64, spv::Capability::Float64);
  capability(needs_.storage8, spv::Capability::StorageBuffer8BitAccess);
  capability(needs_.storage16, spv::Capability::StorageBuffer16BitAccess);
  capability(needs_.float32_atomic_add, spv::Capability::AtomicFloat32AddEXT);
  capability(even16 || even32 || even64, spv::Capability::RoundingModeRTE);
  capability(keep16 || keep32 || keep64, spv::Capability::SignedZeroInfNanPreserve);
  if (needs_.float32_atomic_add) head.emit_text(spv::Op::OpExtension, {}, "SPV_EXT_shader_atomic_float_add");
  head.emit_text(spv::Op::OpExtInstImport, {glsl_}, "GLSL.std.450");
  head.emit(spv::Op::OpMemoryModel,
            {Word(spv::AddressingModel::PhysicalStorageBuffer64), Word(spv::MemoryModel::GLSL450)});
  head.emit_text(spv::Op::OpEntryPoint, {Word(spv::ExecutionModel::GLCompute), main_}, "main",
                 {group_, groups_, lane_, push_});
  head.emit(spv::Op::OpExecutionMode,
            {main_, Word(spv::ExecutionMode::LocalSize), workgroup_size(module_, target_), 1, 1});
  auto mode = [&](bool used, spv::ExecutionMode m, Word width) {
    if (used) head.emit(spv::Op::OpExecutionMode, {main_, Word(m), width});
  };
  mode(even16, spv::ExecutionMode::RoundingModeRTE, 16);
  mode(even32, spv::ExecutionMode::RoundingModeRTE, 32);
  mode(even64, spv::ExecutionMode::RoundingModeRTE, 64);
  mode(keep16, spv::ExecutionMode::SignedZeroInfNanPreserve, 16);
  mode(keep32, spv::ExecutionMode::SignedZeroInfNanPreserve, 32);
  mode(keep64, spv::ExecutionMode::SignedZeroInfNanPreserve, 64);
  head.emit_text(spv::Op::OpName, {main_}, module_.name);

  Word type = w_.function_type();
  w_.declarations.emit(spv::Op::OpFunction, {w_.void_type(), main_, Word(spv::FunctionControlMask::MaskNone), type});

  std::vector<Word> words{spv::MagicNumber, 0x00010500, 0, w_.bound(), 0};
  // The variables of the function come right after the label of its first block, which is the first two words there.
  const std::vector<Word>& entry = entry_.words();
  words.reserve(words.size() + head.size() + w_.annotations.size() + w_.declarations.size() + locals_.size() +
                entry.size() + body_.size());
  auto append = [&](auto first, auto last) { words.insert(words.end(), first, last); };
  for (const Section* s : {&head, &w_.annotations, &w_.declarations}) append(s->words().begin(), s->words().end());
  append(entry.begin(), entry.begin() + 2);
  append(locals_.words().begin(), locals_.words().end());
  append(entry.begin() + 2, entry.end());
  append(body_.words().begin(), body_.words().end());
  return words;
}

// ---- Values

void Emitter::open_block(Word label) {
  block_ = label;
  body_.emit(spv::Op::OpLabel, {label});
}

bool Emitter::is_uniform_entry(Id id) const {
  Op op = module_[id].op;
  return op == Op::constant || op == Op::arg || op == Op::thread_id;
}

Word Emitter::value(Id id) {
  Word& known = value_[id];
  if (known) return known;
  const ir::Inst& inst = module_[id];
  switch (inst.op) {
    case Op::constant: return known = w_.constant(inst.type, inst.imm);
    case Op::arg: return known = argument(inst.type, std::uint32_t(inst.imm));
    case Op::thread_id: return known = thread_;
    default: internal_error("a value is used before it is computed");
  }
}

Word Emitter::local(std::uint64_t number) {
  if (number >= local_.size()) internal_error("a local that does not exist");
  Word& known = local_[number];
  if (!known) {
    const Type type = module_.locals[number].type;
    Word pointer = w_.pointer_type(spv::StorageClass::Function, w_.type(type));
    // Zero at first, as on the reference device.
    locals_.emit(spv::Op::OpVariable,
                 {pointer, known = w_.id(), Word(spv::StorageClass::Function), w_.constant(type, 0)});
  }
  return known;
}

// ---- Regions

Emitter::Flow Emitter::emit_region(ir::RegionId region) {
  for (Id id : module_.regions[region].insts) {
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
      default: emit_inst(id);
    }
  }
  return {};
}

void Emitter::emit_inst(Id id) {
  const ir::Inst& inst = module_[id];
  switch (inst.op) {
    case Op::load: value_[id] = load(id); break;
    case Op::store: store(id); break;
    case Op::atomic_add: value_[id] = atomic_add(id); break;
    case Op::local_get: value_[id] = make(spv::Op::OpLoad, inst.type, {local(inst.imm)}); break;
    case Op::local_set: body_.emit(spv::Op::OpStore, {local(inst.imm), value(module_.arg(id, 0))}); break;
    case Op::param: value_[id] = loops_.back().carried.at(inst.imm); break;
    case Op::result: {
      Id from = module_.arg(id, 0);
      Op op = module_[from].op;
      if (op == Op::load) {
        value_[id] = module_[from].width == 1
                         ? value(from)
                         : make(spv::Op::OpCompositeExtract, inst.type, {value(from), Word(inst.imm)});
      } else {
        value_[id] = results_.at(value_[from] + inst.imm);
      }
      break;
    }
    case Op::constant:
    case Op::arg:
    case Op::thread_id: break;
    default: value_[id] = pure(id);
  }
}

// Returns whether control reaches what follows.
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
    // Only literals, arguments and the like are visible in both regions and still unnamed here; they belong to the
    // entry block, so that naming them does not part the phis.
    Word va = value(a), vb = value(b);
    results_.push_back(va == vb ? va : make(spv::Op::OpPhi, module_[a].type, {va, yes_end, vb, no_end}));
  }
  return true;
}

// header: phis; merge        the values carried round
// check:  condition region   -> body or merge
// body:   body region        -> next
// next:   step region        -> header
void Emitter::emit_loop(Id id) {
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

  // What the second predecessor brings is known only when the body has been translated: filled in below.
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
