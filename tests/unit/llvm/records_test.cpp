// Code for parts of elements that lie one after another, run: elements of 2 to 16 scalars, any of which are read and
// written, for vectors of every width and processors with and without masks. Neither the other scalars nor memory
// beyond those of threads that run may be touched. Skipped where there is no LLVM.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "../../../backends/native/code/compiler.h"
#include "../../../backends/native/code/loader.h"
#include "../../../frontend/ir/builder.h"
#include "../../../llvm/emit.h"
#include "../../device/guarded_memory.h"

#ifdef __linux__
namespace weft {
namespace {

using ir::Type;

/// Scalars of an element that are accessed together.
struct Part {
  std::uint32_t place, width;
};

/// A kernel that reads some parts of its thread's element and writes others. Threads may rest.
struct Plan {
  std::uint32_t stride;
  std::vector<Part> read, written;
  bool rests;

  bool runs(std::uint32_t thread) const { return !rests || thread * 0x9e3779b9u >> 30 != 1; }
  /// What a thread writes, from what it reads.
  std::uint32_t result(std::uint32_t sum, std::uint32_t place) const { return sum * (2 * place + 3) + place; }

  ir::Module module() const {
    ir::Module m;
    m.name = "parts";
    m.args_bytes = 16;
    ir::Builder b(m);
    const ir::Id base = b.arg(Type::u64, 8), thread = b.thread_id();
    auto number = [&](std::uint32_t value) { return b.constant(Type::u32, value); };
    auto at = [&](const Part& part) { return ir::MemoryRef{base, thread, 4 * stride, 4 * part.place, 4}; };
    if (rests) {
      const ir::Id mixed = b.pure(ir::Op::mul, Type::u32, {thread, number(0x9e3779b9u)});
      b.open_if(b.pure(ir::Op::ne, Type::b1, {b.pure(ir::Op::shr, Type::u32, {mixed, number(30)}), number(1)}));
    }
    ir::Id sum = number(17);
    for (const Part& part : read) {
      const ir::Id load = b.load(Type::u32, int(part.width), at(part));
      for (std::uint32_t k = 0; k < part.width; ++k) {
        const ir::Id value = part.width == 1 ? load : b.result(load, k, Type::u32);
        sum = b.pure(ir::Op::add, Type::u32, {b.pure(ir::Op::mul, Type::u32, {sum, number(5)}), value});
      }
    }
    for (const Part& part : written) {
      std::vector<ir::Id> values;
      for (std::uint32_t p = part.place; p < part.place + part.width; ++p)
        values.push_back(
            b.pure(ir::Op::add, Type::u32, {b.pure(ir::Op::mul, Type::u32, {sum, number(2 * p + 3)}), number(p)}));
      b.store(Type::u32, values, at(part));
    }
    if (rests) b.close_if();
    return m;
  }

  /// Runs a thread on its element.
  void run(std::uint32_t* element) const {
    std::uint32_t sum = 17;
    for (const Part& part : read)
      for (std::uint32_t k = 0; k < part.width; ++k) sum = sum * 5 + element[part.place + k];
    for (const Part& part : written)
      for (std::uint32_t p = part.place; p < part.place + part.width; ++p) element[p] = result(sum, p);
  }
};

/// Random parts of an element of `stride` scalars in random order, each of up to four; at least one.
std::vector<Part> random_parts(std::mt19937& random, std::uint32_t stride, bool all) {
  std::vector<Part> parts;
  for (std::uint32_t place = 0; place < stride;) {
    const std::uint32_t width = std::min<std::uint32_t>(1 + random() % 4, stride - place);
    if (all || random() % 3 != 0) parts.push_back({place, width});
    place += width;
  }
  if (parts.empty()) parts.push_back({static_cast<std::uint32_t>(random() % stride), 1});
  std::shuffle(parts.begin(), parts.end(), random);
  return parts;
}

struct Processor {
  std::uint32_t lanes;
  bool mask_registers, masked_memory;
};

class LlvmRecords : public testing::TestWithParam<Processor> {
 protected:
  void SetUp() override {
    std::string why;
    compiler_ = backend::native::Compiler::find(&why);
    if (!compiler_) GTEST_SKIP() << why;
    target_ = compiler_->processor().target;
    target_.lanes = GetParam().lanes;
    target_.mask_registers = GetParam().mask_registers;
    target_.masked_memory = GetParam().masked_memory;
  }

