// Elements of arrays, of shared and private arrays, of structs, vectors and matrices are variables as those of C++ are:
// auto copies them, auto& names them, and swaps swap. Each kernel stands beside the same C++ on the host.
#include <utility>

#include "../device_test.h"

using namespace weft;
using test::error_of;
using test::expect_contains;

namespace {

DEVICE_TEST(Elements);

template <template <class> class F = Host>
struct Grain {
  F<vec3> pos;
  F<float> mass;
  F<std::array<float, 4>> weights;
  F<mat22> frame;
};

Grain<> grain(int i) {
  const float f = float(i);
  return {{f, f + 0.25f, f + 0.5f}, f + 0.75f, {f, f + 10, f + 20, f + 30}, mat22{f, f + 1, f + 2, f + 3}};
}

bool same(const Grain<>& a, const Grain<>& b) {
  return a.pos == b.pos && a.mass == b.mass && a.weights == b.weights && a.frame == b.frame;
}

/// Runs `body` on the device over an array of these values, and returns the values after it.
template <class T, class F>
std::vector<T> after(const Device& device, std::vector<T> values, F body) {
  Array<T> a(device, values);
  launch(kernel("element", [&](Arr<T> a) { body(a); }), 1, a);
  return a.to_vector();
}

TEST_P(Elements, the_classic_swap_swaps) {
  const auto swapped = [&]<class T>(T first, T second) {
    const std::vector<T> got = after(device(), std::vector<T>{first, second}, [](auto& a) {
      auto t = a[0];
      a[0] = a[1];
      a[1] = t;
    });
    return got[0] == second && got[1] == first;
  };
  EXPECT_TRUE(swapped(1.f, 2.f));
  EXPECT_TRUE(swapped(std::uint8_t(1), std::uint8_t(2)));
  EXPECT_TRUE(swapped(half(1), half(2)));
  EXPECT_TRUE(swapped(1.0, 2.0));
  EXPECT_TRUE(swapped(vec3{1, 2, 3}, vec3{4, 5, 6}));
  EXPECT_TRUE(swapped(vec<5, int>{1, 2, 3, 4, 5}, vec<5, int>{6, 7, 8, 9, 0}));
  EXPECT_TRUE(swapped(mat22{1, 2, 3, 4}, mat22{5, 6, 7, 8}));
  EXPECT_TRUE(swapped(quat{1, 2, 3, 4}, quat{5, 6, 7, 8}));
  EXPECT_TRUE(swapped(std::array<float, 3>{1, 2, 3}, std::array<float, 3>{4, 5, 6}));
  const auto grains = after(device(), std::vector<Grain<>>{grain(1), grain(2)}, [](Arr<Grain<>>& a) {
    const auto t = a[0];
    a[0] = a[1];
    a[1] = t;
  });
  EXPECT_TRUE(same(grains[0], grain(2)) && same(grains[1], grain(1)));
}

TEST_P(Elements, the_swap_of_the_standard_library_swaps) {
  const auto numbers = after(device(), std::vector<int>{1, 2, 3, 4}, [](Arr<int> a) {
    Int i = tid();
    std::swap(a[i], a[i + 1]);
    using std::swap;
    swap(a[i + 2], a[3]);
  });
  EXPECT_EQ(numbers, (std::vector<int>{2, 1, 4, 3}));
  const auto grains = after(device(), std::vector<Grain<>>{grain(1), grain(2)}, [](Arr<Grain<>> a) {
    std::swap(a[0], a[1]);
    std::swap(a[0].weights[0], a[0].weights[3]);
    std::swap(a[1].pos.x, a[1].pos.z);
    std::swap(a[1].pos, a[0].pos);
  });
  Grain<> first = grain(2), second = grain(1);
  std::swap(first.weights[0], first.weights[3]);
  std::swap(second.pos.x, second.pos.z);
  std::swap(second.pos, first.pos);
  EXPECT_TRUE(same(grains[0], first) && same(grains[1], second));
}

TEST_P(Elements, auto_copies_and_a_reference_names) {
  const auto got = after(device(), std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0}, [](Arr<float> a) {
    auto copy = a[0];
    auto& name = a[1];
    const auto& seen = a[2];
    auto&& also = a[3];
    copy += 10;  // a variable of its own
    name += 10;
    a[2] = 30;
    also = copy;
    a[4] = copy;
    a[5] = seen + 1;  // the element as it is now
    a[6] = [&] { return a[1]; }();
    auto [x, y] = std::pair(a[0], a[1]);
    a[0] = y;
    a[1] = x;
    auto chosen = true ? a[0] : a[1];
    a[0] = 0;
    a[7] = chosen;
  });
  EXPECT_EQ(got, (std::vector<float>{0, 1, 30, 11, 11, 31, 12, 12}));
}

