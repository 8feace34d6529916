// User structs: two-face templates, WEFT_STRUCT, and the list of a struct's fields.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace weft {

/// The host face of a field: `template <template <class> class F = Host> struct Particle { F<vec3> pos, vel; };` is a
/// struct of host types as `Particle<>`, and one of traced types as `Var<Particle<>>` in kernels.
///
/// Every field is declared as F<type>: scalars, vectors, matrices, std::array<T, N>, other structs, Array<T, N>; 1 to
/// 32 fields. Member functions are written once for all faces; those that compute return `auto`.
template <class T>
using Host = T;

/// An array on a device (runtime/array.h), only declared here.
template <class T, int N>
class Array;

namespace detail {

struct ProbeTag {};
/// Replaces a field while fields are counted: one byte, whatever its type.
template <class T>
struct Probe {
  using type = T;
  constexpr Probe(ProbeTag) {}
  char byte = 0;
};

template <template <class> class F>
struct FaceTag {};

/// The declaration of a struct. `face<F>`: the struct with every field of type T replaced by F<T>.
template <class T>
struct Faces {};
template <template <template <class> class> class S>
struct Faces<S<Host>> {
  static constexpr bool by_macro = false;
  template <template <class> class F>
  using face = S<F>;
};
template <class T>
inline constexpr bool is_array_handle = false;
template <class T, int N>
inline constexpr bool is_array_handle<Array<T, N>> = true;
// Arrays are excluded first: the look-up of weft_face would complete them, and they in turn name structs.
template <class T>
requires(std::is_class_v<T> && !std::is_const_v<T> && !is_array_handle<T>) && requires(const T* s, FaceTag<Probe> tag) {
  weft_face(s, tag);
}
struct Faces<T> {
  static constexpr bool by_macro = true;
  template <template <class> class F>
  using face = decltype(weft_face(static_cast<const T*>(nullptr), FaceTag<F>{}));
};

/// A struct that was declared to weft in one of the two ways.
template <class T>
concept Struct = std::is_class_v<T> && requires {
  Faces<T>::by_macro;
};

template <class T, template <class> class F>
using StructFace = typename Faces<T>::template face<F>;

/// A field's properties besides its type, known from WEFT_STRUCT.
struct NamedField {
  const char* name;
  std::size_t offset;
  std::size_t initialisers;  ///< taken by the aggregate for it: one, or one for each element of a C array
};
template <class T>
inline constexpr std::size_t kInitialisers = 1;
template <class T, std::size_t N>
inline constexpr std::size_t kInitialisers<T[N]> = N* kInitialisers<T>;

/// The type of a field that a foreign struct declares: C arrays become std::array.
template <class T>
struct FieldOf {
  using type = T;
};
template <class T, std::size_t N>
struct FieldOf<T[N]> {
  using type = std::array<typename FieldOf<T>::type, N>;
};

template <class... T>
struct Types {
  static constexpr int count = sizeof...(T);
};
inline constexpr int kMostFields = 32;

#define WEFT_F1 f0
#define WEFT_F2 WEFT_F1, f1
#define WEFT_F3 WEFT_F2, f2
#define WEFT_F4 WEFT_F3, f3
#define WEFT_F5 WEFT_F4, f4
#define WEFT_F6 WEFT_F5, f5
#define WEFT_F7 WEFT_F6, f6
#define WEFT_F8 WEFT_F7, f7
#define WEFT_F9 WEFT_F8, f8
#define WEFT_F10 WEFT_F9, f9
#define WEFT_F11 WEFT_F10, f10
#define WEFT_F12 WEFT_F11, f11
#define WEFT_F13 WEFT_F12, f12
#define WEFT_F14 WEFT_F13, f13
#define WEFT_F15 WEFT_F14, f14
#define WEFT_F16 WEFT_F15, f15
#define WEFT_F17 WEFT_F16, f16
#define WEFT_F18 WEFT_F17, f17
#define WEFT_F19 WEFT_F18, f18
#define WEFT_F20 WEFT_F19, f19
#define WEFT_F21 WEFT_F20, f20
#define WEFT_F22 WEFT_F21, f21
#define WEFT_F23 WEFT_F22, f22
#define WEFT_F24 WEFT_F23, f23
#define WEFT_F25 WEFT_F24, f24
#define WEFT_F26 WEFT_F25, f25
#define WEFT_F27 WEFT_F26, f26
#define WEFT_F28 WEFT_F27, f27
#define WEFT_F29 WEFT_F28, f28
#define WEFT_F30 WEFT_F29, f29
#define WEFT_F31 WEFT_F30, f30
#define WEFT_F32 WEFT_F31, f31
#define WEFT_BIND(n)           \
  else if constexpr (N == n) { \
    auto& [WEFT_F##n] = s;     \
    return f(WEFT_F##n);       \
  }

/// Calls f(fields...) for a struct with N fields.
template <int N, class S, class F>
constexpr decltype(auto) with_fields(S& s, F&& f) {
  static_assert(N >= 1 && N <= kMostFields);
  if constexpr (N == 0) {
  }
  // clang-format off
  WEFT_BIND(1) WEFT_BIND(2) WEFT_BIND(3) WEFT_BIND(4) WEFT_BIND(5) WEFT_BIND(6) WEFT_BIND(7) WEFT_BIND(8)
  WEFT_BIND(9) WEFT_BIND(10) WEFT_BIND(11) WEFT_BIND(12) WEFT_BIND(13) WEFT_BIND(14) WEFT_BIND(15) WEFT_BIND(16)
  WEFT_BIND(17) WEFT_BIND(18) WEFT_BIND(19) WEFT_BIND(20) WEFT_BIND(21) WEFT_BIND(22) WEFT_BIND(23) WEFT_BIND(24)
  WEFT_BIND(25) WEFT_BIND(26) WEFT_BIND(27) WEFT_BIND(28) WEFT_BIND(29) WEFT_BIND(30) WEFT_BIND(31) WEFT_BIND(32)
  // clang-format on
}
#undef WEFT_BIND

template <class P, std::size_t... K>
constexpr bool probes_only(std::index_sequence<K...>) {
  return requires { P{{(void(K), ProbeTag{})}...}; };
}
template <class P, std::size_t... K>
constexpr P make_probes(std::index_sequence<K...>) {
  return P{{(void(K), ProbeTag{})}...};
}

/// The types of the fields, found on the face of probes: each is a byte, so that the size is the number of fields if
/// every field is a probe. Structs with other fields, C arrays or base classes fail the second test.
template <class T>
constexpr auto probed_types() {
  using P = StructFace<T, Probe>;
  constexpr int n = int(sizeof(P));
  if constexpr (n > 8 * kMostFields || !probes_only<P>(std::make_index_sequence<n>())) {
    return Types<>{};
  } else if constexpr (n > kMostFields) {
    return Types<>{};
  } else {
    P probes = make_probes<P>(std::make_index_sequence<n>());
    return with_fields<n>(probes, []<class... F>(Probe<F>&...) { return Types<F...>{}; });
  }
}
/// Converts to anything, to count the fields of an aggregate.
struct Anything {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... K>
constexpr bool takes(std::index_sequence<K...>) {
  return requires { T{(void(K), Anything{})...}; };
}

// ---- Names, for messages

template <class T>
constexpr const char* pretty_type() {
#ifdef _MSC_VER
  return __FUNCSIG__;
#else
  return __PRETTY_FUNCTION__;
#endif
}
#if (defined(__GNUC__) && !defined(__clang__)) || (defined(__clang__) && __clang_major__ >= 18)
#define WEFT_NAMES_FIELDS 1
template <class P>
inline constexpr P probes = make_probes<P>(std::make_index_sequence<sizeof(P)>());
template <int K, class A, class... R>
constexpr auto pick(A& a, R&... rest) {
  if constexpr (K == 0)
    return &a;
  else
    return pick<K - 1>(rest...);
}
template <auto* Field>
constexpr const char* pretty_field() {
  return __PRETTY_FUNCTION__;
}
#endif
/// The compiler's description of field K of a two-face struct, which ends in its name; empty if it has none.
template <class T, int K>
constexpr const char* pretty_field_of() {
#ifdef WEFT_NAMES_FIELDS
  using P = StructFace<T, Probe>;
  return pretty_field<with_fields<int(sizeof(P))>(probes<P>, [](auto&... f) { return pick<K>(f...); })>();
#else
  return "";
#endif
}

}  // namespace detail
}  // namespace weft

#define WEFT_PARENS ()
#define WEFT_EXPAND(...) WEFT_EXPAND3(WEFT_EXPAND3(WEFT_EXPAND3(__VA_ARGS__)))
#define WEFT_EXPAND3(...) WEFT_EXPAND2(WEFT_EXPAND2(WEFT_EXPAND2(__VA_ARGS__)))
#define WEFT_EXPAND2(...) WEFT_EXPAND1(WEFT_EXPAND1(WEFT_EXPAND1(WEFT_EXPAND1(__VA_ARGS__))))
#define WEFT_EXPAND1(...) __VA_ARGS__
#define WEFT_EACH(f, S, ...) __VA_OPT__(WEFT_EXPAND(WEFT_EACH_NEXT(f, S, __VA_ARGS__)))
#define WEFT_EACH_NEXT(f, S, field, ...) f(S, field) __VA_OPT__(WEFT_EACH_AGAIN WEFT_PARENS(f, S, __VA_ARGS__))
#define WEFT_EACH_AGAIN() WEFT_EACH_NEXT
#define WEFT_FACE_FIELD(S, field) F<typename ::weft::detail::FieldOf<decltype(S::field)>::type> field;
// Bit fields have no offset; the check of the layout says so in fewer words than the compiler would here.
#define WEFT_NAMED_FIELD(S, field)                                             \
  ::weft::detail::NamedField{#field,                                           \
                             [] {                                              \
                               if constexpr (requires { &WeftStruct::field; }) \
                                 return offsetof(WeftStruct, field);           \
                               else                                            \
                                 return ~std::size_t(0);                       \
                             }(),                                              \
                             ::weft::detail::kInitialisers<decltype(S::field)>},

/// Declares a foreign struct to weft: `WEFT_STRUCT(Body, pos, vel, mass)`, in the namespace of the struct, with all
/// fields in their order. `Var<Body>` is then its traced face, with fields of the same names; arrays may hold it.
/// Errors: at compile time if a field is missing, out of order, a bit field, or of a type that kernels do not know.
#define WEFT_STRUCT(S, ...)                                                                                         \
  template <class, template <class> class>                                                                          \
  struct WeftFace;                                                                                                  \
  template <template <class> class F>                                                                               \
  struct WeftFace<S, F> {                                                                                           \
    WEFT_EACH(WEFT_FACE_FIELD, S, __VA_ARGS__)                                                                      \
  };                                                                                                                \
  template <template <class> class F>                                                                               \
  WeftFace<S, F> weft_face(const S*, ::weft::detail::FaceTag<F>);                                                   \
  template <class WeftStruct>                                                                                       \
  requires std::is_same_v<WeftStruct, S>                                                                            \
  constexpr auto weft_fields(const WeftStruct*) { return std::array{WEFT_EACH(WEFT_NAMED_FIELD, S, __VA_ARGS__)}; } \
  static_assert(::weft::detail::Struct<S>, "weft: WEFT_STRUCT stands in the namespace of the struct")
