// Values on the host, and the ways in which Python's objects become the bytes that kernels and arrays take.
#include "pack.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "../../frontend/types/half.h"
#include "module.h"
#include "trace/ids.h"

namespace weft::python {

using ir::Type;

namespace {

template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
T take(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double real(PyObject* number) {
  const double value = PyFloat_CheckExact(number) ? PyFloat_AsDouble(number) : [&] {
    if (PyUnicode_Check(number)) throw nb::type_error("a text is no number");
    return PyFloat_AsDouble(number);
  }();
  if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

[[noreturn]] void out_of_range(Type type) {
  PyErr_Format(PyExc_OverflowError, "the integer is out of the range of %s", ir::user_name(type));
  throw nb::python_error();
}

void pack_signed(PyObject* index, Type type, std::byte* to) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index, &overflow);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  const int unused = 64 - ir::bits(type);
  const std::int64_t kept = std::int64_t(std::uint64_t(value) << unused) >> unused;
  if (overflow || kept != value) out_of_range(type);
  std::memcpy(to, &value, std::size_t(ir::bytes(type)));
}

void pack_unsigned(PyObject* index, Type type, std::byte* to) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(index);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw nb::python_error();
    PyErr_Clear();
    out_of_range(type);
  }
  if ((value & ir::mask(type)) != value) out_of_range(type);
  std::memcpy(to, &value, std::size_t(ir::bytes(type)));
}

// Both flat sequences and rows of a matrix.
void pack_sequence(PyObject* value, const DType& dtype, std::byte* to, int& next) {
  const nb::object items = nb::steal(PySequence_Fast(value, "this is no value of the kernel's type"));
  if (!items.is_valid()) throw nb::python_error();
  const Py_ssize_t n = PySequence_Size(items.ptr());
  for (Py_ssize_t k = 0; k < n; ++k) {
    const nb::object item = nb::steal(PySequence_GetItem(items.ptr(), k));
    if (!item.is_valid()) throw nb::python_error();
    if (PySequence_Check(item.ptr()) && !PyUnicode_Check(item.ptr())) {
      pack_sequence(item.ptr(), dtype, to, next);
      continue;
    }
    if (next == dtype.count()) expect_count(std::size_t(next) + 1, std::size_t(next), dtype.name.c_str());
    const detail::Leaf& leaf = dtype.leaves[std::size_t(next++)];
    pack_scalar(item.ptr(), leaf.type, to + leaf.offset);
  }
}

void pack_struct(PyObject* value, const DType& dtype, std::byte* to) {
  const bool dict = PyDict_Check(value);
  for (const Field& f : dtype.fields) {
    if (f.ndim) continue;
    const nb::object field = nb::steal(dict ? PyObject_GetItem(value, f.key) : PyObject_GetAttr(value, f.key));
    if (!field.is_valid()) throw nb::python_error();
    pack_value(field.ptr(), *f.dtype, to + f.offset);
  }
}

// The flat numbers of a value in the package's classes, which may nest by rows.
nb::object get(const Value& v, int k) {
  if (k < 0 || k >= v.dtype().count()) throw nb::index_error("no component has this number");
  const detail::Leaf& leaf = v.dtype().leaves[std::size_t(k)];
  return unpack_scalar(v.bytes() + leaf.offset, leaf.type);
}

void set(Value& v, int k, nb::handle number) {
  if (k < 0 || k >= v.dtype().count()) throw nb::index_error("no component has this number");
  const detail::Leaf& leaf = v.dtype().leaves[std::size_t(k)];
  pack_scalar(number.ptr(), leaf.type, v.bytes() + leaf.offset);
}

nb::list to_list(const Value& v) {
  nb::list list;
  for (int k = 0; k < v.dtype().count(); ++k) list.append(get(v, k));
  return list;
}

/// The letter by which the module struct names a scalar.
const char* format_of(Type type) {
  constexpr const char* formats[ir::kTypeCount] = {"", "?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "f", "d"};
  return formats[int(type)];
}

struct Shape {
  Py_ssize_t shape[2], strides[2];
};

int get_buffer(PyObject* self, Py_buffer* view, int) noexcept {
  Value* const v = nb::inst_ready(self) ? nb::inst_ptr<Value>(self) : nullptr;
  if (!v) {
    PyErr_SetString(PyExc_BufferError, "the value was not initialised");
    view->obj = nullptr;
    return -1;
  }
  const DType& t = v->dtype();
  const bool matrix = t.kind == DType::Kind::matrix;
  auto* shape = new Shape{{matrix ? t.rows : t.count(), t.columns}, {}};
  const Py_ssize_t bytes = Py_ssize_t(ir::bytes(t.type));
  shape->strides[0] = matrix ? bytes * t.columns : bytes;
  shape->strides[1] = bytes;
  view->buf = v->bytes();
  view->obj = Py_NewRef(self);
  view->len = Py_ssize_t(t.size);
  view->itemsize = bytes;
  view->readonly = 0;
  view->ndim = matrix ? 2 : 1;
  view->format = const_cast<char*>(format_of(t.type));
  view->shape = shape->shape;
  view->strides = shape->strides;
  view->suboffsets = nullptr;
  view->internal = shape;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept { delete static_cast<Shape*>(view->internal); }

PyType_Slot value_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                             {0, nullptr}};

}  // namespace

