// Shaders that make several launches: the kernels that may be steps, and the validity of the words.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include "../../../frontend/passes/passes.h"
#include "../../../spirv/emit.h"

namespace weft {
namespace {

using Places = std::vector<std::vector<std::uint32_t>>;

ir::Module module_of(const auto& kernel) { return kernel.trace(); }

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto twice = func("twice", [](Double x) { return x + x; });
const auto wide = kernel("wide", [](Arr<double> x, Arr<std::uint64_t> n) {
  x[tid()] = twice(x[tid()]);
  atomic_add(n[0], 1ull);
});
const auto leaves = kernel("leaves", [](Arr<std::int16_t> x, Half y) {
  If (y > Half(0.5f)) {
    Return();
  }
  auto last = private_array<int>(3);
  last[tid() % 3] = 1;
  x[tid()] = std::int16_t(2);
});

std::string validity(const std::vector<ir::Module>& modules, const Places& places, const spirv::Target& target) {
  std::vector<const ir::Module*> kernels;
  for (const ir::Module& m : modules) kernels.push_back(&m);
  return spirv::validate(spirv::emit_chain(kernels, places, 64, target));
}

TEST(Chain, is_a_valid_module_of_one_kernel_and_of_many) {
  const std::vector<ir::Module> all = {module_of(add_one), module_of(wide), module_of(leaves)};
  for (const spirv::Target& target : {spirv::Target::everything(), spirv::Target::portable()}) {
    EXPECT_EQ(validity({all[0]}, {{0}}, target), "");
    EXPECT_EQ(validity(all, {{0}, {2}, {1}, {0}}, target), "");
    EXPECT_EQ(validity(all, {{0, 1, 2}}, target), "");
  }
  // float64 and types of 16 bits are computed by other means on devices that lack them.
  EXPECT_EQ(validity({all[0]}, {{0}}, spirv::Target::floor()), "");
}

// One workgroup has all the steps: where Vulkan's memory model can say so, memory is not coherent for the device.
TEST(Chain, hands_memory_on_within_its_workgroup) {
  const ir::Module module = module_of(add_one);
  const ir::Module* const kernels[] = {&module};
  const Places places = {{0}};
  const auto text = [&](const spirv::Target& target) {
    return spirv::disassemble(spirv::emit_chain(kernels, places, 64, target));
  };
  const std::string precise = text(spirv::Target::everything()), coherent = text(spirv::Target::floor());
  EXPECT_NE(precise.find("OpMemoryModel PhysicalStorageBuffer64 Vulkan"), std::string::npos) << precise;
  EXPECT_NE(precise.find("NonPrivatePointer"), std::string::npos);
  EXPECT_EQ(precise.find("Coherent"), std::string::npos);
  EXPECT_NE(coherent.find("OpMemoryModel PhysicalStorageBuffer64 GLSL450"), std::string::npos) << coherent;
  EXPECT_NE(coherent.find("Coherent"), std::string::npos);
}

TEST(Chain, has_no_steps_whose_threads_work_together_or_report) {
  EXPECT_TRUE(spirv::can_chain(module_of(add_one)));
  EXPECT_TRUE(spirv::can_chain(module_of(wide)));
  EXPECT_TRUE(spirv::can_chain(module_of(leaves)));
  EXPECT_FALSE(spirv::can_chain(module_of(kernel("shares", [](Arr<float> x) {
    auto s = shared<float>(256);
    s[local_id()] = x[tid()];
    barrier();
    x[tid()] = s[255 - local_id()];
  }))));
  EXPECT_FALSE(spirv::can_chain(module_of(kernel("votes", [](Arr<int> x) { x[tid()] = subgroup_add(x[tid()]); }))));
  EXPECT_FALSE(spirv::can_chain(module_of(kernel("fences", [](Arr<int> x, Arr<int> y) {
    x[tid()] = 1;
    fence();
    y[0] = 1;
  }))));
  EXPECT_FALSE(spirv::can_chain(module_of(kernel("prints", [](Arr<int> x) { print(x[tid()]); }))));
  EXPECT_FALSE(spirv::can_chain(module_of(
      kernel("knows its workgroup", [](Arr<unsigned> x) { x[tid()] = UInt(workgroup_id() + workgroup_count()); }))));
}

}  // namespace
}  // namespace weft
