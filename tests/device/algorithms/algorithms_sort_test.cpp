// Sorts of keys and pairs against std::stable_sort.
#include <weft/runtime/algorithms/segmented_sort.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "../../../runtime/algorithms/sort/sort_passes.h"
#include "../../../runtime/core/state.h"
#include "../../../runtime/graph.h"
#include "../full_sizes.h"
#include "../grains.h"
#include "../subgroup_sizes.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::grains_of;
using weft::test::on_all_sizes;

namespace {

DEVICE_TEST(AlgorithmsSort);

enum class Pattern { random, equal, ascending, descending, few };
constexpr Pattern kPatterns[] = {Pattern::random, Pattern::equal, Pattern::ascending, Pattern::descending,
                                 Pattern::few};

template <class K>
using Bits = std::conditional_t<sizeof(K) == 4, std::uint32_t, std::uint64_t>;

template <class K>
K from_bits(std::uint64_t random) {
  K k;
  const auto bits = Bits<K>(random);
  std::memcpy(&k, &bits, sizeof k);
  return k;
}

/// Reals have signs, zeros of both signs and infinities among them, and all exponents; no NaN, which std::stable_sort
/// could not order.
template <class K>
K random_key(std::mt19937_64& random) {
  if constexpr (RealScalar<K>) {
    constexpr K inf = std::numeric_limits<K>::infinity();
    const K special[] = {K(0), K(-0.0), inf, -inf};
    if (random() % 8 == 0) return special[random() % 4];
    const K k = from_bits<K>(random());
    return k == k ? k : K(1);
  } else {
    return from_bits<K>(random());
  }
}

template <class K>
std::vector<K> make_keys(std::int64_t n, Pattern pattern) {
  std::mt19937_64 random(static_cast<unsigned>(n) * 5 + unsigned(pattern));
  std::vector<K> keys(static_cast<std::size_t>(n));
  std::vector<K> few(16);
  for (K& k : few) k = random_key<K>(random);
  for (K& k : keys)
    k = pattern == Pattern::equal ? few[0] : pattern == Pattern::few ? few[random() % 16] : random_key<K>(random);
  if (pattern == Pattern::ascending) std::ranges::sort(keys);
  if (pattern == Pattern::descending) std::ranges::sort(keys, std::greater());
  return keys;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Positions in the order of a stable sort.
template <class K, class Less = std::less<>>
std::vector<std::uint32_t> stable_order(const std::vector<K>& keys, Less less = {}) {
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return less(keys[a], keys[b]); });
  return order;
}
template <class T>
std::vector<T> in_order(const std::vector<T>& x, const std::vector<std::uint32_t>& order) {
  std::vector<T> out;
  for (const std::uint32_t i : order) out.push_back(x[i]);
  return out;
}

/// Checks a sort of pairs. Values tell where a key came from, so that each mismatch is seen.
template <class V, class K>
void check_pairs(const Device& device, const std::vector<K>& keys, Grain grain, int end_bit = 0) {
  std::vector<V> values(keys.size());
  std::iota(values.begin(), values.end(), V(7));
  const Array<K> k(device, keys);
  const Array<V> v(device, values);
  radix_sort_pairs(k, v, {.grain = grain, .end_bit = end_bit});
  const auto order = stable_order(keys);
  EXPECT_TRUE(same_bits(k.to_vector(), in_order(keys, order)));
  EXPECT_TRUE(v.to_vector() == in_order(values, order));
}
template <class K>
void check_keys(const Device& device, const std::vector<K>& keys, Grain grain) {
  const Array<K> k(device, keys);
  radix_sort(k, {.grain = grain});
  EXPECT_TRUE(same_bits(k.to_vector(), in_order(keys, stable_order(keys))));
}

struct RestoreLimits {
  const detail::SortLimits before = detail::sort_limits();
  ~RestoreLimits() { detail::sort_limits() = before; }
};
/// Sorts keys that are one tile by passes over columns too, as a larger number of keys is sorted.
template <class F>
void by_columns(F f) {
  const RestoreLimits restore;
  detail::sort_limits().lone_tile = false;
  f();
}

