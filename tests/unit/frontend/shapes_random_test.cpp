// Shapes of the values of random kernels: each claim is held against the values of all threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "../../../frontend/passes/shapes.h"
#include "lane_machine.h"
#include "lane_program.h"
#include "pass_programs.h"

namespace weft::ir {
namespace {

void add(LaneClaims& to, const LaneClaims& more) {
  for (std::size_t k = 0; k < 3; ++k) to.kinds[k] += more.kinds[k];
  for (std::size_t k = 0; k < 3; ++k) to.addresses[k] += more.addresses[k];
  to.exact += more.exact;
  to.without_first += more.without_first;
  to.parted += more.parted;
}

TEST(Shapes, hold_for_all_threads_of_random_kernels) {
  const char* more = std::getenv("WEFT_RANDOM_PROGRAMS");
  const int count = more ? std::max(1500, std::atoi(more)) : 1500;
  LaneClaims claims;
  int rows = 0, groups = 0;
  for (int seed = 1; seed <= count; ++seed) {
    const std::uint32_t lanes = 4u << (seed % 4);
    const Module m = LaneProgram(std::uint32_t(seed), lanes).run();
    ASSERT_EQ(first_violation(m), "") << "seed " << seed << "\n" << print(m);
    const Shapes shapes = find_shapes(m, lanes, seed % 7 != 0);
    rows += shapes.rows;
    groups += shapes.groups;
    std::mt19937 random{std::uint32_t(seed)};
    for (int k = 0; k < 3; ++k) {
      LaneLaunch launch = launch_of(m, shapes, random);
      LaneMachine machine(m, shapes, launch);
      const std::string failure = machine.run();
      ASSERT_EQ(failure, "") << "seed " << seed << ", " << lanes << " lanes, threads " << launch.first << " + "
                             << launch.count << ", rows of " << launch.row << "\n"
                             << print(m);
      add(claims, machine.claims());
    }
  }
  // The test would be empty if most values were varying.
  EXPECT_GT(rows, count / 8);
  EXPECT_GT(groups, count / 8);
  const std::uint64_t n = std::uint64_t(count);
  const std::string found = fmt::format(
      "uniform {}, affine {}, varying {}; exact {}, without the first lane {}, parted {}, addresses: uniform {}, "
      "affine "
      "{}, varying {}",
      claims.kinds[0], claims.kinds[1], claims.kinds[2], claims.exact, claims.without_first, claims.parted,
      claims.addresses[0], claims.addresses[1], claims.addresses[2]);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_GT(claims.kinds[k], n) << found;
  EXPECT_GT(claims.exact, 10 * n) << found;
  EXPECT_GT(claims.without_first, 10 * n) << found;
  EXPECT_GT(claims.parted, n) << found;
  EXPECT_GT(claims.addresses[std::size_t(Shape::Kind::affine)], n) << found;
  if (more) std::printf("%s\n", found.c_str());
}

// Kernels with break, continue and return, brought to normal form. The interpreter runs them too: the threads of the
// machine that holds the shapes against values compute what they should.
TEST(Shapes, hold_for_normal_forms_of_random_programs) {
  const Words in = counting();
  LaneClaims claims;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    const Module traced = Generator(seed).run(seed % 3 == 0 ? 2 : 0);
    const Module m = promote(normalise(inline_calls(traced)));
    const std::uint32_t lanes = 4u << (seed % 3);
    const Shapes shapes = find_shapes(m, lanes);
    LaneLaunch launch;
    launch.count = kThreads;
    launch.args.resize(24);
    launch.set(0, kThreads);
    launch.set(kIn, kTableAt);
    launch.set(kOut, kOwnAt);
    const auto* bytes = reinterpret_cast<const std::byte*>(in.data());
    launch.memory[kTableAt].assign(bytes, bytes + in.size() * 4);
    launch.memory[kOwnAt].resize(in.size() * 4);
    LaneMachine machine(m, shapes, launch);
    ASSERT_EQ(machine.run(), "") << "seed " << seed << "\n" << print(m);
    add(claims, machine.claims());
    Words out(in.size());
    std::memcpy(out.data(), launch.memory[kOwnAt].data(), out.size() * 4);
    ASSERT_EQ(out, run(traced, in)) << "seed " << seed << "\n" << print(m);
  }
  EXPECT_GT(claims.kinds[std::size_t(Shape::Kind::affine)], 300u);
  EXPECT_GT(claims.without_first, 300u);
  EXPECT_GT(claims.parted, 300u);
}

}  // namespace
}  // namespace weft::ir
