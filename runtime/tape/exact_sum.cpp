// Converts exact sums to floating-point numbers.
#include "exact_sum.h"

#include <limits>

#include "../../frontend/kernels/names.h"
#include "../launch.h"

namespace weft::detail {

namespace {

/// Converts the words of one scalar in each thread. From the lowest word on, each passes what exceeds its 32 bits,
/// rounded down, to the next; what the last one passes on is the sign. The highest digit of the magnitude that is not
/// zero and the two below it make the number: three times 32 bits hold more than a mantissa, and lower digits change
/// the last bit at most. The result does not depend on the order in which the words were summed.
///
/// In float32, words 1 of unit 5 and -1 of unit 4: unit 4 passes on -1, so the digits are 0 and 2^32 - 1: 2^32 - 1
/// units.
template <class T>
KernelCore& add_sums() {
  static const auto k = kernel(
      "add exact sums",
      [](Arr<const std::uint64_t> sums, Arr<T> gradient) {
        constexpr ir::Type type = scalar_type<T>();
        constexpr int units = int(ir::ExactSum::units(type)), words = int(ir::ExactSum::words(type));
        // Exponent of the smallest positive number: 2^-149 or 2^-1074.
        constexpr int lowest = std::is_same_v<T, double> ? 1074 : 149;
        Int64 i = tid64();
        const auto word = [&](const Int& n) { return bitcast<std::int64_t>(UInt64(sums[i * words + Int64(n)])); };
        Int64 carry = std::int64_t(0);
        for (auto n : range(Int(units))) carry = (word(n) + carry) >> std::int64_t(32);
        Bool negative = carry < std::int64_t(0);
        carry = std::int64_t(0);
        Double value = 0.0;
        Int last = -8;
        for (auto n : range(Int(units))) {
          Int64 w = word(n);
          Int64 with_carry = select(negative, -w, w) + carry;
          carry = with_carry >> std::int64_t(32);
          Int64 digit = with_carry & std::int64_t(0xffffffff);
          If (digit != std::int64_t(0)) {
            Int gap = n - last;
            value = value * select(gap == 1, 0x1p-32, select(gap == 2, 0x1p-64, 0.0)) + Double(digit);
            last = n;
          }
        }
        UInt64 special = sums[i * words + units];
        If (last >= 0 || special != std::uint64_t(0)) {
          // There are two factors, because the power of two may be smaller than any normal number.
          const auto power = [](const Int& e) { return bitcast<double>(Int64(e + 1023) << std::int64_t(52)); };
          Int exponent = max(last, 0) * 32 - lowest;
          Int half = exponent / 2;
          value = value * power(half) * power(exponent - half);
          value = select(negative, -value, value);
          const auto has = [&](std::uint64_t bit) { return (special & bit) != std::uint64_t(0); };
          const double infinity = std::numeric_limits<double>::infinity();
          value = select(has(ir::ExactSum::kPlusInfinity), infinity, value);
          value = select(has(ir::ExactSum::kMinusInfinity), -infinity, value);
          value =
              select(has(ir::ExactSum::kNan) || (has(ir::ExactSum::kPlusInfinity) && has(ir::ExactSum::kMinusInfinity)),
                     std::numeric_limits<double>::quiet_NaN(), value);
          gradient[i] += Var<T>(value);
        }
      },
      {.contract = false});
  return k.core();
}

}  // namespace

void add_exact_sums(const View& sums, const View& gradient, ir::Type type) {
  HostArg args[2];
  args[0].array = &sums;
  args[1].array = &gradient;
  for (int k = 0; k < 2; ++k) args[k].argument = k + 1;
  launch(type == ir::Type::f64 ? add_sums<double>() : add_sums<float>(), nullptr, gradient.size(), args);
}

}  // namespace weft::detail
