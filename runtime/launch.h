// launch(): checks and packs arguments from the host, and gives the launch to a stream.
#pragma once
#include <cstring>

#include "../frontend/kernels/kernel.h"
#include "../frontend/support/error.h"
#include "array.h"
#include "detail/given_structures.h"
#include "detail/host_arg.h"

namespace weft {

namespace detail {

/// Launches a kernel.
/// \param given  the structures among the arguments; null: there are none
void launch(KernelCore& kernel, const Stream* stream, const Threads& threads, std::span<const HostArg> args,
            const GivenStructures* given = nullptr);

/// The decisions that the arguments of a launch make about the kernel's code.
/// Errors: as launch(), for arrays.
ir::Variant variant_of(const KernelCore& kernel, std::span<const HostArg> args, DeviceState& device);
/// Refuses arrays without elements that the kernel accesses.
/// Errors: Error(invalid_argument) naming the array.
void refuse_empty_arrays(const KernelCore& kernel, const ir::Interface& call, std::span<const HostArg> args);

[[noreturn]] void value_out_of_range();
/// Throws `why` again, as an error of this argument of a launch of the kernel.
[[noreturn]] void refuse_argument(const KernelCore& kernel, int argument, const Error& why);

/// Whether an argument can be given for a parameter, or why not.
enum class Fit { yes, no_value, one_number, real_for_integer, other_array, no_array, no_indexed_array, other_struct };

/// A type that consists of scalars of one type: a scalar, a vector, a matrix and the like.
template <class A>
concept OfScalars = requires {
  typename Flat<A>::scalar;
};
/// The scalar that a type consists of; the type itself if it is none of the library's.
template <class A>
struct ScalarOf {
  using type = A;
};
template <OfScalars A>
struct ScalarOf<A> {
  using type = typename Flat<A>::scalar;
};
/// Whether a value converts to the host's type of a parameter. Implicit conversions do, and explicit ones that keep the
/// number of scalars; but no number converts to several, and no bool explicitly to a number or back.
template <class A, class Host>
constexpr bool converts() {
  if constexpr (std::is_convertible_v<A, Host>)
    return true;
  else if constexpr (!std::is_constructible_v<Host, A> || (std::is_aggregate_v<Host> && !OfScalars<Host>))
    return false;
  else if constexpr (OfScalars<A> && OfScalars<Host>)
    return Flat<A>::count == Flat<Host>::count &&
           std::is_same_v<typename Flat<A>::scalar, bool> == std::is_same_v<typename Flat<Host>::scalar, bool>;
  else
    return !Scalar<A>;
}

/// Turns an argument of the caller into the Parameter<P>::parts parameters that P takes. fit<A>() says whether an
/// argument of type A can be given. get() throws for a wrong value, without naming the kernel and the argument's
/// number, which with_arguments() adds.
template <class P>
struct Argument {
  using Host = typename P::host;
  template <class A>
  static constexpr Fit fit() {
    using Number = typename ScalarOf<Host>::type;
    constexpr bool takes_integers = IntegerScalar<Number> || std::is_same_v<Number, bool>;
    // One number would silently fill in all components, or the first field, so the caller must write it out.
    if constexpr (Scalar<A> && !Scalar<Host> && !std::is_convertible_v<A, Host>)
      return Fit::one_number;
    else if constexpr (!converts<A, Host>())
      return Fit::no_value;
    else
      return takes_integers && RealScalar<typename ScalarOf<A>::type> ? Fit::real_for_integer : Fit::yes;
  }
  template <class A>
  Argument(const A& a) : value_(make(a)) {}
  void get(HostArg* parts, GivenStructures&) const {
    if (!fits_) value_out_of_range();
    parts[0].value = &value_, parts[0].leaves = Layout<Host>::leaves;
  }

