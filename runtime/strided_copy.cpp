// An element is seen as words (or bytes where its size or place demands it): one more, innermost dimension.
#include "strided_copy.h"

#include "launch.h"

namespace weft::detail {

namespace {

// A view of another view's memory with elements of one word or byte.
template <class T>
class Words : public Array<T, 4> {
 public:
  // Dimensions `first`... of the original, from `offset` bytes on, padded in front with dimensions of size 1.
  Words(const ArrayBase& a, int first, std::int64_t offset) {
    this->storage_ = a.storage();
    this->address_ = a.address() + std::uint64_t(offset);
    const int n = a.ndim() - first;
    for (int k = 0; k < 3; ++k) {
      const int from = first + k - (3 - n);
      this->shape_[std::size_t(k)] = from < first ? 1 : a.shape(from);
      this->stride_[std::size_t(k)] = from < first ? std::int64_t(sizeof(T)) : a.stride(from);
    }
    this->shape_[3] = a.element_bytes() / sizeof(T);
    this->stride_[3] = sizeof(T);
  }
};

template <class T>
void copy_words(const ArrayBase& to, const ArrayBase& from) {
  static const auto copy = kernel("strided_copy", [](Arr<T, 4> to, Arr<const T, 4> from) {
    auto [i, j, k, l] = tid<4>();
    to(i, j, k, l) = from(i, j, k, l);
  });
  const int first = to.ndim() == 4 ? 1 : 0;
  const std::int64_t rows = first ? to.shape(0) : 1;
  for (std::int64_t r = 0; r < rows; ++r) {
    Array<T, 4> target = Words<T>(to, first, first ? r * to.stride(0) : 0);
    Array<T, 4> source = Words<T>(from, first, first ? r * from.stride(0) : 0);
    launch(copy, target.extent(), target, source);
  }
}

bool in_words(const ArrayBase& a) {
  bool whole = a.element_bytes() % 4 == 0 && a.address() % 4 == 0;
  for (int k = 0; k < a.ndim(); ++k) whole = whole && a.stride(k) % 4 == 0;
  return whole;
}

}  // namespace

void strided_copy(const ArrayBase& to, const ArrayBase& from) {
  if (in_words(to) && in_words(from))
    copy_words<std::uint32_t>(to, from);
  else
    copy_words<std::uint8_t>(to, from);
}

}  // namespace weft::detail
