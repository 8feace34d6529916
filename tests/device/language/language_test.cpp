// Vectors, matrices, slices, casts and threads in kernels: the same expressions on the host and on every device.
#include <cmath>

#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(Language);

TEST_P(Language, vectors_compute_component_by_component) {
  const std::vector<vec3> in = {{1, 2, 3}, {-4, 0.5f, 2}, {0, 0, 0}, {3, -3, 1}};
  Array<vec3> a(device(), in), sum = zeros<vec3>(device(), 4), crossed = zeros<vec3>(device(), 4),
                               unit = zeros<vec3>(device(), 4);
  Array<float> dots = zeros<float>(device(), 4);
  const vec3 other{1, -1, 2};
  launch(kernel("vectors",
                [](Arr<const vec3> a, Vec3 b, Arr<vec3> sum, Arr<vec3> crossed, Arr<vec3> unit, Arr<float> dots) {
                  Int i = tid();
                  Vec3 v = a[i];
                  sum[i] = (v + b) * 2 - v / 4 + v * b;
                  crossed[i] = cross(v, b);
                  unit[i] = normalize(a[i]);
                  dots[i] = dot(v, b) + length(v);
                }),
         4, a, other, sum, crossed, unit, dots);
  const auto s = sum.to_vector(), c = crossed.to_vector(), u = unit.to_vector();
  const auto d = dots.to_vector();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const vec3 v = in[i];
    EXPECT_EQ(c[i], cross(v, other));
    EXPECT_NEAR(d[i], dot(v, other) + length(v), 1e-5);
    const vec3 expected = (v + other) * 2.f - v / 4.f + v * other, n = normalize(v);
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(s[i][k], expected[k], 1e-5);
      EXPECT_NEAR(u[i][k], n[k], 1e-6);
    }
  }
}

TEST_P(Language, components_of_elements_are_elements) {
  Array<vec4> a(device(), std::vector<vec4>{{1, 2, 3, 4}, {5, 6, 7, 8}});
  launch(kernel("components",
                [](Arr<vec4> a) {
                  Int i = tid();
                  a[i].x = a[i].w;
                  a[i].y += 10;
                  Vec4 v = a[i];
                  v.z = -v.z;
                  a[i] = v;
                }),
         2, a);
  EXPECT_EQ(a.to_vector(), (std::vector<vec4>{{4, 12, -3, 4}, {8, 16, -7, 8}}));
}

TEST_P(Language, matrices_multiply_by_the_rules) {
  const mat33 m{1, 2, 3, 4, 5, 6, 7, 8, 10};
  Array<mat33> in(device(), std::vector<mat33>{m}), squared = zeros<mat33>(device(), 1),
                                                    turned = zeros<mat33>(device(), 1);
  Array<vec3> out = zeros<vec3>(device(), 1);
  Array<mat<2, 3, int>> rectangular(device(), std::vector<mat<2, 3, int>>{{1, 2, 3, 4, 5, 6}});
  Array<mat<2, 2, int>> product = zeros<mat<2, 2, int>>(device(), 1);
  launch(kernel("matrices",
                [](Arr<const mat33> in, Arr<mat33> squared, Arr<mat33> turned, Arr<vec3> out, Vec3 v,
                   Arr<const mat<2, 3, int>> r, Arr<mat<2, 2, int>> product) {
                  Int i = tid();
                  Mat33 a = in[i];
                  squared[i] = a * a;
                  turned[i] = transpose(a) + a * 2;
                  out[i] = a * v;
                  Mat<2, 3, int> b = r[i];
                  product[i] = b * transpose(b);
                }),
         1, in, squared, turned, out, vec3{1, 0, -1}, rectangular, product);
  EXPECT_EQ(squared.at(0), m * m);
  EXPECT_EQ(turned.at(0), transpose(m) + m * 2.f);
  EXPECT_EQ(out.at(0), (m * vec3{1, 0, -1}));
  EXPECT_EQ(product.at(0), (mat<2, 2, int>{14, 32, 32, 77}));
}

