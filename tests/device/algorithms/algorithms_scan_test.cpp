// Scans and reductions of arrays, against the host.
#include <weft/runtime/algorithms/reduce.h>
#include <weft/runtime/algorithms/scan.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "../../../runtime/core/state.h"
#include "../full_sizes.h"
#include "../grains.h"
#include "../subgroup_sizes.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::grains_of;
using weft::test::on_all_sizes;

namespace {

DEVICE_TEST(AlgorithmsScan);

std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> n = {0, 1, 15, 16, 17, 255, 256, 257, 4095, 4097, 65537, 1 << 20};
  if (test::full_sizes()) n.insert(n.end(), {1 << 24, 1 << 26});
  return n;
}

template <class T>
std::vector<T> numbers(std::int64_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& v : x) v = RealScalar<T> ? T(double(random() % 2001) / 1000 - 1) : T(random());
  return x;
}

// Sums without sign, because the device's sums wrap.
template <class T>
std::vector<T> exclusive(const std::vector<T>& x) {
  using U = std::make_unsigned_t<T>;
  std::vector<T> out(x.size());
  U sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = T(sum), sum += U(x[i]);
  return out;
}

template <class T>
void check_integers(const Device& device) {
  for (const std::int64_t n : sizes())
    for (const Grain grain : grains_of(device)) {
      SCOPED_TRACE(n);
      const std::vector<T> x = numbers<T>(n, 1);
      std::vector<T> expected = exclusive(x);
      const Array<T> in(device, x), out = empty<T>(device, n);
      exclusive_scan(in, out, {.grain = grain});
      ASSERT_TRUE(out.to_vector() == expected);
      const Array<T> in_place = in.clone();
      exclusive_scan(in_place, in_place, {.grain = grain});
      ASSERT_TRUE(in_place.to_vector() == expected);
      inclusive_scan(in, out, {.grain = grain});
      for (std::size_t i = 0; i < x.size(); ++i)
        expected[i] = T(std::make_unsigned_t<T>(expected[i]) + std::make_unsigned_t<T>(x[i]));
      ASSERT_TRUE(out.to_vector() == expected);
      ASSERT_TRUE(in.to_vector() == x);
      inclusive_scan(in, in, {.grain = grain});
      ASSERT_TRUE(in.to_vector() == expected);
    }
}

TEST_P(AlgorithmsScan, integers_are_scanned_exactly) {
  check_integers<unsigned>(device());
  check_integers<int>(device());
  check_integers<std::uint64_t>(device());
  check_integers<std::int64_t>(device());
}

template <class T>
void check_reals(const Device& device) {
  for (const std::int64_t n : {1, 17, 300, 20000})
    for (const Grain grain : grains_of(device)) {
      const std::vector<T> x = numbers<T>(n, 2);
      const Array<T> in(device, x), out = empty<T>(device, n), in_place = in.clone(), before = in.clone();
      exclusive_scan(in, out, {.grain = grain});
      exclusive_scan(before, before, {.grain = grain});
      inclusive_scan(in_place, in_place, {.grain = grain});
      const std::vector<T> without = out.to_vector(), with = in_place.to_vector();
      ASSERT_TRUE(before.to_vector() == without) << n;
      double sum = 0;
      const double tolerance = double(std::numeric_limits<T>::epsilon()) * double(n);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(double(without[i]), sum, tolerance) << n << ", " << i;
        sum += double(x[i]);
        ASSERT_NEAR(double(with[i]), sum, tolerance) << n << ", " << i;
      }
    }
}

TEST_P(AlgorithmsScan, reals_are_scanned_within_rounding) {
  check_reals<float>(device());
  check_reals<double>(device());
}

TEST_P(AlgorithmsScan, views_at_any_element_are_scanned) {
  const std::vector<unsigned> x = numbers<unsigned>(20001, 3);
  const Array<unsigned> all(device(), x), out = zeros<unsigned>(device(), 20003);
  const std::vector<unsigned> part(x.begin() + 1, x.end());
  for (const Grain grain : grains_of(device())) {
    out.slice(3).wait();
    exclusive_scan(all.slice(1), out.slice(3), {.grain = grain});
    EXPECT_TRUE(out.slice(3).to_vector() == exclusive(part));
    EXPECT_EQ(out.at(2), 0u);
  }
}

