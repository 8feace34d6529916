// More than 32 bits count: launches in several dispatches, arrays beyond 2^31 elements, and what refuses them.
#include <numeric>

#include "../../runtime/state.h"
#include "device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Huge);

// Makes the device count as if 32 bits ended at `limit`.
class LowLimit {
 public:
  LowLimit(const Device& device, std::int64_t limit) : state_(*device.state()), before_(state_.max_threads) {
    state_.max_threads = limit;
  }
  ~LowLimit() { state_.max_threads = before_; }

 private:
  detail::DeviceState& state_;
  std::int64_t before_;
};

TEST_P(Huge, launches_take_several_dispatches) {
  const LowLimit limit(device(), 100);
  Array<std::int64_t> line = zeros<std::int64_t>(device(), 1001);
  launch(kernel("line", [](Arr<std::int64_t> out) { out[tid64()] += tid64() * 3 + 1; }), 1001, line);
  std::vector<std::int64_t> expected(1001);
  for (std::size_t i = 0; i < 1001; ++i) expected[i] = std::int64_t(i) * 3 + 1;
  EXPECT_EQ(line.to_vector(), expected);

  Array<int, 3> box = zeros<int, 3>(device(), {30, 3, 7});
  launch(kernel("box",
                [](Arr<int, 3> out) {
                  auto [i, j, k] = tid<3>();
                  out(i, j, k) += 10000 * i + 100 * j + k;
                }),
         {30, 3, 7}, box);
  launch(kernel("box64",
                [](Arr<int, 3> out) {
                  auto [i, j, k] = tid64<3>();
                  out(i, j, k) *= Int(j + 1);
                }),
         {30, 3, 7}, box);
  const std::vector<int> got = box.to_vector();
  for (int i = 0; i < 30; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 7; ++k)
        EXPECT_EQ(got[std::size_t((i * 3 + j) * 7 + k)], (10000 * i + 100 * j + k) * (j + 1)) << i << j << k;

  Array<int> count = zeros<int>(device(), 1);
  launch(kernel("no_coordinates", [](Arr<int> n) { atomic_add(n[0], 1); }), {123, 7}, count);
  EXPECT_EQ(count.at(0), 123 * 7);
}

TEST_P(Huge, coordinates_are_the_same_in_64_bits) {
  Array<std::int64_t, 2> out = zeros<std::int64_t, 2>(device(), {5, 9});
  launch(kernel("coordinates",
                [](Arr<std::int64_t, 2> out) {
                  auto [i, j] = tid64<2>();
                  out(i, j) = 100 * i + j;
                }),
         {5, 9}, out);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 9; ++j) EXPECT_EQ(out[i].at(j), 100 * i + j);
}

TEST_P(Huge, launches_that_32_bits_cannot_count_are_refused_with_the_line) {
  Array<float> x = zeros<float>(device(), 4);
  auto narrow = kernel("narrow", [](Arr<float> x) { x[tid()] += 1; });
  const int line = __LINE__ - 1;
  const std::string text = error_of([&] { launch(narrow, (std::int64_t(1) << 31) + 1, x); });
  expect_contains(text, "2147483649 threads along dimension 0");
  expect_contains(text, "tid64()");
  expect_contains(text, "huge_array_test.cpp:" + std::to_string(line));
  auto plane = kernel("plane", [](Arr<float> x) {
    auto [i, j] = tid64<2>();
    x[i] = Float(j);
  });
  expect_contains(error_of([&] { launch(plane, {2, std::int64_t(1) << 32}, x); }), "behind the first");
  expect_contains(error_of([&] { launch(plane, {std::int64_t(1) << 32, std::int64_t(1) << 32}, x); }), "2^63");
}

}  // namespace
