// Random kernels give the same results on every device as on the interpreter, and in normal form as in traced form.
//
// WEFT_RANDOM_PROGRAMS=10000 runs more of them, WEFT_RANDOM_SEED=n starts at the kernel of that number.
#include "../../frontend/passes/passes.h"
#include "../../frontend/support/platform.h"
#include "../../runtime/graph.h"
#include "../../spirv/emit.h"
#include "../device/device_test.h"
#include "random_program.h"

using namespace weft;
using namespace weft::test;

namespace {

// Compares other devices with the interpreter, which is not tested itself.
class RandomPrograms : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(On, RandomPrograms, ::testing::Values("native", "vulkan", "gpu"),
                         [](const auto& info) { return std::string(info.param); });

DEVICE_TEST(RandomProgramsInNormalForm);

constexpr int kThreads = 40;

/// Calls f(seed) for each program of the run until one fails.
template <class F>
void for_each_program(F f) {
  const std::uint64_t first = platform::environment_number("WEFT_RANDOM_SEED", 1);
  const std::uint64_t count = platform::environment_number("WEFT_RANDOM_PROGRAMS", 200);
  for (std::uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) f(seed);
}

std::string how_to_repeat(std::uint64_t seed, const ir::Module& module) {
  return "WEFT_RANDOM_SEED=" + std::to_string(seed) + " WEFT_RANDOM_PROGRAMS=1\n" + ir::print(module);
}

TEST_P(RandomPrograms, agree_with_the_interpreter) {
  const Device reference = interpreter_like(device());
  for_each_program([&](std::uint64_t seed) {
    const RandomKernel program = random_kernel(seed);
    const ir::Module module = program.trace();
    if (!on_host()) {
      EXPECT_EQ(spirv::validate(spirv::emit(module, spirv::Target::everything())), "") << how_to_repeat(seed, module);
    }
    RandomArrays expected(reference, kThreads, seed), found(device(), kThreads, seed);
    launch_random(program, kThreads, expected);
    launch_random(program, kThreads, found);
    EXPECT_EQ(found.difference(expected), "") << how_to_repeat(seed, module);
  });
}

TEST_P(RandomPrograms, agree_with_themselves_as_steps_of_a_graph) {
  for_each_program([&](std::uint64_t seed) {
    if (seed % 4) return;  // each program makes a shader of its own
    const RandomKernel program = random_kernel(seed);
    const ir::Module module = program.trace();
    if (!on_host() && spirv::can_chain(module)) {
      const ir::Module* const kernels[] = {&module};
      const std::vector<std::uint32_t> place = {0};
      EXPECT_EQ(spirv::validate(spirv::emit_chain(kernels, {&place, 1}, 64, spirv::Target::everything())), "")
          << how_to_repeat(seed, module);
    }
    RandomArrays expected(device(), kThreads, seed), found(device(), kThreads, seed);
    const Graph graph = capture(device(), [&] {
      for (int k = 0; k < 20; ++k) launch_random(program, kThreads, found);
    });
    graph.launch();
    for (int k = 0; k < 20; ++k) launch_random(program, kThreads, expected);
    EXPECT_EQ(found.difference(expected), "") << how_to_repeat(seed, module);
  });
}

TEST_P(RandomProgramsInNormalForm, agree_with_the_traced_form) {
  const Device reference = interpreter_like(device());
  for_each_program([&](std::uint64_t seed) {
    const RandomKernel program = random_kernel(seed);
    const ir::Module normal = ir::promote(ir::normalise(program.trace()));
    ASSERT_EQ(ir::first_violation(normal), "") << how_to_repeat(seed, normal);
    RandomArrays expected(reference, kThreads, seed), found(device(), kThreads, seed);
    launch_random(program, kThreads, expected);
    run_random(device(), normal, kThreads, found);
    EXPECT_EQ(found.difference(expected), "") << how_to_repeat(seed, normal);
  });
}

}  // namespace
