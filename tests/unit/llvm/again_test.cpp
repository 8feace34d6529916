// Elements of two arrays that a kernel accesses in turns, run: the arrays are two, or one, or share part of a thread's
// element. Skipped where there is no LLVM.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "../../../backends/native/code/compiler.h"
#include "../../../backends/native/code/loader.h"
#include "../../../frontend/ir/builder.h"
#include "../../../llvm/emit.h"

namespace weft {
namespace {

using ir::Type;

/// What a kernel does to its thread's element of array a or b: x = 3 x + s, where s is what the steps before read.
struct Step {
  char array;
  bool reads, writes;
};

ir::Module module_of(const std::vector<Step>& steps, std::uint32_t width) {
  ir::Module m;
  m.name = "turns";
  m.args_bytes = 24;
  ir::Builder b(m);
  const ir::Id first = b.arg(Type::u64, 8), second = b.arg(Type::u64, 16), thread = b.thread_id();
  std::vector<ir::Id> x(width, b.constant(Type::u32, 5));
  for (const Step& step : steps) {
    const ir::MemoryRef at{step.array == 'a' ? first : second, thread, 4 * width, 0, 4};
    if (step.reads) {
      const ir::Id load = b.load(Type::u32, int(width), at);
      for (std::uint32_t k = 0; k < width; ++k) {
        const ir::Id tripled = b.pure(ir::Op::mul, Type::u32, {x[k], b.constant(Type::u32, 3)});
        x[k] = b.pure(ir::Op::add, Type::u32, {tripled, b.result(load, k, Type::u32)});
      }
    }
    if (step.writes) b.store(Type::u32, x, at);
  }
  return m;
}

void run_thread(const std::vector<Step>& steps, std::uint32_t width, std::uint32_t* a, std::uint32_t* b) {
  std::vector<std::uint32_t> x(width, 5);
  for (const Step& step : steps) {
    std::uint32_t* const element = step.array == 'a' ? a : b;
    const std::vector<std::uint32_t> read(element, element + width);
    for (std::uint32_t k = 0; k < width; ++k) {
      if (step.reads) x[k] = 3 * x[k] + read[k];
      if (step.writes) element[k] = x[k];
    }
  }
}

/// Steps as a gradient makes them, and others: loads after loads, stores that must stay, stores after stores.
const std::vector<Step> kTurns[] = {
    {{'a', true, true}, {'b', true, true}, {'a', true, true}},
    {{'a', true, false}, {'b', false, true}, {'a', true, false}, {'b', true, true}, {'a', true, true}},
    {{'a', false, true},
     {'b', true, false},
     {'a', false, true},
     {'b', false, true},
     {'a', true, false},
     {'b', true, true}},
    {{'b', true, true}, {'a', true, true}, {'b', true, true}, {'a', true, true}, {'b', true, true}}};

class LlvmAgain : public testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    std::string why;
    compiler_ = backend::native::Compiler::find(&why);
    if (!compiler_) GTEST_SKIP() << why;
    target_ = compiler_->processor().target;
    target_.lanes = GetParam();
  }

  /// \param distance  scalars from array a to array b
  void compare(llvm::Entry entry, const std::vector<Step>& steps, std::uint32_t width, std::uint32_t threads,
               std::int64_t distance) {
    std::vector<std::uint32_t> expected(1000);
    std::iota(expected.begin(), expected.end(), 1u);
    std::vector<std::uint32_t> found = expected;
    constexpr std::int64_t kBegin = 400;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      std::uint32_t* const a = expected.data() + kBegin + std::int64_t{width} * thread;
      run_thread(steps, width, a, a + distance);
    }
    struct Arguments {
      std::uint32_t threads;
      std::uint64_t a, b;
    } arguments{threads, reinterpret_cast<std::uint64_t>(found.data() + kBegin),
                reinterpret_cast<std::uint64_t>(found.data() + kBegin + distance)};
    const llvm::Worker worker{nullptr};
    entry(reinterpret_cast<const std::byte*>(&arguments), &worker, 0, threads);
    EXPECT_EQ(found, expected) << threads << " threads, elements of " << width << ", " << distance << " apart";
  }

  backend::native::Compiler* compiler_ = nullptr;
  llvm::Target target_;
};

INSTANTIATE_TEST_SUITE_P(Lanes, LlvmAgain, testing::Values(4u, 8u, 16u),
                         [](const auto& info) { return std::to_string(info.param); });

TEST_P(LlvmAgain, ArraysMayBeOne) {
  const std::uint32_t lanes = GetParam();
  for (std::uint32_t width = 2; width <= 4; ++width)
    for (const std::vector<Step>& steps : kTurns) {
      const llvm::Code code = llvm::emit(module_of(steps, width), target_);
      const auto loaded = backend::native::LoadedCode::load(compiler_->compile(code.text), llvm::kEntryName);
      const auto entry = reinterpret_cast<llvm::Entry>(loaded->entry());
      for (const std::uint32_t threads : {1u, lanes - 1, lanes, 3 * lanes + 1})
        for (const std::int64_t distance : {0, 300, -300}) compare(entry, steps, width, threads, distance);
      // One thread alone, because others would meet it in memory.
      for (std::int64_t distance = -5; distance <= 5; ++distance) compare(entry, steps, width, 1, distance);
    }
}

}  // namespace
}  // namespace weft
