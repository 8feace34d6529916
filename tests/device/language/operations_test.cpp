// Every operation of ops.def on every type, on random and edge values: each device against the meaning of the
// operation (ir::evaluate), exactly where the result is exact, within the documented ulps elsewhere.
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "../../../frontend/ir/evaluate.h"
#include "../device_test.h"

using namespace weft;
using ir::Op;
using ir::Type;

namespace {

DEVICE_TEST(Operations);

// The largest distance of a device from the exact result (docs/semantics.md): in ulps of the type, or absolute.
struct Tolerance {
  double ulps = 0, absolute = 0;
};

bool is_function(Op op) { return op >= Op::exp && op <= Op::tanh; }

Tolerance tolerance(Op op, Type type, double x, double y) {
  if (!is_float(type)) return {};
  // The host's own functions may be off by one ulp.
  if (type == Type::f64 && is_function(op)) return {3.5};
  // float16 functions are float32 functions with a rounding: at most one step away.
  const double half_step = type == Type::f16 ? 1 : 0;
  switch (op) {
    case Op::div: return {2.5};
    case Op::sqrt: return {type == Type::f16 ? 1.0 : 3.0};
    case Op::rsqrt: return {type == Type::f16 ? 1.0 : 2.0};
    case Op::exp:
    case Op::exp2: return {half_step ? half_step + 1 : 3 + 2 * std::abs(x)};
    case Op::log:
    case Op::log2: return {half_step ? half_step + 1 : 3, x >= 0.5 && x <= 2 ? std::ldexp(1, -21) : 0};
    case Op::sin:
    case Op::cos: return {half_step, std::ldexp(1, -11)};
    case Op::tan: return {4096};
    case Op::asin:
    case Op::acos:
    case Op::atan:
    case Op::atan2: return {4096, std::ldexp(1, -11)};
    case Op::sinh:
    case Op::cosh: {
      // Half the sum or difference of two exponentials; for small x the difference cancels.
      const double exponential = 3 + 2 * std::abs(x);
      return {half_step + 2 * exponential + 2, std::abs(x) < 1 ? 2 * exponential * 0x1p-23 : 0};
    }
    case Op::tanh: return {64 + 16 * std::abs(x), std::ldexp(1, -19)};
    case Op::pow: {
      // pow is exp2(y * log2(x)): it has the error of the exponent, which exp2 makes a relative one, and that of exp2.
      const double l = x == 0 ? 0 : std::log2(std::abs(x)), z = y * l;
      const double exponent = std::abs(y) * std::max(3 * std::abs(l) * 0x1p-23, 0x1p-21) + std::abs(z) * 0x1p-23;
      const double ulps = (exponent * 0x1p24 + 3 + 2 * std::abs(z));
      return {half_step ? 1 + ulps * 0x1p-13 : ulps};
    }
    default: return {};
  }
}

// Numbers are compared as bits of a type, by functions that are no templates, because there are many types and pairs.
using Bits = std::uint64_t;

// Distance in representable values; NaN is at no distance from NaN.
double ulps(Type type, Bits a, Bits b) {
  const double x = ir::to_double(type, a), y = ir::to_double(type, b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y) ? 0 : 1e300;
  if (x == y) return 0;
  const int unused = 64 - ir::bits(type);
  auto ordered = [&](Bits v) {
    const std::int64_t bits = std::int64_t(v << unused) >> unused;
    return bits < 0 ? (std::numeric_limits<std::int64_t>::min() >> unused) - bits : bits;
  };
  // The difference is taken as integers: as doubles, neighbouring numbers of 64 bits would be equal or far apart.
  const std::int64_t x_place = ordered(a), y_place = ordered(b);
  return double(x_place < y_place ? std::uint64_t(y_place) - std::uint64_t(x_place)
                                  : std::uint64_t(x_place) - std::uint64_t(y_place));
}

bool is_subnormal(Type type, double v) {
  const double least = type == Type::f16 ? 0x1p-14 : type == Type::f32 ? 0x1p-126 : 0x1p-1022;
  return v != 0 && std::abs(v) < least;
}

double max_of(Type type) {
  return type == Type::f16   ? 65504.0
         : type == Type::f32 ? double(std::numeric_limits<float>::max())
                             : std::numeric_limits<double>::max();
}

std::mt19937_64& random_bits() {
  static std::mt19937_64 generator(20240229);
  return generator;
}

// Edge values come first, then random ones: alternately of the whole range and near 1.
template <class T>
std::vector<T> values(std::size_t n) {
  std::vector<T> v;
  if constexpr (IntegerScalar<T>) {
    for (std::int64_t e : {0, 1, 2, 3, 7, 31, 32, 63, 64, 127, 128, 255}) v.push_back(T(e)), v.push_back(T(-e));
    v.insert(v.end(), {std::numeric_limits<T>::max(), std::numeric_limits<T>::min(),
                       T(std::numeric_limits<T>::max() - 1), T(std::numeric_limits<T>::min() + 1)});
    while (v.size() < n) v.push_back(T(random_bits()() >> (random_bits()() % 64)));
  } else if constexpr (std::is_same_v<T, bool>) {
    while (v.size() < n) v.push_back(random_bits()() & 1);
  } else {
    for (double e : {0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, 10.0, -10.0, 100.25, 1e4, -1e4, 6e4})
      v.push_back(T(e));
    const double inf = std::numeric_limits<double>::infinity();
    for (double e : {inf, -inf, std::numeric_limits<double>::quiet_NaN()}) v.push_back(T(e));
    if (sizeof(T) > 2)
      for (double e : {1e10, -1e10, 3e38, -3e38, 2147483647.0, 2147483648.0, 4294967295.0, 9.2e18, 1.9e19})
        v.push_back(T(e));
    std::normal_distribution<double> near_one(0, 3);
    while (v.size() < n) {
      const double wide = std::ldexp(near_one(random_bits()), int(random_bits()() % 24) - 12);
      T x = T(v.size() % 2 ? near_one(random_bits()) : wide);
      if (!is_subnormal(scalar_type<T>(), double(x))) v.push_back(x);
    }
  }
  return v;
}

template <class T>
std::vector<Bits> bits_of(const std::vector<T>& values) {
  std::vector<Bits> all;
  for (const T v : values) {
    Bits bits = 0;
    std::memcpy(&bits, &v, sizeof v);
    all.push_back(bits);
  }
  return all;
}

// Makes an array of bool as well: a std::vector<bool> has no elements in memory that an array could be made of.
template <class T>
Array<T> array_of(const Device& device, const std::vector<T>& v) {
  std::unique_ptr<T[]> copy(new T[v.size()]);
  std::copy(v.begin(), v.end(), copy.get());
  return Array<T>(device, std::span<const T>(copy.get(), v.size()));
}

// The kernel out[i] = op(a[i], b[i], c[i]), through the same functions that the traced types call.
template <class T, class R>
auto kernel_of(Op op, int arity) {
  return kernel(std::string(ir::info(op).name) + "_" + name(scalar_type<T>()), [=](Arr<R> out, Arr<const T> a,
                                                                                   Arr<const T> b, Arr<const T> c) {
    Int i = tid();
    tracing::Id x[3] = {Var<T>(a[i]).read(), Var<T>(b[i]).read(), Var<T>(c[i]).read()};
    tracing::Trace& t = tracing::Trace::current();
    tracing::Id r = op == Op::select
                        ? t.builder().pure(op, scalar_type<T>(), {(Var<T>(c[i]) != T(0)).read(), x[0], x[1]})
                        : t.builder().pure(op, scalar_type<R>(), std::span<const tracing::Id>(x, std::size_t(arity)));
    out[i] = Var<R>(r, detail::FromId{});
  });
}

// Compares results of an operation whose operands are of one type. Software devices are held to more than Vulkan asks.
void expect_meaning(const Device& device, Op op, int arity, Type type, Type result, const std::vector<Bits> (&in)[3],
                    const std::vector<Bits>& got) {
  const bool software = device.is_software();
  const bool splits = op == Op::fma && ((type == Type::f32 && !device.fuses_float32()) ||
                                        (type == Type::f64 && !device.fuses_float64()));
  int wrong = 0;
  for (std::size_t i = 0; i < got.size() && wrong < 5; ++i) {
    const Bits args[3] = {in[0][i], in[1][i], in[2][i]};
    const double x = ir::to_double(type, args[0]), y = ir::to_double(type, args[1]), z = ir::to_double(type, args[2]);
    const Bits expected = op == Op::select ? args[z == 0 ? 1 : 0]
                          : splits         ? ir::split_fma(type)(args[0], args[1], args[2])
                                           : ir::evaluate(op, type, result, {args, std::size_t(arity)});
    bool ok = got[i] == expected;
    if (is_float(result)) {
      const double e = ir::to_double(result, expected), g = ir::to_double(result, got[i]);
      const Tolerance allowed = tolerance(op, type, x, y);
      ok = ok || (std::isnan(e) && std::isnan(g)) || (e == 0 && g == 0 && (op == Op::min || op == Op::max));
      ok = ok || (is_subnormal(result, e) && g == 0) || (is_subnormal(result, g) && e == 0);
      ok = ok || (allowed.ulps > 0 && ulps(result, got[i], expected) <= allowed.ulps);
      ok = ok || (allowed.absolute > 0 && std::abs(e - g) <= allowed.absolute);
      if (op == Op::div || op == Op::rem) ok = ok || std::abs(y) > 0x1p126 || (op == Op::rem && !std::isfinite(x / y));
      if (op == Op::sqrt || op == Op::rsqrt) ok = ok || (x < 0 && std::isnan(e));
      // Vulkan leaves these cases to the device; the functions of float64 are weft's own and leave nothing open.
      if (type != Type::f64) {
        if (op == Op::sin || op == Op::cos || op == Op::tan) ok = ok || std::abs(x) > 3.14159;
        if (op == Op::tan && !software) {  // a quotient; both operands may be off by as much
          const double off = std::ldexp(1, -11), c = std::abs(std::cos(x));
          ok = ok || c <= off || std::abs(e - g) <= off * (1 + std::abs(e)) / (c - off);
        }
        if (op == Op::pow)
          ok = ok || !std::isfinite(x) || !std::isfinite(y) || (x != 0 && !std::isnormal(e) && !std::isnan(e));
        if (op == Op::pow && x == 0) ok = ok || std::abs(g) == std::abs(e);
        if (op == Op::atan2) ok = ok || x == 0 || y == 0 || !std::isfinite(x) || !std::isfinite(y);
        // Half of exp(|x|) may overflow where exp(|x|) / 2 does not.
        if (op == Op::sinh || op == Op::cosh)
          ok = ok || (std::isinf(g) && std::abs(e) > max_of(type) / 4 && (e > 0) == (g > 0));
        if (op == Op::log || op == Op::log2) ok = ok || (x < 0 && std::isnan(e));
        if (op == Op::asin || op == Op::acos) ok = ok || !(std::abs(x) <= 1);
      }
    }
    if (!ok) {
      ++wrong;
      ADD_FAILURE() << ir::info(op).name << " on " << user_name(type) << " of (" << x << ", " << y << ", " << z
                    << "): " << std::hex << got[i] << " where " << expected << " is right";
    }
  }
}

template <class T, class R>
void check(const Device& device, Op op) {
  const int arity = op == Op::select ? 2 : ir::info(op).arity;
  const std::size_t n = 4096;
  std::vector<T> in[3] = {values<T>(n), values<T>(n), values<T>(n)};
  // Every edge value meets every other one.
  const std::size_t edges = IntegerScalar<T> ? 28 : 19;
  for (std::size_t i = 0; i < n; ++i) {
    if (i < edges * edges)
      in[0][i] = in[0][i % edges], in[1][i] = in[2][i / edges];
    else
      in[1][i] = in[1][random_bits()() % n];
  }
  Array<R> out = zeros<R>(device, n);
  const auto k = kernel_of<T, R>(op, arity);
  try {
    launch(k, n, out, array_of(device, in[0]), array_of(device, in[1]), array_of(device, in[2]));
  } catch (const Error& e) {
    // A device refuses operations that it lacks by name, and never computes them wrongly.
    ASSERT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
    // Only a GPU may lack the narrow and wide types.
    ASSERT_FALSE(device.name() == "reference" || device.is_software()) << e.what();
    ASSERT_NE(bits(scalar_type<T>()), 32) << e.what();
    return;
  }
  expect_meaning(device, op, arity, scalar_type<T>(), scalar_type<R>(),
                 {bits_of(in[0]), bits_of(in[1]), bits_of(in[2])}, bits_of(out.to_vector()));
}

template <class T>
void check_all(const Device& device) {
  const Type type = scalar_type<T>();
  for (int o = 0; o < int(Op::count); ++o) {
    const Op op = Op(o);
    const ir::OpInfo& row = ir::info(op);
    if (row.effect != ir::Effect::pure) continue;
    bool takes = false;
    switch (row.operands) {
      case ir::OperandClass::any: takes = true; break;
      case ir::OperandClass::numeric: takes = is_numeric(type); break;
      case ir::OperandClass::integer: takes = is_int(type); break;
      case ir::OperandClass::real: takes = is_float(type); break;
      case ir::OperandClass::logical: takes = is_int(type) || is_bool(type); break;
      case ir::OperandClass::boolean: takes = is_bool(type); break;
      case ir::OperandClass::special: takes = op == Op::select; break;
    }
    if (op == Op::mul_hi) takes = bits(type) == 32 && is_int(type);
    if (!takes) continue;
    SCOPED_TRACE(row.name);
    if (row.result == ir::ResultRule::boolean)
      check<T, bool>(device, op);
    else
      check<T, T>(device, op);
  }
}

TEST_P(Operations, on_bool_agree_with_their_meaning) { check_all<bool>(device()); }
TEST_P(Operations, on_int8_agree_with_their_meaning) { check_all<std::int8_t>(device()); }
TEST_P(Operations, on_int16_agree_with_their_meaning) { check_all<std::int16_t>(device()); }
TEST_P(Operations, on_int32_agree_with_their_meaning) { check_all<std::int32_t>(device()); }
TEST_P(Operations, on_int64_agree_with_their_meaning) { check_all<std::int64_t>(device()); }
TEST_P(Operations, on_uint8_agree_with_their_meaning) { check_all<std::uint8_t>(device()); }
TEST_P(Operations, on_uint16_agree_with_their_meaning) { check_all<std::uint16_t>(device()); }
TEST_P(Operations, on_uint32_agree_with_their_meaning) { check_all<std::uint32_t>(device()); }
TEST_P(Operations, on_uint64_agree_with_their_meaning) { check_all<std::uint64_t>(device()); }
TEST_P(Operations, on_float16_agree_with_their_meaning) { check_all<half>(device()); }
TEST_P(Operations, on_float32_agree_with_their_meaning) { check_all<float>(device()); }
TEST_P(Operations, on_float64_agree_with_their_meaning) { check_all<double>(device()); }

void expect_converted(Type from, Type to, const std::vector<Bits>& in, const std::vector<Bits>& got) {
  int wrong = 0;
  for (std::size_t i = 0; i < in.size() && wrong < 4; ++i) {
    const Bits expected = ir::evaluate(Op::convert, from, to, {&in[i], 1});
    bool ok = got[i] == expected;
    if (is_float(to)) {
      const double e = ir::to_double(to, expected), g = ir::to_double(to, got[i]);
      ok = ok || (std::isnan(e) && std::isnan(g)) || (is_subnormal(to, e) && g == 0);
    }
    if (ok) continue;
    ++wrong;
    ADD_FAILURE() << user_name(from) << " " << ir::to_double(from, in[i]) << " to " << user_name(to) << " gives "
                  << std::hex << got[i] << " where " << expected << " is right";
  }
}

// Tests conversions by one kernel for each type, which converts to all the others.
template <class T, class... R>
void check_conversions_to(const Device& device) {
  const std::size_t n = 1024;
  const std::vector<T> in = values<T>(n);
  const std::tuple<Array<R>...> out{zeros<R>(device, n)...};
  const auto convert = kernel("convert", [](Arr<const T> a, Arr<R>... out) {
    Int i = tid();
    ((out[i] = Var<R>(a[i])), ...);
  });
  std::apply([&](const Array<R>&... to) { launch(convert, n, array_of(device, in), to...); }, out);
  (expect_converted(scalar_type<T>(), scalar_type<R>(), bits_of(in), bits_of(std::get<Array<R>>(out).to_vector())),
   ...);
}

template <class T>
void check_conversions(const Device& device) {
  using std::int8_t, std::int16_t, std::int32_t, std::int64_t;
  using std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t;
  check_conversions_to<T, bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, half, float,
                       double>(device);
}

TEST_P(Operations, conversions_from_integers_agree_with_their_meaning) {
  check_conversions<bool>(device());
  check_conversions<std::int8_t>(device()), check_conversions<std::uint8_t>(device());
  check_conversions<std::int16_t>(device()), check_conversions<std::uint16_t>(device());
  check_conversions<std::int32_t>(device()), check_conversions<std::uint32_t>(device());
  check_conversions<std::int64_t>(device()), check_conversions<std::uint64_t>(device());
}
TEST_P(Operations, conversions_from_reals_agree_with_their_meaning) {
  check_conversions<half>(device()), check_conversions<float>(device()), check_conversions<double>(device());
}

TEST_P(Operations, bitcast_keeps_all_bits) {
  const std::vector<float> in = values<float>(512);
  Array<float> a(device(), in);
  Array<int> out = zeros<int>(device(), in.size());
  Array<float> back = zeros<float>(device(), in.size());
  launch(kernel("bitcast",
                [](Arr<int> out, Arr<float> back, Arr<const float> a) {
                  Int i = tid();
                  Int b = bitcast<int>(Float(a[i]));
                  out[i] = b;
                  back[i] = bitcast<float>(b);
                }),
         in.size(), out, back, a);
  const std::vector<int> got = out.to_vector();
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(got[i], std::bit_cast<int>(in[i]));
  EXPECT_EQ(0, std::memcmp(back.to_vector().data(), in.data(), in.size() * 4));
}

}  // namespace
