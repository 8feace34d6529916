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

// Operands for which vector.h has a form (`vectors`) are left to it. One macro, as each is a line of the message.
#define WEFT_RESULT_NumericScalar_T RefusedNumber
#define WEFT_RESULT_RealScalar_T RefusedReal
#define WEFT_RESULT_RealScalar_bool RefusedTest
#define WEFT_WORDS_NumericScalar_T(arity) "numbers of one type; convert the others, as in Float(i)"
#define WEFT_WORDS_RealScalar_T(arity) WEFT_WORDS_##arity
#define WEFT_WORDS_RealScalar_bool(arity) "real numbers; integers are always finite"
#define WEFT_WORDS_1 "real numbers; convert, as in Float(i)"
#define WEFT_WORDS_2 "real numbers of one type; convert the others, as in Float(i)"
#define WEFT_WORDS_3 WEFT_WORDS_2
#define WEFT_FUNCTION(name, arity, operands, result, host, traced, vectors)                                 \
  template <class... A>                                                                                     \
  requires(sizeof...(A) == arity && any_traced<A...> && (detail::Linear<A> && ...) &&                       \
           !(vectors && detail::Broadcast<A...>)&&!(detail::are_alike<A...> &&                              \
                                                    operands<typename detail::Deciding<A...>::type>))       \
      detail::WEFT_RESULT_##operands##_##result<A...>(name)(const A&...) {                                  \
    static_assert(detail::taken<A...>, "weft: " #name "() takes " WEFT_WORDS_##operands##_##result(arity)); \
    return {};                                                                                              \
  }
#include "../types/functions.def"
#undef WEFT_FUNCTION
#undef WEFT_WORDS_3
#undef WEFT_WORDS_2
#undef WEFT_WORDS_1
#undef WEFT_WORDS_RealScalar_bool
#undef WEFT_WORDS_RealScalar_T
#undef WEFT_WORDS_NumericScalar_T
#undef WEFT_RESULT_RealScalar_bool
#undef WEFT_RESULT_RealScalar_T
#undef WEFT_RESULT_NumericScalar_T

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