TEST_P(Language, matrices_of_sixteen_load_and_store_whole) {
  mat44 m;
  for (int i = 0; i < 16; ++i) m.m[i] = float(i);
  Array<mat44> in(device(), std::vector<mat44>{mat44::identity(), m});
  Array<vec4> out = zeros<vec4>(device(), 2);
  launch(kernel("mat44",
                [](Arr<mat44> in, Arr<vec4> out) {
                  Int i = tid();
                  out[i] = in[i] * vec4{1, 2, 3, 4};
                  in[i](1, 2) += 100;
                }),
         2, in, out);
  EXPECT_EQ(out.at(0), (vec4{1, 2, 3, 4}));
  EXPECT_EQ(out.at(1), (m * vec4{1, 2, 3, 4}));
  m(1, 2) += 100;
  EXPECT_EQ(in.at(1), m);
}

TEST_P(Language, bits_are_counted_in_integers_of_all_widths) {
  const std::vector<std::uint64_t> values = {
      0, 1, 0x80, 0xff, 0x7fff, 0xdeadbeef, ~0ull, 1ull << 63, 0x0123456789abcdefull};
  const int n = int(values.size());
  const auto k = kernel("count bits", [](Arr<const std::uint64_t> x, Arr<int, 2> out) {
    Int i = tid();
    out(i, 0) = Int(popcount(x[i]));
    out(i, 1) = popcount(Int(x[i] & 0xffffffffull));
    out(i, 2) = Int(popcount(UInt16(x[i] & 0xffffull)));
    out(i, 3) = Int(popcount(Int8(UInt8(x[i] & 0xffull))));
  });
  Array<int, 2> out = zeros<int, 2>(device(), {n, 4});
  launch(k, n, Array<std::uint64_t>(device(), values), out);
  const std::vector<int> got = out.to_vector();
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < 4; ++c) {
      const int width = 64 >> c;
      const std::uint64_t low = values[std::size_t(i)] & (width == 64 ? ~0ull : (1ull << width) - 1);
      int expected = 0;
      for (int bit = 0; bit < width; ++bit) expected += int(low >> bit & 1);
      EXPECT_EQ(got[std::size_t(4 * i + c)], expected) << i << " at " << width << " bits";
    }
}