template <class K>
void check_type(const Device& device, const std::vector<std::int64_t>& sizes) {
  SCOPED_TRACE(ir::user_name(scalar_type<K>()));
  for (const std::int64_t n : sizes)
    for (const Pattern pattern : kPatterns) {
      SCOPED_TRACE(n);
      SCOPED_TRACE(int(pattern));
      const std::vector<K> keys = make_keys<K>(n, pattern);
      for (const Grain grain : grains_of(device)) {
        check_pairs<std::uint32_t>(device, keys, grain);
        if (n < 300 || pattern == Pattern::random) check_keys(device, keys, grain);
      }
      by_columns([&] { check_pairs<std::uint32_t>(device, keys, Grain::fine); });
    }
}

TEST_P(AlgorithmsSort, keys_and_pairs_are_sorted_as_by_the_stable_sort) {
  std::vector<std::int64_t> sizes = {0, 1, 255, 256, 257, 4095, 4097, 16384, 16385, 65537};
  check_type<std::uint32_t>(device(), sizes);
  // The interpreter is slow at operations of subgroups.
  if (on_reference() && !test::full_sizes()) sizes = {0, 1, 257, 2049};
  check_type<float>(device(), sizes);
  check_type<std::uint64_t>(device(), sizes);
  check_type<int>(device(), sizes);
  check_type<std::int64_t>(device(), sizes);
  check_type<double>(device(), sizes);
}

TEST_P(AlgorithmsSort, a_million_keys_and_more_are_sorted) {
  if (on_reference() && !test::full_sizes())
    GTEST_SKIP() << "takes the interpreter half a minute: WEFT_FULL_TESTS=1 runs it";
  std::vector<std::int64_t> sizes = {1'000'000};
  if (test::full_sizes()) sizes.push_back(16'000'000);
  // What a device does by itself is worth the time; the grains that it would have to be asked for are sorted with
  // above.
  const bool has_own_way = grains_of(device()).front() == Grain::automatic;
  const Grain coarse = has_own_way ? Grain::automatic : Grain::coarse,
              fine = has_own_way ? Grain::automatic : Grain::fine;
  for (const std::int64_t n : sizes)
    for (const Pattern pattern : kPatterns) {
      SCOPED_TRACE(n);
      SCOPED_TRACE(int(pattern));
      check_pairs<std::uint32_t>(device(), make_keys<std::uint32_t>(n, pattern), coarse);
      check_keys(device(), make_keys<float>(n, pattern), coarse);
      check_pairs<std::uint32_t>(device(), make_keys<std::uint64_t>(n, pattern), coarse);
      check_pairs<std::uint32_t>(device(), make_keys<float>(n, pattern), fine);
      check_keys(device(), make_keys<std::uint32_t>(n, pattern), fine);
    }
}

TEST_P(AlgorithmsSort, a_million_keys_of_other_types_are_sorted_with_both_grains) {
  if (!test::full_sizes()) GTEST_SKIP() << "takes half a minute on two cores: WEFT_FULL_TESTS=1 runs it";
  for (const Pattern pattern : kPatterns)
    for (const Grain grain : grains_of(device())) {
      SCOPED_TRACE(int(pattern));
      check_keys(device(), make_keys<std::uint64_t>(1'000'000, pattern), grain);
      check_pairs<std::uint32_t>(device(), make_keys<std::uint32_t>(1'000'000, pattern), grain);
      check_pairs<std::uint32_t>(device(), make_keys<int>(1'000'000, pattern), grain);
      check_pairs<std::uint32_t>(device(), make_keys<float>(1'000'000, pattern), grain);
    }
}

TEST_P(AlgorithmsSort, subgroups_of_every_size_sort) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    by_columns([&] {
      for (const std::int64_t n : {257, 2048, 4097, 20000})  // whole tiles for some sizes, and a remainder
        check_pairs<std::uint32_t>(device, make_keys<std::uint32_t>(n, Pattern::random), Grain::fine);
      check_pairs<std::uint32_t>(device, make_keys<float>(3000, Pattern::few), Grain::fine);
    });
  });
}

