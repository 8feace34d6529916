// Sums of vectors, of elements with strides, and of float32 in float64.
#include <weft/runtime/algorithms/reduce.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(AlgorithmsSum);

/// Numbers of several sizes and signs, whose sums are rounded.
template <class T>
std::vector<T> numbers(std::int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> size(-1, 1);
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = size(engine) * std::exp2(double(engine() % 12));
    x.push_back(RealScalar<T> ? T(v) : T(std::int64_t(v * 1e6)));
  }
  return x;
}

/// The sum that a tree of pairs gives, in the type itself.
template <class T>
T pairs(const std::vector<T>& x, std::size_t first, std::size_t count) {
  if (count == 1) return first < x.size() ? x[first] : RealScalar<T> ? T(-0.0) : T(0);
  return T(pairs(x, first, count / 2) + pairs(x, first + count / 2, count / 2));
}
template <class T>
T sum_by_pairs(const std::vector<T>& x) {
  std::size_t whole = 1;
  while (whole < x.size()) whole *= 32;
  return x.empty() ? T(0) : pairs(x, 0, whole);
}

std::vector<std::int64_t> sizes(bool reference) {
  std::vector<std::int64_t> n = {0, 1, 2, 31, 32, 33, 1000, 1025};
  if (!reference) n.push_back(40'000);
  return n;
}

template <class To, class From>
std::vector<To> as(const std::vector<From>& x) {
  return {x.begin(), x.end()};
}

/// Sums elements of type V, each scalar by itself, in the scalars of R.
template <class V, class R>
void check_vectors(const Device& device, std::int64_t n) {
  using T = typename Flat<V>::scalar;
  using U = typename Flat<R>::scalar;
  constexpr int count = Flat<V>::count;
  std::vector<V> x(static_cast<std::size_t>(n));
  std::vector<T> columns[count];
  for (int k = 0; k < count; ++k) {
    columns[k] = numbers<T>(n, unsigned(k));
    for (std::size_t i = 0; i < x.size(); ++i) reinterpret_cast<T*>(&x[i])[k] = columns[k][i];
  }
  const R sum = [&] {
    if constexpr (std::is_same_v<V, R>) return reduce_sum(Array<V>(device, x));
    if constexpr (!std::is_same_v<V, R>) return reduce_sum<R>(Array<V>(device, x));
  }();
  for (int k = 0; k < count; ++k)
    EXPECT_EQ(reinterpret_cast<const U*>(&sum)[k], sum_by_pairs(as<U>(columns[k]))) << n << ", scalar " << k;
}

TEST_P(AlgorithmsSum, of_vectors_is_that_of_each_component) {
  for (const std::int64_t n : sizes(on_reference())) {
    check_vectors<vec2, vec2>(device(), n);
    check_vectors<vec3, vec3>(device(), n);
    check_vectors<vec4, vec4>(device(), n);
    check_vectors<vec3d, vec3d>(device(), n);
    check_vectors<vec<3, int>, vec<3, int>>(device(), n);
    check_vectors<vec<2, std::uint64_t>, vec<2, std::uint64_t>>(device(), n);
    check_vectors<vec<7, float>, vec<7, float>>(device(), n);
    check_vectors<mat33, mat33>(device(), n);
    check_vectors<quat, quat>(device(), n);
  }
}

TEST_P(AlgorithmsSum, of_float32_in_float64_loses_nothing_of_float32) {
  for (const std::int64_t n : sizes(on_reference())) {
    check_vectors<float, double>(device(), n);
    check_vectors<vec3, vec3d>(device(), n);
    check_vectors<vec<5, float>, vec<5, double>>(device(), n);
    check_vectors<mat22, mat22d>(device(), n);
    const std::vector<float> x = numbers<float>(n, 3), y = numbers<float>(n, 4);
    std::vector<double> products;
    for (std::size_t i = 0; i < x.size(); ++i) products.push_back(double(x[i]) * y[i]);
    EXPECT_EQ(inner_product<double>(Array<float>(device(), x), Array<float>(device(), y)), sum_by_pairs(products)) << n;
  }
  // float32 has no room for these sums.
  std::vector<float> x(1025, 1.f);
  x[7] = 0x1p25f, x[400] = -0x1p25f;
  const Array<float> a(device(), x);
  EXPECT_EQ(reduce_sum<double>(a), 1023);
  EXPECT_NE(reduce_sum(a), 1023);
  // The type of the output chooses the type of the sum, too.
  const Array<double> out = zeros<double>(device(), 1);
  reduce_sum(a, out);
  EXPECT_EQ(out.at(0), 1023);
  inner_product(a, a, out);
  EXPECT_EQ(out.at(0), 0x1p51 + 1023);
  EXPECT_EQ(reduce_sum<float>(a), reduce_sum(a)) << "the elements' own type may be named";
}

/// Compares each reduction of a view with that of the same elements in a row.
template <class T>
void check_view(const Array<T>& view, const Array<T>& other, const char* what) {
  SCOPED_TRACE(what);
  EXPECT_FALSE(view.is_contiguous() && other.is_contiguous());
  const Array<T> a = view.contiguous(), b = other.contiguous();
  EXPECT_EQ(reduce_sum(view), reduce_sum(a));
  EXPECT_EQ(reduce_min(view), reduce_min(a));
  EXPECT_EQ(reduce_max(view), reduce_max(a));
  EXPECT_EQ(inner_product(view, other), inner_product(a, b));
  EXPECT_EQ(inner_product(b, view), inner_product(b, a));
  if constexpr (std::is_same_v<T, float>) {
    EXPECT_EQ(reduce_sum<double>(view), reduce_sum<double>(a));
    EXPECT_EQ(inner_product<double>(view, other), inner_product<double>(a, b));
  }
}

template <class T>
void check_views(const Device& device, std::int64_t n) {
  const Array<T> x(device, numbers<T>(3 * n, 5)), y(device, numbers<T>(2 * n, 6));
  check_view(x.slice(1, 3 * n, 3), y.slice(0, 2 * n, 2), "every third, every second");
  const Array<T, 2> table = x.template reshape<2>({n, 3});
  check_view(table.transpose()[1], y.slice(0, n), "a column");
}

TEST_P(AlgorithmsSum, of_elements_with_strides_is_that_of_a_copy_bit_by_bit) {
  for (const std::int64_t n : sizes(on_reference())) {
    if (n < 2) continue;
    SCOPED_TRACE(n);
    check_views<float>(device(), n);
    check_views<double>(device(), n);
    check_views<int>(device(), n);
    check_views<std::uint64_t>(device(), n);
    std::vector<vec3> v;
    const std::vector<float> s = numbers<float>(6 * n, 8);
    for (std::size_t i = 0; i < std::size_t(2 * n); ++i) v.push_back({s[3 * i], s[3 * i + 1], s[3 * i + 2]});
    const Array<vec3> every = Array<vec3>(device(), v).slice(1, 2 * n, 2);
    EXPECT_EQ(reduce_sum(every), reduce_sum(every.contiguous()));
    EXPECT_EQ(reduce_sum<vec3d>(every), reduce_sum<vec3d>(every.contiguous()));
  }
  const Array<float> none = zeros<float>(device(), 4).slice(0, 0, 2);
  EXPECT_EQ(reduce_sum(none), 0);
  EXPECT_EQ(reduce_sum<double>(none), 0);
  const Array<vec3> some = full<vec3>(device(), 3, vec3{1, 2, 3});
  EXPECT_EQ(reduce_sum(some.slice(0, 0)), vec3());
}

/// The elements inside of a border of one element.
template <class T>
Array<T, 2> inside(const Array<T, 2>& a) {
  return a.slice(1, a.shape(0) - 1).slice(1, a.shape(1) - 1, 1, 1);
}

TEST_P(AlgorithmsSum, of_views_with_several_dimensions_is_that_of_a_copy_bit_by_bit) {
  for (const auto& [rows, columns] : {std::pair<int, int>{3, 3}, {7, 34}, {40, 33}, {3, 100}, {100, 3}}) {
    const std::int64_t n = rows * columns;
    const Array<float, 2> x = inside(Array<float>(device(), numbers<float>(n, 1)).reshape<2>({rows, columns}));
    const Array<float, 2> y = inside(Array<float>(device(), numbers<float>(n, 2)).reshape<2>({rows, columns}));
    const Array<float> a = x.contiguous().flatten(), b = y.contiguous().flatten();
    EXPECT_EQ(reduce_sum(x), reduce_sum(a));
    EXPECT_EQ(reduce_min(x), reduce_min(a));
    EXPECT_EQ(reduce_max(x), reduce_max(a));
    EXPECT_EQ(inner_product(x, y), inner_product(a, b));
    EXPECT_EQ(inner_product(x, y.contiguous()), inner_product(a, b)) << "one of them lies in a row";
    EXPECT_EQ(reduce_sum<double>(x), reduce_sum<double>(a));
    const Array<vec3, 2> v = zeros<vec3, 2>(device(), {rows, columns});
    std::vector<vec3> values;
    for (float f : numbers<float>(n, 3)) values.push_back({f, 2 * f, -f});
    v.flatten().copy_from(Array<vec3>(device(), values));
    EXPECT_EQ(reduce_sum(inside(v)), reduce_sum(inside(v).contiguous().flatten()));
    EXPECT_EQ(reduce_sum(v.transpose()), reduce_sum(v.transpose().contiguous().flatten()));
  }
  const Array<int> counted = arange(device(), 2 * 5 * 6);
  EXPECT_EQ(reduce_sum(counted.reshape<3>({2, 5, 6}).slice(0, 2).transpose()), 59 * 60 / 2);
  EXPECT_EQ(reduce_sum(counted.reshape<4>({2, 5, 3, 2})), 59 * 60 / 2);
  // Gradients go to the elements that were summed, and to no others.
  auto x = zeros<float, 2>(device(), {5, 6}).requires_grad();
  const Array<double> sum = zeros<double>(device(), 1), square = zeros<double>(device(), 1);
  x.fill(3);
  Tape tape;
  tape.record([&] {
    reduce_sum(inside(x), sum);
    inner_product(inside(x), inside(x), square);
  });
  tape.backward({{sum, Array<double>(device(), {1.0})}, {square, Array<double>(device(), {10.0})}});
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 6; ++j)
      EXPECT_EQ(x.grad().at(i, j), i > 0 && i < 4 && j > 0 && j < 5 ? 61.f : 0.f) << i << " " << j;
}

