// Derivatives that the user gives to func()s: what is recorded for the adjoint, and what a kernel runs.
#include <gtest/gtest.h>

#include <functional>

#include "../../../frontend/passes/passes.h"
#include "../../../runtime/weft.h"

namespace weft {
namespace {

using ir::Op;

template <class K>
ir::Module for_adjoint(const K& kernel, Debug debug = {}) {
  ir::Variant variant;
  variant.adjoint = true;
  variant.debug = debug;
  return kernel.core().trace(variant);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// Expects that building the body for the adjoint is refused with these words.
void refused(const std::function<void()>& body, ErrorKind kind, const std::string& words) {
  try {
    body();
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("derivatives_test.cpp"), std::string::npos) << e.what();
  }
}

auto root() {
  return grad(func("root", [](Float x) -> Float { return sqrt(x); }),
              [](Float x, Float adj) -> Float { return select(x > 0, adj / (2 * sqrt(x)), 0.f); });
}

auto take() {
  return replay(func("take",
                     [](Arr<int> counter, Arr<int> taken, Int i) -> Int {
                       Int place = atomic_add(counter[0], 1);
                       taken[i] = place;
                       return place;
                     }),
                [](Arr<int>, Arr<int> taken, Int i) -> Int { return taken[i]; });
}

TEST(Derivatives, KernelsThatRunDoNotHoldThem) {
  const auto plain = func("root", [](Float x) -> Float { return sqrt(x); });
  const auto body = [](auto f) { return [=](Arr<float> x) { x[tid()] = f(x[tid()]); }; };
  const ir::Module with = kernel("k", body(root())).trace(), without = kernel("k", body(plain)).trace();
  EXPECT_EQ(ir::hash(with), ir::hash(without));
  EXPECT_TRUE(with.derivatives.left_out);
  EXPECT_FALSE(without.derivatives.left_out);
}

TEST(Derivatives, AdjointsFindTheGradientBesideTheFunction) {
  const auto k = kernel("k", [f = root()](Arr<float> x) { x[tid()] = f(x[tid()]) + f(2.f); });
  const ir::Module m = for_adjoint(k);
  ASSERT_EQ(m.functions.size(), 2u);
  EXPECT_EQ(m.functions[0]->derivatives.gradient, 1u);
  EXPECT_EQ(m.functions[1]->function, "gradient of root");
  const std::string text = ir::print(m);
  EXPECT_EQ(count(text, "func0 \"root\", gradient func1"), 1u) << text;
  EXPECT_EQ(count(text, "call func0"), 2u) << text;
  const ir::Module checked = for_adjoint(k, Debug::all());
  EXPECT_EQ(count(ir::print(checked), "call func0"), 2u) << ir::print(checked);
}

TEST(Derivatives, GradientsTakeAndReturnTheRealScalars) {
  const auto f = grad(func("f", [](Vec3 a, Int n, Arr<const float> x,
                                   Quat q) { return std::tuple(a * Float(n), n, x[n], quat_inverse(q)); }),
                      [](Vec3 a, Int n, Arr<const float> x, Quat q, Vec3 da, Float dx, Quat dq) {
                        gradient(x)[n] += dx + dot(a, da);
                        return std::tuple(da * Float(n), q * dq);
                      });
  const auto k = kernel("k", [=](Arr<const float> x, Arr<float> y) {
    auto [a, n, b, q] = f(Vec3(1, 2, 3), tid(), x, Quat());
    y[n] = a.x + b + q.w;
  });
  const ir::Module m = for_adjoint(k);
  const ir::Module& gradient = *m.functions.at(1);
  EXPECT_EQ(gradient.num_inputs, 3u + 1 + 2 + 4 + 3 + 1 + 4);
  EXPECT_EQ(gradient.outputs().size(), 3u + 4);
  const std::string text = ir::print(gradient);
  EXPECT_EQ(count(text, "gradient_base u64 %4"), 1u) << text;
  EXPECT_EQ(count(text, "atomic_add"), 1u) << text;
}

TEST(Derivatives, AdditionsToGradientsAreAtomic) {
  const auto f = grad(func("f", [](Arr<const vec3> x, Arr<const float> y) { return x[0].x + y[0]; }),
                      [](Arr<const vec3> x, Arr<const float> y, Float d) {
                        gradient(x)[0] += Vec3(d, d, d);  // 3 atomic additions
                        gradient(x)[0] -= Vec3(2, 2, 2);  // 3
                        gradient(x)[0].y += d;
                        gradient(y)[0] -= d;
                        gradient(y)[1] = gradient(y)[2] * 2;  // none
                      });
  const auto k = kernel("k", [=](Arr<const vec3> x, Arr<float> y) { y[0] = f(x, y); });
  const std::string text = ir::print(*for_adjoint(k).functions.at(1));
  EXPECT_EQ(count(text, "atomic_add"), 8u) << text;
  EXPECT_EQ(count(text, "store"), 1u) << text;
}

TEST(Derivatives, OnlyCallsOfFunctionsWithAGradientStay) {
  const auto plain = func("plain", [](Float x) -> Float { return x * 3; });
  const auto outer = func("outer", [=, f = root()](Float x) -> Float { return f(plain(x)) + plain(x); });
  const auto twice = grad(func("twice", [=](Float x) -> Float { return outer(x) * 2; }),
                          [=](Float x, Float d) -> Float { return d * outer(x); });
  const auto k = kernel("k", [=](Arr<float> x) { x[tid()] = outer(x[tid()]) + plain(x[0]) + twice(x[1]); });
  const ir::Module m = ir::inline_calls(for_adjoint(k), ir::Keep::gradients);
  EXPECT_EQ(ir::first_violation(m), "");
  ASSERT_EQ(m.functions.size(), 4u) << ir::print(m);
  for (const auto& function : m.functions) EXPECT_EQ(count(ir::print(*function), "call func"), 0u);
  const std::string text = ir::print(m);
  EXPECT_EQ(count(text, "call func"), 2u) << text;
  EXPECT_EQ(count(text, "\", gradient func"), 2u) << text;
  // All calls are inlined if none is to be kept.
  EXPECT_EQ(count(ir::print(ir::inline_calls(for_adjoint(k))), "call func"), 0u);
}

TEST(Derivatives, ReplaysStandForTheFunctionAndSeeWhatItLeft) {
  const auto k = kernel("k", [f = take()](Arr<int> counter, Arr<int> taken, Arr<float> out, Arr<const float> x) {
    Int i = tid();
    out[f(counter, taken, i)] = x[i] * 2;
  });
  const ir::Module recorded = for_adjoint(k);
  EXPECT_EQ(recorded.functions.at(0)->derivatives.replay, 1u);
  EXPECT_EQ(count(ir::print(recorded), "func0 \"take\", replay func1"), 1u) << ir::print(recorded);
  const ir::Module m = ir::inline_calls(recorded, ir::Keep::gradients);
  EXPECT_EQ(ir::first_violation(m), "");
  EXPECT_TRUE(m.functions.empty());
  const std::string text = ir::print(m);
  EXPECT_EQ(count(text, "atomic_add"), 0u) << text;
  EXPECT_EQ(count(text, "after_base u64 arg1"), 1u) << text;
  EXPECT_EQ(count(text, "after_base u64 arg0"), 0u) << text;
}

TEST(Derivatives, GradientsOfReplayedFunctionsSeeWhatItLeftToo) {
  const auto put = func("put", [](Arr<float> x, Arr<const float> y, Int i) { x[i] = 2 * y[i]; });
  const auto f = grad(replay(put, [](Arr<float>, Arr<const float>, Int) {}),
                      [](Arr<float> x, Arr<const float> y, Int i) { gradient(y)[i] += x[i] * gradient(x)[i] + y[i]; });
  const auto k = kernel("k", [=](Arr<float> x, Arr<const float> y) { f(x, y, tid()); });
  const ir::Module m = ir::inline_calls(for_adjoint(k), ir::Keep::gradients);
  EXPECT_EQ(ir::first_violation(m), "");
  const std::string text = ir::print(*m.functions.at(1));
  EXPECT_EQ(count(text, "after_base u64 %0"), 1u) << text;
  EXPECT_EQ(count(text, "gradient_base u64 %0"), 1u) << text;
  EXPECT_EQ(count(text, "gradient_base u64 %2"), 1u) << text;
}

TEST(Derivatives, NothingIsReportedByAnAdjoint) {
  const auto f = grad(func("f",
                           [](Float x) -> Float {
                             assert_(x > 0, "not positive");
                             print("in f", x);
                             return sqrt(x);
                           }),
                      [](Float x, Float d) -> Float {
                        assert_(x > 0);
                        return d / sqrt(x);
                      });
  const auto k = kernel("k", [=](Arr<float> x) {
    assert_(x[tid()] < 9);
    x[tid()] = f(x[tid()]);
  });
  EXPECT_NE(k.trace().report_offset, 0u);
  const ir::Module m = for_adjoint(k, Debug::all());
  EXPECT_EQ(m.report_offset, 0u);
  EXPECT_TRUE(m.messages.empty());
  EXPECT_EQ(count(ir::print(m), "call func0"), 1u);
}

TEST(Derivatives, MistakesAreNamed) {
  const auto with_gradient = [](auto gradient_function) {
    const auto f = grad(func("f", [](Arr<const float> x) -> Float { return x[0]; }), gradient_function);
    const auto k = kernel("k", [=](Arr<float> x) { x[0] = f(x); });
    return [=] { for_adjoint(k); };
  };
  const auto helper = func("helper", [](Arr<float> x) { x[0] = 1; });
  refused(with_gradient([=](Arr<const float> x, Float) { helper(gradient(x)); }), ErrorKind::invalid_kernel,
          "the gradient of an array is no argument of a func()");
  const auto inner = func("inner", [](Arr<const float> x, Float d) { gradient(x)[0] += d; });
  refused(with_gradient([=](Arr<const float> x, Float d) { inner(x, d); }), ErrorKind::invalid_kernel,
          "in func \"inner\": gradient() of an array is known in the gradient function");
  refused(with_gradient([=](Arr<const float>, Float) { barrier(); }), ErrorKind::invalid_kernel,
          "func \"gradient of f\" works with the other threads");
  refused([] { kernel("k", [](Arr<float> x) { gradient(x)[0] += 1; }).trace(); }, ErrorKind::invalid_kernel,
          "gradient() of an array is known in the gradient function");
}

TEST(Derivatives, ReplaysDoNotCallTheFunction) {
  const auto plain = func("count", [](Arr<int> n) -> Int { return atomic_add(n[0], 1); });
  const auto first = replay(plain, [=](Arr<int> n) -> Int { return plain(n); });  // another function: allowed
  EXPECT_NO_THROW(for_adjoint(kernel("k", [=](Arr<int> n) { n[1] = first(n); })));
  struct Self {
    std::function<Var<int>(Arr<int>)> call;
  };
  const auto self = std::make_shared<Self>();
  const auto f = replay(plain, [=](Arr<int> n) -> Int { return self->call(n); });
  self->call = [f](Arr<int> n) { return f(n); };
  const auto k = kernel("k", [=](Arr<int> n) { n[1] = f(n); });
  refused([&] { for_adjoint(k); }, ErrorKind::invalid_kernel, "recursion is not supported: count -> count");
  self->call = nullptr;
}

TEST(Derivatives, GradientsMayCallTheFunction) {
  struct Self {
    std::function<Var<float>(Float)> call;
  };
  const auto self = std::make_shared<Self>();
  const auto f = grad(func("f", [](Float x) -> Float { return exp(x); }),
                      [=](Float x, Float d) -> Float { return d * self->call(x); });
  self->call = [f](Float x) { return f(x); };
  const auto k = kernel("k", [=](Arr<float> x) { x[tid()] = f(x[tid()]); });
  const ir::Module m = for_adjoint(k);
  EXPECT_EQ(m.functions.size(), 2u);
  EXPECT_EQ(count(ir::print(*m.functions[1]), "call func0"), 1u);
  self->call = nullptr;
}

TEST(Derivatives, ArraysOfReplayedFunctionsAreUsedByNothingElse) {
  const auto beside = kernel("k", [f = take()](Arr<int> counter, Arr<int> taken, Arr<int> out) {
    out[f(counter, taken, tid())] = taken[tid()];
  });
  refused([&] { ir::inline_calls(for_adjoint(beside), ir::Keep::gradients); }, ErrorKind::not_differentiable,
          "argument 2 is written by func \"take\", which has derivatives of its own, and used by the kernel beside it");
  const auto both = kernel("k", [f = take(), g = take()](Arr<int> counter, Arr<int> taken, Arr<int> out) {
    out[f(counter, taken, tid())] = 1;
    out[g(out, taken, tid())] = 1;
  });
  refused([&] { ir::inline_calls(for_adjoint(both), ir::Keep::gradients); }, ErrorKind::not_differentiable,
          "which has derivatives of its own");
}

TEST(Derivatives, BrokenLinksAreFound) {
  const auto k = kernel("k", [f = root()](Arr<float> x) { x[tid()] = f(x[tid()]); });
  const auto with = [&](const std::function<void(ir::Module & m, ir::Module & f, ir::Module & g)>& change) {
    ir::Module m = for_adjoint(k);
    auto f = std::make_shared<ir::Module>(*m.functions[0]), g = std::make_shared<ir::Module>(*m.functions[1]);
    m.functions = {f, g};
    change(m, *f, *g);
    return ir::first_violation(m);
  };
  EXPECT_EQ(with([](ir::Module&, ir::Module&, ir::Module&) {}), "");
  EXPECT_EQ(with([](ir::Module&, ir::Module& f, ir::Module&) { f.derivatives.gradient = 0; }),
            "func 0: its derivative is no other function");
  EXPECT_EQ(with([](ir::Module&, ir::Module& f, ir::Module&) { f.derivatives.gradient = 7; }),
            "func 0: its derivative is no other function");
  EXPECT_EQ(with([](ir::Module&, ir::Module& f, ir::Module&) { f.derivatives.replay = 1; }),
            "func 0: its replay has another signature");
  EXPECT_EQ(with([](ir::Module&, ir::Module&, ir::Module& g) { g.derivatives.gradient = 0; }),
            "func 0: its derivative has derivatives");
  EXPECT_EQ(with([](ir::Module& m, ir::Module& f, ir::Module&) {
              m.functions.push_back(m.functions[0]);
              f.derivatives.gradient = ir::kNone;
              f.derivatives.replay = 0;
              auto copy = std::make_shared<ir::Module>(f);
              copy->derivatives.replay = ir::kNone;
              copy->derivatives.gradient = 0;
              m.functions[2] = copy;
            }),
            "func 0: its derivative is no other function");
  EXPECT_EQ(with([](ir::Module& m, ir::Module&, ir::Module&) { m.derivatives.gradient = 0; }),
            "a kernel has derivatives of its own");
}

TEST(Derivatives, DetachKeepsTypesAndMarksRealScalarsOnly) {
  const auto k = kernel("k", [](Arr<vec3> x, Arr<int> n, Arr<float> y) {
    Vec3 v = detach(x[tid()]);              // 3
    Int i = detach(n[0]) + detach(Int(3));  // none
    Float a = detach(y[i]) + detach(v.x * 2) + detach(v[i]);
    Mat22 m = detach(Mat22(a, a, a, v.y));
    y[i] = a + detach(m)(0, 1) + detach(v + x[0]).y;
  });
  const std::string text = ir::print(k.trace());
  EXPECT_EQ(count(text, "detach f32"), 3u + 3 + 1 + 1) << text;
  static_assert(std::is_same_v<decltype(detach(2.f)), float> && std::is_same_v<decltype(detach(vec3{})), vec3>);
  EXPECT_EQ(detach(2.5f), 2.5f);
}

}  // namespace
}  // namespace weft
