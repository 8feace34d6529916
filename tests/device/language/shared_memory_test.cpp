// Threads of a workgroup that work together: shared arrays, barriers, numbers of threads, and refusals.
#include <array>
#include <cstring>
#include <limits>
#include <numeric>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(SharedMemory);

TEST_P(SharedMemory, threads_know_their_numbers) {
  for (unsigned block : {0u, 8u, 96u, 128u}) {
    const int size = block ? int(block) : 256, groups = 70;
    Array<int, 2> out = zeros<int, 2>(device(), {size * groups, 4});
    launch(kernel("numbers",
                  [](Arr<int, 2> out) {
                    Int i = tid();
                    out(i, 0) = local_id();
                    out(i, 1) = workgroup_id();
                    out(i, 2) = block_dim();
                    out(i, 3) = workgroup_count();
                  },
                  {.block = block}),
           size * groups, out);
    const std::vector<int> v = out.to_vector();
    for (int i = 0; i < size * groups; ++i) {
      ASSERT_EQ(v[std::size_t(4 * i)], i % size) << i;
      ASSERT_EQ(v[std::size_t(4 * i + 1)], i / size) << i;
      ASSERT_EQ(v[std::size_t(4 * i + 2)], size);
      ASSERT_EQ(v[std::size_t(4 * i + 3)], groups);
    }
  }
}

TEST_P(SharedMemory, numbers_hold_beyond_one_row_of_workgroups) {
  // The groups are more than one dimension of a launch takes.
  const int groups = 65535 + 3, block = 4;
  Array<int> sums = zeros<int>(device(), groups);
  launch(kernel("rows",
                [=](Arr<int> sums) {
                  auto s = shared<int>(block);
                  s[local_id()] = tid();
                  barrier();
                  If (local_id() == 0) {
                    for (auto k : range(block)) sums[workgroup_id()] += s[k];
                  }
                },
                {.block = unsigned(block)}),
         std::int64_t(groups) * block, sums);
  const std::vector<int> v = sums.to_vector();
  for (int g = 0; g < groups; ++g) ASSERT_EQ(v[std::size_t(g)], block * block * g + 6) << g;
}

// Arrays of the thread's own, atomic operations, loops and branches that depend on what was read.
TEST_P(SharedMemory, workgroups_of_one_thread_do_one_thing_after_another) {
  const int groups = 37, each = 50;
  std::vector<unsigned> keys(groups * each);
  for (std::size_t k = 0; k < keys.size(); ++k) keys[k] = unsigned(k * 2654435761u >> 7);
  Array<unsigned> x(device(), keys), last = full<unsigned>(device(), groups, 7u);
  Array<int> found = zeros<int>(device(), groups * 16), total = zeros<int>(device(), 2);
  Array<vec2> pairs = zeros<vec2>(device(), groups);
  launch(kernel("sorts_alone",
                [each](Arr<const unsigned> x, Arr<unsigned> last, Arr<int> found, Arr<int> total, Arr<vec2> pairs) {
                  Int g = workgroup_id();
                  auto counts = private_array<int>(16);
                  auto sums = private_array<vec2>(2);
                  for (int k = 0; k < 16; ++k) counts[k] = 0;
                  sums[0] = Vec2(0, 0);
                  sums[1] = Vec2(1, 2);
                  for (auto i : range(g * each, (g + 1) * each)) {
                    UInt before = atomic_exchange(last[g], x[i]);
                    Int k = Int(before & 15u);
                    counts[k] += 1;
                    If (before > x[i]) {
                      sums[k & 1] += Vec2(Float(k), 1);
                    }
                  }
                  Int seen = 0;
                  for (auto k : range(16)) {
                    If (counts[k] == 0) {
                      Continue();
                    }
                    found[g * 16 + seen] = k * 100 + counts[k];
                    seen += 1;
                  }
                  atomic_max(total[0], atomic_add(total[1], seen));
                  atomic_cas(last[g], x[(g + 1) * each - 1], 99u);
                  pairs[g] = sums[seen & 1];
                },
                {.block = 1}),
         groups, x, last, found, total, pairs);
  std::vector<int> expected(groups * 16);
  std::vector<vec2> expected_pairs(groups);
  int all = 0;
  for (int g = 0; g < groups; ++g) {
    unsigned before = 7;
    std::array<int, 16> counts{};
    vec2 sums[] = {vec2(0, 0), vec2(1, 2)};
    for (int i = g * each; i < (g + 1) * each; ++i) {
      const unsigned k = before & 15u;
      ++counts[k];
      if (before > keys[std::size_t(i)]) sums[k & 1u] += vec2(float(k), 1);
      before = keys[std::size_t(i)];
    }
    int seen = 0;
    for (int k = 0; k < 16; ++k)
      if (counts[std::size_t(k)]) expected[std::size_t(g * 16 + seen++)] = k * 100 + counts[std::size_t(k)];
    expected_pairs[std::size_t(g)] = sums[seen & 1];
    all += seen;
  }
  EXPECT_EQ(found.to_vector(), expected);
  EXPECT_EQ(last.to_vector(), std::vector<unsigned>(groups, 99u));
  EXPECT_EQ(total.at(1), all);
  EXPECT_GE(total.at(0), all - 16) << "the sum before the last group";
  EXPECT_EQ(pairs.to_vector(), expected_pairs);
}

