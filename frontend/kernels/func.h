// func(): a C++ function over traced values that a kernel holds once and calls.
#pragma once
#include <array>
#include <memory>
#include <tuple>
#include <utility>

#include "kernel.h"

namespace weft {

namespace detail {

/// A number that no other func() of the process has.
std::uint64_t new_func_number();

/// The common part of all calls of one func().
struct FuncCore {
  std::string name;
  Loc loc;
  /// The identity of a func(). Its address would not do: a func() made inside a kernel may be gone before the trace
  /// ends, and another may take its place.
  std::uint64_t number = new_func_number();
  /// The locations of its gradient function and its replay.
  Loc gradient_loc = {}, replay_loc = {};
};
template <class F>
struct FuncHolder : FuncCore {
  F f;
  FuncHolder(std::string name, Loc loc, F f) : FuncCore{std::move(name), loc}, f(std::move(f)) {}
};

/// Defined elsewhere, because an optimiser that sees the vector empty warns of the copy that it does not make.
void append(const tracing::Id* values, int n, std::vector<tracing::Id>& to);

/// The arguments of a call, as scalars of the caller, and the other facts that decide which code is called.
struct FuncArgs {
  std::vector<tracing::Id> ids;
  std::vector<std::uint32_t> form;
  std::vector<ArrLayout> arrays;

  void add(const ArrLayout& arr, Loc loc);
};

/// The arguments of a call inside the function, taken in the order of FuncArgs. `inlined`: the function is part of the
/// caller's trace.
class FuncInputs {
 public:
  FuncInputs(const FuncArgs& args, bool inlined) : args_(args), inlined_(inlined) {}
  tracing::Id next();
  void next(tracing::Id* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = next();
  }
  ArrLayout next_array();

