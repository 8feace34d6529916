// Traced structs and std::arrays.
#pragma once
#include "flatten.h"

namespace weft {

namespace detail {

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

/// A type of values that are made of others: structs and std::arrays.
template <class T>
concept Record = is_std_array<T> || Struct<T>;

/// The face of a struct that was refused: it has no fields.
struct NoFields {};
template <class T, template <class> class F, bool = (FieldTypes<T>::count > 0)>
struct FaceIfKnown {
  using type = NoFields;
};
template <class T, template <class> class F>
struct FaceIfKnown<T, F, true> {
  using type = StructFace<T, F>;
};
template <class T, template <class> class F>
using FieldsOf = typename FaceIfKnown<T, F>::type;

/// The holder of the parts of a traced record.
template <class T>
struct PartsOf {
  using type = Var<T>;
};
template <Struct T>
struct PartsOf<T> {
  using type = FieldsOf<T, Var>;
};

/// Whether there is a value for each field.
template <class... A, class... F>
constexpr bool converts_to(Types<F...>) {
  if constexpr (sizeof...(A) == sizeof...(F))
    return (std::is_convertible_v<const A&, Var<F>> && ...);
  else
    return false;
}

/// The scalars of a value, as variables, in the order of its leaves.
template <class T>
void slots_of(const typename PartsOf<T>::type& v, tracing::Slot**& out) {
  if constexpr (Scalar<T>) {
    *out++ = &const_cast<Var<T>&>(v).slot();
  } else if constexpr (Pack<T>) {
    for (int i = 0; i < Flat<T>::count; ++i) *out++ = &const_cast<Var<T>&>(v).part(i).slot();
  } else if constexpr (is_std_array<T>) {
    for (const auto& e : v) slots_of<typename T::value_type>(e, out);
  } else if constexpr (Struct<T> && FieldTypes<T>::count > 0) {
    with_fields<FieldTypes<T>::count>(v, [&]<class... F>(const Var<F>&... f) { (slots_of<F>(f, out), ...); });
  }
}
template <class T>
struct Slots {
  tracing::Slot* slot[Layout<T>::count > 0 ? Layout<T>::count : 1];
  explicit Slots(const typename PartsOf<T>::type& v) {
    tracing::Slot** out = slot;
    slots_of<T>(v, out);
  }
};

}  // namespace detail

template <class T>
requires detail::Record<T>
class In<T> {
  // The assertion is made where an object is made, not for the class: code that merely has to do with T, as a kernel's
  // type, may be asked whether T can be compared (libc++ asks that of a vector's elements), which is no use of it.
  static void needs_values() {
    static_assert(!detail::Layout<T>::holds_arrays,
                  "weft: a struct that holds arrays is not assigned, compared or chosen as a whole in a kernel: arrays "
                  "are no values there; use its other fields one by one");
  }

 public:
  In(const typename detail::PartsOf<T>::type& v, Loc loc = Loc::here()) : loc(loc) {
    needs_values();
    if constexpr (!detail::Layout<T>::holds_arrays)
      detail::read_slots(detail::Slots<T>(v).slot, detail::Layout<T>::leaves, id, loc);
  }
  In(const T& v, Loc loc = Loc::here()) : loc(loc) {
    needs_values();
    detail::leaf_constants(&v, detail::Layout<T>::leaves, id, loc);
  }

  tracing::Id id[detail::Layout<T>::count > 0 ? detail::Layout<T>::count : 1];
  Loc loc;
};

/// A traced struct: its fields, traced, under their own names (and its member functions, for a two-face template). A
/// copy is a snapshot.
template <detail::Struct T>
class Var<T> : public detail::FieldsOf<T, Var>, public detail::ValueOps<T> {
  using Fields = detail::FieldsOf<T, Var>;
  using Types = detail::FieldTypes<T>;
  using L = detail::Layout<T>;
  static_assert(detail::check_layout<T>());

 public:
  using host = T;

  /// The fields are zero, or have the values of the struct's own initialisers.
  Var() = default;
  Var(const Var& v) requires(!L::holds_arrays) : Var(In<T>(v, Loc{}).id, detail::FromId{}) {}
  Var(const Var& v) requires L::holds_arrays : Fields(v) {}
  /// Another name for an element; its fields name parts of it.
  explicit Var(const tracing::Named& named) : Var(named, Types(), std::make_index_sequence<Types::count>()) {}
  Var(const Fields& f) : Fields(f) {}
  Var(const T& v, Loc loc = Loc::here()) : Var(In<T>(v, loc).id, detail::FromId{}) {}
  /// Takes one value a field, in order.
  template <class... A>
  requires(sizeof...(A) > 1 && detail::converts_to<A...>(Types())) Var(const A&... values) : Var(Types(), values...) {}
  Var(const tracing::Id* ids, detail::FromId) : Var(ids, Types(), std::make_index_sequence<Types::count>()) {}

  Var& operator=(const Var& v) & { return assign(In<T>(v, Loc{})); }
  template <class A>
  requires(!std::is_same_v<A, Var>) Var& operator=(const A& a) & {
    WEFT_REFUSE_ASSIGNMENT(T, A);
    if constexpr (std::is_convertible_v<const A&, In<T>>) assign(In<T>(a, Loc{}));
    return *this;
  }
  template <class A>
  const Var& operator=(const A&) const& {
    WEFT_REFUSE_WRITE(A);
    return *this;
  }

