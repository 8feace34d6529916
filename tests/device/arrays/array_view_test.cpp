// Views: slices, rows, transposes and other shapes of an array, on the host and in kernels.
#include <numeric>

#include "../device_test.h"

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

TEST_P(Views, views_share_elements_and_clones_do_not) {
  Array<float, 2> a(device(), {4, 3}, counting(12));
  Array<float, 2> copy = a.clone();
  a[2].fill(-1);
  a.slice(0, 3, 2, 1).slice(0, 1).fill(9);
  EXPECT_EQ(a.to_vector(), (std::vector<float>{9, 1, 9, 3, 4, 5, -1, -1, -1, 9, 10, 11}));
  EXPECT_EQ(copy.to_vector(), counting(12));
  EXPECT_EQ((a.reshape<1>({12}).at(6)), -1);
  EXPECT_EQ((copy.slice(1, 3, 1, 1).clone().to_vector()), (std::vector<float>{1, 2, 4, 5, 7, 8, 10, 11}));
}

TEST_P(Views, fills_of_views_stay_inside_them) {
  Array<std::uint8_t> bytes = full<std::uint8_t>(device(), 8, std::uint8_t(1));
  bytes.slice(0, 6).fill(7);
  EXPECT_EQ(bytes.to_vector(), (std::vector<std::uint8_t>{7, 7, 7, 7, 7, 7, 1, 1}));
  Array<std::int16_t> shorts = zeros<std::int16_t>(device(), 5);
  shorts.slice(0, 3).fill(4);
  EXPECT_EQ(shorts.to_vector(), (std::vector<std::int16_t>{4, 4, 4, 0, 0}));
  Array<vec3, 2> grid = zeros<vec3, 2>(device(), {3, 4});
  grid.slice(1, 4, 2, 1).slice(0, 2).fill(vec3{1, 2, 3});
  const std::vector<vec3> got = grid.to_vector();
  for (std::size_t k = 0; k < 12; ++k) EXPECT_EQ(got[k], (k % 4 % 2 == 1 && k < 8 ? vec3{1, 2, 3} : vec3{})) << k;
}

TEST_P(Views, copies_between_overlapping_views_read_before_they_write) {
  Array<float> line(device(), counting(10));
  line.slice(2, 10).copy_from(line.slice(0, 8));
  EXPECT_EQ(line.to_vector(), (std::vector<float>{0, 1, 0, 1, 2, 3, 4, 5, 6, 7}));
  Array<float, 2> grid(device(), {3, 4}, counting(12));
  grid.slice(1, 4, 1, 1).copy_from(grid.slice(0, 3, 1, 1));
  EXPECT_EQ(grid.to_vector(), (std::vector<float>{0, 0, 1, 2, 4, 4, 5, 6, 8, 8, 9, 10}));
  grid.slice(0, 4, 2, 1).copy_from(grid.slice(1, 4, 2, 1));
  EXPECT_EQ(grid.to_vector(), (std::vector<float>{0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10}));
}

TEST_P(Views, strided_views_of_every_element_size_copy) {
  auto check = [&]<class T>(T) {
    std::vector<T> host(48);
    for (int i = 0; i < 48; ++i) host[std::size_t(i)] = T(float(i));
    Array<T, 4> a(device(), {2, 3, 2, 4}, host);
    Array<T, 4> v = a.slice(0, 4, 3, 3).slice(1, 3, 1, 1);
    std::vector<T> expected;
    for (int i = 0; i < 2; ++i)
      for (int j = 1; j < 3; ++j)
        for (int k = 0; k < 2; ++k)
          for (int l = 0; l < 4; l += 3) expected.push_back(host[std::size_t(((i * 3 + j) * 2 + k) * 4 + l)]);
    EXPECT_EQ(v.to_vector(), expected);
    v.assign(std::vector<T>(expected.rbegin(), expected.rend()));
    EXPECT_EQ(v.to_vector(), std::vector<T>(expected.rbegin(), expected.rend()));
    EXPECT_EQ(a.to_vector()[1], host[1]);
  };
  check(float()), check(std::uint8_t()), check(std::int16_t()), check(double()), check(vec3());
}

