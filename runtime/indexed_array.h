// Indexed arrays on the host: an array seen through lists of indices.
#pragma once
#include "../frontend/kernels/indexed_arr.h"
#include "array.h"
#include "launch.h"

namespace weft {

namespace detail {
/// The lists of indices of an indexed array, by dimension.
using IndexLists = std::array<Array<int>, 4>;

void check_indexed(const ArrayBase& data, const IndexLists& lists);
Extent indexed_extent(const ArrayBase& data, const IndexLists& lists);
/// Copies the elements of `data` that the lists choose to `packed`, which has the shape of the lists; with `scatter`,
/// copies back.
/// Cost: one launch of a thread for each word; for arrays of four dimensions one for each word of an element.
void indexed_copy(const ArrayBase& packed, const ArrayBase& data, const IndexLists& lists, bool scatter);
}  // namespace detail

/// An array seen through a list of indices for each of its dimensions, or for some: element (i, j) is element (rows[i],
/// columns[j]) of the underlying array. A view: shares the elements and the lists.
///
/// indexed() makes one; kernels take it as an IndexedArr<T, N>. The lists' values must lie inside the array. clone(),
/// to_vector(), copy_from() and fill() check them on the device: the next wait throws Error(kernel_fault) with the
/// index and the dimension. (To graphs and recordings these copies are kernels that check themselves.) In a user's
/// kernel only the reference device and debug mode check them.
template <class T, int N = 1>
class IndexedArray {
 public:
  using value_type = T;

  /// A null array.
  IndexedArray() = default;
  /// \param indices  by dimension; a null list takes all indices of its dimension
  /// Errors: Error(invalid_argument) for a null array, or lists on another device.
  IndexedArray(const Array<T, N>& data, const detail::IndexLists& indices, Loc loc = Loc::here())
      : data_(data), indices_(indices) {
    detail::called_from(loc, [&] { detail::check_indexed(data_, indices_); });
  }

  bool is_null() const { return data_.is_null(); }
  Device device(Loc loc = Loc::here()) const { return data_.device(loc); }
  /// The number of indices that dimension k takes: the length of its list, or the extent of the array if it has none.
  std::int64_t shape(int k, Loc loc = Loc::here()) const {
    return k >= 0 && k < N && !indices(k).is_null() ? indices(k).shape(0) : data_.shape(k, loc);
  }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (int k = 0; k < N; ++k) n *= shape(k);
    return n;
  }
  Extent extent() const { return detail::indexed_extent(data_, indices_); }

  /// The underlying array, and the list of dimension k (null where all indices are taken).
  const Array<T, N>& data() const { return data_; }
  const Array<int>& indices(int k) const { return indices_[static_cast<std::size_t>(k)]; }

  /// The chosen elements as an array of their own, gathered on the device.
  Array<T, N> clone(Loc loc = Loc::here()) const {
    Array<T, N> a = Array<T, N>::empty(device(loc), {extent(), loc});
    detail::called_from(loc, [&] { detail::indexed_copy(a, data_, indices_, false); });
    return a;
  }
  std::vector<T> to_vector(Loc loc = Loc::here()) const { return clone(loc).to_vector(loc); }
  /// Replaces the chosen elements by those of an array of the same shape on the same device. An element that is chosen
  /// twice gets one of its values.
  void copy_from(const Array<T, N>& values, Loc loc = Loc::here()) {
    // Values that share the array's memory are read before that memory is written.
    if (values.storage() == data_.storage() && !values.is_null()) return copy_from(values.clone(loc), loc);
    detail::called_from(loc, [&] { detail::indexed_copy(values, data_, indices_, true); });
  }
  void fill(const T& value, Loc loc = Loc::here()) {
    copy_from(Array<T, N>::full(device(loc), {extent(), loc}, value), loc);
  }

 private:
  Array<T, N> data_;
  detail::IndexLists indices_;
};

/// The array seen through a list of indices for each dimension: indexed(a, rows), indexed(a, {}, columns). A list that
/// is missing or null takes all indices.
/// Errors: Error(invalid_argument) for a null array, more lists than dimensions, or lists on another device.
template <class T, int N>
IndexedArray<T, N> indexed(const Array<T, N>& a, const Array<int>& list0, const Array<int>& list1 = {},
                           const Array<int>& list2 = {}, const Array<int>& list3 = {}, Loc loc = Loc::here()) {
  return IndexedArray<T, N>(a, {list0, list1, list2, list3}, loc);
}

namespace detail {
template <class T, int N>
struct Argument<Var<IndexedArray<T, N>>> {
  using Expected = IndexedArray<std::remove_const_t<T>, N>;
  const Expected* array;
  template <class A>
  static constexpr Fit fit() {
    return std::is_same_v<A, Expected> ? Fit::yes : Fit::no_indexed_array;
  }
  Argument(const Expected& a) : array(&a) {}
  void get(HostArg* parts, GivenStructures&) const {
    parts[0].array = &array->data();
    for (int k = 0; k < N; ++k) {
      parts[1 + k].array = &array->indices(k);
      parts[1 + k].optional = true;
    }
  }
};
}  // namespace detail

}  // namespace weft
