// Conversion of Python's numbers and sequences to the memory of values, and back.
#pragma once
#include <cstddef>
#include <span>

#include "types.h"

namespace weft::python {

/// Writes a number to memory of a scalar type.
/// Errors: TypeError for what is no number, or is real where an integer is wanted; OverflowError for an integer that
/// the type does not hold. All as exceptions of Python's.
void pack_scalar(PyObject* number, ir::Type type, std::byte* to);
nb::object unpack_scalar(const std::byte* from, ir::Type type);

/// Writes a value to memory of its type: a number, a Value, a sequence or a buffer of as many numbers, nested or not;
/// for a struct an object with its fields as attributes, or a dict. Arrays in structs are left out (zero). Errors:
/// TypeError, OverflowError.
void pack_value(PyObject* value, const DType& dtype, std::byte* to);

/// A value on the host: the base of the package's classes of vectors, matrices, quaternions and transforms.
class Value {
 public:
  Value(const DType& dtype, nb::handle components);
  Value(const DType& dtype, const std::byte* bytes);

  const DType& dtype() const { return *dtype_; }
  const std::byte* bytes() const { return bytes_.data(); }
  std::byte* bytes() { return bytes_.data(); }

 private:
  const DType* dtype_;
  std::vector<std::byte> bytes_;
};

}  // namespace weft::python