// Subgroups of each size scan runs as long as they are wide.
TEST_P(AlgorithmsScan, rows_of_any_subgroup_are_scanned) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    for (const std::int64_t n : {1, 3, 64, 1023, 5000, 40001})
      for (const Grain grain : grains_of(device)) {
        SCOPED_TRACE(n);
        const std::vector<unsigned> x = numbers<unsigned>(n, 5);
        std::vector<unsigned> expected = exclusive(x);
        const Array<unsigned> in(device, x), out = zeros<unsigned>(device, n);
        exclusive_scan(in, out, {.grain = grain});
        EXPECT_TRUE(out.to_vector() == expected);
        inclusive_scan(in, out, {.grain = grain});
        for (std::size_t i = 0; i < x.size(); ++i) expected[i] += x[i];
        EXPECT_TRUE(out.to_vector() == expected);
      }
  });
}

TEST_P(AlgorithmsScan, an_infinite_element_counts_for_sums_behind_it_alone) {
  constexpr std::int64_t n = 20000, at = 4567;
  std::vector<float> x(n, 1);
  x[at] = std::numeric_limits<float>::infinity();
  const Array<float> in(device(), x), out = empty<float>(device(), n);
  for (const Grain grain : grains_of(device())) {
    exclusive_scan(in, out, {.grain = grain});
    const std::vector<float> sums = out.to_vector();
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(sums[std::size_t(i)], i <= at ? float(i) : std::numeric_limits<float>::infinity()) << i;
  }
}

TEST_P(AlgorithmsScan, given_scratch_nothing_is_allocated) {
  const std::int64_t n = 20000;
  const std::vector<unsigned> x = numbers<unsigned>(n, 4);
  const Array<unsigned> in(device(), x), sum = zeros<unsigned>(device(), 1);
  for (const Grain grain : grains_of(device())) {
    const auto scratch =
        empty<std::uint8_t>(device(), std::max(scan_scratch_bytes<unsigned>(n), reduce_scratch_bytes<unsigned>(n)));
    Array<unsigned> out = empty<unsigned>(device(), n);
    exclusive_scan(in, out, {.scratch = scratch, .grain = grain});
    const std::uint64_t before = device().state()->allocated;
    exclusive_scan(in, out, {.scratch = scratch, .grain = grain});
    inclusive_scan(in, out, {.scratch = scratch, .grain = grain});
    reduce_sum(in, sum, {.scratch = scratch, .grain = grain});
    EXPECT_EQ(device().state()->allocated, before);
    EXPECT_EQ(out.at(n - 1), sum.at(0));
    EXPECT_EQ(sum.at(0), std::accumulate(x.begin(), x.end(), 0u));
    exclusive_scan(in, out, {.grain = grain});
    EXPECT_GT(device().state()->allocated, before);  // shows that the counter counts
  }
}

template <class T>
void check_reductions_with_scratch(const Device& device) {
  for (const std::int64_t n : {1, 33, 20000})
    for (const Grain grain : grains_of(device)) {
      SCOPED_TRACE(n);
      std::vector<T> x = numbers<T>(n, 11), y = numbers<T>(n, 12);
      const Array<T> a(device, x), b(device, y), least = zeros<T>(device, 1), most = zeros<T>(device, 1),
                                                 inner = zeros<T>(device, 1);
      const auto scratch = full<std::uint8_t>(device, std::int64_t(reduce_scratch_bytes<T>(n)), std::uint8_t(0xa5));
      const auto all = [&] {
        reduce_min(a, least, {.scratch = scratch, .grain = grain});
        reduce_max(a, most, {.scratch = scratch, .grain = grain});
        inner_product(a, b, inner, {.scratch = scratch, .grain = grain});
      };
      all();
      const std::uint64_t before = device.state()->allocated;
      all();
      EXPECT_EQ(device.state()->allocated, before);
      EXPECT_EQ(least.at(0), *std::min_element(x.begin(), x.end()));
      EXPECT_EQ(most.at(0), *std::max_element(x.begin(), x.end()));
      EXPECT_EQ(inner.at(0), inner_product(a, b)) << "as with scratch of its own";
      if constexpr (RealScalar<T>) {
        EXPECT_NEAR(double(inner.at(0)), std::inner_product(x.begin(), x.end(), y.begin(), 0.0), 1e-3);
      }
    }
}

