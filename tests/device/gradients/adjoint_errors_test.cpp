// Kernels without an adjoint are refused by name, with the kernel, the argument and the line.
#include "../run_adjoint.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(AdjointErrors);

/// The message of the refusal, which names this file, and the kernel's line in it when one is given.
template <class F>
std::string refusal(F body, int line = 0) {
  ir::AdjointOptions options;
  options.with_gradient = ~0ull;
  ir::Variant variant;
  variant.adjoint = true;
  const auto k = kernel("refused", body);
  const ir::Module module = k.core().trace(variant);
  try {
    ir::adjoint(module, options);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::not_differentiable) << e.what();
    EXPECT_EQ(e.kernel(), "refused");
    if (line) {
      EXPECT_EQ(e.loc().line, line) << e.what();
    }
    expect_contains(e.what(), "adjoint_errors_test.cpp");
    return e.what();
  }
  ADD_FAILURE() << "no refusal";
  return {};
}

TEST_P(AdjointErrors, barriers_and_shared_memory) {
  expect_contains(refusal([](Arr<const float> x, Arr<float> y) {
                    auto tile = shared<float>(256);
                    Int l = local_id();
                    tile[l] = x[tid()];
                    barrier();
                    y[tid()] = tile[255 - l];
                  }),
                  "shares");
}

TEST_P(AdjointErrors, atomic_exchange_of_reals) {
  const std::string message =
      refusal([](Arr<const float> x, Arr<float> y) { atomic_exchange(y[0], x[tid()]); }, __LINE__);
  expect_contains(message, "atomic_exchange");
  expect_contains(message, "argument 2");
}

TEST_P(AdjointErrors, the_value_that_an_atomic_addition_returns) {
  const std::string message = refusal(
      [](Arr<const float> x, Arr<float> y, Arr<float> z) {
        Float before = atomic_add(y[0], x[tid()]);
        z[tid()] = before * 2.0f;
      },
      __LINE__ - 3);
  expect_contains(message, "argument 2");
}

TEST_P(AdjointErrors, an_index_that_an_atomic_counter_gives) {
  const std::string message = refusal(
      [](Arr<const float> x, Arr<int> counter, Arr<float> y) {
        Int at = atomic_add(counter[0], 1);
        y[at] = x[tid()] * 2.0f;
      },
      __LINE__ - 3);
  expect_contains(message, "replay");
}

TEST_P(AdjointErrors, an_array_that_is_read_and_added_to_atomically) {
  const std::string message = refusal(
      [](Arr<const float> x, Arr<float> y) {
        atomic_add(y[0], x[tid()]);
        y[1] = y[0] * 2.0f;
      },
      __LINE__ - 2);
  expect_contains(message, "argument 2");
  expect_contains(message, "order of the threads");
}

TEST_P(AdjointErrors, an_array_in_an_element_of_another) {
  expect_contains(refusal([](Arr<const Array<float>> rows, Arr<float> y) {
                    Arr<float> row = rows[tid()];
                    y[tid()] = row[0] * 2.0f;
                  }),
                  "detach");
}

