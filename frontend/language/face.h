// Tools for templates that run both on the host and in a kernel, by joining the two faces of a type.
#pragma once
#include "../types/functions.h"
#include "../types/names.h"
#include "control.h"
#include "var.h"

namespace weft {

namespace detail {

/// The host type of a value of any face, and whether the value is traced: Var<T> is the traced face of T; any other
/// type is its own host type.
template <class A>
struct FaceTraits {
  using host = A;
  static constexpr bool traced = false;
};
template <class T>
struct FaceTraits<Var<T>> {
  using host = T;
  static constexpr bool traced = true;
};

template <class T>
struct FaceTraits<HostChoice<T>> : FaceTraits<Var<T>> {};

}  // namespace detail

template <class A>
using HostOf = typename detail::FaceTraits<std::remove_cvref_t<A>>::host;
template <class... A>
inline constexpr bool any_traced = (detail::FaceTraits<std::remove_cvref_t<A>>::traced || ...);
template <bool Traced, class T>
using Face = std::conditional_t<Traced, Var<T>, T>;
/// The face of T that belongs to the face of S: FaceLike<Var<float>, int> is Int, FaceLike<float, int> is int.
template <class S, class T>
using FaceLike = Face<any_traced<S>, T>;

/// The types of the library over a scalar face S (float, half, double, Float, Half, Double): VecOf<3, float> is vec3,
/// VecOf<3, Float> is Vec3.
template <int N, class S>
using VecOf = FaceLike<S, vec<N, HostOf<S>>>;
template <int R, int C, class S>
using MatOf = FaceLike<S, mat<R, C, HostOf<S>>>;
template <class S>
using QuatOf = FaceLike<S, quaternion<HostOf<S>>>;
template <class S>
using TransformOf = FaceLike<S, transformation<HostOf<S>>>;

/// The scalar type of the parts of a value of any face.
template <class A>
using ElementOf = typename Flat<HostOf<A>>::scalar;

namespace detail {
template <class T>
inline constexpr int vec_size = 0;
template <int N, class T>
inline constexpr int vec_size<vec<N, T>> = N;
template <class T>
struct MatSize {
  static constexpr int rows = 0, cols = 0;
};
template <int R, int C, class T>
struct MatSize<mat<R, C, T>> {
  static constexpr int rows = R, cols = C;
};
template <class T>
inline constexpr bool is_quaternion = false;
template <class T>
inline constexpr bool is_quaternion<quaternion<T>> = true;
template <class T>
inline constexpr bool is_transformation = false;
template <class T>
inline constexpr bool is_transformation<transformation<T>> = true;
}  // namespace detail

/// A type of either face: a scalar, a vector (of N components), a matrix (R by C), a quaternion or a transform.
template <class A>
concept ScalarLike = Scalar<HostOf<A>>;
template <class A, int N = 0>
concept VecLike = detail::vec_size<HostOf<A>> >
0 && (N == 0 || detail::vec_size<HostOf<A>> == N);
template <class A, int R = 0, int C = 0>
concept MatLike = detail::MatSize<HostOf<A>>::rows >
0 && (R == 0 || detail::MatSize<HostOf<A>>::rows == R) && (C == 0 || detail::MatSize<HostOf<A>>::cols == C);
template <class A>
concept QuatLike = detail::is_quaternion<HostOf<A>>;
template <class A>
concept TransformLike = detail::is_transformation<HostOf<A>>;

namespace detail {

/// A host number adapts to the operands beside it, and so does a choice of two; all other operands decide the element
/// type.
template <class A>
inline constexpr bool is_literal = Scalar<A>;
template <class A>
inline constexpr bool is_literal<HostChoice<A>> = true;
template <class A>
inline constexpr bool is_literal<const A> = is_literal<A>;
template <class A>
inline constexpr bool is_literal<A&> = is_literal<A>;

template <class T, class... A>
inline constexpr bool fits = ((is_literal<A> || std::is_same_v<ElementOf<A>, T>)&&...);

template <class... A>
struct Deciding;
template <class A, class... B>
struct Deciding<A, B...> : std::conditional_t<is_literal<A>, Deciding<B...>, Deciding<A>> {};
template <class A>
struct Deciding<A> {
  using type = ElementOf<A>;
};

template <class... A>
struct ElementOfAll {
  using type = typename Deciding<A...>::type;
};
template <class... A>
requires(is_literal<A>&&...) struct ElementOfAll<A...> {
  using type = HostCommon<HostOf<A>...>;
};

template <class... A>
struct ScalarFace {
  using T = typename ElementOfAll<A...>::type;
  static_assert((is_literal<A> && ...) || fits<T, A...>,
                "weft: operands of different element types; convert one of them, as in Vec3d(v)");
  using type = weft::Face<any_traced<A...>, T>;
};

template <class X, class T>
struct Rebound {
  using type = X;
};
template <int N, class U, class T>
struct Rebound<vec<N, U>, T> {
  using type = vec<N, T>;
};
template <int R, int C, class U, class T>
struct Rebound<mat<R, C, U>, T> {
  using type = mat<R, C, T>;
};
template <class U, class T>
struct Rebound<quaternion<U>, T> {
  using type = quaternion<T>;
};
template <class U, class T>
struct Rebound<transformation<U>, T> {
  using type = transformation<T>;
};
template <Scalar U, class T>
struct Rebound<U, T> {
  using type = T;
};

}  // namespace detail

/// The scalar face in which a function of these operands computes: traced if any of them is; their element types must
/// agree, but host numbers adapt.
template <class... A>
using ScalarFaceOf = typename detail::ScalarFace<A...>::type;

namespace detail {
template <class A>
inline constexpr bool is_choice = false;
template <class T>
inline constexpr bool is_choice<HostChoice<T>> = true;
/// A copy of a variable, at a place of its own.
template <class T>
Var<T> value_of(const Var<T>& v, Loc loc) {
  return Var<T>(In<T>(v, loc).id, FromId{});
}
}  // namespace detail

/// Converts a value of any face to the face of S: a host value becomes a constant of the trace, an element of an array
/// is read (once, whole), a host number takes the scalar type of S. S comes from ScalarFaceOf, which refuses operands
/// of different element types; this function converts such an operand, so that the refusal stays the only message. A
/// host value that fits already is passed through by reference.
template <class S, class A>
decltype(auto) lift(const A& a, [[maybe_unused]] Loc loc = Loc::here()) {
  using Host = typename detail::Rebound<HostOf<A>, HostOf<S>>::type;
  using To = FaceLike<S, Host>;
  if constexpr (std::is_base_of_v<To, A> && any_traced<S>)  // A itself, or a choice of host numbers of its type
    return To(detail::value_of<Host>(a, loc));
  else if constexpr (any_traced<S> && detail::is_choice<A>)
    return To(static_cast<const detail::HostChoiceBase<HostOf<A>>&>(a), loc);
  else if constexpr (std::is_same_v<A, To>)
    return static_cast<const A&>(a);
  else if constexpr (any_traced<S> && (any_traced<A> || detail::is_literal<A>))
    return To(a, loc);
  else if constexpr (any_traced<S>)
    return To(Host(a), loc);
  else
    return To(a);
}

namespace detail {
using tracing::Rounding;

/// The first statement of each public function that is written over a scalar face S. If S is traced, the operations
/// recorded while it lives carry the caller's line, and so do errors. See tracing::CallPlace. (Host code of the library
/// is never contracted.)
template <class S>
class CallSite {
 public:
  explicit CallSite(Loc, Rounding = Rounding::contracted) {}
  ~CallSite() {}  // not trivial, so that compilers do not warn of an unused object
};
template <class T>
class CallSite<Var<T>> {
 public:
  explicit CallSite(Loc loc, Rounding rounding = Rounding::contracted) : place_(loc, rounding) {}

