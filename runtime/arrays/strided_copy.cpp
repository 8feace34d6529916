// Copies strided views. Elements are copied as words (as bytes if size or address requires it): these are a fourth,
// innermost dimension if there is room for one, else each word takes a launch.
#include "strided_copy.h"

#include <utility>

#include "../../frontend/kernels/names.h"
#include "../launch.h"
#include "../work/element_write.h"
#include "scalars.h"

namespace weft::detail {

namespace {

template <class T>
void copy_words(const CutView& to, const CutView& from) {
  static const auto copy = moving_elements(kernel("strided_copy", [](Arr<T, 4> to, Arr<const T, 4> from) {
    auto [i, j, k, l] = tid<4>();
    to(i, j, k, l) = from(i, j, k, l);
  }));
  if (const int k = dimension_to_cut(to, sizeof(T)); k >= 0) {
    const std::int64_t n = to.shape(k);
    copy_words<T>(to.cut(k, 0, n / 2), from.cut(k, 0, n / 2));
    return copy_words<T>(to.cut(k, n / 2, n), from.cut(k, n / 2, n));
  }
  for (std::int64_t word = 0; word < rounds(to, sizeof(T)); ++word) {
    const Array<T, 4> target = words<T>(to, word), source = words<T>(from, word);
    launch(copy, target.extent(), target, source);
  }
}

}  // namespace

void strided_copy(const ArrayBase& to, const ArrayBase& from) {
  if (in_words(to) && in_words(from))
    copy_words<std::uint32_t>(CutView(to), CutView(from));
  else
    copy_words<std::uint8_t>(CutView(to), CutView(from));
}

}  // namespace weft::detail
