// Derivatives of a func() that the user gives: grad(), replay(); and gradient(), an array's gradient inside them.
#pragma once
#include "func.h"

namespace weft {

namespace detail {

struct NoFunction {};

/// A C++ function with a gradient function G and a replay R, or NoFunction.
template <class F, class G, class R>
struct WithDerivatives {
  F f;
  G gradient;
  R replay;
  template <class... A>
  std::invoke_result_t<const F&, A&...> operator()(A&... a) const {
    return f(a...);
  }
};
template <class F>
WithDerivatives<F, NoFunction, NoFunction> with_derivatives(const F& f) {
  return {f, {}, {}};
}
template <class F, class G, class R>
const WithDerivatives<F, G, R>& with_derivatives(const WithDerivatives<F, G, R>& f) {
  return f;
}

template <class... L>
struct Join;
template <class... A>
struct Join<Types<A...>> {
  using type = Types<A...>;
};
template <class... A, class... B, class... L>
struct Join<Types<A...>, Types<B...>, L...> : Join<Types<A..., B...>, L...> {};

/// The traced types in the result of a function, in order.
template <class R>
struct PartsOfResult {
  using type = Types<R>;
};
template <>
struct PartsOfResult<void> {
  using type = Types<>;
};
template <class... R>
struct PartsOfResult<std::tuple<R...>> : Join<Types<>, typename PartsOfResult<R>::type...> {};
template <class A, class B>
struct PartsOfResult<std::pair<A, B>> : PartsOfResult<std::tuple<A, B>> {};
template <class R, std::size_t N>
struct PartsOfResult<std::array<R, N>>
    : Join<typename PartsOfResult<R>::type, typename PartsOfResult<std::array<R, N - 1>>::type> {};
template <class R>
struct PartsOfResult<std::array<R, 0>> : PartsOfResult<void> {};
template <class F, class... P>
using ResultParts =
    typename PartsOfResult<typename Results<std::decay_t<std::invoke_result_t<const F&, P&...>>>::type>::type;

/// Whether a value has a real scalar; for a struct, outside the arrays in it.
template <class T>
inline constexpr bool has_real = [] {
  for (const Leaf& leaf : Layout<T>::leaves)
    if (ir::is_float(leaf.type)) return true;
  return false;
}();

/// The types that carry a gradient, each with the type T of its value.
template <class V>
struct RealPart;
template <class T>
struct RealPart<Var<T>> {
  static constexpr bool mixed = SpreadStruct<T> && has_real<T>;
  static_assert(
      !mixed,
      "weft::grad: a struct that holds arrays and real fields is no parameter of a function with a gradient of "
      "its own; pass its fields one by one");
  using type = std::conditional_t<has_real<T> && !mixed, Types<Var<T>>, Types<>>;
};
template <class L>
struct RealParts;
template <class... V>
struct RealParts<Types<V...>> : Join<Types<>, typename RealPart<V>::type...> {};

template <class V>
inline constexpr bool passes_arrays = false;
template <class T>
inline constexpr bool passes_arrays<Var<T>> = Layout<T>::holds_arrays;

/// The gradient of a value: an input for each real scalar; the others are zero.
void next_gradient(FuncInputs& from, std::span<const Leaf> leaves, tracing::Id* out);
template <class V>
struct PassedGradient;
template <class T>
struct PassedGradient<Var<T>> {
  static Var<T> make(FuncInputs& from) {
    tracing::Id ids[Layout<T>::count];
    next_gradient(from, Layout<T>::leaves, ids);
    return from_ids<T>(ids);
  }
};

template <class... P, class... A, class G>
constexpr bool takes(Types<P...>, Types<A...>, const G*) {
  return std::is_invocable_v<const G&, P&..., A&...>;
}
template <class... P, class... A, class G>
auto result_parts(Types<P...>, Types<A...>, const G*) -> ResultParts<G, P..., A...>;

/// Checks the types of a gradient function G of F with parameters P; one message for each mistake.
template <class F, class G, class... P>
constexpr bool check_gradient() {
  using Given = typename RealParts<ResultParts<F, P...>>::type;
  using Wanted = typename RealParts<Types<P...>>::type;
  static_assert(!std::is_same_v<Given, Types<>> || (passes_arrays<P> || ...),
                "weft::grad: the function has no real result and takes no arrays: no gradient comes to it");
  constexpr bool taken = takes(Types<P...>(), Given(), static_cast<const G*>(nullptr));
  static_assert(taken,
                "weft::grad: the gradient function takes the function's parameters, then the gradient of each of its "
                "real results");
  if constexpr (taken) {
    using Returned = decltype(result_parts(Types<P...>(), Given(), static_cast<const G*>(nullptr)));
    constexpr bool fits = std::is_same_v<Returned, Wanted>;
    static_assert(fits,
                  "weft::grad: the gradient function returns the gradient of each real parameter, in their order: a "
                  "value, or a std::tuple of them; arrays and integers have none");
    return fits;
  }
  return false;
}
template <class F, class R, class... P>
constexpr bool check_replay() {
  constexpr bool taken = std::is_invocable_v<const R&, P&...>;
  static_assert(taken, "weft::replay: a replay takes the function's parameters");
  if constexpr (taken) {
    constexpr bool fits = std::is_same_v<ResultParts<R, P...>, ResultParts<F, P...>>;
    static_assert(fits, "weft::replay: a replay returns what the function returns");
    return fits;
  }
  return false;
}

template <class F, class G, class R, class... P>
struct DerivativeBodies {
  using Holder = FuncHolder<WithDerivatives<F, G, R>>;

