// The JSON of exported kernels, compared with the files beside this one. WEFT_UPDATE_GOLDEN=1 writes the files anew.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <filesystem>

#include "../../frontend/support/platform.h"

namespace weft {
namespace {

void compare(const std::string& name, Reflection reflection) {
  // The module itself may change; its description must not.
  reflection.spirv_bytes = reflection.spirv_hash = 0;
  const std::string text = to_json(reflection);
  const std::filesystem::path path = std::filesystem::path(WEFT_SOURCE_DIR) / "tests" / "golden" / (name + ".json");
  if (platform::environment_flag("WEFT_UPDATE_GOLDEN", false)) {
    ASSERT_TRUE(platform::write_file(path, std::as_bytes(std::span(text)))) << path;
    return;
  }
  const auto bytes = platform::read_file(path);
  ASSERT_TRUE(bytes.has_value()) << path << " is missing; WEFT_UPDATE_GOLDEN=1 writes it";
  const std::string expected(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_EQ(text, expected) << "WEFT_UPDATE_GOLDEN=1 accepts the new text";
}

TEST(GoldenJson, OfAKernelAndItsAdjoint) {
  auto diffuse = kernel("diffuse", [](Arr<const float, 2> from, Arr<const int> steps, Arr<float, 2> to, Float rate) {
    auto [i, j] = tid<2>();
    Float v = from(i, j);
    for (auto k : range(steps[i])) {
      (void)k;
      v += rate * sin(v);
    }
    to(i, j) = v;
  });
  const std::vector<std::string> names{"from", "steps", "to", "rate"};
  compare("spirv_kernel", diffuse.spirv({.names = names, .strided = {"from"}}).reflection);
  compare("spirv_adjoint", diffuse.spirv({.adjoint = true, .names = names}).reflection);
}

}  // namespace
}  // namespace weft