TEST_P(AlgorithmsSum, of_nans_and_zeros_is_that_of_numbers_in_a_row) {
  const float nan = std::nanf("");
  const Array<float> x(device(), {nan, 1, nan, -2, nan, nan});
  EXPECT_EQ(reduce_min(x.slice(0, 6, 3)), -2);
  EXPECT_TRUE(std::isnan(reduce_max(x.slice(0, 6, 2))));
  EXPECT_TRUE(std::signbit(reduce_sum(full<float>(device(), 66, -0.0f).slice(0, 66, 2))));
  EXPECT_TRUE(std::signbit(reduce_sum<double>(full<float>(device(), 33, -0.0f))));
}

TEST_P(AlgorithmsSum, gradients_reach_each_component_through_strides_and_from_float64) {
  const int n = 70;
  auto v = full<vec3>(device(), n, vec3{1, 2, 3}).requires_grad();
  auto x = Array<float>(device(), numbers<float>(n, 1)).requires_grad();
  const std::vector<float> y0 = numbers<float>(n, 2);
  auto y = Array<float>(device(), y0).requires_grad();
  const std::vector<float> x0 = x.to_vector();
  const Array<vec3> sum = zeros<vec3>(device(), 1);
  const Array<vec3d> wide = zeros<vec3d>(device(), 1);
  const Array<double> half_of = zeros<double>(device(), 1), product = zeros<double>(device(), 1);
  Tape tape;
  tape.record([&] {
    reduce_sum(v.slice(1, n, 2), sum);
    reduce_sum(v, wide);
    reduce_sum(x.slice(0, n, 2), half_of);
    inner_product(x.slice(0, n, 2), y.slice(1, n, 2), product);
    x.fill(0);  // reads after the product find other elements
  });
  tape.backward({{sum, Array<vec3>(device(), {vec3{1, 10, 100}})},
                 {wide, Array<vec3d>(device(), {vec3d{0.5, 0.25, 0.125}})},
                 {half_of, Array<double>(device(), {3.0})},
                 {product, Array<double>(device(), {2.0})}});
  for (int i = 0; i < n; ++i) {
    const float on = float(i % 2);
    EXPECT_EQ(v.grad().at(i), (vec3{on + 0.5f, 10 * on + 0.25f, 100 * on + 0.125f})) << i;
    EXPECT_EQ(x.grad().at(i), i % 2 ? 0.f : 3 + 2 * y0[std::size_t(i + 1)]) << i;
    EXPECT_EQ(y.grad().at(i), i % 2 ? 2 * x0[std::size_t(i - 1)] : 0.f) << i;
  }
}

