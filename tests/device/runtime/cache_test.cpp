// Compiled kernels are kept on disk: a second run compiles nothing, and a damaged entry is rebuilt and never trusted.
#include <filesystem>
#include <fstream>

#include "../../../frontend/support/platform.h"
#include "../../common/software_vulkan.h"
#include "../device_test.h"

using namespace weft;

namespace {

namespace fs = std::filesystem;

// A test with a cache folder of its own.
class KernelCache : public testing::Test {
 protected:
  void SetUp() override {
    before_ = platform::environment("WEFT_CACHE_DIR");
    folder_ = fs::temp_directory_path() / ("weft_cache_test_" + std::to_string(platform::process_id()));
    fs::remove_all(folder_);
    platform::set_environment_folder("WEFT_CACHE_DIR", folder_);
  }
  void TearDown() override {
    platform::set_environment("WEFT_CACHE_DIR", before_ ? before_->c_str() : nullptr);
    fs::remove_all(folder_);
  }

  // Acts like a program that starts, launches two kernels and ends.
  CompileCounts run() {
    Device device = Device::open(test::software_vulkan());
    Array<float> x = full<float>(device, 100, 3.f);
    launch(kernel("square", [](Arr<float> x) { x[tid()] *= x[tid()]; }), 100, x);
    launch(kernel("add_seven", [](Arr<float> x) { x[tid()] += 7; }), 100, x);
    EXPECT_EQ(x.to_vector(), std::vector<float>(100, 16.f));
    return device.compile_counts();
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) all.push_back(entry.path());
    return all;
  }

  fs::path folder_;
  std::optional<std::string> before_;
};

TEST_F(KernelCache, a_second_run_compiles_nothing) {
  CompileCounts first = run();
  EXPECT_EQ(first.compiled, 2u);
  EXPECT_EQ(first.loaded, 0u);
  CompileCounts second = run();
  EXPECT_EQ(second.compiled, 0u);
  EXPECT_EQ(second.loaded, 2u);
}

TEST_F(KernelCache, damaged_entries_are_rebuilt) {
  run();
  ASSERT_FALSE(files().empty());
  for (const fs::path& file : files()) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(fs::file_size(file)) - 5);
    stream.write("\x13\x37\x13\x37", 4);
  }
  CompileCounts counts = run();
  EXPECT_EQ(counts.compiled, 2u);
  EXPECT_GE(counts.rejected, 2u);
  EXPECT_EQ(run().loaded, 2u) << "the entries were not replaced";
}

TEST_F(KernelCache, truncated_and_foreign_entries_are_rebuilt) {
  run();
  bool cut = false;
  for (const fs::path& file : files()) {
    if (cut = !cut; cut)
      fs::resize_file(file, fs::file_size(file) / 2);
    else
      std::ofstream(file, std::ios::binary | std::ios::trunc) << "something else entirely";
  }
  EXPECT_EQ(run().compiled, 2u);
}

TEST_F(KernelCache, that_cannot_be_written_does_no_harm) {
  // A file stands where the folder should be, so that nobody can create anything below it.
  std::ofstream(folder_) << "in the way";
  EXPECT_EQ(run().compiled, 2u);
  EXPECT_EQ(run().compiled, 2u);
}

TEST_F(KernelCache, equal_kernels_share_one_program) {
  Device device = Device::open(test::software_vulkan());
  Array<float> x = full<float>(device, 10, 1.f);
  for (int k = 0; k < 5; ++k) launch(kernel("made_anew", [](Arr<float> x) { x[tid()] += 1; }), 10, x);
  EXPECT_EQ(x.at(9), 6);
  EXPECT_EQ(device.compile_counts().compiled, 1u);
}

TEST_F(KernelCache, a_changed_constant_is_another_kernel) {
  Device device = Device::open(test::software_vulkan());
  Array<float> x = zeros<float>(device, 10);
  for (float c : {1.f, 2.f, 1.f}) launch(kernel("constant", [c](Arr<float> x) { x[tid()] += c; }), 10, x);
  EXPECT_EQ(x.at(9), 4);
  EXPECT_EQ(device.compile_counts().compiled, 2u);
}

TEST_F(KernelCache, kernels_and_arrays_may_outlive_the_handle_of_their_device) {
  const auto add = kernel("outlives", [](Arr<float> x) { x[tid()] += 1; });
  for (int k = 0; k < 2; ++k) {
    Array<float> x;
    {
      Device device = Device::open(test::software_vulkan());
      x = zeros<float>(device, 10);
      launch(add, 10, x);
    }
    EXPECT_EQ(x.at(3), 1);
  }
}

}  // namespace
