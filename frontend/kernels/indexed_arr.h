// Traced indexed arrays: elements of an array that lists of indices choose, dimension by dimension.
#pragma once
#include "kernel.h"

namespace weft {

/// An array seen through lists of indices (runtime/indexed_array.h), declared here to name its traced face.
template <class T, int N>
class IndexedArray;

/// The traced face of an indexed array: a kernel's parameter, used like an Arr. IndexedArr<const T> is read only.
template <class T, int N = 1>
using IndexedArr = Var<IndexedArray<T, N>>;

namespace detail {

/// An array and, by dimension, the list through which its indices go; a list whose base is kNone lets them pass.
struct IndexedLayout {
  ArrLayout data;
  std::array<ArrLayout, 4> indices;
  /// Whether the indices of dimension k, counted among those that are left, go through a list.
  bool has_list(int k) const { return indices[std::size_t(data.first + k)].base != ir::kNone; }
};

/// Adds the parameters of the lists that belong to `data`.
IndexedLayout make_indices(const ArrLayout& data);
tracing::Address address_of(const IndexedLayout& arr, const Index* indices, int n);
/// The value that the list of dimension k holds at an index; the index itself if there is no list.
Index through_list(const IndexedLayout& arr, int k, const Index& index);
IndexedLayout slice_of(const IndexedLayout& arr, const Index& index);
tracing::Id shape_of(const IndexedLayout& arr, int k, ir::Type type, Loc loc);

}  // namespace detail

/// The traced indexed array, see IndexedArr: a[i], a(i, j) and the row a[i] as of an Arr. Element (i, j) is element
/// (rows[i], columns[j]) of the underlying array. The lists' values must lie inside it, which only debug mode and the
/// reference device check.
/// Cost: one more read for each index with a list.
template <class T, int N>
class Var<IndexedArray<T, N>> {
  static_assert(N >= 1 && N <= 4, "an array has 1 to 4 dimensions");

 public:
  using Element = typename detail::ElementFace<T>::type;

  explicit Var(const detail::IndexedLayout& layout) : layout_(layout) {}
  const detail::IndexedLayout& layout() const { return layout_; }

  WEFT_ELEMENTS(layout_)
  auto operator[](detail::Index i) const requires(N > 1) {
    return Var<IndexedArray<T, N - 1>>(detail::slice_of(layout_, i));
  }

  /// The number of indices that dimension k takes: the length of its list, or the extent of the array if it has none.
  Var<int> shape(int k, Loc loc = Loc::here()) const {
    return Var<int>(detail::shape_of(layout_, k, ir::Type::i32, loc), detail::FromId{});
  }
  Var<std::int64_t> shape64(int k, Loc loc = Loc::here()) const {
    return Var<std::int64_t>(detail::shape_of(layout_, k, ir::Type::i64, loc), detail::FromId{});
  }

 private:
  detail::IndexedLayout layout_;
};

namespace detail {
template <class T, int N>
struct Parameter<Var<IndexedArray<T, N>>> {
  static constexpr int parts = 1 + N;
  static Var<IndexedArray<T, N>> make() {
    return Var<IndexedArray<T, N>>(make_indices(Parameter<Var<Array<T, N>>>::make().layout()));
  }
};
}  // namespace detail

}  // namespace weft
