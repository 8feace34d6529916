// Runs launches of small kernels as steps of one shader.
//
// A dispatch and the barrier after it cost a device some microseconds, many times the work of a launch of one
// workgroup. A chain is one dispatch of one workgroup, which goes through a list of launches; between two of them its
// threads wait for each other. Kernels are functions of the shader. They find their arguments through an address that
// the loop puts into a private variable of each thread, and number their threads by the place in the workgroup.
//
//   for (round = 0; round < rounds; ++round)
//     for (place of the round) {              // unrolled
//       launch = steps[round * places + place].arguments;
//       switch (steps[..].which) { case 0: first_kernel(); ... }   // if a place has several kernels
//       barrier();
//     }
//
// Rounds make the usual case fast, a few kernels in the same order again and again. They need no switch, of which
// devices that run both sides of a branch pay for all cases.
#include "../frontend/support/error.h"
#include "emit.h"
#include "emitter.h"
#include "lower.h"

namespace weft::spirv {

using ir::Type;

bool can_chain(const ir::Module& module) {
  const ir::GroupUse use = ir::group_use(module);
  const bool own_arrays = std::ranges::all_of(module.arrays, &ir::KernelArray::is_private);
  const auto traces = [](const ir::Module& body) {
    return std::ranges::any_of(body.insts, [](const ir::Inst& i) { return i.op == ir::Op::trace_ray; });
  };
  const bool rays = traces(module) || std::ranges::any_of(module.functions, [&](const auto& f) { return traces(*f); });
  return !use.hands_over() && !use.subgroups && own_arrays && !rays && !module.fixed_block && !module.wide &&
         module.report_offset == 0;
}

namespace {

/// The function that runs the steps.
class Loop {
 public:
  Loop(Common& common, std::span<const Word> kernels, std::span<const std::vector<std::uint32_t>> places)
      : common_(common), w_(common.writer), kernels_(kernels), places_(places) {}

  std::vector<Word> function(Word main);

 private:
  Word make(spv::Op op, Word type, std::initializer_list<Word> operands) {
    std::vector<Word> words{type, w_.id()};
    words.insert(words.end(), operands);
    out_.emit(op, words.data(), words.size());
    return words[1];
  }
  Word make(spv::Op op, Type type, std::initializer_list<Word> operands) { return make(op, w_.type(type), operands); }
  void label(Word id) { out_.emit(spv::Op::OpLabel, {id}); }
  void branch(Word to) { out_.emit(spv::Op::OpBranch, {to}); }
  Word pushed(std::uint32_t member, Type type) {
    const Word pointer = w_.pointer_type(spv::StorageClass::PushConstant, w_.type(type));
    return make(spv::Op::OpLoad, type, {make(spv::Op::OpAccessChain, pointer, {push_, w_.u32(member)})});
  }
  /// Reads a member of a step.
  Word read(Word step, std::uint32_t member, Type type) {
    const Word pointer = w_.pointer_type(spv::StorageClass::PhysicalStorageBuffer, w_.type(type));
    return make(
        spv::Op::OpLoad, type,
        {make(spv::Op::OpAccessChain, pointer, {step, w_.u32(member)}), Word(spv::MemoryAccessMask::Aligned), 8});
  }
  void call(std::uint32_t kernel) { make(spv::Op::OpFunctionCall, w_.void_type(), {kernels_[kernel]}); }
  void declare();
  void step(Word at, const std::vector<std::uint32_t>& kernels);

