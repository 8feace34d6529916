// The C interface to exported kernels: argument blocks byte by byte, and every refusal.
#include <gtest/gtest.h>
#include <weft/loader/loader.h>
#include <weft/weft.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "../../frontend/support/platform.h"

#ifdef __linux__
#include <sys/stat.h>
#endif

namespace weft {
namespace {

class Loader : public testing::Test {
 protected:
  ~Loader() override { weft_kernel_close(kernel_); }

  void read(const SpirvKernel& exported) {
    weft_kernel_close(kernel_);
    const std::string json = to_json(exported.reflection);
    ASSERT_EQ(weft_kernel_read(json.data(), json.size(), exported.words.data(), exported.words.size() * 4, &kernel_),
              WEFT_LOADER_OK)
        << weft_loader_error();
    weft_kernel_info info;
    ASSERT_EQ(weft_kernel_describe(kernel_, &info), WEFT_LOADER_OK);
    block_.assign(info.block_bytes, std::byte(0xff));
    ASSERT_EQ(weft_block_clear(kernel_, block_.data()), WEFT_LOADER_OK);
  }
  template <class T>
  T at(std::uint32_t offset) const {
    T value;
    std::memcpy(&value, block_.data() + offset, sizeof value);
    return value;
  }
  std::uint32_t find(const char* name) const { return std::uint32_t(weft_kernel_find(kernel_, name)); }
  weft_loader_status set_threads(std::vector<std::int64_t> extents, std::uint32_t most = 65535) {
    return weft_block_set_threads(kernel_, block_.data(), extents.data(), std::uint32_t(extents.size()), most,
                                  &groups_);
  }
  weft_loader_status set_array(const char* name, std::uint64_t address, std::vector<std::int64_t> shape,
                               std::vector<std::int64_t> strides = {}) {
    return weft_block_set_array(kernel_, block_.data(), find(name), address, shape.data(),
                                strides.empty() ? nullptr : strides.data());
  }
  void refused(weft_loader_status status, weft_loader_status expected, const std::string& message) {
    EXPECT_EQ(status, expected);
    EXPECT_NE(std::string(weft_loader_error()).find(message), std::string::npos) << weft_loader_error();
  }
  void invalid(weft_loader_status status, const std::string& message) {
    refused(status, WEFT_LOADER_INVALID_ARGUMENT, message);
  }

