// Traced arrays: Arr<T, N>, their elements, slices and shapes.
#pragma once
#include "../types/layout.h"
#include "mat_var.h"
#include "quaternion_var.h"

namespace weft {

/// The traced face of an array of 1 to 4 dimensions, as a kernel takes it. Arr<const T> is read only.
template <class T, int N = 1>
using Arr = Var<Array<T, N>>;

namespace detail {

/// A traced integer index of any type, or a literal.
class Index {
 public:
  template <IntegerScalar T>
  Index(const Var<T>& v, Loc loc = Loc::here()) : id(v.read(loc)), loc(loc) {}
  template <IntegerScalar T>
  Index(T value, Loc loc = Loc::here())
      : id(tracing::literal_int(sizeof(T) == 8 ? ir::Type::i64 : ir::Type::i32, std::int64_t(value), loc)),
        loc(loc),
        is_known(true),
        known(std::int64_t(value)) {}

  Index(tracing::Id id, Loc loc, FromId) : id(id), loc(loc) {}

  tracing::Id id;
  Loc loc;
  bool is_known = false;  ///< whether it is a number of the host's
  std::int64_t known = 0;
};

/// The facts that are known of an array at trace time; copied into slices.
struct ArrLayout {
  std::uint32_t trace = 0;  ///< the trace to which it belongs
  tracing::Id base = ir::kNone;
  tracing::Id start = ir::kNone;  ///< of a slice: rows of the last fixed dimension (contiguous) or bytes (strided);
                                  ///< kNone: 0
  std::array<tracing::Id, 4> shape{};   ///< i32, or i64 in a strided layout
  std::array<tracing::Id, 4> stride{};  ///< strided only: i64 bytes
  std::array<tracing::Id, 4> index{};   ///< of a slice: the indices of the dimensions before `first`
  std::uint32_t element_bytes = 0;
  std::uint32_t element_align = 1;
  std::uint8_t ndim = 0;
  std::uint8_t first = 0;  ///< of a slice: the number of dimensions that are already indexed
  bool strided = false;
  std::uint16_t param = 0;  ///< the number of the parameter
  std::uint16_t held =
      0;  ///< debug mode, an array that an element holds: one more than its place in Trace::held_arrays
};

/// Adds an array parameter to the kernel being traced. Its base is kNone if the launch leaves the array out.
/// \param align  the alignment of each scalar of an element, whatever the view
ArrLayout make_array_param(std::uint32_t element_bytes, std::uint32_t align, int ndim, bool read_only,
                           const std::string& type_name);
/// The array whose handle (ArrayHandle) lies at an address; always contiguous.
ArrLayout load_array_handle(const tracing::Address& at, int ndim, std::uint32_t element_bytes, Loc loc);
/// The address of the element with these indices; `n` indices complete it. Here and in slices, a number of the host's
/// that is known to be out of range is an Error(invalid_kernel): a negative one, or one beyond an extent that is known
/// too. It is accepted in code to which no thread comes (Builder::in_dead_block), as it is never used there.
tracing::Address address_of(const ArrLayout& arr, const Index* indices, int n);
/// Fixes the next index.
ArrLayout slice_of(const ArrLayout& arr, const Index& index);
/// The elements lo, lo + step, ... below hi of the next dimension.
ArrLayout range_of(const ArrLayout& arr, const Index& lo, const Index& hi, const Index& step);
/// The remaining dimensions in reverse order.
ArrLayout transposed(const ArrLayout& arr, Loc loc);
/// The extent of dimension k, as i32 or i64.
tracing::Id shape_of(const ArrLayout& arr, int k, ir::Type type, Loc loc);

/// The name of an element type in messages: "float32", "vec3", "mat<2, 3, int32>", ...
std::string type_name(ir::Type scalar, int rows, int columns);
/// The name `base` with the letter of the scalar type (types/names.h).
std::string named_type(const char* base, ir::Type scalar);
template <class T>
struct TypeName {
  static std::string get() { return type_name(scalar_type<T>(), 1, 1); }
};
template <int N, class T>
struct TypeName<vec<N, T>> {
  static std::string get() { return type_name(scalar_type<T>(), N, 1); }
};
template <int R, int C, class T>
struct TypeName<mat<R, C, T>> {
  static std::string get() { return type_name(scalar_type<T>(), R, C); }
};
template <class T>
struct TypeName<quaternion<T>> {
  static std::string get() { return named_type("quat", scalar_type<T>()); }
};
template <class T>
struct TypeName<transformation<T>> {
  static std::string get() { return named_type("transform", scalar_type<T>()); }
};

/// The elements of an array of N dimensions whose layout is `layout`: a[i] with one dimension, a(i, j, ..) with all.
/// Only overloads for a wrong number of indices are templates, so that each index brings the line on which it stands.
#define WEFT_ELEMENTS(layout)                                                                                          \
  Element& operator[](detail::Index i) const requires(N == 1) { return at(layout, i); }                                \
  Element& operator()(detail::Index i) const requires(N == 1) { return at(layout, i); }                                \
  Element& operator()(detail::Index i, detail::Index j) const requires(N == 2) { return at(layout, i, j); }            \
  Element& operator()(detail::Index i, detail::Index j, detail::Index k) const requires(N == 3) {                      \
    return at(layout, i, j, k);                                                                                        \
  }                                                                                                                    \
  Element& operator()(detail::Index i, detail::Index j, detail::Index k, detail::Index l) const requires(N == 4) {     \
    return at(layout, i, j, k, l);                                                                                     \
  }                                                                                                                    \
  template <class... I>                                                                                                \
  requires(sizeof...(I) != N) Element& operator()(const I&...) const {                                                 \
    static_assert(sizeof...(I) == N, "weft: an array takes as many indices as it has dimensions; a[i] makes a slice"); \
    return detail::variable_of<T>({});                                                                                 \
  }                                                                                                                    \
                                                                                                                       \
 private:                                                                                                              \
  template <class A, class... I>                                                                                       \
  static Element& at(const A& array, const I&... i) {                                                                  \
    const detail::Index indices[] = {i...};                                                                            \
    return detail::element_at<T>(detail::address_of(array, indices, N));                                               \
  }                                                                                                                    \
                                                                                                                       \
 public:

}  // namespace detail

/// The traced array, see Arr. Elements are a[i] (one dimension), a(i, j), a[i][j]; with more dimensions a[i] is a slice
/// and may be passed to functions. Only debug mode (debug.h) checks indices; otherwise an index out of range is an
/// error of the program, which the reference device finds if it leaves the array's memory.
template <class T, int N>
class Var<Array<T, N>> {
  static_assert(N >= 1 && N <= 4, "an array has 1 to 4 dimensions");
  static_assert(detail::Layout<T>::size > 0);

