// A function of both faces, run on a device over arrays and on the host, and the two compared.
#pragma once
#include <cmath>
#include <cstring>
#include <random>

#include "device_test.h"

namespace weft::test {

/// f(in[0][i], in[1][i], ...) for each i, in a kernel.
template <class F, class X, class... Y>
auto on_device(const Device& device, F f, const std::vector<X>& first, const std::vector<Y>&... more) {
  using R = HostOf<decltype(f(X(), Y()...))>;
  const std::int64_t n = std::int64_t(first.size());
  Array<R> out = zeros<R>(device, n);
  launch(kernel("on_device",
                [f](Arr<R> out, Arr<const X> x, Arr<const Y>... y) {
                  Int i = tid();
                  out[i] = f(x[i], y[i]...);
                }),
         n, out, Array<X>(device, first), Array<Y>(device, more)...);
  return out.to_vector();
}

/// The scalars of a value as doubles.
template <class X>
std::vector<double> scalars_of(const X& x) {
  using T = typename Flat<X>::scalar;
  T parts[Flat<X>::count];
  std::memcpy(static_cast<void*>(parts), &x, sizeof x);
  return {parts, parts + Flat<X>::count};
}

template <class X>
void expect_near(const X& got, const X& expected, double tolerance, const char* what) {
  const std::vector<double> g = scalars_of(got), e = scalars_of(expected);
  for (std::size_t k = 0; k < g.size(); ++k) {
    if (std::isnan(e[k])) {
      EXPECT_TRUE(std::isnan(g[k])) << what << ", scalar " << k;
      continue;
    }
    EXPECT_NEAR(g[k], e[k], tolerance * (1 + std::abs(e[k]))) << what << ", scalar " << k;
  }
}

/// What the device gives, after comparison with the host.
template <class F, class X, class... Y>
auto faces_agree(const Device& device, double tolerance, const char* what, F f, const std::vector<X>& first,
                 const std::vector<Y>&... more) {
  const auto got = on_device(device, f, first, more...);
  for (std::size_t i = 0; i < first.size(); ++i)
    expect_near(got[i], HostOf<decltype(f(X(), Y()...))>(f(first[i], more[i]...)), tolerance, what);
  return got;
}

/// A few ulp of T around 1.
template <class T>
inline constexpr double kTolerance = sizeof(T) == 2   ? 4e-3
                                     : sizeof(T) == 4 ? 4e-6
                                                      : 1e-13;

/// n values whose scalars lie in [lo, hi].
template <class X>
std::vector<X> random_values(int n, double lo, double hi, unsigned seed) {
  using T = typename Flat<X>::scalar;
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> distribution(lo, hi);
  std::vector<X> values(std::size_t(n), X{});
  for (X& x : values) {
    T parts[Flat<X>::count];
    for (T& p : parts) p = T(distribution(engine));
    std::memcpy(static_cast<void*>(&x), parts, sizeof x);
  }
  return values;
}

}  // namespace weft::test
