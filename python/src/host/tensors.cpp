// Describes arrays of other libraries, and makes weft's arrays on their memory.
#include "tensors.h"

#include <algorithm>
#include <string_view>

#include "numpy_layout.h"

namespace weft::python {

namespace {

/// The scalar type that a letter of the buffer protocol means; none for others, and for another order of bytes.
ir::Type type_of_format(const char* format) {
  if (!format) return ir::Type::u8;
  std::string_view f = format;
  if (!f.empty() && (f[0] == '@' || f[0] == '=' || f[0] == '<')) f.remove_prefix(1);
  if (f.size() != 1) return ir::Type::none;
  switch (f[0]) {
    case '?': return ir::Type::b1;
    case 'b': return ir::Type::i8;
    case 'B': return ir::Type::u8;
    case 'h': return ir::Type::i16;
    case 'H': return ir::Type::u16;
    case 'i': return ir::Type::i32;
    case 'I': return ir::Type::u32;
    case 'l': return sizeof(long) == 8 ? ir::Type::i64 : ir::Type::i32;
    case 'L': return sizeof(long) == 8 ? ir::Type::u64 : ir::Type::u32;
    case 'q': return ir::Type::i64;
    case 'Q': return ir::Type::u64;
    case 'e': return ir::Type::f16;
    case 'f': return ir::Type::f32;
    case 'd': return ir::Type::f64;
    default: return ir::Type::none;
  }
}

ir::Type type_of_dlpack(DLDataType t) {
  constexpr int kInt = 0, kUInt = 1, kFloat = 2, kBool = 6;
  if (t.lanes != 1) return ir::Type::none;
  switch (t.code * 256 + t.bits) {
    case kBool * 256 + 8: return ir::Type::b1;
    case kInt * 256 + 8: return ir::Type::i8;
    case kUInt * 256 + 8: return ir::Type::u8;
    case kInt * 256 + 16: return ir::Type::i16;
    case kUInt * 256 + 16: return ir::Type::u16;
    case kInt * 256 + 32: return ir::Type::i32;
    case kUInt * 256 + 32: return ir::Type::u32;
    case kInt * 256 + 64: return ir::Type::i64;
    case kUInt * 256 + 64: return ir::Type::u64;
    case kFloat * 256 + 16: return ir::Type::f16;
    case kFloat * 256 + 32: return ir::Type::f32;
    case kFloat * 256 + 64: return ir::Type::f64;
    default: return ir::Type::none;
  }
}

std::optional<HostTensor> from_buffer(PyObject* object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  std::optional<HostTensor> tensor;
  if (view.ndim <= HostTensor::kMostDimensions) {
    tensor.emplace();
    tensor->data = static_cast<std::byte*>(view.buf);
    tensor->type = type_of_format(view.format);
    tensor->ndim = view.ndim;
    for (int k = 0; k < view.ndim; ++k) tensor->shape[k] = view.shape[k], tensor->stride[k] = view.strides[k];
    tensor->owner = nb::borrow(object);
  }
  PyBuffer_Release(&view);
  return tensor;
}

/// The table of a type whose objects are tensors; null for other types.
const detail::DlpackExchange* exchange_of(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  const nb::object capsule = nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
  void* const table = capsule.is_valid() ? PyCapsule_GetPointer(capsule.ptr(), detail::kDlpackExchange) : nullptr;
  if (!table) PyErr_Clear();
  const auto* exchange = static_cast<const detail::DlpackExchange*>(table);
  while (exchange && exchange->version.major > 1) exchange = exchange->older;
  return exchange && exchange->describe ? exchange : nullptr;
}

/// What keeps a tensor's memory: of torch's the storage, because a tensor can be given another one.
nb::object owner_of(PyObject* tensor) {
  static PyObject* const name = PyUnicode_InternFromString("untyped_storage");
  nb::object storage = nb::steal(PyObject_CallMethodNoArgs(tensor, name));
  if (storage.is_valid()) return storage;
  PyErr_Clear();
  return nb::borrow(tensor);
}

std::optional<HostTensor> from_exchange(const detail::DlpackExchange& exchange, PyObject* object) {
  DLTensor given;
  if (exchange.describe(object, &given) != 0) throw nb::python_error();
  return host_tensor(given, owner_of(object));
}

/// What is wrong with a tensor of the right type and number of dimensions for an array; empty: nothing.
std::string fault_of(const HostTensor& t, const DType& dtype, int ndim) {
  const bool matrix = dtype.kind == DType::Kind::matrix;
  const std::int64_t extents[2] = {matrix ? dtype.rows : dtype.count(), dtype.columns};
  std::int64_t tight = ir::bytes(dtype.type);
  for (int k = dtype.inner_dimensions() - 1; k >= 0; --k) {
    if (t.shape[ndim + k] != extents[k]) return "its last dimensions are not those of an element";
    if (extents[k] != 1 && t.stride[ndim + k] != tight) return "the numbers of an element do not lie side by side";
    tight *= extents[k];
  }
  for (int k = 0; k < ndim; ++k)
    if (t.stride[k] < 0) return "a stride is negative";
  return {};
}

}  // namespace

bool HostTensor::is_contiguous() const {
  std::int64_t tight = ir::bytes(type);
  for (int k = ndim - 1; k >= 0; --k) {
    if (shape[k] != 1 && stride[k] != tight) return false;
    tight *= shape[k];
  }
  return true;
}

std::optional<HostTensor> host_tensor(PyObject* object) {
  if (std::optional<HostTensor> tensor = numpy_tensor(object)) return tensor;
  if (PyObject_CheckBuffer(object)) {
    if (PyBytes_Check(object)) return std::nullopt;
    return from_buffer(object);
  }
  if (const detail::DlpackExchange* const exchange = exchange_of(Py_TYPE(object)))
    return from_exchange(*exchange, object);
  return std::nullopt;
}

std::optional<HostTensor> host_tensor(const DLTensor& given, nb::object owner) {
  if (given.device.device_type != kDLCPU || given.ndim > HostTensor::kMostDimensions) return std::nullopt;
  HostTensor tensor;
  const bool empty = std::any_of(given.shape, given.shape + given.ndim, [](std::int64_t n) { return n == 0; });
  if (!given.data && !empty) throw nb::type_error("the tensor has a shape alone, and no memory");
  tensor.data = static_cast<std::byte*>(given.data) + given.byte_offset;
  tensor.type = type_of_dlpack(given.dtype);
  tensor.ndim = given.ndim;
  const std::int64_t bytes = given.dtype.bits / 8;
  std::int64_t tight = bytes;
  for (int k = given.ndim - 1; k >= 0; --k) {
    tensor.shape[k] = given.shape[k];
    tensor.stride[k] = given.strides ? given.strides[k] * bytes : tight;
    tight *= given.shape[k];
  }
  tensor.owner = std::move(owner);
  return tensor;
}

bool has_same_bits(ir::Type given, ir::Type wanted) {
  if (given == wanted) return given != ir::Type::none;
  if (given == ir::Type::none || ir::is_float(given) || ir::is_float(wanted)) return false;
  return !ir::is_bool(wanted) && ir::bytes(given) == ir::bytes(wanted);
}

std::optional<Array> array_around(const HostTensor& tensor, const DType& dtype, int ndim, const Device& device,
                                  std::string* why, std::shared_ptr<Loan> loan) {
  std::string fault;
  if (dtype.is_struct())
    fault = "structs are no numbers of a tensor";
  else if (tensor.type != dtype.type)
    fault = "its numbers are of another type";
  else if (tensor.ndim != ndim + dtype.inner_dimensions())
    fault = "it has another number of dimensions";
  else
    fault = fault_of(tensor, dtype, ndim);
  if (!fault.empty()) {
    if (why) *why = std::move(fault);
    return std::nullopt;
  }
  Extent extent(0);
  extent.rank = ndim;
  for (int k = 0; k < ndim; ++k) extent.n[std::size_t(k)] = tensor.shape[k];
  return Array::around(device, extent, tensor.is_contiguous() ? nullptr : tensor.stride, dtype, tensor.data,
                       tensor.owner, std::move(loan));
}

}  // namespace weft::python
