// The elements of an array as numbers, for kernels that do not know the element type.
#pragma once
#include "../array.h"

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

}  // namespace weft::detail
