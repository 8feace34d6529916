// Derivatives that the user gives inside kernels: gradient functions, replays, detached values.
#include <cmath>
#include <numeric>

#include "../run_adjoint.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(CustomGradient);

using Values = std::vector<double>;

void expect_near(const Values& found, const Values& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

/// exp(x) with a wrong derivative, so that it can be told from the real one: ten times that.
auto exp10x() {
  return grad(func("exp", [](Double x) -> Double { return exp(x); }),
              [](Double x, Double d) -> Double { return 10.0 * d * exp(x); });
}

TEST_P(CustomGradient, stands_for_the_derived_one) {
  const auto root = func("root", [](Double x) -> Double { return sqrt(x); });
  const auto limited =
      grad(root, [](Double x, Double d) -> Double { return select(x > 0.0, min(d / (2.0 * sqrt(x)), 0.4), 7.0); });
  const auto k = kernel("roots", [=](Arr<const double> x, Arr<double> y, Arr<double> z) {
    Int i = tid();
    y[i] = limited(x[i]);
    z[i] = root(x[i]);  // with its own derivative, as before
  });
  AdjointLaunch launch = adjoint_launch(device(), k, 3, Array<double>(device(), Values{0, 4, 9}),
                                        zeros<double>(device(), 3), zeros<double>(device(), 3));
  launch.gradient<double>(1).assign(Values{1, 1, 3});
  launch.backward();
  expect_near(launch.gradient<double>(0).to_vector(), {7, 0.25, 0.4});
  launch.gradient<double>(0).assign(Values{0, 0, 0});
  launch.gradient<double>(1).assign(Values{0, 0, 0});
  launch.gradient<double>(2).assign(Values{0, 1, 3});
  launch.backward();
  expect_near({launch.gradient<double>(0).at(1), launch.gradient<double>(0).at(2)}, {0.25, 0.5});
}

TEST_P(CustomGradient, is_called_in_branches_and_loops_that_carry) {
  // v <- exp(v) - 1 where v < 1, else v / 2; the gradient function's derivative of exp is ten times the real one.
  const auto k = kernel("carried", [f = exp10x()](Arr<const double> x, Arr<double> y, Int n) {
    Int i = tid();
    Double v = x[i];
    for (auto j : range(n)) {
      If (v < 1.0) v = f(v) - 1.0;
      Else v = v / 2.0;
      If (Int(j) == 100) Break();
    }
    y[i] = v * v;
  });
  const Values x{0.1, 0.4, 0.9, 2.5, -1};
  for (std::uint32_t slots : {1u, 2u, 64u}) {
    AdjointLaunch launch = adjoint_launch(device(), k, 5, Array<double>(device(), x), zeros<double>(device(), 5), 6);
    launch.gradient<double>(1).assign(Values(5, 1));
    launch.backward(slots, 8);
    Values expected;
    for (double v : x) {
      double d = 1;
      for (int j = 0; j < 6; ++j) {
        d *= v < 1 ? 10 * std::exp(v) : 0.5;
        v = v < 1 ? std::exp(v) - 1 : v / 2;
      }
      expected.push_back(2 * v * d);
    }
    expect_near(launch.gradient<double>(0).to_vector(), expected);
  }
}

template <template <class> class F>
struct BodyS {
  F<vec3d> at;
  F<int> kind;
  F<double> mass;
};
using Body = BodyS<Host>;

TEST_P(CustomGradient, takes_vectors_structs_and_integers) {
  const auto f = grad(func("weigh", [](Var<Body> b, Int n,
                                       Quatd q) { return std::tuple(b.at * b.mass, n + b.kind, q.w * Double(n), b); }),
                      [](Var<Body> b, Int n, Quatd q, Vec3d scaled, Double w, Var<Body> same) {
                        Var<Body> g;
                        g.at = scaled * b.mass + same.at;
                        g.mass = dot(scaled, b.at) + same.mass;
                        g.kind = 77;  // has no gradient
                        return std::pair(g, Quatd(0, 0, q.z, w * Double(n)));
                      });
  const auto k = kernel("weigh_all", [=](Arr<const Body> b, Arr<const double> w, Arr<double> y) {
    Int i = tid();
    auto [scaled, number, turned, same] = f(b[i], 3, Quatd(0.0, 0.0, w[i], w[i]));
    y[i] = scaled.x + 2.0 * scaled.z + turned + 5.0 * same.mass + same.at.y + Double(number);
  });
  const std::vector<Body> bodies{{{1, 2, 3}, 4, 5}, {{6, 7, 8}, 9, 10}};
  AdjointLaunch launch = adjoint_launch(device(), k, 2, Array<Body>(device(), bodies),
                                        Array<double>(device(), Values{0.5, 2}), zeros<double>(device(), 2));
  launch.gradient<double>(2).assign(Values{1, 1});
  launch.backward();
  const std::vector<Body> g = launch.gradient<Body>(0).to_vector();
  for (std::size_t i = 0; i < 2; ++i) {
    expect_near({g[i].at.x, g[i].at.y, g[i].at.z, g[i].mass},
                {bodies[i].mass, 1, 2 * bodies[i].mass, bodies[i].at.x + 2 * bodies[i].at.z + 5});
    EXPECT_EQ(g[i].kind, 0);
  }
  expect_near(launch.gradient<double>(1).to_vector(), {0.5 + 3, 2 + 3});
}

TEST_P(CustomGradient, adds_to_the_gradients_of_arrays) {
  // Many threads read few elements, so each addition is atomic.
  const auto square = grad(func("square", [](Arr<const double> x, Int i) -> Double { return x[i] * x[i]; }),
                           [](Arr<const double> x, Int i, Double d) {
                             gradient(x)[i] += 2.0 * d * x[i];
                             gradient(x)[0] -= d;
                           });
  const auto k = kernel("squares", [=](Arr<const double> x, Arr<const double, 2> rows, Arr<double> y) {
    Int i = tid();
    y[i] = square(x, i % 3) + square(rows[1], i % 2) + 2.0 * square(x.slice(1, 3), 1);
  });
  const int n = 120;
  Array<double> x(device(), Values{2, 3, 5});
  Array<double, 2> rows(device(), {2, 2}, Values{1, 7, 11, 13});
  AdjointLaunch launch = adjoint_launch(device(), k, n, x, rows, zeros<double>(device(), n));
  launch.gradient<double>(2).assign(Values(n, 1));
  launch.backward();
  expect_near(launch.gradient<double>(0).to_vector(), {40 * 4 - n, 40 * 6 - 2 * n, 40 * 10 + 2 * n * 10});
  const Array<double, 2> g = launch.gradient<double, 2>(1);
  expect_near({g.at(0, 0), g.at(0, 1), g.at(1, 0), g.at(1, 1)}, {0, 0, 60 * 22 - n, 60 * 26});
}

TEST_P(CustomGradient, of_an_array_without_gradient_is_nothing) {
  const auto f = grad(func("f", [](Arr<const double> t, Double x) -> Double { return t[0] * x; }),
                      [](Arr<const double> t, Double x, Double d) -> Double {
                        gradient(t)[0] += d * x;
                        gradient(t).slice(1, 2)[0] = 4.0;
                        return d * t[0] + gradient(t)[0];
                      });
  const auto k = kernel("k", [=](Arr<const double> t, Arr<const double> x, Arr<double> y) {
    Int i = tid();
    y[i] = f(t, x[i]);
  });
  AdjointLaunch launch = adjoint_launch(device(), k, 2, Array<double>(device(), Values{3, 0}),
                                        Array<double>(device(), Values{1, 2}), zeros<double>(device(), 2));
  launch.with_gradient = 0b110;
  launch.gradient<double>(2).assign(Values{1, 1});
  launch.backward();
  expect_near(launch.gradient<double>(1).to_vector(), {3, 3});
  expect_near(launch.gradient<double>(0).to_vector(), {0, 0});
}

TEST_P(CustomGradient, may_call_the_function_and_others) {
  const auto twice = func("twice", [](auto x) { return x * 2; });
  const auto plain = func("plain", [=](Double x) -> Double { return twice(exp(x)); });
  const auto f = grad(plain, [=](Double x, Double d) -> Double { return d * plain(x) + twice(d); });
  const auto outer = func("outer", [=](Double x) -> Double { return f(x) * f(x + 1.0); });
  const auto k = kernel("k", [=](Arr<const double> x, Arr<double> y) { y[tid()] = outer(x[tid()]); });
  AdjointLaunch launch =
      adjoint_launch(device(), k, 1, Array<double>(device(), Values{0.3}), zeros<double>(device(), 1));
  launch.gradient<double>(1).assign(Values{1});
  launch.backward();
  const double a = 2 * std::exp(0.3), b = 2 * std::exp(1.3);
  expect_near(launch.gradient<double>(0).to_vector(), {(a + 2) * b + a * (b + 2)});
}

TEST_P(CustomGradient, of_a_generic_function) {
  const auto f = grad(func("cube", [](auto x) { return x * x * x; }), [](auto x, auto d) { return d * x * x * 30; });
  const auto k = kernel("k", [=](Arr<const double> x, Arr<const vec3> v, Arr<double> y, Arr<vec3> w) {
    Int i = tid();
    y[i] = f(x[i]);
    w[i] = Vec3(f(v[i].x), f(v[i].y), 0.f);
  });
  AdjointLaunch launch = adjoint_launch(device(), k, 1, Array<double>(device(), Values{3}),
                                        Array<vec3>(device(), std::vector<vec3>{{1, 2, 3}}), zeros<double>(device(), 1),
                                        zeros<vec3>(device(), 1));
  launch.gradient<double>(2).assign(Values{1});
  launch.gradient<vec3>(3).assign(std::vector<vec3>{{1, 1, 1}});
  launch.backward();
  expect_near(launch.gradient<double>(0).to_vector(), {270});
  const vec3 g = launch.gradient<vec3>(1).at(0);
  expect_near({g.x, g.y, g.z}, {30, 120, 0});
}

TEST_P(CustomGradient, sees_arrays_as_the_call_saw_them) {
  // f reads elements that the kernel has stored before and overwrites afterwards.
  const auto f = grad(func("f", [](Arr<const double> b, Int i, Double x) -> Double { return b[i] * x; }),
                      [](Arr<const double> b, Int i, Double x, Double d) -> Double {
                        gradient(b)[i] += d * x;
                        return d * b[i];
                      });
  const auto k = kernel("k", [=](Arr<const double> x, Arr<double> b, Arr<double> y, Int n) {
    Int i = tid();
    Double s = 0.0;
    for (auto j : range(n)) {
      b[i] = b[i] * x[i] + Double(Int(j));
      s += f(b, i, x[i]);
    }
    y[i] = s;
    b[i] = 0.0;
  });
  const Values x{0.5, 2}, b{1, 3};
  for (std::uint32_t slots : {1u, 8u}) {
    AdjointLaunch launch = adjoint_launch(device(), k, 2, Array<double>(device(), x), Array<double>(device(), b),
                                          zeros<double>(device(), 2), 4);
    launch.gradient<double>(2).assign(Values{1, 1});
    launch.backward(slots);
    Values gx, gb;
    for (std::size_t i = 0; i < 2; ++i) {
      // The host computes d/dx and d/db of the sum of b_j x by forward differentiation.
      double v = b[i], dx = 0, db = 1, sx = 0, sb = 0;
      for (int j = 0; j < 4; ++j) {
        dx = dx * x[i] + v;
        db *= x[i];
        v = v * x[i] + j;
        sx += dx * x[i] + v;
        sb += db * x[i];
      }
      gx.push_back(sx);
      gb.push_back(sb);
    }
    expect_near(launch.gradient<double>(0).to_vector(), gx);
    expect_near(launch.gradient<double>(1).to_vector(), gb);
  }
}

TEST_P(CustomGradient, knows_the_threads_number_in_each_dispatch) {
  const auto f = grad(func("f", [](Double x) -> Double { return x * Double(tid()); }),
                      [](Double, Double d) -> Double { return d * Double(tid()) * 10.0; });
  const auto k = kernel("k", [=](Arr<const double> x, Arr<double> y, Int n) {
    Double v = x[tid()];
    for ([[maybe_unused]] auto j : range(n)) v = sin(f(v));
    y[tid()] = v;
  });
  const int n = 21;
  Values x, expected;
  for (int i = 0; i < n; ++i) {
    x.push_back(0.1 * i);
    double v = x.back(), d = 1;
    for (int j = 0; j < 3; ++j) d *= std::cos(v * i) * i * 10, v = std::sin(v * i);
    expected.push_back(d);
  }
  AdjointLaunch launch = adjoint_launch(device(), k, n, Array<double>(device(), x), zeros<double>(device(), n), 3);
  launch.gradient<double>(1).assign(Values(n, 1));
  launch.backward(2, 8);
  expect_near(launch.gradient<double>(0).to_vector(), expected);
}

TEST_P(CustomGradient, is_the_same_in_debug_mode) {
  const auto f = grad(func("f", [](Arr<const double> x, Int i) -> Double { return x[i]; }),
                      [](Arr<const double> x, Int i, Double d) { gradient(x)[i] += 7.0 * d; });
  const auto k =
      kernel("k", [=](Arr<const double> x, Arr<double> y) { y[tid()] = f(x, tid()); }, {.debug = Debug::all()});
  AdjointLaunch launch =
      adjoint_launch(device(), k, 3, Array<double>(device(), Values{1, 2, 3}), zeros<double>(device(), 3));
  launch.gradient<double>(1).assign(Values{1, 2, 3});
  launch.backward();
  expect_near(launch.gradient<double>(0).to_vector(), {7, 14, 21});
}

// ---- Replays

TEST_P(CustomGradient, replays_find_the_places_that_a_counter_gave) {
  const auto take = replay(func("take",
                                [](Arr<int> counter, Arr<int> taken, Int i) -> Int {
                                  Int place = atomic_add(counter[0], 1);
                                  taken[i] = place;
                                  return place;
                                }),
                           [](Arr<int>, Arr<int> taken, Int i) -> Int { return taken[i]; });
  const auto k = kernel("compact", [=](Arr<int> counter, Arr<int> taken, Arr<const double> x, Arr<double> out) {
    Int i = tid();
    If (x[i] > 0.0) {
      Int place = take(counter, taken, i);
      out[place] = x[i] * x[i];
    }
  });
  Values x, seeds(64);
  for (int i = 0; i < 64; ++i) x.push_back(i % 3 == 0 ? -1 : 0.5 * i);
  std::iota(seeds.begin(), seeds.end(), 1);
  Array<double> out = zeros<double>(device(), 64);
  AdjointLaunch launch = adjoint_launch(device(), k, 64, zeros<int>(device(), 1), zeros<int>(device(), 64),
                                        Array<double>(device(), x), out);
  launch.gradient<double>(3).assign(seeds);
  launch.backward();
  const Values g = launch.gradient<double>(2).to_vector(), left = launch.gradient<double>(3).to_vector();
  // Any thread may get any seed; each seed is given once, and those without a taker stay.
  Values given;
  for (std::size_t i = 0; i < 64; ++i) {
    if (i % 3 == 0)
      EXPECT_EQ(g[i], 0);
    else
      given.push_back(g[i] / (2 * x[i]));
  }
  std::sort(given.begin(), given.end());
  expect_near(given, Values(seeds.begin(), seeds.begin() + std::ptrdiff_t(given.size())));
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(left[i], i < given.size() ? 0 : seeds[i]);
}

TEST_P(CustomGradient, of_a_function_that_writes_goes_with_a_replay) {
  const auto put = func("put", [](Arr<double> y, Arr<const double> x, Int i) { y[i] = exp(x[i]); });
  const auto f =
      grad(replay(put, [](Arr<double>, Arr<const double>, Int) {}), [](Arr<double> y, Arr<const double> x, Int i) {
        Double d = gradient(y)[i];
        gradient(y)[i] = 0.0;
        gradient(x)[i] += d * y[i];  // the exponential that the launch left there
      });
  const auto k = kernel("k", [=](Arr<double> y, Arr<const double> x) { f(y, x, tid()); });
  AdjointLaunch launch =
      adjoint_launch(device(), k, 2, Array<double>(device(), Values{-1, -1}), Array<double>(device(), Values{0.5, 2}));
  launch.gradient<double>(0).assign(Values{1, 2});
  launch.backward();
  expect_near(launch.gradient<double>(1).to_vector(), {std::exp(0.5), 2 * std::exp(2)});
  expect_near(launch.gradient<double>(0).to_vector(), {0, 0});
}

TEST_P(CustomGradient, of_a_function_that_writes_needs_no_replay_where_its_result_is_not_used) {
  const auto put = grad(func("put", [](Arr<double> y, Double x, Int i) { y[i] = exp(x); }),
                        [](Arr<double> y, Double, Int i) -> Double {
                          Double d = gradient(y)[i];
                          gradient(y)[i] = 0.0;
                          return d * y[i];
                        });
  const auto k = kernel("k", [=](Arr<double> y, Arr<const double> x) { put(y, x[tid()] * 2.0, tid()); });
  AdjointLaunch launch =
      adjoint_launch(device(), k, 2, Array<double>(device(), Values{-1, -1}), Array<double>(device(), Values{0.5, 2}));
  launch.gradient<double>(0).assign(Values{1, 2});
  launch.backward();
  expect_near(launch.gradient<double>(1).to_vector(), {2 * std::exp(1), 4 * std::exp(4)});
}

TEST_P(CustomGradient, replays_compute_what_the_gradient_function_does_not) {
  // The result is the value that the launch has stored; its gradient goes to the input.
  const auto keep = func("keep", [](Arr<double> y, Double x, Int i) -> Double {
    y[i] = x * x;
    return y[i];
  });
  const auto f = grad(replay(keep, [](Arr<double> y, Double, Int i) -> Double { return y[i]; }),
                      [](Arr<double> y, Double x, Int i, Double d) -> Double { return 3.0 * d * x + 0.0 * y[i]; });
  const auto k = kernel("k", [=](Arr<double> y, Arr<const double> x, Arr<double> z) {
    Int i = tid();
    z[i] = sin(f(y, x[i], i));
  });
  AdjointLaunch launch = adjoint_launch(device(), k, 2, zeros<double>(device(), 2),
                                        Array<double>(device(), Values{0.5, 2}), zeros<double>(device(), 2));
  launch.gradient<double>(2).assign(Values{1, 2});
  launch.backward();
  expect_near(launch.gradient<double>(1).to_vector(), {std::cos(0.25) * 1.5, 2 * std::cos(4) * 6});
}

TEST_P(CustomGradient, what_cannot_be_done_is_named) {
  const auto refusal = [&](auto k) {
    return error_of(
        [&] { adjoint_launch(device(), k, 1, zeros<double>(device(), 1), zeros<double>(device(), 1)).backward(); });
  };
  const auto put = func("put", [](Arr<double> y, Double x) -> Double {
    y[0] = x;
    return x;
  });
  const auto writes = grad(put, [](Arr<double>, Double, Double d) -> Double { return d; });
  const std::string text =
      refusal(kernel("writer", [=](Arr<double> y, Arr<double> x) { x[tid()] = sin(writes(y, x[tid()])); }));
  expect_contains(text, "needs a result of func \"put\", which writes to memory");
  expect_contains(text, "custom_gradient_test.cpp");
  const auto changes =
      grad(func("get", [](Arr<double> y) -> Double { return y[0]; }), [](Arr<double> y, Double d) { y[0] = d; });
  expect_contains(refusal(kernel("changer", [=](Arr<double> y, Arr<double> x) { x[tid()] = changes(y); })),
                  "the gradient function of func \"get\" writes to argument 1");
  const auto again = replay(put, [](Arr<double> y, Double x) -> Double {
    y[0] = 2.0;
    return x;
  });
  expect_contains(refusal(kernel("again", [=](Arr<double> y, Arr<double> x) { x[tid()] = again(y, x[tid()]); })),
                  "a replay writes to an array that its function has written to");
  const auto overwrites = grad(put, [](Arr<double> y, Double, Double d) -> Double {
    y[0] = 2.0;
    return d + gradient(y)[0];
  });
  expect_contains(refusal(kernel("overwriter", [=](Arr<double> y, Arr<double> x) { overwrites(y, x[tid()]); })),
                  "writes to an array that its function has written to");
  const auto read = replay(put, [](Arr<double> y, Double) -> Double { return y[0]; });
  expect_contains(refusal(kernel("reader", [=](Arr<double> y, Arr<double> x) { x[tid()] = read(y, x[tid()]); })),
                  "a replay returns a number that it reads from an array, and with it the gradient");
}

// ---- Detached values

TEST_P(CustomGradient, detached_values_are_constants) {
  const auto k = kernel("detached", [](Arr<const double> x, Arr<const Body> b, Arr<double> y, Int n) {
    Int i = tid();
    Double v = x[i];
    y[3 * i] = detach(v * v) * v;
    Var<Body> body = detach(b[i]);
    y[3 * i + 1] = body.mass * v + dot(detach(b[i].at), b[i].at);
    Double s = v;
    for ([[maybe_unused]] auto j : range(n)) s = detach(s) * v;
    y[3 * i + 2] = s;
  });
  const std::vector<Body> bodies{{{1, 2, 3}, 4, 5}};
  AdjointLaunch launch = adjoint_launch(device(), k, 1, Array<double>(device(), Values{3}),
                                        Array<Body>(device(), bodies), zeros<double>(device(), 3), 3);
  launch.gradient<double>(2).assign(Values{1, 100, 1000});
  launch.backward();
  expect_near(launch.gradient<double>(0).to_vector(), {9 + 100 * 5 + 1000 * 27});
  const Body g = launch.gradient<Body>(1).at(0);
  expect_near({g.at.x, g.at.y, g.at.z, g.mass}, {100, 200, 300, 0});
}

}  // namespace
