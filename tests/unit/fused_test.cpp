// Devices round fma as they say they do.
#include <gtest/gtest.h>

#include "../../backends/native/native.h"
#include "../../backends/reference/reference.h"

namespace weft::backend {

void PrintTo(const FusedTypes& fused, std::ostream* out) {
  *out << "float32 " << (fused.f32 ? "fused" : "split") << ", float64 " << (fused.f64 ? "fused" : "split");
}

namespace {

TEST(Fused, the_interpreter_has_both_ways_for_each_type) {
  for (const char* name : {"reference", "reference:split", "reference:split32", "reference:split64"}) {
    const auto fused = fused_by_reference(name);
    ASSERT_TRUE(fused.has_value()) << name;
    const auto device = open_reference(*fused);
    EXPECT_EQ(device->info().name, name);
    EXPECT_EQ(device->fused(), *fused) << name;
    EXPECT_EQ(find_fused(*device), *fused) << name;
  }
  EXPECT_FALSE(fused_by_reference("reference:0").has_value());
  EXPECT_FALSE(fused_by_reference("cpu").has_value());
}

TEST(Fused, the_native_device_knows_its_processor) {
  std::string why;
  if (!has_native(&why)) GTEST_SKIP() << why;
  const auto device = open_native();
  EXPECT_EQ(find_fused(*device), device->fused());
}

}  // namespace
}  // namespace weft::backend