TEST_P(Elements, functions_take_them_by_value_by_reference_and_as_templates) {
  const auto by_value = [](auto x) {
    x *= 2;
    return x;
  };
  const auto by_reference = [](auto& x) { x *= 2; };
  const auto constant = [](const auto& x) { return x + x; };
  const auto variable = [](Float& x) { x += 1; };
  const auto deduced = []<class T>(const Var<T>& x) { return Var<T>(x); };
  const auto got = after(device(), std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0}, [&](Arr<float> a) {
    a[4] = by_value(a[0]);
    by_reference(a[1]);
    a[5] = constant(a[2]);
    variable(a[3]);
    a[6] = deduced(a[3]);
    UInt rng = 1;
    a[7] = Float(rng) + a[0];
  });
  EXPECT_EQ(got, (std::vector<float>{1, 4, 3, 5, 2, 6, 5, 2}));
}

TEST_P(Elements, a_random_state_may_lie_in_memory) {
  Array<unsigned> states(device(), std::vector<unsigned>{7, 8});
  Array<float> out = zeros<float>(device(), 2);
  launch(kernel("draw",
                [](Arr<unsigned> states, Arr<float> out) {
                  Int i = tid();
                  out[i] = randf(states[i]) + randf(states[i]);
                }),
         2, states, out);
  for (unsigned i = 0; i < 2; ++i) {
    std::uint32_t state = 7 + i;
    const float first = randf(state);
    EXPECT_EQ(out.at(int(i)), first + randf(state));
    EXPECT_EQ(states.at(int(i)), state);
  }
}

TEST_P(Elements, parts_are_copied_and_named_as_wholes_are) {
  const auto got = after(device(), std::vector<Grain<>>{grain(1), grain(2), grain(3)}, [](Arr<Grain<>> a) {
    Int i = tid();
    auto x = a[0].pos.x;
    a[0].pos.x = a[0].pos.y;
    a[0].pos.y = x;
    auto m = a[0].mass;
    a[0].mass = a[1].mass;
    a[1].mass = m;
    auto w = a[0].weights[i + 1];
    a[0].weights[i + 1] = a[0].weights[i + 2];
    a[0].weights[i + 2] = w;
    auto row = a[0].frame.row(0);
    a[0].frame.row(0) = a[0].frame.row(i + 1);
    a[0].frame.row(i + 1) = row;
    auto column = a[1].frame.col(0);
    a[1].frame.col(0) = a[1].frame.col(i + 1);
    a[1].frame.col(1) = column;
    auto& place = a[2].pos;
    place.y = 7;
    place[i + 2] += 1;
    for (auto& weight : a[2].weights) weight += 1;
    auto& grain = a[1];
    grain.pos = a[2].pos;
    auto [pos, mass, weights, frame] = a[2];
    a[2].mass = 0;
    a[2].pos = pos * mass;
    weights[0] = 99;
  });
  Grain<> a = grain(1), b = grain(2), c = grain(3);
  std::swap(a.pos.x, a.pos.y);
  std::swap(a.mass, b.mass);
  std::swap(a.weights[1], a.weights[2]);
  a.frame = mat22{3, 4, 1, 2};
  b.frame = mat22{3, 2, 5, 4};
  c.pos.y = 7;
  c.pos.z += 1;
  for (float& weight : c.weights) weight += 1;
  b.pos = c.pos;
  c.pos = c.pos * c.mass;
  c.mass = 0;
  EXPECT_TRUE(same(got[0], a));
  EXPECT_TRUE(same(got[1], b));
  EXPECT_TRUE(same(got[2], c));
}

