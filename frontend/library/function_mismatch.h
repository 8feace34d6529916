// Overloads for functions and logical operators of traced numbers with unsuitable operands: the compiler then prints
// one short message instead of a list of all overloads.
#pragma once
#include "mismatch.h"
#include "vector.h"

namespace weft {

namespace detail {

template <class T, class... A>
inline constexpr bool all_fit = (std::is_convertible_v<const A&, In<T>> && ...);

/// Whether operands are numbers of one type, to which host numbers adapt.
template <class... A>
inline constexpr bool are_alike = [] {
  if constexpr ((ScalarLike<A> && ...))
    return all_fit<typename Deciding<A...>::type, A...>;
  else
    return false;
}();

/// Whether the values of a face are real; false for a struct.
template <class A>
inline constexpr bool of_reals = [] {
  if constexpr (requires { typename ElementOf<A>; })
    return RealScalar<ElementOf<A>>;
  else
    return false;
}();

/// The type of a refused call, chosen so that the statement around it adds no message of its own: that of the first
/// traced operand, real ones first.
template <class A, class... B>
struct Refused {
  using Rest = typename Refused<B...>::type;
  static constexpr bool first = any_traced<A> && (of_reals<A> || !of_reals<Rest>);
  using type = std::conditional_t<first, HostOf<A>, Rest>;
};
template <class A>
struct Refused<A> {
  using type = HostOf<A>;
};
template <class... A>
using RefusedNumber = Var<typename Refused<A...>::type>;
template <class... A>
using RefusedReal = std::conditional_t<of_reals<RefusedNumber<A...>>, RefusedNumber<A...>,
                                       Var<typename Rebound<typename Refused<A...>::type, float>::type>>;
template <class... A>
using RefusedTest = Var<bool>;
template <class A, class B>
using RefusedChoice = std::conditional_t<any_traced<A, B>, RefusedNumber<A, B>, RefusedReal<float>>;

/// Whether select() takes these operands.
template <class C, class A, class B>
inline constexpr bool selects = [] {
  if constexpr (ScalarLike<A> && ScalarLike<B>) {
    if constexpr (is_literal<A> && is_literal<B> && !any_traced<A, B>)
      return make_a_choice<A, B> && all_fit<bool, C>;
    else
      return all_fit<bool, C> && are_alike<A, B>;
  } else {
    using X = std::conditional_t<ScalarLike<A>, HostOf<B>, HostOf<A>>;
    if constexpr (vec_size < X >> 0)
      return all_fit<X, A, B> && (all_fit<bool, C> || all_fit<vec<vec_size<X>, bool>, C>);
    else
      return all_fit<X, A, B> && all_fit<bool, C>;
  }
}();

/// Whether a shift takes these operands. (Of vectors, only the element types are compared.)
template <class A, class B>
inline constexpr bool shifts = IntegerScalar<ElementOf<A>>&& IntegerScalar<ElementOf<B>> &&
                               (!(ScalarLike<A> && ScalarLike<B>) || are_alike<A, B>);

}  // namespace detail

// The constraint is that of the function in var.h. Operands for which vector.h has a form (`vectors`) are left to it.
#define WEFT_REFUSE(name, spelled, arity, Constraint, Result, vectors, words)                                      \
  template <class... A>                                                                                            \
  requires(sizeof...(A) == arity && any_traced<A...> && (detail::Linear<A> && ...) &&                              \
           !(vectors && detail::Broadcast<A...>)&&!(                                                               \
               detail::are_alike<A...> && Constraint<typename detail::Deciding<A...>::type>)) detail::Result<A...> \
  spelled(const A&...) {                                                                                           \
    static_assert(detail::taken<A...>, "weft: " name "() takes " words);                                           \
    return {};                                                                                                     \
  }
#define WEFT_REFUSE_REAL(name, vectors) \
  WEFT_REFUSE(#name, name, 1, RealScalar, RefusedReal, vectors, "real numbers; convert, as in Float(i)")
#define WEFT_REFUSE_TEST(name) \
  WEFT_REFUSE(#name, name, 1, RealScalar, RefusedTest, false, "real numbers; integers are always finite")
#define WEFT_REFUSE_REALS(name, arity, vectors)                     \
  WEFT_REFUSE(#name, name, arity, RealScalar, RefusedReal, vectors, \
              "real numbers of one type; convert the others, as in Float(i)")
#define WEFT_REFUSE_NUMBERS(name, spelled, arity, vectors)                 \
  WEFT_REFUSE(name, spelled, arity, NumericScalar, RefusedNumber, vectors, \
              "numbers of one type; convert the others, as in Float(i)")
WEFT_REFUSE_REAL(sqrt, true)
WEFT_REFUSE_REAL(rsqrt, true)
WEFT_REFUSE_REAL(exp, true)
WEFT_REFUSE_REAL(exp2, true)
WEFT_REFUSE_REAL(log, true)
WEFT_REFUSE_REAL(log2, true)
WEFT_REFUSE_REAL(sin, true)
WEFT_REFUSE_REAL(cos, true)
WEFT_REFUSE_REAL(tan, true)
WEFT_REFUSE_REAL(asin, false)
WEFT_REFUSE_REAL(acos, false)
WEFT_REFUSE_REAL(atan, false)
WEFT_REFUSE_REAL(sinh, false)
WEFT_REFUSE_REAL(cosh, false)
WEFT_REFUSE_REAL(tanh, false)
WEFT_REFUSE_REAL(floor, true)
WEFT_REFUSE_REAL(ceil, true)
WEFT_REFUSE_REAL(trunc, true)
WEFT_REFUSE_REAL(round, true)
WEFT_REFUSE_REAL(rint, true)
WEFT_REFUSE_TEST(isnan)
WEFT_REFUSE_TEST(isinf)
WEFT_REFUSE_TEST(isfinite)
WEFT_REFUSE_REALS(pow, 2, true)
WEFT_REFUSE_REALS(atan2, 2, false)
WEFT_REFUSE_REALS(fma, 3, false)
WEFT_REFUSE_NUMBERS("abs", abs, 1, true)
WEFT_REFUSE_NUMBERS("sign", sign, 1, true)
WEFT_REFUSE_NUMBERS("min", (min), 2, true)
WEFT_REFUSE_NUMBERS("max", (max), 2, true)
WEFT_REFUSE_NUMBERS("floor_div", floor_div, 2, true)
WEFT_REFUSE_NUMBERS("clamp", clamp, 3, true)
#undef WEFT_REFUSE_REAL
#undef WEFT_REFUSE_TEST
#undef WEFT_REFUSE_REALS
#undef WEFT_REFUSE_NUMBERS
#undef WEFT_REFUSE

template <class C, class A, class B>
requires(any_traced<C, A, B>&& detail::Linear<C>&& detail::Linear<A>&& detail::Linear<B> &&
         !detail::selects<C, A, B>) detail::RefusedChoice<A, B> select(const C&, const A&, const B&) {
  static_assert(detail::selects<C, A, B>,
                "weft: select() takes a Bool and two values of one type; compare, as in n != 0, or convert, as in "
                "Float(i)");
  return {};
}

#define WEFT_REFUSE_LOGICAL(symbol)                                                                              \
  template <class A, class B>                                                                                    \
  requires(any_traced<A, B> && detail::Linear<A> && detail::Linear<B> && !detail::all_fit<bool, A, B>) Var<bool> \
  operator symbol(const A&, const B&) {                                                                          \
    static_assert(detail::all_fit<bool, A, B>,                                                                   \
                  "weft: the operands of " #symbol " are Bools; compare numbers, as in n != 0");                 \
    return {};                                                                                                   \
  }
WEFT_REFUSE_LOGICAL(&&)
WEFT_REFUSE_LOGICAL(||)
#undef WEFT_REFUSE_LOGICAL

#define WEFT_REFUSE_UNARY(symbol, constraint, words)                           \
  template <class A>                                                           \
  requires(any_traced<A> && detail::Linear<A> && !(constraint)) Var<HostOf<A>> \
  operator symbol(const A&) {                                                  \
    static_assert(detail::taken<A>, "weft: " words);                           \
    return {};                                                                 \
  }
WEFT_REFUSE_UNARY(-, NumericScalar<ElementOf<A>>, "unary - takes numbers; ! negates a Bool")
WEFT_REFUSE_UNARY(~, IntegerScalar<ElementOf<A>>, "~ takes integers; ! negates a Bool")
#undef WEFT_REFUSE_UNARY
/// Gives a Bool, like a comparison of numbers.
template <class A>
requires(any_traced<A>&& detail::Linear<A> && !std::is_same_v<ElementOf<A>, bool>) Var<bool>
operator!(const A&) {
  static_assert(std::is_same_v<ElementOf<A>, bool>, "weft: ! takes Bools; compare numbers, as in n == 0");
  return {};
}

#define WEFT_REFUSE_SHIFT(symbol)                                                                                   \
  template <class A, class B>                                                                                       \
  requires(any_traced<A, B> && detail::Linear<A> && detail::Linear<B> && !detail::shifts<A, B>) Var<HostOf<A>>      \
  operator symbol(const A&, const B&) {                                                                             \
    static_assert(detail::shifts<A, B>, "weft: the operands of " #symbol " are integers of one type; convert one"); \
    return {};                                                                                                      \
  }
WEFT_REFUSE_SHIFT(<<)
WEFT_REFUSE_SHIFT(>>)
#undef WEFT_REFUSE_SHIFT

}  // namespace weft
