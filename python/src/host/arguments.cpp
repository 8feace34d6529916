// Checks and packs the arguments of launches.
#include "arguments.h"

#include <cstring>
#include <new>
#include <string_view>

#include "../../../frontend/types/layout.h"
#include "../pack.h"
#include "../trace/ids.h"

namespace weft::python {

namespace {

PyObject* converter = nullptr;  // never let go

/// Stands in for an array that is left out.
const ArrayBase& no_array(int ndim) {
  struct Null : ArrayBase {
    explicit Null(int ndim) : ArrayBase(ndim, 1) {}
  };
  static const Null none[] = {Null(1), Null(2), Null(3), Null(4)};
  return none[ndim - 1];
}

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

/// A view of an object's memory, as long as this lives.
class Exported {
 public:
  explicit Exported(PyObject* object) : good_(PyObject_GetBuffer(object, &view_, PyBUF_RECORDS) == 0) {
    if (!good_) PyErr_Clear();
  }
  Exported(const Exported&) = delete;
  ~Exported() {
    if (good_) PyBuffer_Release(&view_);
  }
  explicit operator bool() const { return good_; }
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_;
  bool good_;
};

/// The shape, without the dimensions that one element takes; rank 0: the memory holds no such elements.
Extent extent_of(const Py_buffer& view, const DType& dtype, int ndim) {
  Extent extent(0);
  extent.rank = 0;
  const int inside = dtype.kind == DType::Kind::scalar ? 0 : dtype.kind == DType::Kind::matrix ? 2 : 1;
  if (view.ndim != ndim + inside) return extent;
  const Py_ssize_t bytes = view.itemsize;
  if (inside == 1 && (view.shape[ndim] != dtype.count() || view.strides[ndim] != bytes)) return extent;
  if (inside == 2 && (view.shape[ndim] != dtype.rows || view.shape[ndim + 1] != dtype.columns ||
                      view.strides[ndim + 1] != bytes || view.strides[ndim] != bytes * dtype.columns))
    return extent;
  extent.rank = ndim;
  for (int k = 0; k < ndim; ++k) extent.n[std::size_t(k)] = view.shape[k];
  return extent;
}

/// An array around the memory of an object of the buffer protocol, or null where it is none of this type.
std::unique_ptr<Array> wrapped(const Part& part, PyObject* value, const Device& device) {
  if (!PyObject_CheckBuffer(value) || PyBytes_Check(value) || part.dtype->is_struct()) return nullptr;
  const Exported exported(value);
  if (!exported) return nullptr;
  const Py_buffer& view = exported.view();
  if (type_of_format(view.format) != part.dtype->type) return nullptr;
  const Extent extent = extent_of(view, *part.dtype, part.ndim);
  if (extent.rank == 0) return nullptr;
  std::int64_t strides[4];
  for (int k = 0; k < part.ndim; ++k) {
    strides[k] = view.strides[k];
    if (strides[k] < 0) return nullptr;
  }
  return std::make_unique<Array>(Array::around(device, extent, PyBuffer_IsContiguous(&view, 'C') ? nullptr : strides,
                                               *part.dtype, view.buf, nb::borrow(value)));
}

[[noreturn]] void refuse_array(const Part& part, const Array* given) {
  std::string wanted = "an array of " + part.dtype->name + " with " + std::to_string(part.ndim) + " dimension(s)";
  std::string text = "argument " + std::to_string(part.argument) + part.name + " is ";
  text += given ? "an array of " + given->dtype().name + " with " + std::to_string(given->ndim()) + " dimension(s)"
                : "no array";
  throw nb::type_error((text + ", and the kernel takes " + wanted).c_str());
}

}  // namespace

void set_converter(nb::object function) {
  Py_XDECREF(converter);
  converter = function.is_none() ? nullptr : function.release().ptr();
}

std::byte* Arguments::memory(std::size_t bytes) {
  const std::size_t at = (used_ + 15) & ~std::size_t(15);
  if (at + bytes <= kInside) {
    used_ = at + bytes;
    return inside_ + at;
  }
  more_.push_back(std::make_unique<std::byte[]>(bytes));
  return more_.back().get();
}

Arguments::~Arguments() {
  for (std::size_t k = 0; k < array_count_; ++k) Py_DECREF(arrays_[k]);
}

detail::HostArg& Arguments::next_arg() {
  static_assert(std::is_trivially_destructible_v<detail::HostArg>);
  return *new (parts_ + count_ * sizeof(detail::HostArg)) detail::HostArg;
}

void Arguments::take_array(detail::HostArg& arg, const Part& part, PyObject* value, nb::handle device) {
  arg.optional = true;
  if (Array* const a = array_of(value)) {
    if (&a->dtype() != part.dtype || a->ndim() != part.ndim) refuse_array(part, a);
    arg.array = a;
    Py_INCREF(value);
    arrays_[array_count_++] = value;
    return;
  }
  if (value == Py_None) {
    arg.array = &no_array(part.ndim);
    return;
  }
  std::unique_ptr<Array> around = wrapped(part, value, device.is_none() ? current_device() : device_from(device));
  if (!around) refuse_array(part, nullptr);
  arg.array = around.get();
  wrapped_.push_back(std::move(around));
}

void Arguments::take_part(const Part& part, PyObject* value, nb::handle device) {
  detail::HostArg& arg = next_arg();
  arg.argument = part.argument;
  if (part.ndim) {
    take_array(arg, part, value, device);
  } else {
    std::byte* const at = memory(part.dtype->size);
    if (part.dtype->is_struct()) std::memset(at, 0, part.dtype->size);
    pack_value(value, *part.dtype, at);
    arg.value = at;
    arg.leaves = part.dtype->leaves;
  }
  ++count_;
}

void Arguments::take(nb::handle handle, const Kernel& kernel, int position, PyObject* value, nb::handle device) {
  const std::vector<Part>& parts = kernel.parts();
  const std::size_t first = next_;
  const std::size_t arrays = array_count_;
  const auto take_all = [&](PyObject* from) {
    while (array_count_ > arrays) Py_DECREF(arrays_[--array_count_]);
    count_ = next_ = first;
    for (; next_ < parts.size() && parts[next_].argument == position + 1; ++next_) {
      const Part& part = parts[next_];
      if (part.path.empty()) {
        take_part(part, from, device);
        continue;
      }
      nb::object field = nb::borrow(from);
      for (PyObject* const key : part.path) {
        field = nb::steal(PyDict_Check(field.ptr()) ? PyObject_GetItem(field.ptr(), key)
                                                    : PyObject_GetAttr(field.ptr(), key));
        if (!field.is_valid()) throw nb::python_error();
      }
      take_part(part, field.ptr(), device);
      kept_.push_back(std::move(field));
    }
  };
  if (!converter) return take_all(value);
  nb::object converted;
  try {
    return take_all(value);
  } catch (const nb::builtin_exception&) {
  } catch (const nb::python_error& e) {
    if (!e.matches(PyExc_TypeError) && !e.matches(PyExc_AttributeError)) throw;
  }
  const Param& param = kernel.params()[std::size_t(position)];
  const nb::object wanted =
      param.ndim ? nb::object(nb::make_tuple(param.dtype->object(), param.ndim)) : param.dtype->object();
  converted = nb::borrow(converter)(handle, position, wanted, nb::handle(value));
  take_all(converted.ptr());
  kept_.push_back(std::move(converted));
}

}  // namespace weft::python
