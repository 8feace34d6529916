// The walk that finds what a kernel needs, and refuses what the device lacks by name.
#include "capabilities.h"

#include <fmt/format.h>

#include "../frontend/support/error.h"

namespace weft::spirv {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

namespace {

bool is_memory(Op op) { return op == Op::load || op == Op::store || op == Op::atomic_add; }

/// Operations that storage capabilities alone allow on narrow values: the emitter widens before it does more.
bool needs_no_arithmetic(Op op) {
  switch (op) {
    case Op::load:
    case Op::store:
    case Op::result:
    case Op::convert: return true;
    default: return false;
  }
}

class Survey {
 public:
  /// Adds what a kernel's body or one of its functions needs.
  Survey(const ir::Module& module, const Target& target, Needs& needs)
      : module_(module), target_(target), needs_(needs), seen_(module.insts.size(), false) {}

  void run() {
    if (module_.args_bytes > kPushConstantBytes) require_int64(module_.loc);
    visit(0);
  }

 private:
  [[noreturn]] void refuse(Loc loc, const std::string& what) const {
    throw Error(ErrorKind::unsupported, what, module_.name, loc ? loc : module_.loc);
  }
  [[noreturn]] void refuse_device(Loc loc, const std::string& what, const char* feature) const {
    refuse(loc, fmt::format("the device lacks {} ({})", what, feature));
  }

  void require_int64(Loc loc) {
    if (!target_.int64) refuse_device(loc, "int64 arithmetic", "shaderInt64");
    needs_.int64 = true;
  }

  /// A value of type t appears; `arithmetic`: more than moves and conversions happens to it.
  void require(Type t, bool arithmetic, Loc loc) {
    switch (ir::bits(t)) {
      case 8: require_narrow(t, arithmetic, target_.int8, needs_.int8, "shaderInt8", loc); break;
      case 16:
        if (t == Type::f16) {
          require_narrow(t, arithmetic, target_.float16, needs_.float16, "shaderFloat16", loc);
        } else {
          require_narrow(t, arithmetic, target_.int16, needs_.int16, "shaderInt16", loc);
        }
        break;
      case 64:
        if (t == Type::f64) {
          if (!target_.float64) refuse_device(loc, "float64 arithmetic", "shaderFloat64");
          needs_.float64 = true;
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

  void require_narrow(Type t, bool arithmetic, bool offered, bool& need, const char* feature, Loc loc) {
    if (offered) {
      need = true;
    } else if (arithmetic) {
      refuse_device(loc, std::string(ir::user_name(t)) + " arithmetic", feature);
    } else {
      require_storage(t, loc);
    }
  }

  void require_storage(Type t, Loc loc) {
    if (ir::bits(t) == 8) {
      if (!target_.storage8) refuse_device(loc, "8-bit storage", "storageBuffer8BitAccess");
      needs_.storage8 = true;
    } else if (ir::bits(t) == 16) {
      if (!target_.storage16) refuse_device(loc, "16-bit storage", "storageBuffer16BitAccess");
      needs_.storage16 = true;
    }
  }

  void visit_memory(const Inst& inst) {
    Loc loc = inst.loc();
    require_int64(loc);
    Type t = inst.type;
    if (t == Type::b1 || t == Type::none) internal_error("booleans never lie in memory as such");
    int align = inst.align ? inst.align : ir::bytes(t);
    if (align < ir::bytes(t)) {
      refuse(inst.loc(), fmt::format("{} aligned to {} byte{}: Vulkan accesses a value at a multiple of its size only",
                                     ir::user_name(t), align, align == 1 ? "" : "s"));
    }
    require_storage(t, loc);
    if (inst.op != Op::atomic_add) return;
    if (t != Type::i32 && t != Type::u32 && t != Type::f32) {
      refuse(inst.loc(), fmt::format("atomic_add on {}: only int32, uint32 and float32 have it", ir::user_name(t)));
    }
    if (t == Type::f32 && target_.float32_atomic_add) needs_.float32_atomic_add = true;
  }

  void visit(Id id, const Inst& inst) {
    if (is_memory(inst.op)) visit_memory(inst);
    bool compares = inst.op == Op::eq || inst.op == Op::ne || inst.op == Op::lt || inst.op == Op::le;
    bool arithmetic = !needs_no_arithmetic(inst.op);
    if (inst.type != Type::none) require(inst.type, arithmetic, inst.loc());
    int number = 0;
    for (Id a : module_.args(id)) {
      Type t = module_[a].type;
      bool is_index = is_memory(inst.op) && number++ == 1;
      if (t == Type::none) continue;
      const bool argument = module_[a].op == Op::arg;
      if (argument && !seen_[a]) {
        seen_[a] = true;
        needs_.arguments.push_back({t, std::uint32_t(module_[a].imm)});
      }
      // Narrow integers are compared, and index, through 32 bits where the device does not compute in them.
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

Needs survey(const ir::Module& module, const Target& target) {
  Needs needs;
  for (const auto& function : module.functions) Survey(*function, target, needs).run();
  Survey(module, target, needs).run();
  return needs;
}

Target Target::everything() {
  Target t;
  t.int8 = t.int16 = t.int64 = true;
  t.float16 = t.float64 = true;
  t.storage8 = t.storage16 = true;
  t.push8 = t.push16 = true;
  t.float32_atomic_add = true;
  t.round_even16 = t.round_even32 = t.round_even64 = true;
  t.keep_nan16 = t.keep_nan32 = t.keep_nan64 = true;
  t.max_block = 1024;
  return t;
}

}  // namespace weft::spirv