  weft_kernel* kernel_ = nullptr;
  std::vector<std::byte> block_;
  weft_groups groups_{};
};

auto scale() {
  return kernel("scale", [](Arr<vec4, 2> x, Arr<const float> y, Float s) {
    auto [i, j] = tid<2>();
    x(i, j) *= y[j] * s;
  });
}

TEST_F(Loader, FillsBlocks) {
  read(scale().spirv({.names = {"x", "y", "s"}, .strided = {"y"}}));
  ASSERT_EQ(set_array("x", 0x1000, {3, 5}), WEFT_LOADER_OK);
  ASSERT_EQ(set_array("y", 0x2004, {5}, {12}), WEFT_LOADER_OK);
  const float s = 2.5f;
  ASSERT_EQ(weft_block_set_value(kernel_, block_.data(), find("s"), &s, 4), WEFT_LOADER_OK);
  ASSERT_EQ(set_threads({300, 5}), WEFT_LOADER_OK);
  weft_argument x, y, value;
  ASSERT_EQ(weft_kernel_argument(kernel_, find("x"), &x), WEFT_LOADER_OK);
  ASSERT_EQ(weft_kernel_argument(kernel_, find("y"), &y), WEFT_LOADER_OK);
  ASSERT_EQ(weft_kernel_argument(kernel_, find("s"), &value), WEFT_LOADER_OK);
  EXPECT_STREQ(x.type, "Array<vec4, 2>");
  EXPECT_EQ(x.alignment, 16u);
  EXPECT_EQ(y.alignment, 4u);
  EXPECT_TRUE(y.strided && y.reads && !y.writes && x.writes && !x.strided);
  EXPECT_EQ(at<std::uint32_t>(0), 1500u);
  EXPECT_EQ(at<std::uint64_t>(x.offset), 0x1000u);
  EXPECT_EQ(at<std::int32_t>(x.offset + 8), 3);
  EXPECT_EQ(at<std::int32_t>(x.offset + 12), 5);
  EXPECT_EQ(at<std::uint64_t>(y.offset), 0x2004u);
  EXPECT_EQ(at<std::int64_t>(y.offset + 8), 5);
  EXPECT_EQ(at<std::int64_t>(y.offset + 16), 12);
  EXPECT_EQ(at<float>(value.offset), 2.5f);
  EXPECT_EQ(groups_.x, 6u);
  EXPECT_EQ(groups_.y, 1u);
}

TEST_F(Loader, DividesByMultiplication) {
  read(scale().spirv({.names = {"x", "y", "s"}}));
  weft_argument s;
  ASSERT_EQ(weft_kernel_argument(kernel_, find("s"), &s), WEFT_LOADER_OK);
  const std::uint32_t extents = s.offset + 4;
  for (const std::uint32_t d : {1u, 2u, 3u, 7u, 640u, 1000003u, 2147483647u}) {
    ASSERT_EQ(set_threads({1, std::int64_t(d)}), WEFT_LOADER_OK);
    ASSERT_EQ(at<std::uint32_t>(extents), d);
    const std::uint64_t multiplier = at<std::uint32_t>(extents + 4), shift = at<std::uint32_t>(extents + 8);
    for (const std::uint64_t n : {0u, 1u, d - 1, d, d + 1, 12345678u, 2147483646u})
      EXPECT_EQ((2 * n * multiplier >> 32) >> shift, n / d) << n << " / " << d;
  }
}

TEST_F(Loader, PutsManyWorkgroupsInRows) {
  read(kernel("one", [](Arr<float> x) { x[tid()] = 1; }).spirv());
  ASSERT_EQ(set_threads({1000 * 256}, 300), WEFT_LOADER_OK);
  EXPECT_EQ(groups_.x, 250u);
  EXPECT_EQ(groups_.y, 4u);
  ASSERT_EQ(set_threads({0}), WEFT_LOADER_OK);
  EXPECT_EQ(groups_.x, 0u);
}

TEST_F(Loader, NamesWhatADeviceMustHave) {
  read(kernel("wide", [](Arr<double> x) { x[tid()] *= 2; }).spirv());
  std::vector<std::string> features;
  for (std::uint32_t k = 0; const char* name = weft_kernel_requirement(kernel_, WEFT_FEATURES, k); ++k)
    features.push_back(name);
  EXPECT_EQ(features,
            (std::vector<std::string>{"bufferDeviceAddress", "scalarBlockLayout", "shaderFloat64", "shaderInt64"}));
  EXPECT_EQ(weft_kernel_requirement(kernel_, WEFT_DEVICE_EXTENSIONS, 0), nullptr);
  EXPECT_EQ(weft_kernel_requirement(kernel_, weft_requirement(9), 0), nullptr);
}

TEST_F(Loader, OpensFiles) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("weft_loader_" + std::to_string(platform::process_id()));
  write_spirv(scale().spirv(), folder.string(), "scale");
  ASSERT_EQ(weft_kernel_open((folder / "scale.json").string().c_str(), &kernel_), WEFT_LOADER_OK)
      << weft_loader_error();
  weft_kernel_info info;
  ASSERT_EQ(weft_kernel_describe(kernel_, &info), WEFT_LOADER_OK);
  EXPECT_STREQ(info.name, "scale");
  EXPECT_EQ(info.words[0], 0x07230203u);

  weft_kernel* none = kernel_;
  refused(weft_kernel_open((folder / "other.json").string().c_str(), &none), WEFT_LOADER_IO,
          "other.json cannot be read");
  EXPECT_EQ(none, nullptr);
  { std::ofstream((folder / "scale.spv").string(), std::ios::app | std::ios::binary) << "more"; }
  refused(weft_kernel_open((folder / "scale.json").string().c_str(), &none), WEFT_LOADER_BAD_KERNEL,
          "is not the module that the JSON of kernel \"scale\" describes");
  std::filesystem::remove(folder / "scale.spv");
  refused(weft_kernel_open((folder / "scale.json").string().c_str(), &none), WEFT_LOADER_IO,
          "scale.spv cannot be read");
  { std::ofstream((folder / "scale.json").string()) << "nothing"; }
  std::filesystem::copy_file(folder / "scale.json", folder / "scale.spv");
  refused(weft_kernel_open((folder / "scale.json").string().c_str(), &none), WEFT_LOADER_BAD_KERNEL, "no JSON");
  std::filesystem::remove_all(folder);
}

#ifdef __linux__
// One file opens but cannot be read; another is a pipe to which nobody writes.
TEST_F(Loader, SaysWhichFilesCannotBeRead) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("weft_unreadable_" + std::to_string(platform::process_id()));
  write_spirv(scale().spirv(), folder.string(), "scale");
  const std::string json = (folder / "scale.json").string(), spv = (folder / "scale.spv").string();
  weft_kernel* none = nullptr;
  refused(weft_kernel_open("/proc/self/mem", &none), WEFT_LOADER_IO, "/proc/self/mem cannot be read");
  std::filesystem::remove(spv);
  std::filesystem::create_symlink("/proc/self/mem", spv);
  refused(weft_kernel_open(json.c_str(), &none), WEFT_LOADER_IO, "scale.spv cannot be read");
  std::filesystem::remove(spv);
  ASSERT_EQ(mkfifo(spv.c_str(), 0600), 0);
  refused(weft_kernel_open(json.c_str(), &none), WEFT_LOADER_IO, "scale.spv cannot be read");
  EXPECT_EQ(none, nullptr);
  std::filesystem::remove_all(folder);
}
#endif

