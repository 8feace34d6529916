// Views: slices, rows, transposes and other shapes of an array, on the host and in kernels.
#include <numeric>

#include "device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Views);

std::vector<float> counting(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 0.f);
  return v;
}

TEST_P(Views, slices_in_kernels_are_arrays) {
  auto sum_of = [](const Arr<const float>& a) {
    Float sum = 0;
    for (auto i : range(a.shape(0))) sum += a[i];
    return sum;
  };
  auto sums = kernel("sums", [=](Arr<const float, 2> a, Arr<float> out, Int lo, Int hi) {
    out[0] = sum_of(a[1].slice(lo, hi));
    out[1] = sum_of(a[2].slice(lo, hi, 2));
    out[2] = sum_of(a.transpose()[hi]);
    out[3] = sum_of(a.slice(1, 3)[1].slice(lo, hi).slice(1, hi - lo, 2));
    out[4] = Float(a.slice(0, 4, 3).shape(0) * 100 + a.transpose().shape(0));
    out[5] = sum_of(a.slice(1, 4, 2).transpose()[lo]);
    out[6] = select(a.slice(lo, lo).shape(0) == 0, 1.f, 2.f);
  });
  // Contiguous, and as a strided view.
  Array<float, 2> tight(device(), {4, 7}, counting(28));
  Array<float, 2> wide = zeros<float, 2>(device(), {8, 14});
  Array<float, 2> loose = wide.slice(0, 8, 2).slice(0, 14, 2, 1);
  loose.copy_from(tight);
  for (const Array<float, 2>& a : {tight, loose}) {
    Array<float> out = zeros<float>(device(), 7);
    launch(sums, 1, a, out, 1, 6);
    // Row r holds 7 r, 7 r + 1, ...
    EXPECT_EQ(out.to_vector(),
              (std::vector<float>{8 + 9 + 10 + 11 + 12, 15 + 17 + 19, 6 + 13 + 20 + 27, 16 + 18, 207, 8 + 22, 1}));
  }
}

TEST_P(Views, of_kernels_are_written_through) {
  Array<int, 2> a = zeros<int, 2>(device(), {6, 5});
  launch(kernel("write",
                [](Arr<int, 2> a) {
                  Int i = tid();
                  auto part = a.slice(1, 6, 2).transpose();  // 5 x 3
                  part(i, 2) = i + 1;
                  part[i][0] -= 7;
                }),
         5, a);
  std::vector<int> expected(30);
  for (std::size_t i = 0; i < 5; ++i) expected[25 + i] = int(i) + 1, expected[5 + i] = -7;
  EXPECT_EQ(a.to_vector(), expected);
}

}  // namespace
