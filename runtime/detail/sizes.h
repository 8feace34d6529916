// Sizes of arrays and launches, as calls give them.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "../../frontend/support/loc.h"

namespace weft {

namespace detail {
/// A type that counts: an integer, or one that converts to an integer by itself, as enumerators do.
template <class T>
concept Countable = std::integral<T> || requires(const T& n) {
  std::int64_t{n};
};
}  // namespace detail

/// The sizes of up to four dimensions: `n`, or `{nx, ny}`. Checked where it is used.
struct Extent {
  std::array<std::int64_t, 4> n{};
  int rank = 0;

  template <detail::Countable I>
  Extent(I size) : n{static_cast<std::int64_t>(size)}, rank(1) {}
  /// Errors: Error(invalid_argument) for no sizes, and for more than four.
  Extent(std::initializer_list<std::int64_t> sizes, Loc loc = Loc::here());
  std::int64_t operator[](int k) const { return n[static_cast<std::size_t>(k)]; }
};

namespace detail {

/// Sizes that a call gives, and the place of that call. It is the type of parameters, which is made from a number, from
/// numbers in braces, or from an Extent.
struct GivenSizes : Extent {
  Loc loc;

  GivenSizes(const Extent& extent, Loc loc = Loc::here()) : Extent(extent), loc(loc) {}
  template <Countable... I>
  GivenSizes(Loc loc, I... sizes) : Extent(0), loc(loc) {
    n = {static_cast<std::int64_t>(sizes)...};
    rank = sizeof...(I);
  }
};

template <int dimensions, int sizes>
constexpr void check_sizes() {
  static_assert(dimensions == 0 || dimensions == sizes,
                "weft: an array has as many sizes as dimensions: zeros<float, 2>(device, {height, width})");
}

/// The sizes of an array with N dimensions, or other numbers, one for each of them. With N = 0 there may be one to
/// four.
template <int N>
struct Sizes : GivenSizes {
  Sizes(const Extent& extent, Loc loc = Loc::here()) : GivenSizes(extent, loc) {}
  template <Countable A>
  Sizes(A a, Loc loc = Loc::here()) : GivenSizes(loc, a) {
    check_sizes<N, 1>();
  }
  template <Countable A, Countable B>
  Sizes(A a, B b, Loc loc = Loc::here()) : GivenSizes(loc, a, b) {
    check_sizes<N, 2>();
  }
  template <Countable A, Countable B, Countable C>
  Sizes(A a, B b, C c, Loc loc = Loc::here()) : GivenSizes(loc, a, b, c) {
    check_sizes<N, 3>();
  }
  template <Countable A, Countable B, Countable C, Countable D>
  Sizes(A a, B b, C c, D d, Loc loc = Loc::here()) : GivenSizes(loc, a, b, c, d) {
    check_sizes<N, 4>();
  }
};

/// The numbers of N dimensions in reverse order.
template <int N>
Sizes<N> reversed(Loc loc = Loc::here()) {
  Extent axes(0);
  axes.rank = N;
  for (int k = 0; k < N; ++k) axes.n[static_cast<std::size_t>(k)] = N - 1 - k;
  return {axes, loc};
}

/// Sizes<N> for a parameter from which N is not deduced, because the function is told N otherwise.
template <int N>
using SizesOf = const std::type_identity_t<Sizes<N>>&;

/// The threads of a launch.
using Threads = Sizes<0>;
/// The condition of an assertion, which compilers would explain at length if it were a concept.
template <class T>
inline constexpr bool are_threads = std::is_convertible_v<const T&, Threads>;

/// A value that a call gives, and the place of that call.
template <class T>
struct Placed {
  const T& value;
  Loc loc;
  Placed(const T& value, Loc loc = Loc::here()) : value(value), loc(loc) {}
};

/// An index that a call gives, and the place of that call.
struct GivenIndex {
  std::int64_t value;
  Loc loc;
  template <Countable I>
  GivenIndex(I value, Loc loc = Loc::here()) : value(static_cast<std::int64_t>(value)), loc(loc) {}
};

}  // namespace detail

}  // namespace weft