TEST_P(AlgorithmsScan, extremes_and_inner_products_are_reduced_in_scratch_of_the_caller) {
  check_reductions_with_scratch<float>(device());
  check_reductions_with_scratch<double>(device());
  check_reductions_with_scratch<int>(device());
  check_reductions_with_scratch<std::uint64_t>(device());
}

TEST_P(AlgorithmsScan, other_streams_are_used) {
  const std::vector<unsigned> x = numbers<unsigned>(5000, 5);
  const Array<unsigned> in(device(), x), out = empty<unsigned>(device(), 5000);
  const Stream stream = device().create_stream();
  exclusive_scan(in, out, {.stream = stream});
  EXPECT_TRUE(out.to_vector() == exclusive(x));
  EXPECT_EQ(reduce_max(in, {.stream = stream}), *std::max_element(x.begin(), x.end()));
}

TEST_P(AlgorithmsScan, mistakes_are_refused_by_name) {
  const Array<int> x = zeros<int>(device(), 100), y = zeros<int>(device(), 99), null;
  expect_contains(error_of([&] { exclusive_scan(x, y); }), "exclusive_scan: the output has 99 elements, not 100");
  expect_contains(error_of([&] { inclusive_scan(null, y); }), "inclusive_scan: the input is a null array");
  expect_contains(error_of([&] { inclusive_scan(y, null); }), "the output is a null array");
  expect_contains(error_of([&] { exclusive_scan(x.slice(0, 100, 2), zeros<int>(device(), 50)); }), "strided view");
  expect_contains(error_of([&] { exclusive_scan(x.slice(0, 50), x.slice(25, 75)); }), "share memory in part");
  const Device other = Device::open("reference");
  expect_contains(error_of([&] { exclusive_scan(x, zeros<int>(other, 100)); }), "the output is on device reference");
  expect_contains(error_of([&] { exclusive_scan(x, x, {.stream = other.stream()}); }), "the stream is on device");
  EXPECT_EQ(scan_scratch_bytes<int>(0), 0u);
  const std::uint64_t needed = scan_scratch_bytes<int>(100);
  ASSERT_GT(needed, 0u);
  const auto small = empty<std::uint8_t>(device(), needed - 1), there = empty<std::uint8_t>(other, needed);
  expect_contains(error_of([&] { exclusive_scan(x, x, {.scratch = small}); }),
                  "the scratch memory has " + std::to_string(needed - 1) + " bytes");
  expect_contains(error_of([&] { exclusive_scan(x, x, {.scratch = there}); }), "the scratch memory is on device");
  const Array<std::uint8_t> bytes = empty<std::uint8_t>(device(), 4096);
  struct Words : Array<int> {
    explicit Words(const Array<std::uint8_t>& a) {
      storage_ = a.storage(), address_ = a.address(), shape_ = {100}, stride_ = {4};
    }
  };
  const Array<int> words = Words(bytes);
  expect_contains(error_of([&] { exclusive_scan(words, words, {.scratch = bytes}); }),
                  "the scratch memory and the input share memory");
  expect_contains(error_of([&] { exclusive_scan(x, x, {.scratch = bytes.slice(3)}); }), "a multiple of 16 bytes");
  expect_contains(error_of([&] { (void)scan_scratch_bytes<int>(-1); }), "-1 elements");
  expect_contains(error_of([&] { (void)scan_scratch_bytes<int>(1ll << 31); }), "it counts to 2147418112");
  // A device may count less far.
  std::int64_t& limit = device().state()->max_threads;
  const std::int64_t before = std::exchange(limit, 99);
  expect_contains(error_of([&] { exclusive_scan(x, x); }), "the input has 100 elements; it counts to 99");
  limit = before;
}

// The sum that a tree of pairs gives, in the type itself.
template <class T>
T pairs(const std::vector<T>& x, std::size_t first, std::size_t count) {
  if (count == 1) return first < x.size() ? x[first] : T(-0.0);
  return pairs(x, first, count / 2) + pairs(x, first + count / 2, count / 2);
}

