// The elements of an array as numbers, for kernels that do not know the element type.
#pragma once
#include "../core/state.h"

namespace weft::detail {

/// A view of `count` numbers of type T in each element of another array, from byte `first` of the element on. It has
/// dimensions of size 1, then those of the other array, then one for the numbers. An array of four dimensions leaves no
/// room for that last one: the view then has only the first number of each element.
template <class T>
class Scalars : public Array<T, 4> {
 public:
  Scalars(const ArrayBase& a, std::uint64_t first, std::int64_t count) {
    this->storage_ = a.storage();
    this->address_ = a.address() + first;
    const int last = a.ndim() == 4 ? 4 : 3;
    for (int k = 0; k < last; ++k) {
      const int from = k - (last - a.ndim());
      this->shape_[std::size_t(k)] = from < 0 ? 1 : a.shape(from);
      this->stride_[std::size_t(k)] = from < 0 ? std::int64_t(sizeof(T)) : a.stride(from);
    }
    if (last == 4) return;
    this->shape_[3] = count;
    this->stride_[3] = sizeof(T);
  }
};

/// The words of the elements, from number `word` on. With four dimensions there is room for that word alone.
template <class T>
Scalars<T> words(const ArrayBase& a, std::int64_t word) {
  return Scalars<T>(a, std::uint64_t(word) * sizeof(T), a.element_bytes() / sizeof(T));
}

/// A view that can be cut.
class CutView : public ArrayBase {
 public:
  explicit CutView(const ArrayBase& a) : ArrayBase(a) {}
  CutView cut(int k, std::int64_t lo, std::int64_t hi) const {
    CutView p = *this;
    p.restrict(k, lo, hi, 1);
    return p;
  }
};

/// The longest dimension, if a view has more words than one dispatch has threads, else -1.
inline int dimension_to_cut(const ArrayBase& a, std::size_t word_bytes) {
  const std::int64_t words = a.ndim() == 4 ? 1 : a.element_bytes() / std::int64_t(word_bytes);
  if (a.size() <= a.storage()->device->max_threads / words) return -1;
  int k = 0;
  for (int d = 1; d < a.ndim(); ++d)
    if (a.shape(d) > a.shape(k)) k = d;
  return a.shape(k) > 1 ? k : -1;
}

/// How many launches the words of an element take.
inline std::int64_t rounds(const ArrayBase& a, std::size_t word_bytes) {
  return a.ndim() == 4 ? std::int64_t(a.element_bytes() / word_bytes) : 1;
}

/// Whether the elements can be copied as words of four bytes.
inline bool in_words(const ArrayBase& a) {
  bool whole = a.element_bytes() % 4 == 0 && a.address() % 4 == 0;
  for (int k = 0; k < a.ndim(); ++k) whole = whole && a.stride(k) % 4 == 0;
  return whole;
}

}  // namespace weft::detail
