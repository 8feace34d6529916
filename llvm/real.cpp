// Real functions on vectors, as text of LLVM's IR: the library's functions of frontend/real, in the lanes of vectors.
//
//   define internal <8 x float> @weft.sin.f32.v8(<8 x float> %x0) {
//     %v0 = ...                       ; an instruction of LLVM for each of the IR's
//     %v9 = bitcast <8 x i1> %v8 to i8
//     %v10 = icmp ne i8 %v9, 0        ; a branch is skipped if no lane takes it, else all lanes do
//     br i1 %v10, label %on11, label %off12
//   on11:
//     ...
//     br label %off12
//   off12:
//     %v30 = phi <8 x float> [ %v29, %on11 ], [ zeroinitializer, %entry ]
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
#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Op;
using ir::Type;

namespace {

constexpr std::string_view kEffects = "readnone willreturn nounwind";

/// All values vary among the lanes; one lane has nothing to vary from.
ir::Shapes shapes_of(const ir::Module& function, std::uint32_t lanes) {
  using Kind = ir::Shape::Kind;
  const std::size_t size = function.insts.size();
  ir::Shapes shapes;
  shapes.of.assign(size, {lanes == 1 ? Kind::uniform : Kind::varying});
  shapes.divergent.assign(size, lanes > 1);
  shapes.exact.assign(size, 0);
  shapes.lanes = lanes;
  return shapes;
}

std::vector<RealFunction> write(Op op, Type type, std::uint32_t lanes) {
  ir::Interface interface;
  interface.name = "real";
  const ir::Module function = ir::promote(ir::normalise(lib::real_function(op, type, interface)));
  Target target;
  target.lanes = lanes;
  return Emitter(function, target, shapes_of(function, lanes)).function(real_function_name(op, type, lanes));
}

}  // namespace

std::vector<RealFunction> Emitter::function(const std::string& name) {
  const std::vector<Id>& body = kernel_.regions[0].insts;
  std::string inputs;
  for (std::size_t k = 0; k < body.size() && kernel_[body[k]].op == Op::param; ++k) {
    const std::string input = fmt::format("%x{}", k);
    put(body[k], input, lanes_);
    inputs += fmt::format("{}{} {}", k > 0 ? ", " : "", type_name(kernel_[body[k]].type, lanes_), input);
  }
  region(0);
  const Id result = kernel_.outputs()[0];
  const std::string type = type_name(kernel_[result].type, lanes_);
  out_.line("ret {} {}", type, held(result));
  std::vector<RealFunction> pieces{
      {name, fmt::format("define internal {} {}({}) {} {{\nentry:\n{}}}", type, name, inputs, kEffects, out_.body())}};
  for (const auto& [callee, text] : out_.declared()) pieces.push_back({callee, text});
  return pieces;
}

bool is_real_function(Op op, Type) { return lib::is_real_function(op); }

std::string real_function_name(Op op, Type type, std::uint32_t lanes) {
  return fmt::format("@weft.{}.{}", ir::info(op).name, type_suffix(type)) +
         (lanes == 1 ? std::string() : fmt::format(".v{}", lanes));
}

FunctionModule real_function_module(Op op, Type type, std::uint32_t lanes) {
  constexpr std::string_view kInternal = "define internal";
  std::string text;
  for (const RealFunction& piece : real_function(op, type, lanes)) text += piece.text + "\n";
  return {real_function_name(op, type, lanes).substr(1), "define" + text.substr(kInternal.size())};
}

std::string real_function_declaration(Op op, Type type, std::uint32_t lanes) {
  const std::string of = type_name(type, lanes);
  std::string operands = of;
  for (int k = 1; k < ir::info(op).arity; ++k) operands += ", " + of;
  return fmt::format("declare {} {}({}) {}", of, real_function_name(op, type, lanes), operands, kEffects);
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