TEST_P(Elements, parts_of_variables_swap_too) {
  const auto got = after(device(), std::vector<float>(12), [](Arr<float> a) {
    Int i = tid();
    Vec4 v(1, 2, 3, 4);
    auto x = v.x;
    v.x = v[1];
    v[1] = x;
    auto z = v[i + 2];
    v[i + 2] = v[i + 3];
    v[i + 3] = z;
    std::swap(v[i], v[i + 3]);
    for (int k = 0; k < 4; ++k) a[k] = v[k];
    Mat22 m(1, 2, 3, 4);
    auto row = m.row(i);
    m.row(i) = m.row(1);
    m.row(1) = row;
    std::swap(m(i, 0), m(0, i + 1));
    for (int k = 0; k < 4; ++k) a[4 + k] = m(k / 2, k % 2);
    Var<Grain<>> s;
    s.weights = std::array<float, 4>{1, 2, 3, 4};
    auto first = s.weights[i];
    s.weights[i] = s.weights[i + 1];
    s.weights[i + 1] = first;
    std::swap(s.weights[2], s.weights[i + 3]);
    for (int k = 0; k < 4; ++k) a[8 + k] = s.weights[k];
  });
  EXPECT_EQ(got, (std::vector<float>{3, 1, 4, 2, 4, 3, 1, 2, 2, 1, 4, 3}));
}

TEST_P(Elements, fixed_arrays_of_variables_are_assigned_at_traced_indices) {
  using Pair = std::array<vec2, 2>;
  Array<float> out = zeros<float>(device(), 9);
  Array<int> which(device(), std::vector<int>{2, -5, 9});
  launch(kernel("assign",
                [](Arr<float> out, Arr<const int> which) {
                  Int i = tid(), k = which[i];
                  Var<std::array<float, 3>> w;
                  w[k] = 5;
                  w[1] += 1;
                  w[k] += w[k];
                  Var<std::array<Pair, 3>> deep;
                  deep[k][i % 2].y = 3;
                  deep[k][1 - i % 2] = vec2{4, 5};
                  out[i * 3] = w[0] + 100 * w[1] + 10000 * w[2];
                  out[i * 3 + 1] = deep[2][0].y + 10 * deep[2][1].x + 100 * deep[0][i % 2].y;
                  out[i * 3 + 2] = w[k];
                }),
         3, out, which);
  // An index out of range takes the nearest element.
  EXPECT_EQ(out.to_vector(), (std::vector<float>{100100, 43, 10, 110, 300, 10, 100100, 43, 10}));
}

TEST_P(Elements, of_shared_and_private_arrays_swap) {
  constexpr int block = 64;
  Array<int> out = zeros<int>(device(), 2 * block);
  launch(kernel("swap",
                [](Arr<int> out) {
                  Int i = local_id();
                  auto all = shared<int>(block);
                  auto own = private_array<vec2, 2>({{1, 2}});
                  all[i] = i;
                  own(0, 0) = vec2{1, 2};
                  own(0, 1) = vec2{3, 4};
                  barrier();
                  If (i % 2 == 0) {
                    auto t = all[i];
                    all[i] = all[i + 1];
                    all[i + 1] = t;
                  }
                  auto t = own[0][i % 2];
                  own[0][i % 2] = own(0, 1 - i % 2);
                  own(0, 1 - i % 2) = t;
                  std::swap(own(0, 0).x, own(0, 1).y);
                  barrier();
                  out[tid()] = all[i] + 100 * Int(own(0, 0).x) + 1000 * Int(own(0, 1).y);
                },
                {.block = block}),
         2 * block, out);
  const std::vector<int> got = out.to_vector();
  for (int i = 0; i < 2 * block; ++i) ASSERT_EQ(got[std::size_t(i)], ((i % block) ^ 1) + 200 + 3000) << i;
}

TEST_P(Elements, a_row_kept_by_auto_is_a_view) {
  Array<float, 2> a(device(), {2, 2}, std::vector<float>{1, 2, 3, 4});
  launch(kernel("rows",
                [](Arr<float, 2> a) {
                  auto row = a[1];
                  row[0] = 9;
                  auto t = row[1];
                  row[1] = a[0][1];
                  a(0, 1) = t;
                }),
         1, a);
  EXPECT_EQ(a.to_vector(), (std::vector<float>{1, 4, 9, 2}));
}

TEST_P(Elements, gradients_flow_through_copies_and_names) {
  Array<float> x(device(), std::vector<float>{2, 3}), y = zeros<float>(device(), 2);
  x.requires_grad();
  y.requires_grad();
  const auto k = kernel("products", [](Arr<const float> x, Arr<float> y) {
    auto copy = x[0];
    const auto& name = x[1];
    y[0] = copy * name * name;
    auto& out = y[1];
    out = copy;
    out *= name;
  });
  Tape tape;
  tape.record([&] { launch(k, 1, x, y); });
  tape.backward({{y, Array<float>(device(), std::vector<float>{1, 10})}});
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{9 + 30, 12 + 20}));
}

