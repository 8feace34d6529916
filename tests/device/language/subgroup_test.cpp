// Operations of subgroups, against the host, for every size of subgroup that the reference device can have.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "../subgroup_sizes.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::on_all_sizes;

namespace {

DEVICE_TEST(Subgroups);

int size_of(const Device& device) {
  Array<int> out = zeros<int>(device, 1);
  launch(kernel("size", [](Arr<int> out) { out[0] = subgroup_size(); }), 256, out);
  return out.at(0);
}

constexpr int kThreads = 512;

template <class T>
std::vector<T> run(const Device& device, const std::vector<T>& x, Var<T> (*f)(const Var<T>&)) {
  Array<T> in(device, x), out = zeros<T>(device, kThreads);
  launch(kernel("subgroup",
                [=](Arr<const T> in, Arr<T> out) {
                  Int i = tid();
                  out[i] = f(in[i]);
                }),
         kThreads, in, out);
  return out.to_vector();
}

TEST_P(Subgroups, threads_are_numbered_in_whole_subgroups) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    const int size = size_of(device);
    ASSERT_GE(size, 4);
    ASSERT_LE(size, 128);
    ASSERT_EQ(size & (size - 1), 0);
    Array<int, 2> out = zeros<int, 2>(device, {kThreads, 3});
    launch(kernel("numbers",
                  [](Arr<int, 2> out) {
                    Int i = tid();
                    out(i, 0) = subgroup_lane();
                    out(i, 1) = subgroup_id();
                    out(i, 2) = local_id();
                  }),
           kThreads, out);
    const std::vector<int> v = out.to_vector();
    for (int i = 0; i < kThreads; ++i) {
      ASSERT_EQ(v[std::size_t(3 * i)], i % size);
      ASSERT_EQ(v[std::size_t(3 * i + 1)], i % 256 / size);
      ASSERT_EQ(v[std::size_t(3 * i + 2)], i % 256);
    }
  });
}

template <class T, class F>
void check_reduction(const Device& device, Var<T> (*f)(const Var<T>&), F combine, int least = 0) {
  SCOPED_TRACE(ir::user_name(scalar_type<T>()));
  const int size = size_of(device);
  std::vector<T> x(kThreads);
  for (int k = 0; k < kThreads; ++k) x[std::size_t(k)] = T((k * 37 + k / 16) % 11 + least);
  const std::vector<T> got = run<T>(device, x, f);
  for (int first = 0; first < kThreads; first += size) {
    T expected = x[std::size_t(first)];
    for (int k = first + 1; k < first + size; ++k) expected = combine(expected, x[std::size_t(k)]);
    for (int k = first; k < first + size; ++k)
      ASSERT_EQ(double(got[std::size_t(k)]), double(expected)) << "thread " << k;
  }
}

template <class T>
void check_reductions(const Device& device) {
  check_reduction<T>(
      device, [](const Var<T>& x) { return subgroup_add(x); }, [](T a, T b) { return T(a + b); });
  check_reduction<T>(
      device, [](const Var<T>& x) { return subgroup_min(x); }, [](T a, T b) { return b < a ? b : a; });
  check_reduction<T>(
      device, [](const Var<T>& x) { return subgroup_max(x); }, [](T a, T b) { return a < b ? b : a; });
  if constexpr (IntegerScalar<T>) {
    check_reduction<T>(
        device, [](const Var<T>& x) { return subgroup_mul(x); },
        [](T a, T b) { return T(std::uint64_t(a) * std::uint64_t(b)); }, 1);
    check_reduction<T>(
        device, [](const Var<T>& x) { return subgroup_and(x); }, [](T a, T b) { return T(a & b); });
    check_reduction<T>(
        device, [](const Var<T>& x) { return subgroup_or(x); }, [](T a, T b) { return T(a | b); });
    check_reduction<T>(
        device, [](const Var<T>& x) { return subgroup_xor(x); }, [](T a, T b) { return T(a ^ b); });
  }
  // Scans.
  const int size = size_of(device);
  std::vector<T> x(kThreads);
  for (int k = 0; k < kThreads; ++k) x[std::size_t(k)] = T(k % 5);
  const std::vector<T> with = run<T>(device, x, [](const Var<T>& x) { return subgroup_inclusive_add(x); });
  const std::vector<T> without = run<T>(device, x, [](const Var<T>& x) { return subgroup_exclusive_add(x); });
  for (int first = 0; first < kThreads; first += size) {
    T sum = T(0);
    for (int k = first; k < first + size; ++k) {
      ASSERT_EQ(double(without[std::size_t(k)]), double(sum)) << k;
      sum = T(sum + x[std::size_t(k)]);
      ASSERT_EQ(double(with[std::size_t(k)]), double(sum)) << k;
    }
  }
}