TEST_P(SharedMemory, a_tree_of_sums_reduces_a_workgroup) {
  const int block = 128, groups = 9, n = block * groups - 50;
  std::vector<int> host(static_cast<std::size_t>(n));
  std::iota(host.begin(), host.end(), 3);
  Array<int> x(device(), host), sums = zeros<int>(device(), groups);
  launch(kernel("tree",
                [=](Arr<const int> x, Arr<int> sums) {
                  Int i = tid(), l = local_id();
                  auto s = shared<int>(block);
                  s[l] = 0;
                  If (i < x.shape(0)) {
                    s[l] = x[i];
                  }
                  barrier();
                  Int step = block / 2;
                  While (step > 0) {
                    If (l < step) {
                      s[l] += s[l + step];
                    }
                    barrier();
                    step /= 2;
                  }
                  If (l == 0) {
                    sums[workgroup_id()] = s[0];
                  }
                },
                {.block = unsigned(block)}),
         block * groups, x, sums);
  for (int g = 0; g < groups; ++g) {
    int expected = 0;
    for (int k = g * block; k < std::min(n, (g + 1) * block); ++k) expected += host[std::size_t(k)];
    EXPECT_EQ(sums.at(g), expected) << g;
  }
}

template <class T>
void check_transpose(const Device& device, T (*value)(int)) {
  constexpr int tile = 16, rows = 48, columns = 32;
  std::array<T, rows * columns> host;
  for (int k = 0; k < rows * columns; ++k) host[std::size_t(k)] = value(k);
  Array<T, 2> in(device, {rows, columns}, host), out = zeros<T, 2>(device, {columns, rows});
  launch(kernel("transpose",
                [](Arr<const T, 2> in, Arr<T, 2> out) {
                  Int column = local_id() % tile, row = local_id() / tile;
                  Int across = in.shape(1) / tile, tile_row = workgroup_id() / across,
                      tile_column = workgroup_id() % across;
                  auto s = shared<T, 2>({tile, tile + 1});
                  s(row, column) = in(tile_row * tile + row, tile_column * tile + column);
                  barrier();
                  out(tile_column * tile + row, tile_row * tile + column) = s[column][row];
                },
                {.block = tile * tile}),
         rows * columns, in, out);
  const std::vector<T> result = out.to_vector();
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const T got = result[std::size_t(j * rows + i)], expected = host[std::size_t(i * columns + j)];
      ASSERT_EQ(std::memcmp(&got, &expected, sizeof(T)), 0) << i << ", " << j;
    }
}

