// Vectors, matrices, quaternions and transforms of every scalar type: construction, operators, parts by host and traced
// index, in variables, arrays and parameters; the host computes the same.
#include "../faces.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::faces_agree;
using weft::test::kTolerance;
using weft::test::on_device;
using weft::test::random_values;

namespace {

DEVICE_TEST(Types);

TEST_P(Types, vectors_of_every_number_type_compute_like_the_hosts) {
  auto check = [&]<class T>(T) {
    using V = vec<5, T>;
    const std::vector<V> a = {V{1, 2, 3, 4, 5}, V{7, 6, 5, 4, 3}}, b = {V{2, 3, 1, 5, 4}, V{1, 2, 3, 1, 2}};
    auto same = [&](const char* what, auto f) { faces_agree(device(), 0, what, f, a, b); };
    same("+", [](auto&& x, auto&& y) { return x + y; });
    same("-", [](auto&& x, auto&& y) { return x - y; });
    same("*", [](auto&& x, auto&& y) { return x * y; });
    same("scalar *", [](auto&& x, auto&& y) { return 2 * x * y[1]; });
    same("unary -", [](auto&& x, auto&& y) { return -x - y; });
    same("==", [](auto&& x, auto&& y) { return (x == y) == (x == x); });
    same("!=", [](auto&& x, auto&& y) { return x != y; });
    if constexpr (IntegerScalar<T>) {
      same("/", [](auto&& x, auto&& y) { return x / y + x / 2 + 100 / y; });
      same("%", [](auto&& x, auto&& y) { return x % y + x % 3; });
      same("bits", [](auto&& x, auto&& y) { return ((x & y) | (x ^ 3)) ^ ~y; });
      same("shifts", [](auto&& x, auto&& y) { return (x << y) >> 1; });
    } else {
      faces_agree(
          device(), kTolerance<T>, "/", [](auto&& x, auto&& y) { return x / y + x / 2 + 100 / y; }, a, b);
    }
  };
  check(std::int8_t()), check(std::int16_t()), check(int()), check(std::int64_t());
  check(std::uint8_t()), check(std::uint16_t()), check(unsigned()), check(std::uint64_t());
  check(half()), check(float()), check(double());
}

TEST_P(Types, boolean_vectors_have_logic_any_and_all) {
  using B = vec<3, bool>;
  std::vector<B> a, b;
  for (int k = 0; k < 64; ++k) {
    a.push_back(B{bool(k & 1), bool(k & 2), bool(k & 4)});
    b.push_back(B{bool(k & 8), bool(k & 16), bool(k & 32)});
  }
  auto same = [&](const char* what, auto f) { faces_agree(device(), 0, what, f, a, b); };
  same("&", [](auto&& x, auto&& y) { return x & y; });
  same("|", [](auto&& x, auto&& y) { return x | y; });
  same("^ !", [](auto&& x, auto&& y) { return x ^ !y; });
  same("any", [](auto&& x, auto&& y) { return any(x) == any(y); });
  same("all", [](auto&& x, auto&& y) { return all(x) != all(y); });
  const auto chosen = on_device(
      device(),
      [](auto&& x, auto&&) {
        return select(x, vec3i{1, 2, 3}, vec3i{-1, -2, -3});
      },
      a, b);
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(chosen[i], (vec3i{a[i].x ? 1 : -1, a[i].y ? 2 : -2, a[i].z ? 3 : -3}));
}

TEST_P(Types, vectors_are_built_from_numbers_shorter_vectors_and_other_element_types) {
  Array<vec4> four = zeros<vec4>(device(), 6);
  Array<vec<7, double>> seven = zeros<vec<7, double>>(device(), 3);
  Array<vec3i> ints = zeros<vec3i>(device(), 3);
  launch(kernel("build",
                [](Arr<vec4> four, Arr<vec<7, double>> seven, Arr<vec3i> ints, Vec3 v, Vec2 w, Float s) {
                  four[0] = Vec4(v, 1);
                  four[1] = Vec4(s, v);
                  four[2] = Vec4(w, w);
                  four[3] = Vec4(w, s, vec<1, float>(9));
                  four[4] = Vec4(2.5);
                  four[5] = Vec4(four[0].y, 2, s, 0);
                  seven[0] = Vec<7, double>(1, 2, 3, 4, 5, 6, Double(s));
                  seven[1] = Vec<7, double>(Vec3d(v), vec2d{8, 9}, seven[0][6], 1);
                  seven[2] = vec<7, double>{1, 2, 3, 4, 5, 6, 7};
                  ints[0] = Vec3i(v * 1.75);
                  ints[1] = Vec3i(ints[0].z, tid() + 3, -1);
                  ints[2] = Vec3i(Vec<3, bool>(true, false, true));
                }),
         1, four, seven, ints, vec3{1, 2, 3}, vec2{4, 5}, 6.f);
  EXPECT_EQ(four.to_vector(),
            (std::vector<vec4>{{1, 2, 3, 1}, {6, 1, 2, 3}, {4, 5, 4, 5}, {4, 5, 6, 9}, vec4(2.5), {2, 2, 6, 0}}));
  EXPECT_EQ(seven.at(0), (vec<7, double>{1, 2, 3, 4, 5, 6, 6}));
  EXPECT_EQ(seven.at(1), (vec<7, double>{vec3d{1, 2, 3}, vec2d{8, 9}, 6, 1}));
  EXPECT_EQ(seven.at(2), (vec<7, double>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(ints.to_vector(), (std::vector<vec3i>{{1, 3, 5}, {5, 3, -1}, {1, 0, 1}}));
  EXPECT_EQ((vec3i(vec3{1.5, -2.5, 3e10})), (vec3i{1, -2, 2147483647}));
  EXPECT_EQ((vec4{vec3{1, 2, 3}, 4}), (vec4{1, 2, 3, 4}));
}

TEST_P(Types, a_traced_index_reads_and_writes_components_the_nearest_where_out_of_range) {
  const int n = 9;  // indices -2 .. 6 of a vector of 5
  Array<vec<5, int>> out = zeros<vec<5, int>>(device(), n), in_memory = zeros<vec<5, int>>(device(), n);
  Array<int> read = zeros<int>(device(), n), read_memory = zeros<int>(device(), n);
  launch(kernel("dynamic",
                [](Arr<vec<5, int>> out, Arr<vec<5, int>> memory, Arr<int> read, Arr<int> read_memory) {
                  Int i = tid(), at = i - 2;
                  Vec<5, int> v(10, 20, 30, 40, 50);
                  const Vec<5, int> fixed = v;
                  memory[i] = v;
                  read[i] = v[at] + fixed[at] * 1000;
                  read_memory[i] = memory[i][at];
                  v[at] = -1;
                  v[at] -= 5;
                  memory[i][Int64(at)] = -1;
                  memory[i][Int8(at)] -= 5;
                  If (at == 2) {
                    v[at] = v[at + 1];
                  }
                  out[i] = v;
                }),
         n, out, in_memory, read, read_memory);
  for (int i = 0; i < n; ++i) {
    const int at = std::min(std::max(i - 2, 0), 4);
    vec<5, int> v{10, 20, 30, 40, 50};
    EXPECT_EQ(read.at(i), v[at] * 1001);
    EXPECT_EQ(read_memory.at(i), v[at]);
    v[at] = -6;
    EXPECT_EQ(in_memory.at(i), v) << i;
    if (at == 2) v[at] = 40;
    EXPECT_EQ(out.at(i), v) << i;
  }
}

TEST_P(Types, traced_indices_reach_elements_of_matrices) {
  using M = mat<3, 4, float>;
  M m;
  for (int k = 0; k < 12; ++k) m.m[k] = float(k + 1);
  const int n = 30;  // rows -1 .. 3, columns -1 .. 4
  Array<M> out = zeros<M>(device(), n), memory = full<M>(device(), n, m);
  Array<float> read = zeros<float>(device(), n);
  Array<vec4> rows = zeros<vec4>(device(), n);
  Array<vec3> columns = zeros<vec3>(device(), n);
  launch(kernel("elements",
                [](Arr<M> out, Arr<M> memory, Arr<float> read, Arr<vec4> rows, Arr<vec3> columns, Mat<3, 4, float> m) {
                  Int t = tid(), i = t / 6 - 1, j = t % 6 - 1;
                  read[t] = m(i, j) + memory[t](i, j) * 100 + m(1, j) * 10000 + memory[t](i, 2) * 0.25;
                  rows[t] = m.row(i) + memory[t].row(i);
                  columns[t] = m.col(j);
                  m(i, j) = 0.5;
                  m(2, j) += 100;
                  out[t] = m;
                  memory[t](i, j) = 0.5;
                  memory[t](2, j) += 100;
                }),
         n, out, memory, read, rows, columns, m);
  for (int t = 0; t < n; ++t) {
    const int i = std::min(std::max(t / 6 - 1, 0), 2), j = std::min(std::max(t % 6 - 1, 0), 3);
    M e = m;
    EXPECT_EQ(read.at(t), m(i, j) * 101 + m(1, j) * 10000 + m(i, 2) * 0.25f);
    EXPECT_EQ(rows.at(t), m.row(i) * 2);
    EXPECT_EQ(columns.at(t), m.col(j));
    e(i, j) = 0.5;
    e(2, j) += 100;
    EXPECT_EQ(out.at(t), e) << t;
    EXPECT_EQ(memory.at(t), e) << t;
  }
}

TEST_P(Types, an_index_out_of_range_that_the_trace_sees_is_refused) {
  Array<vec3> a = zeros<vec3>(device(), 1);
  int line = 0;
  auto k = kernel("beyond", [&](Arr<vec3> a) {
    Vec3 v = a[0];
    line = __LINE__ + 1;
    a[0] = v * v[3];
  });
  const std::string message = error_of([&] { launch(k, 1, a); });
  expect_contains(message, "types_test.cpp:" + std::to_string(line));
  expect_contains(message, "index 3 is out of range");
  expect_contains(error_of([&] { launch(kernel("m", [](Arr<vec3> a) { a[0][-1] = 1; }), 1, a); }), "index -1");
  expect_contains(error_of([&] { launch(kernel("m", [](Arr<vec3> a) { a[0].x = Mat22()(0, 2); }), 1, a); }), "index 2");
}

TEST_P(Types, matrices_of_every_real_type_compute_like_the_hosts) {
  auto check = [&]<class T>(T) {
    const auto a = random_values<mat<2, 3, T>>(8, -2, 2, 1), b = random_values<mat<2, 3, T>>(8, -2, 2, 2);
    const auto c = random_values<mat<3, 3, T>>(8, -2, 2, 3);
    const auto v = random_values<vec<3, T>>(8, -2, 2, 4);
    const double eps = kTolerance<T>;
    faces_agree(
        device(), eps, "+ - *", [](auto&& x, auto&& y) { return -(x + y) * 3 - 0.5 * x / 4; }, a, b);
    faces_agree(
        device(), eps, "mat * mat", [](auto&& x, auto&& y) { return x * y; }, a, c);
    faces_agree(
        device(), eps, "mat * vec", [](auto&& x, auto&& y) { return x * y; }, c, v);
    faces_agree(
        device(), eps, "vec * mat", [](auto&& x, auto&& y) { return y * x; }, c, v);
    faces_agree(
        device(), eps, "host mat * mat", [](auto&& x, auto&&) { return mat<3, 2, T>{1, 2, 3, 4, 5, 6} * x; }, a, v);
    faces_agree(
        device(), eps, "mat * host mat", [](auto&& x, auto&&) { return x * mat<3, 2, T>{1, 2, 3, 4, 5, 6}; }, a, v);
    faces_agree(
        device(), eps, "host square", [](auto&& x, auto&&) { return mat<3, 3, T>::identity() * x * mat<3, 3, T>(2); },
        c, v);
    faces_agree(
        device(), 0, "==", [](auto&& x, auto&& y) { return (x == y) != (x != x); }, a, b);
  };
  check(half()), check(float()), check(double());
}

TEST_P(Types, compound_assignments_work_on_variables_and_elements) {
  Array<mat33> m(device(), {mat33{1, 2, 3, 4, 5, 6, 7, 8, 9}, mat33::identity()});
  Array<vec3i> v(device(), {{7, 8, 9}});
  Array<quat> q(device(), {quat{1, 2, 3, 4}});
  launch(kernel("compound",
                [](Arr<mat33> m, Arr<vec3i> v, Arr<quat> q) {
                  Mat33 a = m[0];
                  a += mat33::identity();
                  a *= 2;
                  a *= Mat33::identity();
                  m[1] += a;
                  m[1] -= mat33(1);
                  m[1] *= m[1];
                  m[1] /= 2;
                  v[0] += vec3i{1, 1, 1};
                  v[0] <<= 2;
                  v[0] %= vec3i{5, 7, 30};
                  v[0] |= 8;
                  Quat p = q[0];
                  p *= quat{0, 0, 1, 0};
                  p -= q[0];
                  q[0] *= p;
                  q[0] /= 2;
                }),
         1, m, v, q);
  const mat33 m0{1, 2, 3, 4, 5, 6, 7, 8, 9};
  mat33 e = mat33::identity() + (m0 + mat33::identity()) * 2 - mat33(1);
  e = e * e / 2;
  EXPECT_EQ(m.at(1), e);
  EXPECT_EQ(v.at(0), (vec3i{(8 << 2) % 5 | 8, (9 << 2) % 7 | 8, (10 << 2) % 30 | 8}));
  const quat q0{1, 2, 3, 4};
  EXPECT_EQ(q.at(0), q0 * (q0 * quat{0, 0, 1, 0} - q0) / 2);
}

TEST_P(Types, rows_and_columns_are_read_and_replaced) {
  Array<mat33> m(device(), {mat33{1, 2, 3, 4, 5, 6, 7, 8, 9}});
  Array<vec3> v = zeros<vec3>(device(), 2);
  launch(kernel("rows",
                [](Arr<mat33> m, Arr<vec3> v) {
                  Mat33 a = m[0];
                  v[0] = a.row(1);
                  v[1] = a.col(2);
                  a.set_row(0, v[1]);
                  a.set_col(1, vec3{-1, -2, -3});
                  Int two = tid() + 2;
                  a.set_row(two, a.row(two) * 10);
                  a.set_col(two, a.col(two) + a.col(0));
                  m[0] = a;
                  m[0].row(1) = vec3{0.5, 0.25, 0.125};
                  m[0].row(1).y += 1;
                }),
         1, m, v);
  mat33 a{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(v.at(0), a.row(1));
  EXPECT_EQ(v.at(1), a.col(2));
  a.set_row(0, vec3{3, 6, 9});
  a.set_col(1, vec3{-1, -2, -3});
  a.set_row(2, a.row(2) * 10);
  a.set_col(2, a.col(2) + a.col(0));
  a.set_row(1, vec3{0.5, 1.25, 0.125});
  EXPECT_EQ(m.at(0), a);
}

TEST_P(Types, quaternions_and_transforms_travel_as_arguments_and_elements) {
  auto check = [&]<class T>(T) {
    using Q = quaternion<T>;
    using X = transformation<T>;
    const Q q{0.5, -0.5, 0.5, 0.5};
    const X x{vec<3, T>{1, 2, 3}, q};
    Array<Q> qs = full<Q>(device(), 2, q);
    Array<X> xs = full<X>(device(), 3, x);
    launch(kernel("travel",
                  [](Arr<Q> qs, Arr<X> xs, Var<Q> q, Var<X> x) {
                    qs[0].w = qs[1].x + q.y;
                    qs[1] = q * 2;
                    xs[0].p += x.p;
                    xs[0].q.z = 7;
                    xs[1].q = xs[0].q;
                    xs[1].p.y = x.q[3];
                    Var<X> y(x.p * 3, q);
                    y.p.x = 0;
                    xs[2] = y;
                  }),
           1, qs, xs, q, x);
    EXPECT_EQ(qs.at(0), (Q{0.5, -0.5, 0.5, 0}));
    EXPECT_EQ(qs.at(1), (Q{1, -1, 1, 1}));
    EXPECT_EQ(xs.at(0), (X{vec<3, T>{2, 4, 6}, Q{0.5, -0.5, 7, 0.5}}));
    EXPECT_EQ(xs.at(1), (X{vec<3, T>{1, T(0.5), 3}, Q{0.5, -0.5, 7, 0.5}}));
    EXPECT_EQ(xs.at(2), (X{vec<3, T>{0, 6, 9}, q}));
  };
  check(half()), check(float()), check(double());
}

TEST_P(Types, increments_give_the_value_before_or_after) {
  Array<int> a = zeros<int>(device(), 6);
  launch(kernel("increments",
                [](Arr<int> a) {
                  Int i = 5;
                  a[0] = i++;
                  a[1] = ++i;
                  a[2] = i--;
                  a[3] = --i;
                  a[4] = a[5]++;
                  a[5]++;
                  --a[5];
                }),
         1, a);
  EXPECT_EQ(a.to_vector(), (std::vector<int>{5, 7, 7, 5, 0, 1}));
}

TEST_P(Types, messages_name_types_as_users_write_them) {
  auto name = [&]<class X>(X) { return kernel("names", [](Arr<X>, Var<X>) {}).trace().params[0].type_name; };
  EXPECT_EQ(name(vec3d()), "Array<vec3d>");
  EXPECT_EQ(name(vec4us()), "Array<vec4us>");
  EXPECT_EQ(name(mat44h()), "Array<mat44h>");
  EXPECT_EQ(name(quat()), "Array<quat>");
  EXPECT_EQ(name(transformd()), "Array<transformd>");
  EXPECT_EQ(name(spatial_vector()), "Array<vec<6, float32>>");
  EXPECT_EQ(name(mat<2, 3, int>()), "Array<mat<2, 3, int32>>");
}

}  // namespace
