// Templates over a scalar face run on the host and in kernels; errors and instructions inside a library function name
// the line of its call.
#include <cmath>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Faces);

// A library function as the library writes them: once, over S.
template <class S>
S newton_root(const S& x) {
  S y = select(x > S(1), x, S(1)), last = S(0);
  FaceLike<S, int> steps = 0;
  while_of<S>([&] { return abs(y - last) > S(1e-3f) * y && steps < 50; },
              [&] {
                last = y;
                y = S(0.5f) * (y + x / y);
                steps += 1;
              });
  return y;
}

template <class S>
S polynomial(const S& x) {
  S sum = S(0), power = S(1);
  for (auto i : range_of<S>(1, 8, 2)) {
    if_(x < S(0), [&] { sum -= power * cast<HostOf<S>>(i); })
        .elif_([&] { return x > S(1); }, [&] { sum += power; })
        .else_([&] { sum += power * cast<HostOf<S>>(i); });
    power *= x;
  }
  return sum;
}

// A public function: mixes of faces, the caller's line.
template <class A, class B>
requires(VecLike<A, 3>&& VecLike<B, 3>) auto scaled_sum(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  const VecOf<3, S>& p = lift<S>(a, loc);
  const VecOf<3, S>& q = lift<S>(b, loc);
  return VecOf<3, S>(p + q * S(2));
}

TEST_P(Faces, a_template_computes_the_same_on_the_host_and_in_a_kernel) {
  auto check = [&]<class T>(T) {
    std::vector<T> in;
    for (double x : {-2.5, -0.5, 0.0, 0.25, 1.0, 2.0, 9.5}) in.push_back(T(x));
    Array<T> a(device(), in), root = zeros<T>(device(), 7), sum = zeros<T>(device(), 7);
    launch(kernel("faces",
                  [](Arr<const T> a, Arr<T> root, Arr<T> sum) {
                    Int i = tid();
                    Var<T> x = a[i];
                    root[i] = newton_root<Var<T>>(abs(x) + 1);
                    sum[i] = polynomial<Var<T>>(x);
                  }),
           7, a, root, sum);
    const std::vector<T> r = root.to_vector(), s = sum.to_vector();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double tolerance = sizeof(T) == 2 ? 4e-3 : 2e-3;
      EXPECT_NEAR(double(r[i]), std::sqrt(std::abs(double(in[i])) + 1), 4 * tolerance);
      EXPECT_NEAR(double(r[i]), double(newton_root<T>(abs(in[i]) + 1)), tolerance);
      EXPECT_EQ(s[i], polynomial<T>(in[i])) << double(in[i]);
    }
  };
  check(half(0));
  check(0.f);
  check(0.);
}

TEST_P(Faces, a_function_takes_any_mix_of_host_values_elements_and_traced_values) {
  Array<vec3> a(device(), {{1, 2, 3}}), out = zeros<vec3>(device(), 4);
  launch(kernel("mix",
                [](Arr<const vec3> a, Arr<vec3> out, Vec3 v) {
                  out[0] = scaled_sum(a[0], v);
                  out[1] = scaled_sum(v, vec3{1, 0, 0});
                  out[2] = scaled_sum(vec3{1, 0, 0}, a[0]);
                  out[3] = scaled_sum(vec3{1, 0, 0}, vec3{1, 1, 1});
                }),
         1, a, out, vec3{10, 20, 30});
  const vec3 x{1, 2, 3}, v{10, 20, 30}, e{1, 0, 0};
  EXPECT_EQ(out.to_vector(), (std::vector<vec3>{scaled_sum(x, v), scaled_sum(v, e), scaled_sum(e, x), vec3{3, 2, 2}}));
  static_assert(std::is_same_v<decltype(scaled_sum(x, v)), vec3>);
}

TEST_P(Faces, instructions_inside_a_library_function_carry_the_line_of_the_call) {
  int line = 0;
  auto k = kernel("lines",
                  [&](Arr<vec3> a, Vec3 v) {
                    line = __LINE__ + 1;
                    a[0] = scaled_sum(a[1], v);
                  },
                  {.contract = false});
  const ir::Module m = k.trace();
  int seen = 0;
  for (const ir::Inst& inst : m.insts)
    if (inst.op == ir::Op::add || inst.op == ir::Op::mul || inst.op == ir::Op::load) {
      ++seen;
      EXPECT_EQ(inst.line, line);
      EXPECT_NE(std::string(inst.file).find("face_test.cpp"), std::string::npos);
    }
  EXPECT_GE(seen, 7);
}

template <class S>
S inner(const S& x, Loc loc = Loc::here()) {
  detail::CallSite<S> site(loc);
  Break();
  return x;
}
template <class S>
S outer(const S& x, Loc loc = Loc::here()) {
  detail::CallSite<S> site(loc);
  return inner<S>(x);
}

TEST_P(Faces, an_error_inside_a_library_function_names_the_outermost_call) {
  int line = 0;
  auto k = kernel("wrong", [&](Arr<float> a, Float x) {
    line = __LINE__ + 1;
    a[0] = outer<Float>(x);
  });
  Array<float> a = zeros<float>(device(), 1);
  const std::string message = error_of([&] { launch(k, 1, a, 1.f); });
  expect_contains(message, "wrong");
  expect_contains(message, "face_test.cpp:" + std::to_string(line));
  // The place of a call ends with the call.
  auto after = kernel("after", [&](Arr<float> a, Float x) {
    a[0] = scaled_sum(vec3{1, 2, 3}, Vec3(x)).x;
    line = __LINE__ + 1;
    Break();
  });
  const std::string later = error_of([&] { launch(after, 1, a, 1.f); });
  expect_contains(later, "face_test.cpp:" + std::to_string(line));
}

TEST_P(Faces, ranges_of_both_faces_run_through_the_same_values) {
  constexpr int kMin = std::numeric_limits<int>::min(), kMax = std::numeric_limits<int>::max();
  const int cases[][3] = {{0, 5, 1},  {5, 0, -2},           {0, 5, 0},          {3, 3, 1},
                          {7, 3, 1},  {kMin, kMax, kMax},   {kMax, kMin, kMin}, {kMax - 3, kMax, 2},
                          {-4, 9, 3}, {kMin + 3, kMin, -2}, {10, -10, -7}};
  for (auto [lo, hi, step] : cases) {
    std::vector<int> expected;
    for (int i : range_of<float>(lo, hi, step)) expected.push_back(i);
    Array<int> out = full<int>(device(), 10, -77);
    launch(kernel("range",
                  [](Arr<int> out, Int lo, Int hi, Int step) {
                    Int n = 0;
                    for (auto i : range_of<Float>(lo, hi, step)) {
                      out[n] = i;
                      n += 1;
                    }
                  }),
           1, out, lo, hi, step);
    expected.resize(10, -77);
    EXPECT_EQ(out.to_vector(), expected) << lo << " " << hi << " " << step;
  }
}

}  // namespace