 public:
  /// The type of an element: `Var<T>&`; for an Arr<const T> `const Var<T>&`.
  using Element = typename detail::ElementFace<T>::type;

  explicit Var(const detail::ArrLayout& layout) : layout_(layout) {}
  /// An array that a struct in memory holds. Each use reads its address and shape anew; a copy reads them once.
  explicit Var(const tracing::Named& named) : named_(named) {}
  Var(const Var& v, Loc loc = {}) : layout_(v.layout(loc)) {}
  /// Refused, because the array that a name means is fixed: it could not depend on traced conditions.
  Var& operator=(const Var&) {
    static_assert(detail::is_writable<T>,
                  "weft: a kernel cannot replace an array, nor change which one a name means; assign its elements");
    return *this;
  }

  WEFT_ELEMENTS(layout(i.loc))
  auto operator[](detail::Index i) const requires(N > 1) {
    return Var<Array<T, N - 1>>(detail::slice_of(layout(i.loc), i));
  }

  /// A view of elements lo, lo + step, ... below hi of the first dimension; step >= 1. Shares the elements.
  /// Cost: elements of the view are addressed in 64 bits, by strides.
  Var slice(detail::Index lo, detail::Index hi, detail::Index step = 1) const {
    return Var(detail::range_of(layout(lo.loc), lo, hi, step));
  }
  /// A view with the dimensions in reverse order.
  Var transpose(Loc loc = Loc::here()) const requires(N > 1) { return Var(detail::transposed(layout(loc), loc)); }

  /// The extent of dimension k. A launch with an array of 2^31 or more elements along it is refused: see shape64().
  Var<int> shape(int k, Loc loc = Loc::here()) const {
    return Var<int>(detail::shape_of(layout(loc), k, ir::Type::i32, loc), detail::FromId{});
  }
  /// The extent of dimension k in 64 bits.
  Var<std::int64_t> shape64(int k, Loc loc = Loc::here()) const {
    return Var<std::int64_t>(detail::shape_of(layout(loc), k, ir::Type::i64, loc), detail::FromId{});
  }

  detail::ArrLayout layout(Loc loc = {}) const {
    if (!named_.target) return layout_;
    return detail::load_array_handle(named_.address(), N, detail::Layout<T>::size, loc);
  }

 private:
  detail::ArrLayout layout_;
  tracing::Named named_;
};

}  // namespace weft