TEST_P(SharedMemory, tiles_are_transposed_whatever_they_hold) {
  check_transpose<float>(device(), [](int k) { return float(k) * 0.5f; });
  check_transpose<vec3>(device(), [](int k) { return vec3(float(k), 1, -float(k)); });
  check_transpose<std::int8_t>(device(), [](int k) { return std::int8_t(k); });
  check_transpose<std::uint16_t>(device(), [](int k) { return std::uint16_t(k * 3); });
  check_transpose<half>(device(), [](int k) { return half(float(k)); });
  check_transpose<double>(device(), [](int k) { return k / 3.0; });
  check_transpose<std::int64_t>(device(), [](int k) { return std::int64_t(k) << 33; });
  check_transpose<bool>(device(), [](int k) { return k % 3 == 0; });
  check_transpose<mat22>(device(), [](int k) { return mat22(float(k), 1, 2, float(-k)); });
}

TEST_P(SharedMemory, tiled_products_of_matrices_agree_with_the_sum) {
  constexpr int n = 48, tile = 8;
  std::vector<float> a(n * n), b(n * n);
  for (int k = 0; k < n * n; ++k) {
    a[std::size_t(k)] = float(k % 7) - 3;
    b[std::size_t(k)] = float(k % 5) - 2;
  }
  Array<float, 2> left(device(), {n, n}, a), right(device(), {n, n}, b), out = zeros<float, 2>(device(), {n, n});
  launch(kernel("multiply",
                [](Arr<const float, 2> a, Arr<const float, 2> b, Arr<float, 2> out) {
                  Int across = a.shape(1) / tile;
                  Int row = local_id() / tile, column = local_id() % tile;
                  Int i = workgroup_id() / across * tile + row, j = workgroup_id() % across * tile + column;
                  auto s = shared<float, 2>({tile, tile}), t = shared<float, 2>({tile, tile});
                  Float sum = 0;
                  for (auto k : range(across)) {
                    s(row, column) = a(i, k * tile + column);
                    t(row, column) = b(k * tile + row, j);
                    barrier();
                    for (int m = 0; m < tile; ++m) sum += s(row, m) * t(m, column);
                    barrier();
                  }
                  out(i, j) = sum;
                },
                {.block = tile * tile}),
         n * n, left, right, out);
  const std::vector<float> result = out.to_vector();
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float expected = 0;
      for (int k = 0; k < n; ++k) expected += a[std::size_t(i * n + k)] * b[std::size_t(k * n + j)];
      ASSERT_EQ(result[std::size_t(i * n + j)], expected) << i << ", " << j;
    }
}

TEST_P(SharedMemory, a_barrier_orders_memory_of_the_device_too) {
  const int block = 64, groups = 20;
  Array<int> x = zeros<int>(device(), block * groups), out = zeros<int>(device(), block * groups);
  launch(kernel("handover",
                [=](Arr<int> x, Arr<int> out) {
                  Int i = tid(), first = workgroup_id() * block_dim();
                  for (auto round : range(4)) {
                    x[i] = i * 10 + round;
                    barrier();
                    out[i] += x[first + (local_id() + 17) % block];
                    barrier();
                  }
                },
                {.block = unsigned(block)}),
         block * groups, x, out);
  const std::vector<int> v = out.to_vector();
  for (int i = 0; i < block * groups; ++i) {
    const int other = i / block * block + (i % block + 17) % block;
    ASSERT_EQ(v[std::size_t(i)], 4 * 10 * other + 6) << i;
  }
}

TEST_P(SharedMemory, histograms_gather_in_the_workgroup_first) {
  const int block = 64, groups = on_reference() ? 10 : 100;
  Array<int> counts = zeros<int>(device(), 16);
  launch(kernel("histogram",
                [](Arr<int> counts) {
                  Int i = tid(), l = local_id();
                  auto bins = shared<int>(16);
                  If (l < 16) {
                    bins[l] = 0;
                  }
                  barrier();
                  atomic_add(bins[i * i % 16], 1);
                  barrier();
                  If (l < 16) {
                    atomic_add(counts[l], bins[l]);
                  }
                },
                {.block = unsigned(block)}),
         block * groups, counts);
  std::vector<int> expected(16);
  for (int i = 0; i < block * groups; ++i) ++expected[std::size_t(i * i % 16)];
  EXPECT_EQ(counts.to_vector(), expected);
}

