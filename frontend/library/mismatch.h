// Overloads for operators between traced numbers, vectors and matrices that do not match: the compiler then prints one
// short message instead of a list of all overloads.
#pragma once
#include "../language/face.h"

namespace weft {

namespace detail {

/// The condition of a refusal's assertion: the compiler would explain a concept there at length.
template <class...>
inline constexpr bool taken = false;

template <class A>
concept Linear = ScalarLike<A> || VecLike<A> || MatLike<A>;

/// Whether A is a host number that adapts to B, or a traced scalar of B's element type.
template <class A, class B>
inline constexpr bool scales = is_literal<A> ? LiteralFor<HostOf<A>, ElementOf<B>>
                                             : (ScalarLike<A>&& std::is_same_v<HostOf<A>, ElementOf<B>>);
template <class A, class B>
inline constexpr bool is_sum = std::is_same_v<HostOf<A>, HostOf<B>> ||
                               (ScalarLike<A> && ScalarLike<B> && (scales<A, B> || scales<B, A>));
template <class A, class B>
inline constexpr bool is_quotient = is_sum<A, B> || scales<B, A> || scales<A, B>;
template <class A, class B>
inline constexpr bool is_product = [] {
  if constexpr (is_quotient<A, B>)
    return true;
  else if constexpr (!std::is_same_v<ElementOf<A>, ElementOf<B>>)
    return false;
  else if constexpr (MatLike<A> && MatLike<B>)
    return MatSize<HostOf<A>>::cols == MatSize<HostOf<B>>::rows;
  else if constexpr (MatLike<A>)
    return MatSize<HostOf<A>>::cols == vec_size<HostOf<B>>;
  else
    return vec_size<HostOf<A>> == MatSize<HostOf<B>>::rows;
}();

/// Whether one operand is a vector or matrix and the other a number of its element type, where an operator takes none.
template <class A, class B>
inline constexpr bool is_number_beside_pack = ScalarLike<A> != ScalarLike<B> && (scales<A, B> || scales<B, A>);

}  // namespace detail

#define WEFT_MISMATCH_WORDS(goes_together, A, B)                                                               \
  static_assert(detail::goes_together<A, B> || !detail::is_number_beside_pack<A, B>,                           \
                "weft: operands of different sizes; repeat the number, as in Vec3(s)");                        \
  static_assert(                                                                                               \
      detail::goes_together<A, B> || detail::is_number_beside_pack<A, B> || !(ScalarLike<A> || ScalarLike<B>), \
      "weft: operands of different types; convert one of them, as in Float(i)");                               \
  static_assert(detail::goes_together<A, B> || ScalarLike<A> || ScalarLike<B>,                                 \
                "weft: operands of different types or sizes; convert one of them, as in Vec3d(v)")

// Operands that do not match, or that are of a kind which the operator does not take.
#define WEFT_REFUSED(symbol, goes_together, condition, Result, words)        \
  template <class A, class B>                                                \
  requires(any_traced<A, B> && detail::Linear<A> && detail::Linear<B> &&     \
           !(detail::goes_together<A, B> && (condition))) Result             \
  operator symbol(const A&, const B&) {                                      \
    WEFT_MISMATCH_WORDS(goes_together, A, B);                                \
    static_assert(!detail::goes_together<A, B>, "weft: " #symbol " " words); \
    return {};                                                               \
  }
#define WEFT_REFUSED_ARITHMETIC(symbol, goes_together)                                                           \
  WEFT_REFUSED(symbol, goes_together, NumericScalar<ElementOf<A>>&& NumericScalar<ElementOf<B>>, Var<HostOf<A>>, \
               "takes numbers; Bools have &, |, ^, && and ||")
#define WEFT_REFUSED_ORDER(symbol)                                                                     \
  WEFT_REFUSED(symbol, is_sum, ScalarLike<A>&& ScalarLike<B>&& NumericScalar<ElementOf<A>>, Var<bool>, \
               "compares two numbers; less(), greater() .. compare the components of vectors")
#define WEFT_REFUSED_BITS(symbol)                                                                             \
  WEFT_REFUSED(symbol, is_quotient, (!RealScalar<ElementOf<A>> && !RealScalar<ElementOf<B>>), Var<HostOf<A>>, \
               "takes integers and Bools, no real numbers")
WEFT_REFUSED_ARITHMETIC(+, is_sum)
WEFT_REFUSED_ARITHMETIC(-, is_sum)
WEFT_REFUSED_ARITHMETIC(*, is_product)
WEFT_REFUSED_ARITHMETIC(/, is_quotient)
WEFT_REFUSED_ARITHMETIC(%, is_quotient)
WEFT_REFUSED_ORDER(<)
WEFT_REFUSED_ORDER(<=)
WEFT_REFUSED_ORDER(>)
WEFT_REFUSED_ORDER(>=)
WEFT_REFUSED_BITS(&)
WEFT_REFUSED_BITS(|)
WEFT_REFUSED_BITS(^)
WEFT_REFUSED(==, is_sum, true, Var<bool>, "")
WEFT_REFUSED(!=, is_sum, true, Var<bool>, "")
#undef WEFT_REFUSED
#undef WEFT_REFUSED_ARITHMETIC
#undef WEFT_REFUSED_ORDER
#undef WEFT_REFUSED_BITS

// Compound assignments of operands that do not match. The left one may be an element, which is no variable: it is taken
// by const reference, as in an assignment.
#define WEFT_MISMATCHED_UPDATE(symbol, goes_together)                                                        \
  template <class A, class B>                                                                                \
  requires(any_traced<A> && detail::Linear<A> && detail::Linear<B> && !detail::goes_together<A, B>) const A& \
  operator symbol(const A& a, const B&) {                                                                    \
    WEFT_MISMATCH_WORDS(goes_together, A, B);                                                                \
    return a;                                                                                                \
  }
WEFT_MISMATCHED_UPDATE(+=, is_sum)
WEFT_MISMATCHED_UPDATE(-=, is_sum)
WEFT_MISMATCHED_UPDATE(*=, is_product)
WEFT_MISMATCHED_UPDATE(/=, is_quotient)
WEFT_MISMATCHED_UPDATE(%=, is_quotient)
WEFT_MISMATCHED_UPDATE(&=, is_quotient)
WEFT_MISMATCHED_UPDATE(|=, is_quotient)
WEFT_MISMATCHED_UPDATE(^=, is_quotient)
#undef WEFT_MISMATCHED_UPDATE
#undef WEFT_MISMATCH_WORDS

// A host variable, as `auto sum = 0.f;` declares, cannot take a traced value.
#define WEFT_HOST_UPDATE(symbol)                                                                                     \
  template <class A, class B>                                                                                        \
  requires(!any_traced<A> && any_traced<B> && detail::Linear<A> && detail::Linear<B>) A& operator symbol(A& a,       \
                                                                                                         const B&) { \
    static_assert(detail::taken<A, B>, "weft: " #symbol                                                              \
                                       " of a variable of the host and a traced value; declare a traced one, as "    \
                                       "in Float sum = 0");                                                          \
    return a;                                                                                                        \
  }
WEFT_HOST_UPDATE(+=)
WEFT_HOST_UPDATE(-=)
WEFT_HOST_UPDATE(*=)
WEFT_HOST_UPDATE(/=)
WEFT_HOST_UPDATE(%=)
WEFT_HOST_UPDATE(&=)
WEFT_HOST_UPDATE(|=)
WEFT_HOST_UPDATE(^=)
#undef WEFT_HOST_UPDATE

}  // namespace weft
