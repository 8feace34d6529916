// Traced arrays: Arr<T, N>, their elements, slices and shapes.
#pragma once
#include "../types/layout.h"
#include "mat_var.h"
#include "quaternion_var.h"
#include "ref.h"

namespace weft {

/// The traced face of an array of 1 to 4 dimensions: a kernel's parameter. Arr<const T> is read only.
template <class T, int N = 1>
using Arr = Var<Array<T, N>>;

namespace detail {

/// A traced integer index of any type, or a literal.
class Index {
 public:
  template <IntegerScalar T>
  Index(const Var<T>& v, Loc loc = Loc::here()) : id(v.read(loc)), loc(loc) {}
  template <class T>
  requires IntegerScalar<std::remove_const_t<T>> Index(const Ref<T>& r, Loc loc = Loc::here())
      : id(r.read(loc)), loc(loc) {}
  template <IntegerScalar T>
  Index(const ComponentAt<T>& c, Loc loc = Loc::here()) : id(c.read(loc)), loc(loc) {}
  template <IntegerScalar T>
  Index(T value, Loc loc = Loc::here())
      : id(tracing::literal_int(sizeof(T) == 8 ? ir::Type::i64 : ir::Type::i32, std::int64_t(value), loc)), loc(loc) {}

  Index(tracing::Id id, Loc loc, FromId) : id(id), loc(loc) {}

  tracing::Id id;
  Loc loc;
};

/// All that an array knows at trace time; copied into slices.
struct ArrLayout {
  std::uint32_t trace = 0;  ///< the trace that it belongs to
  tracing::Id base = ir::kNone;
  tracing::Id start = ir::kNone;  ///< of a slice: rows of the last fixed dimension (contiguous) or bytes (strided);
                                  ///< kNone: 0
  std::array<tracing::Id, 4> shape{};   ///< i32, or i64 in a strided layout
  std::array<tracing::Id, 4> stride{};  ///< strided only: i64 bytes
  std::array<tracing::Id, 4> index{};   ///< of a slice: the indices of the dimensions before `first`
  std::uint32_t element_bytes = 0;
  std::uint32_t element_align = 1;
  std::uint8_t ndim = 0;
  std::uint8_t first = 0;  ///< of a slice: how many dimensions are already indexed
  bool strided = false;
  std::uint16_t param = 0;  ///< number of the parameter
  std::uint16_t held =
      0;  ///< debug mode, an array that an element holds: one more than its place in Trace::held_arrays
};

/// Adds an array parameter to the kernel being traced. Its base is kNone when the launch leaves the array out.
/// \param align  that each scalar of an element has, whatever the view
ArrLayout make_array_param(std::uint32_t element_bytes, std::uint32_t align, int ndim, bool read_only,
                           const std::string& type_name);
/// The array whose handle (ArrayHandle) lies at an address; always contiguous.
ArrLayout load_array_handle(const tracing::Address& at, int ndim, std::uint32_t element_bytes, Loc loc);
/// Where the element with these indices is; `n` indices complete the address.
tracing::Address address_of(const ArrLayout& arr, const Index* indices, int n);
/// Fixes the next index.
ArrLayout slice_of(const ArrLayout& arr, const Index& index);
/// Elements lo, lo + step, ... below hi of the next dimension.
ArrLayout range_of(const ArrLayout& arr, const Index& lo, const Index& hi, const Index& step);
/// The dimensions that are left in reverse order.
ArrLayout transposed(const ArrLayout& arr, Loc loc);
/// As i32 or i64.
tracing::Id shape_of(const ArrLayout& arr, int k, ir::Type type, Loc loc);

/// "float32", "vec3", "mat<2, 3, int32>", ...: the name of an element type in messages.
std::string type_name(ir::Type scalar, int rows, int columns);
/// `base` with the letter of the scalar type (types/names.h).
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

}  // namespace detail

/// See Arr. Elements: a[i] (one dimension), a(i, j), a[i][j]; a[i] of more dimensions is a slice and may be passed to
/// functions. Indices are checked in debug mode only (debug.h); otherwise an index out of range is an error of the
/// program, found by the reference device where it leaves the array's memory.
template <class T, int N>
class Var<Array<T, N>> {
  static_assert(N >= 1 && N <= 4, "an array has 1 to 4 dimensions");
  static_assert(detail::Layout<T>::size > 0);

 public:
  explicit Var(const detail::ArrLayout& layout) : layout_(layout) {}
  Var(const Var&) = default;
  /// An array that a struct in memory holds.
  Var(const Ref<Array<T, N>>& r, Loc loc = Loc::here()) : Var(r.load(loc)) {}
  /// Which array a name means is fixed: it could not depend on traced conditions.
  Var& operator=(const Var&) = delete;

  template <class... I>
  Ref<T> operator()(const I&... i) const {
    static_assert(sizeof...(I) == N, "weft: an array takes as many indices as it has dimensions; a[i] makes a slice");
    if constexpr (sizeof...(I) == N) {
      const detail::Index indices[] = {detail::Index(i)...};
      return Ref<T>(detail::address_of(layout_, indices, N));
    }
  }
  Ref<T> operator[](detail::Index i) const requires(N == 1) { return Ref<T>(detail::address_of(layout_, &i, 1)); }
  auto operator[](detail::Index i) const requires(N > 1) { return Var<Array<T, N - 1>>(detail::slice_of(layout_, i)); }

  /// A view of elements lo, lo + step, ... below hi of the first dimension; step >= 1. Shares the elements.
  /// Cost: its elements are addressed in 64 bits, by strides.
  Var slice(detail::Index lo, detail::Index hi, detail::Index step = 1) const {
    return Var(detail::range_of(layout_, lo, hi, step));
  }
  /// A view with the dimensions in reverse order.
  Var transpose(Loc loc = Loc::here()) const requires(N > 1) { return Var(detail::transposed(layout_, loc)); }

  /// Extent of dimension k. A launch with an array that has 2^31 elements or more along it is refused: see shape64().
  Var<int> shape(int k, Loc loc = Loc::here()) const {
    return Var<int>(detail::shape_of(layout_, k, ir::Type::i32, loc), detail::FromId{});
  }
  /// The same in 64 bits.
  Var<std::int64_t> shape64(int k, Loc loc = Loc::here()) const {
    return Var<std::int64_t>(detail::shape_of(layout_, k, ir::Type::i64, loc), detail::FromId{});
  }

  const detail::ArrLayout& layout() const { return layout_; }

 private:
  detail::ArrLayout layout_;
};

}  // namespace weft