void pack_scalar(PyObject* number, Type type, std::byte* to) {
  switch (type) {
    case Type::f32: return put(to, float(real(number)));
    case Type::f64: return put(to, real(number));
    case Type::f16: return put(to, half(real(number)));
    case Type::b1: {
      if (PySequence_Check(number)) throw nb::type_error("a sequence is no bool");
      const int truth = PyObject_IsTrue(number);
      if (truth < 0) throw nb::python_error();
      return put(to, std::uint8_t(truth));
    }
    case Type::none: throw nb::type_error("a struct is no number");
    default: break;
  }
  if (PyLong_CheckExact(number))
    return ir::is_signed(type) ? pack_signed(number, type, to) : pack_unsigned(number, type, to);
  const nb::object index = nb::steal(PyNumber_Index(number));
  if (!index.is_valid()) throw nb::python_error();
  ir::is_signed(type) ? pack_signed(index.ptr(), type, to) : pack_unsigned(index.ptr(), type, to);
}

nb::object unpack_scalar(const std::byte* from, Type type) {
  switch (type) {
    case Type::b1: return nb::bool_(take<std::uint8_t>(from) != 0);
    case Type::i8: return nb::int_(take<std::int8_t>(from));
    case Type::i16: return nb::int_(take<std::int16_t>(from));
    case Type::i32: return nb::int_(take<std::int32_t>(from));
    case Type::i64: return nb::int_(take<std::int64_t>(from));
    case Type::u8: return nb::int_(take<std::uint8_t>(from));
    case Type::u16: return nb::int_(take<std::uint16_t>(from));
    case Type::u32: return nb::int_(take<std::uint32_t>(from));
    case Type::u64: return nb::int_(take<std::uint64_t>(from));
    case Type::f16: return nb::float_(double(float(take<half>(from))));
    case Type::f32: return nb::float_(double(take<float>(from)));
    case Type::f64: return nb::float_(take<double>(from));
    case Type::none: break;
  }
  return nb::none();
}

void pack_value(PyObject* value, const DType& dtype, std::byte* to) {
  if (dtype.kind == DType::Kind::scalar) return pack_scalar(value, dtype.type, to);
  if (dtype.is_struct()) return pack_struct(value, dtype, to);
  const Value* const v = as<const Value>(value);
  if (v && &v->dtype() == &dtype) {
    std::memcpy(to, v->bytes(), dtype.size);
    return;
  }
  if (PyUnicode_Check(value) || !PySequence_Check(value))
    throw nb::type_error(("this is no value of type " + dtype.name).c_str());
  int next = 0;
  pack_sequence(value, dtype, to, next);
  if (next != dtype.count()) expect_count(std::size_t(next), std::size_t(dtype.count()), dtype.name.c_str());
}

Value::Value(const DType& dtype, nb::handle components) : dtype_(&dtype), bytes_(dtype.size) {
  if (!components.is_none()) pack_value(components.ptr(), dtype, bytes_.data());
}

Value::Value(const DType& dtype, const std::byte* bytes) : dtype_(&dtype), bytes_(bytes, bytes + dtype.size) {}

void add_host_values(nb::module_& m) {
  nb::class_<Value>(m, "Value", nb::type_slots(value_slots), nb::dynamic_attr(),
                    "A vector, matrix, quaternion or transform on the host.")
      .def(
          "__init__",
          [](Value* self, nb::handle dtype, nb::handle components) { new (self) Value(type_from(dtype), components); },
          nb::arg("dtype"), nb::arg("components").none() = nb::none(),
          "Makes a value of a type: zeros, or of a sequence of its numbers.")
      .def_prop_ro("dtype_", [](const Value& v) { return v.dtype().object(); })
      .def("__len__", [](const Value& v) { return v.dtype().count(); })
      .def("get", &get)
      .def("set", &set)
      .def("tolist", &to_list, "All numbers, row by row.")
      .def("equals", [](const Value& a, const Value& b) {
        if (&a.dtype() != &b.dtype()) return false;
        for (int k = 0; k < a.dtype().count(); ++k)
          if (!get(a, k).equal(get(b, k))) return false;
        return true;
      });
}

}  // namespace weft::python
