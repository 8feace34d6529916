// The library's functions of numbers.
#include "../../../frontend/library/special.h"
#include "../../../frontend/library/vector.h"
#include "library.h"

namespace weft::python {

namespace {

/// The result that functions.def calls T: the type of the operands.
struct T;

/// Adds a function of functions.def for operands of type N, if these are of the right kind.
template <bool takes, class R, int arity, class N, class F>
void add_number_form(const char* name, F f) {
  using Given = std::conditional_t<std::is_same_v<R, T>, N, R>;
  if constexpr (!takes)
    return;
  else if constexpr (arity == 1)
    form<Given, N>(name, f);
  else if constexpr (arity == 2)
    form<Given, N, N>(name, f);
  else
    form<Given, N, N, N>(name, f);
}

#define WEFT_NO_MACRO
template <class N>
void add_table() {
#define WEFT_FUNCTION(name, arity, operands, result, host, traced, vectors) \
  add_number_form<operands<N>, result, arity, N>(#name, [](const auto&... x) { return name WEFT_NO_MACRO(x...); });
#include "../../../frontend/types/functions.def"
#undef WEFT_FUNCTION
}
#undef WEFT_NO_MACRO

template <class N>
void add_reals() {
  form<N, N>("erf", [](const auto& x) { return erf(x); });
  form<N, N>("erfc", [](const auto& x) { return erfc(x); });
  form<N, N>("erfinv", [](const auto& x) { return erfinv(x); });
  form<N, N>("erfcinv", [](const auto& x) { return erfcinv(x); });
  form<N, N>("expm1", [](const auto& x) { return expm1(x); });
  form<N, N>("log1p", [](const auto& x) { return log1p(x); });
  form<N, N>("log10", [](const auto& x) { return log10(x); });
  form<N, N>("cbrt", [](const auto& x) { return cbrt(x); });
  form<N, N>("frac", [](const auto& x) { return frac(x); });
  form<N, N>("radians", [](const auto& x) { return radians(x); });
  form<N, N>("degrees", [](const auto& x) { return degrees(x); });
  form<N, N, N, N>("lerp", [](const auto& a, const auto& b, const auto& t) { return lerp(a, b, t); });
  form<N, N, N, N>("smoothstep", [](const auto& a, const auto& b, const auto& x) { return smoothstep(a, b, x); });
}

template <class N>
void add_choices() {
  form<N, N>("step", [](const auto& x) { return step(x); });
  form<N, N>("nonzero", [](const auto& x) { return nonzero(x); });
}

}  // namespace

void add_number_functions() {
  for_integers([]<class N>() {
    add_table<N>();
    add_choices<N>();
    form<N, N>("popcount", [](const auto& x) { return popcount(x); });
  });
  for_reals([]<class N>() {
    add_table<N>();
    add_choices<N>();
    add_reals<N>();
  });
  form<int, int, int>("mul_hi", [](const auto& a, const auto& b) { return mul_hi(a, b); });
  form<unsigned, unsigned, unsigned>("mul_hi", [](const auto& a, const auto& b) { return mul_hi(a, b); });
}

}  // namespace weft::python