 private:
  const FuncArgs& args_;
  bool inlined_;
  std::size_t id_ = 0, form_ = 0, array_ = 0;
};

/// Runs the C++ function with these inputs and appends the scalars that it returns.
using FuncBody = void (*)(const FuncCore& core, FuncInputs& inputs, std::vector<tracing::Id>& outputs);

/// The C++ functions of a call. A null gradient is derived; a null replay runs the function itself again.
struct FuncBodies {
  FuncBody body;
  FuncBody gradient = nullptr;  ///< its outputs that are not real are ignored
  FuncBody replay = nullptr;
};

/// Calls the instance for these arguments, which is traced if there is none yet. Returns the scalars of its result. A
/// function that may end the thread, and every function in debug mode, is traced in place of the call instead; in an
/// adjoint, however, a function with derivatives of its own stays a call, of an instance that knows them.
std::vector<tracing::Id> call_func(const FuncCore& core, const FuncBodies& bodies, FuncArgs& args, Loc loc);

/// The way in which a type of parameter or result crosses a call: `Arg`, the type that a caller may write, and the
/// scalars on either side.
template <class V>
struct Passed;

/// A type whose scalars make up its values, without arrays.
template <class T>
concept Value = Layout<T>::count >
0 && !Layout<T>::holds_arrays;

template <Value T>
struct Passed<Var<T>> {
  using Arg = In<T>;
  static void put(const Arg& a, FuncArgs& to) { append(a, to.ids); }
  static void append(const Arg& a, std::vector<tracing::Id>& to) {
    const tracing::Id* first;
    if constexpr (std::is_array_v<decltype(a.id)>)
      first = a.id;
    else
      first = &a.id;
    detail::append(first, Layout<T>::count, to);
  }
  static Var<T> get(const tracing::Id*& from) { return from_ids<T>(std::exchange(from, from + Layout<T>::count)); }
  static Var<T> make(FuncInputs& from) {
    tracing::Id ids[Layout<T>::count];
    from.next(ids, Layout<T>::count);
    return from_ids<T>(ids);
  }
};

/// An array as an argument; Arr<T> may be given for Arr<const T>.
template <class T, int N>
struct ArrArg {
  ArrArg(const Var<Array<T, N>>& a, Loc loc = Loc::here()) : layout(a.layout(loc)), loc(loc) {}
  template <class U>
  requires std::is_same_v<const U, T> ArrArg(const Var<Array<U, N>>& a, Loc loc = Loc::here())
      : layout(a.layout(loc)), loc(loc) {}
  ArrLayout layout;
  Loc loc;
};
template <class T, int N>
struct Passed<Var<Array<T, N>>> {
  using Arg = ArrArg<T, N>;
  static void put(const Arg& a, FuncArgs& to) { to.add(a.layout, a.loc); }
  static Var<Array<T, N>> make(FuncInputs& from) { return Var<Array<T, N>>(from.next_array()); }
};

/// A struct that holds arrays, passed field by field.
template <SpreadStruct T>
struct Passed<Var<T>> {
  struct Arg {
    Arg(const Var<T>& v, Loc loc = Loc::here()) : value(v), loc(loc) {}
    Var<T> value;
    Loc loc;
  };
  static void put(const Arg& a, FuncArgs& to) {
    const FieldsOf<T, Var>& fields = a.value;
    with_fields<FieldTypes<T>::count>(fields, [&]<class... F>(const Var<F>&... f) {
      (Passed<Var<F>>::put(typename Passed<Var<F>>::Arg(f, a.loc), to), ...);
    });
  }
  static Var<T> make(FuncInputs& from) {
    return [&]<class... F>(Types<F...>) {
      // Braces make the fields from left to right.
      return Var<T>(StructFace<T, Var>{Passed<Var<F>>::make(from)...});
    }(FieldTypes<T>());
  }
};

/// The result of a function that returns an R: the type that its caller receives, and the scalars on either side.
template <class R>
struct Results {
  static_assert(is_traced<R>,
                "weft::func: a result is not of a traced type; return Float, Vec3, .. or a tuple of them");
  // This type keeps the compiler from saying more than the assertion does.
  using type = R;
  static void append(const R&, std::vector<tracing::Id>&) {}
  static R get(const tracing::Id*& from);
};
template <>
struct Results<void> {
  using type = void;
};
template <Value T>
struct Results<Var<T>> {
  using type = Var<T>;
  static void append(const Var<T>& v, std::vector<tracing::Id>& to) { Passed<type>::append({v, Loc{}}, to); }
  static type get(const tracing::Id*& from) { return Passed<type>::get(from); }
};
template <class T>
struct Results<HostChoice<T>> : Results<Var<T>> {};
template <class Tuple, class... R>
struct TupleResults {
  using type = Tuple;
  template <class T>
  static void append(const T& v, std::vector<tracing::Id>& to) {
    std::apply([&](const R&... part) { (Results<R>::append(part, to), ...); }, v);
  }
  static type get(const tracing::Id*& from) {
    // Braces make the parts from left to right.
    return type{Results<R>::get(from)...};
  }
};
template <class... R>
struct Results<std::tuple<R...>> : TupleResults<std::tuple<typename Results<R>::type...>, R...> {};
template <class A, class B>
struct Results<std::pair<A, B>> : TupleResults<std::pair<typename Results<A>::type, typename Results<B>::type>, A, B> {
};
template <class R, std::size_t N, class Numbers = std::make_index_sequence<N>>
struct ArrayResults;
template <class R, std::size_t N, std::size_t... I>
struct ArrayResults<R, N, std::index_sequence<I...>>
    : TupleResults<std::array<typename Results<R>::type, N>, std::enable_if_t<(I < N), R>...> {};
template <class R, std::size_t N>
struct Results<std::array<R, N>> : ArrayResults<R, N> {};

template <class F, class... P>
void func_body(const FuncCore& core, FuncInputs& inputs, std::vector<tracing::Id>& outputs) {
  const F& f = static_cast<const FuncHolder<F>&>(core).f;
  std::tuple<P...> parameters{Passed<P>::make(inputs)...};
  using R = std::invoke_result_t<const F&, P&...>;
  if constexpr (std::is_void_v<R>) {
    std::apply(f, parameters);
  } else {
    Results<std::decay_t<R>>::append(std::apply(f, parameters), outputs);
  }
}

/// The C++ functions of a call of F with parameters P.
template <class F, class... P>
struct BodiesOf {
  static constexpr FuncBodies value{&func_body<F, P...>};
};

/// Calls F with parameters P, on arguments that were converted to their types.
template <class F, class... P>
auto call_func(const FuncHolder<F>& holder, Loc loc, const typename Passed<P>::Arg&... given) {
  using R = std::invoke_result_t<const F&, P&...>;
  FuncArgs args;
  (Passed<P>::put(given, args), ...);
  const std::vector<tracing::Id> ids = call_func(holder, BodiesOf<F, P...>::value, args, loc);
  if constexpr (!std::is_void_v<R>) {
    const tracing::Id* first = ids.data();
    return Results<std::decay_t<R>>::get(first);
  }
}

/// The traced type of an argument of a function with `auto` parameters.
template <class A>
struct TracedFace {
  using type = Var<A>;
};
template <class T>
struct TracedFace<Var<T>> {
  using type = Var<T>;
};
template <class T>
struct TracedFace<HostChoice<T>> {
  using type = Var<T>;
};

}  // namespace detail

/// See func(). Copies are the same function.
template <class F, class... P>
class Func {
 public:
  explicit Func(std::shared_ptr<const detail::FuncHolder<F>> holder) : holder_(std::move(holder)) {}