TEST_P(Subgroups, reductions_and_scans_agree_with_the_host) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    check_reductions<int>(device);
    check_reductions<unsigned>(device);
    check_reductions<float>(device);
    check_reductions<double>(device);
  });
}

TEST_P(Subgroups, narrow_and_wide_types_agree_with_the_host) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    check_reductions<std::int8_t>(device);
    check_reductions<std::uint8_t>(device);
    check_reductions<std::int16_t>(device);
    check_reductions<std::uint16_t>(device);
    check_reductions<std::int64_t>(device);
    check_reductions<std::uint64_t>(device);
    check_reductions<half>(device);
  });
}

TEST_P(Subgroups, values_travel_between_lanes) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    const int size = size_of(device);
    Array<int, 2> out = zeros<int, 2>(device, {kThreads, 8});
    launch(kernel("travel",
                  [](Arr<int, 2> out, Int from) {
                    Int i = tid();
                    out(i, 0) = subgroup_broadcast(i, 3);
                    out(i, 1) = subgroup_broadcast(i, from);
                    out(i, 2) = subgroup_shuffle(i, i * 7 + 1);
                    out(i, 3) = subgroup_shuffle_xor(i, 2);
                    out(i, 4) = subgroup_shuffle_up(i, 3);
                    out(i, 5) = subgroup_shuffle_down(i, 3u);
                    out(i, 6) = subgroup_broadcast_first(i);
                    out(i, 7) = subgroup_shuffle_down(i, 1000);
                  }),
           kThreads, out, 133);
    const std::vector<int> v = out.to_vector();
    for (int i = 0; i < kThreads; ++i) {
      const int lane = i % size, first = i - lane;
      const int expected[] = {first + 3,
                              first + 133 % size,
                              first + (i * 7 + 1) % size,
                              first + (lane ^ 2),
                              lane >= 3 ? i - 3 : i,
                              lane + 3 < size ? i + 3 : i,
                              first,
                              i};
      for (int k = 0; k < 8; ++k) ASSERT_EQ(v[std::size_t(8 * i + k)], expected[k]) << "thread " << i << ", " << k;
    }
  });
}

TEST_P(Subgroups, votes_and_ballots_see_every_lane) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    const int size = size_of(device);
    Array<unsigned, 2> out = zeros<unsigned, 2>(device, {kThreads, 9});
    launch(kernel("votes",
                  [](Arr<unsigned, 2> out) {
                    Int i = tid();
                    Bool b = i % 5 == 0 || i > 400;
                    Vec<4, unsigned> ballot = subgroup_ballot(b);
                    for (int k = 0; k < 4; ++k) out(i, k) = ballot[k];
                    out(i, 4) = UInt(subgroup_any(i == 77));
                    out(i, 5) = UInt(subgroup_all(b));
                    out(i, 6) = UInt(subgroup_count(b));
                    out(i, 7) = UInt(subgroup_elect());
                    out(i, 8) = UInt(subgroup_xor(b));
                  }),
           kThreads, out);
    const std::vector<unsigned> v = out.to_vector();
    for (int i = 0; i < kThreads; ++i) {
      const int first = i / size * size;
      unsigned expected[9] = {};
      expected[5] = 1;
      for (int k = 0; k < size; ++k) {
        const bool b = (first + k) % 5 == 0 || first + k > 400;
        expected[k / 32] |= unsigned(b) << (k % 32);
        expected[4] |= unsigned(first + k == 77);
        expected[5] &= unsigned(b);
        expected[6] += b;
      }
      expected[7] = i == first;
      expected[8] = expected[6] % 2;
      for (int k = 0; k < 9; ++k) ASSERT_EQ(v[std::size_t(9 * i + k)], expected[k]) << "thread " << i << ", " << k;
    }
  });
}

TEST_P(Subgroups, vectors_and_booleans_travel_too) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    const int size = size_of(device);
    Array<vec3> out = zeros<vec3>(device, kThreads);
    Array<bool> flags = zeros<bool>(device, kThreads);
    launch(kernel("vectors",
                  [](Arr<vec3> out, Arr<bool> flags) {
                    Int i = tid();
                    Vec3 x = Vec3(Float(i), 1, Float(i % 2));
                    out[i] = subgroup_add(x) + subgroup_shuffle_xor(x, 1);
                    flags[i] = subgroup_shuffle(i % 3 == 0, i + 1);
                  }),
           kThreads, out, flags);
    for (int i = 0; i < kThreads; i += 37) {
      const int first = i / size * size, across = first + ((i - first) ^ 1);
      EXPECT_EQ(out.at(i).x, float(size * first + size * (size - 1) / 2 + across));
      EXPECT_EQ(out.at(i).y, float(size + 1));
      EXPECT_EQ(out.at(i).z, float(size / 2 + across % 2));
      EXPECT_EQ(flags.at(i), (first + (i + 1) % size) % 3 == 0);
    }
  });
}

