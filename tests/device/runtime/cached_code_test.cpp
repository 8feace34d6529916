// Kernels of the device "cpu" from the cache, in a process that finds no LLVM.
#include <weft/weft.h>

#include <cstdio>
#include <filesystem>
#include <span>

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

class CachedCode : public testing::Test {
 protected:
  CachedCode() : folder_(platform::temporary_folder()) {
    // The system looks here first, and then nowhere else.
    const std::string text = "no library";
    for (unsigned version = 11; version <= 40; ++version)
      for (const fs::path name : platform::llvm_libraries(version))
        if (!name.has_parent_path()) platform::write_file(folder_ / "lib" / name, std::as_bytes(std::span(text)));
  }
  ~CachedCode() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string run(const std::vector<std::string>& launches, const std::string& cache, bool with_llvm) const {
    std::vector<std::string> environment = {"WEFT_LLVM=", "WEFT_CACHE=1",
                                            "WEFT_CACHE_DIR=" + (folder_ / cache).string()};
    if (!with_llvm) environment.push_back("LD_LIBRARY_PATH=" + (folder_ / "lib").string());
    return run_child("fill rows", launches, environment).output;
  }

  const fs::path folder_;
};

// Rows that are short want other code, which is not there: the launch takes the code that is.
TEST_F(CachedCode, stands_in_for_code_that_cannot_be_compiled) {
  if (!backend::has_native()) GTEST_SKIP() << "there is no LLVM here";
  if (platform::processor_id().empty()) GTEST_SKIP() << "the system does not tell processors apart";
  expect_contains(run({"100", "400"}, "cache", true), "on cpu, 1 emitted, right\n");
  if (run({"100", "400"}, "empty", false).find("on cpu") != std::string::npos)
    GTEST_SKIP() << "libraries of the same name are found elsewhere";
  for (const std::vector<std::string>& launches : std::initializer_list<std::vector<std::string>>{
           {"100", "400"}, {"100", "3"}, {"50", "1", "100", "5", "2", "300"}})
    expect_contains(run(launches, "cache", false), "on cpu, 0 emitted, right\n");
  expect_contains(run({"100", "3"}, "cache", true), "on cpu, 1 emitted, right\n");
}

}  // namespace
#endif