 private:
  template <class A>
  Host make(const A& a) {
    if constexpr (OfScalars<Host> && OfScalars<A>) {
      using To = typename Flat<Host>::scalar;
      using From = typename Flat<A>::scalar;
      if constexpr (IntegerScalar<To> && IntegerScalar<From> && !std::is_same_v<To, From>) {
        From numbers[Flat<A>::count];
        std::memcpy(numbers, &a, sizeof numbers);
        for (const From n : numbers) fits_ = fits_ && From(To(n)) == n && (To(n) < To(0)) == (n < From(0));
      }
    }
    return Host(a);
  }
  bool fits_ = true;  ///< stands before the value because making the value sets it
  Host value_;
};
template <class T, int N>
struct Argument<Var<Array<T, N>>> {
  using Expected = Array<std::remove_const_t<T>, N>;
  const ArrayBase* array;
  template <class A>
  static constexpr Fit fit() {
    return std::is_same_v<A, Expected> ? Fit::yes : std::is_base_of_v<ArrayBase, A> ? Fit::other_array : Fit::no_array;
  }
  Argument(const Expected& a) : array(&a) {}
  void get(HostArg* parts, GivenStructures&) const { parts[0].array = array; }
};
/// A handle to a struct that holds arrays, as Bvh is to BvhData.
template <class A, class T>
concept StandsFor = requires(const A& a) {
  { a.kernel_argument() } -> std::same_as<const T&>;
};

template <int argument, class Given, class Taken>
constexpr bool check_argument() {
  constexpr Fit fit = Argument<Taken>::template fit<Given>();
  static_assert(fit != Fit::no_value,
                "weft::launch: an argument does not convert to the kernel's parameter; which argument, what is Given "
                "and what is Taken is said next to this");
  static_assert(fit != Fit::one_number,
                "weft::launch: one number is given where the kernel takes a vector, a matrix or a struct: write it "
                "out, as in vec3(2); which argument, what is Given and what is Taken is said next to this");
  static_assert(fit != Fit::real_for_integer,
                "weft::launch: a real number is given where the kernel takes an integer; which argument, what is Given "
                "and what is Taken is said next to this");
  static_assert(fit != Fit::other_array,
                "weft::launch: the kernel's parameter is an Arr<T, N> of another element type or dimension; which "
                "argument, what is Given and what is Taken is said next to this");
  static_assert(fit != Fit::no_array,
                "weft::launch: the kernel's parameter is an Arr: give it an Array, as in Array<float>(device, values); "
                "which argument, what is Given and what is Taken is said next to this");
  static_assert(fit != Fit::no_indexed_array,
                "weft::launch: the kernel's parameter is an IndexedArr<T, N> of another element type or dimension, or "
                "the argument is no indexed array: see indexed(); which argument is said next to this");
  static_assert(fit != Fit::other_struct,
                "weft::launch: the kernel's parameter is another struct; which argument, what is Given and what is "
                "Taken is said next to this");
  return fit == Fit::yes;
}
template <int expected, int given>
constexpr bool check_count() {
  static_assert(expected == given,
                "weft::launch: the kernel has another number of parameters; how many arguments are expected, and how "
                "many given, is said next to this");
  return expected == given;
}
template <class Given>
constexpr void check_threads() {
  static_assert(are_threads<Given>,
                "weft::launch: the number of threads is missing after the kernel: launch(kernel, n, arguments...), or "
                "{height, width} for n");
}
/// Whether a launch with arguments A may be tried: there are as many as parameters P, and of their types.
template <class... P>
struct Parameters {
  template <class... A>
  static constexpr bool take() {
    if constexpr (sizeof...(P) != sizeof...(A))
      return check_count<int(sizeof...(P)), int(sizeof...(A))>();
    else if constexpr (((Argument<P>::template fit<A>() == Fit::yes) && ...))
      return true;
    else
      return []<int... k>(std::integer_sequence<int, k...>) { return (check_argument<k + 1, A, P>() & ...); }
    (std::make_integer_sequence<int, int(sizeof...(A))>());
  }
};
template <SpreadStruct T>
struct Argument<Var<T>> {
  template <class A>
  static constexpr Fit fit() {
    return std::is_same_v<A, T> || StandsFor<A, T> ? Fit::yes : Fit::other_struct;
  }
  template <class A>
  Argument(const A& a) : given_(&a), struct_of_(&struct_of<A>) {}
  void get(HostArg* parts, GivenStructures& structures) const {
    HostArg* at = parts;
    put_fields(struct_of_(given_), at, structures);
    for (int k = 0; at != parts + k; ++k) parts[k].part = 0, parts[k].field = k, parts[k].field_name = &field_name;
  }