  Common& common_;
  Writer& w_;
  std::span<const Word> kernels_;  ///< functions
  std::span<const std::vector<std::uint32_t>> places_;
  Section out_;
  Word push_ = 0, to_step_ = 0;
};

void Loop::declare() {
  const Word holder = w_.struct_type({w_.type(Type::u64), w_.type(Type::u32)});
  const Word one = w_.struct_type({w_.type(Type::u64), w_.type(Type::u32)});
  for (const Word type : {holder, one}) {
    w_.decorate(type, spv::Decoration::Block);
    w_.decorate_member(type, 0, spv::Decoration::Offset, {0});
    w_.decorate_member(type, 1, spv::Decoration::Offset, {8});
  }
  for (const Word member : {0, 1}) w_.decorate_member(one, member, spv::Decoration::NonWritable);
  push_ = w_.variable(w_.pointer_type(spv::StorageClass::PushConstant, holder), spv::StorageClass::PushConstant);
  common_.interface.push_back(push_);
  to_step_ = w_.pointer_type(spv::StorageClass::PhysicalStorageBuffer, one);
}

void Loop::step(Word at, const std::vector<std::uint32_t>& kernels) {
  const Word step = make(spv::Op::OpConvertUToPtr, to_step_, {at});
  out_.emit(spv::Op::OpStore, {common_.launch, read(step, 0, Type::u64)});
  if (kernels.size() == 1) {
    call(kernels[0]);
  } else {
    const Word merge = w_.id();
    std::vector<Word> cases{read(step, 1, Type::u32), merge};
    for (std::uint32_t k = 0; k < kernels.size(); ++k) cases.insert(cases.end(), {k, w_.id()});
    out_.emit(spv::Op::OpSelectionMerge, {merge, Word(spv::SelectionControlMask::MaskNone)});
    out_.emit(spv::Op::OpSwitch, cases.data(), cases.size());
    for (std::uint32_t k = 0; k < kernels.size(); ++k) {
      label(cases[3 + 2 * k]);
      call(kernels[k]);
      branch(merge);
    }
    label(merge);
  }
  barrier(w_, out_);
}

std::vector<Word> Loop::function(Word main) {
  declare();
  const Word entry = w_.id(), header = w_.id(), test = w_.id(), body = w_.id(), next = w_.id(), end = w_.id();
  const Word round = w_.id(), round_after = w_.id(), at = w_.id(), at_after = w_.id();
  const Word u32 = w_.type(Type::u32), u64 = w_.type(Type::u64);
  out_.emit(spv::Op::OpFunction,
            {w_.void_type(), main, Word(spv::FunctionControlMask::MaskNone), w_.function_type(w_.void_type(), {})});
  label(entry);
  const Word steps = pushed(0, Type::u64), rounds = pushed(1, Type::u32);
  branch(header);
  label(header);
  out_.emit(spv::Op::OpPhi, {u32, round, w_.u32(0), entry, round_after, next});
  out_.emit(spv::Op::OpPhi, {u64, at, steps, entry, at_after, next});
  out_.emit(spv::Op::OpLoopMerge, {end, next, Word(spv::LoopControlMask::MaskNone)});
  branch(test);
  label(test);
  const Word more = make(spv::Op::OpULessThan, Type::b1, {round, rounds});
  out_.emit(spv::Op::OpBranchConditional, {more, body, end});
  label(body);
  for (std::size_t k = 0; k < places_.size(); ++k)
    step(k ? make(spv::Op::OpIAdd, Type::u64, {at, w_.constant(Type::u64, 16 * k)}) : at, places_[k]);
  branch(next);
  label(next);
  out_.emit(spv::Op::OpIAdd, {u32, round_after, round, w_.u32(1)});
  out_.emit(spv::Op::OpIAdd, {u64, at_after, at, w_.constant(Type::u64, 16 * places_.size())});
  branch(header);
  label(end);
  out_.emit(spv::Op::OpReturn, {});
  out_.emit(spv::Op::OpFunctionEnd, {});
  return out_.words();
}

}  // namespace

std::vector<std::uint32_t> emit_chain(std::span<const ir::Module* const> kernels,
                                      std::span<const std::vector<std::uint32_t>> places, std::uint32_t threads,
                                      const Target& target) {
  Common common(target);
  // One workgroup runs all the steps, so its scope is enough. (A step on an H200, in pages that the host maps, takes
  // 1.9 us, and 2.0 us through memory that is coherent for the device; in pages that it does not map, 0.38 us.)
  common.within_workgroup = target.memory_model;
  Writer& w = common.writer;
  common.glsl = w.id();
  EntryPoint main{w.id(), threads, {}};
  main.names.emplace_back(main.id, "chain");
  common.declare_builtins(false);
  common.launch = w.variable(w.pointer_type(spv::StorageClass::Private, w.type(Type::u64)), spv::StorageClass::Private);
  common.interface.push_back(common.launch);
  Needs needs;
  needs.capabilities.insert(spv::Capability::Int64);
  std::vector<std::vector<Word>> code;
  std::vector<Word> ids;
  for (const ir::Module* given : kernels) {
    if (!can_chain(*given)) internal_error("a kernel that cannot be a step of a chain");
    const std::optional<ir::Module> lowered = lower(*given);
    const ir::Module& module = lowered ? *lowered : *given;
    Shader shader(module, common, ArgumentsIn::memory);
    Emitter kernel(module, shader);
    kernel.declare_arguments();
    for (const auto& function : module.functions) {
      Shader::Function made;
      code.push_back(Emitter(*function, shader).function(made));
      shader.functions.push_back(made);
      main.names.emplace_back(made.id, function->function);
    }
    ids.push_back(w.id());
    main.names.emplace_back(ids.back(), module.name);
    code.push_back(kernel.entry_point(ids.back()));
    needs.join(shader.needs);
  }
  code.push_back(Loop(common, ids, places).function(main.id));
  return module_words(common, header(common, needs, main), code);
}

}  // namespace weft::spirv
