// Arguments on which real functions are tested, their true values, and the distance of results from these.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../frontend/ir/module.h"

namespace weft::test {

inline constexpr ir::Op kFunctions[] = {ir::Op::exp,  ir::Op::exp2, ir::Op::log,  ir::Op::log2, ir::Op::sin,
                                        ir::Op::cos,  ir::Op::tan,  ir::Op::asin, ir::Op::acos, ir::Op::atan,
                                        ir::Op::sinh, ir::Op::cosh, ir::Op::tanh};
inline constexpr ir::Op kPairFunctions[] = {ir::Op::pow, ir::Op::atan2};

/// The type in which the host computes what is right for T.
template <class T>
using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <class W>
W true_value(ir::Op op, W x, W y) {
  switch (op) {
    case ir::Op::exp: return std::exp(x);
    case ir::Op::exp2: return std::exp2(x);
    case ir::Op::log: return std::log(x);
    case ir::Op::log2: return std::log2(x);
    case ir::Op::sin: return std::sin(x);
    case ir::Op::cos: return std::cos(x);
    case ir::Op::tan: return std::tan(x);
    case ir::Op::asin: return std::asin(x);
    case ir::Op::acos: return std::acos(x);
    case ir::Op::atan: return std::atan(x);
    case ir::Op::sinh: return std::sinh(x);
    case ir::Op::cosh: return std::cosh(x);
    case ir::Op::tanh: return std::tanh(x);
    case ir::Op::pow: return std::pow(x, y);
    default: return std::atan2(x, y);
  }
}

/// The limit of docs/semantics.md for float64, that of frontend/real/real32.h for float32; half an ulp more, and
/// another half for the reference, if the host's wider type is none.
template <class T>
constexpr double kUlps = (std::is_same_v<T, float> ? 1.7 : 2.5) +
                         (std::numeric_limits<Wider<T>>::digits > std::numeric_limits<T>::digits ? 0 : 1);

/// The distance in units of the last place of the true value; infinite for a wrong sign of a zero, NaN or infinity. An
/// infinity stands for the first number beyond the range.
template <class T>
double ulps(T got, Wider<T> want) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : HUGE_VAL;
  if (std::signbit(got) != std::signbit(want)) return HUGE_VAL;
  const int least = Limits::min_exponent - 1;
  const auto beyond = std::ldexp(Wider<T>(1), Limits::max_exponent - 1) * 2;
  const auto inside = [&](Wider<T> x) { return std::min(std::fabs(x), beyond); };
  const int exponent = want == 0 ? least : std::clamp(std::ilogb(want), least, Limits::max_exponent - 1);
  const Wider<T> unit = std::ldexp(Wider<T>(1), exponent - (Limits::digits - 1));
  return static_cast<double>(std::fabs(inside(got) - inside(want)) / unit);
}

/// Numbers at which functions have edges, with both signs.
template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x;
  const T whole = std::ldexp(T(1), Limits::digits), overflow = std::log(Limits::max());
  for (T a : {T(0),
              T(1),
              T(2),
              T(3),
              T(7),
              T(8),
              T(0.5),
              T(0.625),
              T(1.5),
              T(2.5),
              T(20.5),
              T(90),
              T(104),
              T(127),
              T(128),
              T(149),
              T(150),
              T(151),
              T(709.7827),
              T(745.1),
              T(1023),
              T(1075),
              overflow,
              overflow + 1,
              overflow * T(1.0000001),
              Limits::infinity(),
              Limits::quiet_NaN(),
              Limits::max(),
              Limits::min(),
              Limits::denorm_min(),
              Limits::min() / 3,
              Limits::epsilon(),
              1 + Limits::epsilon(),
              1 - Limits::epsilon() / 2,
              whole,
              whole - 1,
              whole + 2,
              whole / 2,
              whole / 2 - T(0.5),
              T(0x1p20),
              T(0x1.00002p20),
              T(0x1p31),
              T(0x1p32),
              T(0x1p60),
              T(1e22),
              T(0x1.921fb54442d18p+0),
              T(0x1.921fb54442d18p+1),
              T(16367173) * std::ldexp(T(1), 72)})
    x.push_back(a), x.push_back(-a);
  return x;
}

/// Edges, then numbers of all magnitudes and of those where the function has its course.
template <class T>
std::vector<T> arguments(ir::Op op, std::size_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> x = edges<T>();
  std::mt19937_64 random(11 + unsigned(op));
  const auto uniform = [&](double lo, double hi) { return T(lo + (hi - lo) * (double(random() >> 11) * 0x1p-53)); };
  const double range = op == ir::Op::asin || op == ir::Op::acos ? 1
                       : op == ir::Op::exp2                     ? 1.01 * std::numeric_limits<T>::max_exponent
                                                                : 0.75 * std::numeric_limits<T>::max_exponent;
  while (x.size() < count) {
    x.push_back(std::bit_cast<T>(Bits(random())));
    x.push_back(uniform(-range, range));
    x.push_back(std::ldexp(uniform(-1, 1), int(random() % 40) - 20));
  }
  return x;
}

/// All pairs of edges, then random ones.
template <class T>
std::pair<std::vector<T>, std::vector<T>> argument_pairs(std::size_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> x, y;
  for (T a : edges<T>())
    for (T b : edges<T>()) x.push_back(a), y.push_back(b);
  std::mt19937_64 random(12);
  const auto uniform = [&](double lo, double hi) { return T(lo + (hi - lo) * (double(random() >> 11) * 0x1p-53)); };
  const double digits = std::numeric_limits<T>::digits, exponents = std::numeric_limits<T>::max_exponent;
  while (x.size() < count) {
    x.push_back(uniform(0, 10)), y.push_back(uniform(-0.4, 0.4) * T(exponents));
    x.push_back(1 + uniform(-1, 1) * T(1e-3)), y.push_back(uniform(-1, 1) * T(exponents * 700));
    x.push_back(uniform(-4, 4)), y.push_back(std::rint(uniform(-4, 4) * T(digits)));
    x.push_back(std::bit_cast<T>(Bits(random()))), y.push_back(std::bit_cast<T>(Bits(random())));
  }
  return {x, y};
}

/// What is wrong with results, the first few of each function; empty if nothing is.
template <class T>
std::string errors_of(ir::Op op, const std::vector<T>& x, const std::vector<T>& y, const std::vector<T>& got) {
  std::string text;
  int wrong = 0;
  for (std::size_t i = 0; i < got.size() && wrong < 5; ++i) {
    const Wider<T> a = x[i], b = y.empty() ? Wider<T>(0) : Wider<T>(y[i]), want = true_value(op, a, b);
    const double distance = ulps(got[i], want);
    if (distance <= kUlps<T>) continue;
    ++wrong;
    char line[200];
    std::snprintf(line, sizeof line, "%s(%a, %a) is %a where %a is right: %g ulp\n", ir::info(op).name, double(x[i]),
                  double(b), double(got[i]), double(want), distance);
    text += line;
  }
  return text;
}

}  // namespace weft::test
