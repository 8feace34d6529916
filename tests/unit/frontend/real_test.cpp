// Real functions lowered to calls: every operation is replaced, in functions too, and gives what it should.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "../../../backends/reference/reference.h"
#include "../../../frontend/ir/builder.h"
#include "../../../frontend/real/lower_real.h"
#include "../../../frontend/real/real_function.h"
#include "../real_values.h"

namespace weft::test {
namespace {

using ir::Id;
using ir::Module;
using ir::Op;
using ir::Type;

template <class T>
constexpr Type kType = std::is_same_v<T, float> ? Type::f32 : Type::f64;

/// The block of arguments of the kernel below.
struct Arguments {
  std::uint32_t count = 0, unused = 0;
  std::uint64_t x = 0, y = 0, result = 0;
};

/// result[i] = op(x[i], y[i])
Module kernel_of(Op op, Type type) {
  Module module;
  module.name = "sample";
  module.loc = Loc::here();
  std::uint32_t offset = 8;
  for (const char* name : {"x", "y", "result"}) {
    ir::Param param;
    param.name = name;
    param.kind = ir::Param::Kind::array;
    param.offset = offset;
    param.ndim = 1;
    param.bytes = 8;
    module.params.push_back(param);
    offset += 8;
  }
  module.args_bytes = sizeof(Arguments);
  ir::Builder b(module);
  const auto size = std::uint32_t(ir::bytes(type));
  const Id thread = b.pure(Op::convert, Type::i32, {b.thread_id()});
  const auto at = [&](std::uint32_t array) { return ir::MemoryRef{b.arg(Type::u64, array), thread, size, 0, size}; };
  const Id x = b.load(type, 1, at(8));
  const Id result = ir::info(op).arity == 2 ? b.pure(op, type, {x, b.load(type, 1, at(16))}) : b.pure(op, type, {x});
  b.store(type, {&result, 1}, at(24), Loc::here());
  return module;
}

bool uses(const Module& module, Op op) {
  return std::any_of(module.insts.begin(), module.insts.end(), [op](const ir::Inst& inst) { return inst.op == op; });
}

class RealFunctions : public testing::Test {
 protected:
  /// Runs the lowered kernel in the interpreter.
  template <class T>
  std::vector<T> run(Op op, const std::vector<T>& x, const std::vector<T>& y) {
    const std::optional<Module> lowered = lib::lower_real(kernel_of(op, kType<T>), {kType<T>});
    if (!lowered) {
      ADD_FAILURE() << ir::info(op).name << " was not replaced";
      return {};
    }
    EXPECT_FALSE(uses(*lowered, op));
    EXPECT_EQ(ir::first_violation(*lowered), "");
    std::vector<T> result(x.size());
    const backend::Allocation memory = device_->allocate(3 * x.size() * sizeof(T), backend::MemoryKind::device);
    const std::size_t bytes = x.size() * sizeof(T);
    const Arguments arguments{std::uint32_t(x.size()), 0, memory.address, memory.address + bytes,
                              memory.address + 2 * bytes};
    stream_->upload(arguments.x, x.data(), bytes);
    if (!y.empty()) stream_->upload(arguments.y, y.data(), bytes);
    const auto program = device_->compile(*lowered, ir::hash(*lowered));
    stream_->launch(*program, {}, std::as_bytes(std::span(&arguments, 1)), {});
    stream_->download(result.data(), arguments.result, bytes, 0);
    device_->free(memory);
    return result;
  }
  template <class T>
  void check() {
    for (Op op : kFunctions) {
      const std::vector<T> x = arguments<T>(op, 3000);
      EXPECT_EQ(errors_of(op, x, {}, run(op, x, {})), "");
    }
    const auto [x, y] = argument_pairs<T>(12000);
    for (Op op : kPairFunctions) EXPECT_EQ(errors_of(op, x, y, run(op, x, y)), "");
  }

  std::unique_ptr<backend::Device> device_ = backend::open_reference();
  std::unique_ptr<backend::Stream> stream_ = device_->create_stream();
};

TEST_F(RealFunctions, of_float32_are_within_their_limits) { check<float>(); }

TEST_F(RealFunctions, of_float64_are_within_their_limits) { check<double>(); }

TEST_F(RealFunctions, of_types_that_are_not_lacking_stay) {
  const Module kernel = kernel_of(Op::exp, Type::f32);
  EXPECT_FALSE(lib::lower_real(kernel, {Type::f64}));
  EXPECT_FALSE(lib::lower_real(kernel_of(Op::sqrt, Type::f32), {Type::f32}));
}

TEST_F(RealFunctions, are_traced_once_and_replaced_in_functions_too) {
  // A kernel that calls a function, both with two uses of one operation.
  const auto add_twice = [](ir::Builder& b, Id x) {
    const Id once = b.pure(Op::sin, Type::f32, {x});
    return b.pure(Op::sin, Type::f32, {once});
  };
  Module kernel = kernel_of(Op::sin, Type::f32);
  auto function = std::make_shared<Module>();
  static_cast<ir::Interface&>(*function) = kernel.as_interface();
  function->function = "twice";
  {
    ir::Builder b(*function);
    const Id result = add_twice(b, b.input(Type::f32));
    b.yield({&result, 1});
  }
  kernel.functions.push_back(function);
  {
    ir::Inst call = ir::instruction(Op::call);
    const Id x = kernel.regions[0].insts[2];
    ASSERT_EQ(kernel[x].op, Op::sin);
    const Id made = kernel.add(call, {&x, 1});
    const Id result = kernel.add(ir::instruction(Op::result, Type::f32), {&made, 1});
    auto& insts = kernel.regions[0].insts;
    insts.insert(insts.begin() + 3, {made, result});
    kernel.operands[kernel.insts[insts.back()].first_arg + 2] = result;
  }
  ASSERT_EQ(ir::first_violation(kernel), "");
  const std::optional<Module> lowered = lib::lower_real(kernel, {Type::f32});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(ir::first_violation(*lowered), "");
  ASSERT_EQ(lowered->functions.size(), 2u);
  EXPECT_EQ(lowered->functions[0]->function, "sin_f32");
  EXPECT_EQ(lowered->functions[1]->function, "twice");
  EXPECT_FALSE(uses(*lowered, Op::sin));
  EXPECT_FALSE(uses(*lowered->functions[1], Op::sin));
}

}  // namespace
}  // namespace weft::test