TEST_F(Loader, RefusesModulesOfAFewBytes) {
  const std::string json = to_json(scale().spirv().reflection);
  weft_kernel* none = nullptr;
  for (std::size_t bytes = 0; bytes < 8; ++bytes)
    refused(weft_kernel_read(json.data(), json.size(), json.data(), bytes, &none), WEFT_LOADER_BAD_KERNEL,
            "is not the module");
}

TEST_F(Loader, HasWordsForMemoryThatIsNotThere) {
  weft_kernel* none = nullptr;
  refused(weft_kernel_read("{}", SIZE_MAX / 2 + 100, nullptr, 0, &none), WEFT_LOADER_OUT_OF_MEMORY, "out of memory");
}

TEST_F(Loader, SaysWhichNamesThereAreForOneThatIsNot) {
  read(kernel("wave", [](Arr<float> x, Float t) { x[tid()] = t; }).spirv());
  EXPECT_EQ(weft_kernel_find(kernel_, "x"), -1);
  EXPECT_STREQ(weft_loader_error(), R"(kernel "wave" has no argument "x"; it has "argument 1", "argument 2")");
  invalid(set_array("x", 0x1000, {3}),
          R"(kernel "wave" has no argument of that name; it has "argument 1", "argument 2")");
  const float t = 1;
  invalid(weft_block_set_value(kernel_, block_.data(), find("t"), &t, 4), "has no argument of that name");
  EXPECT_EQ(weft_kernel_find(kernel_, "argument 2"), 1);
  read(kernel("nothing", [] {}).spirv());
  invalid(set_array("x", 0x1000, {3}), R"(kernel "nothing" has no argument of that name; it has none)");
  EXPECT_EQ(weft_kernel_find(kernel_, nullptr), -1);
  EXPECT_STREQ(weft_loader_error(), "name is null");
}

TEST_F(Loader, RefusesWhatCannotBe) {
  read(scale().spirv({.names = {"x", "y", "s"}}));
  float s = 1;
  invalid(set_array("x", 0x1008, {3, 5}), "argument \"x\": its address is no multiple of 16");
  invalid(set_array("x", 0, {3, 5}), "argument \"x\": its address is null, and it has elements");
  EXPECT_EQ(set_array("x", 0, {3, 0}), WEFT_LOADER_OK);
  invalid(set_array("x", 0x1000, {3, -5}), "a size is negative");
  invalid(set_array("x", 0x1000, {3, 1ll << 31}), "a size is 2^31 or more");
  invalid(set_array("x", 0x1000, {2147483647, 2147483647}), "larger than any memory");
  invalid(set_array("x", 0x1000, {3, 5}, {160, 32}), "exported for elements that lie side by side");
  EXPECT_EQ(set_array("x", 0x1000, {3, 5}, {80, 16}), WEFT_LOADER_OK);
  invalid(set_array("s", 0x1000, {1}), "argument \"s\": it is a value");
  invalid(weft_block_set_value(kernel_, block_.data(), find("s"), &s, 8), "8 bytes are given; float32 has 4");
  invalid(weft_block_set_value(kernel_, block_.data(), find("x"), &s, 4), "it is an array");
  invalid(weft_block_set_value(kernel_, block_.data(), 3, &s, 4), "has 3 arguments, and number 3 is asked for");
  invalid(weft_block_set_value(kernel_, nullptr, find("s"), &s, 4), "null");
  invalid(weft_block_set_array(kernel_, block_.data(), 0, 0, nullptr, nullptr), "null");
  invalid(set_threads({5}), "is launched over 2 dimensions, and 1 are given");
  invalid(set_threads({5, -1}), "negative");
  invalid(set_threads({1 << 16, 1 << 16}), "less than 2^31 threads");
  invalid(set_threads({5, 5}, 0), "max_groups_x is 0");
  invalid(weft_block_set_part(kernel_, block_.data(), 8, 8, 65535, &groups_), "cannot be launched in parts");
  invalid(weft_kernel_describe(nullptr, nullptr), "kernel is null");
  invalid(weft_kernel_open(nullptr, nullptr), "json_path is null");
  EXPECT_EQ(weft_kernel_find(kernel_, "z"), -1);
  weft_kernel_close(nullptr);

  read(scale().spirv({.names = {"x", "y", "s"}, .strided = {"y"}}));
  invalid(set_array("y", 0x1000, {5}, {-4}), "stride -4 is negative");
  invalid(set_array("y", 0x1000, {5}, {6}), "no multiple of 4");
}

}  // namespace
}  // namespace weft
