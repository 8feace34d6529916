// Atomic operations: all nine, on every type, in arrays and in shared arrays, against a model that runs in sequence.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Atomics);

enum class Kind { add, sub, min, max, and_, or_, xor_, exchange };
constexpr Kind kNumeric[] = {Kind::add, Kind::sub, Kind::min, Kind::max, Kind::exchange};
constexpr Kind kBits[] = {Kind::and_, Kind::or_, Kind::xor_};

template <class T, class R>
Var<T> apply(Kind kind, R& element, const Var<T>& v) {
  switch (kind) {
    case Kind::add: return atomic_add(element, v);
    case Kind::sub: return atomic_sub(element, v);
    case Kind::min: return atomic_min(element, v);
    case Kind::max: return atomic_max(element, v);
    case Kind::exchange: return atomic_exchange(element, v);
    default: break;
  }
  if constexpr (IntegerScalar<T>) {
    if (kind == Kind::and_) return atomic_and(element, v);
    if (kind == Kind::or_) return atomic_or(element, v);
    return atomic_xor(element, v);
  }
  return v;
}

/// Adds in type T; integers wrap.
template <class T>
T sum(T a, T b) {
  if constexpr (IntegerScalar<T>) {
    using U = std::make_unsigned_t<T>;
    return T(U(U(a) + U(b)));
  } else {
    return a + b;
  }
}
template <class T>
T negative(T a) {
  if constexpr (IntegerScalar<T>) {
    return T(~std::make_unsigned_t<T>(a) + 1u);
  } else {
    return -a;
  }
}

/// One step of the model. Values are whole numbers, small enough for every type.
template <class T>
T step(Kind kind, T before, T v) {
  if constexpr (std::is_same_v<T, half>) {
    return half(step<float>(kind, before, v));
  } else {
    switch (kind) {
      case Kind::add: return sum<T>(before, v);
      case Kind::sub: return sum<T>(before, negative<T>(v));
      case Kind::min: return std::min(before, v);
      case Kind::max: return std::max(before, v);
      case Kind::exchange: return v;
      default: break;
    }
    if constexpr (IntegerScalar<T>) {
      if (kind == Kind::and_) return T(before & v);
      if (kind == Kind::or_) return T(before | v);
      return T(before ^ v);
    }
    return v;
  }
}

template <class T>
std::vector<Kind> kinds() {
  std::vector<Kind> all(std::begin(kNumeric), std::end(kNumeric));
  if (IntegerScalar<T>) all.insert(all.end(), std::begin(kBits), std::end(kBits));
  return all;
}

template <class T>
T number(int k) {
  return T(std::is_signed_v<T> || RealScalar<T> ? k % 7 - 3 : k % 7);
}

template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || double(a) == double(b);
}

constexpr int kBins = 5, kCount = 256;

/// Threads meet in a few elements: the last state must be that of the model, in whichever order the threads came, and
/// the neighbours (each second element) must stay as they were.
template <class T>
void check_contended(const Device& device, Kind kind, bool in_shared) {
  SCOPED_TRACE(testing::Message() << "operation " << int(kind) << " on " << ir::user_name(scalar_type<T>())
                                  << (in_shared ? " in shared memory" : ""));
  std::vector<T> initial(2 * kBins), values(kCount);
  for (int k = 0; k < 2 * kBins; ++k) initial[std::size_t(k)] = number<T>(k + 2);
  for (int k = 0; k < kCount; ++k) values[std::size_t(k)] = number<T>(k * 5);
  Array<T> x(device, initial), v(device, values), before = zeros<T>(device, kCount);
  if (in_shared) {
    launch(kernel("contended_shared",
                  [=](Arr<T> x, Arr<const T> v, Arr<T> before) {
                    Int i = tid();
                    auto s = shared<T>(2 * kBins);
                    If (i < 2 * kBins) {
                      s[i] = x[i];
                    }
                    barrier();
                    before[i] = apply<T>(kind, s[2 * (i % kBins)], Var<T>(v[i]));
                    barrier();
                    If (i < 2 * kBins) {
                      x[i] = s[i];
                    }
                  }),
           kCount, x, v, before);
  } else {
    launch(kernel("contended",
                  [=](Arr<T> x, Arr<const T> v, Arr<T> before) {
                    Int i = tid();
                    before[i] = apply<T>(kind, x[2 * (i % kBins)], Var<T>(v[i]));
                  }),
           kCount, x, v, before);
  }
  const std::vector<T> after = x.to_vector(), seen = before.to_vector();
  std::vector<T> expected = initial;
  for (int k = 0; k < kCount; ++k) {
    T& to = expected[std::size_t(2 * (k % kBins))];
    to = step<T>(kind, to, values[std::size_t(k)]);
  }
  for (int bin = 0; bin < kBins; ++bin) {
    const std::size_t at = std::size_t(2 * bin);
    EXPECT_TRUE(same(after[at + 1], initial[at + 1])) << "neighbour of " << bin;
    if (kind != Kind::exchange) {
      EXPECT_TRUE(same(after[at], expected[at])) << double(after[at]) << " for " << double(expected[at]);
    }
    // Each value seen is the first one or another thread's: all that went in come out, except the last.
    if (kind == Kind::exchange) {
      std::map<double, int> balance;
      ++balance[double(initial[at])];
      --balance[double(after[at])];
      for (int k = bin; k < kCount; k += kBins) {
        ++balance[double(values[std::size_t(k)])];
        --balance[double(seen[std::size_t(k)])];
      }
      for (const auto& [value, count] : balance) EXPECT_EQ(count, 0) << value;
    }
  }
}

