// Gradients of determinant, inverse and the factorisations, also where values are equal or vanish.
#include <cmath>

#include "../check_gradient.h"

using namespace weft;
using namespace weft::test;

namespace {

GRADIENT_TEST(LinalgGradient);

#define UNARY(name, type) of(#name, [](type a) { return name(a); })

template <int N>
std::vector<double> scaled_identity(double x) {
  std::vector<double> m(N * N);
  for (int i = 0; i < N; ++i) m[std::size_t(i * (N + 1))] = x;
  return m;
}
template <int N>
Points around(const std::vector<double>& a) {
  Points points = random_points(N * N, -0.2, 0.2);
  for (std::vector<double>& p : points)
    for (std::size_t k = 0; k < p.size(); ++k) p[k] += a[k];
  return points;
}
/// Matrices that have an inverse.
template <int N>
Points regular() {
  const std::vector<double> one = scaled_identity<N>(1);
  return around<N>(one) + Points{one, scaled_identity<N>(-2)};
}

const std::vector<double> kRankOne = {1, 2, -1, 2, 4, -2, 0.5, 1, -0.5};
const std::vector<double> kRankTwo = {1, 2, 3, 4, 5, 6, 7, 8, 9};
/// A turn about an axis: all singular values are 1.
const std::vector<double> kTurn = {0.8, -0.6, 0, 0.6, 0.8, 0, 0, 0, 1};
const std::vector<double> kZero(9);

TEST_P(LinalgGradient, of_determinants) {
  expect_gradient(UNARY(determinant, Mat22d), random_points(4, -2, 2) + Points{{0, 0, 0, 0}});
  expect_gradient(UNARY(determinant, Mat33d), random_points(9, -2, 2) + Points{kRankOne, kRankTwo, kZero});
  expect_gradient(UNARY(determinant, Mat44d), random_points(16, -2, 2) + Points{scaled_identity<4>(0)});
}

TEST_P(LinalgGradient, of_inverses) {
  expect_gradient(UNARY(inverse, Mat22d), regular<2>());
  expect_gradient(UNARY(inverse, Mat33d), regular<3>());
  expect_gradient(UNARY(inverse, Mat44d), regular<4>());
  // A singular matrix has no inverse: the zero matrix stands for it, and has no gradient.
  expect_chosen(UNARY(inverse, Mat22d), {1, 2, 2, 4}, std::vector<double>(4));
  expect_chosen(UNARY(inverse, Mat33d), kZero, kZero);
  expect_chosen(UNARY(inverse, Mat44d), scaled_identity<4>(0), std::vector<double>(16));
}

template <class R>
auto factors_of_svd(const R& r) {
  return std::tuple(r.u, r.sigma, r.v);
}

TEST_P(LinalgGradient, of_singular_values_and_vectors) {
  const auto all2 = of("svd2", [](Mat22d a) { return factors_of_svd(svd2(a)); });
  const auto all3 = of("svd3", [](Mat33d a) { return factors_of_svd(svd3(a)); });
  expect_gradient(all2, random_points(4, -2, 2) + Points{{1, 2, 2, 4}, {3, 0, 0, 1}, {0, 3, -1, 0}}, 1e-7);
  expect_gradient(all3, random_points(9, -2, 2) + Points{kRankTwo, {3, 0, 0, 0, 2, 0, 0, 0, 1}}, 1e-7);
  // The size of the elements does not matter.
  Points large = random_points(9, -2, 2, 2);
  for (std::vector<double>& p : large)
    for (double& x : p) x *= 1e6;
  expect_gradient(all3, large, 1e-7);
}

TEST_P(LinalgGradient, of_what_is_made_of_singular_vectors_whichever_they_are) {
  // The rotation of a polar decomposition, its stretch and the sum of the values are functions of the matrix, smooth if
  // its determinant is positive, though the vectors of equal values are not.
  const auto polar2 = of("polar2", [](Mat22d a) {
    const auto r = svd2(a);
    const Mat22d turn = r.u * transpose(r.v);
    return std::tuple(turn, transpose(turn) * a, r.sigma.x + r.sigma.y);
  });
  const auto polar3 = of("polar3", [](Mat33d a) {
    const auto r = svd3(a);
    const Mat33d turn = r.u * transpose(r.v);
    return std::tuple(turn, transpose(turn) * a, r.sigma.x + r.sigma.y + r.sigma.z);
  });
  const std::vector<double> one = scaled_identity<3>(1), two_equal = {2, 0, 0, 0, 1, 0, 0, 0, 1};
  expect_gradient(polar2, {scaled_identity<2>(1), scaled_identity<2>(2), {0.8, -0.6, 0.6, 0.8}, {2, 1, 0, 1}}, 1e-7);
  expect_gradient(polar3, around<3>(one) + Points{one, kTurn, scaled_identity<3>(3), two_equal}, 1e-7);
  // The last value is negative, and not the opposite of another.
  expect_gradient(polar3, {{2, 0.3, 0, -0.1, 1.5, 0.2, 0, 0, -1}, {1, 0, 0, 0, -3, 0, 0, 0, 0.5}}, 1e-7);
  // Here values differ by less than the rounding errors of the vectors, and by a little more. These errors, which
  // differ between devices, are divided by the gap.
  for (double gap : {1e-15, 1e-12, 1e-9, 3e-8, 1e-6, 1e-4})
    expect_gradient(polar3, {{1 + gap, 0, 0, 0, 1, 0, 0, 0, 1}, {1 + gap, gap, 0, -gap, 1 - gap, gap, 0, 0, 1}}, 1e-7,
                    on_gpu() ? 1e-7 : 1e-9);
}

TEST_P(LinalgGradient, of_qr) {
  const auto all = of("qr3", [](Mat33d a) {
    const auto r = qr3(a);
    return std::tuple(r.q, r.r);
  });
  expect_gradient(all, random_points(9, -2, 2) + Points{kTurn, kRankTwo, scaled_identity<3>(1), scaled_identity<3>(-1)},
                  1e-7);
}

TEST_P(LinalgGradient, of_eigenvalues_and_eigenvectors) {
  const auto all = of("eig3", [](Mat33d a) {
    const auto r = eig3(a);
    return std::tuple(r.q, r.d);
  });
  expect_gradient(all, random_points(9, -2, 2) + Points{{3, 0, 0, 0, 2, 0, 0, 0, 1}, {1, 0, 0, 0, -2, 0, 0, 0, 3}},
                  1e-7);
  // The first function depends on values and vectors; the second depends on values alone, which may be equal.
  const auto exponential = of("exponential of a symmetric matrix", [](Mat33d a) {
    const auto r = eig3(a);
    return r.q * diag(exp(r.d)) * transpose(r.q);
  });
  expect_gradient(exponential, random_points(9, -2, 2) + Points{{1, 0, 0, 0, 1.001, 0, 0, 0, 1.002}}, 1e-7);
  const auto sum = of("trace of the exponential", [](Mat33d a) {
    const Vec3d d = exp(eig3(a).d);
    return d.x + d.y + d.z;
  });
  expect_gradient(sum, {scaled_identity<3>(1), kZero, {2, 0, 0, 0, 1, 0, 0, 0, 1}, kRankOne}, 1e-7);
}

TEST_P(LinalgGradient, is_finite_where_vectors_are_not_unique) {
  const auto u = of("svd3", [](Mat33d a) { return svd3(a).u; });
  const auto sigma = of("svd3", [](Mat33d a) { return svd3(a).sigma; });
  const auto q = of("eig3", [](Mat33d a) { return eig3(a).q; });
  const std::vector<double> one = scaled_identity<3>(1);
  // u and v each turn by half the skew part, in opposite directions; the symmetric part turns neither.
  expect_chosen(of("v", [](Mat33d a) { return svd3(a).v(0, 1); }), one, {0, -0.25, 0, 0.25, 0, 0, 0, 0, 0});
  expect_chosen(of("u", [](Mat33d a) { return svd3(a).u(0, 1); }), one, {0, 0.25, 0, -0.25, 0, 0, 0, 0, 0});
  expect_chosen(sigma, one, one);
  // With opposite values u and v turn alike, by the symmetric part over the difference.
  const std::vector<double> opposite = {3, 0, 0, 0, 2, 0, 0, 0, -2};
  for (bool left : {false, true})
    expect_chosen(of("turn",
                     [=](Mat33d a) {
                       const auto r = svd3(a);
                       return left ? r.u(1, 2) : r.v(1, 2);
                     }),
                  opposite, {0, 0, 0, 0, 0, -0.125, 0, -0.125, 0});
  expect_chosen(u, kZero, kZero);
  expect_chosen(q, one, kZero);
  expect_chosen(q, kZero, kZero);
  expect_chosen(of("svd2", [](Mat22d a) { return svd2(a).u; }), {0, 0, 0, 0}, {0, 0, 0, 0});
  expect_chosen(of("qr3", [](Mat33d a) { return qr3(a).q; }), kZero, kZero);
}

TEST_P(LinalgGradient, of_values_that_are_the_kernels_bit_by_bit) {
  // The gradient of a maximum goes to the operand that equals it, so the way back must compute the same bits.
  const auto k = kernel("maxima", [](Arr<const mat33> a, Arr<float> most) {
    Int i = tid();
    const auto s = svd3(a[i]);
    const auto e = eig3(a[i]);
    atomic_max(most[i * 5 + 0], s.sigma.y);
    atomic_max(most[i * 5 + 1], s.u(0, 1) + s.v(2, 0));
    atomic_max(most[i * 5 + 2], e.d.z);
    atomic_max(most[i * 5 + 3], e.q(1, 1));
    atomic_max(most[i * 5 + 4], erf(a[i](0, 0)) + log10(abs(a[i](0, 1))) + erfinv(0.4f * a[i](0, 2)));
  });
  std::vector<mat33> matrices;
  for (const std::vector<double>& p : random_points(9, -2, 2, 64)) {
    mat33 m;
    for (int i = 0; i < 9; ++i) m.m[i] = float(p[std::size_t(i)]);
    matrices.push_back(m);
  }
  const int n = int(matrices.size());
  for (int column = 0; column < 5; ++column) {
    Array<mat33> a = Array<mat33>(device(), matrices).requires_grad();
    Array<float> most = full<float>(device(), 5 * n, -1e30f);
    std::vector<float> seed(std::size_t(5 * n));
    for (int i = 0; i < n; ++i) seed[std::size_t(5 * i + column)] = 1;
    Tape tape;
    tape.record([&] { launch(k, n, a, most); });
    tape.backward({{most, Array<float>(device(), seed)}});
    for (const mat33& g : a.grad().to_vector()) EXPECT_GT(ddot(g, g), 0) << "column " << column;
  }
}

TEST_P(LinalgGradient, of_float32_is_that_of_float64) {
  const auto polar = [](auto a) {
    const auto r = svd3(a);
    return r.u * transpose(r.v);
  };
  expect_close(of("polar", [=](Mat33 a) { return polar(a); }), of("polar", [=](Mat33d a) { return polar(a); }),
               regular<3>() + Points{kTurn}, 1e-3);
  expect_close(UNARY(inverse, Mat33), UNARY(inverse, Mat33d), regular<3>(), 1e-4);
  expect_close(UNARY(determinant, Mat44), UNARY(determinant, Mat44d), regular<4>());
  expect_close(of("eig3", [](Mat33 a) { return eig3(a).d; }), of("eig3", [](Mat33d a) { return eig3(a).d; }),
               random_points(9, -2, 2), 1e-4);
}

}  // namespace
