// Walks a kernel for the capabilities that it needs, and refuses by name those that the target lacks.
#include "capabilities.h"

#include <fmt/format.h>

#include "../frontend/passes/passes.h"
#include "../frontend/support/error.h"
#include "../frontend/support/invalid.h"

namespace weft::spirv {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;
using spv::Capability;

namespace {

/// Operations for which storage capabilities suffice on narrow values, because the emitter widens these before all
/// others.
bool needs_no_arithmetic(Op op) {
  switch (op) {
    case Op::load:
    case Op::store:
    case Op::result:
    case Op::trace_ray:
    case Op::convert: return true;
    default: return is_atomic(op);  // computed in 32 bits
  }
}

class Survey {
 public:
  /// Adds what a kernel's body or one of its functions needs.
  Survey(const ir::Module& module, const Target& target, Needs& needs)
      : module_(module), target_(target), needs_(needs), seen_(module.insts.size(), false) {}

  /// The argument block is accessed through an address.
  void take_addresses() { require_int64(module_.loc); }

  void run() {
    if (!module_.arrays.empty()) needs_.as_bits.assign(module_.arrays.size(), false);
    if (const ir::GroupUse use = ir::group_use(module_); use.together && module_.block > target_.max_block)
      refuse(use.loc, fmt::format("the kernel's workgroups have {} threads; the {} runs up to {}", module_.block, who(),
                                  target_.max_block));
    for (const ir::KernelArray& array : module_.arrays) {
      // If narrow scalars are in words of their own, they are only converted.
      require(array.type, !array.words, array.loc);
      if (array.words) needs_.as_bits[std::size_t(&array - module_.arrays.data())] = true;
    }
    visit(0);
    // SPIR-V alone reconverges only threads that parted on a condition that is uniform in the workgroup.
    if (!needs_.subgroup || target_.subgroups_meet_again) return;
    if (const Id id = ir::first_in_subgroup_flow(module_); id != ir::kNone)
      refuse_lacking(module_[id].loc(), "operations of subgroups under conditions that differ in the workgroup",
                     "shaderSubgroupUniformControlFlow");
  }

 private:
  [[noreturn]] void refuse(Loc loc, const std::string& what) const {
    throw Error(ErrorKind::unsupported, what, module_.name, loc ? loc : module_.loc);
  }
  const char* who() const { return target_.of_device ? "device" : "target"; }
  [[noreturn]] void refuse_lacking(Loc loc, const std::string& what, const char* feature) const {
    refuse(loc, fmt::format("the {} lacks {} ({})", who(), what, feature));
  }

  void need(Capability capability) { needs_.capabilities.insert(capability); }

  void take_subgroups(Loc loc) {
    if (target_.subgroup_size == 0) refuse_lacking(loc, "whole subgroups", "computeFullSubgroups");
    needs_.subgroup = true;
    need(Capability::GroupNonUniform);
  }

  void require_int64(Loc loc) {
    if (!target_.int64) refuse_lacking(loc, "int64 arithmetic", "shaderInt64");
    need(Capability::Int64);
  }

  /// Notes a value of type t; `arithmetic`: it undergoes more than moves and conversions.
  void require(Type t, bool arithmetic, Loc loc) {
    switch (ir::bits(t)) {
      case 8: require_narrow(t, arithmetic, target_.int8, Capability::Int8, "shaderInt8", loc); break;
      case 16:
        if (t == Type::f16) {
          require_narrow(t, arithmetic, target_.float16, Capability::Float16, "shaderFloat16", loc);
        } else {
          require_narrow(t, arithmetic, target_.int16, Capability::Int16, "shaderInt16", loc);
        }
        break;
      case 64:
        if (t == Type::f64) {
          if (!target_.float64) refuse_lacking(loc, "float64 arithmetic", "shaderFloat64");
          need(Capability::Float64);
        } else {
          require_int64(loc);
        }
        break;
      default: break;
    }
    // float16 functions are computed in float32 and rounded.
    if (t == Type::f16) needs_.real16 = needs_.real32 = true;
    if (t == Type::f32) needs_.real32 = true;
    if (t == Type::f64) needs_.real64 = true;
  }

  void require_narrow(Type t, bool arithmetic, bool offered, Capability capability, const char* feature, Loc loc) {
    if (offered) {
      need(capability);
    } else if (arithmetic) {
      refuse_lacking(loc, std::string(ir::user_name(t)) + " arithmetic", feature);
    } else {
      require_storage(t, loc);
    }
  }

  void require_storage(Type t, Loc loc) {
    if (ir::bits(t) == 8) {
      if (!target_.storage8) refuse_lacking(loc, "8-bit storage", "storageBuffer8BitAccess");
      need(Capability::StorageBuffer8BitAccess);
    } else if (ir::bits(t) == 16) {
      if (!target_.storage16) refuse_lacking(loc, "16-bit storage", "storageBuffer16BitAccess");
      need(Capability::StorageBuffer16BitAccess);
    }
  }