template <class T>
void check_sums(const Device& device) {
  for (const std::int64_t n : {1, 31, 32, 33, 1000, 1024, 1025, 40000}) {
    std::vector<T> x = numbers<T>(n, 6), y = numbers<T>(n, 7), products(x.size());
    for (T& v : x) v *= T(1) / 3;
    for (std::size_t i = 0; i < x.size(); ++i) products[i] = x[i] * y[i];
    std::size_t whole = 1;
    while (whole < x.size()) whole *= 32;
    const Array<T> a(device, x), b(device, y);
    EXPECT_EQ(reduce_sum(a), pairs(x, 0, whole)) << n;
    EXPECT_EQ(inner_product(a, b), pairs(products, 0, whole)) << n;
    // The view begins at an address at which four elements cannot be read at once.
    const Array<T> moved = zeros<T>(device, n + 1);
    moved.slice(1).copy_from(a);
    EXPECT_EQ(reduce_sum(moved.slice(1)), pairs(x, 0, whole)) << n;
  }
}

TEST_P(AlgorithmsScan, sums_of_reals_are_those_of_pairs_on_every_device) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    check_sums<float>(device);
    check_sums<double>(device);
  });
}

template <class T>
void check_extremes(const Device& device) {
  using U = std::make_unsigned_t<T>;
  for (const std::int64_t n : {1, 32, 33, 5000}) {
    const std::vector<T> x = numbers<T>(n, 8), y = numbers<T>(n, 9);
    const Array<T> a(device, x), b(device, y);
    U sum = 0, inner = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += U(x[i]), inner += U(x[i]) * U(y[i]);
    EXPECT_EQ(reduce_sum(a), T(sum));
    EXPECT_EQ(inner_product(a, b), T(inner));
    EXPECT_EQ(reduce_min(a), *std::min_element(x.begin(), x.end()));
    EXPECT_EQ(reduce_max(a), *std::max_element(x.begin(), x.end()));
  }
}

TEST_P(AlgorithmsScan, integers_are_reduced_exactly) {
  check_extremes<int>(device());
  check_extremes<unsigned>(device());
  check_extremes<std::int64_t>(device());
  check_extremes<std::uint64_t>(device());
}

TEST_P(AlgorithmsScan, minima_of_reals_prefer_numbers_and_sums_keep_signs) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  std::vector<float> x(100, nan);
  const auto of = [&] { return Array<float>(device(), x); };
  EXPECT_TRUE(std::isnan(reduce_min(of())));
  EXPECT_TRUE(std::isnan(reduce_max(of())));
  x[70] = 2, x[3] = -5;
  EXPECT_EQ(reduce_min(of()), -5);
  EXPECT_EQ(reduce_max(of()), 2);
  EXPECT_TRUE(std::isnan(reduce_sum(of())));
  const Array<float> none = empty<float>(device(), 0);
  EXPECT_EQ(reduce_min(none), inf);
  EXPECT_EQ(reduce_max(none), -inf);
  EXPECT_EQ(reduce_sum(none), 0);
  EXPECT_EQ(inner_product(none, none), 0);
  EXPECT_EQ(reduce_min(empty<int>(device(), 0)), std::numeric_limits<int>::max());
  EXPECT_TRUE(std::signbit(reduce_sum(full<float>(device(), 33, -0.0f))));
}

TEST_P(AlgorithmsScan, mistakes_of_reductions_are_refused_by_name) {
  const Array<float> x = zeros<float>(device(), 100), y = zeros<float>(device(), 99), out = zeros<float>(device(), 1),
                     null;
  expect_contains(error_of([&] { inner_product(x, y, out); }),
                  "inner_product: the second input has 99 elements, not 100");
  expect_contains(error_of([&] { reduce_sum(x, y); }), "reduce_sum: the output has 99 elements, not 1");
  expect_contains(error_of([&] { reduce_min(x, x.slice(4, 5)); }), "reduce_min: the input and the output share memory");
  expect_contains(error_of([&] { reduce_max(null, out); }), "reduce_max: the input is a null array");
  expect_contains(error_of([&] { inner_product(x, x.slice(0, 100, 2), out); }),
                  "inner_product: the second input has 50 elements, not 100");
}

// Gradients

template <class T>
std::vector<T> gradient_of(const Array<T>& x, const std::function<void()>& f, const Array<T>& y,
                           const std::vector<T>& seed) {
  Tape tape;
  tape.record(f);
  tape.backward({{y, Array<T>(y.device(), seed)}});
  return x.grad().to_vector();
}