  template <class... A>
  static void gradient(const Holder& holder, FuncInputs& inputs, std::vector<tracing::Id>& outputs, Types<A...>) {
    // Braces make the parameters from left to right.
    std::tuple<P..., A...> parameters{Passed<P>::make(inputs)..., PassedGradient<A>::make(inputs)...};
    append(holder.f.gradient, parameters, outputs);
  }
  static void gradient(const FuncCore& core, FuncInputs& inputs, std::vector<tracing::Id>& outputs) {
    gradient(static_cast<const Holder&>(core), inputs, outputs, typename RealParts<ResultParts<F, P...>>::type());
  }
  static void replay(const FuncCore& core, FuncInputs& inputs, std::vector<tracing::Id>& outputs) {
    std::tuple<P...> parameters{Passed<P>::make(inputs)...};
    append(static_cast<const Holder&>(core).f.replay, parameters, outputs);
  }

 private:
  template <class H, class Parameters>
  static void append(const H& h, Parameters& parameters, std::vector<tracing::Id>& outputs) {
    using Result = decltype(std::apply(h, parameters));
    if constexpr (std::is_void_v<Result>)
      std::apply(h, parameters);
    else
      Results<std::decay_t<Result>>::append(std::apply(h, parameters), outputs);
  }
};

template <class F, class G, class R, class... P>
struct BodiesOf<WithDerivatives<F, G, R>, P...> {
  static constexpr FuncBodies value = [] {
    FuncBodies bodies{&func_body<WithDerivatives<F, G, R>, P...>};
    using D = DerivativeBodies<F, G, R, P...>;
    if constexpr (!std::is_same_v<G, NoFunction>)
      if constexpr (check_gradient<F, G, P...>()) bodies.gradient = &D::gradient;
    if constexpr (!std::is_same_v<R, NoFunction>)
      if constexpr (check_replay<F, R, P...>()) bodies.replay = &D::replay;
    return bodies;
  }();
};

template <class F>
std::shared_ptr<const FuncHolder<F>> hold(const FuncCore& core, F f, Loc gradient_loc, Loc replay_loc) {
  auto holder = std::make_shared<FuncHolder<F>>(core.name, core.loc, std::move(f));
  holder->gradient_loc = gradient_loc;
  holder->replay_loc = replay_loc;
  return holder;
}

template <class F, class G>
auto with_gradient(const FuncHolder<F>& of, G g, Loc loc) {
  const auto& own = with_derivatives(of.f);
  using Own = WithDerivatives<std::decay_t<decltype(own.f)>, G, std::decay_t<decltype(own.replay)>>;
  static_assert(std::is_same_v<std::decay_t<decltype(own.gradient)>, NoFunction>,
                "weft::grad: the function has a gradient of its own already");
  return hold<Own>(of, {own.f, std::move(g), own.replay}, loc, of.replay_loc);
}
template <class F, class R>
auto with_replay(const FuncHolder<F>& of, R r, Loc loc) {
  const auto& own = with_derivatives(of.f);
  using Own = WithDerivatives<std::decay_t<decltype(own.f)>, std::decay_t<decltype(own.gradient)>, R>;
  static_assert(std::is_same_v<std::decay_t<decltype(own.replay)>, NoFunction>,
                "weft::replay: the function has a replay already");
  return hold<Own>(of, {own.f, own.gradient, std::move(r)}, of.gradient_loc, loc);
}

template <class F, class... P>
Func<F, P...> as_func(std::shared_ptr<const FuncHolder<F>> holder, Types<P...>) {
  // The types are checked here too, so that the message names the line of grad() or replay().
  [[maybe_unused]] constexpr FuncBodies checked = BodiesOf<F, P...>::value;
  return Func<F, P...>(std::move(holder));
}

ArrLayout gradient_of(const ArrLayout& arr, Loc loc);

}  // namespace detail

/// Makes a func() with a gradient that the user gives, instead of one derived from its code: `fn` computes, and the way
/// back calls `gradient` for each call of it.
///
///   auto root = func("root", [](Float x) { return sqrt(x); });
///   auto safe_root = grad(root, [](Float x, Float adj) { return select(x > 0, adj / (2 * sqrt(x)), 0.f); });
///
/// `gradient` takes the parameters of fn, with the values of the call, and then the gradient of each real result: a
/// Float for a Float, a Vec3 for a Vec3, a struct for a struct (its integers are zero). It returns the gradients of the
/// real parameters in order, one value or a std::tuple of several, or nothing if there are none. Integers, booleans and
/// arrays have no place among these: see gradient() for arrays. The gradient function itself is not differentiated. It
/// may call fn. It sees the arrays that fn writes as the launch left them, all others as they were at the call.
///
/// fn itself stays as it is; the result is another function. A lambda with `auto` parameters takes a gradient with
/// `auto` parameters.
/// Errors: the compiler refuses a wrong signature. Building the adjoint throws Error(invalid_kernel) if fn or its
/// gradient uses barriers or subgroups, and Error(not_differentiable) if fn writes an array that the kernel uses other
/// than through fn, or writes and its result is needed again (see replay). See docs/differentiability.md.
template <class F, class... P, class G>
auto grad(const Func<F, P...>& fn, G gradient, Loc loc = Loc::here()) {
  return detail::as_func(detail::with_gradient(fn.holder(), std::move(gradient), loc), detail::Types<P...>());
}
template <class F, class G>
auto grad(const detail::GenericFunc<F>& fn, G gradient, Loc loc = Loc::here()) {
  return detail::GenericFunc(detail::with_gradient(fn.holder(), std::move(gradient), loc));
}

/// Makes a func() with a replay: a function, of the same parameters and results, that replaces `fn` when the adjoint
/// runs the kernel forward again. For functions whose effects must not happen twice and whose result cannot be computed
/// again, such as a place taken from a counter:
///
///   auto take = func("take", [](Arr<int> counter, Arr<int> taken, Int i) -> Int {
///     Int place = atomic_add(counter[0], 1);
///     taken[i] = place;
///     return place;
///   });
///   auto take_once = replay(take, [](Arr<int> counter, Arr<int> taken, Int i) -> Int { return taken[i]; });
///
/// The replay sees the arrays that fn writes as the launch left them, all others as they were at the call. Without a
/// gradient function, the replay is also what is differentiated.
/// Errors: the compiler refuses a wrong signature. Building the adjoint throws Error(not_differentiable) if the kernel
/// uses an array that fn writes other than through fn, and Error(invalid_kernel) if the replay calls fn or uses
/// barriers or subgroups.
template <class F, class... P, class R>
auto replay(const Func<F, P...>& fn, R replay, Loc loc = Loc::here()) {
  return detail::as_func(detail::with_replay(fn.holder(), std::move(replay), loc), detail::Types<P...>());
}
template <class F, class R>
auto replay(const detail::GenericFunc<F>& fn, R replay, Loc loc = Loc::here()) {
  return detail::GenericFunc(detail::with_replay(fn.holder(), std::move(replay), loc));
}

/// The gradient of an array parameter, inside a gradient function (see grad): an array of the same shape. `+=` and `-=`
/// on its elements are atomic additions, since other threads add to them at the same time: `gradient(x)[i] += 2 * adj`.
/// If the array carries no gradient in a launch, additions do nothing and reads give zero.
/// Errors: Error(invalid_kernel) with the line outside a gradient function, and when the gradient is passed to a
/// func().
template <class T, int N>
Arr<std::remove_const_t<T>, N> gradient(const Var<Array<T, N>>& x, Loc loc = Loc::here()) {
  static_assert(detail::has_real<std::remove_const_t<T>>, "weft::gradient: the elements hold no real numbers");
  return Arr<std::remove_const_t<T>, N>(detail::gradient_of(x.layout(), loc));
}

}  // namespace weft