/// Sorts few keys by some of the bits that order them. These are an unsigned key's own; a signed key's highest bit is
/// inverted, and a negative real's bits all are.
template <class K>
void check_bits(const Device& device, int begin, int end) {
  SCOPED_TRACE(ir::user_name(scalar_type<K>()));
  constexpr int width = 8 * sizeof(K);
  const std::vector<K> keys = make_keys<K>(200, Pattern::random);
  const auto digits = [&](K k) {
    Bits<K> bits;
    if (k == K(0)) k = K(0);  // both zeros have the same bits
    std::memcpy(&bits, &k, sizeof k);
    const Bits<K> sign = Bits<K>(1) << (width - 1);
    if (RealScalar<K> && (bits & sign))
      bits = ~bits;
    else if (std::is_signed_v<K>)
      bits ^= sign;
    return std::uint64_t(bits) >> begin & ((1ull << (end - begin)) - 1);
  };
  std::vector<std::uint32_t> numbers(keys.size());
  std::iota(numbers.begin(), numbers.end(), 0u);
  const Array<K> k(device, keys);
  const Array<std::uint32_t> v(device, numbers);
  radix_sort_pairs(k, v, {.grain = Grain::fine, .begin_bit = begin, .end_bit = end});
  const auto order = stable_order(keys, [&](K a, K b) { return digits(a) < digits(b); });
  EXPECT_TRUE(v.to_vector() == order) << begin << " to " << end;
  EXPECT_TRUE(same_bits(k.to_vector(), in_order(keys, order))) << begin << " to " << end;
}

// Sorts sizes on both sides of every step in the rounds of a tile, up to the first that takes several launches.
TEST_P(AlgorithmsSort, keys_that_are_one_tile_are_sorted_by_one_launch) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    const auto launches = [&](std::int64_t n) {
      const Array<unsigned> keys = zeros<unsigned>(device, n), values = zeros<unsigned>(device, n);
      const auto scratch = empty<std::uint8_t>(device, radix_sort_scratch_bytes<unsigned, unsigned>(n));
      return capture(device, [&] { radix_sort_pairs(keys, values, {.scratch = scratch, .grain = Grain::fine}); })
          .size();
    };
    const auto tile = [&](std::int64_t n) { return detail::lone_tile(*device.state(), 4, n); };
    if (!detail::sorts_fine(*device.state())) GTEST_SKIP() << "no whole subgroups of one size";
    const detail::TileShape first = tile(1);
    const int threads = first.lanes * first.subgroups;
    std::vector<std::int64_t> sizes = {2, threads + 1};
    for (int rounds = first.rounds; tile(std::int64_t(rounds) * threads).rounds == rounds; rounds *= 2)
      for (const int more : {0, 1}) sizes.push_back(std::int64_t(rounds) * threads + more);
    for (const std::int64_t n : sizes) {
      SCOPED_TRACE(n);
      const detail::TileShape shape = tile(n);
      const bool alone = shape.rounds > 0;
      EXPECT_GE(alone ? shape.rounds * threads : n, n);
      EXPECT_EQ(launches(n), alone ? 1 : 12);
      check_pairs<std::uint32_t>(device, make_keys<float>(n, Pattern::random), Grain::fine);
      check_keys(device, make_keys<std::uint64_t>(n, Pattern::few), Grain::fine);
      check_pairs<std::uint64_t>(device, make_keys<std::uint32_t>(n, Pattern::descending), Grain::fine);
    }
    EXPECT_EQ(tile(sizes.back() + 20 * threads).rounds, 0);
    for (const auto& [begin, end] : {std::pair(4, 16), {31, 32}, {0, 9}}) {
      check_bits<std::uint32_t>(device, begin, end);
      check_bits<int>(device, begin, end);
      check_bits<float>(device, begin, end);
      check_bits<std::uint64_t>(device, begin, end);
      check_bits<std::int64_t>(device, begin + 32, end + 32);
      check_bits<double>(device, begin + 32, end + 32);
    }
  });
}

