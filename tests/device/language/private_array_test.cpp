// Arrays that each thread has for itself: stacks, tables, in functions, and what is refused.
#include "../../../runtime/gradcheck.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(PrivateArray);

/// Counts the nodes below node i of a heap with n nodes, by a stack.
Int count_below(const Int& i, int n) {
  auto stack = private_array<int>(32);
  Int top = 0, count = 0;
  stack[top] = i;
  top += 1;
  While (top > 0) {
    top -= 1;
    Int node = stack[top];
    count += 1;
    for (int child = 1; child <= 2; ++child) {
      Int next = node * 2 + child;
      If (next < n) {
        stack[top] = next;
        top += 1;
      }
    }
  }
  return count;
}

int count_below_on_host(int i, int n) {
  return i >= n ? 0 : 1 + count_below_on_host(2 * i + 1, n) + count_below_on_host(2 * i + 2, n);
}

TEST_P(PrivateArray, a_stack_walks_a_tree) {
  constexpr int n = 300;
  Array<int> out = zeros<int>(device(), n);
  launch(kernel("walk",
                [](Arr<int> out) {
                  Int i = tid();
                  out[i] = count_below(i, n);
                }),
         n, out);
  const std::vector<int> counts = out.to_vector();
  for (int i = 0; i < n; ++i) ASSERT_EQ(counts[std::size_t(i)], count_below_on_host(i, n)) << i;
}

TEST_P(PrivateArray, a_function_that_is_called_twice_has_one) {
  constexpr int n = 100;
  auto below = func("below", [](Int i) { return count_below(i, n); });
  Array<int> out = zeros<int>(device(), n);
  launch(kernel("twice",
                [=](Arr<int> out) {
                  Int i = tid();
                  auto mine = private_array<int>(2);
                  mine[0] = below(i);
                  mine[1] = below(n - 1 - i);
                  out[i] = mine[0] * 1000 + mine[1];
                }),
         n, out);
  const std::vector<int> counts = out.to_vector();
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(counts[std::size_t(i)], count_below_on_host(i, n) * 1000 + count_below_on_host(n - 1 - i, n)) << i;
}

template <class T>
void check_reversal(const Device& device, T (*value)(int)) {
  constexpr int n = 37, depth = 9;
  std::vector<T> host;
  for (int i = 0; i < n * depth; ++i) host.push_back(value(i));
  Array<T, 2> in(device, {n, depth}, host), out = Array<T, 2>::empty(device, {n, depth});
  launch(kernel("reverse",
                [=](Arr<const T, 2> in, Arr<T, 2> out) {
                  Int i = tid();
                  auto table = private_array<T, 2>({{3, 3}});
                  for (auto k : range(depth)) table(k / 3, k % 3) = in(i, k);
                  for (auto k : range(depth)) out(i, k) = table[(depth - 1 - k) / 3][(depth - 1 - k) % 3];
                }),
         n, in, out);
  const std::vector<T> got = out.to_vector();
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < depth; ++k)
      ASSERT_EQ(got[std::size_t(i * depth + k)], host[std::size_t(i * depth + depth - 1 - k)]) << i << ", " << k;
}

TEST_P(PrivateArray, elements_are_scalars_of_any_type_vectors_and_matrices) {
  check_reversal<float>(device(), [](int i) { return float(i) * 0.5f - 20; });
  check_reversal<double>(device(), [](int i) { return i * 0.125 - 20; });
  check_reversal<std::int64_t>(device(), [](int i) { return std::int64_t(i) * -10000000000; });
  check_reversal<std::uint8_t>(device(), [](int i) { return std::uint8_t(i); });
  check_reversal<std::int16_t>(device(), [](int i) { return std::int16_t(i * 101 - 16000); });
  check_reversal<half>(device(), [](int i) { return half(float(i) / 4); });
  check_reversal<vec3>(device(), [](int i) { return vec3{float(i), float(i) + 0.5f, -float(i)}; });
  check_reversal<mat22>(device(), [](int i) { return mat22{float(i), 1, 2, -float(i)}; });
}

TEST_P(PrivateArray, each_thread_of_a_workgroup_has_its_own) {
  constexpr int block = 64, n = block * 3;
  Array<int> out = zeros<int>(device(), n);
  launch(kernel("own",
                [](Arr<int> out) {
                  Int i = tid();
                  auto mine = private_array<int>(4);
                  auto all = shared<int>(block);
                  for (auto k : range(4)) mine[k] = i * 4 + k;
                  all[local_id()] = mine[i % 4];
                  barrier();
                  out[i] = all[block - 1 - local_id()] + mine[3];
                },
                {.block = block}),
         n, out);
  const std::vector<int> got = out.to_vector();
  for (int i = 0; i < n; ++i) {
    const int other = i / block * block + block - 1 - i % block;
    ASSERT_EQ(got[std::size_t(i)], other * 4 + other % 4 + i * 4 + 3) << i;
  }
}

TEST_P(PrivateArray, has_no_adjoint_but_in_a_function_with_a_gradient_of_its_own) {
  const auto square = [](Float x) {
    auto table = private_array<float>(2);
    table[0] = x;
    table[1] = table[0] * x;
    return Float(table[1]);
  };
  Array<float> x(device(), {1.f, -3.f}), y = zeros<float>(device(), 2);
  x.requires_grad();
  y.requires_grad();
  const auto through = [&](auto f) {
    const auto k = kernel("square", [=](Arr<const float> x, Arr<float> y) { y[tid()] = f(Float(x[tid()])); });
    Tape tape;
    tape.record([&] { launch(k, 2, x, y); });
    tape.backward({{y, Array<float>(device(), {1.f, 1.f})}});
  };
  expect_contains(error_of([&] { through(square); }), "array of the thread's own");
  x.zero_grad();
  y.zero_grad();
  through(grad(func("square", square), [](Float x, Float adj) { return 2 * x * adj; }));
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{2, -6}));
}

TEST_P(PrivateArray, mistakes_are_refused) {
  Array<int> out = zeros<int>(device(), 4);
  expect_contains(error_of([&] {
                    launch(kernel("atomic",
                                  [](Arr<int> out) {
                                    auto mine = private_array<int>(4);
                                    mine[0] = 0;
                                    atomic_add(mine[0], 1);
                                    out[0] = mine[0];
                                  }),
                           4, out);
                  }),
                  "no other thread sees");
  expect_contains(error_of([&] {
                    launch(kernel("large",
                                  [](Arr<int> out) {
                                    auto mine = private_array<int>(1 << 20);
                                    mine[0] = 0;
                                    out[0] = mine[0];
                                  }),
                           4, out);
                  }),
                  "a private array of 1048576 scalars");
  if (!on_reference()) return;
  const auto reads = [&](int written) {
    return error_of([&] {
      launch(kernel("unwritten",
                    [=](Arr<int> out) {
                      auto mine = private_array<int>(4);
                      If (tid() < 2) {
                        mine[Int(written)] = 1;
                      }
                      out[tid()] = mine[1];
                    }),
             4, out);
      out.to_vector();
    });
  };
  expect_contains(reads(1), "the thread has not written there");
  expect_contains(reads(5), "index 5 of private array 1");
}

}  // namespace