template <class T>
void check_scan_gradient(const Device& device) {
  for (const bool inclusive : {false, true})
    for (const bool in_place : {false, true})
      for (const int n : {1, 50, 300, 20001}) {
        std::vector<T> seed(static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i) seed[std::size_t(i)] = T(i % 7 - 2);
        const auto x = Array<T>(device, numbers<T>(n, 10)).requires_grad();
        const Array<T> y = in_place ? x : zeros<T>(device, n);
        const std::vector<T> got = gradient_of<T>(
            x, [&] { inclusive ? inclusive_scan(x, y) : exclusive_scan(x, y); }, y, seed);
        T sum = 0;
        for (int i = n; i-- > 0;) {
          if (inclusive) sum += seed[std::size_t(i)];
          ASSERT_EQ(got[std::size_t(i)], sum) << n << ", " << i << (inclusive ? ", inclusive" : "") << in_place;
          if (!inclusive) sum += seed[std::size_t(i)];
        }
      }
}

TEST_P(AlgorithmsScan, gradients_pass_scans) {
  check_scan_gradient<float>(device());
  check_scan_gradient<double>(device());
}

TEST_P(AlgorithmsScan, gradients_pass_sums_and_inner_products) {
  const int n = 100;
  const std::vector<float> a0 = numbers<float>(n, 11), b0 = numbers<float>(n, 12);
  auto a = Array<float>(device(), a0).requires_grad(), b = Array<float>(device(), b0).requires_grad();
  const Array<float> product = zeros<float>(device(), 1), sum = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    inner_product(a, b, product);
    reduce_sum(a, sum);
    // Reads after the product find other elements than those that were multiplied.
    a.fill(0);
  });
  tape.backward({{product, Array<float>(device(), {2.0f})}, {sum, Array<float>(device(), {3.0f})}});
  for (int i = 0; i < n; ++i) {
    ASSERT_EQ(a.grad().at(i), 2 * b0[std::size_t(i)] + 3);
    ASSERT_EQ(b.grad().at(i), 2 * a0[std::size_t(i)]);
  }
  // One vector may be both sides, and one side may have no gradient.
  const auto x = Array<float>(device(), a0).requires_grad();
  EXPECT_EQ((gradient_of<float>(x, [&] { inner_product(x, x, product); }, product, {1.0f})[5]), 2 * a0[5]);
  const auto z = Array<float>(device(), a0).requires_grad();
  const Array<float> plain(device(), b0);
  EXPECT_EQ((gradient_of<float>(z, [&] { inner_product(plain, z, product); }, product, {1.0f})[5]), b0[5]);
}

TEST_P(AlgorithmsScan, gradients_pass_scans_in_steps_that_are_run_again) {
  const int n = 40, steps = 5;
  const auto x = full<double>(device(), n, 0.5).requires_grad();
  Array<double> y = zeros<double>(device(), n), sum = zeros<double>(device(), 1);
  Tape tape;
  tape.record([&] {
    y.copy_from(x);
    tape.checkpointed(steps, 2, [&](int) { inclusive_scan(y, y); });
    reduce_sum(y, sum);
  });
  tape.backward(sum);
  // The expected gradient: the transpose of each scan, which runs from the end.
  std::vector<double> g(std::size_t(n), 1.0);
  for (int s = 0; s < steps; ++s)
    for (std::size_t i = std::size_t(n) - 1; i-- > 0;) g[i] += g[i + 1];
  EXPECT_EQ(x.grad().to_vector(), g);
}

TEST_P(AlgorithmsScan, an_output_that_is_replaced_gets_no_gradient) {
  const auto x = full<float>(device(), 10, 1.0f).requires_grad();
  Array<float> plain = full<float>(device(), 10, 2.0f), y = zeros<float>(device(), 10);
  Tape tape;
  tape.record([&] {
    y.copy_from(x);
    inclusive_scan(plain, y);
  });
  tape.backward({{y, full<float>(device(), 10, 1.0f)}});
  EXPECT_EQ(x.grad().to_vector(), std::vector<float>(10, 0.0f));
}

TEST_P(AlgorithmsScan, extremes_have_no_gradient_and_say_so) {
  const auto x = full<float>(device(), 10, 1.0f).requires_grad();
  const Array<float> out = zeros<float>(device(), 1);
  Tape tape;
  expect_contains(error_of([&] { tape.record([&] { reduce_min(x, out); }); }),
                  "the minimum or maximum of an array that carries gradients");
  tape.record([&] { reduce_min(full<float>(device(), 10, 3.0f), out); });
  EXPECT_EQ(out.at(0), 3);
  EXPECT_EQ(tape.size(), 0u);
}

}  // namespace
