// Functions that a kernel holds once and calls: their values, the code that is emitted, and refusals.
#include "../../../backends/vulkan/vulkan.h"
#include "../../../frontend/passes/passes.h"
#include "../../../spirv/emit.h"
#include "../device_test.h"
#include "../run_module.h"

using namespace weft;
using namespace weft::test;

namespace {

template <template <class> class F>
struct BallS {
  F<vec3> center;
  F<float> radius;
  F<int> count;
};
using Ball = BallS<Host>;

template <template <class> class F>
struct CloudS {
  F<Array<vec3>> points;
  F<Array<Ball>> balls;
  F<int> offset;
};
using Cloud = CloudS<Host>;

DEVICE_TEST(Function);

/// The IR for a launch with strided arrays; `parameters` has a bit for each.
template <class K>
ir::Module strided(const K& kernel, std::uint64_t parameters) {
  ir::Variant variant;
  variant.strided = parameters;
  return kernel.core().trace(variant);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::string spirv_of(const ir::Module& module) {
  const auto words = spirv::emit(module, spirv::Target::everything());
  EXPECT_EQ(spirv::validate(words), "");
  return spirv::disassemble(words);
}

TEST_P(Function, takes_and_returns_vectors_and_literals) {
  auto spring = func("spring", [](Vec3 a, Vec3 b, Float k) -> Vec3 {
    Vec3 d = b - a;
    Float l = length(d);
    return d * (k * (l - 1) / l);
  });
  auto forces = kernel("forces", [=](Arr<const vec3> x, Arr<vec3> f, Float k) {
    Int i = tid();
    f[i] = spring(x[i], x[i + 1], k) + spring(x[i], vec3{1, 1, 1}, 2);
  });
  const int n = 100;
  std::vector<vec3> x(n + 1);
  for (int i = 0; i <= n; ++i) x[std::size_t(i)] = {float(i), float(i * i % 7), 0.5f * float(i % 3)};
  Array<vec3> dx(device(), x), f = zeros<vec3>(device(), n);
  launch(forces, n, dx, f, 10.f);
  const std::vector<vec3> out = f.to_vector();
  auto host = [](vec3 a, vec3 b, float k) {
    const vec3 d = b - a;
    const float l = length(d);
    return d * (k * (l - 1) / l);
  };
  for (int i = 0; i < n; ++i) {
    const std::size_t at = std::size_t(i);
    const vec3 expected = host(x[at], x[at + 1], 10) + host(x[at], {1, 1, 1}, 2);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(out[at][k], expected[k], 1e-3f) << i;
  }
}

TEST_P(Function, takes_ranges_of_its_arrays) {
  auto middle = func("middle", [](Arr<const int> a) -> Int { return a.slice(1, a.shape(0) - 1)[0]; });
  auto k = kernel("k", [=](Arr<const int, 2> a, Arr<int> out) { out[tid()] = middle(a[tid()]) + middle(a[0]); });
  Array<int, 2> a(device(), {2, 3}, std::vector<int>{1, 2, 3, 4, 5, 6});
  Array<int> out = zeros<int>(device(), 2);
  launch(k, 2, a, out);
  EXPECT_EQ(out.to_vector(), (std::vector<int>{4, 7}));
}

TEST_P(Function, is_emitted_once_however_often_it_is_called) {
  auto step = func("step", [](Int x) -> Int { return x * 5 % 101 + 1; });
  auto many = kernel("many", [=](Arr<int> out) {
    Int x = tid();
    for (int k = 0; k < 100; ++k) x = step(x);
    out[tid()] = x;
  });
  const ir::Module module = many.trace();
  EXPECT_EQ(module.functions.size(), 1u);
  const std::string text = ir::print(module);
  EXPECT_EQ(count(text, "func0 \"step\""), 1u) << text;
  EXPECT_EQ(count(text, "call func0"), 100u);
  const std::string words = spirv_of(module);
  EXPECT_EQ(count(words, "OpFunction "), 2u);
  EXPECT_EQ(count(words, "OpFunctionCall"), 100u);

  Array<int> out = zeros<int>(device(), 50);
  launch(many, 50, out);
  const std::vector<int> result = out.to_vector();
  for (int i = 0; i < 50; ++i) {
    int x = i;
    for (int k = 0; k < 100; ++k) x = x * 5 % 101 + 1;
    EXPECT_EQ(result[std::size_t(i)], x);
  }
}

TEST_P(Function, returns_several_values_or_none) {
  auto divide = func("divide", [](Int a, Int b) { return std::tuple<Int, Int>(a / b, a % b); });
  auto ends = func("ends", [](Arr<const int> a) { return std::pair(a[0], a[a.shape(0) - 1]); });
  auto both = func("both", [](Bool c) { return std::array<Bool, 2>{c, !c}; });
  auto put = func("put", [](Arr<int> out, Int i, Int v) { out[i] = v; });
  auto k = kernel("several", [=](Arr<int> out, Arr<const int> a) {
    Int i = tid();
    auto [q, r] = divide(a[i], 7);
    auto [first, last] = ends(a);
    auto [yes, no] = both(i > 3);
    put(out, i, q * 1000 + r * 100 + (first + last) * 10 + select(yes, 2, 0) + select(no, 1, 0));
  });
  std::vector<int> a{3, 10, 25, 40, -9, 66, 1};
  Array<int> da(device(), a), out = zeros<int>(device(), 7);
  launch(k, 7, out, da);
  for (int i = 0; i < 7; ++i) {
    const int v = a[std::size_t(i)];
    EXPECT_EQ(out.at(i), v / 7 * 1000 + v % 7 * 100 + 40 + (i > 3 ? 2 : 1)) << i;
  }
}

TEST_P(Function, of_every_scalar_type) {
  auto pass = func("pass", [](auto x) { return x + x; });
  auto k = kernel("types", [=](Arr<std::int8_t> a, Arr<std::uint16_t> b, Arr<std::int64_t> c, Arr<double> d,
                               Arr<half> e, Arr<bool> f) {
    auto invert = func("invert", [](Bool x) { return !x; });
    Int i = tid();
    a[i] = pass(a[i]);
    b[i] = pass(b[i]);
    c[i] = pass(c[i]);
    d[i] = pass(d[i]);
    e[i] = pass(e[i]);
    f[i] = invert(f[i]);
  });
  EXPECT_EQ(k.trace().functions.size(), 6u);
  spirv_of(k.trace());
  Array<std::int8_t> a = full<std::int8_t>(device(), 4, std::int8_t(-3));
  Array<std::uint16_t> b = full<std::uint16_t>(device(), 4, std::uint16_t(40000));
  Array<std::int64_t> c = full<std::int64_t>(device(), 4, std::int64_t(1) << 40);
  Array<double> d = full<double>(device(), 4, 0.1);
  Array<half> e = full<half>(device(), 4, half(1.5f));
  Array<bool> f = full<bool>(device(), 4, false);
  launch(k, 4, a, b, c, d, e, f);
  EXPECT_EQ(a.at(3), -6);
  EXPECT_EQ(b.at(3), 14464);
  EXPECT_EQ(c.at(3), std::int64_t(1) << 41);
  EXPECT_EQ(d.at(3), 0.2);
  EXPECT_EQ(float(e.at(3)), 3.f);
  EXPECT_EQ(f.at(3), true);
}

TEST_P(Function, takes_arrays_rows_and_strided_views) {
  auto sum = func("sum", [](Arr<const float> row) {
    Float s = 0;
    for (auto k : range(row.shape(0))) s += row[k];
    return s;
  });
  auto total = func("total", [=](Arr<const float, 2> a) {
    Float s = 0;
    for (auto i : range(a.shape(0))) s += sum(a[i]) * Float(i + 1);
    return s;
  });
  auto k = kernel("sums", [=](Arr<const float, 2> a, Arr<const float, 3> b, Arr<const float> c, Arr<float, 2> out) {
    Int i = tid();
    out(i, 0) = sum(a[i]);
    out(i, 1) = sum(b[i][1]);
    out(i, 2) = sum(c);
    out(i, 3) = total(a) + total(b[i]);
  });
  std::vector<float> values(4 * 6 * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i * 7 % 23);
  Array<float, 3> all(device(), {4, 6, 2}, values);
  auto at = [&](int i, int j, int l) { return values[std::size_t((i * 6 + j) * 2 + l)]; };
  Array<float, 2> flat = full<float, 2>(device(), {4, 6}, 0.f);

  // b: rows 1 and 3 of each matrix: a strided view.
  Array<float, 3> b = all.slice(1, 5, 2, 1);
  Array<float, 2> a = b[2];
  Array<float> c = Array<float>(device(), std::vector<float>{1, 2, 3, 4}).slice(0, 4, 2);
  Array<float, 2> out = zeros<float, 2>(device(), {2, 4});
  launch(k, 2, a, b, c, out);
  for (int i = 0; i < 2; ++i) {
    auto sum_a = [&](int r) { return at(2, 1 + 2 * r, 0) + at(2, 1 + 2 * r, 1); };
    auto sum_b = [&](int m, int r) { return at(m, 1 + 2 * r, 0) + at(m, 1 + 2 * r, 1); };
    EXPECT_EQ(out[i].at(0), sum_a(i));
    EXPECT_EQ(out[i].at(1), sum_b(i, 1));
    EXPECT_EQ(out[i].at(2), 4.f);
    EXPECT_EQ(out[i].at(3), sum_a(0) + 2 * sum_a(1) + sum_b(i, 0) + 2 * sum_b(i, 1));
  }
  // The same kernel on contiguous arrays.
  Array<float, 2> out2 = zeros<float, 2>(device(), {4, 4});
  launch(k, 4, flat, all, Array<float>(device(), std::vector<float>{1, 2, 3}), out2);
  for (int i = 0; i < 4; ++i) {
    float sum_all = 0;
    for (int j = 0; j < 6; ++j) sum_all += float(j + 1) * (at(i, j, 0) + at(i, j, 1));
    EXPECT_EQ(out2[i].at(1), at(i, 1, 0) + at(i, 1, 1));
    EXPECT_EQ(out2[i].at(2), 6.f);
    EXPECT_EQ(out2[i].at(3), sum_all);
  }
}

TEST_P(Function, takes_and_returns_structs) {
  auto grow = func("grow", [](Var<Ball> ball, Float by) {
    ball.radius += by;
    ball.count += 1;
    return ball;
  });
  auto place = func("place", [=](Var<Cloud> cloud, Int i) {
    cloud.balls[i] = grow(cloud.balls[i], 2);
    cloud.points[i] = Vec3(cloud.balls[i].center) * Float(cloud.offset);
  });
  auto k = kernel("cloud", [=](Var<Cloud> cloud, Var<Ball> first) {
    Int i = tid();
    If (i == 0) {
      cloud.balls[i] = grow(first, 1);
    }
    place(cloud, i);
  });
  EXPECT_EQ(k.trace().functions.size(), 2u);
  spirv_of(k.trace());
  Array<vec3> points = zeros<vec3>(device(), 3);
  Array<Ball> balls(device(), std::vector<Ball>(3, Ball{{1, 2, 3}, 4, 5}));
  launch(k, 3, Cloud{points, balls, 10}, Ball{{7, 8, 9}, 1, 0});
  EXPECT_EQ(points.to_vector(), (std::vector<vec3>{{70, 80, 90}, {10, 20, 30}, {10, 20, 30}}));
  const std::vector<Ball> out = balls.to_vector();
  EXPECT_EQ(out[0].radius, 4);
  EXPECT_EQ(out[0].count, 2);
  EXPECT_EQ(out[2].radius, 6);
  EXPECT_EQ(out[2].count, 6);
}

TEST_P(Function, has_one_instance_for_each_layout) {
  auto first = func("first", [](Arr<const vec3> a) { return a[0]; });
  auto k = kernel("layouts", [=](Arr<const vec3> a, Arr<const vec3> b, Arr<const vec3, 2> c, Arr<vec3> out) {
    out[0] = first(a) + first(b) + first(c[0]) + first(c[1]);
  });
  EXPECT_EQ(k.trace().functions.size(), 2u);      // contiguous, slice
  EXPECT_EQ(strided(k, 5).functions.size(), 3u);  // and strided
}

TEST_P(Function, writes_through_arrays_and_orders_launches) {
  auto scatter = func("scatter", [](Arr<int> to, Arr<const int> from, Int i) { to[i] = from[i] + 1; });
  auto twice = func("twice", [=](Arr<int> to, Arr<const int> from, Int i) { scatter(to, from, i); });
  auto add = func("add", [](Arr<int> sum, Int v) { atomic_add(sum[0], v); });
  auto k = kernel("copy", [=](Arr<int> to, Arr<const int> from, Arr<int> sum) {
    Int i = tid();
    twice(to, from, i);
    add(sum, 1);
  });
  const ir::Module module = k.trace();
  EXPECT_EQ(module.params[0].access, ir::Access::write);
  EXPECT_EQ(module.params[1].access, ir::Access::read);
  EXPECT_EQ(module.params[2].access, ir::Access::atomic);
  const int n = 5000;
  Array<int> a = zeros<int>(device(), n), b = zeros<int>(device(), n), sum = zeros<int>(device(), 1);
  for (int step = 0; step < 10; ++step) {
    launch(k, n, b, a, sum);
    launch(k, n, a, b, sum);
  }
  EXPECT_EQ(a.to_vector(), std::vector<int>(n, 20));
  EXPECT_EQ(sum.at(0), 20 * n);
}

TEST_P(Function, has_variables_loops_and_the_threads_number) {
  auto collatz = func("collatz", [](Int n, Int limit) {
    Int steps = 0;
    While (n != 1) {
      If (n % 2 == 0) {
        n /= 2;
      }
      Else { n = 3 * n + 1; }
      steps += 1;
      If (steps == limit) {
        Break();
      }
    }
    return steps + 0 * tid();
  });
  auto place = func("place", [] {
    auto [i, j] = tid<2>();
    return i * 1000 + j;
  });
  auto k = kernel("steps", [=](Arr<int> out) { out[tid()] = collatz(tid() + 1, 40); });
  auto where = kernel("where", [=](Arr<int, 2> out) {
    auto [i, j] = tid<2>();
    out(i, j) = place();
  });
  Array<int> out = zeros<int>(device(), 60);
  launch(k, 60, out);
  for (int i = 0; i < 60; ++i) {
    int n = i + 1, steps = 0;
    for (; n != 1 && steps < 40; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    EXPECT_EQ(out.at(i), steps);
  }
  Array<int, 2> grid = zeros<int, 2>(device(), {3, 77});
  launch(where, {3, 77}, grid);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 77; ++j) EXPECT_EQ(grid[i].at(j), i * 1000 + j);
}

TEST_P(Function, changes_no_variable_of_its_caller) {
  auto spoil = func("spoil", [](Int a, Vec2 v) {
    a += 100;
    v.x = 7;
    return a + Int(v.x);
  });
  auto k = kernel("caller", [=](Arr<int> out) {
    Int a = tid();
    Vec2 v = vec2{1, 2};
    Int b = spoil(a, v);
    out[a] = a * 1000 + b + Int(v.x);
  });
  Array<int> out = zeros<int>(device(), 5);
  launch(k, 5, out);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out.at(i), i * 1000 + i + 107 + 1);
}

TEST_P(Function, may_stand_in_conditions_and_loops) {
  auto is_prime = func("is_prime", [](Int n) {
    Bool prime = n > 1;
    Int d = 2;
    While (prime&& d* d <= n) {
      If (n % d == 0) {
        prime = false;
      }
      d += 1;
    }
    return prime;
  });
  auto k = kernel("primes", [=](Arr<int> out) {
    Int i = tid(), next = i + 1, found = 0;
    While (!is_prime(next)) {
      next += 1;
    }
    for (auto j : range(i)) {
      If (is_prime(j) && is_prime(j + 2)) {
        found += 1;
      }
    }
    out[i] = next * 100 + found;
  });
  Array<int> out = zeros<int>(device(), 60);
  launch(k, 60, out);
  auto prime = [](int n) {
    for (int d = 2; d * d <= n; ++d)
      if (n % d == 0) return false;
    return n > 1;
  };
  for (int i = 0; i < 60; ++i) {
    int next = i + 1, found = 0;
    while (!prime(next)) ++next;
    for (int j = 0; j < i; ++j) found += prime(j) && prime(j + 2);
    EXPECT_EQ(out.at(i), next * 100 + found);
  }
}

TEST_P(Function, computes_the_same_inlined_and_in_normal_form) {
  auto inner = func("inner", [](Int x, Int n) {
    Int sum = 0;
    for (auto k : range(n)) {
      If (k % 3 == x % 3) {
        Continue();
      }
      sum += k * x;
      If (sum > 500) {
        Break();
      }
    }
    return std::pair(sum, x < sum);
  });
  auto outer = func("outer", [=](Int x) {
    Int best = 0;
    for (auto n : range(6)) {
      auto [sum, more] = inner(x + n, n * 3);
      If (more) {
        best = max(best, sum);
      }
    }
    return best;
  });
  auto body = [=](Arr<int> out) {
    Int i = tid();
    out[i] = -1;
    If (i % 7 == 3) {
      Return();
    }
    Int a = outer(i), b = 0;
    While (b < a) {
      auto [sum, more] = inner(b, 4);
      b += 11 + sum;
    }
    out[i] = a * 100 + b;
  };
  const int n = 300;
  const ir::Module called = kernel("form", body).trace(), inlined = ir::inline_calls(called);
  const ir::Module normal = ir::promote(ir::normalise(called)), both = ir::promote(ir::normalise(inlined));
  EXPECT_EQ(called.functions.size(), 2u);
  EXPECT_EQ(normal.functions.size(), 2u);
  EXPECT_TRUE(inlined.functions.empty());
  for (const ir::Module* m : {&called, &inlined, &normal, &both}) {
    EXPECT_EQ(ir::first_violation(*m), "");
    spirv_of(*m);
  }
  for (const auto& function : normal.functions) EXPECT_TRUE(function->locals.empty());
  const auto run = [&](const ir::Module& module) {
    Array<int> out = full<int>(device(), n, -7);
    const ArrayBase* const arrays[] = {&out};
    run_module(device(), module, n, arrays);
    return out.to_vector();
  };
  const std::vector<int> expected = run(called);
  EXPECT_EQ(run(inlined), expected);
  EXPECT_EQ(run(normal), expected) << ir::print(normal);
  EXPECT_EQ(run(both), expected);
  EXPECT_EQ(run(ir::inline_calls(normal)), expected);
}

TEST_P(Function, with_a_large_argument_block) {
  auto scale = func("scale", [](Mat44 m, Vec4 v) { return m * v; });
  auto k = kernel("large", [=](Arr<vec4> out, Mat44 a, Mat44 b, Mat44 c) {
    auto [i, j] = tid<2>();
    auto index = func("index", [] {
      auto [p, q] = tid<2>();
      return p * 4 + q;
    });
    out[index()] = scale(a, scale(b, scale(c, Vec4(Float(i), Float(j), 1, 2))));
  });
  mat44 two;
  for (int i = 0; i < 4; ++i) two(i, i) = 2;
  Array<vec4> out = zeros<vec4>(device(), 12);
  launch(k, {3, 4}, out, two, two, two);
  EXPECT_EQ(out.at(7), (vec4{8, 24, 8, 16}));
}

TEST_P(Function, keeps_the_alignment_of_its_arrays) {
  auto add = func("add", [](Arr<vec4> a, Int i) { a[i] += vec4{1, 2, 3, 4}; });
  auto k = kernel("aligned", [=](Arr<vec4> a) { add(a, tid()); });
  expect_contains(ir::print(k.trace()), "align 16");
  const std::string text = ir::print(strided(k, 1));
  EXPECT_EQ(text.find("align 16"), text.npos) << text;
  Array<float> all = zeros<float>(device(), 41);
  Array<vec4> a = zeros<vec4>(device(), 10);
  launch(k, 10, a);
  EXPECT_EQ(a.at(9), (vec4{1, 2, 3, 4}));
}

Float scaled(Float y, float by) {
  auto f = func("scaled", [by](Float v) { return v * by; });
  return f(y);
}

TEST_P(Function, made_in_a_kernel_keeps_to_what_it_captured) {
  Array<float> out = zeros<float>(device(), 8);
  launch(kernel("factors",
                [](Arr<float> out) {
                  for (int k = 0; k < 8; ++k) out[k] = scaled(1.f, float(k + 1));
                }),
         1, out);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(Function, without_a_use_is_not_kept) {
  auto idle = func("idle", [](Float x) { return x * 2; });
  auto live = func("live", [](Float x) { return x * 3; });
  auto k = kernel("uses", [=](Arr<float> out) {
    [[maybe_unused]] Float unused = idle(1);
    out[tid()] = live(2);
  });
  const ir::Module module = k.trace();
  ASSERT_EQ(module.functions.size(), 1u);
  EXPECT_EQ(module.functions[0]->function, "live");
  Array<float> out = zeros<float>(device(), 2);
  launch(k, 2, out);
  EXPECT_EQ(out.at(1), 6.f);
}

TEST_P(Function, reports_accesses_outside_an_array_by_its_own_line) {
  if (!on_reference()) GTEST_SKIP() << "only the reference device checks accesses";
  auto read = func("read", [](Arr<const float> a, Int i) { return a[i]; });
  const int line = __LINE__ - 1;
  auto k = kernel("outside", [=](Arr<const float> a, Arr<float> out) { out[tid()] = read(a, tid() + 3); });
  Array<float> a = zeros<float>(device(), 4), out = zeros<float>(device(), 2);
  const std::string message = error_of([&] { launch(k, 2, a, out); });
  expect_contains(message, "outside");
  expect_contains(message, "index 4 of argument 1");
  expect_contains(message, "function_test.cpp:" + std::to_string(line));
}

TEST_P(Function, prints_and_asserts) {
  auto half_of = func("half_of", [](Int x) {
    print("half of", x);
    return x / 2;
  });
  auto checked = func("checked", [=](Int x, Arr<int> out) {
    assert_(x != 3, "three came");
    out[x] = half_of(x);
  });
  auto outer = func("outer", [=](Int x, Arr<int> out) { checked(x, out); });
  auto k = kernel("prints", [=](Arr<int> out) {
    Int i = tid();
    outer(i, out);
    out[i] += 100;
  });
  const int line = __LINE__ - 9;
  const ir::Module module = k.trace();
  EXPECT_EQ(module.functions.size(), 1u) << ir::print(module);  // a function that ends threads is part of the kernel
  EXPECT_EQ(module.messages.size(), 2u);
  Array<int> out = zeros<int>(device(), 6);
  launch(k, 3, out);
  EXPECT_EQ(out.to_vector(), (std::vector<int>{100, 100, 101, 0, 0, 0}));
  launch(k, 5, out);
  const std::string message = error_of([&] { device().synchronize(); });
  expect_contains(message, "three came");
  expect_contains(message, "thread 3");
  expect_contains(message, "function_test.cpp:" + std::to_string(line));
  EXPECT_EQ(out.to_vector(), (std::vector<int>{100, 100, 101, 0, 102, 0}));
}

TEST_P(Function, is_checked_in_debug_mode) {
  auto read = func("read", [](Arr<const float> a, Int i) { return a[i]; });
  const int line = __LINE__ - 1;
  auto k = kernel("checked", [=](Arr<const float, 2> a, Arr<float> out) { out[tid()] = read(a[1], tid() + 3); },
                  {.debug = true});
  Array<float, 2> a = zeros<float, 2>(device(), {4, 4});
  Array<float> out = full<float>(device(), 2, 7.f);
  launch(k, 2, a, out);
  const std::string message = error_of([&] { device().synchronize(); });
  expect_contains(message, "argument 1");
  expect_contains(message, "function_test.cpp:" + std::to_string(line));
  EXPECT_EQ(out.to_vector(), (std::vector<float>{0, 7}));
}

TEST(FunctionErrors, name_the_chain_of_a_recursion_in_debug_mode) {
  std::function<Float(Float)> again;
  auto f = func("f", [&again](Float x) -> Float { return again(x); });
  again = [=](Float x) { return f(x); };
  auto k = kernel("refused", [=](Arr<float> out) { out[0] = f(1); }, {.debug = true});
  expect_contains(error_of([&] { k.trace(); }), "f -> f");
}

// ---- Refusals

std::string trace_error(const std::function<void(Arr<float>)>& body) {
  auto k = kernel("refused", [=](Arr<float> out) { body(out); });
  return error_of([&] { k.trace(); });
}

TEST(FunctionErrors, name_the_chain_of_a_recursion) {
  std::function<Float(Float)> again;
  auto inner = func("inner", [&again](Float x) -> Float { return again(x); });
  auto outer = func("outer", [=](Float x) -> Float { return inner(x) + 1; });
  again = [=](Float x) { return outer(x); };
  std::string message = trace_error([=](Arr<float> out) { out[0] = outer(1); });
  expect_contains(message, "kernel \"refused\"");
  expect_contains(message, "outer -> inner -> outer");
  expect_contains(message, "function_test.cpp:");

  again = [=](Float x) { return inner(x); };
  message = trace_error([=](Arr<float> out) { out[0] = inner(1); });
  expect_contains(message, "inner -> inner");
}

TEST(FunctionErrors, name_a_captured_value_of_the_caller) {
  for (int which = 0; which < 5; ++which) {
    const std::string message = trace_error([=](Arr<float> out) {
      Float x = 2;
      Int n = 3;
      auto element = out[0];
      auto numbers = range(n);
      auto f = func("captures", [&](Float y) -> Float {
        if (which == 0) return x + y;
        if (which == 1) x = y;
        if (which == 2) return out[1] + y;
        if (which == 3) return element + y;
        if (which == 4)
          for (auto i : numbers) y += Float(i);
        return y;
      });
      out[0] = f(1);
    });
    expect_contains(message, "in func \"captures\"");
    expect_contains(message, "captured");
    expect_contains(message, "function_test.cpp:");
  }
}

TEST(FunctionErrors, name_a_value_that_leaves_the_function) {
  const std::string message = trace_error([=](Arr<float> out) {
    std::vector<Float> kept;
    auto f = func("leaks", [&](Float y) -> Float {
      kept.push_back(y);
      return y;
    });
    out[0] = f(1);
    out[1] = kept[0];
  });
  expect_contains(message, "another trace");
}

TEST(FunctionErrors, refuse_return_and_exits_of_the_callers_loop) {
  auto leave = func("leave", [](Float x) -> Float {
    If (x > 1) {
      Return();
    }
    return x;
  });
  std::string message = trace_error([=](Arr<float> out) { out[0] = leave(1); });
  expect_contains(message, "in func \"leave\"");
  expect_contains(message, "Return()");
  auto stop = func("stop", [](Float x) {
    If (x > 1) {
      Break();
    }
  });
  message = trace_error([=](Arr<float> out) {
    for (auto i : range(3)) stop(out[i]);
  });
  expect_contains(message, "Break() outside a traced loop");
}

TEST(FunctionErrors, are_the_same_where_a_function_is_traced_in_place_of_its_call) {
  for (int how = 0; how < 3; ++how) {
    auto plain = func("plain", [=](Float y) { return y; });
    auto first = [=](Float y) {
      if (how == 0) assert_(y > 0);
      if (how == 1) local_id();
    };
    auto calls = [&](auto f) {
      return kernel("refused",
                    [=](Arr<float> out) {
                      for (auto i : range(3)) out[i] = f(plain(1));
                      Return();  // after functions that have ended
                    },
                    {.debug = how == 2});
    };
    auto fine = func("fine", [=](Float y) {
      first(y);
      for (auto i : range(3)) {
        If (i == 1) {
          Break();
        }
        y += plain(y);
      }
      return y;
    });
    EXPECT_NO_THROW(calls(fine).trace()) << how;
    auto returns = func("returns", [=](Float y) {
      first(y);
      If (plain(y) > 1) {
        Return();
      }
      return y;
    });
    std::string message = error_of([&] { calls(returns).trace(); });
    expect_contains(message, "in func \"returns\"");
    expect_contains(message, "Return()");
    auto breaks = func("breaks", [=](Float y) {
      first(y);
      If (y > 1) {
        Break();
      }
      return y;
    });
    message = error_of([&] { calls(breaks).trace(); });
    expect_contains(message, "in func \"breaks\"");
    expect_contains(message, "Break() outside a traced loop");
  }
}

TEST(FunctionErrors, name_a_captured_value_where_a_function_is_traced_in_place_of_its_call) {
  for (int which = 0; which < 8; ++which)
    for (bool debug : {false, true}) {
      auto k = kernel("refused",
                      [=](Arr<float> out) {
                        Float x = 2;
                        auto tile = shared<float>(256);
                        auto element = out[0];
                        auto f = func("captures", [&](Float y, Arr<float> a) -> Float {
                          If (y > 5) {
                            assert_(y > 0);
                          }
                          if (which == 0) return x + y;
                          if (which == 1) x = y;
                          if (which == 2) return out[1] + y;
                          if (which == 3) return element + y;
                          if (which == 4) return tile[local_id()] + y;
                          if (which == 5) return func("inner", [&](Float z) -> Float { return z + x; })(y);
                          if (which == 6) return func("inner", [&](Float z) -> Float { return z + y; })(y);
                          for (auto i : range(3)) {
                            If (i == 1) {
                              Continue();
                            }
                            y += a[i];
                          }
                          return y;
                        });
                        out[0] = f(1, out) + f(element, out) + x;
                      },
                      {.debug = debug});
      if (which == 7) {
        EXPECT_NO_THROW(k.trace()) << debug;
        continue;
      }
      const std::string message = error_of([&] { k.trace(); });
      expect_contains(message, which == 5 || which == 6 ? "in func \"inner\"" : "in func \"captures\"");
      expect_contains(message, "captured");
      expect_contains(message, "function_test.cpp:");
    }
}

TEST(FunctionErrors, name_an_else_whose_if_stands_on_the_other_side_of_a_call) {
  for (bool debug : {false, true})
    for (bool inside : {false, true}) {
      auto k = kernel("split",
                      [=](Arr<float> out) {
                        auto f = func("half", [=](Arr<float> a) {
                          if (inside) IfChain().else_([&] { a[0] = 2; });
                          If (a[1] > 0) {
                            a[2] = 3;
                          }
                        });
                        IfChain chain = if_(out[0] > 0, [&] { out[1] = 1; });
                        f(out);
                        chain.else_([&] { out[3] = 4; });
                      },
                      {.debug = debug});
      const std::string message = error_of([&] { k.trace(); });
      expect_contains(message, "Else does not follow an If");
      EXPECT_EQ(message.find("in func \"half\"") != message.npos, inside) << message;
    }
}

TEST(FunctionErrors, report_a_native_exit_inside_a_function) {
  auto broken = func("broken", [](Float x) -> Float {
    If (x > 1) {
      return x;
    }
    return x + 1;
  });
  expect_contains(trace_error([=](Arr<float> out) { out[0] = broken(1); }), "left by a native");
}

TEST(FunctionErrors, name_a_call_outside_a_kernel) {
  auto f = func("f", [](Int x) { return x; });
  expect_contains(error_of([&] { f(1); }), "outside a kernel");
}

}  // namespace
