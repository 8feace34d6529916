// Functions of numbers and vectors, the same on the host and in kernels.
#pragma once
#include "../language/face.h"
#include "../language/vec_var.h"
#include "float_format.h"

namespace weft {

// Each function takes any mix of host values, traced values and elements of arrays. It computes in a kernel if one of
// its operands is traced, else on the host; element types must agree, and host numbers adapt.

namespace detail {

template <class A>
inline constexpr int size_of = vec_size<HostOf<A>>;

/// The common size of scalars and vectors; scalars beside vectors stand for all components.
template <class... A>
inline constexpr int common_size = [] {
  int n = 0;
  ((n = size_of<A> > n ? size_of<A> : n), ...);
  return n;
}();
template <class... A>
concept Broadcast = ((ScalarLike<A> || VecLike<A>)&&...) &&
                    ((ScalarLike<A> || size_of<A> == common_size<A...>)&&...) && common_size<A...> > 0;

// Parentheses around the name would hide the functions of traced numbers; this keeps out the macros of windows.h.
#define WEFT_NO_MACRO
template <class A, class B>
auto least(const A& a, const B& b) {
  return min WEFT_NO_MACRO(a, b);
}
template <class A, class B>
auto greatest(const A& a, const B& b) {
  return max WEFT_NO_MACRO(a, b);
}
#undef WEFT_NO_MACRO

template <class A>
decltype(auto) component(const A& a, int i) {
  if constexpr (VecLike<A>)
    return a[i];
  else
    return static_cast<const A&>(a);
}

/// Applies f to each component.
template <class F, class... A>
auto each_component(Loc loc, F f, const A&... operands) {
  using S = ScalarFaceOf<A...>;
  CallSite<S> site(loc);
  constexpr int n = common_size<A...>;
  return [&](const auto&... x) {
    using R = HostOf<decltype(f(component(x, 0)...))>;
    FaceLike<S, vec<n, R>> r;
    for (int i = 0; i < n; ++i) r[i] = f(component(x, i)...);
    return r;
  }(lift<S>(operands, loc)...);
}

template <class A>
concept Tuple = VecLike<A> || QuatLike<A>;
template <class A>
inline constexpr int count_of = Flat<HostOf<A>>::count;
/// The scalar face of two vectors of one size, or of two quaternions.
template <class A, class B>
struct TupleFace {
  static_assert(count_of<A> == count_of<B> && QuatLike<A> == QuatLike<B>, "weft: vectors of different sizes");
  using type = ScalarFaceOf<A, B>;
};

// The functions of n components, the first of which is a[0]. S is the scalar face of the result, W that in which it is
// computed (lib::Wide). They also serve code that knows n at run time alone.

/// The sum of products, from the first to the last.
template <class S, class A, class B>
S sum_of_products(const A& a, const B& b, int n) {
  S sum = S(a[0] * b[0]);
  for (int i = 1; i < n; ++i) sum = S(sum + a[i] * b[i]);
  return sum;
}
template <class S, class A>
S squared(const A& a, int n) {
  return sum_of_products<S>(a, a, n);
}
/// Calls put(i, component i) for the components of normalize().
/// \param unit  the component that is 1 where all are zero; n: none
template <class S, class W, class A, class Put>
void normalize_each(const A& v, int n, int unit, Put put) {
  const W l = sqrt(squared<W>(v, n)), none = W(0);
  const auto zero = l == none;
  const W divisor = select(zero, W(1), l);  // never 0, which would spoil the gradient
  for (int i = 0; i < n; ++i) put(i, S(select(zero, i == unit ? W(1) : none, W(v[i] / divisor))));
}
template <class S, class A>
S least_of(const A& v, int n) {
  S r = v[0];
  for (int i = 1; i < n; ++i) r = least(r, v[i]);
  return r;
}
template <class S, class A>
S greatest_of(const A& v, int n) {
  S r = v[0];
  for (int i = 1; i < n; ++i) r = greatest(r, v[i]);
  return r;
}
/// The number of the first component that is better than all others.
template <class S, class A, class Better>
auto place_in(const A& v, int n, Better better) {
  using I = FaceLike<S, int>;
  S best = v[0];
  I place = 0;
  for (int i = 1; i < n; ++i) {
    auto found = better(S(v[i]), best);
    if constexpr (RealScalar<HostOf<S>>) found = found | (isnan(best) & !isnan(S(v[i])));
    best = select(found, S(v[i]), best);
    place = select(found, I(i), place);
  }
  return place;
}

}  // namespace detail

// The functions of numbers, component by component. Not in parentheses, which would hide those of traced numbers.
#define WEFT_NO_MACRO
#define WEFT_EACH_1(name)                                             \
  template <VecLike A>                                                \
  auto(name)(const A& a, Loc loc = Loc::here()) {                     \
    return detail::each_component(                                    \
        loc, [](const auto& x) { return name WEFT_NO_MACRO(x); }, a); \
  }
#define WEFT_EACH_2(name)                                                                  \
  template <class A, class B>                                                              \
  requires detail::Broadcast<A, B>                                                         \
  auto(name)(const A& a, const B& b, Loc loc = Loc::here()) {                              \
    return detail::each_component(                                                         \
        loc, [](const auto& x, const auto& y) { return name WEFT_NO_MACRO(x, y); }, a, b); \
  }
#define WEFT_EACH_3(name)                                                                                       \
  template <class A, class B, class C>                                                                          \
  requires detail::Broadcast<A, B, C>                                                                           \
  auto(name)(const A& a, const B& b, const C& c, Loc loc = Loc::here()) {                                       \
    return detail::each_component(                                                                              \
        loc, [](const auto& x, const auto& y, const auto& z) { return name WEFT_NO_MACRO(x, y, z); }, a, b, c); \
  }
#define WEFT_VECTORS_true(name, arity) WEFT_EACH_##arity(name)
#define WEFT_VECTORS_false(name, arity)
#define WEFT_FUNCTION(name, arity, operands, result, host, traced, vectors) WEFT_VECTORS_##vectors(name, arity)
#include "../types/functions.def"
#undef WEFT_FUNCTION
#undef WEFT_VECTORS_false
#undef WEFT_VECTORS_true
#undef WEFT_EACH_3
#undef WEFT_EACH_2
#undef WEFT_EACH_1
#undef WEFT_NO_MACRO

// Comparisons by component: a vector of booleans, for any(), all() and select(). (== and < of whole vectors: == gives
// one boolean, < does not exist.)
#define WEFT_EACH_COMPARISON(name, symbol)                                   \
  template <class A, class B>                                                \
  requires detail::Broadcast<A, B>                                           \
  auto name(const A& a, const B& b, Loc loc = Loc::here()) {                 \
    return detail::each_component(                                           \
        loc, [](const auto& x, const auto& y) { return x symbol y; }, a, b); \
  }
WEFT_EACH_COMPARISON(less, <)
WEFT_EACH_COMPARISON(less_equal, <=)
WEFT_EACH_COMPARISON(greater, >)
WEFT_EACH_COMPARISON(greater_equal, >=)
WEFT_EACH_COMPARISON(equal, ==)
WEFT_EACH_COMPARISON(not_equal, !=)
#undef WEFT_EACH_COMPARISON

/// Whether any component is true, and whether all are.
template <VecLike A>
requires std::is_same_v < ElementOf<A>,
bool > auto any(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& v = lift<S>(a, loc);
  S r = v[0];
  for (int i = 1; i < detail::size_of<A>; ++i) r = r | v[i];
  return r;
}
template <VecLike A>
requires std::is_same_v < ElementOf<A>,
bool > auto all(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& v = lift<S>(a, loc);
  S r = v[0];
  for (int i = 1; i < detail::size_of<A>; ++i) r = r & v[i];
  return r;
}

/// The sum of products, from the first component to the last; for quaternions too.
template <detail::Tuple A, detail::Tuple B>
auto dot(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = typename detail::TupleFace<A, B>::type;
  detail::CallSite<S> site(loc);
  const auto& p = lift<S>(a, loc);
  const auto& q = lift<S>(b, loc);
  return detail::sum_of_products<S>(p, q, detail::count_of<A>);
}
/// The square of the length: dot(a, a).
template <detail::Tuple A>
auto length_sq(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  return detail::squared<S>(lift<S>(a, loc), detail::count_of<A>);
}
/// sqrt(dot(a, a)), for lengths from 1e-18 to 1e19, in float64 from 1e-153 to 1e154, in float16 for all, computed in
/// float32. Squares of other lengths leave the range of the type, and give 0 or infinity.
template <detail::Tuple A>
requires RealScalar<ElementOf<A>>
auto length(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  using W = lib::Wide<S>;
  detail::CallSite<S> site(loc);
  const auto& given = lift<S>(a, loc);
  return S(sqrt(detail::squared<W>(lift<W>(given, loc), detail::count_of<A>)));
}
/// a / length(a). A zero vector stays zero; a zero quaternion becomes the identity. A NaN makes all components NaN. The
/// limits of length() apply: a vector whose square is zero counts as zero, and one that is too long becomes zero. For
/// any length: `normalize(v / max(abs(v)))`, if v is not zero. Gradient: 0 if a counts as zero.
template <detail::Tuple A>
requires RealScalar<ElementOf<A>>
auto normalize(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  using W = lib::Wide<S>;
  detail::CallSite<S> site(loc);
  const auto& given = lift<S>(a, loc);
  const auto& v = lift<W>(given, loc);
  constexpr int n = detail::count_of<A>;
  FaceLike<S, HostOf<A>> r;
  detail::normalize_each<S, W>(v, n, QuatLike<A> ? 3 : n, [&](int i, const S& x) { r[i] = x; });
  return r;
}
template <VecLike A, VecLike B>
requires RealScalar<ElementOf<A>>
auto distance(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = typename detail::TupleFace<A, B>::type;
  detail::CallSite<S> site(loc);
  return length(lift<S>(a, loc) - lift<S>(b, loc));
}
/// The cross product of two vectors of three, by the right-hand rule.
template <class A, class B>
requires(VecLike<A, 3>&& VecLike<B, 3>) auto cross(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  return detail::cross3<VecOf<3, S>>(lift<S>(a, loc), lift<S>(b, loc));
}

/// The least and the greatest component, and their indices (the first of equal ones). NaNs lose against numbers.
template <VecLike A>
auto(min)(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& v = lift<S>(a, loc);
  return detail::least_of<S>(v, detail::size_of<A>);
}
template <VecLike A>
auto(max)(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& v = lift<S>(a, loc);
  return detail::greatest_of<S>(v, detail::size_of<A>);
}
namespace detail {
template <class A, class Better>
auto place_of(const A& a, Loc loc, Better better) {
  using S = ScalarFaceOf<A>;
  CallSite<S> site(loc);
  return place_in<S>(lift<S>(a, loc), size_of<A>, better);
}
}  // namespace detail
template <VecLike A>
auto argmin(const A& a, Loc loc = Loc::here()) {
  return detail::place_of(a, loc, [](const auto& x, const auto& y) { return x < y; });
}
template <VecLike A>
auto argmax(const A& a, Loc loc = Loc::here()) {
  return detail::place_of(a, loc, [](const auto& x, const auto& y) { return x > y; });
}

namespace detail {
template <class A>
concept RealNumbers = (ScalarLike<A> || VecLike<A> || MatLike<A> || QuatLike<A>)&&RealScalar<ElementOf<A>>;
/// The scalar face of operands of which one may be an integer literal: then it is that of the real one.
template <class A, class B>
concept SameKind = std::is_same_v<HostOf<A>, HostOf<B>> ||(ScalarLike<A>&& ScalarLike<B>);

/// Applies f to one number or to each component.
template <class A, class F>
auto number_or_each(const A& a, Loc loc, F f) {
  if constexpr (VecLike<A>) {
    return each_component(loc, f, a);
  } else {
    using S = ScalarFaceOf<A>;
    CallSite<S> site(loc);
    return S(f(S(lift<S>(a, loc))));
  }
}
}  // namespace detail

/// a (1 - t) + b t, for numbers, vectors, matrices and quaternions; t is one number.
template <class A, class B, class T>
requires(detail::SameKind<A, B>&& detail::RealNumbers<B>&& ScalarLike<T>) auto lerp(const A& a, const B& b, const T& t,
                                                                                    Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B, T>;
  using R = FaceLike<S, std::conditional_t<ScalarLike<A>, HostOf<S>, HostOf<A>>>;
  detail::CallSite<S> site(loc);
  const S s = lift<S>(t, loc);
  return R(lift<S>(a, loc) * S(S(1) - s) + lift<S>(b, loc) * s);
}
/// 0 below a, 1 above b, and 3 t^2 - 2 t^3 between them. With a == b a step, which is 0 there and has no gradient.
template <class A, class B, class X>
requires(ScalarLike<A>&& ScalarLike<B>&& ScalarLike<X>) auto smoothstep(const A& a, const B& b, const X& x,
                                                                        Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B, X>;
  static_assert(RealScalar<HostOf<S>>, "weft: smoothstep takes real numbers");
  detail::CallSite<S> site(loc);
  const S lo = lift<S>(a, loc), hi = lift<S>(b, loc), v = lift<S>(x, loc);
  // Equal ends make a step, whose value and gradient the quotient must not enter.
  const auto is_step = hi == lo;
  const S slope = clamp(S((v - lo) / select(is_step, S(1), S(hi - lo))), S(0), S(1));
  const S t = select(is_step, select(lo < v, S(1), S(0)), slope);
  return S(t * t * (S(3) - S(2) * t));
}
/// 1 if x < 0, else 0.
template <class A>
requires(ScalarLike<A> || VecLike<A>) auto step(const A& x, Loc loc = Loc::here()) {
  return detail::number_or_each(x, loc, []<class S>(const S& v) { return select(v < S(0), S(1), S(0)); });
}
/// 1 if x is not 0, else 0.
template <class A>
requires(ScalarLike<A> || VecLike<A>) auto nonzero(const A& x, Loc loc = Loc::here()) {
  return detail::number_or_each(x, loc, []<class S>(const S& v) { return select(v != S(0), S(1), S(0)); });
}
/// x - trunc(x), with the sign of x.
template <class A>
requires(ScalarLike<A> || VecLike<A>) auto frac(const A& x, Loc loc = Loc::here()) {
  return detail::number_or_each(x, loc, []<class S>(const S& v) { return S(v - trunc(v)); });
}
/// Converts angles from degrees to radians, and back.
template <class A>
requires(ScalarLike<A> || VecLike<A>) auto radians(const A& x, Loc loc = Loc::here()) {
  return detail::number_or_each(x, loc, []<class S>(const S& v) { return S(v * S(0.017453292519943295769)); });
}
template <class A>
requires(ScalarLike<A> || VecLike<A>) auto degrees(const A& x, Loc loc = Loc::here()) {
  return detail::number_or_each(x, loc, []<class S>(const S& v) { return S(v * S(57.295779513082320877)); });
}

}  // namespace weft
