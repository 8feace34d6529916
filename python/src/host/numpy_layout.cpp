// Reads what the headers of NumPy 1 and 2 say of an array: PyArrayObject_fields, and the part of PyArray_Descr that
// both have.
#include "numpy_layout.h"

#include <algorithm>

namespace weft::python {

namespace {

struct NumpyDescription {
  PyObject_HEAD;
  PyTypeObject* scalar;
  char kind, letter, byte_order, flags;
  int number;  ///< of the type
};

struct NumpyArray {
  PyObject_HEAD;
  char* data;
  int ndim;
  Py_ssize_t *shape, *strides;  ///< strides in bytes
  PyObject* base;               ///< what the array is a view of; null: nothing
  NumpyDescription* description;
  int flags;
};

constexpr int kAligned = 0x0100, kWriteable = 0x0400;

PyTypeObject* array_type = nullptr;  // never let go

const NumpyArray* array_at(PyObject* object) {
  return array_type && Py_TYPE(object) == array_type ? reinterpret_cast<const NumpyArray*>(object) : nullptr;
}

/// The scalar type of NumPy's type number; none for others, and for another order of bytes.
ir::Type type_of(const NumpyDescription& d) {
  constexpr ir::Type kLong = sizeof(long) == 8 ? ir::Type::i64 : ir::Type::i32;
  constexpr ir::Type kUnsignedLong = sizeof(long) == 8 ? ir::Type::u64 : ir::Type::u32;
  if (d.byte_order != '=' && d.byte_order != '|') return ir::Type::none;
  switch (d.number) {
    case 0: return ir::Type::b1;
    case 1: return ir::Type::i8;
    case 2: return ir::Type::u8;
    case 3: return ir::Type::i16;
    case 4: return ir::Type::u16;
    case 5: return ir::Type::i32;
    case 6: return ir::Type::u32;
    case 7: return kLong;
    case 8: return kUnsignedLong;
    case 9: return ir::Type::i64;
    case 10: return ir::Type::u64;
    case 11: return ir::Type::f32;
    case 12: return ir::Type::f64;
    case 23: return ir::Type::f16;
    default: return ir::Type::none;
  }
}

bool are_same(const HostTensor& a, const HostTensor& b) {
  return a.data == b.data && a.type == b.type && a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape) &&
         std::equal(a.stride, a.stride + a.ndim, b.stride);
}

}  // namespace

std::optional<HostTensor> numpy_tensor(PyObject* object) {
  const NumpyArray* const array = array_at(object);
  if (!array || array->ndim > HostTensor::kMostDimensions) return std::nullopt;
  const ir::Type type = type_of(*array->description);
  if (type == ir::Type::none || (array->flags & (kAligned | kWriteable)) != (kAligned | kWriteable))
    return std::nullopt;
  std::optional<HostTensor> tensor(std::in_place);
  tensor->data = reinterpret_cast<std::byte*>(array->data);
  tensor->type = type;
  tensor->ndim = array->ndim;
  std::copy_n(array->shape, array->ndim, tensor->shape);
  std::copy_n(array->strides, array->ndim, tensor->stride);
  tensor->owner = nb::borrow(object);
  return tensor;
}

bool owns_numpy_memory(PyObject* object) {
  const NumpyArray* const array = array_at(object);
  return array && !array->base;
}

void know_numpy(nb::handle sample) {
  PyTypeObject* const type = Py_TYPE(sample.ptr());
  const std::optional<HostTensor> wanted = host_tensor(sample.ptr());
  if (!wanted || type->tp_basicsize < Py_ssize_t(sizeof(NumpyArray)) || array_type) return;
  array_type = type;
  const std::optional<HostTensor> found = numpy_tensor(sample.ptr());
  if (found && are_same(*found, *wanted) && !owns_numpy_memory(sample.ptr()))
    Py_INCREF(reinterpret_cast<PyObject*>(type));
  else
    array_type = nullptr;
}

}  // namespace weft::python
