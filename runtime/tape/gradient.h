// The memory layout of the gradients of an array's elements. Internal to the runtime.
#pragma once
#include "../../frontend/types/layout.h"
#include "../core/state.h"
#include "../core/view.h"

namespace weft::detail {

/// Gradients of all elements of a Storage, at the same offsets, so that a view of the array has its view of them.
struct Gradient {
  std::shared_ptr<Storage> storage;
  std::uint64_t first = 0;       ///< address of the gradient of the first byte
  std::span<const Leaf> leaves;  ///< the scalars of an element, of which the real ones have gradients
  std::uint32_t element_bytes = 0;
  std::uint64_t phase = 0;  ///< offset of some element from the start

  /// The gradient of an array on `of`.
  View view(const ArrayBase& a, const Storage& of) const {
    return View(a, storage, first + (a.address() - of.allocation.address));
  }
  /// All gradients of `of`, as elements in a row.
  View all(const Storage& of) const {
    const std::uint64_t begin = phase % element_bytes;
    return View(storage, first + begin, std::int64_t((of.bytes - begin) / element_bytes), element_bytes);
  }
  void zero() const {
    if (storage->bytes) View::all_of(storage).zero();
  }
};

/// Allocates gradients of a storage, all zero.
/// \param like    some array on it
/// \param leaves  static memory: the scalars of an element of `like`
std::shared_ptr<const Gradient> make_gradient(const ArrayBase& like, std::span<const Leaf> leaves);

bool holds_real(std::span<const Leaf> leaves);

/// Adds `from` to `to` in the real scalars of the elements; other scalars of `to` stay. The arrays have one shape and
/// one element size, are on one device, and do not overlap.
/// Cost: one launch for arrays of one kind of scalar in a row; else one for each run of scalars of one type, and for
/// arrays of four dimensions one for each scalar.
void accumulate(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves);

}  // namespace weft::detail
