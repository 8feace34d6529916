// Compaction, run lengths and histograms, against the host.
#include <weft/runtime/algorithms/compact.h>
#include <weft/runtime/algorithms/histogram.h>
#include <weft/runtime/algorithms/run_lengths.h>

#include <cmath>
#include <limits>
#include <random>

#include "../../../runtime/core/state.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(AlgorithmsSelect);

std::vector<std::int64_t> sizes(bool reference) {
  std::vector<std::int64_t> n = {0, 1, 255, 257, 4097};
  if (!reference) n.insert(n.end(), {65537, 1'000'000});
  return n;
}

TEST_P(AlgorithmsSelect, flagged_elements_move_together) {
  for (const std::int64_t n : sizes(on_reference()))
    for (const unsigned of : {1u, 3u, 1000u}) {
      SCOPED_TRACE(n);
      std::mt19937 random(static_cast<unsigned>(n) + of);
      std::vector<vec3> x(static_cast<std::size_t>(n));
      std::vector<int> flags(x.size()), indices;
      std::vector<vec3> expected;
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = {float(i), float(random() % 100), 1};
        flags[i] = random() % of == 0 ? int(random() | 1) : 0;
        if (!flags[i]) continue;
        indices.push_back(int(i));
        expected.push_back(x[i]);
      }
      const Array<vec3> in(device(), x), out = full<vec3>(device(), n, vec3{-1, -1, -1});
      const Array<int> f(device(), flags), at = full<int>(device(), n, -1), count = full<int>(device(), 1, -1);
      compact(in, f, out, count);
      ASSERT_EQ(count.at(0), int(indices.size()));
      expected.resize(x.size(), vec3{-1, -1, -1});
      EXPECT_EQ(out.to_vector(), expected);
      count.wait();
      compact_indices(f, at, count);
      ASSERT_EQ(count.at(0), int(indices.size()));
      indices.resize(x.size(), -1);
      EXPECT_EQ(at.to_vector(), indices);
    }
}

TEST_P(AlgorithmsSelect, booleans_are_flags_too) {
  const std::vector<char> set = {0, 1, 1, 0, 0, 1, 0};
  Array<bool> flags = zeros<bool>(device(), 7);
  for (const int i : {1, 2, 5}) flags.slice(i, i + 1).fill(true);
  const Array<double> x(device(), std::vector<double>{0, 1, 2, 3, 4, 5, 6}), out = zeros<double>(device(), 7);
  const Array<int> at = zeros<int>(device(), 9), count = zeros<int>(device(), 1);
  compact(x, flags, out, count);
  EXPECT_EQ(out.to_vector(), (std::vector<double>{1, 2, 5, 0, 0, 0, 0}));
  compact_indices(flags, at, count);
  EXPECT_EQ(at.to_vector(), (std::vector<int>{1, 2, 5, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(count.at(0), 3);
}

template <class T>
void check_runs(const Device& device, const std::vector<T>& x) {
  std::vector<T> values;
  std::vector<int> lengths;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == 0 || x[i] != x[i - 1]) values.push_back(x[i]), lengths.push_back(0);
    ++lengths.back();
  }
  const std::int64_t n = std::int64_t(x.size());
  const Array<T> in(device, x), to = zeros<T>(device, n);
  const Array<int> of = full<int>(device, n, -7), count = full<int>(device, 1, -7);
  run_length_encode(in, to, of, count);
  ASSERT_EQ(count.at(0), int(values.size()));
  const std::int64_t runs = std::int64_t(values.size());
  if (runs == 0) return;
  EXPECT_EQ(to.slice(0, runs).to_vector(), values);
  EXPECT_EQ(of.slice(0, runs).to_vector(), lengths);
  if (runs < n) {
    EXPECT_EQ(of.at(runs), -7);
  }
}

template <class T>
void check_runs_of_type(const Device& device, bool reference) {
  for (const std::int64_t n : sizes(reference))
    for (const unsigned distinct : {1u, 2u, 1u << 20}) {
      SCOPED_TRACE(n);
      std::mt19937 random(static_cast<unsigned>(n) + distinct);
      std::vector<T> x(static_cast<std::size_t>(n));
      for (T& v : x) v = T(random() % distinct);
      check_runs(device, x);
    }
}

TEST_P(AlgorithmsSelect, runs_are_found) {
  check_runs_of_type<int>(device(), on_reference());
  check_runs_of_type<std::uint64_t>(device(), on_reference());
  check_runs_of_type<float>(device(), on_reference());
  check_runs_of_type<double>(device(), on_reference());
}

TEST_P(AlgorithmsSelect, zeros_of_both_signs_are_one_run_and_nans_are_none) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Array<float> in(device(), {-0.0f, 0.0f, nan, nan, 1.0f}), values = zeros<float>(device(), 5);
  const Array<int> lengths = zeros<int>(device(), 5), count = zeros<int>(device(), 1);
  run_length_encode(in, values, lengths, count);
  EXPECT_EQ(count.at(0), 4);
  EXPECT_EQ(lengths.slice(0, 4).to_vector(), (std::vector<int>{2, 1, 1, 1}));
  EXPECT_TRUE(std::signbit(values.at(0)) && std::isnan(values.at(2)));
}

template <class T>
void check_integer_bins(const Device& device, bool reference) {
  for (const std::int64_t n : sizes(reference))
    for (const int bins : {1, 100, 2048, 2049, 5000}) {
      std::mt19937 random(static_cast<unsigned>(n));
      std::vector<T> x(static_cast<std::size_t>(n));
      std::vector<int> expected(std::size_t(bins), 0);
      for (T& v : x) {
        v = T(int(random() % 6000) - 500);
        if (v >= T(0) && v < T(bins)) ++expected[std::size_t(v)];
      }
      const Array<int> counts = full<int>(device, bins, -1);
      histogram(Array<T>(device, x), counts);
      EXPECT_EQ(counts.to_vector(), expected) << n << ", " << bins;
    }
}