// Tests workgroups of more threads than there are digits, in which two, three and four threads look after a digit's
// counters, and those that cannot share the subgroups equally. The keys are one column of three tiles, of which the
// last is not full; or two columns, of which one is full and the other has a full tile and a part of one.
TEST_P(AlgorithmsSort, tiles_and_columns_as_of_many_keys_sort) {
  const RestoreLimits restore;
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    const int lanes = int(device.state()->device->info().subgroup_size);
    if (lanes == 0) GTEST_SKIP() << "no whole subgroups of one size";
    const auto sorts = [&]<class V>(V, bool one_column) {
      const auto shape = [&](std::int64_t n) { return detail::fine_shape(*device.state(), sizeof(V), n); };
      const detail::TileShape tile = shape(1 << 20).tile;
      const int keys = tile.lanes * tile.subgroups * tile.rounds;
      const std::int64_t n = (one_column ? 2 : shape(1 << 20).tiles + 1) * keys + 100;
      EXPECT_EQ(shape(n).columns, one_column ? 1 : 2);
      EXPECT_GE(shape(n).tiles, one_column ? 3 : 2);
      std::vector<std::uint32_t> some = make_keys<std::uint32_t>(n, Pattern::random);
      for (std::uint32_t& k : some) k &= 0xffff;  // two passes
      check_pairs<V>(device, some, Grain::fine, 16);
    };
    for (const int threads : {1024, 896, 768, 512, 256, 64}) {
      if (threads < lanes || threads > 2 * 32 * lanes) continue;  // no such tile, or the same as with fewer threads
      SCOPED_TRACE(threads);
      for (const bool one_column : {true, false}) {
        detail::SortLimits limits{.most_threads = threads, .few_tiles = 0, .lone_tile = false};
        limits.least_column = one_column ? 1 << 30 : 1 << 15;  // some tiles are one column
        detail::sort_limits() = limits;
        sorts(std::uint32_t(), one_column);
        sorts(std::uint64_t(), one_column);
      }
    }
  });
}

// More columns would have more counts than fit the scratch memory; columns of more tiles than that takes are slow.
TEST_P(AlgorithmsSort, columns_are_as_few_tiles_as_may_be) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    if (!detail::sorts_fine(*device.state())) return;  // there are no tiles
    for (const int bytes : {4, 8})
      for (const std::int64_t n : {1ll, 100'000ll, 16'000'000ll, (1ll << 31) - (1 << 16)}) {
        const detail::FineShape shape = detail::fine_shape(*device.state(), bytes, n);
        const std::int64_t keys = std::int64_t(shape.tile.lanes) * shape.tile.subgroups * shape.tile.rounds;
        EXPECT_GE(shape.tiles * keys, detail::kLeastColumn);
        EXPECT_LT((shape.tiles - 1) * keys, detail::kLeastColumn);
        EXPECT_GE(shape.columns * shape.tiles * keys, n);
        EXPECT_LT((shape.columns - 1) * shape.tiles * keys, n);
      }
  });
}

TEST_P(AlgorithmsSort, values_of_eight_bytes_go_along) {
  for (const Grain grain : grains_of(device())) {
    check_pairs<std::uint64_t>(device(), make_keys<std::uint32_t>(3000, Pattern::few), grain);
    check_pairs<double>(device(), make_keys<double>(3000, Pattern::few), grain);
  }
  // Vectors of two floats have 8 bytes and lie at any multiple of 4.
  const Array<int> keys(device(), {3, 1, 2});
  const Array<vec2> all(device(), std::vector<vec2>{{0, 0}, {3, 30}, {1, 10}, {2, 20}});
  const auto values = all.slice(1);
  radix_sort_pairs(keys, values);
  EXPECT_EQ(values.at(0), (vec2{1, 10}));
  EXPECT_EQ(values.at(2), (vec2{3, 30}));
  EXPECT_EQ(all.at(0), (vec2{0, 0}));
}

TEST_P(AlgorithmsSort, nans_come_last_in_their_order) {
  const auto nan = [](std::uint32_t payload) { return from_bits<float>(payload); };
  const std::vector<float> x = {nan(0xffc00001),
                                1,
                                nan(0x7f800001),
                                -std::numeric_limits<float>::infinity(),
                                -0.0f,
                                std::numeric_limits<float>::infinity(),
                                0,
                                -0.0f,
                                nan(0x7fffffff)};
  for (const Grain grain : grains_of(device())) {
    const Array<float> keys(device(), x);
    radix_sort(keys, {.grain = grain});
    const std::vector<std::uint32_t> order = {3, 4, 6, 7, 1, 5, 0, 2, 8};
    EXPECT_TRUE(same_bits(keys.to_vector(), in_order(x, order)));
  }
}

