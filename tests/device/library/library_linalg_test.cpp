// Determinant, inverse and the factorisations: every device against the definition of the results (reconstruction,
// orthogonality, order, signs) and against the host face, over random matrices and all kinds of special ones.
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(LibraryLinalg);

using Matrix = std::array<std::array<double, 3>, 3>;

/// Tolerances relative to the largest element of the matrix (docs/semantics.md).
template <class T>
constexpr double kTolerance = sizeof(T) == 2   ? 2e-3
                              : sizeof(T) == 4 ? 1e-5
                                               : 1e-12;

template <int N, class T>
double largest(const mat<N, N, T>& a) {
  double m = 0;
  for (int k = 0; k < N * N; ++k) m = std::max(m, std::abs(double(a(k / N, k % N))));
  return m;
}
template <int N, class T>
double difference(const mat<N, N, T>& a, const mat<N, N, double>& b) {
  double m = 0;
  for (int k = 0; k < N * N; ++k) {
    const double d = std::abs(double(a(k / N, k % N)) - b(k / N, k % N));
    m = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(m, d);
  }
  return m;
}
template <int N, class T>
mat<N, N, double> in_double(const mat<N, N, T>& a) {
  mat<N, N, double> b;
  for (int k = 0; k < N * N; ++k) b(k / N, k % N) = double(a(k / N, k % N));
  return b;
}
template <int N>
mat<N, N, double> diagonal(const vec<N, double>& d) {
  mat<N, N, double> a;
  for (int i = 0; i < N; ++i) a(i, i) = d[i];
  return a;
}
template <int N, class T>
vec<N, double> in_double(const vec<N, T>& a) {
  vec<N, double> b;
  for (int k = 0; k < N; ++k) b[k] = double(a[k]);
  return b;
}
double det(const mat22d& a) { return a(0, 0) * a(1, 1) - a(0, 1) * a(1, 0); }
double det(const mat33d& a) {
  return a(0, 0) * (a(1, 1) * a(2, 2) - a(1, 2) * a(2, 1)) - a(0, 1) * (a(1, 0) * a(2, 2) - a(1, 2) * a(2, 0)) +
         a(0, 2) * (a(1, 0) * a(2, 1) - a(1, 1) * a(2, 0));
}
/// Whether Q^T Q = 1 and det Q = 1.
template <int N, class T>
bool is_rotation(const mat<N, N, T>& q, double tolerance) {
  const auto d = in_double(q);
  return difference(transpose(d) * d, mat<N, N, double>::identity()) <= 4 * tolerance &&
         std::abs(det(d) - 1) <= 8 * tolerance;
}

std::mt19937_64& generator() {
  static std::mt19937_64 g(20261121);
  return g;
}
double normal() {
  static std::normal_distribution<double> d;
  return d(generator());
}
double uniform() { return std::uniform_real_distribution<double>(-1, 1)(generator()); }

