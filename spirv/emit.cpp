// The shader as a whole: its sections, its entry point, and the called functions.
#include "emit.h"

#include <span>
#include <utility>

#include "../frontend/support/error.h"
#include "emitter.h"
#include "lower.h"

namespace weft::spirv {

using ir::Id;
using ir::kNone;
using ir::Type;

Section header(const Common& common, const Needs& needs, const EntryPoint& main) {
  const Target& target = common.target;
  Section head;
  auto capability = [&](bool used, spv::Capability c) {
    if (used) head.emit(spv::Op::OpCapability, {Word(c)});
  };
  const bool modes16 = needs.real16, modes32 = needs.real32, modes64 = needs.real64;
  const bool even16 = modes16 && target.round_even16, keep16 = modes16 && target.keep_nan16;
  const bool even32 = modes32 && target.round_even32, keep32 = modes32 && target.keep_nan32;
  const bool even64 = modes64 && target.round_even64, keep64 = modes64 && target.keep_nan64;
  capability(true, spv::Capability::Shader);
  capability(true, spv::Capability::PhysicalStorageBufferAddresses);
  for (const spv::Capability c : needs.capabilities) capability(true, c);
  capability(common.within_workgroup, spv::Capability::VulkanMemoryModel);
  capability(common.within_workgroup, spv::Capability::VulkanMemoryModelDeviceScope);
  capability(even16 || even32 || even64, spv::Capability::RoundingModeRTE);
  capability(keep16 || keep32 || keep64, spv::Capability::SignedZeroInfNanPreserve);
  if (needs.has(spv::Capability::AtomicFloat32AddEXT) || needs.has(spv::Capability::AtomicFloat64AddEXT))
    head.emit_text(spv::Op::OpExtension, {}, "SPV_EXT_shader_atomic_float_add");
  if (needs.has(spv::Capability::RayQueryKHR)) head.emit_text(spv::Op::OpExtension, {}, "SPV_KHR_ray_query");
  const bool meet_again = needs.subgroup && target.subgroup_uniform_flow;
  if (meet_again) head.emit_text(spv::Op::OpExtension, {}, "SPV_KHR_subgroup_uniform_control_flow");
  head.emit_text(spv::Op::OpExtInstImport, {common.glsl}, "GLSL.std.450");
  head.emit(spv::Op::OpMemoryModel,
            {Word(spv::AddressingModel::PhysicalStorageBuffer64),
             Word(common.within_workgroup ? spv::MemoryModel::Vulkan : spv::MemoryModel::GLSL450)});
  head.emit_text(spv::Op::OpEntryPoint, {Word(spv::ExecutionModel::GLCompute), main.id}, "main", common.interface);
  head.emit(spv::Op::OpExecutionMode, {main.id, Word(spv::ExecutionMode::LocalSize), main.threads, 1, 1});
  if (meet_again)
    head.emit(spv::Op::OpExecutionMode, {main.id, Word(spv::ExecutionMode::SubgroupUniformControlFlowKHR)});
  auto mode = [&](bool used, spv::ExecutionMode m, Word width) {
    if (used) head.emit(spv::Op::OpExecutionMode, {main.id, Word(m), width});
  };
  mode(even16, spv::ExecutionMode::RoundingModeRTE, 16);
  mode(even32, spv::ExecutionMode::RoundingModeRTE, 32);
  mode(even64, spv::ExecutionMode::RoundingModeRTE, 64);
  mode(keep16, spv::ExecutionMode::SignedZeroInfNanPreserve, 16);
  mode(keep32, spv::ExecutionMode::SignedZeroInfNanPreserve, 32);
  mode(keep64, spv::ExecutionMode::SignedZeroInfNanPreserve, 64);
  for (const auto& [id, name] : main.names) head.emit_text(spv::Op::OpName, {id}, name);
  return head;
}

std::vector<Word> module_words(const Common& common, const Section& head, std::span<const std::vector<Word>> code) {
  const Writer& w = common.writer;
  std::vector<Word> words{spv::MagicNumber, 0x00010500, 0, w.bound(), 0};
  std::size_t size = words.size() + head.size() + w.annotations.size() + w.declarations.size();
  for (const auto& part : code) size += part.size();
  words.reserve(size);
  for (const Section* s : {&head, &w.annotations, &w.declarations})
    words.insert(words.end(), s->words().begin(), s->words().end());
  for (const auto& part : code) words.insert(words.end(), part.begin(), part.end());
  return words;
}

std::vector<std::uint32_t> emit(const ir::Module& kernel_module, const Target& target, ArgumentsIn arguments) {
  const std::optional<ir::Module> lowered = lower(kernel_module);
  const ir::Module& module = lowered ? *lowered : kernel_module;
  Common common(target);
  Shader shader(module, common, arguments);
  Writer& w = common.writer;
  common.glsl = w.id();
  EntryPoint main{w.id(), workgroup_size(module, target), {}};
  main.names.emplace_back(main.id, module.name);
  Emitter kernel(module, shader);
  kernel.declare_arguments();
  common.declare_builtins(shader.needs.subgroup);
  std::vector<std::vector<Word>> code;
  for (const auto& function : module.functions) {
    Shader::Function made;
    code.push_back(Emitter(*function, shader).function(made));
    shader.functions.push_back(made);
    main.names.emplace_back(made.id, function->function);
  }
  code.push_back(kernel.entry_point(main.id));
  return module_words(common, header(common, shader.needs, main), code);
}

Emitter::Emitter(const ir::Module& body, Shader& shader)
    : module_(body), shader_(shader), target_(shader.common.target), needs_(shader.needs), w_(shader.common.writer) {
  value_.assign(body.insts.size(), 0);
  local_.assign(body.locals.size(), 0);
  body_.reserve(body.insts.size() * 6 + 64);
  w_.annotations.reserve(w_.annotations.size() + body.insts.size() * 2 + 64);
  w_.declarations.reserve(512);
}

std::vector<Word> Emitter::entry_point(Word main) {
  Word start = w_.id(), end = w_.id(), first = w_.id();
  // The entry block grows while the body is translated: it holds values that the body needs computed once.
  out_ = &entry_;
  fields_.assign(shader_.fields.size(), 0);
  Word count = argument(Type::u32, 0);
  // Threads that work together run or skip the body as whole workgroups, by a condition that is uniform in each.
  Word number = shader_.group_use.together
                    ? make(spv::Op::OpIMul, Type::u32, {workgroup_number(), w_.u32(workgroup_size(module_, target_))})
                    : thread_number();
  Word inside = make(spv::Op::OpULessThan, Type::b1, {number, count});

  out_ = &body_;
  open_block(first);
  if (emit_region(0).falls) branch(end);
  open_block(end);
  body_.emit(spv::Op::OpReturn, {});
  body_.emit(spv::Op::OpFunctionEnd, {});

  entry_.emit(spv::Op::OpSelectionMerge, {end, Word(spv::SelectionControlMask::MaskNone)});
  entry_.emit(spv::Op::OpBranchConditional, {inside, first, end});
  Section head;
  head.emit(spv::Op::OpFunction,
            {w_.void_type(), main, Word(spv::FunctionControlMask::MaskNone), w_.function_type(w_.void_type(), {})});
  head.emit(spv::Op::OpLabel, {start});
  return assemble(head);
}

std::vector<Word> Emitter::function(Shader::Function& made) {
  fields_.assign(shader_.fields.size(), 0);
  std::vector<Word> inputs, outputs;
  for (std::uint32_t k = 0; k < module_.num_inputs; ++k)
    inputs.push_back(w_.type(module_[module_.regions[0].insts[k]].type));
  for (Id id : module_.outputs()) outputs.push_back(w_.type(module_[id].type));
  made.id = w_.id();
  made.result_type = outputs.empty() ? w_.void_type() : outputs.size() == 1 ? outputs[0] : w_.struct_type(outputs);

  Section head;
  head.emit(spv::Op::OpFunction, {made.result_type, made.id, Word(spv::FunctionControlMask::MaskNone),
                                  w_.function_type(made.result_type, inputs)});
  for (Word type : inputs) {
    inputs_.push_back(w_.id());
    head.emit(spv::Op::OpFunctionParameter, {type, inputs_.back()});
  }
  head.emit(spv::Op::OpLabel, {w_.id()});

  const Word first = w_.id();
  open_block(first);
  const Flow flow = emit_region(0);
  if (!flow.falls) internal_error("a function whose end is not reached");
  if (outputs.empty()) {
    body_.emit(spv::Op::OpReturn, {});
  } else {
    std::vector<Word> words{made.result_type, w_.id()};
    for (Id id : module_.outputs()) words.push_back(value(id));
    if (outputs.size() > 1) body_.emit(spv::Op::OpCompositeConstruct, words.data(), words.size());
    body_.emit(spv::Op::OpReturnValue, {outputs.size() > 1 ? words[1] : words[2]});
  }
  body_.emit(spv::Op::OpFunctionEnd, {});
  entry_.emit(spv::Op::OpBranch, {first});
  return assemble(head);
}

std::vector<Word> Emitter::assemble(const Section& head) const {
  std::vector<Word> words;
  words.reserve(head.size() + locals_.size() + entry_.size() + body_.size());
  for (const Section* s : {&head, &locals_, &entry_, &body_})
    words.insert(words.end(), s->words().begin(), s->words().end());
  return words;
}

void Common::declare_builtins(bool subgroups) {
  const Word triple = writer.pointer_type(spv::StorageClass::Input, writer.vector_type(Type::u32, 3));
  auto builtin = [&](spv::BuiltIn which, Word pointer) {
    Word v = writer.variable(pointer, spv::StorageClass::Input);
    writer.decorate(v, spv::Decoration::BuiltIn, {Word(which)});
    interface.push_back(v);
    return v;
  };
  group = builtin(spv::BuiltIn::WorkgroupId, triple);
  groups = builtin(spv::BuiltIn::NumWorkgroups, triple);
  if (subgroups) {
    const Word scalar = writer.pointer_type(spv::StorageClass::Input, writer.type(Type::u32));
    subgroup = builtin(spv::BuiltIn::SubgroupId, scalar);
    lane = builtin(spv::BuiltIn::SubgroupLocalInvocationId, scalar);
  } else {
    local = builtin(spv::BuiltIn::LocalInvocationId, triple);
  }
}

// Workgroups beyond the limit of one dimension continue in the next row.
Word Emitter::workgroup_number() {
  if (workgroup_) return workgroup_;
  Section* before = std::exchange(out_, &entry_);
  const Word triple = w_.vector_type(Type::u32, 3);
  auto part = [&](Word all, Word k) { return make(spv::Op::OpCompositeExtract, Type::u32, {all, k}); };
  const Word group = make(spv::Op::OpLoad, triple, {shader_.common.group});
  const Word x = part(group, 0), y = part(group, 1);
  const Word row =
      make(spv::Op::OpIMul, Type::u32, {y, part(make(spv::Op::OpLoad, triple, {shader_.common.groups}), 0)});
  workgroup_ = make(spv::Op::OpIAdd, Type::u32, {row, x});
  out_ = before;
  return workgroup_;
}

Word Emitter::subgroup_number() {
  Section* before = std::exchange(out_, &entry_);
  if (!subgroup_) subgroup_ = make(spv::Op::OpLoad, Type::u32, {shader_.common.subgroup});
  out_ = before;
  return subgroup_;
}

Word Emitter::lane_number() {
  Section* before = std::exchange(out_, &entry_);
  if (!lane_) lane_ = make(spv::Op::OpLoad, Type::u32, {shader_.common.lane});
  out_ = before;
  return lane_;
}

// If subgroups are used, threads are numbered after them, however the device assigns threads to them.
Word Emitter::local_number() {
  if (local_id_) return local_id_;
  Section* before = std::exchange(out_, &entry_);
  if (needs_.subgroup) {
    const Word first = make(spv::Op::OpIMul, Type::u32, {subgroup_number(), w_.u32(target_.subgroup_size)});
    local_id_ = make(spv::Op::OpIAdd, Type::u32, {first, lane_number()});
  } else {
    const Word all = make(spv::Op::OpLoad, w_.vector_type(Type::u32, 3), {shader_.common.local});
    local_id_ = make(spv::Op::OpCompositeExtract, Type::u32, {all, 0});
  }
  out_ = before;
  return local_id_;
}

Word Emitter::thread_number() {
  if (shader_.common.launch) return local_number();
  if (thread_) return thread_;
  Section* before = std::exchange(out_, &entry_);
  const Word size = w_.u32(workgroup_size(shader_.kernel, target_));
  const Word first = make(spv::Op::OpIMul, Type::u32, {workgroup_number(), size});
  thread_ = make(spv::Op::OpIAdd, Type::u32, {first, local_number()});
  out_ = before;
  return thread_;
}

}  // namespace weft::spirv
