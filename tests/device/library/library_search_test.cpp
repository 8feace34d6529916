// lower_bound and upper_bound in kernels against those of the standard library.
#include <algorithm>
#include <array>
#include <limits>

#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(Search);

/// The standard library's answer between two indices.
template <class T>
int below(const std::vector<T>& v, int lo, int hi, T x) {
  return int(std::lower_bound(v.begin() + lo, v.begin() + hi, x) - v.begin());
}
template <class T>
int upto(const std::vector<T>& v, int lo, int hi, T x) {
  return int(std::upper_bound(v.begin() + lo, v.begin() + hi, x) - v.begin());
}

TEST_P(Search, the_whole_array_is_searched_as_the_standard_library_does) {
  auto check = [&]<class T>(T) {
    for (int size : {1, 2, 3, 7, 64, 100}) {
      // The array has every second number, with repetitions; the test looks for each number around them.
      std::vector<T> sorted, wanted;
      for (int i = 0; i < size; ++i) sorted.push_back(T(2 + 2 * (i / 3)));
      for (int i = 0; i <= int(sorted.back()) + 2; ++i) wanted.push_back(T(i));
      const int n = int(wanted.size());
      Array<T> a(device(), sorted), w(device(), wanted);
      Array<int> lower = zeros<int>(device(), n), upper = zeros<int>(device(), n);
      launch(kernel("search",
                    [](Arr<const T> a, Arr<T> w, Arr<int> lower, Arr<int> upper) {
                      Int i = tid();
                      lower[i] = lower_bound(a, w[i]);
                      Var<T> x = w[i];
                      upper[i] = upper_bound(a, x);
                    }),
             n, a, w, lower, upper);
      const std::vector<int> l = lower.to_vector(), u = upper.to_vector();
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(l[std::size_t(i)], below(sorted, 0, size, wanted[std::size_t(i)])) << size << " " << i;
        EXPECT_EQ(u[std::size_t(i)], upto(sorted, 0, size, wanted[std::size_t(i)])) << size << " " << i;
        EXPECT_EQ(l[std::size_t(i)], lower_bound(sorted, wanted[std::size_t(i)]));
        EXPECT_EQ(u[std::size_t(i)], upper_bound(sorted, wanted[std::size_t(i)]));
      }
    }
  };
  check(half(0));
  check(0.f);
  check(0.);
  check(std::int8_t(0));
  check(std::uint16_t(0));
  check(0);
  check(0u);
  check(std::int64_t(0));
}

TEST_P(Search, a_part_of_an_array_is_searched_and_empty_parts_give_their_start) {
  const std::vector<int> sorted{9, 1, 4, 4, 6, 8, 0, -3};  // ascending in [1, 6)
  struct Case {
    int lo, hi, value;
  };
  const std::vector<Case> cases{{1, 6, 4}, {1, 6, 0}, {1, 6, 9}, {2, 4, 4}, {2, 4, 5}, {3, 3, 4}, {5, 2, 4}, {1, 2, 1}};
  std::vector<int> flat;
  for (const Case& c : cases) flat.insert(flat.end(), {c.lo, c.hi, c.value});
  const int n = int(cases.size());
  Array<int> a(device(), sorted), in(device(), flat), out = zeros<int>(device(), 2 * n);
  launch(kernel("parts",
                [](Arr<const int> a, Arr<const int> in, Arr<int> out) {
                  Int i = tid();
                  out[2 * i] = lower_bound(a, in[3 * i], in[3 * i + 1], in[3 * i + 2]);
                  out[2 * i + 1] = upper_bound(a, in[3 * i], in[3 * i + 1], in[3 * i + 2]);
                }),
         n, a, in, out);
  const std::vector<int> got = out.to_vector();
  for (int i = 0; i < n; ++i) {
    const Case& c = cases[std::size_t(i)];
    const bool empty = c.lo >= c.hi;
    EXPECT_EQ(got[std::size_t(2 * i)], empty ? c.lo : below(sorted, c.lo, c.hi, c.value)) << i;
    EXPECT_EQ(got[std::size_t(2 * i + 1)], empty ? c.lo : upto(sorted, c.lo, c.hi, c.value)) << i;
    EXPECT_EQ(got[std::size_t(2 * i)], lower_bound(sorted, c.lo, c.hi, c.value)) << i;
    EXPECT_EQ(got[std::size_t(2 * i + 1)], upper_bound(sorted, c.lo, c.hi, c.value)) << i;
  }
}

TEST_P(Search, rows_and_strided_views_are_searched) {
  std::vector<float> table;
  for (int row = 0; row < 4; ++row)
    for (int i = 0; i < 10; ++i) table.push_back(float(10 * row + i));
  Array<float, 2> a(device(), {4, 10}, table);
  Array<float, 2> odd = a.slice(1, 10, 2, 1);  // 1, 3, 5, 7, 9 of each row
  Array<int> out = zeros<int>(device(), 8);
  auto k = kernel("rows", [](Arr<const float, 2> a, Arr<int> out, Int first) {
    Int i = tid();
    out[first + i] = lower_bound(a[i], 10.f * Float(i) + 4.5f);
  });
  launch(k, 4, a, out, 0);
  launch(k, 4, odd, out, 4);
  EXPECT_EQ(out.to_vector(), (std::vector<int>{5, 5, 5, 5, 2, 2, 2, 2}));
}

TEST_P(Search, a_nan_is_below_nothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Array<float> a(device(), std::vector<float>{1, 2, 3});
  Array<int> out = zeros<int>(device(), 2);
  launch(kernel("nan",
                [](Arr<const float> a, Arr<int> out, Float x) {
                  out[0] = lower_bound(a, x);
                  out[1] = upper_bound(a, x);
                }),
         1, a, out, nan);
  EXPECT_EQ(out.to_vector(), (std::vector<int>{0, 0}));
  EXPECT_EQ(lower_bound(std::array{1.f, 2.f, 3.f}, nan), 0);
  EXPECT_EQ(upper_bound(std::array{1.f, 2.f, 3.f}, nan), 0);
}

}  // namespace
