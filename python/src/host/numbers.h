// NumPy's types of numbers.
#pragma once
#include <nanobind/ndarray.h>

#include "../types.h"

namespace weft::python {

/// The type of NumPy's numbers for a scalar.
inline nb::dlpack::dtype number_of(ir::Type type) {
  using Code = nb::dlpack::dtype_code;
  const Code code = ir::is_bool(type)     ? Code::Bool
                    : ir::is_float(type)  ? Code::Float
                    : ir::is_signed(type) ? Code::Int
                                          : Code::UInt;
  return {std::uint8_t(code), std::uint8_t(8 * ir::bytes(type)), 1};
}

}  // namespace weft::python
