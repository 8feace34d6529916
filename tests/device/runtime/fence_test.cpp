// fence(): structures that threads build from the leaves up, without waiting for each other.
#include <numeric>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Fence);

/// Each thread starts at a leaf of a heap and climbs: at each node the first of two threads leaves, and the second one
/// adds up what both children hold.
TEST_P(Fence, the_second_of_two_threads_sees_what_both_have_written) {
  const int leaves = on_reference() ? 64 : 1 << 15, inner = leaves - 1;
  std::vector<int> host(std::size_t(inner + leaves), -1);
  std::iota(host.begin() + inner, host.end(), 5);
  const auto climb = kernel("climb", [=](Arr<int> sums, Arr<int> arrived) {
    Int node = tid() + inner;
    While (node > 0) {
      node = (node - 1) / 2;
      fence();
      If (atomic_add(arrived[node], 1) == 0) {
        Break();
      }
      fence();
      sums[node] = sums[2 * node + 1] + sums[2 * node + 2];
    }
  });
  for (int round = 0; round < 5; ++round) {
    Array<int> sums(device(), host), arrived = zeros<int>(device(), inner);
    launch(climb, leaves, sums, arrived);
    const std::vector<int> got = sums.to_vector();
    for (int i = 0; i < inner; ++i) {
      // Finds the range of leaves below the node.
      std::int64_t first = i, last = i;
      while (first < inner) first = 2 * first + 1, last = 2 * last + 2;
      std::int64_t sum = 0;
      for (std::int64_t k = first; k <= last; ++k) sum += host[std::size_t(k)];
      ASSERT_EQ(got[std::size_t(i)], int(sum)) << i;
    }
  }
}

/// Each workgroup leaves its sum by a plain store and counts itself; the last one adds all of them up.
TEST_P(Fence, the_last_workgroup_sums_what_all_have_written) {
  const int block = 64, groups = on_reference() ? 64 : 1024;
  const auto sum = kernel("last sums",
                          [=](Arr<const int> x, Arr<int> parts, Arr<int> arrived, Arr<int> out) {
                            auto s = shared<int>(block);
                            Int l = local_id(), number = 0;
                            s[l] = x[tid()];
                            barrier();
                            If (l == 0) {
                              Int part = 0;
                              for (auto k : range(block)) part += s[k];
                              parts[workgroup_id()] = part;
                              fence();
                              number = atomic_add(arrived[0], 1);
                            }
                            barrier();
                            s[l] = number;
                            barrier();
                            If (s[0] == groups - 1) {
                              fence();
                              for (auto k : range(groups / block)) atomic_add(out[0], parts[l + k * block]);
                            }
                          },
                          {.block = unsigned(block)});
  std::vector<int> host(std::size_t(block * groups));
  std::iota(host.begin(), host.end(), -7);
  const int expected = std::accumulate(host.begin(), host.end(), 0);
  Array<int> x(device(), host);
  for (int round = 0; round < (on_host() && !on_reference() ? 200 : 5); ++round) {
    Array<int> parts = full<int>(device(), groups, 1 << 20), arrived = zeros<int>(device(), 1),
               out = zeros<int>(device(), 1);
    launch(sum, block * groups, x, parts, arrived, out);
    ASSERT_EQ(out.at(0), expected) << round;
  }
}

TEST_P(Fence, has_no_adjoint) {
  Array<float> x = zeros<float>(device(), 4).requires_grad();
  Tape tape;
  expect_contains(error_of([&] {
                    tape.record([&] {
                      launch(kernel("fenced",
                                    [](Arr<float> x) {
                                      x[tid()] = x[tid()] * 2;
                                      fence();
                                    }),
                             4, x);
                    });
                    tape.backward({{x, zeros<float>(device(), 4)}});
                  }),
                  "fence has no adjoint");
}

}  // namespace
