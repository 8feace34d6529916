// The features of Vulkan that every device must have, and their names in the documentation.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "../../../backends/vulkan/features.h"

using weft::backend::vulkan::Feature;
using weft::backend::vulkan::Features;
using weft::backend::vulkan::first_missing;
using weft::backend::vulkan::name_of;

namespace {

std::string page(const char* name) {
  std::ifstream file(std::string(WEFT_SOURCE_DIR "/") + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(VulkanFeatures, that_no_device_may_lack_are_named_by_the_pages) {
  int needed = 0;
  for (int lacking = 0; lacking < int(Feature::count); ++lacking) {
    Features features;
    for (int f = 0; f < int(Feature::count); ++f) features.set(Feature(f), f != lacking);
    if (first_missing(features) == Feature::count) continue;
    ++needed;
    EXPECT_EQ(first_missing(features), Feature(lacking));
    const std::string name = '`' + std::string(name_of(Feature(lacking))) + '`';
    for (const char* where : {"README.md", "docs/embedding.md"})
      EXPECT_NE(page(where).find(name), std::string::npos) << name << " is not named by " << where;
  }
  EXPECT_GT(needed, 0);
}

}  // namespace
