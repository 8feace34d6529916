// A function of both faces, run on a device over arrays and on the host, and the two compared.
#pragma once
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "device_test.h"

namespace weft::test {

/// The type of an element that a kernel reads from an array.
template <class X>
using ElementOf = decltype(std::declval<Arr<X>>()[std::declval<Int>()]);

/// A function of both faces without its type, so that the code around it is compiled once for all functions of the same
/// arguments. The function must live as long as this object.
template <class R, class... X>
struct Faces {
  template <class F>
  explicit Faces(const F& f)
      : function(&f),
        host([](const void* f, const X&... x) { return R((*static_cast<const F*>(f))(x...)); }),
        traced([](const void* f, ElementOf<R> out, ElementOf<const X>... x) {
          out = (*static_cast<const F*>(f))(static_cast<ElementOf<const X>&&>(x)...);
        }) {}
  const void* function;
  R (*host)(const void* f, const X&... x);
  void (*traced)(const void* f, ElementOf<R> out, ElementOf<const X>... x);
};

template <class F, class... X>
using FacesOf = Faces<HostOf<decltype(std::declval<const F&>()(X()...))>, X...>;

template <class R, class X, class... Y>
std::vector<R> run(const Device& device, const Faces<R, X, Y...>& f, const std::vector<X>& first,
                   const std::vector<Y>&... more) {
  const std::int64_t n = std::int64_t(first.size());
  Array<R> out = zeros<R>(device, n);
  launch(kernel("on_device",
                [f](Arr<R> out, Arr<const X> x, Arr<const Y>... y) {
                  Int i = tid();
                  f.traced(f.function, out[i], x[i], y[i]...);
                }),
         n, out, Array<X>(device, first), Array<Y>(device, more)...);
  return out.to_vector();
}

/// f(first[i], more[i]...) for each i, in a kernel.
template <class F, class X, class... Y>
auto on_device(const Device& device, const F& f, const std::vector<X>& first, const std::vector<Y>&... more) {
  return run(device, FacesOf<F, X, Y...>(f), first, more...);
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

template <class R, class X, class... Y>
std::vector<R> compare(const Device& device, double tolerance, const char* what, const Faces<R, X, Y...>& f,
                       const std::vector<X>& first, const std::vector<Y>&... more) {
  const std::vector<R> got = run(device, f, first, more...);
  for (std::size_t i = 0; i < first.size(); ++i)
    expect_near<R>(got[i], f.host(f.function, first[i], more[i]...), tolerance, what);
  return got;
}

/// Compares the device's results with the host's. \return  the device's
template <class F, class X, class... Y>
auto faces_agree(const Device& device, double tolerance, const char* what, const F& f, const std::vector<X>& first,
                 const std::vector<Y>&... more) {
  return compare(device, tolerance, what, FacesOf<F, X, Y...>(f), first, more...);
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