 private:
  const void* given_;
  const T& (*struct_of_)(const void* given);
  template <class A>
  static const T& struct_of(const void* given) {
    const A& a = *static_cast<const A*>(given);
    if constexpr (StandsFor<A, T>)
      return a.kernel_argument();
    else
      return a;
  }
  static std::string field_name(int field) {
    std::vector<std::string> names;
    Parameter<Var<T>>::add_names(names, "");
    return names[std::size_t(field)];
  }
  /// \tparam asks  whether structures within are asked for, which one around them speaks for
  template <bool asks = true, class S>
  static void put_fields(const S& s, HostArg*& at, GivenStructures& structures) {
    constexpr bool is_structure = requires { weft_structure_of(s); };
    if constexpr (asks && is_structure) structures.add(weft_structure_of(s));
    constexpr bool asks_within = asks && !is_structure;
    with_fields<FieldTypes<S>::count>(s, [&](const auto&... f) { (put_field<asks_within>(f, at, structures), ...); });
  }
  template <bool asks, class F>
  static void put_field(const F& f, HostArg*& at, GivenStructures& structures) {
    if constexpr (SpreadStruct<F>)
      put_fields<asks>(f, at, structures);
    else if constexpr (std::is_base_of_v<ArrayBase, F>)
      at++->array = &f;
    else
      at->leaves = Layout<F>::leaves, at++->value = &f;
  }
};

/// Calls f with the parts of all arguments, and the structures among them.
/// Errors: Error that names the kernel and the argument, for values out of range and structures that cannot be used.
template <class... P, class F>
void with_arguments(const KernelCore& kernel, GivenStructures::For what, F f, const Argument<P>&... arguments) {
  HostArg args[(Parameter<P>::parts + ... + 1)];
  HostArg* at = args;
  int number = 0;
  GivenStructures given(what);
  const auto put = [&](const auto& argument, int parts) {
    ++number;
    for (int k = 0; k < parts; ++k) at[k].argument = number, at[k].part = k;
    argument.get(at, given);
    at += parts;
  };
  try {
    (put(arguments, Parameter<P>::parts), ...);
  } catch (const Error& why) {
    refuse_argument(kernel, number, why);
  }
  f(std::span<const HostArg>(args, at), given);
}

template <class... P>
void launch_with(KernelCore& kernel, const Stream* stream, const Threads& threads, const Argument<P>&... arguments) {
  called_from(threads.loc, [&] {
    with_arguments<P...>(
        kernel, GivenStructures::For::launch,
        [&](std::span<const HostArg> args, const GivenStructures& given) {
          launch(kernel, stream, threads, args, &given);
        },
        arguments...);
  });
}

}  // namespace detail

/// Runs a kernel for every thread of `threads` (n, or {nx, ny, ..}; zero threads do nothing), on the device of its
/// arrays, in order with that device's stream(). Returns at once.
/// Errors, each with the place of the call: Error(invalid_argument), which names the kernel, for an argument or a
/// number of threads that it cannot take; Error(invalid_kernel) when the trace fails; Error(unsupported) when the
/// device lacks what the kernel needs, or the kernel counts in too few bits. See docs/language.md.
/// Cost: under 2 microseconds of the host's time once the kernel is compiled.
template <class... P, class... A>
void launch(const Kernel<P...>& kernel, const detail::Threads& threads, const A&... args) {
  if constexpr (detail::Parameters<P...>::template take<A...>()) {
    detail::launch_with<P...>(kernel.core(), nullptr, threads, detail::Argument<P>(args)...);
  }
}

/// Runs a kernel on a stream, whose device must be that of the arrays.
template <class... P, class... A>
void launch(const Stream& stream, const Kernel<P...>& kernel, const detail::Threads& threads, const A&... args) {
  if constexpr (detail::Parameters<P...>::template take<A...>()) {
    detail::launch_with<P...>(kernel.core(), &stream, threads, detail::Argument<P>(args)...);
  }
}

// A launch without the number of threads is refused by these overloads.
template <class... P, class T, class... A>
requires(!detail::are_threads<T>) void launch(const Kernel<P...>&, const T&, const A&...) {
  detail::check_threads<T>();
}
template <class... P, class T, class... A>
requires(!detail::are_threads<T>) void launch(const Stream&, const Kernel<P...>&, const T&, const A&...) {
  detail::check_threads<T>();
}

}  // namespace weft