TEST_P(AlgorithmsSort, some_bits_alone_are_looked_at) {
  // One workgroup sorts the few keys, if its tile is large enough; several sort the many.
  const auto few = make_keys<std::uint32_t>(3000, Pattern::random),
             many = make_keys<std::uint32_t>(20'000, Pattern::random);
  for (const Grain grain : grains_of(device()))
    for (const auto* x : {&few, &many})
      for (const auto& [begin, end] : {std::pair(4, 16), {0, 1}, {31, 32}, {5, 5}, {8, 29}, {3, 0}}) {
        const int last = end ? end : 32, width = last - begin;
        const auto digits = [b = begin, width](std::uint32_t k) {
          return std::uint64_t(k >> b % 32) & ((1ull << width) - 1);
        };
        const Array<std::uint32_t> keys(device(), *x), values(device(), *x);
        radix_sort_pairs(keys, values, {.grain = grain, .begin_bit = begin, .end_bit = end});
        const auto order = stable_order(*x, [&](std::uint32_t a, std::uint32_t b) { return digits(a) < digits(b); });
        EXPECT_TRUE(keys.to_vector() == in_order(*x, order)) << begin << " to " << end;
        EXPECT_TRUE(values.to_vector() == in_order(*x, order)) << begin << " to " << end;
      }
  // The highest bit of a signed number takes part as it does in the order: inverted.
  const Array<int> keys(device(), {1, -1, 2, -2});
  radix_sort(keys, {.begin_bit = 31});
  EXPECT_EQ(keys.to_vector(), (std::vector<int>{-1, -2, 1, 2}));
}

TEST_P(AlgorithmsSort, given_scratch_nothing_is_allocated) {
  const std::int64_t n = 5000;
  const std::vector<std::uint32_t> x = make_keys<std::uint32_t>(n, Pattern::random);
  const Array<std::uint32_t> keys(device(), x), values(device(), x);
  const Array<int> offsets(device(), {0, 1000, 5000});
  for (const Grain grain : grains_of(device())) {
    const auto scratch = empty<std::uint8_t>(device(), radix_sort_scratch_bytes<std::uint32_t, std::uint32_t>(n));
    const auto of_segments =
        empty<std::uint8_t>(device(), segmented_sort_scratch_bytes<std::uint32_t, std::uint32_t>(n, 3));
    const auto all = [&] {
      radix_sort_pairs(keys, values, {.scratch = scratch, .grain = grain});
      radix_sort(keys, {.scratch = scratch, .grain = grain, .end_bit = 20});
      segmented_sort_pairs(keys, values, offsets, {.scratch = of_segments, .grain = grain});
    };
    all();
    const std::uint64_t before = device().state()->allocated;
    all();
    EXPECT_EQ(device().state()->allocated, before);
  }
}

TEST_P(AlgorithmsSort, mistakes_are_refused_by_name) {
  const Array<int> keys = zeros<int>(device(), 100), values = zeros<int>(device(), 99), null;
  const Device other = Device::open("reference");
  expect_contains(error_of([&] { radix_sort_pairs(keys, values); }),
                  "radix_sort_pairs: the array of values has 99 elements, not 100");
  expect_contains(error_of([&] { radix_sort(null); }), "radix_sort: the array of keys is a null array");
  expect_contains(error_of([&] { radix_sort_pairs(keys, null); }), "the array of values is a null array");
  expect_contains(error_of([&] { radix_sort_pairs(keys, keys); }), "share memory");
  expect_contains(error_of([&] { radix_sort(keys.slice(0, 100, 3)); }), "the array of keys is a strided view");
  expect_contains(error_of([&] { radix_sort_pairs(keys, zeros<int>(other, 100)); }),
                  "the array of values is on device");
  expect_contains(error_of([&] { radix_sort(keys, {.begin_bit = 8, .end_bit = 40}); }),
                  "bits 8 to 40 of keys that have 32");
  expect_contains(error_of([&] { radix_sort(keys, {.begin_bit = -1}); }), "bits -1 to 32");
  expect_contains(error_of([&] { radix_sort(keys, {.begin_bit = 9, .end_bit = 8}); }), "bits 9 to 8");
  const auto small = empty<std::uint8_t>(device(), radix_sort_scratch_bytes<int>(100) - 1);
  expect_contains(error_of([&] { radix_sort(keys, {.scratch = small}); }), "the scratch memory has");
  struct Bytes : Array<std::uint8_t> {
    explicit Bytes(const Array<int>& a) {
      storage_ = a.storage(), address_ = a.address(), shape_ = {a.size() * 4}, stride_ = {1};
    }
  };
  const Array<int> large = zeros<int>(device(), 100000);
  expect_contains(error_of([&] { radix_sort(large.slice(5, 10), {.scratch = Bytes(large)}); }),
                  "the scratch memory and the array of keys share memory");
  expect_contains(error_of([&] { segmented_sort(keys, null); }),
                  "segmented_sort: the array of offsets is a null array");
  expect_contains(error_of([&] { segmented_sort(keys, keys); }), "share memory");
  expect_contains(error_of([&] { segmented_sort_pairs(keys, values, zeros<int>(device(), 2)); }),
                  "99 elements, not 100");
}

TEST_P(AlgorithmsSort, a_gradient_is_never_dropped) {
  const auto x = full<float>(device(), 10, 1.0f).requires_grad();
  const Array<int> keys = zeros<int>(device(), 10), offsets(device(), {0, 10});
  const Array<float> plain = full<float>(device(), 10, 1.0f);
  Tape tape;
  const auto refused = [&](auto f) {
    expect_contains(error_of([&] { tape.record(f); }), "of an array that carries gradients, while a tape records");
  };
  refused([&] { radix_sort(x); });
  refused([&] { radix_sort_pairs(x, keys); });
  refused([&] { radix_sort_pairs(keys, x); });
  refused([&] { segmented_sort(x, offsets); });
  refused([&] { segmented_sort_pairs(keys, x, offsets); });
  tape.record([&] { radix_sort_pairs(plain, keys); });
  EXPECT_EQ(tape.size(), 0u);
}

// Segments

template <class K, class V>
void check_segments(const Device& device, std::int64_t n, const std::vector<int>& offsets, Grain grain) {
  const std::vector<K> keys = make_keys<K>(n, Pattern::few);
  std::vector<V> values(keys.size());
  std::iota(values.begin(), values.end(), V(0));
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    std::stable_sort(order.begin() + offsets[s], order.begin() + offsets[s + 1],
                     [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  const Array<K> k(device, keys), alone(device, keys);
  const Array<V> v(device, values);
  const Array<int> at(device, offsets);
  segmented_sort_pairs(k, v, at, {.grain = grain});
  segmented_sort(alone, at, {.grain = grain});
  EXPECT_TRUE(same_bits(k.to_vector(), in_order(keys, order)));
  EXPECT_TRUE(v.to_vector() == in_order(values, order));
  EXPECT_TRUE(same_bits(alone.to_vector(), in_order(keys, order)));
}

TEST_P(AlgorithmsSort, segments_are_sorted_each_by_itself) {
  for (const Grain grain : grains_of(device())) {
    const std::vector<int> empty_ones_among_them = {0, 0, 7, 7, 7, 300, 301, 900, 1000};
    check_segments<std::uint32_t, std::uint32_t>(device(), 1000, empty_ones_among_them, grain);
    check_segments<float, double>(device(), 1000, empty_ones_among_them, grain);
    check_segments<double, float>(device(), 1000, {100, 200, 950}, grain);  // elements outside of the segments stay
    check_segments<std::int64_t, std::uint64_t>(device(), 500, {0, 500}, grain);
    check_segments<int, int>(device(), 500, {0}, grain);
    check_segments<int, int>(device(), 500, {}, grain);
    check_segments<int, int>(device(), 0, {0, 0, 0}, grain);
  }
  // There are more segments than one digit counts.
  std::vector<int> many;
  for (int i = 0; i <= 1200; i += 3) many.push_back(i);
  check_segments<float, int>(device(), 1200, many, Grain::automatic);
}

TEST_P(AlgorithmsSort, many_segments_are_sorted) {
  const int n = on_reference() ? 5000 : 100'000, most = on_reference() ? 1000 : 20'000;
  std::mt19937 random(9);
  // Most are short and some empty; one is long.
  std::vector<int> offsets(std::size_t(most), 0);
  for (int& x : offsets) x = int(random() % unsigned(n * 3 / 4));
  std::ranges::sort(offsets);
  offsets.push_back(n);
  for (const Grain grain : grains_of(device())) {
    check_segments<std::uint32_t, std::uint32_t>(device(), n, offsets, grain);
    check_segments<float, int>(device(), n, offsets, grain);
    check_segments<std::uint64_t, double>(device(), n, offsets, grain);
  }
}

TEST_P(AlgorithmsSort, offsets_that_make_no_sense_lose_no_key) {
  const std::vector<int> x = make_keys<int>(400, Pattern::random);
  const Array<int> keys(device(), x), offsets(device(), {300, -5, 20, 1 << 30, 100});
  segmented_sort(keys, offsets);
  std::vector<int> got = keys.to_vector(), expected = x;
  std::ranges::sort(got);
  std::ranges::sort(expected);
  EXPECT_EQ(got, expected);
}

}  // namespace