TEST_P(AlgorithmsSelect, integers_are_counted_by_value) {
  check_integer_bins<int>(device(), on_reference());
  check_integer_bins<unsigned>(device(), on_reference());
  check_integer_bins<std::int64_t>(device(), on_reference());
  check_integer_bins<std::uint64_t>(device(), on_reference());
}

template <class T>
void check_real_bins(const Device& device, bool reference) {
  for (const std::int64_t n : sizes(reference))
    for (const int bins : {1, 7, 3000}) {
      std::mt19937 random(static_cast<unsigned>(n) + 1);
      std::vector<T> x(static_cast<std::size_t>(n));
      for (T& v : x) v = T(int(random() % 4001) - 2000) / 1000;
      if (n > 5) x[1] = std::numeric_limits<T>::quiet_NaN(), x[2] = T(1.5), x[3] = -std::numeric_limits<T>::infinity();
      const T lo = T(-0.5), hi = T(1.5), scale = T(bins / 2.0);
      std::vector<int> expected(std::size_t(bins), 0);
      for (const T v : x)
        if (v >= lo && v <= hi) ++expected[std::size_t(std::min(int((v - lo) * scale), bins - 1))];
      const Array<int> counts = full<int>(device, bins, -1);
      histogram(Array<T>(device, x), lo, hi, counts);
      EXPECT_EQ(counts.to_vector(), expected) << n << ", " << bins;
    }
}

TEST_P(AlgorithmsSelect, reals_are_counted_in_even_bins) {
  check_real_bins<float>(device(), on_reference());
  check_real_bins<double>(device(), on_reference());
}

TEST_P(AlgorithmsSelect, given_scratch_nothing_is_allocated) {
  const std::int64_t n = 3000;
  const Array<int> x = full<int>(device(), n, 1), out = zeros<int>(device(), n), more = zeros<int>(device(), n),
                   count = zeros<int>(device(), 1);
  const auto scratch = empty<std::uint8_t>(device(), std::max(compact_scratch_bytes(n), run_length_scratch_bytes(n)));
  const auto all = [&] {
    compact(x, x, out, count, {.scratch = scratch});
    compact_indices(x, out, count, {.scratch = scratch});
    run_length_encode(x, out, more, count, {.scratch = scratch});
    histogram(x, out, {.scratch = scratch});
  };
  all();
  const std::uint64_t before = device().state()->allocated;
  all();
  EXPECT_EQ(device().state()->allocated, before);
}

TEST_P(AlgorithmsSelect, mistakes_are_refused_by_name) {
  const Array<int> x = zeros<int>(device(), 100), out = zeros<int>(device(), 100), few = zeros<int>(device(), 99),
                   one = zeros<int>(device(), 1), null;
  const Device other = Device::open("reference");
  expect_contains(error_of([&] { compact(few, x, out, one); }), "compact: the input has 99 elements, not 100");
  expect_contains(error_of([&] { compact(x, x, few, one); }), "the output has 99 elements, and there may be 100");
  expect_contains(error_of([&] { compact(x, x, x, one); }), "share memory");
  expect_contains(error_of([&] { compact(x, null, out, one); }), "the array of flags is a null array");
  expect_contains(error_of([&] { compact_indices(x, out, few); }), "compact_indices: the count has 99 elements, not 1");
  expect_contains(error_of([&] { compact_indices(x, x, one); }), "share memory");
  expect_contains(error_of([&] { compact_indices(x.slice(0, 100, 2), out, one); }), "strided view");
  expect_contains(error_of([&] { run_length_encode(x, few, out, one); }),
                  "run_length_encode: the array of values has 99");
  expect_contains(error_of([&] { run_length_encode(x, x, out, one); }), "share memory");
  expect_contains(error_of([&] { run_length_encode(x, zeros<int>(other, 100), out, one); }), "is on device");
  expect_contains(error_of([&] { histogram(x, empty<int>(device(), 0)); }),
                  "histogram: the array of counts has no bins");
  expect_contains(error_of([&] { histogram(x, x); }), "share memory");
  const Array<float> reals = zeros<float>(device(), 10);
  expect_contains(error_of([&] { histogram(reals, 1, 1, out); }), "bins between 1 and 1");
  expect_contains(error_of([&] { histogram(reals, 0, std::numeric_limits<float>::infinity(), out); }),
                  "bins between 0");
  const auto small = empty<std::uint8_t>(device(), compact_scratch_bytes(100) - 1);
  expect_contains(error_of([&] { compact_indices(x, out, one, {.scratch = small}); }), "the scratch memory has");
}

TEST_P(AlgorithmsSelect, a_gradient_is_never_dropped) {
  const auto x = full<float>(device(), 10, 1.0f).requires_grad();
  const Array<float> out = zeros<float>(device(), 10);
  const Array<int> flags = full<int>(device(), 10, 1), lengths = zeros<int>(device(), 10),
                   count = zeros<int>(device(), 1);
  Tape tape;
  expect_contains(error_of([&] { tape.record([&] { compact(x, flags, out, count); }); }),
                  "a compaction of an array that carries gradients");
  expect_contains(error_of([&] { tape.record([&] { run_length_encode(x, out, lengths, count); }); }),
                  "a run-length encoding of an array that carries gradients");
  // Indices have no gradients, and are not refused; a kernel that reads through them passes gradients on.
  tape.record([&] {
    compact_indices(flags, lengths, count);
    histogram(x, 0, 2, lengths.slice(0, 2));
  });
  EXPECT_EQ(tape.size(), 0u);
}

}  // namespace
