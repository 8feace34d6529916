// Types of values and elements that are known at run time alone: what Layout<T> says of a type of C++.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../../frontend/types/layout.h"

namespace weft::python {

namespace nb = nanobind;

struct DType;

/// A field of a struct.
struct Field {
  std::string name;
  PyObject* key = nullptr;       ///< the name as a string of Python's, for attributes
  const DType* dtype = nullptr;  ///< of the field, or of the elements of an array
  int ndim = 0;                  ///< of an array; 0: the field is a value
  std::uint32_t offset = 0;
  int first_leaf = 0;
};

/// A type of values. There is one object for each type, which is never destroyed: IR, arrays and tapes keep spans of
/// its leaves, and types are compared by address.
struct DType {
  enum class Kind { scalar, vector, matrix, quaternion, transform, structure };

  Kind kind = Kind::scalar;
  ir::Type type = ir::Type::none;  ///< of all scalars; none for a struct
  int rows = 1, columns = 1;
  std::string name;
  std::uint32_t size = 0, align = 1;
  std::uint32_t number = 0;  ///< that no other type of the process has
  std::vector<detail::Leaf> leaves;
  std::vector<Field> fields;
  bool holds_arrays = false;
  PyObject* self = nullptr;    ///< the object of Python's
  PyObject* python = nullptr;  ///< the package's class for values of the type; null until it is set

  int count() const { return int(leaves.size()); }
  bool is_struct() const { return kind == Kind::structure; }
  /// The dimensions that an element takes in an array of numbers.
  int inner_dimensions() const { return kind == Kind::scalar ? 0 : kind == Kind::matrix ? 2 : 1; }
  bool has_reals() const;
  nb::object object() const { return nb::borrow(self); }
};

/// These give the one type of each kind.
/// Errors: ValueError for a size below 1, for more than 4096 scalars, and for a scalar that the kind cannot have.
const DType& scalar_type_of(ir::Type type);
const DType& vector_type_of(ir::Type type, int n);
const DType& matrix_type_of(ir::Type type, int rows, int columns);
const DType& quaternion_type_of(ir::Type type);
const DType& transform_type_of(ir::Type type);

/// The type of a host type of the library's.
template <class T>
struct TypeOf {
  static const DType& get() { return scalar_type_of(scalar_type<T>()); }
};
template <int N, class T>
struct TypeOf<vec<N, T>> {
  static const DType& get() { return vector_type_of(scalar_type<T>(), N); }
};
template <int R, int C, class T>
struct TypeOf<mat<R, C, T>> {
  static const DType& get() { return matrix_type_of(scalar_type<T>(), R, C); }
};
template <class T>
struct TypeOf<quaternion<T>> {
  static const DType& get() { return quaternion_type_of(scalar_type<T>()); }
};
template <class T>
struct TypeOf<transformation<T>> {
  static const DType& get() { return transform_type_of(scalar_type<T>()); }
};

/// The C++ object of an object of Python's, or null if it is of another class.
template <class T>
T* as(nb::handle object) {
  T* held = nullptr;
  return nb::try_cast<T*>(object, held) ? held : nullptr;
}

/// The type that an object of Python's stands for: a DType, an object with one in its attribute `native`, or one of
/// Python's own float (float32), int (int32) and bool.
/// Errors: TypeError for anything else.
const DType& type_from(nb::handle object);

}  // namespace weft::python