template <int N>
mat<N, N, double> random_matrix() {
  mat<N, N, double> a;
  for (int k = 0; k < N * N; ++k) a(k / N, k % N) = normal();
  return a;
}
mat22d random_rotation2() {
  const double t = 4 * uniform();
  return {std::cos(t), -std::sin(t), std::sin(t), std::cos(t)};
}
mat33d random_rotation3() {
  double x = normal(), y = normal(), z = normal(), w = normal();
  const double l = std::sqrt(x * x + y * y + z * z + w * w);
  x /= l, y /= l, z /= l, w /= l;
  return {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
          2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
          2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
}
template <int N>
mat<N, N, double> random_rotation() {
  if constexpr (N == 2)
    return random_rotation2();
  else
    return random_rotation3();
}

/// Singular values of special kinds: equal ones, tiny ones, zeros, and all sizes.
vec3d special_values(int kind, double decades) {
  const double small = std::pow(10., decades * (uniform() - 1) / 2),
               other = std::pow(10., decades * (uniform() - 1) / 2);
  switch (kind % 9) {
    case 0: return {1, 1, 1};
    case 1: return {1, 1, small};
    case 2: return {1, small, small};
    case 3: return {1, small, small * other};
    case 4: return {1, 1 + 1e-4 * uniform(), 1 + 1e-4 * uniform()};
    case 5: return {1, std::abs(uniform()), 0};
    case 6: return {1, 0, 0};
    case 7: return {1, 1, 0};
    default: return {1, 3e-4, 1e-4};
  }
}

/// n matrices: random ones; products of rotations and special values (with either sign of the determinant); small whole
/// numbers with zeros in all places; products of a column and a row; and all these at the ends of the range of T.
template <class T, int N>
std::vector<mat<N, N, T>> matrices(int n, bool symmetric = false) {
  const double far = sizeof(T) == 2 ? 8 : sizeof(T) == 4 ? 100 : 900;
  std::vector<mat<N, N, T>> out;
  for (int k = 0; int(out.size()) < n; ++k) {
    mat<N, N, double> a;
    if (k % 4 == 0) {
      a = random_matrix<N>();
    } else if (k % 4 == 1) {
      auto whole = [](int most) { return double(int(generator()() % (2 * most + 1)) - most); };
      for (int e = 0; e < N * N; ++e) a(e / N, e % N) = whole(1);
      // The matrix has rank 1: all columns of a v but one are rounding errors.
      if (k % 8 == 5) {
        vec<N, double> u, v;
        for (int i = 0; i < N; ++i) u[i] = whole(2), v[i] = symmetric ? u[i] : whole(2);
        for (int e = 0; e < N * N; ++e) a(e / N, e % N) = u[e / N] * v[e % N];
      }
      if (k % 8 == 1)
        for (int e = 0; e < N * N; ++e)
          if ((e / N + k / 8) % N != e % N) a(e / N, e % N) = 0;
    } else {
      vec<N, double> s;
      const vec3d special = special_values(k / 4, sizeof(T) == 2 ? 3 : sizeof(T) == 4 ? 8 : 17);
      for (int i = 0; i < N; ++i) s[i] = k % 8 == 2 ? -special[i] : special[i];
      const auto u = random_rotation<N>(), v = symmetric ? u : random_rotation<N>();
      a = u * diagonal<N>(s) * transpose(v);
    }
    if (symmetric) a = (a + transpose(a)) * 0.5;
    const double scale = k % 5 == 4 ? std::ldexp(1., int(far * uniform())) : 1;
    mat<N, N, T> t;
    for (int e = 0; e < N * N; ++e) t(e / N, e % N) = T(float(0)), t(e / N, e % N) = T(a(e / N, e % N) * scale);
    out.push_back(t);
  }
  out.push_back(mat<N, N, T>());
  return out;
}

// Checks that u and v are rotations, that u diag(sigma) v^T = a, that values fall, and that the last one has the sign
// of the determinant.
template <int N, class T>
void check_svd(const mat<N, N, T>& a, const mat<N, N, T>& u, const vec<N, T>& sigma, const mat<N, N, T>& v) {
  const double tolerance = kTolerance<T>, norm = largest(a);
  const auto s = in_double(sigma);
  ASSERT_TRUE(is_rotation(u, tolerance));
  ASSERT_TRUE(is_rotation(v, tolerance));
  ASSERT_LE(difference(a, in_double(u) * diagonal<N>(s) * transpose(in_double(v))), tolerance * norm);
  for (int i = 0; i + 1 < N; ++i) ASSERT_GE(s[i], std::abs(s[i + 1]));
  const double size = norm > 0 ? norm : 1;
  const double d = det(in_double(a) * (1 / size));
  if (std::abs(d) > 100 * tolerance) {
    ASSERT_EQ(s[N - 1] < 0, d < 0);
  }
}

template <class T, int N>
void svd_on(const Device& device) {
  const auto in = matrices<T, N>(2000);
  const auto n = std::int64_t(in.size());
  using M = mat<N, N, T>;
  using V = vec<N, T>;
  Array<M> a(device, in), u = zeros<M>(device, n), v = zeros<M>(device, n);
  Array<V> sigma = zeros<V>(device, n);
  launch(kernel("svd",
                [](Arr<const M> a, Arr<M> u, Arr<V> sigma, Arr<M> v) {
                  Int i = tid();
                  if constexpr (N == 2) {
                    auto [l, s, r] = svd2(a[i]);
                    u[i] = l, sigma[i] = s, v[i] = r;
                  } else {
                    auto [l, s, r] = svd3(a[i]);
                    u[i] = l, sigma[i] = s, v[i] = r;
                  }
                }),
         n, a, u, sigma, v);
  const auto us = u.to_vector(), vs = v.to_vector();
  const auto ss = sigma.to_vector();
  for (std::size_t i = 0; i < in.size(); ++i) {
    SCOPED_TRACE("matrix " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(check_svd(in[i], us[i], ss[i], vs[i]));
    // The host computes the same values, because singular values are unique.
    Svd<N, T> host;
    if constexpr (N == 2)
      host = svd2(in[i]);
    else
      host = svd3(in[i]);
    ASSERT_NO_FATAL_FAILURE(check_svd(in[i], host.u, host.sigma, host.v));
    for (int k = 0; k < N; ++k)
      ASSERT_NEAR(double(ss[i][k]), double(host.sigma[k]), 2 * kTolerance<T> * largest(in[i]));
  }
}

TEST_P(LibraryLinalg, svd3_rebuilds_every_kind_of_matrix) {
  svd_on<half, 3>(device());
  svd_on<float, 3>(device());
  svd_on<double, 3>(device());
}

TEST_P(LibraryLinalg, svd2_rebuilds_every_kind_of_matrix) {
  svd_on<half, 2>(device());
  svd_on<float, 2>(device());
  svd_on<double, 2>(device());
}

template <class T>
void qr_on(const Device& device) {
  using M = mat<3, 3, T>;
  const auto in = matrices<T, 3>(2000);
  const auto n = std::int64_t(in.size());
  Array<M> a(device, in), q = zeros<M>(device, n), r = zeros<M>(device, n);
  launch(kernel("qr",
                [](Arr<const M> a, Arr<M> q, Arr<M> r) {
                  Int i = tid();
                  qr3(a[i], q[i], r[i]);
                }),
         n, a, q, r);
  const auto qs = q.to_vector(), rs = r.to_vector();
  auto check = [](const M& a, const M& q, const M& r) {
    ASSERT_TRUE(is_rotation(q, kTolerance<T>));
    ASSERT_LE(difference(a, in_double(q) * in_double(r)), kTolerance<T> * largest(a));
    for (auto [i, j] : {std::pair(1, 0), {2, 0}, {2, 1}}) ASSERT_EQ(double(r(i, j)), 0);
    ASSERT_GE(double(r(0, 0)), 0);
    ASSERT_GE(double(r(1, 1)), 0);
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    SCOPED_TRACE("matrix " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(check(in[i], qs[i], rs[i]));
    const auto host = qr3(in[i]);
    ASSERT_NO_FATAL_FAILURE(check(in[i], host.q, host.r));
  }
}

TEST_P(LibraryLinalg, qr3_rebuilds_every_kind_of_matrix) {
  qr_on<half>(device());
  qr_on<float>(device());
  qr_on<double>(device());
}

template <class T>
void eig_on(const Device& device) {
  using M = mat<3, 3, T>;
  using V = vec<3, T>;
  const auto in = matrices<T, 3>(2000, true);
  const auto n = std::int64_t(in.size());
  Array<M> a(device, in), q = zeros<M>(device, n);
  Array<V> d = zeros<V>(device, n);
  launch(kernel("eig",
                [](Arr<const M> a, Arr<M> q, Arr<V> d) {
                  Int i = tid();
                  auto [vectors, values] = eig3(a[i]);
                  q[i] = vectors;
                  d[i] = values;
                }),
         n, a, q, d);
  const auto qs = q.to_vector();
  const auto ds = d.to_vector();
  auto check = [](const M& a, const M& q, const V& d) {
    ASSERT_TRUE(is_rotation(q, kTolerance<T>));
    ASSERT_LE(difference(a, in_double(q) * diagonal<3>(in_double(d)) * transpose(in_double(q))),
              kTolerance<T> * largest(a));
    ASSERT_GE(double(d[0]), double(d[1]));
    ASSERT_GE(double(d[1]), double(d[2]));
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    SCOPED_TRACE("matrix " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(check(in[i], qs[i], ds[i]));
    const auto host = eig3(in[i]);
    ASSERT_NO_FATAL_FAILURE(check(in[i], host.q, host.d));
  }
}

TEST_P(LibraryLinalg, eig3_rebuilds_every_kind_of_symmetric_matrix) {
  eig_on<half>(device());
  eig_on<float>(device());
  eig_on<double>(device());
}

TEST_P(LibraryLinalg, eig3_means_the_symmetric_part) {
  Array<vec3> d = zeros<vec3>(device(), 1);
  launch(kernel("eig_part",
                [](Arr<vec3> d) {
                  Mat33 q;
                  eig3(Mat33(2, 6, 0, -2, 2, 0, 0, 0, 1), q, d[0]);
                }),
         1, d);
  const vec3 got = d.to_vector()[0];  // of (2, 2, 0; 2, 2, 0; 0, 0, 1)
  EXPECT_NEAR(got.x, 4, 1e-5);
  EXPECT_NEAR(got.y, 1, 1e-5);
  EXPECT_NEAR(got.z, 0, 1e-5);
}

// The singular values of diagonal and similar matrices are known.
TEST_P(LibraryLinalg, singular_values_of_diagonal_matrices) {
  const std::vector<mat33> in{mat33(1, 0, 0, 0, 2, 0, 0, 0, 3), mat33(1, 0, 0, 0, -2, 0, 0, 0, 3),
                              mat33(0, 5, 0, 0, 0, 7, 6, 0, 0), mat33(0, 0, 0, 0, -4, 0, 0, 0, 0),
                              mat33(1, 1, 1, 1, 1, 1, 1, 1, 1)};
  const std::vector<vec3> wanted{{3, 2, 1}, {3, 2, -1}, {7, 6, 5}, {4, 0, 0}, {3, 0, 0}};
  const auto n = std::int64_t(in.size());
  Array<mat33> a(device(), in), u = zeros<mat33>(device(), n), v = zeros<mat33>(device(), n);
  Array<vec3> sigma = zeros<vec3>(device(), n);
  launch(kernel("svd_diagonal",
                [](Arr<const mat33> a, Arr<mat33> u, Arr<vec3> sigma, Arr<mat33> v) {
                  Int i = tid();
                  svd3(a[i], u[i], sigma[i], v[i]);
                }),
         n, a, u, sigma, v);
  const auto s = sigma.to_vector();
  for (std::size_t i = 0; i < in.size(); ++i)
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(s[i][k], wanted[i][k], 2e-6f * wanted[i][0]) << i << " " << k;
}

// A power of two changes only the exponents.
TEST_P(LibraryLinalg, factorisations_do_not_depend_on_scale) {
  const mat33 base(0.3f, -1.2f, 0.7f, 2.1f, 0.4f, -0.6f, 0.9f, 1.1f, 0.2f);
  std::vector<mat33> in;
  for (int e : {0, -100, -60, 60, 100}) in.push_back(base * std::ldexp(1.f, e));
  const auto n = std::int64_t(in.size());
  Array<mat33> a(device(), in), q = zeros<mat33>(device(), n), inv = zeros<mat33>(device(), n);
  Array<vec3> d = zeros<vec3>(device(), n), s = zeros<vec3>(device(), n);
  launch(kernel("scales",
                [](Arr<const mat33> a, Arr<mat33> q, Arr<vec3> d, Arr<vec3> s, Arr<mat33> inv) {
                  Int i = tid();
                  d[i] = eig3(a[i]).d;
                  s[i] = svd3(a[i]).sigma;
                  q[i] = qr3(a[i]).r;
                  inv[i] = inverse(a[i]);
                }),
         n, a, q, d, s, inv);
  const auto qs = q.to_vector(), invs = inv.to_vector();
  const auto ds = d.to_vector(), ss = s.to_vector();
  for (std::size_t i = 1; i < in.size(); ++i) {
    const float f = in[i](0, 0) / base(0, 0);
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(ds[i][k], ds[0][k] * f);
      EXPECT_EQ(ss[i][k], ss[0][k] * f);
    }
    for (int k = 0; k < 9; ++k) {
      EXPECT_EQ(qs[i].m[k], qs[0].m[k] * f);
      EXPECT_EQ(invs[i].m[k], invs[0].m[k] / f);
    }
  }
}

TEST_P(LibraryLinalg, a_matrix_with_a_nan_gives_nan) {
  Array<float> out = zeros<float>(device(), 6);
  launch(kernel("svd_nan",
                [](Arr<float> out, Float nan) {
                  Mat33 a(1, 2, 3, 4, nan, 6, 7, 8, 10);
                  Mat22 b(1, 2, nan, 3);
                  out[0] = svd3(a).sigma.x;
                  out[1] = svd2(b).sigma.x;
                  out[2] = eig3(a).d.x;
                  out[3] = qr3(a).r(2, 2);
                  out[4] = inverse(a)(0, 0);
                  out[5] = determinant(b);
                }),
         1, out, std::numeric_limits<float>::quiet_NaN());
  for (float x : out.to_vector()) EXPECT_TRUE(std::isnan(x));
}

template <class T, int N>
void inverse_on(const Device& device) {
  using M = mat<N, N, T>;
  std::vector<M> in;
  for (int k = 0; k < 2000; ++k) {
    // The matrix is well conditioned, because the error of an inverse grows with the condition.
    mat<N, N, double> a = random_matrix<N>() * 0.3 + mat<N, N, double>::identity() * (k % 2 ? 3. : -3.);
    const double scale = k % 5 == 4 ? std::ldexp(1., int((sizeof(T) == 2   ? 6
                                                          : sizeof(T) == 4 ? 100
                                                                           : 900) *
                                                         uniform()))
                                    : 1;
    M t;
    for (int e = 0; e < N * N; ++e) t(e / N, e % N) = T(a((e / N + k) % N, e % N) * scale);  // rows reordered
    in.push_back(t);
  }
  const auto n = std::int64_t(in.size());
  Array<M> a(device, in), inv = zeros<M>(device, n);
  Array<T> d = zeros<T>(device, n);
  launch(kernel("inverse",
                [](Arr<const M> a, Arr<M> inv, Arr<T> d) {
                  Int i = tid();
                  inv[i] = inverse(a[i]);
                  d[i] = determinant(a[i]);
                }),
         n, a, inv, d);
  const auto got = inv.to_vector();
  const auto determinants = d.to_vector();
  for (std::size_t i = 0; i < in.size(); ++i) {
    SCOPED_TRACE("matrix " + std::to_string(i));
    const auto one = mat<N, N, double>::identity();
    ASSERT_LE(difference(in_double(in[i]) * in_double(got[i]), one), 4 * kTolerance<T>);
    ASSERT_LE(difference(in_double(in[i]) * in_double(inverse(in[i])), one), 4 * kTolerance<T>);
    // det(a) = 1 / det(a^-1), unless one of them leaves the range of the type.
    const double wanted = determinant(in_double(in[i]));
    const double least = sizeof(T) == 2   ? 1e-4
                         : sizeof(T) == 4 ? 1e-37
                                          : 1e-307,
                 most = sizeof(T) == 2 ? 6e4 : 1 / least;
    if (std::abs(wanted) > least && std::abs(wanted) < most) {
      ASSERT_NEAR(double(determinants[i]) / wanted, 1, 4 * kTolerance<T>);
    }
  }
}

TEST_P(LibraryLinalg, inverses_multiply_to_one) {
  inverse_on<half, 2>(device());
  inverse_on<half, 3>(device());
  inverse_on<half, 4>(device());
  inverse_on<float, 2>(device());
  inverse_on<float, 3>(device());
  inverse_on<float, 4>(device());
  inverse_on<double, 2>(device());
  inverse_on<double, 3>(device());
  inverse_on<double, 4>(device());
}

TEST_P(LibraryLinalg, determinants_of_known_matrices) {
  Array<double> out = zeros<double>(device(), 4);
  launch(kernel("determinants",
                [](Arr<double> out) {
                  out[0] = determinant(Mat<2, 2, double>(1, 2, 3, 4));
                  out[1] = determinant(Mat<3, 3, double>(2, 0, 1, 1, 3, 2, 1, 1, 4));
                  out[2] = determinant(Mat44d(1, 2, 3, 4, 5, 6, 7, 8, 2, 6, 4, 8, 3, 1, 1, 2));
                  out[3] = determinant(Mat44d(0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 0));
                }),
         1, out);
  EXPECT_EQ(out.to_vector(), (std::vector<double>{-2, 18, 72, 24}));
  EXPECT_EQ(determinant(mat44(1, 2, 3, 4, 5, 6, 7, 8, 2, 6, 4, 8, 3, 1, 1, 2)), 72);
}

TEST_P(LibraryLinalg, the_inverse_of_a_singular_matrix_is_zero) {
  Array<mat33> out(device(), {mat33(1, 1, 1, 1, 1, 1, 1, 1, 1), mat33()});
  Array<mat44> out4(device(), {mat44(1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 1, 0, 0, 0, 0, 1), mat44()});
  Array<mat22> out2(device(), {mat22(2, 4, 1, 2), mat22()});
  launch(kernel("singular",
                [](Arr<mat33> out, Arr<mat44> out4, Arr<mat22> out2) {
                  Int i = tid();
                  out[i] = inverse(out[i]);
                  out4[i] = inverse(out4[i]);
                  out2[i] = inverse(out2[i]);
                }),
         2, out, out4, out2);
  for (const mat33& a : out.to_vector()) EXPECT_EQ(a, mat33());
  for (const mat44& a : out4.to_vector()) EXPECT_EQ(a, mat44());
  for (const mat22& a : out2.to_vector()) EXPECT_EQ(a, mat22());
  EXPECT_EQ(inverse(mat33(1, 1, 1, 1, 1, 1, 1, 1, 1)), mat33());
}

// Tiny bodies have inertia tensors whose determinant is too small for a float.
TEST_P(LibraryLinalg, the_inverse_of_a_tiny_matrix_is_not_zero) {
  Array<mat33> a(device(), {mat33(2e-15f, 0, 0, 0, 4e-15f, 0, 0, 0, 5e-15f)});
  launch(kernel("tiny", [](Arr<mat33> a) { a[tid()] = inverse(a[tid()]); }), 1, a);
  const mat33 got = a.to_vector()[0];
  EXPECT_NEAR(got(0, 0) * 2e-15f, 1, 1e-6);
  EXPECT_NEAR(got(1, 1) * 4e-15f, 1, 1e-6);
  EXPECT_NEAR(got(2, 2) * 5e-15f, 1, 1e-6);
}

// In a loop and under a condition, the rotation of an iterated polar decomposition stays the same.
TEST_P(LibraryLinalg, factorisations_work_in_loops_and_branches) {
  Array<mat33> a(device(), {mat33(1, 2, 0, 0, 1, 0, 1, 0, 3)});
  Array<mat33> r = zeros<mat33>(device(), 1);
  launch(kernel("polar",
                [](Arr<const mat33> a, Arr<mat33> r, Int steps) {
                  Mat33 m = a[0];
                  for (auto k : range(steps)) {
                    auto [u, s, v] = svd3(m);
                    If (k >= 0) {
                      m = u * transpose(v);
                    }
                  }
                  r[0] = m;
                }),
         1, a, r, 3);
  const mat33 got = r.to_vector()[0];
  EXPECT_TRUE(is_rotation(got, 1e-5));
  // R^T A is symmetric.
  const mat33d s = transpose(in_double(got)) * in_double(a.to_vector()[0]);
  EXPECT_LE(difference(s, transpose(s)), 1e-5);
}

}  // namespace
