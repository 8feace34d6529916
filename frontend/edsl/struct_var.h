// Traced structs and std::arrays: their variables, their elements in memory, and arrays as fields.
#pragma once
#include "flatten.h"

namespace weft {

namespace detail {

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

/// Values that are made of others: structs and std::arrays.
template <class T>
concept Record = is_std_array<T> || Struct<T>;

template <class T>
using ConstRef = Ref<const T>;

/// The face of a struct; nothing for one that was refused.
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

/// What holds the parts of a traced record.
template <class T>
struct PartsOf {
  using type = Var<T>;
};
template <Struct T>
struct PartsOf<T> {
  using type = FieldsOf<T, Var>;
};

/// Is there a value for each field?
template <class... A, class... F>
constexpr bool converts_to(Types<F...>) {
  if constexpr (sizeof...(A) == sizeof...(F))
    return (std::is_convertible_v<const A&, Var<F>> && ...);
  else
    return false;
}

template <class T>
void read_parts(const typename PartsOf<T>::type& parts, tracing::Id* out, Loc loc) {
  if constexpr (is_std_array<T>) {
    for (const auto& e : parts) {
      read_ids(e, out, loc);
      out += Layout<typename T::value_type>::count;
    }
  } else {
    with_fields<FieldTypes<T>::count>(
        parts, [&]<class... F>(const Var<F>&... f) { ((read_ids(f, out, loc), out += Layout<F>::count), ...); });
  }
}

}  // namespace detail

template <class T>
requires detail::Record<T>
class In<T> {
  // Asked where one is made, not of the class: what has to do with T, as a kernel's type, may be asked whether it can
  // be compared (libc++ asks that of a vector's elements), which is no use of it.
  static void needs_values() {
    static_assert(!detail::Layout<T>::holds_arrays,
                  "weft: a struct that holds arrays is not assigned, compared or chosen as a whole in a kernel: arrays "
                  "are no values there; use its other fields one by one");
  }

 public:
  In(const typename detail::PartsOf<T>::type& v, Loc loc = Loc::here()) : loc(loc) {
    needs_values();
    detail::read_parts<T>(v, id, loc);
  }
  In(const Ref<T>& r, Loc loc = Loc::here()) : loc(loc) {
    needs_values();
    r.read(id, loc);
  }
  In(const Ref<const T>& r, Loc loc = Loc::here()) : loc(loc) {
    needs_values();
    r.read(id, loc);
  }
  In(const T& v, Loc loc = Loc::here()) : loc(loc) {
    needs_values();
    detail::leaf_constants(&v, detail::Layout<T>::leaves, id, loc);
  }

  tracing::Id id[detail::Layout<T>::count > 0 ? detail::Layout<T>::count : 1];
  Loc loc;
};

namespace detail {

/// What Var and Ref of a record have in common.
template <class T>
struct RecordOps {
  using V = Var<T>;
  using I = In<T>;

  /// True where all fields are equal.
  friend ScalarOps<bool>::needs_If_While_or_select operator==(I a, I b) {
    return Var<bool>(tracing::all_equal(a.id, b.id, Layout<T>::count, b.loc), FromId{});
  }
  friend ScalarOps<bool>::needs_If_While_or_select operator!=(I a, I b) {
    return Var<bool>(tracing::logical_not(tracing::all_equal(a.id, b.id, Layout<T>::count, b.loc), b.loc), FromId{});
  }
  friend V select(In<bool> c, I a, I b) {
    tracing::Id r[Layout<T>::count];
    select_leaves(c.id, a.id, b.id, Layout<T>::count, r, c.loc);
    return V(r, FromId{});
  }
};

/// What Ref<T> and Ref<const T> have in common, beside the parts.
template <class T>
class RecordRef : public RecordOps<T> {
 public:
  explicit RecordRef(const tracing::Address& at) : at_(at) {}
  const tracing::Address& address() const { return at_; }
  void read(tracing::Id* out, Loc loc) const { load_leaves(at_, Layout<T>::leaves, out, loc); }

 protected:
  void write(const In<T>& v) const { store_leaves(at_, Layout<T>::leaves, v.id, v.loc); }

 private:
  tracing::Address at_;
};

}  // namespace detail

/// A traced struct: its fields, traced, under their own names (and its member functions, for a two-face template). A
/// copy is a snapshot.
template <detail::Struct T>
class Var<T> : public detail::FieldsOf<T, Var>, public detail::RecordOps<T> {
  using Fields = detail::FieldsOf<T, Var>;
  using Types = detail::FieldTypes<T>;
  using L = detail::Layout<T>;
  static_assert(detail::check_layout<T>());

 public:
  using host = T;

