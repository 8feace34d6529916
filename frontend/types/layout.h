// The memory layout of the scalars of a host type, the same on the host and on devices.
#pragma once
#include "scalar.h"
#include "struct.h"

namespace weft {

namespace detail {

/// A scalar inside a value.
struct Leaf {
  ir::Type type = ir::Type::none;
  bool first = true;         ///< begins a scalar, vector, ..., whose scalars are usually read together
  std::uint32_t offset = 0;  ///< bytes from the start of the value
};

template <class T>
inline constexpr bool is_declared = false;

/// Whether fields may have the type.
template <class T>
inline constexpr bool is_field = requires {
  Flat<T>::count;
};
template <class T>
inline constexpr bool is_field<const T> = false;
template <class T, std::size_t N>
inline constexpr bool is_field<std::array<T, N>> = is_field<T>;
template <class T, int N>
inline constexpr bool is_field<Array<T, N>> = true;
template <Struct T>
inline constexpr bool is_field<T> = true;

/// The types of a struct's fields; empty if one of them is not valid, so that one message is enough.
template <class... F>
constexpr auto fields_if_known(Types<F...> all) {
  if constexpr ((is_field<F> && ...))
    return all;
  else
    return Types<>{};
}
template <class T>
using FieldTypes = decltype(fields_if_known(probed_types<T>()));

/// The memory layout of host type T: size and align in bytes, and `count` scalars in `leaves`, by ascending offset.
/// `holds_arrays`: T has fields of type Array; those are no leaves, and are stored as ArrayHandle in device memory, so
/// that `size` is not the host's sizeof.
template <class T>
struct Layout {
  static_assert(is_declared<T>,
                "weft: kernels do not know this type; declare a struct with WEFT_STRUCT(S, fields...) or as a two-face "
                "template");
  static constexpr std::uint32_t size = 1, align = 1;
  static constexpr int count = 0;
  static constexpr bool holds_arrays = false;
  static constexpr std::array<Leaf, 0> leaves{};
};
template <class T>
struct Layout<const T> : Layout<T> {};

/// Scalars, vectors and matrices have one scalar type throughout.
template <class T>
requires(!std::is_const_v<T> && Flat<T>::count > 0) struct Layout<T> {
  using scalar = typename Flat<T>::scalar;
  static constexpr std::uint32_t size = sizeof(T), align = alignof(T);
  static constexpr int count = Flat<T>::count;
  static constexpr bool holds_arrays = false;
  static_assert(size == sizeof(scalar) * count && std::is_trivially_copyable_v<T>);
  static constexpr std::array<Leaf, count> leaves = [] {
    std::array<Leaf, count> l{};
    for (int i = 0; i < count; ++i)
      l[std::size_t(i)] = {scalar_type<scalar>(), i == 0, std::uint32_t(i * sizeof(scalar))};
    return l;
  }();
};

template <class T, std::size_t N>
struct Layout<std::array<T, N>> {
  static_assert(N >= 1, "weft: an std::array in a struct has at least one element");
  static_assert(!Layout<T>::holds_arrays, "weft: an std::array of arrays is no field of a struct");
  static constexpr std::uint32_t size = Layout<T>::size * N, align = Layout<T>::align;
  static constexpr int count = Layout<T>::count * int(N);
  static constexpr bool holds_arrays = false;
  static constexpr std::array<Leaf, std::size_t(count)> leaves = [] {
    std::array<Leaf, std::size_t(count)> l{};
    for (std::size_t i = 0, k = 0; i < N; ++i)
      for (const Leaf& leaf : Layout<T>::leaves)
        l[k++] = {leaf.type, leaf.first && (i == 0 || !Scalar<T>), leaf.offset + std::uint32_t(i * Layout<T>::size)};
    return l;
  }();
};
/// C arrays occur inside foreign structs.
template <class T, std::size_t N>
struct Layout<T[N]> : Layout<std::array<T, N>> {};

/// An array as a field of an element in device memory: contiguous. A null array has address 0 and no elements.
template <int N>
struct ArrayHandle {
  std::uint64_t address;
  std::int32_t shape[N];
};
template <class T, int N>
struct Layout<Array<T, N>> {
  static constexpr std::uint32_t size = sizeof(ArrayHandle<N>), align = alignof(ArrayHandle<N>);
  static constexpr int count = 0;
  static constexpr bool holds_arrays = true;
  static constexpr std::array<Leaf, 0> leaves{};
};

/// A field of a struct: its offset, and the number of leaves before it.
struct FieldPlace {
  std::uint32_t offset;
  int first_leaf;
};

template <class T, class Fields>
struct StructLayout;
template <class T, class... F>
struct StructLayout<T, Types<F...>> {
  static constexpr int num_fields = sizeof...(F);
  static constexpr int count = (Layout<F>::count + ... + 0);
  static constexpr bool holds_arrays = (Layout<F>::holds_arrays || ...);

