// Real functions on vectors, as text of LLVM's IR: the library's functions of frontend/real, in the lanes of vectors.
//
//   define internal <8 x float> @weft.sin.f32.v8(<8 x float> %x0) {
//     %v0 = ...                       ; an instruction of LLVM for each of the IR's
//     %v9 = bitcast <8 x i1> %v8 to i8
//     %v10 = icmp ne i8 %v9, 0        ; a branch is skipped if no lane takes it, else all lanes do
//     br i1 %v10, label %then11, label %join12
//   then11:
//     ...
//     br label %join12
//   join12:
//     %v30 = phi <8 x float> [ %v29, %then11 ], [ %v7, %entry ]
//     %v31 = select <8 x i1> %v8, <8 x float> %v30, <8 x float> %v7
//     ...
//     ret <8 x float> %v40
//   }
//
// A kernel calls them, because a copy at each use would be compiled at each use: that costs far more than the calls.
// They need no mask, as they touch no memory; lanes that are not active compute what is dropped.
#include "real.h"

#include <map>
#include <mutex>
#include <tuple>

#include "../frontend/passes/passes.h"
#include "../frontend/real/real_function.h"
#include "../frontend/support/error.h"
#include "text.h"

namespace weft::llvm {

namespace {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

/// Writes one function, whose module is in normal form.
class Writer {
 public:
  Writer(const ir::Module& function, std::uint32_t lanes)
      : module_(function), lanes_(lanes), values_(function.insts.size()), yields_(function.regions.size(), ir::kNone) {}

  /// The definition; its body is written once.
  std::string define(const std::string& name);
  const std::map<std::string, std::string>& intrinsics() const { return intrinsics_; }

 private:
  std::string of(Type type) const { return type_name(type, lanes_); }
  Type type(Id id) const { return module_[id].type; }
  std::string value(Id id) {
    const Inst& inst = module_[id];
    return inst.op == Op::constant ? literal(inst.type, inst.imm, lanes_) : values_[id];
  }
  std::string typed(Id id) { return of(type(id)) + " " + value(id); }

  void region(ir::RegionId region);
  void branch(Id id);
  std::string pure(Id id);
  std::string arithmetic(Id id);
  std::string shift(Id id);
  std::string convert(Id id);
  std::string compare(Id id, const char* real, const char* integer);
  std::string intrinsic(Id id, const std::string& stem);