 private:
  template <class... F, std::size_t... K>
  Var(const tracing::Id* ids, detail::Types<F...>, std::index_sequence<K...>)
      : Fields{detail::from_ids<F>(ids + L::fields[K].first_leaf)...} {}
  template <class... F, class... A>
  Var(detail::Types<F...>, const A&... values) : Fields{Var<F>(values)...} {}
  template <class... F, std::size_t... K>
  Var(const tracing::Named& named, detail::Types<F...>, std::index_sequence<K...>)
      : Fields{Var<F>(named.part(L::fields[K].offset, std::size_t(L::fields[K].first_leaf)))...} {}
  Var& assign(const In<T>& v) {
    if constexpr (!L::holds_arrays) detail::assign_slots(detail::Slots<T>(*this).slot, L::leaves, v.id, v.loc);
    return *this;
  }
};

/// A traced std::array: a fixed number of variables. A traced index out of range names the nearest variable (in debug
/// mode such an access to memory is reported); in a variable, a traced index costs one select for each element and
/// scalar.
template <class T, std::size_t N>
class Var<std::array<T, N>> : public detail::ValueOps<std::array<T, N>> {
  using L = detail::Layout<T>;

 public:
  using host = std::array<T, N>;

  /// The array of zeros.
  Var() : elements_{} {}
  Var(const Var& v) : Var(In<host>(v, Loc{}).id, detail::FromId{}) {}
  /// Another name for an element; its parts are named when they are asked for.
  explicit Var(const tracing::Named& named) : named_(named), none_() {}
  Var(const host& v, Loc loc = Loc::here()) : Var(In<host>(v, loc).id, detail::FromId{}) {}
  Var(const tracing::Id* ids, detail::FromId) : Var(ids, std::make_index_sequence<N>()) {}

  Var& operator=(const Var& v) & { return assign(In<host>(v, Loc{})); }
  template <class A>
  requires(!std::is_same_v<A, Var> && std::is_convertible_v<const A&, In<host>>) Var& operator=(const A& a) & {
    return assign(In<host>(a, Loc{}));
  }
  template <class A>
  requires std::is_convertible_v<const A&, In<host>>
  const Var& operator=(const A&) const& {
    WEFT_REFUSE_WRITE(A);
    return *this;
  }

  Var<T>& operator[](detail::HostIndex i) & { return element(*this, i.in(int(N))); }
  const Var<T>& operator[](detail::HostIndex i) const& { return element(*this, i.in(int(N))); }
  Var<T> operator[](detail::HostIndex i) && { return element(*this, i.in(int(N))); }
  Var<T>& operator[](const detail::TracedIndex& i) & { return chosen(*this, i); }
  const Var<T>& operator[](const detail::TracedIndex& i) const& { return chosen(*this, i); }
  Var<T> operator[](const detail::TracedIndex& i) && { return chosen(*this, i); }

  static constexpr std::size_t size() { return N; }
  Var<T>* begin() { return elements(); }
  Var<T>* end() { return elements() + N; }
  const Var<T>* begin() const { return const_cast<Var*>(this)->elements(); }
  const Var<T>* end() const { return begin() + N; }

 private:
  template <std::size_t... K>
  Var(const tracing::Id* ids, std::index_sequence<K...>) : elements_{detail::from_ids<T>(ids + K * L::count)...} {}
  Var& assign(const In<host>& v) {
    detail::assign_slots(detail::Slots<host>(*this).slot, detail::Layout<host>::leaves, v.id, v.loc);
    return *this;
  }
  tracing::Named name_of(std::size_t i) const { return named_.part(i * L::size, i * L::count); }
  /// Element i of `a`, which is const only if the caller makes it so.
  static Var<T>& element(const Var& a, int i) {
    if (a.named_.target) return detail::variable_of<T>(a.name_of(std::size_t(i)));
    return const_cast<Var&>(a).elements_[i];
  }
  static Var<T>& chosen(const Var& a, const detail::TracedIndex& i) {
    if (a.named_.in_memory())
      return detail::element_at<T>(detail::array_element_at(a.named_.address(), i.id, L::size, N, i.loc));
    const detail::Slots<host> slots(a);
    return detail::variable_of<T>(
        tracing::name_of({.slots = slots.slot, .count = L::count, .column = i.id, .columns = int(N)}));
  }
  Var<T>* elements() {
    if (!named_.target) return elements_;
    if (!made_) {
      made_ = static_cast<Var<T>*>(tracing::allocate(sizeof elements_, alignof(Var<T>)));
      for (std::size_t i = 0; i < N; ++i) std::construct_at(made_ + i, name_of(i));
    }
    return made_;
  }

  tracing::Named named_;
  Var<T>* made_ = nullptr;  ///< of an element: its elements that were asked for, one after the other
  union {
    Var<T> elements_[N];
    char none_;  ///< of an element
  };
};

namespace detail {
template <Struct T>
struct TypeName<T> {
  static std::string get() { return struct_name(pretty_type<T>()); }
};
template <class T, std::size_t N>
struct TypeName<std::array<T, N>> {
  static std::string get() { return "array<" + TypeName<T>::get() + ", " + std::to_string(N) + ">"; }
};
}  // namespace detail

}  // namespace weft
