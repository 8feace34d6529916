// Maps C++ scalars to IR types, and says which host literals convert to them.
#pragma once
#include <concepts>
#include <type_traits>

#include "../ir/type.h"
#include "half.h"

namespace weft {

/// The IR type of a C++ scalar; `none` for any other type. `long` and `long long` are both 64-bit integers if they have
/// that size.
template <class T>
constexpr ir::Type scalar_type() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    return ir::Type::b1;
  } else if constexpr (std::is_same_v<U, half>) {
    return ir::Type::f16;
  } else if constexpr (std::is_same_v<U, float>) {
    return ir::Type::f32;
  } else if constexpr (std::is_same_v<U, double>) {
    return ir::Type::f64;
  } else if constexpr (std::is_integral_v<U>) {
    constexpr ir::Type types[2][4] = {{ir::Type::u8, ir::Type::u16, ir::Type::u32, ir::Type::u64},
                                      {ir::Type::i8, ir::Type::i16, ir::Type::i32, ir::Type::i64}};
    return types[std::is_signed_v<U>][sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3];
  } else {
    return ir::Type::none;
  }
}

template <class T>
concept Scalar = scalar_type<T>()
!= ir::Type::none;
template <class T>
concept RealScalar = Scalar<T> && ir::is_float(scalar_type<T>());
template <class T>
concept IntegerScalar = Scalar<T> && ir::is_int(scalar_type<T>());
template <class T>
concept NumericScalar = RealScalar<T> || IntegerScalar<T>;

/// Whether a host value of type U may be written in place of a scalar T: a number for a real one, an integer for an
/// integer, a boolean for a boolean. No literal changes its kind silently.
template <class U, class T>
concept LiteralFor = Scalar<U> &&((RealScalar<T> && NumericScalar<U>) || (IntegerScalar<T> && IntegerScalar<U>) ||
                                  (std::is_same_v<T, bool> && std::is_same_v<U, bool>));

/// The number and type of the scalars in a value, in memory order. Specialised by each type that arrays may hold.
template <class T>
struct Flat;

template <class T>
struct Flat<const T> : Flat<T> {};

template <Scalar T>
requires(!std::is_const_v<T>) struct Flat<T> {
  using scalar = T;
  static constexpr int count = 1;
};

}  // namespace weft