  auto operator()(typename detail::Passed<P>::Arg... args, Loc loc = Loc::here()) const {
    return detail::call_func<F, P...>(*holder_, loc, args...);
  }
  const detail::FuncHolder<F>& holder() const { return *holder_; }

 private:
  std::shared_ptr<const detail::FuncHolder<F>> holder_;
};

namespace detail {

/// The function of a lambda with `auto` parameters, see func().
template <class F>
class GenericFunc {
 public:
  explicit GenericFunc(std::shared_ptr<const detail::FuncHolder<F>> holder) : holder_(std::move(holder)) {}

  template <class... A>
  auto operator()(const A&... args) const {
    return detail::call_func<F, Face<A>...>(*holder_, holder_->loc,
                                            typename detail::Passed<Face<A>>::Arg(args, Loc{})...);
  }
  const detail::FuncHolder<F>& holder() const { return *holder_; }

 private:
  template <class A>
  using Face = typename detail::TracedFace<A>::type;

  std::shared_ptr<const detail::FuncHolder<F>> holder_;
};

template <class R, class... P, class F>
auto make_func(CallSignature<R, P...>, std::string name, F f, Loc loc) {
  constexpr bool traced = (is_traced<std::decay_t<P>> && ...);
  static_assert(traced, "weft::func: a parameter is not of a traced type; write Float, Int, Vec3, Arr<float>, ...");
  constexpr bool by_value = ((!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>)&&...);
  static_assert(by_value, "weft::func: arguments are passed by value; return what the function changes");
  constexpr bool callable = std::is_invocable_v<const F&, P...>;
  static_assert(callable, "weft::func: a mutable lambda is no function: what it keeps would be lost between calls");
  if constexpr (traced && by_value && callable)
    return Func<F, std::decay_t<P>...>(std::make_shared<FuncHolder<F>>(std::move(name), loc, std::move(f)));
}
}  // namespace detail

/// Makes a function that kernels call. Each kernel that calls it holds its code once, however often it calls it.
///
///   auto spring = func("spring", [](Vec3 a, Vec3 b, Float k) { return (b - a) * k; });
///   auto forces = kernel("forces", [=](Arr<const vec3> x, Arr<vec3> f) { ... f[i] = spring(x[i], x[j], 20); });
///
/// Parameters are traced types, taken by value: scalars, vectors, matrices, structs, Arr<T, N> (slices too). Arguments
/// are converted as by assignment: host numbers adapt. A parameter declared `auto` takes any traced type. A function
/// returns nothing, a value, or a std::tuple, std::pair or std::array of values.
/// The code is traced once for each combination of layouts of the given arrays (contiguous, strided, slice) and of
/// types for `auto` parameters. The function may call tid(). Captured host values are constants.
/// \param name  in messages, profiles and dumps
/// Errors: Error(invalid_kernel) with kernel, function and line when the function calls itself, directly or through
/// others (the chain is named), uses a traced value that it captured, or says Return().
template <class F>
auto func(std::string name, F f, Loc loc = Loc::here()) {
  if constexpr (detail::HasSignature<F>)
    return detail::make_func(detail::SignatureOf<F>(), std::move(name), std::move(f), loc);
  else
    return detail::GenericFunc<F>(std::make_shared<detail::FuncHolder<F>>(std::move(name), loc, std::move(f)));
}

}  // namespace weft
