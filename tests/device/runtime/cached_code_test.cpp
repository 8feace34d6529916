// Kernels of the device "cpu" from the cache, in a process that finds no LLVM.
#include <weft/weft.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "../../../backends/native/code/compiler.h"
#include "../../../backends/native/native.h"
#include "../../../frontend/support/platform.h"
#include "../child_program.h"
#include "../device_test.h"

#ifdef __linux__

using namespace weft;
using weft::test::ChildProgram;
using weft::test::expect_contains;
using weft::test::run_child;
namespace fs = std::filesystem;

namespace {

// In the arguments, rows and columns of one launch after another.
int fill_rows(const std::vector<std::string>& arguments) {
  const Device device("cpu");
  const auto fill = kernel("fill rows", [](Arr<int, 2> x) {
    auto [i, j] = tid<2>();
    x(i, j) = i * 1000 + j;
  });
  bool right = true;
  for (std::size_t k = 0; k + 1 < arguments.size(); k += 2) {
    const int rows = std::stoi(arguments[k]), columns = std::stoi(arguments[k + 1]);
    Array<int, 2> x = zeros<int, 2>(device, {rows, columns});
    launch(fill, {rows, columns}, x);
    const std::vector<int> all = x.to_vector();
    for (int i = 0; i < rows * columns; ++i) right = right && all[std::size_t(i)] == i / columns * 1000 + i % columns;
  }
  std::printf("on %s, %d emitted, %s\n", device.name().c_str(), int(device.native().stats().emitted),
              right ? "right" : "wrong");
  return 0;
}
const ChildProgram kFillRows("fill rows", fill_rows);

// The device looks for LLVM in a folder of the test's: its libraries lead to the real one, or are none of the same size
// and time, because a device believes the cache's note of a library that seems to be unchanged.
class CachedCode : public testing::Test {
 protected:
  CachedCode() : folder_(platform::temporary_folder()) { fs::create_directories(folder_ / "lib"); }
  ~CachedCode() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string run(const std::vector<std::string>& launches, const std::string& cache, bool with_llvm) const {
    for (unsigned version = 11; version <= 40; ++version)
      for (const fs::path name : platform::llvm_libraries(version))
        if (!name.has_parent_path()) put_library(folder_ / "lib" / name, with_llvm);
    return run_child("fill rows", launches,
                     {"WEFT_LLVM=", "WEFT_CACHE=1", "WEFT_CACHE_DIR=" + (folder_ / cache).string(),
                      "LD_LIBRARY_PATH=" + (folder_ / "lib").string()})
        .output;
  }
  static fs::path real_library() {
    const backend::native::Compiler* found = backend::native::Compiler::find(backend::native::Request{});
    return found ? fs::path(found->toolchain().path) : fs::path();
  }

  const fs::path folder_;

 private:
  void put_library(const fs::path& path, bool is_real) const {
    fs::remove(path);
    if (is_real) return fs::create_symlink(real_, path);
    std::ofstream(path) << "no library";
    fs::resize_file(path, fs::file_size(real_));
    fs::last_write_time(path, fs::last_write_time(real_));
  }

  const fs::path real_ = real_library();
};

// Rows that are short want other code, which is not there: the launch takes the code that is.
TEST_F(CachedCode, stands_in_for_code_that_cannot_be_compiled) {
  if (!backend::has_native()) GTEST_SKIP() << "there is no LLVM here";
  if (platform::processor_id().empty()) GTEST_SKIP() << "the system does not tell processors apart";
  expect_contains(run({"100", "400"}, "cache", true), "on cpu, 1 emitted, right\n");
  if (run({"100", "400"}, "empty", false).find("on cpu") != std::string::npos)
    GTEST_SKIP() << "there are libraries whose place the system does not choose";
  for (const std::vector<std::string>& launches : std::initializer_list<std::vector<std::string>>{
           {"100", "400"}, {"100", "3"}, {"50", "1", "100", "5", "2", "300"}})
    expect_contains(run(launches, "cache", false), "on cpu, 0 emitted, right\n");
  expect_contains(run({"100", "3"}, "cache", true), "on cpu, 1 emitted, right\n");
}

// The libraries of the folder are none, of versions that would be new enough and of older ones.
TEST_F(CachedCode, says_what_to_install_where_there_is_no_llvm) {
  if (!backend::has_native()) GTEST_SKIP() << "there is no LLVM here";
  const std::string said = run({"100", "4"}, "none", false);
  if (said.find("on cpu") != std::string::npos)
    GTEST_SKIP() << "there are libraries whose place the system does not choose";
  expect_contains(said, "which is slower: LLVM is missing: no library of version 15 or later was found");
  expect_contains(said, "`apt-get install libllvm19`");
  expect_contains(said, "libLLVM-14.so");
  expect_contains(said, ", right\n");
}

}  // namespace
#endif