  /// From one size of elements to the next. LLVM takes ten times as long for four times as many lanes.
  static std::uint32_t step() { return GetParam().lanes > 16 ? 5 : 1; }

  void check(const Plan& plan) {
    const llvm::Code code = llvm::emit(plan.module(), target_);
    const auto loaded = backend::native::LoadedCode::load(compiler_->compile(code.text), llvm::kEntryName);
    const auto entry = reinterpret_cast<llvm::Entry>(loaded->entry());
    const std::uint32_t lanes = target_.lanes;
    for (const std::uint32_t threads : {1u, 2u, lanes - 1, lanes, lanes + 1, 3 * lanes + 1}) {
      compare(plan, entry, threads, false);
      compare(plan, entry, threads, true);
      if (HasFailure()) FAIL() << code.text;
    }
  }

 private:
  /// Runs a launch on elements that begin, or end, where memory does.
  void compare(const Plan& plan, llvm::Entry entry, std::uint32_t threads, bool at_end) {
    std::uint32_t begin = plan.stride, end = 0, first = threads, last = 0;
    for (const auto* parts : {&plan.read, &plan.written})
      for (const Part& part : *parts) {
        begin = std::min(begin, part.place);
        end = std::max(end, part.place + part.width);
      }
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      if (!plan.runs(thread)) continue;
      first = std::min(first, thread);
      last = thread;
    }
    if (first > last) return;
    const std::size_t count = std::size_t(last - first) * plan.stride + end - begin;
    const std::span<std::uint32_t> there =
        at_end ? memory_.last<std::uint32_t>(count) : memory_.first<std::uint32_t>(count);
    std::vector<std::uint32_t> expected(count);
    for (std::size_t k = 0; k < count; ++k) expected[k] = std::uint32_t(k * k * 7 + k + plan.stride);
    std::ranges::copy(expected, there.begin());
    const std::size_t before = std::size_t(first) * plan.stride + begin;  // scalars of the array before that memory
    for (std::uint32_t thread = 0; thread < threads; ++thread)
      if (plan.runs(thread)) plan.run(expected.data() + std::size_t(thread) * plan.stride - before);
    struct Arguments {
      std::uint32_t threads;
      std::uint64_t address;
    } arguments{threads, reinterpret_cast<std::uint64_t>(there.data()) - 4 * before};
    const llvm::Worker worker{nullptr};
    entry(reinterpret_cast<const std::byte*>(&arguments), &worker, 0, threads);
    EXPECT_TRUE(std::ranges::equal(there, expected))
        << "elements of " << plan.stride << ", " << threads << " threads, " << (plan.rests ? "some rest" : "all run");
  }

  backend::native::Compiler* compiler_ = nullptr;
  llvm::Target target_;
  const test::GuardedMemory memory_{4 * 16 * (3 * 64 + 1)};
};

INSTANTIATE_TEST_SUITE_P(Processors, LlvmRecords,
                         testing::Values(Processor{4, false, false}, Processor{4, false, true},
                                         Processor{8, false, true}, Processor{8, true, true},
                                         Processor{16, false, false}, Processor{16, true, true},
                                         Processor{32, true, true}),
                         [](const auto& info) {
                           return std::to_string(info.param.lanes) + (info.param.mask_registers  ? "MaskRegisters"
                                                                      : info.param.masked_memory ? "Masks"
                                                                                                 : "");
                         });

TEST_P(LlvmRecords, WholeElements) {
  std::mt19937 random(3);
  for (std::uint32_t stride = 2; stride <= 16; stride += step())
    check({stride, random_parts(random, stride, true), random_parts(random, stride, true), false});
}

TEST_P(LlvmRecords, PartsOfElements) {
  std::mt19937 random(4);
  for (std::uint32_t stride = 2; stride <= 16; stride += step())
    for (int round = 0; round < 2; ++round)
      check({stride, random_parts(random, stride, false), random_parts(random, stride, false), false});
}

TEST_P(LlvmRecords, ThreadsThatRest) {
  std::mt19937 random(5);
  for (std::uint32_t stride = 2; stride <= 16; stride += step()) {
    check({stride, random_parts(random, stride, false), random_parts(random, stride, true), true});
    check({stride, random_parts(random, stride, true), random_parts(random, stride, false), true});
  }
}

}  // namespace
}  // namespace weft
#endif