TEST_P(Language, all_scalar_types_travel_as_arguments_and_elements) {
  auto check = [&]<class T>(T value) {
    Array<T> a = full<T>(device(), 5, value), b = zeros<T>(device(), 5);
    launch(kernel("travel",
                  [](Arr<const T> a, Arr<T> b, Var<T> add, Bool swap, Var<T> last) {
                    Int i = tid();
                    b[i] = select(swap, add, a[i]);
                    If (i == 4) {
                      b[i] = last;
                    }
                  }),
           5, a, b, T(value), true, T(1));
    const std::vector<T> got = b.to_vector();
    EXPECT_TRUE(got[0] == value && got[3] == value && got[4] == T(1)) << ir::user_name(scalar_type<T>());
  };
  check(std::int8_t(-5)), check(std::int16_t(-500)), check(-70000), check(std::int64_t(-5'000'000'000));
  check(std::uint8_t(250)), check(std::uint16_t(65000)), check(4'000'000'000u),
      check(std::uint64_t(18'000'000'000'000'000'000u));
  check(half(1.5f)), check(2.5f), check(3.25);
}

TEST_P(Language, booleans_live_in_memory_as_bytes) {
  const bool in[] = {true, false, true};
  Array<bool> a(device(), std::span<const bool>(in)), b = zeros<bool>(device(), 3);
  launch(kernel("bools",
                [](Arr<const bool> a, Arr<bool> b) {
                  Int i = tid();
                  b[i] = !a[i] && i > 0;
                }),
         3, a, b);
  EXPECT_EQ(b.to_vector(), (std::vector<bool>{false, true, false}));
}

TEST_P(Language, casts_are_explicit_and_truncate) {
  Array<int> out = zeros<int>(device(), 4);
  launch(kernel("casts",
                [](Arr<int> out, Float x) {
                  out[0] = Int(x);
                  out[1] = Int(-x);
                  out[2] = Int(round(x));
                  out[3] = Int(floor_div(Int(-7), 2)) * 100 + floor_div(Int(7), -2);
                }),
         1, out, 2.75f);
  EXPECT_EQ(out.to_vector(), (std::vector<int>{2, -2, 3, -404}));
}

TEST_P(Language, threads_are_numbered_over_up_to_four_dimensions) {
  Array<int, 4> out = zeros<int, 4>(device(), {3, 5, 2, 7});
  launch(kernel("tid4",
                [](Arr<int, 4> out) {
                  auto [i, j, k, l] = tid<4>();
                  out(i, j, k, l) = ((i * 10 + j) * 10 + k) * 10 + l;
                }),
         {3, 5, 2, 7}, out);
  const std::vector<int> got = out.to_vector();
  std::size_t at = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 2; ++k)
        for (int l = 0; l < 7; ++l) ASSERT_EQ(got[at++], ((i * 10 + j) * 10 + k) * 10 + l);
}

TEST_P(Language, extents_of_every_size_divide_exactly) {
  // These extents are around powers of two, and large odd ones: the launch divides by their reciprocals.
  for (int n : {1, 2, 3, 31, 32, 33, 255, 257, 641, 4095}) {
    const int rows = on_reference() ? 3 : 100;
    Array<vec2i, 2> out = zeros<vec2i, 2>(device(), {rows, n});
    launch(kernel("tid2",
                  [](Arr<vec2i, 2> out) {
                    auto [i, j] = tid<2>();
                    out(i, j) = Vec2i(i, j);
                  }),
           {rows, n}, out);
    const std::vector<vec2i> got = out.to_vector();
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < n; ++j) ASSERT_EQ(got[std::size_t(i * n + j)], (vec2i{i, j}));
  }
}

TEST_P(Language, slices_pass_to_functions) {
  auto sum = [](Arr<const float> row) {
    Float s = 0;
    for (auto k : range(row.shape(0))) s += row[k];
    return s;
  };
  std::vector<float> values(24);
  for (int i = 0; i < 24; ++i) values[std::size_t(i)] = float(i);
  Array<float, 3> a(device(), {2, 3, 4}, values);
  Array<float, 2> out = zeros<float, 2>(device(), {2, 3});
  launch(kernel("rows",
                [&](Arr<const float, 3> a, Arr<float, 2> out) {
                  auto [i, j] = tid<2>();
                  out[i][j] = sum(a[i][j]) + a(i, j, 0) + a[i](j, 1);
                }),
         {2, 3}, a, out);
  const std::vector<float> got = out.to_vector();
  for (int r = 0; r < 6; ++r) EXPECT_EQ(got[std::size_t(r)], float(4 * (4 * r) + 6 + (4 * r) + (4 * r + 1)));
}

TEST_P(Language, strided_views_are_arrays_like_any_other) {
  std::vector<float> values(60);
  for (int i = 0; i < 60; ++i) values[std::size_t(i)] = float(i);
  Array<float, 2> a(device(), {6, 10}, values);
  Array<float, 2> view = a.slice(1, 6, 2).slice(3, 9, 3, 1);  // rows 1, 3, 5 and columns 3, 6
  EXPECT_FALSE(view.is_contiguous());
  EXPECT_EQ(view.to_vector(), (std::vector<float>{13, 16, 33, 36, 53, 56}));
  launch(kernel("strided",
                [](Arr<float, 2> v) {
                  auto [i, j] = tid<2>();
                  v(i, j) = v[i][j] * 10 + Float(v.shape(0)) + Float(v.shape(1)) / 10;
                }),
         {3, 2}, view);
  EXPECT_EQ(view.to_vector(), (std::vector<float>{133.2f, 163.2f, 333.2f, 363.2f, 533.2f, 563.2f}));
  EXPECT_EQ(a[0].to_vector()[3], 3);
  EXPECT_EQ(a[1].to_vector()[4], 14);
}

TEST_P(Language, views_that_break_alignment_still_load_right) {
  // Elements of 16 bytes that start at an odd word: wide loads must not assume their usual alignment.
  std::vector<float> values(41);
  for (int i = 0; i < 41; ++i) values[std::size_t(i)] = float(i);
  Array<float> a(device(), values);
  Array<float> out = zeros<float>(device(), 10);
  launch(kernel("unaligned",
                [](Arr<const float> a, Arr<float> out) {
                  Int i = tid();
                  out[i] = a[i * 4] + a[i * 4 + 3];
                }),
         10, a.slice(1, 41), out);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(out.to_vector()[std::size_t(i)], float(8 * i + 2 + 3));
}

TEST_P(Language, atomic_adds_lose_nothing) {
  const int n = on_reference() ? 2000 : 100000;
  Array<int> ints = zeros<int>(device(), 7);
  Array<unsigned> words = zeros<unsigned>(device(), 1);
  Array<float> reals = zeros<float>(device(), 2);
  Array<int> before = zeros<int>(device(), n);
  launch(kernel("atomics",
                [](Arr<int> ints, Arr<unsigned> words, Arr<float> reals, Arr<int> before) {
                  Int i = tid();
                  atomic_add(ints[i % 7], i % 3);
                  atomic_add(words[0], 1u);
                  atomic_add(reals[i % 2], 0.5f);
                  before[i] = atomic_add(ints[6], 0);
                }),
         n, ints, words, reals, before);
  std::vector<int> expected(7);
  for (int i = 0; i < n; ++i) expected[std::size_t(i % 7)] += i % 3;
  EXPECT_EQ(ints.to_vector(), expected);
  EXPECT_EQ(words.at(0), unsigned(n));
  EXPECT_EQ(reals.to_vector(), (std::vector<float>{0.25f * float(n), 0.25f * float(n)}));
}

TEST_P(Language, host_values_stand_where_traced_ones_do) {
  Array<vec3> out = zeros<vec3>(device(), 3);
  launch(kernel("host_values",
                [](Arr<vec3> out, Float s) {
                  Int i = tid();
                  Int one = select(i > 0, 1, 0);
                  out[i] = select(i > 1, vec3{1, 2, 3}, vec3{4, 5, 6}) + vec3{1, 0, 0} * s + Float(one) * vec3{0, 0, 1};
                }),
         3, out, 10.f);
  EXPECT_EQ(out.to_vector(), (std::vector<vec3>{{14, 5, 6}, {14, 5, 7}, {11, 2, 4}}));
}

struct Config {
  static constexpr int kOffset = 4;
};

TEST_P(Language, captured_host_values_become_constants) {
  const float gain = 3;
  Array<float> out = zeros<float>(device(), 1);
  launch(kernel("constants", [gain](Arr<float> out) { out[0] = gain * Float(Int(Config::kOffset)); }), 1, out);
  EXPECT_EQ(out.at(0), 12);
}

TEST_P(Language, arguments_larger_than_push_constants_arrive) {
  mat44 m[4];
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < 16; ++i) m[k].m[i] = float(k * 16 + i);
  Array<float> out = zeros<float>(device(), 4);
  launch(kernel("large_arguments",
                [](Arr<float> out, Mat44 a, Mat44 b, Mat44 c, Mat44 d) {
                  out[0] = a(3, 3);
                  out[1] = b(0, 1);
                  out[2] = c(2, 0);
                  out[3] = d(3, 3);
                }),
         1, out, m[0], m[1], m[2], m[3]);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{15, 17, 40, 63}));
}

TEST_P(Language, dependent_launches_run_in_order) {
  Array<float> x = full<float>(device(), 1000, 1.f);
  const auto grow = kernel("grow", [](Arr<float> x) {
    Int i = tid();
    x[i] = x[i] * 2 + x[999 - i] * 0;
  });
  for (int k = 0; k < 20; ++k) launch(grow, 1000, x);
  for (float v : x.to_vector()) ASSERT_EQ(v, 1048576.f);
}

}  // namespace
