// More than 32 bits count: launches in several dispatches, arrays beyond 2^31 elements, and what refuses them.
#include <optional>

#include "../../../runtime/core/state.h"
#include "../device_test.h"

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
  expect_contains(error_of([&] { launch(plane, {2, std::int64_t(1) << 32}, x); }), "after the first");
  expect_contains(error_of([&] { launch(plane, {std::int64_t(1) << 32, std::int64_t(1) << 32}, x); }), "2^63");
}

// 2^31 bytes, of which the operating system provides only those that are touched. Nothing if the device refuses them.
std::optional<Array<std::uint8_t>> two_gigabytes(const Device& device) {
  const std::int64_t n = std::int64_t(1) << 31;
  const backend::DeviceInfo& info = device.native().info();
  if (info.max_allocation >= std::uint64_t(n) && info.memory_bytes >= std::uint64_t(n) * 2)
    return empty<std::uint8_t>(device, n);
  const std::string text = error_of([&] { empty<std::uint8_t>(device, n); });
  expect_contains(text, "out of memory");
  expect_contains(text, std::to_string(n));
  return {};
}

TEST_P(Huge, arrays_beyond_32_bits_are_written_read_and_copied) {
  std::optional<Array<std::uint8_t>> made = two_gigabytes(device());
  if (!made) return;
  Array<std::uint8_t> a = *made;
  const std::int64_t n = a.size();
  a.slice(0, 8).fill(1);
  a.slice(n - 110).fill(7);
  launch(kernel("far",
                [](Arr<std::uint8_t> a) {
                  Int64 last = a.shape64(0) - 1;
                  a[last - tid64() * 3] = 9;
                  a[tid() + 1] = UInt8(a[last - 1]);
                }),
         3, a);
  EXPECT_EQ(a.at(-1), 9);
  EXPECT_EQ(a.at(-4), 9);
  EXPECT_EQ(a.slice(n - 9).to_vector(), (std::vector<std::uint8_t>{7, 7, 9, 7, 7, 9, 7, 7, 9}));
  EXPECT_EQ(a.slice(0, 5).to_vector(), (std::vector<std::uint8_t>{1, 7, 7, 7, 1}));
  copy(a, a, 2, n - 3, 3);
  EXPECT_EQ(a.slice(0, 8).to_vector(), (std::vector<std::uint8_t>{1, 7, 7, 7, 9, 1, 1, 1}));
  // Rows that begin beyond 32 bits, and a view across the whole array.
  Array<std::uint8_t, 2> rows = a.slice(0, n / 4 * 4).reshape<2>({4, n / 4});
  launch(kernel("corner", [](Arr<std::uint8_t, 2> a) { a(tid(), a.shape(1) - 1) = UInt8(tid()) + 20; }), 4, rows);
  EXPECT_EQ(a.at(n / 4 - 1), 20);
  EXPECT_EQ(a.at(n / 4 * 4 - 1), 23);
  EXPECT_EQ(a.slice(0, n, n / 4).to_vector(),
            (std::vector<std::uint8_t>{1, rows.at(1, 0), rows.at(2, 0), rows.at(3, 0)}));
}

TEST_P(Huge, sizes_that_32_bits_cannot_hold_are_refused_with_the_line) {
  std::optional<Array<std::uint8_t>> made = two_gigabytes(device());
  if (!made) return;
  auto narrow = kernel("narrow", [](Arr<std::uint8_t> a, Arr<int> out) { out[0] = a.shape(0); });
  const int line = __LINE__ - 1;
  Array<int> out = zeros<int>(device(), 1);
  const std::string text = error_of([&] { launch(narrow, 1, *made, out); });
  expect_contains(text, "dimension 0 of argument 1 has 2147483648 elements");
  expect_contains(text, "shape64()");
  expect_contains(text, "huge_array_test.cpp:" + std::to_string(line));
  auto in_slice = kernel("in_slice", [](Arr<std::uint8_t> a, Arr<int> out) { out[0] = a.slice(3, 9).shape(0); });
  expect_contains(error_of([&] { launch(in_slice, 1, *made, out); }), "shape64()");
  launch(narrow, 1, made->slice(1), out);
  EXPECT_EQ(out.at(0), 2147483647);
  launch(narrow, 1, made->slice(100, 200), out);
  EXPECT_EQ(out.at(0), 100);
}

TEST_P(Huge, a_low_limit_makes_arrays_strided_and_nothing_else) {
  const LowLimit limit(device(), 100);
  Array<vec3, 2> a = zeros<vec3, 2>(device(), {50, 9});
  launch(kernel("number",
                [](Arr<vec3, 2> a) {
                  auto [i, j] = tid<2>();
                  a(i, j) = Vec3(Float(i), Float(j), Float(a.shape(0) + a.shape(1)));
                }),
         {50, 9}, a);
  const std::vector<vec3> got = a.to_vector();
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_EQ(got[k], (vec3{float(k / 9), float(k % 9), 59}));
}

}  // namespace
