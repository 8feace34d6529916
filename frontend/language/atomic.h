// Atomic operations on elements of arrays and of shared arrays.
#pragma once
#include "flatten.h"

namespace weft {

namespace detail {

/// The type of an element's scalars; none for structs, which have several.
template <class T>
constexpr ir::Type flat_scalar() {
  if constexpr (requires { Flat<T>::count; }) {
    return scalar_type<typename Flat<T>::scalar>();
  } else {
    return ir::Type::none;
  }
}

template <class T>
Var<T> atomic(ir::Op op, const tracing::Address& element, const In<T>& value, const In<T>* expected = nullptr) {
  tracing::Id before[Flat<T>::count];
  tracing::atomic(op, element, scalar_type<typename Flat<T>::scalar>(), Flat<T>::count, ids_of<T>(value),
                  expected ? ids_of<T>(*expected) : nullptr, before, value.loc);
  return from_ids<T>(before);
}

template <class T>
In<T> negative(const In<T>& v) {
  tracing::Id ids[Flat<T>::count];
  for (int k = 0; k < Flat<T>::count; ++k) ids[k] = tracing::unary(ir::Op::neg, ids_of<T>(v)[k], v.loc);
  return In<T>(from_ids<T>(ids), v.loc);
}

template <class T>
using Operand = std::type_identity_t<In<T>>;

/// The address of an element. Errors: Error(invalid_kernel) for a variable, which only its own thread sees.
template <class T>
tracing::Address atomic_address(Var<T>& element, Loc loc) {
  if constexpr (Scalar<T>)
    return tracing::atomic_address(element.slot(), loc);
  else
    return tracing::atomic_address(element.part(0).slot(), loc);
}

}  // namespace detail

#define WEFT_ATOMIC(name, op, allowed, wrong, operand)                                                             \
  template <class T>                                                                                               \
  auto name(Var<T>& element, detail::Operand<T> value) {                                                           \
    constexpr bool fits = allowed(detail::flat_scalar<T>());                                                       \
    static_assert(fits, "weft::" #name ": the elements " wrong);                                                   \
    if constexpr (fits) return detail::atomic<T>(ir::Op::op, detail::atomic_address(element, value.loc), operand); \
  }                                                                                                                \
  WEFT_ATOMIC_REFUSED(name, detail::Operand<T>)

#define WEFT_ATOMIC_REFUSED(name, ...)                                                                     \
  template <class T>                                                                                       \
  Var<T> name(const Var<T>& element, __VA_ARGS__) {                                                        \
    static_assert(detail::is_writable<T>,                                                                  \
                  "weft::" #name ": the array is read only (Arr<const T>), or this is no element of one"); \
    return element;                                                                                        \
  }

/// The atomic operations: each changes an element in one indivisible step and returns the previous value. They order
/// nothing else, and the order of threads is open: sums of floats may differ in their last bits between runs. All
/// numeric types; vectors and matrices are changed component by component, which is not one step. Min and max of reals
/// prefer a number to a NaN. Integers wrap.
/// Errors: Error(unsupported) for types of 64 bits on a device without 64-bit atomic operations.
/// Cost: one instruction if the device has it (int32, uint32; with its features int64, uint64, and the addition of
/// float32 and float64); otherwise a loop of compare-exchanges, for 8 and 16 bits on the word around the element.
WEFT_ATOMIC(atomic_add, atomic_add, ir::is_numeric, "are not numbers", value)
WEFT_ATOMIC(atomic_sub, atomic_add, ir::is_numeric, "are not numbers", detail::negative<T>(value))
WEFT_ATOMIC(atomic_min, atomic_min, ir::is_numeric, "are not numbers", value)
WEFT_ATOMIC(atomic_max, atomic_max, ir::is_numeric, "are not numbers", value)
/// These combine the bits of integers.
WEFT_ATOMIC(atomic_and, atomic_and, ir::is_int, "are not integers", value)
WEFT_ATOMIC(atomic_or, atomic_or, ir::is_int, "are not integers", value)
WEFT_ATOMIC(atomic_xor, atomic_xor, ir::is_int, "are not integers", value)

#undef WEFT_ATOMIC

/// Replaces the element, which may also be a boolean.
template <class T>
auto atomic_exchange(Var<T>& element, detail::Operand<T> value) {
  constexpr bool fits = detail::flat_scalar<T>() != ir::Type::none;
  static_assert(fits, "weft::atomic_exchange: the elements are structs; name a field");
  if constexpr (fits)
    return detail::atomic<T>(ir::Op::atomic_exchange, detail::atomic_address(element, value.loc), value);
}
WEFT_ATOMIC_REFUSED(atomic_exchange, detail::Operand<T>)

/// Replaces the element by `desired` if its bits are those of `expected`; the returned previous value tells whether.
/// Booleans too. Bits are compared, so a NaN may be expected, and 0 is not -0.
template <class T>
auto atomic_cas(Var<T>& element, detail::Operand<T> expected, detail::Operand<T> desired) {
  constexpr bool fits = detail::flat_scalar<T>() != ir::Type::none;
  static_assert(fits, "weft::atomic_cas: the elements are structs; name a field");
  if constexpr (fits)
    return detail::atomic<T>(ir::Op::atomic_cas, detail::atomic_address(element, desired.loc), desired, &expected);
}
WEFT_ATOMIC_REFUSED(atomic_cas, detail::Operand<T>, detail::Operand<T>)
#undef WEFT_ATOMIC_REFUSED

}  // namespace weft
