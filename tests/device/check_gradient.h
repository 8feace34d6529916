// A function of the language as a map of numbers to numbers, and the comparison of its gradient with differences.
#pragma once
#include <functional>

#include "device_test.h"

namespace weft::test {

/// A function of real numbers as a kernel sees it: its parameters are put together from numbers, and its results are
/// taken apart into numbers.
struct NumberFunction {
  std::string name;
  int inputs = 0;
  std::function<std::vector<Double>(const std::vector<Double>&)> f;
};

/// One entry for each point: its coordinates.
using Points = std::vector<std::vector<double>>;

/// A test that compares gradients of functions on this device.
class GradientTest : public DeviceTest {
 protected:
  /// Compares the gradient of a random sum of all results at each point: on the interpreter with differences of its
  /// values, on each other device with the interpreter.
  /// \param tolerance  relative to the largest component of the gradient, or to 1 if that is less
  void expect_gradient(const NumberFunction& function, const Points& points, double tolerance = 1e-8,
                       double between_devices = 1e-9) const;
  /// Compares the gradient of the sum of all results with the chosen value, where there is no derivative.
  void expect_chosen(const NumberFunction& function, const std::vector<double>& point,
                     const std::vector<double>& gradient) const;
  /// Compares the gradients of a function of float32 with those of float64, at numbers that float32 holds.
  void expect_close(const NumberFunction& single, const NumberFunction& exact, const Points& points,
                    double tolerance = 1e-5) const;
};

/// `count` points of `n` coordinates between lo and hi, the same in every run; all are numbers of float32.
Points random_points(int n, double lo, double hi, int count = 8);
/// `points`, and then `more`.
Points operator+(Points points, const Points& more);

namespace detail {

template <class T>
Var<T> put_together(const Double*& from) {
  constexpr int count = weft::detail::Layout<T>::count;
  using E = typename Flat<T>::scalar;
  tracing::Id ids[count];
  for (tracing::Id& id : ids) {
    const Double& x = *from++;
    id = cast<E>(x).read();
  }
  return weft::detail::from_ids<T>(ids);
}
template <class T>
void take_apart(std::vector<Double>& to, const Var<T>& v) {
  constexpr int count = weft::detail::Layout<T>::count;
  tracing::Id ids[count];
  weft::detail::read_ids<T>(v, ids, Loc::here());
  for (tracing::Id id : ids) to.push_back(cast<double>(Var<typename Flat<T>::scalar>(id, weft::detail::FromId{})));
}
template <class... T>
void take_apart(std::vector<Double>& to, const std::tuple<Var<T>...>& values) {
  std::apply([&](const auto&... v) { (take_apart(to, v), ...); }, values);
}

template <class F, class R, class... T>
NumberFunction number_function(std::string name, F f, R (F::*)(Var<T>...) const) {
  return {std::move(name), (weft::detail::Layout<T>::count + ...), [f](const std::vector<Double>& x) {
            const Double* from = x.data();
            std::tuple<Var<T>...> arguments{put_together<T>(from)...};
            std::vector<Double> results;
            take_apart(results, std::apply(f, arguments));
            return results;
          }};
}

}  // namespace detail

/// \param f  a lambda whose parameters are traced values of real numbers; it returns one such value or a tuple of them
template <class F>
NumberFunction of(std::string name, F f) {
  return detail::number_function(std::move(name), f, &F::operator());
}

}  // namespace weft::test

/// GRADIENT_TEST(Suite) once per file, then TEST_P(Suite, behaviour).
#define GRADIENT_TEST(Suite)                                                                     \
  class Suite : public ::weft::test::GradientTest {};                                            \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::Values("reference", "native", "vulkan", "gpu"), \
                           [](const auto& info) { return std::string(info.param); })
