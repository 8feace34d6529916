// Launches that are exported as they are made (WEFT_EXPORT_KERNELS): kernels that cannot be exported.
#include <weft/weft.h>

#include <filesystem>
#include <string>
#include <vector>

#include "../../../frontend/support/platform.h"
#include "../child_program.h"
#include "../device_test.h"

#ifndef _WIN32

using namespace weft;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(ExportedLaunches);

int launch_unnameable(const std::vector<std::string>& arguments) {
  Array<float> x = zeros<float>(Device(arguments[0]), 10).requires_grad();
  Array<float> y = zeros<float>(x.device(), 1);
  const auto k = kernel("na\xefve", [](Arr<const float> x, Arr<float> y) { y[0] = x[3] * x[3] + 2.f; });
  Tape tape;
  tape.record([&] { launch(k, 1, x, y); });
  tape.backward(y);
  return y.at(0) == 2 ? 0 : 1;
}
const test::ChildProgram kLaunchUnnameable("launch unnameable", launch_unnameable);

TEST_P(ExportedLaunches, of_a_name_that_is_not_utf_8_go_on_and_leave_the_reason) {
  namespace fs = std::filesystem;
  const fs::path folder = platform::temporary_folder();
  const test::ChildResult ended =
      test::run_child("launch unnameable", {device().name()}, {"WEFT_EXPORT_KERNELS=" + folder.string()});
  EXPECT_EQ(ended.code, 0) << ended.output;
  for (const char* stem : {"na_ve", "na_ve.adjoint"}) {
    EXPECT_FALSE(fs::exists(folder / (std::string(stem) + ".spv"))) << "which nothing would describe";
    const auto why = platform::read_file(folder / (std::string(stem) + ".refused"));
    ASSERT_TRUE(why) << stem;
    expect_contains({reinterpret_cast<const char*>(why->data()), why->size()}, "is not UTF-8");
  }
  fs::remove_all(folder);
}

}  // namespace
#endif