  void visit_atomic(const Inst& inst, bool shared, std::size_t array) {
    const Type t = inst.type;
    const bool add = inst.op == Op::atomic_add;
    // Reading its bits counts as arithmetic.
    if (t == Type::f16) require(t, true, inst.loc());
    if (add && t == Type::f32 && (shared ? target_.float32_shared_atomic_add : target_.float32_atomic_add)) {
      need(Capability::AtomicFloat32AddEXT);
      return;
    }
    if (add && t == Type::f64 && (shared ? target_.float64_shared_atomic_add : target_.float64_atomic_add)) {
      need(Capability::AtomicFloat64AddEXT);
      return;
    }
    if (ir::bits(t) == 64) {
      if (!(shared ? target_.int64_shared_atomics : target_.int64_atomics))
        refuse_lacking(inst.loc(), shared ? "64-bit atomic operations on shared memory" : "64-bit atomic operations",
                       shared ? "shaderSharedInt64Atomics" : "shaderBufferInt64Atomics");
      require_int64(inst.loc());
      need(Capability::Int64Atomics);
    }
    if (shared && is_float(t)) needs_.as_bits[array] = true;
  }

  void visit_subgroup(Id id, const Inst& inst) {
    take_subgroups(inst.loc());
    if (inst.op == Op::subgroup_barrier) return;
    const Type t = module_[module_.arg(id, 0)].type;
    if (t != Type::b1 && ir::bits(t) != 32 && t != Type::f64 && !target_.subgroup_narrow_wide)
      refuse_lacking(inst.loc(), fmt::format("operations of subgroups on {}", ir::user_name(t)),
                     "shaderSubgroupExtendedTypes");
    auto feature = [&](bool has, Capability capability, const char* name) {
      if (!has) refuse_lacking(inst.loc(), fmt::format("{} in subgroups", ir::info(inst.op).name), name);
      need(capability);
    };
    const bool vote = t == Type::b1 && (Op(inst.imm) == Op::bit_and || Op(inst.imm) == Op::bit_or);
    switch (inst.op) {
      case Op::subgroup_reduce:
        if (vote)
          feature(target_.subgroup_vote, Capability::GroupNonUniformVote, "VK_SUBGROUP_FEATURE_VOTE_BIT");
        else
          feature(target_.subgroup_arithmetic, Capability::GroupNonUniformArithmetic,
                  "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT");
        break;
      case Op::subgroup_inclusive:
      case Op::subgroup_exclusive:
        feature(target_.subgroup_arithmetic, Capability::GroupNonUniformArithmetic,
                "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT");
        break;
      case Op::subgroup_ballot:
        feature(target_.subgroup_ballot, Capability::GroupNonUniformBallot, "VK_SUBGROUP_FEATURE_BALLOT_BIT");
        break;
      case Op::subgroup_broadcast:
        if (module_[module_.arg(id, 1)].op == Op::constant) {
          feature(target_.subgroup_ballot, Capability::GroupNonUniformBallot, "VK_SUBGROUP_FEATURE_BALLOT_BIT");
          break;
        }
        [[fallthrough]];
      default: feature(target_.subgroup_shuffle, Capability::GroupNonUniformShuffle, "VK_SUBGROUP_FEATURE_SHUFFLE_BIT");
    }
  }

  void visit_memory(const Inst& inst, Id base) {
    Loc loc = inst.loc();
    Type t = inst.type;
    const bool shared = module_[base].op == Op::kernel_array;
    if (is_atomic(inst.op)) visit_atomic(inst, shared, std::size_t(module_[base].imm));
    if (shared) return;
    require_int64(loc);
    if (t == Type::b1 || t == Type::none) internal_error("booleans never lie in memory as such");
    int align = inst.align ? inst.align : ir::bytes(t);
    if (align < ir::bytes(t)) {
      refuse(inst.loc(), fmt::format("{} aligned to {} byte{}: Vulkan accesses a value at a multiple of its size only",
                                     ir::user_name(t), align, align == 1 ? "" : "s"));
    }
    // Narrow atomic operations work on the word around the scalar.
    if (!is_atomic(inst.op)) require_storage(t, loc);
  }