TEST_P(Views, negative_numbers_count_from_the_end) {
  Array<float, 2> a(device(), {4, 3}, counting(12));
  EXPECT_EQ(a[-1].to_vector(), (std::vector<float>{9, 10, 11}));
  EXPECT_EQ(a[-4].at(-3), 0);
  EXPECT_EQ(a.at(-1, -2), 10);
  EXPECT_EQ(a.slice(-2).to_vector(), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(a.slice(1, -1).to_vector(), (std::vector<float>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(a.slice(-3, -1, 1, 1).at(3, 1), 10);
  expect_contains(error_of([&] { a[-5]; }), "row -5 of an array of 4 rows");
  expect_contains(error_of([&] { a.slice(-5, 2); }), "slice [-5, 2)");
  expect_contains(error_of([&] { a.slice(0, -5); }), "slice [0, -5)");
  expect_contains(error_of([&] { a.at(0, -4); }), "index -4 of dimension 1, which has 3");
  expect_contains(error_of([&] { a.at(0, 3); }), "index 3 of dimension 1, which has 3");
}

TEST_P(Views, of_other_orders_and_shapes_share_elements) {
  Array<float, 3> a(device(), {2, 3, 4}, counting(24));
  Array<float, 3> t = a.transpose();
  EXPECT_EQ(t.shape(0), 4);
  EXPECT_EQ(t.shape(2), 2);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(t.at(3, 2, 1), 23);
  EXPECT_EQ(t.at(3, 0, 0), 3);
  Array<float, 3> p = a.transpose({1, 0, 2});
  EXPECT_EQ(p.at(2, 1, 3), 23);
  EXPECT_EQ(p.at(2, 0, 1), 9);
  p[1].fill(-1);
  EXPECT_EQ(a.at(1, 1, 2), -1);
  EXPECT_EQ(p.transpose({1, 0, 2}).contiguous().address(), a.address());
  EXPECT_NE(p.contiguous().address(), a.address());
  EXPECT_EQ(p.contiguous().to_vector(), p.to_vector());
  EXPECT_EQ(a.reshape<2>({-1, 8}).shape(0), 3);
  EXPECT_EQ(a.flatten().size(), 24);
  EXPECT_EQ(a.flatten().at(23), 23);
  launch(kernel("add",
                [](Arr<float, 3> t) {
                  auto [i, j, k] = tid<3>();
                  t(i, j, k) += 100;
                }),
         {4, 3, 2}, t);
  EXPECT_EQ(a.at(1, 2, 3), 123);
  expect_contains(error_of([&] { a.transpose({0, 0, 1}); }), "does not name each once");
  expect_contains(error_of([&] { a.transpose(Extent{0, 1}); }), "transpose of 3 dimensions by (0, 1)");
  expect_contains(error_of([&] { a.transpose({0, 1, 3}); }), "does not name each once");
  expect_contains(error_of([&] { a.reshape<2>({-1, 7}); }), "24 elements cannot take the shape (-1, 7)");
  expect_contains(error_of([&] { a.reshape<2>({-1, -1}); }), "one dimension alone may be left open by -1");
  expect_contains(error_of([&] { a.reshape<2>({-1, 0}); }), "cannot take the shape (-1, 0)");
  expect_contains(error_of([&] { t.flatten(); }), "not contiguous");
  expect_contains(error_of([&] { Array<float>().reshape<2>({1, 0}); }), "null array");
  expect_contains(error_of([&] { (Array<float, 2>().transpose()); }), "null array");
}

TEST_P(Views, show_elements_as_scalars_and_as_other_types) {
  Array<vec3> a(device(), {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}});
  Array<float, 2> s = a.slice(0, 3, 2).scalars();
  EXPECT_EQ(s.shape(0), 2);
  EXPECT_EQ(s.shape(1), 3);
  EXPECT_EQ(s.to_vector(), (std::vector<float>{0, 1, 2, 6, 7, 8}));
  s.slice(1, 2, 1, 1).fill(-1);
  EXPECT_EQ(a.at(2), (vec3{6, -1, 8}));
  EXPECT_EQ(a.at(1), (vec3{3, 4, 5}));
  Array<float> f(device(), {1.f, -2.f});
  EXPECT_EQ(f.view_as<std::uint32_t>().to_vector(), (std::vector<std::uint32_t>{0x3f800000u, 0xc0000000u}));
  EXPECT_EQ(a.view_as<vec3i>().at(1).x, 0x40400000);
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

TEST_P(Views, of_kernels_go_to_functions) {
  const auto sum = func("sum", [](Arr<const float> a) -> Float {
    Float s = 0;
    for (auto i : range(a.shape(0))) s += a[i];
    return s;
  });
  const auto corner =
      func("corner", [](Arr<const float, 2> a) -> Float { return a(a.shape(0) - 1, 0) + 100 * Float(a.shape(1)); });
  Array<float, 2> a(device(), {4, 7}, counting(28));
  Array<float> out = zeros<float>(device(), 6);
  launch(kernel("sums",
                [=](Arr<const float, 2> a, Arr<float> out, Int lo) {
                  out[0] = sum(a[1]);
                  out[1] = sum(a[1].slice(lo, 5));
                  out[2] = sum(a.transpose()[lo]);
                  out[3] = corner(a);
                  out[4] = corner(a.transpose());
                  out[5] = corner(a.slice(lo, 4)) + corner(a.slice(0, 3).transpose());
                }),
         1, a, out, 2);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{70, 9 + 10 + 11, 2 + 9 + 16 + 23, 721, 406, 721 + 306}));
}

}  // namespace
