// Random kernels with barriers, operations of subgroups and arrays of workgroups and threads, as machine code: the same
// memory as a machine that runs the lanes one by one leaves. Skipped where there is no LLVM.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "../../../backends/native/code/compiler.h"
#include "../../../backends/native/code/loader.h"
#include "../../../llvm/emit.h"
#include "../frontend/lane_program.h"
#include "../frontend/pass_programs.h"

namespace weft {
namespace {

using backend::native::Compiler;
using backend::native::LoadedCode;

/// Runs the code of a kernel on the memory of a launch, in two parts if it has several units.
void run(const llvm::Code& code, const Compiler& compiler, const ir::Module& m, ir::LaneLaunch& launch) {
  std::vector<std::byte> args(launch.args.size() + 16);
  const auto misaligned = reinterpret_cast<std::uintptr_t>(args.data()) % 16;
  std::byte* const block = args.data() + (16 - misaligned) % 16;
  std::ranges::copy(launch.args, block);
  for (const auto& [offset, at] : {std::pair{ir::kTable, ir::kTableAt}, std::pair{ir::kOwn, ir::kOwnAt}}) {
    const std::byte* const memory = launch.memory.at(at).data();
    std::memcpy(block + offset, &memory, sizeof memory);
  }
  std::int64_t end = launch.count, middle = end / 2 / 64 * 64;
  if (code.split != llvm::Split::threads) {
    end = code.split == llvm::Split::rows ? launch.count / launch.row : (end + m.block - 1) / m.block;
    middle = end / 2;
  }
  const auto loaded = LoadedCode::load(compiler.compile(code.text), llvm::kEntryName);
  std::vector<std::byte> arena(code.arena_bytes + 64, std::byte{0xcd});
  const llvm::Worker worker{arena.data() + (64 - reinterpret_cast<std::uintptr_t>(arena.data()) % 64)};
  const auto entry = reinterpret_cast<llvm::Entry>(loaded->entry());
  entry(block, &worker, middle, end);
  entry(block, &worker, 0, middle);
}

TEST(LlvmRandom, KernelsWhoseThreadsGoTogetherLeaveWhatTheirLanesLeave) {
  std::string why;
  const Compiler* const compiler = Compiler::find(&why);
  if (!compiler) GTEST_SKIP() << why;
  const char* more = std::getenv("WEFT_RANDOM_PROGRAMS");
  const int count = more ? std::max(120, std::atoi(more)) : 120;
  int ran = 0, with_barriers = 0;
  for (int seed = 1; seed <= count; ++seed) {
    const std::uint32_t lanes = 4u << (seed % 3);
    const ir::Module m = ir::LaneProgram(std::uint32_t(seed), lanes).run();
    const auto has = [&](ir::Op op) {
      return std::ranges::any_of(m.insts, [op](const ir::Inst& inst) { return inst.op == op; });
    };
    if (has(ir::Op::atomic_add)) continue;  // which sums others read before theirs is nobody's promise
    ++ran;
    with_barriers += has(ir::Op::barrier);
    const ir::Shapes shapes = ir::find_shapes(m, lanes, true);
    std::mt19937 random{std::uint32_t(seed)};
    ir::LaneLaunch expected = ir::launch_of(m, shapes, random, false), found = expected;
    ASSERT_EQ(ir::LaneMachine(m, shapes, expected).run(), "") << "seed " << seed;
    llvm::Target target = compiler->processor().target;
    target.lanes = lanes;
    run(llvm::emit(m, target, true), *compiler, m, found);
    ASSERT_TRUE(found.memory == expected.memory)
        << "seed " << seed << ", " << lanes << " lanes, " << found.count << " threads, rows of " << found.row << "\n"
        << ir::print(m);
  }
  EXPECT_GT(ran, count / 2);
  EXPECT_GT(with_barriers, count / 16);
}

}  // namespace
}  // namespace weft
