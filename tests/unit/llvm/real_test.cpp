// Real functions in LLVM's IR: for every number of lanes the same bits, within the limits of docs/semantics.md.
#include "../../../llvm/real.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <span>

#include "../../../backends/native/code/compiler.h"
#include "../../../backends/native/code/loader.h"
#include "../../../llvm/emit.h"
#include "../../../llvm/text.h"
#include "../real_values.h"

namespace weft::llvm {
namespace {

using backend::native::Compiler;
using backend::native::LoadedCode;
using ir::Op;
using ir::Type;

template <class T>
constexpr Type kType = std::is_same_v<T, float> ? Type::f32 : Type::f64;

/// Functions that compute result[i] = op(x[i], y[i]) for whole vectors.
class LlvmReal : public testing::Test {
 protected:
  struct Arguments {
    const void *x, *y;
    void* result;
  };

  void SetUp() override {
    std::string why;
    compiler_ = Compiler::find(&why);
    if (!compiler_) GTEST_SKIP() << why;
  }

  static std::string module_of(Op op, Type type, std::uint32_t lanes) {
    std::map<std::string, std::string> pieces;
    for (const RealFunction& piece : real_function(op, type, lanes)) pieces.emplace(piece.name, piece.text);
    std::string text;
    for (const auto& [name, piece] : pieces) {
      EXPECT_NE(piece.substr(0, piece.find('\n')).find(name + "("), std::string::npos) << piece;
      text += piece + "\n";
    }
    const std::string vector = type_name(type, lanes), scalar = type_name(type);
    text += fmt::format("define void @{}(ptr %args, ptr %worker, i64 %begin, i64 %end) {{\nentry:\n", kEntryName);
    std::string operands;
    for (int k = 0; k < 3; ++k)
      text += fmt::format("  %at{0} = getelementptr ptr, ptr %args, i64 {0}\n  %array{0} = load ptr, ptr %at{0}\n", k);
    text += "  br label %loop\nloop:\n  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]\n";
    for (int k = 0; k < ir::info(op).arity; ++k) {
      text +=
          fmt::format("  %p{0} = getelementptr {1}, ptr %array{0}, i64 %i\n  %x{0} = load {2}, ptr %p{0}, align {3}\n",
                      k, scalar, vector, ir::bytes(type));
      operands += fmt::format("{}{} %x{}", k ? ", " : "", vector, k);
    }
    text += fmt::format("  %r = call {} {}({})\n", vector, real_function_name(op, type, lanes), operands);
    text += fmt::format("  %to = getelementptr {}, ptr %array2, i64 %i\n  store {} %r, ptr %to, align {}\n", scalar,
                        vector, ir::bytes(type));
    text += fmt::format("  %next = add i64 %i, {}\n  %more = icmp ult i64 %next, %end\n", lanes);
    return text + "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}\n";
  }

  std::shared_ptr<LoadedCode> compile(Op op, Type type, std::uint32_t lanes) const {
    return LoadedCode::load(compiler_->compile(module_of(op, type, lanes)), kEntryName);
  }

  /// \param x, y  as many as a multiple of the lanes
  template <class T>
  static void run(const LoadedCode& code, std::span<const T> x, std::span<const T> y, std::span<T> result) {
    const Arguments arguments{x.data(), y.data(), result.data()};
    const Worker worker;
    reinterpret_cast<Entry>(code.entry())(reinterpret_cast<const std::byte*>(&arguments), &worker, 0,
                                          std::int64_t(x.size()));
  }

  template <class T>
  void check(Op op, std::vector<T> x, std::vector<T> y) const {
    while (x.size() % 16 != 0) x.push_back(x[0]);
    while (!y.empty() && y.size() < x.size()) y.push_back(y[0]);
    std::vector<T> first;
    for (std::uint32_t lanes : {8u, 1u, 4u, 16u}) {
      std::vector<T> result(x.size());
      run<T>(*compile(op, kType<T>, lanes), x, y, result);
      if (first.empty()) {
        first = result;
        EXPECT_EQ(test::errors_of(op, x, y, result), "");
      }
      // NaNs may differ in sign and payload.
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool same = std::isnan(result[i]) ? std::isnan(first[i]) : result[i] == first[i];
        ASSERT_TRUE(same) << ir::info(op).name << " of " << x[i] << " with " << lanes << " lanes";
      }
    }
  }

  Compiler* compiler_ = nullptr;
};

TEST_F(LlvmReal, functions_of_float32_are_within_their_limits) {
  for (Op op : test::kFunctions) {
    std::vector<float> x = test::arguments<float>(op, 20000);
    for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 40009)
      x.push_back(std::bit_cast<float>(std::uint32_t(bits)));
    check<float>(op, x, {});
  }
}

TEST_F(LlvmReal, functions_of_float64_are_within_their_limits) {
  for (Op op : test::kFunctions) check<double>(op, test::arguments<double>(op, 20000), {});
}

TEST_F(LlvmReal, pow_and_atan2_are_within_their_limits) {
  const auto [x, y] = test::argument_pairs<float>(60000);
  for (Op op : test::kPairFunctions) check<float>(op, x, y);
  const auto [a, b] = test::argument_pairs<double>(30000);
  for (Op op : test::kPairFunctions) check<double>(op, a, b);
}

TEST_F(LlvmReal, functions_of_every_float32_are_within_their_limits) {
  if (!std::getenv("WEFT_FULL_TESTS")) GTEST_SKIP() << "takes half an hour: WEFT_FULL_TESTS=1 runs it";
  const std::size_t size = 1 << 16;
  std::vector<float> x(size), y(size);
  for (Op op : test::kFunctions) {
    const auto code = compile(op, Type::f32, compiler_->processor().target.lanes);
    double worst = 0;
    float at = 0;
    for (std::uint64_t begin = 0; begin < (1ull << 32); begin += size) {
      for (std::size_t i = 0; i < size; ++i) x[i] = std::bit_cast<float>(std::uint32_t(begin + i));
      run<float>(*code, x, {}, y);
      for (std::size_t i = 0; i < size; ++i) {
        const double distance = test::ulps(y[i], test::true_value(op, double(x[i]), 0.0));
        if (distance > worst) worst = distance, at = x[i];
      }
    }
    EXPECT_LE(worst, test::kUlps<float>) << ir::info(op).name << " of " << at;
    fmt::print("{:6} {:.4f} ulp at {:a}\n", ir::info(op).name, worst, at);
  }
}

TEST(LlvmRealNames, tell_the_function_its_type_and_the_lanes) {
  EXPECT_EQ(real_function_name(Op::sin, Type::f32, 16), "@weft.sin.f32.v16");
  EXPECT_EQ(real_function_name(Op::pow, Type::f64, 1), "@weft.pow.f64");
  EXPECT_TRUE(is_real_function(Op::tanh, Type::f64));
  EXPECT_FALSE(is_real_function(Op::sqrt, Type::f32));
  EXPECT_FALSE(is_real_function(Op::floor, Type::f32));
}

}  // namespace
}  // namespace weft::llvm
