// launch(): arguments from the host, checked and packed, to a stream.
#pragma once
#include "../frontend/edsl/kernel.h"
#include "array.h"

namespace weft {

namespace detail {

/// One argument of a launch: an array, or the bytes of a value.
struct HostArg {
  const ArrayBase* array = nullptr;
  const void* value = nullptr;
};

void launch(KernelCore& kernel, const Stream* stream, const Extent& threads, std::span<const HostArg> args);

[[noreturn]] void value_out_of_range();

/// Turns an argument of the caller into the host type of parameter P, which `storage` holds if need be.
template <class P>
struct Argument {
  using Host = typename P::host;
  Host value;
  template <class A>
  Argument(const A& a) : value(make(a)) {}
  HostArg get() const { return {nullptr, &value}; }

 private:
  template <class A>
  static Host make(const A& a) {
    static_assert(std::is_convertible_v<A, Host> || std::is_constructible_v<Host, A>,
                  "weft::launch: this argument does not convert to the kernel's parameter");
    if constexpr (IntegerScalar<Host> && Scalar<A>) {
      static_assert(!RealScalar<A>, "weft::launch: a real number is given where the kernel takes an integer");
      const Host converted = static_cast<Host>(a);
      if (static_cast<A>(converted) != a || (converted < Host(0)) != (a < A(0))) value_out_of_range();
    }
    return Host(a);
  }
};
template <class T, int N>
struct Argument<Var<Array<T, N>>> {
  using Expected = Array<std::remove_const_t<T>, N>;
  const ArrayBase* array;
  template <class A>
  Argument(const A& a) : array(&a) {
    static_assert(std::is_same_v<A, Expected>,
                  "weft::launch: the kernel's parameter is an Arr<T, N> of another element type or dimension");
  }
  HostArg get() const { return {array, nullptr}; }
};

}  // namespace detail

/// Runs a kernel for every thread of `threads` (n, or {nx, ny, ..}; zero threads do nothing), on the device that its
/// arrays are on, in order with that device's default stream. Returns at once.
/// Errors: Error(invalid_argument) naming the kernel and the argument: a null array, an empty array with threads to
/// run, arrays on several devices, a negative size, another number of dimensions than tid<N>() has;
/// Error(invalid_kernel) when the trace fails; Error(unsupported) when the device lacks what the kernel needs.
/// Cost: under 2 microseconds of the host's time once the kernel is compiled.
template <class... P, class... A>
void launch(const Kernel<P...>& kernel, std::type_identity_t<const Extent&> threads, const A&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "weft::launch: the kernel has another number of parameters");
  if constexpr (sizeof...(P) == sizeof...(A)) {
    [&](const detail::Argument<P>&... list) {
      const detail::HostArg host[] = {list.get()..., {}};
      detail::launch(kernel.core(), nullptr, threads, {host, sizeof...(P)});
    }(detail::Argument<P>(args)...);
  }
}

/// The same on a stream, whose device the arrays must be on.
template <class... P, class... A>
void launch(const Stream& stream, const Kernel<P...>& kernel, std::type_identity_t<const Extent&> threads,
            const A&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "weft::launch: the kernel has another number of parameters");
  if constexpr (sizeof...(P) == sizeof...(A)) {
    [&](const detail::Argument<P>&... list) {
      const detail::HostArg host[] = {list.get()..., {}};
      detail::launch(kernel.core(), &stream, threads, {host, sizeof...(P)});
    }(detail::Argument<P>(args)...);
  }
}

}  // namespace weft
