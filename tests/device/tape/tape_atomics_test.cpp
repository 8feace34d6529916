// Gradients through atomic operations: sums, minima and maxima over threads and launches.
#include "../../../frontend/adjoint/adjoint.h"
#include "../../../runtime/tape.h"
#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(TapeAtomics);

using Floats = std::vector<float>;

TEST_P(TapeAtomics, a_maximum_has_the_gradient_of_the_value_that_was_left) {
  auto x = Array<float>(device(), {1, 5, 3, 2}).requires_grad();
  auto most = Array<float>(device(), {-100});
  const auto k = kernel("maximum", [](Arr<const float> x, Arr<float> most) { atomic_max(most[0], x[tid()] * 2.0f); });
  Tape tape;
  tape.record([&] { launch(k, 4, x, most); });
  tape.backward(most);
  EXPECT_EQ(x.grad().to_vector(), (Floats{0, 2, 0, 0}));
}

TEST_P(TapeAtomics, an_extremum_that_no_thread_passes_keeps_its_gradient) {
  auto x = Array<float>(device(), {1, 5, 3, 2}).requires_grad();
  auto least = Array<float>(device(), {0, 4}).requires_grad();
  auto sum = zeros<float>(device(), 1);
  const auto k = kernel("minimum", [](Arr<const float> x, Arr<float> least) {
    Int i = tid();
    atomic_min(least[i / 2], x[i]);
  });
  const auto add = kernel("add", [](Arr<const float> least, Arr<float> sum) {
    Int i = tid();
    atomic_add(sum[0], least[i] * Float(i + 3));
  });
  Tape tape;
  tape.record([&] {
    launch(k, 4, x, least);
    launch(add, 2, least, sum);
  });
  EXPECT_EQ(least.to_vector(), (Floats{0, 2}));
  tape.backward(sum);
  EXPECT_EQ(x.grad().to_vector(), (Floats{0, 0, 0, 4}));
  EXPECT_EQ(least.grad().to_vector(), (Floats{3, 0}));
}

TEST_P(TapeAtomics, equal_values_all_have_the_gradient_of_an_extremum) {
  auto x = Array<double>(device(), {7.0, 7.0, 3.0}).requires_grad();
  auto most = Array<double>(device(), {0.0});
  const auto k =
      kernel("maximum", [](Arr<const double> x, Arr<double> most) { atomic_max(most[0], Double(x[tid()])); });
  Tape tape;
  tape.record([&] { launch(k, 3, x, most); });
  tape.backward(most);
  EXPECT_EQ(x.grad().to_vector(), (std::vector<double>{1, 1, 0}));
}

TEST_P(TapeAtomics, sums_of_many_threads_in_loops) {
  const int n = 1000;
  auto w = full<float>(device(), 4, 2).requires_grad();
  auto x = ones<float>(device(), n).requires_grad();
  auto sum = zeros<float>(device(), 1);
  const auto k = kernel("sum", [](Arr<const float> w, Arr<const float> x, Arr<float> sum) {
    Float v = x[tid()];
    for (auto j : range(4)) atomic_add(sum[0], w[j] * v * Float(j));
  });
  Tape tape;
  tape.record([&] { launch(k, n, w, x, sum); });
  tape.backward(sum);
  EXPECT_EQ(sum.to_vector(), (Floats{12000}));
  EXPECT_EQ(w.grad().to_vector(), (Floats{0, 1000, 2000, 3000}));
  EXPECT_EQ(x.grad().to_vector(), Floats(n, 12));
}

TEST_P(TapeAtomics, an_extremum_with_a_constant_stops_the_gradient_where_it_wins) {
  auto y = Array<float>(device(), {0, 2}).requires_grad();
  const auto k = kernel("at least one", [](Arr<float> y) { atomic_max(y[tid()], 1.0f); });
  Tape tape;
  tape.record([&] { launch(k, 2, y); });
  tape.backward({{y, ones_like(y)}});
  EXPECT_EQ(y.grad().to_vector(), (Floats{0, 1}));
}

TEST_P(TapeAtomics, an_extremum_beside_other_changes_of_its_array_is_refused) {
  auto x = ones<float>(device(), 2).requires_grad();
  auto y = zeros<float>(device(), 2);
  const auto added = kernel("added", [](Arr<const float> x, Arr<float> y) {
    atomic_max(y[0], x[tid()]);
    atomic_add(y[1], x[tid()]);
  });
  const auto stored = kernel("stored", [](Arr<const float> x, Arr<float> y) {
    Int i = tid();
    y[i] = x[i];
    atomic_max(y[i], x[i] * 2.0f);
  });
  Tape tape;
  expect_contains(error_of([&] { tape.record([&] { launch(added, 2, x, y); }); }), "argument 2");
  expect_contains(error_of([&] { tape.record([&] { launch(stored, 2, x, y); }); }), "argument 2");
  auto table = zeros<float, 2>(device(), {2, 2});
  const auto most = kernel("most", [](Arr<const float> x, Arr<float> y) { atomic_max(y[tid()], x[tid()]); });
  const Array<float> column = table.transpose()[0];
  expect_contains(error_of([&] { tape.record([&] { launch(most, 2, x, column); }); }), "contiguous");
}

// Thread i adds to an element of one argument's gradient, and thread i - 1 to the same element of the other's.
TEST_P(TapeAtomics, arguments_that_share_elements_share_gradients) {
  const int n = 4096;
  const auto k = kernel("neighbours", [](Arr<const float> a, Arr<const float> b, Arr<float> y) {
    Int i = tid();
    y[i] = a[i] * b[(i + 1) % b.shape(0)];
  });
  ir::AdjointOptions options{.with_gradient = 7, .groups = {0, 0, 2}};
  const std::string adjoint = ir::print(ir::adjoint(k.trace(), options).module);
  EXPECT_EQ(adjoint.find("store f32 arg3"), std::string::npos) << adjoint;
  auto x = full<float>(device(), n, 3).requires_grad();
  auto y = zeros<float>(device(), n);
  Tape tape;
  tape.record([&] { launch(k, n, x, x, y); });
  tape.backward({{y, ones_like(y)}});
  EXPECT_EQ(x.grad().to_vector(), Floats(n, 6));
}

}  // namespace