TEST_P(Elements, a_name_is_read_anew_after_each_write) {
  const auto got = after(device(), std::vector<int>{1, 0, 0, 0, 0}, [](Arr<int> a) {
    auto& n = a[0];
    a[1] = n + n;
    a[0] = 5;
    a[2] = n;
    for (auto k : range(3)) {
      a[3] += n;
      n += k;
    }
    atomic_add(n, 100);
    If (n > 100) {
      a[4] = n;
    }
  });
  EXPECT_EQ(got, (std::vector<int>{108, 2, 5, 5 + 5 + 6, 108}));
}

TEST_P(Elements, an_atomic_operation_on_a_variable_is_refused) {
  Array<int> a = zeros<int>(device(), 2);
  const std::string text = error_of([&] {
    launch(kernel("lonely",
                  [](Arr<int> a) {
                    auto copy = a[0];
                    atomic_add(copy, 1);
                  }),
           1, a);
  });
  expect_contains(text, "an atomic operation on a variable");
  expect_contains(text, "element_test.cpp:");
  launch(kernel("counted",
                [](Arr<int> a) {
                  auto& name = a[0];
                  atomic_add(name, 1);
                }),
         5, a);
  EXPECT_EQ(a.at(0), 5);
}

TEST_P(Elements, bits_of_elements_are_taken_without_a_conversion) {
  Array<double> x(device(), std::vector<double>{1.5, -2});
  Array<std::int64_t> bits = zeros<std::int64_t>(device(), 2);
  launch(kernel("bits",
                [](Arr<const double> x, Arr<std::int64_t> bits) {
                  Int i = tid();
                  bits[i] = bitcast<std::int64_t>(x[i]);
                }),
         2, x, bits);
  EXPECT_EQ(bits.at(0), std::bit_cast<std::int64_t>(1.5));
  EXPECT_EQ(bits.at(1), std::bit_cast<std::int64_t>(-2.0));
}

TEST_P(Elements, a_choice_of_two_host_numbers_adapts_as_they_do) {
  Array<std::uint8_t> bytes(device(), std::vector<std::uint8_t>{0, 9, 200});
  Array<float> reals(device(), std::vector<float>{0.5f, 1.5f, 2.5f});
  Array<int> ints = zeros<int>(device(), 3);
  launch(kernel("choose",
                [](Arr<std::uint8_t> bytes, Arr<float> reals, Arr<int> ints) {
                  Int i = tid();
                  auto plain = select(i > 0, 1, 0);
                  plain += 3;
                  ints[i] = plain + select(i > 1, select(i > 0, 10, 20), 30);
                  UInt8 b = select(bytes[i] > 100, 255, 1);
                  b = b - select(i == 2, 5, 0);
                  reals[i] = select(i > 0, 1, 0) * reals[i] + min(reals[i], select(i > 1, 1, 2));
                  bytes[i] = select(i == 0, 7, 8);
                  bytes[i] += b;
                }),
         3, bytes, reals, ints);
  EXPECT_EQ(bytes.to_vector(), (std::vector<std::uint8_t>{8, 9, 2}));
  EXPECT_EQ(reals.to_vector(), (std::vector<float>{0.5f, 3, 3.5f}));
  EXPECT_EQ(ints.to_vector(), (std::vector<int>{33, 34, 14}));
  expect_contains(error_of([&] {
                    launch(kernel("large", [](Arr<std::uint8_t> b) { b[0] = select(b[1] > 1, 256, 1); }), 1, bytes);
                  }),
                  "the literal 256 is out of the range of uint8");
}