  /// Fields are zero, or what the struct's own initialisers say.
  Var() = default;
  Var(const Var&) = default;
  Var(const Fields& f) : Fields(f) {}
  Var(const T& v, Loc loc = Loc::here()) : Var(In<T>(v, loc).id, detail::FromId{}) {}
  /// Reads an element of an array, all fields of it.
  Var(const Ref<T>& r, Loc loc = Loc::here()) requires(!L::holds_arrays) : Var(In<T>(r, loc).id, detail::FromId{}) {}
  Var(const Ref<const T>& r, Loc loc = Loc::here()) requires(!L::holds_arrays)
      : Var(In<T>(r, loc).id, detail::FromId{}) {}
  Var(const Ref<T>& r, Loc loc = Loc::here()) requires L::holds_arrays : Var(r.address(), loc, Types()) {}
  Var(const Ref<const T>& r, Loc loc = Loc::here()) requires L::holds_arrays : Var(r.address(), loc, Types()) {}
  /// One value a field, in order.
  template <class... A>
  requires(sizeof...(A) > 1 && detail::converts_to<A...>(Types())) Var(const A&... values) : Var(Types(), values...) {}
  Var(const tracing::Id* ids, detail::FromId) : Var(ids, Types(), std::make_index_sequence<Types::count>()) {}

  Var& operator=(const Var&) = default;
  template <class A>
  requires(!std::is_same_v<A, Var> && std::is_convertible_v<const A&, In<T>>) Var& operator=(const A& a) {
    return *this = Var(In<T>(a, Loc{}).id, detail::FromId{});
  }

 private:
  template <class... F, std::size_t... K>
  Var(const tracing::Id* ids, detail::Types<F...>, std::index_sequence<K...>)
      : Fields{detail::from_ids<F>(ids + L::fields[K].first_leaf)...} {}
  template <class... F, class... A>
  Var(detail::Types<F...>, const A&... values) : Fields{Var<F>(values)...} {}
  template <class... F>
  Var(const tracing::Address& at, Loc loc, detail::Types<F...> types)
      : Var(at, loc, types, std::make_index_sequence<sizeof...(F)>()) {}
  template <class... F, std::size_t... K>
  Var(const tracing::Address& at, Loc loc, detail::Types<F...>, std::index_sequence<K...>)
      : Fields{Var<F>(Ref<F>(detail::field_at(at, L::fields[K].offset)), loc)...} {}
};

namespace detail {
/// The fields of a struct in memory, as references.
template <class T, template <class> class R>
class StructRef : public FieldsOf<T, R>, public RecordRef<T> {
  static_assert(check_layout<T>());

 public:
  explicit StructRef(const tracing::Address& at)
      : StructRef(at, FieldTypes<T>(), std::make_index_sequence<FieldTypes<T>::count>()) {}

 private:
  template <class... F, std::size_t... K>
  StructRef(const tracing::Address& at, Types<F...>, std::index_sequence<K...>)
      : FieldsOf<T, R>{R<F>(field_at(at, Layout<T>::fields[K].offset))...}, RecordRef<T>(at) {}
};
}  // namespace detail

/// A struct in an array: its fields are references too (`ps[i].pos += v`).
template <detail::Struct T>
class Ref<T> : public detail::StructRef<T, Ref> {
 public:
  using host = T;
  using detail::StructRef<T, Ref>::StructRef;
  Ref(const Ref&) = default;
  const Ref& operator=(const Ref& r) const&& { return *this = In<T>(r, Loc{}); }
  /// `auto e = x[i]; e = x[j];` is refused, and with it std::swap(x[i], x[j]): it would move names, not values.
  const Ref& operator=(const Ref& r) const& = delete;
  const Ref& operator=(In<T> v) const {
    this->write(v);
    return *this;
  }
};
template <detail::Struct T>
class Ref<const T> : public detail::StructRef<T, detail::ConstRef> {
 public:
  using host = T;
  using detail::StructRef<T, detail::ConstRef>::StructRef;
  Ref(const Ref&) = default;
  Ref& operator=(const Ref&) = delete;
};

/// A traced std::array: a fixed number of variables. A host index names one of them; a traced index reads by selection,
/// at the cost of one select an element and scalar.
template <class T, std::size_t N>
class Var<std::array<T, N>> : public detail::RecordOps<std::array<T, N>> {
 public:
  using host = std::array<T, N>;

  /// Zero.
  Var() = default;
  Var(const Var&) = default;
  Var(const host& v, Loc loc = Loc::here()) : Var(In<host>(v, loc).id, detail::FromId{}) {}
  Var(const Ref<host>& r, Loc loc = Loc::here()) : Var(In<host>(r, loc).id, detail::FromId{}) {}
  Var(const Ref<const host>& r, Loc loc = Loc::here()) : Var(In<host>(r, loc).id, detail::FromId{}) {}
  Var(const tracing::Id* ids, detail::FromId) : Var(ids, std::make_index_sequence<N>()) {}

