// Arrays and elements of arrays in the kernel that is traced.
#pragma once
#include "../../../frontend/language/arr.h"
#include "../types.h"

namespace weft::python {

/// An array in a kernel: a parameter, a part of one, or one that a struct holds.
struct ArrayRef {
  detail::ArrLayout layout;
  const DType* dtype;  ///< of its elements

  int ndim() const { return layout.ndim - layout.first; }
  bool is_null() const { return layout.base == ir::kNone; }
};

/// The place of an element of an array, or of a part of one.
struct ElementRef {
  tracing::Address at;
  const DType* dtype;
  bool is_null = false;  ///< of an array that the launch leaves out, in code that no thread reaches
};

}  // namespace weft::python