TEST_P(SharedMemory, functions_take_part_in_what_threads_do_together) {
  auto sum_of_group = func("sum_of_group", [](Int x) {
    auto s = shared<int>(256);
    s[local_id()] = x;
    barrier();
    Int sum = 0;
    for (auto k : range(block_dim())) sum += s[k];
    return sum;
  });
  auto count = func("count", [](Arr<int> counts, Int k) { return atomic_max(counts[k % 3], k); });
  Array<int> out = zeros<int>(device(), 512), most = zeros<int>(device(), 3);
  launch(kernel("calls",
                [=](Arr<int> out, Arr<int> most) {
                  Int i = tid();
                  Int before = count(most, i);
                  out[i] = sum_of_group(i) + sum_of_group(select(before < 512, 1, 0));
                }),
         512, out, most);
  for (int g = 0; g < 2; ++g) EXPECT_EQ(out.at(300 * g), 256 * 256 * g + 255 * 128 + 256) << g;
  EXPECT_EQ(most.to_vector(), (std::vector<int>{510, 511, 509}));
}

TEST_P(SharedMemory, components_are_chosen_by_traced_indices) {
  // Thread i writes one component of each of its elements, and reads its neighbour's.
  const int n = 256;
  Array<vec3> v = zeros<vec3>(device(), n);
  Array<mat33> m = zeros<mat33>(device(), n);
  Array<float> read = zeros<float>(device(), n), added = zeros<float>(device(), n);
  auto k = kernel("components",
                  [](Arr<vec3> v, Arr<mat33> m, Arr<float> read, Arr<float> added) {
                    Int i = local_id(), row = i % 3, column = i / 3 % 3;
                    auto sv = shared<vec3>(256);
                    auto sm = shared<mat33, 2>({16, 16});
                    sv[i] = vec3{1, 2, 3};
                    sm(i / 16, i % 16) = mat33{};
                    sv[i][row] = 5.f;
                    sm(i / 16, i % 16)(row, column) = Float(i + 1);
                    sm(i / 16, i % 16).row(row)[(column + 1) % 3] += 0.5f;
                    atomic_add(sv[i][column], 10.f);
                    barrier();
                    v[i] = sv[i];
                    m[i] = sm(i / 16, i % 16);
                    Int j = 255 - i;
                    read[i] = sm(j / 16, j % 16)(j % 3, j / 3 % 3);
                    added[i] = sv[j][j % 3];
                  },
                  {.block = 256});
  launch(k, n, v, m, read, added);
  const std::vector<vec3> vs = v.to_vector();
  const std::vector<mat33> ms = m.to_vector();
  auto expected_vector = [](int i) {
    vec3 e{1, 2, 3};
    e[i % 3] = 5;
    e[i / 3 % 3] += 10;
    return e;
  };
  for (int i = 0; i < n; ++i) {
    const int row = i % 3, column = i / 3 % 3, j = n - 1 - i;
    mat33 e{};
    e(row, column) = float(i + 1);
    e(row, (column + 1) % 3) += 0.5f;
    for (int a = 0; a < 3; ++a) {
      EXPECT_EQ(vs[std::size_t(i)][a], expected_vector(i)[a]) << i;
      for (int b = 0; b < 3; ++b) EXPECT_EQ(ms[std::size_t(i)](a, b), e(a, b)) << i;
    }
    EXPECT_EQ(read.at(i), float(j + 1)) << i;
    EXPECT_EQ(added.at(i), expected_vector(j)[j % 3]) << i;
  }
}

// ---- Failures