  Var& operator=(const Var&) = default;
  template <class A>
  requires(!std::is_same_v<A, Var> && std::is_convertible_v<const A&, In<host>>) Var& operator=(const A& a) {
    return *this = Var(In<host>(a, Loc{}).id, detail::FromId{});
  }

  Var<T>& operator[](int i) {
    detail::check_array_index(i, N, {});
    return elements_[i];
  }
  const Var<T>& operator[](int i) const {
    detail::check_array_index(i, N, {});
    return elements_[i];
  }
  /// The value; const, since an assignment to it would be lost.
  const Var<T> operator[](detail::Index i) const {
    tracing::Id ids[N * std::size_t(kCount)], out[kCount];
    detail::read_parts<host>(*this, ids, i.loc);
    detail::pick_leaves(i, ids, int(N), kCount, out);
    return detail::from_ids<T>(out);
  }
  static constexpr std::size_t size() { return N; }
  Var<T>* begin() { return elements_; }
  Var<T>* end() { return elements_ + N; }
  const Var<T>* begin() const { return elements_; }
  const Var<T>* end() const { return elements_ + N; }

 private:
  static constexpr int kCount = detail::Layout<T>::count;
  template <std::size_t... K>
  Var(const tracing::Id* ids, std::index_sequence<K...>) : elements_{detail::from_ids<T>(ids + K * kCount)...} {}
  Var<T> elements_[N];
};

namespace detail {
template <class T, std::size_t N, class E>
class ArrayRef : public RecordRef<std::array<T, N>> {
 public:
  using RecordRef<std::array<T, N>>::RecordRef;
  E operator[](int i) const {
    check_array_index(i, N, {});
    return E(field_at(this->address(), std::uint32_t(i) * Layout<T>::size));
  }
  /// Checked in debug mode only, as indices of arrays are.
  E operator[](Index i) const { return E(element_at(this->address(), i, Layout<T>::size, N)); }
  static constexpr std::size_t size() { return N; }
};
}  // namespace detail

/// A std::array in an array: its elements are references, by host or traced index.
template <class T, std::size_t N>
class Ref<std::array<T, N>> : public detail::ArrayRef<T, N, Ref<T>> {
 public:
  using host = std::array<T, N>;
  using detail::ArrayRef<T, N, Ref<T>>::ArrayRef;
  Ref(const Ref&) = default;
  const Ref& operator=(const Ref& r) const&& { return *this = In<host>(r, Loc{}); }
  const Ref& operator=(const Ref& r) const& = delete;
  const Ref& operator=(In<host> v) const {
    this->write(v);
    return *this;
  }
};
template <class T, std::size_t N>
class Ref<const std::array<T, N>> : public detail::ArrayRef<T, N, Ref<const T>> {
 public:
  using host = std::array<T, N>;
  using detail::ArrayRef<T, N, Ref<const T>>::ArrayRef;
  Ref(const Ref&) = default;
  Ref& operator=(const Ref&) = delete;
};

/// An array that an element of an array of structs holds: its elements are read and written like those of an Arr, to
/// which it converts. `Arr<vec3> p = meshes[i].points;` reads address and shape once; each use of the field reads them
/// anew. Kernels do not replace arrays that lie in memory.
template <class T, int N>
class Ref<Array<T, N>> {
 public:
  using host = Array<T, N>;
  explicit Ref(const tracing::Address& at) : at_(at) {}
  Ref(const Ref&) = default;
  Ref& operator=(const Ref&) = delete;
  template <class A>
  void operator=(const A&) const {
    static_assert(detail::is_declared<A>, "weft: a kernel cannot replace an array that lies in memory");
  }

  template <class... I>
  auto operator()(const I&... i) const {
    return load(Loc{})(i...);
  }
  auto operator[](detail::Index i) const { return load(i.loc)[i]; }
  Var<int> shape(int k, Loc loc = Loc::here()) const { return load(loc).shape(k, loc); }

 private:
  friend class Var<Array<T, N>>;
  Var<Array<T, N>> load(Loc loc) const {
    using L = detail::Layout<T>;
    return Var<Array<T, N>>(detail::load_array_handle(at_, N, L::size, loc));
  }
  tracing::Address at_;
};
template <class T, int N>
class Ref<const Array<T, N>> : public Ref<Array<T, N>> {
 public:
  using Ref<Array<T, N>>::Ref;
  using Ref<Array<T, N>>::operator=;
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