 private:
  struct Table {
    std::array<FieldPlace, sizeof...(F)> fields{};
    std::array<Leaf, std::size_t(count)> leaves{};
    std::uint32_t size = 0, align = 1;
  };
  template <class A>
  static constexpr void add(Table& t, std::size_t& k, std::size_t& leaf) {
    constexpr std::uint32_t align = Layout<A>::align;
    t.size = (t.size + align - 1) / align * align;
    if (align > t.align) t.align = align;
    t.fields[k++] = {t.size, int(leaf)};
    for (const Leaf& l : Layout<A>::leaves) t.leaves[leaf++] = {l.type, l.first, t.size + l.offset};
    t.size += Layout<A>::size;
  }
  static constexpr Table table = [] {
    Table t;
    std::size_t k = 0, leaf = 0;
    (add<F>(t, k, leaf), ...);
    t.size = (t.size + t.align - 1) / t.align * t.align;
    return t;
  }();

 public:
  static constexpr std::uint32_t size = table.size, align = table.align;
  static constexpr const std::array<FieldPlace, sizeof...(F)>& fields = table.fields;
  static constexpr const std::array<Leaf, std::size_t(count)>& leaves = table.leaves;
};

/// Whether WEFT_STRUCT's list agrees with the struct: each field is where C++ puts it, and none is left out.
template <class T>
constexpr bool is_listed_fully() {
  if constexpr (Faces<T>::by_macro) {
    constexpr auto listed = weft_fields(static_cast<const T*>(nullptr));
    for (std::size_t k = 0; k < listed.size(); ++k)
      if (listed[k].offset != Layout<T>::fields[k].offset) return false;
    constexpr std::size_t n = [&] {
      std::size_t sum = 1;
      for (const NamedField& f : listed) sum += f.initialisers;
      return sum;
    }();
    // The number of initialisers that the aggregate takes reveals a field left out in padding.
    if constexpr (std::is_aggregate_v<T>) return !takes<T>(std::make_index_sequence<n>());
  }
  return true;
}

template <Struct T>
requires(!std::is_const_v<T>) struct Layout<T> : StructLayout<T, FieldTypes<T>> {
  static_assert(FieldTypes<T>::count > 0 || decltype(probed_types<T>())::count == 0,
                "weft: a field of this struct is of a type that kernels do not know");
  static_assert(decltype(probed_types<T>())::count > 0,
                "weft: each of the 1 to 32 fields of a two-face struct is declared as F<type>, an array as "
                "F<std::array<T, N>>, in the struct itself and not in a base");
};

/// Asserts, for a struct used by value or in an array, that the layout computed from its fields is the compiler's.
template <class T>
constexpr bool check_layout() {
  if constexpr (Struct<T>) {
    if constexpr (!Layout<T>::holds_arrays && FieldTypes<T>::count > 0) {
      static_assert(Layout<T>::size == sizeof(T) && Layout<T>::align == alignof(T) && is_listed_fully<T>(),
                    "weft: the fields of this struct do not add up to its size: is one left out, out of order, or "
                    "aligned by hand?");
      static_assert(std::is_trivially_copyable_v<T>, "weft: a struct for kernels is trivially copyable");
    }
  }
  return true;
}

}  // namespace detail
}  // namespace weft