TEST_P(AlgorithmsSum, mistakes_are_refused_by_name) {
  const Array<vec3> v = full<vec3>(device(), 1000, vec3{1, 2, 3}), out = zeros<vec3>(device(), 1), null;
  expect_contains(error_of([&] { reduce_sum(v, v.slice(0, 2)); }), "reduce_sum: the output has 2 elements, not 1");
  expect_contains(error_of([&] { reduce_sum(v, v.slice(3, 4)); }), "reduce_sum: the input and the output share memory");
  expect_contains(error_of([&] { reduce_sum(null, out); }), "reduce_sum: the input is a null array");
  const Array<float, 2> wide = zeros<float, 2>(device(), {2, 6}), high = zeros<float, 2>(device(), {6, 2});
  expect_contains(error_of([&] { inner_product(wide, high); }), "inner_product: the inputs are of different shapes");
  EXPECT_EQ(inner_product(wide, high.transpose()), 0);
  const Array<float, 4> four = zeros<float, 4>(device(), {2, 2, 2, 2});
  expect_contains(error_of([&] { reduce_sum(four.transpose()); }), "reduce_sum: the input is a strided view");
  // The scratch memory suffices at exactly the size that is asked for, whatever its elements are.
  const std::int64_t bytes = std::int64_t(reduce_scratch_bytes<vec3d>(1000));
  const auto scratch = full<std::uint8_t>(device(), bytes, std::uint8_t(0xa5));
  EXPECT_EQ(reduce_sum<vec3d>(v, {.scratch = scratch}), (vec3d{1000, 2000, 3000}));
  expect_contains(error_of([&] { reduce_sum<vec3d>(v, {.scratch = scratch.slice(0, bytes - 1)}); }),
                  "the scratch memory has");
}

}  // namespace