TEST_P(SharedMemory, threads_that_fail_keep_no_one_waiting) {
  const KernelOptions checked{.block = 64, .debug = true};
  Array<int> x = zeros<int>(device(), 128);
  const int line = __LINE__ + 5;
  auto outside = kernel(
      "outside",
      [](Arr<int> x, Int at, Int spin) {
        auto s = shared<int>(64);
        s[local_id() + at] = tid();
        If (local_id() == 0 && at > 0) {
          s[0] = -1;
        }
        barrier();
        for (auto k : range(64)) {
          If (s[k] >= 0) {
            x[tid()] += 1;
          }
        }
        While (spin > 0 && x[tid()] <= 64) {
          x[tid() + 1000] = 1;
        }  // the loop ends, because its threads do not meet
        barrier();
        x[tid()] += 1000;
      },
      checked);
  launch(outside, 128, x, 0, 0);
  EXPECT_EQ(x.to_vector(), std::vector<int>(128, 1064));
  x.zero();
  launch(outside, 128, x, 1, 0);
  const std::string text = error_of([&] { x.to_vector(); });
  expect_contains(text, "thread 63: index 64 is outside dimension 0 of shared array 1, which has 64 elements");
  expect_contains(text, "shared_memory_test.cpp:" + std::to_string(line));
  EXPECT_EQ(x.to_vector(), std::vector<int>(128, 1063));
  x.zero();
  launch(outside, 128, x, 0, 1);
  expect_contains(error_of([&] { x.to_vector(); }),
                  "thread 0: index 1000 is outside dimension 0 of argument 1, which has 128");
  EXPECT_EQ(x.to_vector(), std::vector<int>(128, 1064)) << "all left the loop and met at the second barrier";

  auto asserted = kernel("asserted", [](Arr<int> x) {
    Int i = tid();
    for (auto k : range(3)) {
      assert_(i != 77 || k != 1, "thread", i, "gives up");
      barrier();
      x[i] = 5 * k;
    }
  });
  Array<int> y = zeros<int>(device(), 256);
  launch(asserted, 256, y);
  expect_contains(error_of([&] { y.to_vector(); }), "thread 77 gives up");
  EXPECT_EQ(y.to_vector(), std::vector<int>(256, 10));
}

// ---- Refusals

template <class F>
std::string refusal(const Device& device, F body, int threads = 256) {
  Array<int> x = zeros<int>(device, 1024);
  return error_of([&] { launch(kernel("refused", body), threads, x); });
}

TEST_P(SharedMemory, barriers_that_not_all_threads_reach_are_refused) {
  const int first = __LINE__;
  const std::string under_if = refusal(device(), [](Arr<int>) {
    If (tid() > 3) {
      barrier();
    }
  });
  expect_contains(under_if, "kernel \"refused\"");
  expect_contains(under_if, "barrier() stands where not every thread of the workgroup may come");
  expect_contains(under_if, "shared_memory_test.cpp:" + std::to_string(first + 2));
  const auto refused = [&](auto body) { expect_contains(refusal(device(), body), "barrier() stands where not every"); };
  refused([](Arr<int> x) {
    If (x[0] > 0) {
      barrier();
    }  // the element may differ by the time a thread reads it
  });
  refused([](Arr<int>) {
    If (local_id() > 3) {
      Return();
    }
    barrier();
  });
  refused([](Arr<int> x) {
    for (auto k : range(local_id())) {
      x[k] = 1;
      barrier();
    }
  });
  refused([](Arr<int>) {
    for (auto k : range(8)) {
      barrier();
      If (tid() == k) {
        Break();
      }
    }
  });
  refused([](Arr<int>) {
    for (auto k : range(8)) {
      If (tid() == k) {
        Continue();
      }
      barrier();
    }
  });
  refused([](Arr<int>) {
    Int n = 3;
    If (tid() == 0) {
      n = 4;
    }
    While (n > 0) {
      barrier();
      n -= 1;
    }
  });
  refused([](Arr<int> x) {
    for (auto k : range(3)) {
      for (auto j : range(3)) {
        If (tid() == 5) {
          Return();
        }
        x[j] = k;
      }
      barrier();
    }
  });
}

TEST_P(SharedMemory, barriers_under_what_all_threads_share_are_taken) {
  Array<int> x = zeros<int>(device(), 512);
  launch(kernel("taken",
                [](Arr<int> x, Int n) {
                  Int i = tid();
                  If (n > 2) {
                    barrier();
                  }
                  If (workgroup_id() == 1) {
                    barrier();
                  }
                  for (auto k : range(n)) {
                    If (i % 2 == 0) {
                      x[i] += k;
                    }
                    If (k == 3) {
                      Break();
                    }
                    barrier();
                    If (i % 3 == 0) {
                      Continue();
                    }
                    x[i] += 10;
                  }
                  for (auto k : range(i % 4)) x[i] += 100 * (k + 1);
                  If (x.shape(0) > 5) {
                    barrier();
                  }
                  While (n > 100) {
                    Return();
                  }
                  barrier();
                }),
         512, x, 5);
  const std::vector<int> v = x.to_vector();
  for (int i = 0; i < 512; ++i) {
    int expected = (i % 2 == 0 ? 0 + 1 + 2 + 3 : 0) + (i % 3 != 0 ? 30 : 0);
    for (int k = 0; k < i % 4; ++k) expected += 100 * (k + 1);
    ASSERT_EQ(v[std::size_t(i)], expected) << i;
  }
}