TEST_P(Subgroups, work_in_loops_and_after_threads_have_parted) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    const int size = size_of(device);
    Array<int> out = zeros<int>(device, kThreads);
    launch(kernel("loops",
                  [](Arr<int> out) {
                    Int i = tid(), left = i % 9, rounds = 0;
                    // Threads diverge and meet again before each vote.
                    While (subgroup_any(left > 0)) {
                      If (left > 0) {
                        for (auto k : range(i % 3)) rounds += k;
                        left -= 1;
                      }
                      rounds += subgroup_add(1);
                    }
                    If (subgroup_id() == 1) {
                      rounds += 1000 * subgroup_max(i % 7);
                    }
                    out[i] = rounds;
                  }),
           kThreads, out);
    const std::vector<int> v = out.to_vector();
    for (int i = 0; i < kThreads; ++i) {
      const int first = i / size * size;
      int most = 0, seven = 0;
      for (int k = first; k < first + size; ++k) {
        most = std::max(most, k % 9);
        seven = std::max(seven, k % 7);
      }
      const int own = i % 3 == 2 ? 1 : 0;
      ASSERT_EQ(v[std::size_t(i)], size * most + own * (i % 9) + (i % 256 / size == 1 ? 1000 * seven : 0)) << i;
    }
  });
}

TEST_P(Subgroups, hand_over_memory_at_their_own_barriers) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    const int size = size_of(device);
    Array<int> out = zeros<int>(device, kThreads);
    // All threads of a subgroup read a counter before the last of them writes it; the turns differ between subgroups.
    launch(kernel("turns",
                  [](Arr<int> out) {
                    auto counters = shared<int>(256);
                    Int i = tid(), l = local_id(), seen = 0, last = subgroup_size() - 1;
                    const Int own = subgroup_id() * subgroup_size();
                    counters[l] = 0;
                    subgroup_barrier();
                    for (auto turn : range(20 + subgroup_id())) {
                      const Int at = own + turn % 4, before = counters[at];
                      seen = 31 * seen + before;
                      subgroup_barrier();
                      If (subgroup_lane() == (turn * 7) % (last + 1)) {
                        counters[at] = before + subgroup_lane() + 1;
                      }
                      subgroup_barrier();
                    }
                    out[i] = seen;
                  }),
           kThreads, out);
    const std::vector<int> v = out.to_vector();
    for (int i = 0; i < kThreads; ++i) {
      unsigned seen = 0;
      int counters[4] = {};
      for (int turn = 0; turn < 20 + i % 256 / size; ++turn) {
        seen = 31 * seen + unsigned(counters[turn % 4]);
        counters[turn % 4] += turn * 7 % size + 1;
      }
      ASSERT_EQ(v[std::size_t(i)], int(seen)) << i;
    }
  });
}

TEST_P(Subgroups, workgroups_reduce_by_subgroups_first) {
  on_all_sizes(device(), on_reference(), [](const Device& device) {
    Array<int> sums = zeros<int>(device, 4);
    launch(kernel("two_stages",
                  [](Arr<int> sums) {
                    auto parts = shared<int>(64);
                    Int sum = subgroup_add(tid());
                    If (subgroup_elect()) {
                      parts[subgroup_id()] = sum;
                    }
                    barrier();
                    If (subgroup_id() == 0) {
                      Int count = block_dim() / subgroup_size(), all = 0;
                      for (auto first : range(0, count, subgroup_size())) {
                        Int k = first + subgroup_lane(), part = 0;
                        If (k < count) {
                          part = parts[k];
                        }
                        all += subgroup_add(part);
                      }
                      If (subgroup_elect()) {
                        sums[workgroup_id()] = all;
                      }
                    }
                  }),
           1024, sums);
    for (int g = 0; g < 4; ++g) EXPECT_EQ(sums.at(g), 256 * (256 * g) + 255 * 128) << g;
  });
}