  void visit(Id id, const Inst& inst) {
    if (is_memory(inst.op)) visit_memory(inst, module_.arg(id, 0));
    if (gathers(module_, id, target_)) {
      needs_.gathers = true;
      for (const Capability c :
           {Capability::GroupNonUniform, Capability::GroupNonUniformVote, Capability::GroupNonUniformArithmetic})
        need(c);
    }
    if (is_subgroup(inst.op)) visit_subgroup(id, inst);
    if (inst.op == Op::trace_ray) {
      if (!target_.ray_query) refuse_lacking(inst.loc(), "ray queries", "VK_KHR_ray_query");
      need(Capability::RayQueryKHR);
    }
    bool compares = inst.op == Op::eq || inst.op == Op::ne || inst.op == Op::lt || inst.op == Op::le;
    bool arithmetic = !needs_no_arithmetic(inst.op);
    if (inst.type != Type::none) require(inst.type, arithmetic, inst.loc());
    int number = 0;
    for (Id a : module_.args(id)) {
      Type t = module_[a].type;
      bool is_index = is_memory(inst.op) && number++ == 1;
      const Op source = module_[a].op;
      if (source == Op::subgroup_size || source == Op::subgroup_lane || source == Op::subgroup_id)
        take_subgroups(inst.loc());
      if (t == Type::none || source == Op::kernel_array) continue;
      const bool argument = module_[a].op == Op::arg;
      if (argument && !seen_[a]) {
        seen_[a] = true;
        needs_.arguments.push_back({t, std::uint32_t(module_[a].imm)});
      }
      // Narrow integers are compared, and index, through 32 bits if the device does not compute in them.
      bool widens = ir::is_int(t) && (compares || is_index);
      bool literal = module_[a].op == Op::constant && !widens;
      require(t, (arithmetic && !widens) || literal || argument, inst.loc());
    }
    if (inst.op == Op::mul_hi && ir::bits(inst.type) != 32) {
      refuse(inst.loc(), fmt::format("mul_hi on {}: it is for 32-bit integers", ir::user_name(inst.type)));
    }
    for (ir::RegionId r : inst.regions) {
      if (r != ir::kNone) visit(r);
    }
  }

  void visit(ir::RegionId region) {
    for (Id id : module_.regions[region].insts) visit(id, module_[id]);
  }

  const ir::Module& module_;
  const Target& target_;
  Needs& needs_;
  std::vector<bool> seen_;
};

}  // namespace

// If the base is an argument, which is the same for all threads, the index identifies the element.
bool gathers(const ir::Module& module, ir::Id id, const Target& target) {
  const Inst& inst = module[id];
  if (inst.op != Op::atomic_add || inst.imm != ir::kGather || (inst.type != Type::f32 && inst.type != Type::f64))
    return false;
  return target.subgroup_vote && target.subgroup_arithmetic && module[module.arg(id, 0)].op == Op::arg &&
         ir::bits(module[module.arg(id, 1)].type) == 32;
}

void Needs::join(const Needs& other) {
  capabilities.insert(other.capabilities.begin(), other.capabilities.end());
  subgroup = subgroup || other.subgroup;
  gathers = gathers || other.gathers;
  real16 = real16 || other.real16;
  real32 = real32 || other.real32;
  real64 = real64 || other.real64;
}

Needs survey(const ir::Module& module, const Target& target, bool arguments_in_memory) {
  Needs needs;
  for (const auto& function : module.functions) Survey(*function, target, needs).run();
  Survey kernel(module, target, needs);
  if (arguments_in_memory) kernel.take_addresses();
  kernel.run();
  return needs;
}

Target Target::everything() {
  Target t;
  t.int8 = t.int16 = t.int64 = true;
  t.float16 = t.float64 = true;
  t.storage8 = t.storage16 = true;
  t.push8 = t.push16 = true;
  t.float32_atomic_add = t.float64_atomic_add = true;
  t.float32_shared_atomic_add = t.float64_shared_atomic_add = true;
  t.int64_atomics = t.int64_shared_atomics = true;
  t.subgroup_vote = t.subgroup_arithmetic = t.subgroup_ballot = t.subgroup_shuffle = true;
  t.subgroup_narrow_wide = t.subgroup_uniform_flow = t.subgroups_meet_again = true;
  t.subgroup_size = 32;
  t.memory_model = t.ray_query = true;
  t.round_even16 = t.round_even32 = t.round_even64 = true;
  t.keep_nan16 = t.keep_nan32 = t.keep_nan64 = true;
  t.max_block = 1024;
  return t;
}

Target Target::floor() {
  Target t;
  t.int64 = true;
  return t;
}

Target Target::portable() {
  Target t = everything();
  t.push8 = t.push16 = false;  // narrow arguments are cut out of words
  t.memory_model = false;
  t.float32_atomic_add = t.float64_atomic_add = false;
  t.float32_shared_atomic_add = t.float64_shared_atomic_add = false;
  t.round_even16 = t.round_even32 = t.round_even64 = false;
  t.keep_nan16 = t.keep_nan32 = t.keep_nan64 = false;
  return t;
}

Target Target::named(std::string_view name) {
  if (name == "portable") return portable();
  if (name == "floor") return floor();
  if (name == "everything") return everything();
  invalid("no target is called \"{}\": they are \"portable\", \"floor\" and \"everything\"", name);
}

}  // namespace weft::spirv
