// Counts the elements of arrays that are made from ranges and scalars.
#include "../array_create.h"

#include <fmt/format.h>

#include <cmath>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"

namespace weft::detail {

namespace {
constexpr double kMost = 9.0e15;  // beyond 2^53 neighbouring values are no longer told apart
}  // namespace

std::int64_t arange_size(double start, double stop, double step) {
  if (step == 0 || !std::isfinite(step) || !std::isfinite(start) || !std::isfinite(stop))
    invalid("arange from {} to {} by {}", start, stop, step);
  const double n = std::ceil((stop - start) / step);
  if (n > kMost) invalid("arange from {} to {} by {}: too many values", start, stop, step);
  return n > 0 ? std::int64_t(n) : 0;
}

std::int64_t arange_size(std::uint64_t distance, std::uint64_t step) {
  if (step == 0) invalid("arange with a step of 0");
  const std::uint64_t n = distance == 0 ? 0 : (distance - 1) / step + 1;
  if (n > std::uint64_t(INT64_MAX)) invalid("arange of {} values", n);
  return std::int64_t(n);
}

std::int64_t whole_elements(std::size_t scalars, int each) {
  if (scalars % std::size_t(each) != 0)
    invalid("{} scalars are given for elements of {} each: {} are left over", scalars, each,
            scalars % std::size_t(each));
  return std::int64_t(scalars / std::size_t(each));
}

}  // namespace weft::detail
