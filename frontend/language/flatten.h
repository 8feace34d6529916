// Converts values of any type to rows of scalars, as which structs and std::array pass memory, parameters and
// operators.
#pragma once
#include <algorithm>
#include <span>

#include "../types/layout.h"
#include "arr.h"

namespace weft::detail {

/// These read and write the scalars of one element; equal ones side by side take accesses as wide as four.
void load_leaves(const tracing::Address& from, std::span<const Leaf> leaves, tracing::Id* out, Loc loc);
void store_leaves(const tracing::Address& to, std::span<const Leaf> leaves, const tracing::Id* values, Loc loc);
/// These read and write a value that is made of variables, in one access if the variables are parts of an element.
void read_slots(const tracing::Slot* const* slots, std::span<const Leaf> leaves, tracing::Id* out, Loc loc);
void assign_slots(tracing::Slot* const* slots, std::span<const Leaf> leaves, const tracing::Id* values, Loc loc);
/// The scalars of a host value.
void leaf_constants(const void* value, std::span<const Leaf> leaves, tracing::Id* out, Loc loc);
/// The address of element `index` of the `n` of a std::array. An index out of range takes the nearest element, except
/// in debug mode.
tracing::Address array_element_at(const tracing::Address& at, tracing::Id index, std::uint32_t element_bytes,
                                  std::size_t n, Loc loc);

/// The last part of a type as the compiler prints it (pretty_type): "Particle".
std::string struct_name(const char* pretty);
/// The last name in a compiler's description of field k (pretty_field_of): "mass"; "field 3" if there is none.
std::string field_name(const char* pretty, int k);
template <class T, int K>
std::string struct_field_name() {
  if constexpr (Faces<T>::by_macro)
    return weft_fields(static_cast<const T*>(nullptr))[std::size_t(K)].name;
  else
    return field_name(pretty_field_of<T, K>(), K);
}

/// The scalars of a traced value, Layout<T>::count of them, and back. Code that passes values on (calls of functions,
/// shared memory, atomic operations) needs to know no more of a type.
template <class T>
const tracing::Id* ids_of(const In<T>& v) {
  if constexpr (Scalar<T>)
    return &v.id;
  else
    return v.id;
}
template <class T>
void read_ids(const Var<T>& v, tracing::Id* out, Loc loc) {
  const In<T> in(v, loc);
  std::copy_n(ids_of<T>(in), Layout<T>::count, out);
}
template <class T>
Var<T> from_ids(const tracing::Id* ids) {
  if constexpr (Scalar<T>)
    return Var<T>(*ids, FromId{});
  else
    return Var<T>(ids, FromId{});
}

}  // namespace weft::detail
