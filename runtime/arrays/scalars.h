// The elements of an array as what they consist of, for kernels that know no more of them.
#pragma once
#include "../array.h"

namespace weft::detail {

/// `count` numbers of type T in each element of another array, from byte `first` of each on. The dimensions of that
/// array stand last, behind dimensions of size 1 and before that of the numbers, for which one of four dimensions has
/// no place: of such a one it is the first number alone.
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