TEST_P(AdjointErrors, held_arrays_that_the_kernel_changes_and_reads) {
  const char* const message = "which value stood there is not known";
  expect_contains(refusal(
                      [](Arr<const float> x, Arr<const Array<float>> rows, Arr<float> y) {
                        Arr<float> row = rows[0];
                        row[tid()] = 10.f;
                        y[tid()] = x[tid()] * detach(Float(row[tid()]));
                      },
                      __LINE__ - 2),
                  message);
  // The stored element may also be an index, or in a row that may be the same as another.
  expect_contains(refusal([](Arr<const float> x, Arr<const Array<int>> rows, Arr<float> y) {
                    Arr<int> from = rows[0], to = rows[1];
                    atomic_add(to[tid()], 1);
                    y[tid()] = x[from[tid()]] * 2.f;
                  }),
                  message);
  const auto put = func("put", [](Arr<float> row, Int i) { row[i] = 10.f; });
  expect_contains(refusal([=](Arr<const float> x, Arr<const Array<float>> rows, Arr<float> y) {
                    Arr<float> row = rows[0];
                    put(row, tid());
                    y[tid()] = x[tid()] * detach(Float(row[tid()]));
                  }),
                  message);
  // The store may also be made under another type, or by a function that another one replaces on the way back.
  expect_contains(
      refusal([](Arr<const float> x, Arr<const Array<int>> rows, Arr<const Array<unsigned>> bits, Arr<float> y) {
        Arr<unsigned> row = bits[0];
        row[tid()] = UInt(1);
        y[tid()] = x[Int(rows[0][tid()])] * 2.f;
      }),
      message);
  const auto put_once = replay(func("put once",
                                    [](Arr<const Array<int>> rows, Int i) -> Int {
                                      rows[0][i] = 3 - i;
                                      return 3 - i;
                                    }),
                               [](Arr<const Array<int>> rows, Int i) -> Int { return rows[0][i]; });
  expect_contains(refusal([=](Arr<const float> x, Arr<const Array<int>> rows, Arr<float> y) {
                    y[tid()] = x[put_once(rows, tid())] * 2.f;
                  }),
                  message);
  const auto twice = grad(func("twice", [](Float x) -> Float { return 2.f * x; }),
                          [](Float, Float adjoint) -> Float { return 2.f * adjoint; });
  const auto put_and_get = grad(func("put and get",
                                     [](Arr<const Array<float>> rows, Int i, Float x) -> Float {
                                       Arr<float> row = rows[0];
                                       row[i] = 3.f;
                                       return x * row[i];
                                     }),
                                [](Arr<const Array<float>> rows, Int i, Float, Float adjoint) -> Float {
                                  Arr<float> row = rows[0];
                                  return adjoint * row[i];
                                });
  expect_contains(refusal([=](Arr<const float> x, Arr<const Array<float>> rows, Arr<float> y) {
                    y[tid()] = put_and_get(rows, tid(), twice(x[tid()]));
                  }),
                  message);
}

TEST_P(AdjointErrors, a_store_that_two_threads_make_to_one_element) {
  const auto k = kernel("two stores", [](Arr<const float> x, Arr<float> y) { y[tid() / 2] = x[tid()] * 2.0f; });
  AdjointLaunch launch = adjoint_launch(device(), k, 4, ones<float>(device(), 4), zeros<float>(device(), 2));
  // The report comes with a launch() of the runtime; here it suffices that there is one.
  const ir::Adjoint adjoint = ir::adjoint(launch.module(), {.with_gradient = 3});
  EXPECT_NE(adjoint.module.report_offset, 0u);
  ASSERT_EQ(adjoint.module.messages.size(), 1u);
  expect_contains(adjoint.module.messages[0].pieces[0].text, "argument 2");
}

TEST_P(AdjointErrors, nothing_when_each_thread_stores_its_own_element) {
  const auto k = kernel("own", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * 2.0f; });
  EXPECT_EQ(ir::adjoint(k.trace(), {.with_gradient = 3}).module.report_offset, 0u);
}

TEST_P(AdjointErrors, nothing_when_each_thread_stores_its_own_element_of_several_dimensions) {
  const auto two = kernel("two", [](Arr<const float, 2> x, Arr<float, 2> y) {
    auto [i, j] = tid<2>();
    y(i, j) = x(i, j) * 2.0f;
  });
  const auto three = kernel("three", [](Arr<const vec3, 3> x, Arr<vec3, 3> y) {
    auto [i, j, k] = tid<3>();
    y(k, j, i) = x(i, j, k) * 2.0f;
  });
  const auto row = kernel("row", [](Arr<const float, 2> x, Arr<float> y) {
    auto [i, j] = tid<2>();
    y[j] = x(i, j) * 2.0f;
  });
  const auto reports = [](const ir::Module& m) {
    return ir::adjoint(m, {.with_gradient = 3}).module.report_offset != 0;
  };
  EXPECT_FALSE(reports(two.trace()));
  EXPECT_FALSE(reports(three.trace()));
  EXPECT_TRUE(reports(row.trace()));
}

TEST_P(AdjointErrors, none_for_what_does_not_matter_to_gradients) {
  // A counter whose value is not used, a table of integers, and detached values are no mistakes.
  const auto k = kernel("fine", [](Arr<const float> x, Arr<int> counter, Arr<const Array<float>> rows, Arr<float> y) {
    atomic_add(counter[0], 1);
    Arr<float> row = rows[0];
    y[tid()] = x[tid()] * detach(Float(row[0]));
  });
  EXPECT_NO_THROW(ir::adjoint(k.trace(), {.with_gradient = ~0ull}));
}

}  // namespace