TEST_P(Subgroups, minima_and_maxima_prefer_numbers) {
  const int size = size_of(device());
  const std::vector<float> none(kThreads, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> some = none;
  for (int k = 1; k < kThreads; k += 2) some[std::size_t(k)] = float(k);
  const auto least = [](const Float& x) { return subgroup_min(x); };
  const auto most = [](const Float& x) { return subgroup_max(x); };
  const std::vector<float> minima = run<float>(device(), some, least), maxima = run<float>(device(), some, most);
  for (int k = 0; k < kThreads; ++k) {
    const int first = k / size * size;
    ASSERT_EQ(minima[std::size_t(k)], float(first + 1)) << k;
    ASSERT_EQ(maxima[std::size_t(k)], float(std::min(first + size, kThreads) - 1)) << k;
  }
  for (const float v : run<float>(device(), none, least)) ASSERT_TRUE(std::isnan(v));
  for (const float v : run<float>(device(), none, most)) ASSERT_TRUE(std::isnan(v));
}

// A reduction chooses the lane that is read next, after a branch that not all lanes take.
TEST_P(Subgroups, lanes_that_reductions_name_are_read_from) {
  const auto k = kernel("takes turns", [](Arr<int> out) {
    Int i = tid(), lane = subgroup_lane(), size = subgroup_size(), steps = 0, seen = 0;
    Bool goes_on = lane < size / 2;
    While (subgroup_any(goes_on)) {
      Int reader = subgroup_min(select(goes_on & (lane >= steps), lane, size));
      While (reader < size) {
        seen += subgroup_broadcast(lane * 3, reader);
        reader = subgroup_min(select(goes_on & (lane > reader), lane, size));
      }
      If (goes_on) {
        out[i] += seen;
        goes_on = steps < lane;
      }
      steps += 1;
    }
    out[i] += seen;
  });
  Array<int> out = zeros<int>(device(), kThreads);
  launch(k, kThreads, out);
  const std::vector<int> got = out.to_vector();
  const int size = size_of(device());
  for (int first = 0; first < kThreads; first += size) {
    std::vector<int> expected(std::size_t(size), 0);
    std::vector<bool> goes_on(std::size_t(size), false);
    for (int lane = 0; lane < size / 2; ++lane) goes_on[std::size_t(lane)] = true;
    int seen = 0;
    for (int steps = 0; std::ranges::find(goes_on, true) != goes_on.end(); ++steps) {
      for (int lane = steps; lane < size; ++lane)
        if (goes_on[std::size_t(lane)]) seen += lane * 3;
      for (int lane = 0; lane < size; ++lane)
        if (goes_on[std::size_t(lane)]) {
          expected[std::size_t(lane)] += seen;
          goes_on[std::size_t(lane)] = steps < lane;
        }
    }
    for (int lane = 0; lane < size && first + lane < kThreads; ++lane)
      ASSERT_EQ(got[std::size_t(first + lane)], expected[std::size_t(lane)] + seen) << first + lane;
  }
}

TEST_P(Subgroups, what_not_all_threads_reach_is_refused) {
  Array<int> x = zeros<int>(device(), 256);
  const int line = __LINE__ + 4;
  const std::string text = error_of([&] {
    launch(kernel("parted",
                  [](Arr<int> x) {
                    If (tid() > 3) {
                      x[tid()] = subgroup_add(1);
                    }
                  }),
           256, x);
  });
  expect_contains(text, "stands where not every thread of the subgroup may come");
  expect_contains(text, "subgroup_test.cpp:" + std::to_string(line));
  expect_contains(error_of([&] {
                    launch(kernel("lane", [](Arr<int> x) { x[tid()] = subgroup_broadcast(tid(), tid()); }), 256, x);
                  }),
                  "subgroup_shuffle() takes any");
  expect_contains(error_of([&] {
                    launch(kernel("part of it",
                                  [](Arr<int> x) {
                                    If (x[tid()] == 0) {
                                      subgroup_barrier();
                                    }
                                  }),
                           256, x);
                  }),
                  "an operation of subgroups stands where not every thread of the subgroup may come");
  // One subgroup stands alone at a barrier.
  expect_contains(error_of([&] {
                    launch(kernel("alone",
                                  [](Arr<int>) {
                                    If (subgroup_id() == 0) {
                                      barrier();
                                    }
                                  }),
                           256, x);
                  }),
                  "barrier() stands where not every thread of the workgroup may come");
  expect_contains(
      error_of([&] { launch(kernel("odd", [](Arr<int> x) { x[tid()] = subgroup_add(1); }, {.block = 130}), 130, x); }),
      "a workgroup of 130 threads is no whole number of subgroups");
}

TEST(SubgroupsOfTheReference, sizes_that_cannot_be_are_refused) {
  for (const char* size : {"2", "33", "256"}) {
    platform::set_environment("WEFT_SUBGROUP_SIZE", size);
    expect_contains(error_of([&] { Device::open("reference"); }), std::string("WEFT_SUBGROUP_SIZE is ") + size);
    platform::set_environment("WEFT_SUBGROUP_SIZE", nullptr);
  }
}

}  // namespace