  const ir::Module& module_;
  const std::uint32_t lanes_;
  Text out_;
  std::vector<std::string> values_;  ///< by instruction
  std::vector<Id> yields_;           ///< by region
  std::map<std::string, std::string> intrinsics_;
};

std::string Writer::define(const std::string& name) {
  std::string inputs;
  for (Id id : module_.regions[0].insts) {
    if (module_[id].op != Op::param) break;
    values_[id] = fmt::format("%x{}", module_[id].imm);
    inputs += (inputs.empty() ? "" : ", ") + typed(id);
  }
  region(0);
  const Id result = module_.outputs()[0];
  out_.line("ret {}", typed(result));
  return fmt::format("define internal {} {}({}) readnone willreturn nounwind {{\nentry:\n{}}}", of(type(result)), name,
                     inputs, out_.body());
}

void Writer::region(ir::RegionId region) {
  for (Id id : module_.regions[region].insts) {
    switch (module_[id].op) {
      case Op::param: break;
      case Op::yield: yields_[region] = id; break;
      case Op::if_: branch(id); break;
      case Op::result: break;  // set by its branch
      default: values_[id] = pure(id);
    }
  }
}

void Writer::branch(Id id) {
  const Inst& inst = module_[id];
  const std::string condition = value(module_.arg(id, 0)), mask = of(Type::b1) + " " + condition;
  std::string any = condition;
  if (lanes_ > 1) any = out_.def("icmp ne i{} {}, 0", lanes_, out_.def("bitcast {} to i{}", mask, lanes_));
  const std::string then = out_.fresh("then"), join = out_.fresh("join"), before = out_.block();
  out_.jump_if(any, then, join);
  out_.label(then);
  region(inst.regions[0]);
  const std::string end = out_.block();
  out_.jump(join);
  out_.label(join);
  if (module_.regions[inst.regions[1]].insts.size() != 1) internal_error("a real function with an else side");
  region(inst.regions[1]);
  for (Id result = 0; result < module_.insts.size(); ++result) {
    if (module_[result].op != Op::result || module_.arg(result, 0) != id) continue;
    const int k = int(module_[result].imm);
    const Id taken = module_.arg(yields_[inst.regions[0]], k), skipped = module_.arg(yields_[inst.regions[1]], k);
    values_[result] =
        out_.def("phi {} [ {}, %{} ], [ {}, %{} ]", of(type(result)), value(taken), end, value(skipped), before);
  }
  if (lanes_ == 1) return;
  for (Id result = 0; result < module_.insts.size(); ++result) {
    if (module_[result].op != Op::result || module_.arg(result, 0) != id) continue;
    const Id skipped = module_.arg(yields_[inst.regions[1]], int(module_[result].imm));
    values_[result] = out_.def("select {}, {}, {}", mask, typed(result), typed(skipped));
  }
}

std::string Writer::pure(Id id) {
  const Inst& inst = module_[id];
  const Type t = inst.type;
  switch (inst.op) {
    case Op::neg: return out_.def("fneg {}", typed(module_.arg(id, 0)));
    case Op::abs: return intrinsic(id, "fabs");
    case Op::sqrt: return intrinsic(id, "sqrt");
    case Op::trunc: return intrinsic(id, "trunc");
    case Op::round_even: return intrinsic(id, "roundeven");
    case Op::is_nan: return out_.def("fcmp uno {}, {}", typed(module_.arg(id, 0)), value(module_.arg(id, 0)));
    case Op::eq: return compare(id, "oeq", "eq");
    case Op::ne: return compare(id, "une", "ne");
    case Op::lt: return compare(id, "olt", ir::is_signed(type(module_.arg(id, 0))) ? "slt" : "ult");
    case Op::le: return compare(id, "ole", ir::is_signed(type(module_.arg(id, 0))) ? "sle" : "ule");
    case Op::select:
      return out_.def("select {}, {}, {}", typed(module_.arg(id, 0)), typed(module_.arg(id, 1)),
                      typed(module_.arg(id, 2)));
    case Op::bit_not: return out_.def("xor {}, {}", typed(module_.arg(id, 0)), literal(t, ir::mask(t), lanes_));
    case Op::shl:
    case Op::shr: return shift(id);
    case Op::convert: return convert(id);
    case Op::bitcast: {
      const Id from = module_.arg(id, 0);
      return of(type(from)) == of(t) ? value(from) : out_.def("bitcast {} to {}", typed(from), of(t));
    }
    default: return arithmetic(id);
  }
}

std::string Writer::arithmetic(Id id) {
  const Inst& inst = module_[id];
  const bool real = ir::is_float(inst.type);
  const char* name = nullptr;
  switch (inst.op) {
    case Op::add: name = real ? "fadd" : "add"; break;
    case Op::sub: name = real ? "fsub" : "sub"; break;
    case Op::mul: name = real ? "fmul" : "mul"; break;
    case Op::div: name = real ? "fdiv" : nullptr; break;
    case Op::bit_and: name = "and"; break;
    case Op::bit_or: name = "or"; break;
    case Op::bit_xor: name = "xor"; break;
    default: break;
  }
  if (!name) internal_error("an operation that real functions do not use");
  return out_.def("{} {}, {}", name, typed(module_.arg(id, 0)), value(module_.arg(id, 1)));
}

std::string Writer::shift(Id id) {
  const Type t = module_[id].type;
  const std::string by =
      out_.def("and {}, {}", typed(module_.arg(id, 1)), literal(t, std::uint64_t(ir::bits(t)) - 1, lanes_));
  const char* name = module_[id].op == Op::shl ? "shl" : ir::is_signed(t) ? "ashr" : "lshr";
  return out_.def("{} {}, {}", name, typed(module_.arg(id, 0)), by);
}

std::string Writer::convert(Id id) {
  const Type to = module_[id].type, from = type(module_.arg(id, 0));
  const bool real = ir::is_float(from), grows = ir::bits(to) > ir::bits(from);
  if (from == Type::b1 || to == Type::b1 || (real && !ir::is_float(to)))
    internal_error("a conversion that real functions do not use");
  const char* name = real                  ? (grows ? "fpext" : "fptrunc")
                     : ir::is_float(to)    ? (ir::is_signed(from) ? "sitofp" : "uitofp")
                     : !grows              ? "trunc"
                     : ir::is_signed(from) ? "sext"
                                           : "zext";
  if (!real && !ir::is_float(to) && ir::bits(to) == ir::bits(from)) return value(module_.arg(id, 0));
  return out_.def("{} {} to {}", name, typed(module_.arg(id, 0)), of(to));
}

std::string Writer::compare(Id id, const char* real, const char* integer) {
  const Id a = module_.arg(id, 0), b = module_.arg(id, 1);
  return ir::is_float(type(a)) ? out_.def("fcmp {} {}, {}", real, typed(a), value(b))
                               : out_.def("icmp {} {}, {}", integer, typed(a), value(b));
}

std::string Writer::intrinsic(Id id, const std::string& stem) {
  const Type t = module_[id].type;
  const std::string name = fmt::format("@llvm.{}.{}", stem, type_suffix(t, lanes_));
  intrinsics_.try_emplace(name, fmt::format("declare {} {}({})", of(t), name, of(t)));
  return out_.def("call {} {}({})", of(t), name, typed(module_.arg(id, 0)));
}

std::vector<RealFunction> write(Op op, Type type, std::uint32_t lanes) {
  ir::Interface interface;
  interface.name = "real";
  const ir::Module function = ir::promote(ir::normalise(lib::real_function(op, type, interface)));
  Writer writer(function, lanes);
  const std::string name = real_function_name(op, type, lanes);
  std::vector<RealFunction> pieces{{name, writer.define(name)}};
  for (const auto& [intrinsic, text] : writer.intrinsics()) pieces.push_back({intrinsic, text});
  return pieces;
}

}  // namespace

bool is_real_function(Op op, Type) { return lib::is_real_function(op); }

std::string real_function_name(Op op, Type type, std::uint32_t lanes) {
  return fmt::format("@weft.{}.{}", ir::info(op).name, type_suffix(type)) +
         (lanes == 1 ? std::string() : fmt::format(".v{}", lanes));
}

const std::vector<RealFunction>& real_function(Op op, Type type, std::uint32_t lanes) {
  static std::mutex mutex;
  static std::map<std::tuple<Op, Type, std::uint32_t>, std::vector<RealFunction>> written;
  const std::lock_guard lock(mutex);
  auto [at, is_new] = written.try_emplace({op, type, lanes});
  if (is_new) {
    try {
      at->second = write(op, type, lanes);
    } catch (...) {
      written.erase(at);
      throw;
    }
  }
  return at->second;
}

}  // namespace weft::llvm