TEST_P(Elements, a_choice_that_auto_keeps_adapts_in_loops_too) {
  Array<std::uint8_t> bytes = zeros<std::uint8_t>(device(), 3);
  Array<float> reals = zeros<float>(device(), 3);
  launch(kernel("kept",
                [](Arr<std::uint8_t> bytes, Arr<float> reals) {
                  Int i = tid();
                  auto one = select(i > 0, 1, 0);
                  auto half = select(i > 0, 0.5, 0.25);  // a float, even if there is no float64
                  for ([[maybe_unused]] auto k : range(5)) bytes[i] += one;
                  for ([[maybe_unused]] auto k : range(3)) {
                    reals[i] += half;
                    reals[i] += one;
                  }
                }),
         3, bytes, reals);
  EXPECT_EQ(bytes.to_vector(), (std::vector<std::uint8_t>{0, 5, 5}));
  EXPECT_EQ(reals.to_vector(), (std::vector<float>{0.75f, 4.5f, 4.5f}));
  const auto refused = [&](const std::function<void(Arr<std::uint8_t>)>& body) {
    expect_contains(error_of([&] { launch(kernel("assigned", [&](Arr<std::uint8_t> b) { body(b); }), 1, bytes); }),
                    "declare its type");
  };
  refused([](Arr<std::uint8_t> b) {
    auto one = select(b[1] > 1, 1, 0);
    one = 300;
    b[0] = one;
  });
  refused([](Arr<std::uint8_t> b) {
    auto one = select(b[1] > 1, 1, 0);
    for ([[maybe_unused]] auto k : range(3)) {
      b[0] += one;  // 4 in the second round, which is not known here
      one = 4;
    }
  });
}

TEST_P(Elements, a_choice_that_auto_keeps_and_assigns_is_converted_as_any_variable) {
  Array<float> out = zeros<float>(device(), 4);
  launch(kernel("converted",
                [](Arr<float> out) {
                  auto n = select(out[0] == 0, 1, 0);
                  n += 2;
                  out[1] = Float(n) / 2;
                  for ([[maybe_unused]] auto k : range(3)) n += 2;
                  out[2] = Float(n);
                  auto x = select(out[0] == 0, 1.5f, 2.5f);
                  x *= 2;
                  out[3] = Float(Int(x)) + Float(UInt8(select(out[0] == 0, 7, 8)));
                }),
         1, out);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{0, 1.5f, 9, 10}));
}

TEST_P(Elements, a_choice_of_two_types_rounds_no_number) {
  Array<float> out = zeros<float>(device(), 1);
  const auto launched = [&](const auto& choose) {
    launch(kernel("choose", [&](Arr<float> out) { out[0] = choose(out[0] == 0); }), 1, out);
    return out.at(0);
  };
  const auto refused = [&](const auto& choose) { return error_of([&] { launched(choose); }); };
  expect_contains(refused([](const Bool& b) { return Float(select(b, 16777217, 0.5f)); }), "of 16777217, which");
  expect_contains(refused([](const Bool& b) { return Float(select(b, 0.5f, -16777217)); }), "of -16777217, which");
  EXPECT_EQ(launched([](const Bool& b) { return Float(select(b, 16777216, 0.5f)); }), 16777216);
  EXPECT_EQ(launched([](const Bool& b) { return Float(select(b, 0u, 0.5f)); }), 0.5f);
}

TEST_P(Elements, a_choice_of_two_host_numbers_is_taken_by_functions_and_ranges) {
  Array<float> out = zeros<float>(device(), 12);
  Array<std::int64_t> wide = zeros<std::int64_t>(device(), 8);
  launch(kernel("functions",
                [](Arr<float> out, Arr<std::int64_t> wide) {
                  Bool b = out[0] == 0;
                  out[1] = lerp(Float(2), Float(4), select(b, 0.5f, 1.f));
                  out[2] = lerp(Float(2), Float(4), select(b, 0.5, 1.0));
                  out[3] = smoothstep(select(b, 0.f, 1.f), Float(2), Float(1));
                  out[4] = max(Vec3(1, 2, 3), select(b, 2.5f, 0.f)).x;
                  out[5] = clamp(Vec3(1, 2, 3), select(b, 1.5f, 0.f), select(b, 2, 9)).z;
                  out[6] = pow(Vec3(1, 2, 3), select(b, 2.f, 1.f)).y;
                  out[7] = quat_from_axis_angle(Vec3(0, 0, 1), select(b, 0.f, 1.f)).w;
                  out[8] = quat_rpy(select(b, 0.f, 1.f), Float(0), Float(0)).w;
                  out[9] = select(b, 1.5, 2);  // two types: the result has the one that holds both
                  out[10] = select(!b, 1.5f, -2) + select(b, 1, 2.5f);
                  for (auto i : range(select(b, std::int64_t(4), std::int64_t(8)))) wide[i] = i + 1;
                  wide[7] = select(b, 5000000000, 1);
                }),
         1, out, wide);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{0, 3, 3, 0.5f, 2.5f, 2, 4, 1, 1, 1.5f, -1, 0}));
  EXPECT_EQ(wide.to_vector(), (std::vector<std::int64_t>{1, 2, 3, 4, 0, 0, 0, 5000000000}));
}

}  // namespace