/// Each thread works alone, so that the value before and the value after are exact.
template <class T>
void check_alone(const Device& device, Kind kind) {
  SCOPED_TRACE(testing::Message() << "operation " << int(kind) << " on " << ir::user_name(scalar_type<T>()));
  constexpr int n = 77;
  std::vector<T> initial(n), values(n);
  for (int k = 0; k < n; ++k) {
    initial[std::size_t(k)] = number<T>(k);
    values[std::size_t(k)] = number<T>(k * 3 + 1);
  }
  if constexpr (RealScalar<T>) {
    values[5] = T(std::numeric_limits<float>::infinity());
    initial[6] = T(0.3);
  } else {
    initial[5] = std::numeric_limits<T>::max();
    values[6] = initial[6] = std::numeric_limits<T>::min();
  }
  Array<T> x(device, initial), v(device, values), before = zeros<T>(device, n);
  launch(kernel("alone",
                [=](Arr<T> x, Arr<const T> v, Arr<T> before) {
                  Int i = tid();
                  before[i] = apply<T>(kind, x[i], Var<T>(v[i]));
                }),
         n, x, v, before);
  const std::vector<T> after = x.to_vector(), seen = before.to_vector();
  for (std::size_t k = 0; k < n; ++k) {
    EXPECT_TRUE(same(seen[k], initial[k])) << k;
    const T expected = step<T>(kind, initial[k], values[k]);
    EXPECT_TRUE(same(after[k], expected)) << k << ": " << double(after[k]) << " for " << double(expected);
  }
}

/// Threads raise a counter by compare-exchange: no step is lost.
template <class T>
void check_cas(const Device& device, bool in_shared) {
  SCOPED_TRACE(testing::Message() << ir::user_name(scalar_type<T>()) << (in_shared ? " in shared memory" : ""));
  constexpr int n = 96;  // what every type can count to
  Array<T> x(device, std::vector<T>(4, T(1)));
  Array<int> tickets = zeros<int>(device, n);
  auto raise = [](Var<T>& element) {
    Var<T> expected = element;
    Bool done = false;
    While (!done) {
      Var<T> before = atomic_cas(element, expected, expected + T(1));
      done = before == expected;
      If (!done) {
        expected = before;
      }
    }
    return expected;
  };
  if (in_shared) {
    launch(kernel("count_shared",
                  [=](Arr<T> x, Arr<int> tickets) {
                    Int i = tid();
                    auto s = shared<T>(3);
                    If (i < 3) {
                      s[i] = T(1);
                    }
                    barrier();
                    tickets[i] = Int(raise(s[1]));
                    barrier();
                    If (i < 3) {
                      x[i] = s[i];
                    }
                  },
                  {.block = n}),
           n, x, tickets);
  } else {
    launch(kernel("count", [=](Arr<T> x, Arr<int> tickets) { tickets[tid()] = Int(raise(x[1])); }), n, x, tickets);
  }
  EXPECT_EQ(double(x.at(1)), n + 1);
  for (int k : {0, 2, 3}) EXPECT_EQ(double(x.at(k)), 1) << "neighbour " << k;
  std::vector<int> drawn = tickets.to_vector(), all(n);
  std::sort(drawn.begin(), drawn.end());
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(drawn, all);
}

/// A GPU may lack the features for float16 and for types of 64 bits; it then refuses them by name.
template <class T, class F>
void check_or_refused(const std::string& device, F check) {
  if (device != "gpu" || !(std::is_same_v<T, half> || sizeof(T) == 8)) return check();
  try {
    check();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
    expect_contains(e.what(), "the device lacks");
  }
}

template <class T>
void check_type(const Device& device, const std::string& kind_of_device) {
  for (Kind kind : kinds<T>()) {
    check_or_refused<T>(kind_of_device, [&] { check_alone<T>(device, kind); });
    check_or_refused<T>(kind_of_device, [&] { check_contended<T>(device, kind, false); });
    check_or_refused<T>(kind_of_device, [&] { check_contended<T>(device, kind, true); });
  }
  check_or_refused<T>(kind_of_device, [&] { check_cas<T>(device, false); });
  check_or_refused<T>(kind_of_device, [&] { check_cas<T>(device, true); });
}