 private:
  tracing::CallPlace place_;
};
}  // namespace detail

/// Converts a scalar of either face by value, as `Float(i)` does in kernels.
template <Scalar T, class A>
requires(any_traced<A>&& ScalarLike<A>) Var<T> cast(const A& a, Loc loc = Loc::here()) {
  if constexpr (std::is_same_v<T, HostOf<A>>)
    return Var<T>(a.read(loc), detail::FromId{});
  else
    return Var<T>(a, loc);
}

namespace detail {
/// The values lo, lo + step, ... on the host, with the meaning of Range.
template <IntegerScalar T>
class HostRange {
 public:
  HostRange(T lo, T hi, T step) : lo_(lo), step_(step) {
    using U = std::make_unsigned_t<T>;
    // Distances of one sign fit the unsigned type.
    if (step > 0 && lo < hi)
      count_ = U(U(U(hi) - U(lo) - 1) / U(step) + 1);
    else if (step < 0 && hi < lo)
      count_ = U(U(U(lo) - U(hi) - 1) / U(U(0) - U(step)) + 1);
  }
  struct Iterator {
    std::make_unsigned_t<T> left;
    std::make_unsigned_t<T> value;
    std::make_unsigned_t<T> step;
    T operator*() const { return T(value); }
    void operator++() {
      --left;
      value = std::make_unsigned_t<T>(value + step);
    }
    bool operator!=(Iterator end) const { return left != end.left; }
  };
  Iterator begin() const { return {count_, std::make_unsigned_t<T>(lo_), std::make_unsigned_t<T>(step_)}; }
  Iterator end() const { return {}; }

 private:
  T lo_, step_;
  std::make_unsigned_t<T> count_ = 0;
};
}  // namespace detail

/// A range(...) for templates that run on both faces: a loop of the kernel if S is traced, otherwise a native one.
template <class S, class... B>
auto range_of(const B&... bounds) {
  if constexpr (any_traced<S>) {
    return range(bounds...);
  } else {
    using T = detail::HostCommon<B...>;
    const T b[] = {T(bounds)...};
    if constexpr (sizeof...(B) == 1)
      return detail::HostRange<T>(0, b[0], 1);
    else if constexpr (sizeof...(B) == 2)
      return detail::HostRange<T>(b[0], b[1], 1);
    else
      return detail::HostRange<T>(b[0], b[1], b[2]);
  }
}

/// A while_(condition, body) for templates that run on both faces. (The type of the condition could not decide, as a
/// loop of a kernel may have a host condition: `while_([] { return true; }, ..)` with Break().) Break, Continue and
/// Return belong to kernels: a template for both faces ends its loop by the condition.
template <class S, class C, class F>
void while_of(C condition, F body, [[maybe_unused]] Loc loc = Loc::here()) {
  if constexpr (any_traced<S>)
    while_(condition, body, loc);
  else
    while (condition()) body();
}

}  // namespace weft
