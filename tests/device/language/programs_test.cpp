// Programs in memory: shared by equal kernels, kept while one is alive, and bounded in number.
#include "../../../runtime/core/state.h"
#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(Programs);

auto put(int value) {
  return kernel("put", [=](Arr<int> x) { x[tid()] = value; });
}

TEST_P(Programs, without_a_kernel_are_bounded_in_number) {
  Device own = Device::open(device().name());
  detail::Programs& programs = own.state()->programs;
  programs.keep_idle(4);
  Array<int> x = zeros<int>(own, 8);
  const auto kept = put(-1);
  launch(kept, 8, x);
  for (int value = 0; value < 20; ++value) {
    launch(put(value), 8, x);
    EXPECT_EQ(x.at(7), value);
    EXPECT_LE(programs.size(), 6u);
  }
  EXPECT_EQ(programs.size(), 5u);  // one for `kept`, and the last four

  const auto compiled = [&] { return own.compile_counts().compiled + own.compile_counts().loaded; };
  const std::uint64_t before = compiled();
  launch(put(19), 8, x);
  launch(put(16), 8, x);
  launch(kept, 8, x);
  EXPECT_EQ(compiled(), before);
  launch(put(15), 8, x);  // dropped long ago: made again
  EXPECT_EQ(compiled(), before + 1);
  launch(put(17), 8, x);  // the longest unused of the kept ones
  EXPECT_EQ(compiled(), before + 2);
  EXPECT_EQ(x.at(0), 17);
}

TEST_P(Programs, are_shared_by_equal_kernels_and_outlive_their_device_in_none) {
  Array<int> x;
  const auto first = put(3), second = put(3), other = put(4);
  {
    Device own = Device::open(device().name());
    x = zeros<int>(own, 8);
    launch(first, 8, x);
    launch(second, 8, x);
    EXPECT_EQ(own.state()->programs.size(), 1u);
    launch(other, 8, x);
    EXPECT_EQ(own.state()->programs.size(), 2u);
    x = {};
  }
  x = zeros<int>(device(), 8);  // the kernels work on another device when the first is gone
  launch(first, 8, x);
  EXPECT_EQ(x.at(1), 3);
}

}  // namespace