TEST_P(Atomics, agree_with_the_model_on_int8) { check_type<std::int8_t>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_uint8) { check_type<std::uint8_t>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_int16) { check_type<std::int16_t>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_uint16) { check_type<std::uint16_t>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_int32) { check_type<int>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_uint32) { check_type<unsigned>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_int64) { check_type<std::int64_t>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_uint64) { check_type<std::uint64_t>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_float16) { check_type<half>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_float32) { check_type<float>(device(), GetParam()); }
TEST_P(Atomics, agree_with_the_model_on_float64) { check_type<double>(device(), GetParam()); }

TEST_P(Atomics, booleans_are_exchanged_and_compared) {
  Array<bool> flags = zeros<bool>(device(), 8);
  Array<int> winners = zeros<int>(device(), 2);
  launch(kernel("flags",
                [](Arr<bool> flags, Arr<int> winners) {
                  If (!atomic_exchange(flags[3], true)) {
                    atomic_add(winners[0], 1);
                  }
                  If (!atomic_cas(flags[6], false, true)) {
                    atomic_add(winners[1], 1);
                  }
                }),
         200, flags, winners);
  EXPECT_EQ(winners.to_vector(), (std::vector<int>{1, 1}));
  for (int k = 0; k < 8; ++k) EXPECT_EQ(flags.at(k), k == 3 || k == 6) << k;
}

TEST_P(Atomics, a_nan_loses_and_bits_are_compared) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Array<float> x(device(), std::vector<float>{nan, 2, -0.f, nan});
  Array<float> given(device(), std::vector<float>{1, nan});
  launch(kernel("nan",
                [nan](Arr<float> x, Arr<const float> given) {
                  atomic_min(x[0], given[0]);
                  atomic_max(x[1], given[1]);
                  atomic_cas(x[2], 0.f, 5.f);  // the element is -0
                  atomic_cas(x[3], nan, 7.f);
                }),
         1, x, given);
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1, 2, -0.f, 7}));
  EXPECT_TRUE(std::signbit(x.at(2)));
}

TEST_P(Atomics, vectors_and_matrices_are_changed_component_by_component) {
  const int n = on_reference() ? 300 : 3000;
  Array<vec3> sums = zeros<vec3>(device(), 2);
  Array<mat22> most = zeros<mat22>(device(), 1);
  Array<vec3> before = zeros<vec3>(device(), 1);
  launch(kernel("components",
                [](Arr<vec3> sums, Arr<mat22> most, Arr<vec3> before) {
                  Int i = tid();
                  atomic_add(sums[i % 2], Vec3(1, 2, Float(i % 3)));
                  atomic_max(most[0], Mat22(Float(i), 1, -2, Float(i % 5)));
                  If (i == 0) {
                    before[0] = atomic_sub(before[0], Vec3(1, 2, 3));
                  }
                }),
         n, sums, most, before);
  float third[2] = {0, 0};
  for (int i = 0; i < n; ++i) third[i % 2] += float(i % 3);
  const float m = float(n / 2);
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(sums.at(k).x, m);
    EXPECT_EQ(sums.at(k).y, 2 * m);
    EXPECT_EQ(sums.at(k).z, third[k]);
  }
  const mat22 top = most.at(0);
  EXPECT_EQ(top(0, 0), float(n - 1));
  EXPECT_EQ(top(0, 1), 1);
  EXPECT_EQ(top(1, 0), 0);
  EXPECT_EQ(top(1, 1), 4);
  EXPECT_EQ(before.at(0).x, 0);  // the value before the operation
}

TEST_P(Atomics, narrow_elements_of_strided_views_leave_the_rest_alone) {
  Array<std::uint8_t> bytes(device(), std::vector<std::uint8_t>(301, 7));
  launch(kernel("strided", [](Arr<std::uint8_t> x) { atomic_add(x[tid() % 100], std::uint8_t(2)); }), 200,
         bytes.slice(1, 301, 3));
  const std::vector<std::uint8_t> after = bytes.to_vector();
  for (std::size_t k = 0; k < after.size(); ++k) EXPECT_EQ(int(after[k]), k % 3 == 1 ? 11 : 7) << k;
}

TEST_P(Atomics, a_histogram_without_locks_counts_everything) {
  const int n = on_reference() ? 4000 : 200000;
  Array<int> counts = zeros<int>(device(), 16);
  launch(kernel("histogram",
                [](Arr<int> counts) {
                  Int i = tid();
                  Int bin = (i * 7 + i / 16) % 16;
                  Int expected = counts[bin];
                  Bool done = false;
                  While (!done) {
                    Int before = atomic_cas(counts[bin], expected, expected + 1);
                    done = before == expected;
                    expected = before;
                  }
                }),
         n, counts);
  std::vector<int> expected(16);
  for (int i = 0; i < n; ++i) ++expected[std::size_t((i * 7 + i / 16) % 16)];
  EXPECT_EQ(counts.to_vector(), expected);
}

}  // namespace