TEST_P(SharedMemory, launches_over_parts_of_workgroups_are_refused) {
  const std::string text = refusal(
      device(), [](Arr<int>) { barrier(); }, 300);
  expect_contains(text, "workgroups of 256, and 300 threads");
  expect_contains(text, "launch 512");
  expect_contains(text, "kernel \"refused\"");
}

TEST_P(SharedMemory, more_shared_memory_than_there_is_is_refused) {
  const int line = __LINE__ + 2;
  const std::string text = refusal(device(), [](Arr<int> x) {
    auto s = shared<vec3>(1 << 20);
    s[tid()] = Vec3(1);
    barrier();
    x[0] = Int(s[1].x);
  });
  expect_contains(text, std::to_string(12 << 20) + " bytes of shared memory");
  expect_contains(text, "shared_memory_test.cpp:" + std::to_string(line));
  expect_contains(refusal(device(), [](Arr<int>) { shared<int>(0); }), "dimension 0 of a shared array has 0 elements");
  expect_contains(refusal(device(),
                          [](Arr<int>) {
                            shared<double, 3>({2000, 2000, 2000});
                          }),
                  "a shared array of 8000000000 scalars; 268435456 are possible");
  constexpr int kMost = std::numeric_limits<int>::max();
  expect_contains(refusal(device(), [](Arr<int>) { shared<float>(kMost); }), "a shared array of 2147483647 scalars");
  expect_contains(refusal(device(), [](Arr<int>) { shared<vec3>(kMost); }), "a shared array of 6442450941 scalars");
  expect_contains(refusal(device(),
                          [](Arr<int>) {
                            shared<float, 3>({kMost, kMost, kMost});
                          }),
                  "a shared array of 2^63 scalars or more");
  expect_contains(refusal(device(), [](Arr<int>) { private_array<float>(kMost); }),
                  "a private array of 2147483647 scalars; 16384 are possible");
}

TEST_P(SharedMemory, larger_workgroups_than_there_are_are_refused_where_it_matters) {
  Array<int> x = zeros<int>(device(), 4);
  auto plain = kernel("plain", [](Arr<int> x) { x[tid()] = 1; }, {.block = 1u << 20});
  launch(plain, 4, x);
  EXPECT_EQ(x.to_vector(), (std::vector<int>{1, 1, 1, 1}));
  auto grouped = kernel("grouped", [](Arr<int> x) { x[tid()] = block_dim(); }, {.block = 1u << 20});
  expect_contains(error_of([&] { launch(grouped, 4, x); }), "asks for workgroups of 1048576 threads");
}

TEST(SharedMemoryOfTheReference, what_no_thread_has_written_is_not_read) {
  const Device device("reference");
  const std::string text = refusal(device, [](Arr<int> x) {
    auto s = shared<int>(256);
    If (tid() != 77) {
      s[tid()] = 1;
    }
    barrier();
    x[tid()] = s[255 - tid()];
  });
  expect_contains(text, "no thread of the workgroup has written there");
  expect_contains(text, "thread 178 reads 4 bytes");
  expect_contains(text, "index 77 of shared array 1");
  expect_contains(refusal(device,
                          [](Arr<int>) {
                            auto s = shared<int>(16);
                            s[tid()] = 1;
                          }),
                  "index 16 of shared array 1");
  // Shared memory does not carry over from one workgroup to the next.
  expect_contains(refusal(
                      device,
                      [](Arr<int> x) {
                        auto s = shared<int>(256);
                        If (workgroup_id() == 0) {
                          s[local_id()] = 1;
                        }
                        barrier();
                        x[tid()] = s[local_id()];
                      },
                      512),
                  "thread 256 reads");
}

}  // namespace
