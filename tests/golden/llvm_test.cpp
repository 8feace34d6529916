// Kernels as text of LLVM's IR, compared with the files beside this one. WEFT_UPDATE_GOLDEN=1 writes the files anew.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <filesystem>

#include "../../frontend/support/platform.h"
#include "../../llvm/emit.h"

namespace weft {
namespace {

template <class K>
void compare(const std::string& name, const K& kernel) {
  llvm::Target target;
  target.lanes = 4;
  const llvm::Code code = llvm::emit(kernel.trace(), target);
  const std::string text = ir::print(kernel.trace()) + "\n" + code.text;
  const std::filesystem::path path = std::filesystem::path(WEFT_SOURCE_DIR) / "tests" / "golden" / (name + ".txt");
  if (platform::environment_flag("WEFT_UPDATE_GOLDEN", false)) {
    ASSERT_TRUE(platform::write_file(path, std::as_bytes(std::span(text)))) << path;
    return;
  }
  const auto bytes = platform::read_file(path);
  ASSERT_TRUE(bytes.has_value()) << path << " is missing; WEFT_UPDATE_GOLDEN=1 writes it";
  const std::string expected(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_EQ(text, expected) << "WEFT_UPDATE_GOLDEN=1 accepts the new text";
}

TEST(GoldenLlvm, NeighboursInMemory) {
  compare("llvm_saxpy", kernel("saxpy", [](Arr<const float> x, Arr<float> y, Float a) {
            Int i = tid();
            y[i] = a * x[i] + y[i];
          }));
}

TEST(GoldenLlvm, RowsAndADivergentLoop) {
  compare("llvm_escape", kernel("escape", [](Arr<int, 2> steps) {
            auto [i, j] = tid<2>();
            Float x = Float(i), y = Float(j);
            Int k = 0;
            While (k<100 && x * x + y * y> 4.0f) {
              x *= 0.5f;
              k += 1;
            }
            steps(i, j) = k;
          }));
}

TEST(GoldenLlvm, AWorkgroupAndItsBarrier) {
  compare("llvm_turn", kernel("turn",
                              [](Arr<float> x) {
                                Int i = tid(), l = local_id();
                                auto s = shared<float>(16);
                                s[l] = x[i] * 0.5f;
                                barrier();
                                x[i] += s[15 - l];
                              },
                              {.block = 16}));
}

}  // namespace
}  // namespace weft
