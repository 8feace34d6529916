// Arrays in Python: their shapes, elements, views and gradients.
#include "arrays.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "../../../runtime/core/view.h"
#include "../module.h"
#include "../pack.h"
#include "numbers.h"
#include "reports.h"
#include "tapes.h"
#include "wrapped.h"

namespace weft::python {

namespace {

/// The class of arrays that the package has named; never let go.
PyTypeObject* array_class = nullptr;

int checked_ndim(const Extent& extent) {
  if (extent.rank < 1 || extent.rank > 4) throw nb::value_error("an array has 1 to 4 dimensions");
  return extent.rank;
}

nb::tuple shape_of(const Array& a) {
  nb::list shape;
  for (int k = 0; k < a.ndim(); ++k) shape.append(a.shape(k));
  return nb::tuple(shape);
}

nb::tuple strides_of(const Array& a) {
  nb::list strides;
  for (int k = 0; k < a.ndim(); ++k) strides.append(a.stride(k));
  return nb::tuple(strides);
}

nb::object python_type(const Array& a) { return a.dtype().python ? nb::borrow(a.dtype().python) : nb::none(); }

// ---- The host's view of elements

nb::object ndarray(void* data, const Array& a, bool contiguous, nb::handle owner) {
  const DType& t = a.dtype();
  const std::int64_t scalar = ir::bytes(t.type);
  std::size_t shape[6];
  std::int64_t strides[6];
  std::size_t ndim = 0;
  std::int64_t tight = a.element_bytes() / scalar;
  for (int k = a.ndim() - 1; k >= 0; --k) {
    strides[k] = contiguous ? tight : a.stride(k) / scalar;
    tight *= a.shape(k);
  }
  for (; ndim < std::size_t(a.ndim()); ++ndim) shape[ndim] = std::size_t(a.shape(int(ndim)));
  if (t.kind == DType::Kind::matrix) {
    shape[ndim] = std::size_t(t.rows), strides[ndim++] = t.columns;
    shape[ndim] = std::size_t(t.columns), strides[ndim++] = 1;
  } else if (t.kind != DType::Kind::scalar) {
    shape[ndim] = std::size_t(t.count()), strides[ndim++] = 1;
  }
  return nb::cast(nb::ndarray<nb::numpy>(data, ndim, shape, owner, strides, number_of(t.type)));
}

bool divides_strides(const Array& a) {
  const std::int64_t scalar = ir::bytes(a.dtype().type);
  for (int k = 0; k < a.ndim(); ++k)
    if (a.stride(k) % scalar) return false;
  return true;
}

std::vector<std::byte> copy_out(const Array& a) {
  auto bytes = detail::host_vector<std::byte>(std::uint64_t(a.size()) * a.element_bytes());
  {
    Released released;
    a.read(bytes.data());
  }
  show_reports();
  return bytes;
}

/// An array of NumPy's on the elements themselves.
/// Errors: TypeError for structs, and where strides are no multiples of the numbers' size; Error(unsupported) where the
/// host does not have the elements, and while a tape records: it cannot know what the host does to them.
nb::object shared_numpy(nb::handle self) {
  const Array& a = array_from(self);
  if (a.dtype().is_struct()) throw nb::type_error("elements are structs: numpy() of such arrays is the package's");
  if (!divides_strides(a)) throw nb::type_error("strides are no multiples of the size of the numbers");
  if (a.size() == 0) return ndarray(nullptr, a, true, self);
  std::byte* address = nullptr;
  {
    Released released;
    address = a.host_address();
  }
  show_reports();
  remember_memory(a);
  return ndarray(address, a, false, self);
}

/// An array of NumPy's: the elements themselves where the host has them, else a copy.
nb::object numpy(nb::handle self) {
  const Array& a = array_from(self);
  if (a.size() > 0 && divides_strides(a)) try {
      return shared_numpy(self);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unsupported) throw;
    }
  if (a.dtype().is_struct()) throw nb::type_error("elements are structs: numpy() of such arrays is the package's");
  auto* const copy = new std::vector<std::byte>(copy_out(a));
  const nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<std::byte>*>(p); });
  return ndarray(copy->data(), a, true, owner);
}

nb::bytearray bytes(const Array& a) {
  const std::vector<std::byte> copy = copy_out(a);
  return nb::bytearray(copy.data(), copy.size());
}

/// The bytes of an object that has them in a row.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }
  const void* data() const { return view_.buf; }
  std::uint64_t size() const { return std::uint64_t(view_.len); }

 private:
  Py_buffer view_;
};

void assign_bytes(Array& a, nb::handle object) {
  const Buffer given(object);
  const std::uint64_t wanted = std::uint64_t(a.size()) * a.element_bytes();
  if (given.size() != wanted)
    throw nb::value_error(
        ("the array has " + std::to_string(wanted) + " bytes, and " + std::to_string(given.size()) + " are given")
            .c_str());
  Released released;
  a.assign(given.data());
}

void fill(Array& a, nb::handle value) {
  std::vector<std::byte> element(a.element_bytes());
  pack_value(value.ptr(), a.dtype(), element.data());
  a.fill(element.data());
}

nb::list read(const Array& a, nb::handle indices) {
  const Extent at = extent_from(indices);
  if (at.rank != a.ndim()) throw nb::index_error("an element is named by an index for each dimension");
  std::int64_t place[4];
  for (int k = 0; k < a.ndim(); ++k) {
    place[k] = at[k] < 0 ? at[k] + a.shape(k) : at[k];
    if (place[k] < 0 || place[k] >= a.shape(k)) throw nb::index_error("an index is out of range");
  }
  std::vector<std::byte> element;
  {
    Released released;
    element = a.element(place);
  }
  show_reports();
  nb::list numbers;
  for (const detail::Leaf& l : a.dtype().leaves) numbers.append(unpack_scalar(element.data() + l.offset, l.type));
  return numbers;
}

// ---- Gradients

void check_reals(const Array& a) {
  if (!a.dtype().has_reals()) throw nb::type_error("only arrays of real numbers have gradients");
}

void require_gradient(Array& a) {
  check_reals(a);
  if (!a.gradient_is_taken) return a.need_gradient();
  // What the storage holds is not this array's any more: other arrays may use it.
  Array own = Array::empty(a.device(), a.extent(), a.dtype());
  own.zero();
  a.gradient = make_object(std::move(own));
  a.gradient_is_set = true;
  a.gradient_is_taken = false;
}

void note_on_tape(nb::handle to, nb::handle from) {
  PyTape* const tape = PyTape::current();
  if (!tape) return;
  tape->note(from);
  tape->note(to);
}

/// Takes the gradient away. Its storage stays: it belongs to the memory, on which other arrays may stand.
void remove_gradient(Array& a) {
  a.gradient_is_set = false;
  a.gradient_is_taken = a.has_grad();
  a.gradient_source.reset();
  a.gradient.reset();
}

/// Makes another array the gradient: what goes back to this array is added to it.
void set_gradient(Array& a, nb::object g) {
  if (g.is_none()) return remove_gradient(a);
  const Array& given = array_from(g);
  if (&given.dtype() != &a.dtype() || given.ndim() != a.ndim())
    throw nb::type_error("a gradient has the type and the number of dimensions of its array");
  for (int k = 0; k < a.ndim(); ++k)
    if (given.shape(k) != a.shape(k)) throw nb::value_error("a gradient has the shape of its array");
  check_reals(a);
  a.need_gradient();
  a.gradient_is_set = true;
  a.gradient_is_taken = false;
  a.gradient_source.reset();
  a.gradient = std::move(g);
}

PyTypeObject* base_class() { return reinterpret_cast<PyTypeObject*>(nb::type<Array>().ptr()); }

void init(nb::handle object, const Array& other) {
  if (!PyType_IsSubtype(Py_TYPE(object.ptr()), base_class())) throw nb::type_error("this is no array");
  if (nb::inst_ready(object)) {
    *nb::inst_ptr<Array>(object) = other;
    return;
  }
  new (nb::inst_ptr<Array>(object)) Array(other);
  nb::inst_mark_ready(object);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
#if PY_VERSION_HEX >= 0x03090000
  Py_VISIT(Py_TYPE(self));
#endif
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<Array>(self)->gradient.ptr());
  Py_VISIT(nb::inst_ptr<Array>(self)->gradient_source.ptr());
  return 0;
}

int clear(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  nb::inst_ptr<Array>(self)->gradient.reset();
  nb::inst_ptr<Array>(self)->gradient_source.reset();
  return 0;
}

PyType_Slot array_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};

}  // namespace

// ---- Array

Array Array::empty(const Device& device, const Extent& extent, const DType& dtype) {
  Array a(dtype, checked_ndim(extent));
  a.create(device, extent, extent.rank, dtype.holds_arrays);
  if (dtype.holds_arrays) a.zero();
  return a;
}

Array Array::inside(const ArrayBase& bytes, std::uint64_t offset, const Extent& extent, const DType& dtype) {
  Array a(dtype, checked_ndim(extent));
  std::int64_t step = dtype.size;
  for (int k = extent.rank - 1; k >= 0; --k) {
    a.shape_[std::size_t(k)] = extent[k];
    a.stride_[std::size_t(k)] = step;
    step *= std::max<std::int64_t>(extent[k], 1);
  }
  a.storage_ = bytes.storage();
  a.address_ = bytes.address() + offset;
  return a;
}

Array Array::around(const Device& device, const Extent& extent, const std::int64_t* strides, const DType& dtype,
                    void* memory, nb::object owner, std::shared_ptr<Loan> loan) {
  if (dtype.holds_arrays) throw nb::type_error("memory of the host is no array of structs that hold arrays");
  if (reinterpret_cast<std::uintptr_t>(memory) % dtype.align)
    throw nb::value_error("the memory does not begin at a multiple of the size of its numbers");
  Array a(dtype, checked_ndim(extent));
  std::int64_t step = dtype.size;
  for (int k = extent.rank - 1; k >= 0; --k) {
    if (extent[k] < 0 || (strides && (strides[k] < 0 || strides[k] % dtype.align)))
      throw nb::value_error("a size or a stride is negative, or no multiple of the size of the numbers");
    a.shape_[std::size_t(k)] = extent[k];
    a.stride_[std::size_t(k)] = strides ? strides[k] : step;
    step *= std::max<std::int64_t>(extent[k], 1);
  }
  // The bytes from the first to the last element; the array is a view of them.
  std::uint64_t bytes = dtype.size;
  for (int k = 0; k < extent.rank; ++k)
    bytes = extent[k] == 0 || bytes == 0 ? 0 : bytes + std::uint64_t((extent[k] - 1) * a.stride_[std::size_t(k)]);
  const HostRange part{static_cast<std::byte*>(memory), bytes};
  const HostRange whole = whole_memory(owner, part);
  std::shared_ptr<void> keeper = std::move(loan);
  if (!keeper) keeper = hold(std::move(owner));
  const ArrayBase all = bytes_on(device, part, whole, std::move(keeper));
  a.storage_ = all.storage();
  a.address_ = all.address();
  return a;
}

Extent Array::extent() const {
  Extent e(0);
  e.rank = ndim_;
  e.n = shape_;
  return e;
}

void Array::zero() {
  static constexpr std::byte kZeros[256] = {};
  if (element_bytes_ <= sizeof kZeros) return fill_element(kZeros);
  const std::vector<std::byte> bytes(element_bytes_);
  fill_element(bytes.data());
}
void Array::fill(const std::byte* element) { fill_element(element, leaves()); }
void Array::assign(const void* elements) { upload(elements, std::uint64_t(size()), leaves()); }

std::byte* Array::host_address() const {
  if (is_contiguous()) return host_bytes();
  return detail::View(storage_, address_, std::int64_t(extent_bytes()), 1).host_bytes();
}

std::vector<std::byte> Array::element(const std::int64_t* indices) const {
  std::vector<std::byte> bytes(element_bytes_);
  read_element(indices, bytes.data());
  return bytes;
}

Array Array::sliced(int dimension, std::int64_t lo, std::int64_t hi, std::int64_t step) const {
  Array a(dtype(), *this);
  a.restrict(dimension, lo, hi, step);
  return a;
}
Array Array::row(std::int64_t i) const {
  if (ndim_ < 2) throw nb::index_error("an array of one dimension has no rows");
  Array a(dtype(), ndim_ - 1);
  a.take_row(*this, i);
  return a;
}
Array Array::reshaped(const Extent& extent) const {
  Array a(dtype(), checked_ndim(extent));
  a.take_reshaped(*this, extent, extent.rank);
  return a;
}
Array Array::permuted(const Extent& axes) const {
  Array a(dtype(), ndim_);
  a.take_permuted(*this, axes);
  return a;
}
Array Array::as_scalars() const {
  if (dtype().is_struct()) throw nb::type_error("structs have scalars of several types");
  if (ndim_ == 4) throw nb::value_error("an array has 1 to 4 dimensions");
  Array a(scalar_type_of(dtype().type), ndim_ + 1);
  a.take_scalars(*this);
  return a;
}
Array Array::as_elements(const DType& other) const {
  if (dtype().kind != DType::Kind::scalar || other.is_struct() || other.type != dtype().type)
    throw nb::type_error("numbers are viewed as elements of the same numbers");
  const auto last = std::size_t(ndim_ - 1);
  if (shape_[last] != other.count() || (stride_[last] != element_bytes_ && other.count() != 1))
    throw nb::value_error("the last dimension holds no whole elements, one beside the other");
  const int dimensions = ndim_ == 1 ? 1 : ndim_ - 1;
  Array a(other, dimensions);
  a.storage_ = storage_;
  a.address_ = address_;
  for (std::size_t k = 0; k < std::size_t(dimensions); ++k) {
    a.shape_[k] = ndim_ == 1 ? 1 : shape_[k];
    a.stride_[k] = ndim_ == 1 ? std::int64_t(other.size) : stride_[k];
  }
  return a;
}
Array Array::viewed(const DType& other) const {
  if (other.size != element_bytes_ || other.holds_arrays || dtype().holds_arrays)
    throw nb::type_error("an array is viewed as elements of the same size, and not of structs that hold arrays");
  Array a(other, ndim_);
  a.take_same(*this);
  return a;
}

nb::object gradient_of(const Array& a) {
  if (a.gradient_source.is_valid()) return a.gradient_source();
  if (a.gradient.is_valid()) return a.gradient;
  if (!a.shows_gradient()) return nb::none();
  Array g(a.dtype(), a);
  g.become_gradient(a);
  a.gradient = make_object(std::move(g));
  return a.gradient;
}

nb::object make_object(Array array, nb::handle cls) {
  nb::object object = nb::inst_alloc(cls.is_valid() && !cls.is_none() ? cls : reinterpret_cast<PyObject*>(array_class));
  new (nb::inst_ptr<Array>(object)) Array(std::move(array));
  nb::inst_mark_ready(object);
  return object;
}

Array* array_of(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if (type != array_class && !PyType_IsSubtype(type, base_class())) return nullptr;
  return nb::inst_ready(object) ? nb::inst_ptr<Array>(object) : nullptr;
}

Array& array_from(nb::handle object) {
  Array* const a = array_of(object.ptr());
  if (!a) throw nb::type_error("this is no array of weft");
  return *a;
}

Extent extent_from(nb::handle shape) {
  if (PyLong_CheckExact(shape.ptr()) || !PySequence_Check(shape.ptr())) {
    const Py_ssize_t n = PyNumber_AsSsize_t(shape.ptr(), PyExc_OverflowError);
    if (n == -1 && PyErr_Occurred()) throw nb::python_error();
    return Extent(std::int64_t(n));
  }
  Extent extent(0);
  extent.rank = 0;
  const Py_ssize_t rank = PySequence_Size(shape.ptr());
  if (rank < 0) throw nb::python_error();
  if (rank > 4) throw nb::value_error("more than four dimensions are given");
  for (Py_ssize_t k = 0; k < rank; ++k) {
    const nb::object item = nb::steal(PySequence_GetItem(shape.ptr(), k));
    if (!item.is_valid()) throw nb::python_error();
    const Py_ssize_t n = PyNumber_AsSsize_t(item.ptr(), PyExc_OverflowError);
    if (n == -1 && PyErr_Occurred()) throw nb::python_error();
    extent.n[std::size_t(extent.rank++)] = std::int64_t(n);
  }
  return extent;
}

void add_arrays(nb::module_& m) {
  nb::class_<Array> cls(m, "Array", nb::type_slots(array_slots), nb::is_weak_referenceable(),
                        "An array on a device: the base of the package's class of arrays.");
  array_class = base_class();
  cls.def_prop_ro("shape", &shape_of)
      .def_prop_ro("strides", &strides_of)
      .def_prop_ro("ndim", &Array::ndim)
      .def_prop_ro("size", &Array::size)
      .def_prop_ro("element_dtype", [](const Array& a) { return a.dtype().object(); })
      .def_prop_ro("dtype", &python_type)
      .def_prop_ro("native_device", [](const Array& a) { return a.device(); })
      .def_prop_ro("ptr",
                   [](const Array& a) -> nb::object {
                     if (a.size() == 0) return nb::none();
                     remember_memory(a);
                     return nb::int_(a.address());
                   })
      .def_prop_ro("itemsize", &Array::element_bytes)
      .def_prop_ro("nbytes", [](const Array& a) { return a.size() * std::int64_t(a.element_bytes()); })
      .def_prop_ro("is_contiguous", &Array::is_contiguous)
      .def_prop_ro("is_freed", &Array::is_freed)
      .def_prop_ro("is_null", &Array::is_null)
      .def_prop_ro("has_grad", &Array::shows_gradient)
      .def_prop_ro("has_given_gradient", &Array::has_given_gradient)
      .def_prop_rw(
          "gradient_source",
          [](const Array& a) { return a.gradient_source.is_valid() ? a.gradient_source : nb::none(); },
          [](Array& a, nb::object source) {
            if (!source.is_none()) a.gradient_is_taken = false;
            a.gradient_source = source.is_none() ? nb::object() : std::move(source);
          },
          nb::for_setter(nb::arg("value").none()))
      .def("require_gradient", &require_gradient, "Gives the array gradient storage, set to zero.")
      .def_prop_rw("grad", &gradient_of, &set_gradient, nb::for_setter(nb::arg("value").none()))
      .def("fill", &fill)
      .def("zero", &Array::zero)
      .def("assign_bytes", &assign_bytes)
      .def("copy_from",
           [](nb::handle self, nb::handle other) {
             Array &a = array_from(self), &from = array_from(other);
             if (&a.dtype() != &from.dtype() || a.ndim() != from.ndim())
               throw nb::type_error("a copy is of arrays of one type and number of dimensions");
             note_on_tape(self, other);
             Released released;
             a.copy(from);
           })
      .def("copy_range",
           [](nb::handle self, nb::handle other, std::int64_t to_offset, std::int64_t from_offset, std::int64_t count) {
             Array &a = array_from(self), &from = array_from(other);
             if (&a.dtype() != &from.dtype()) throw nb::type_error("a copy is of arrays of one type");
             note_on_tape(self, other);
             Released released;
             Array::copy_part(a, from, to_offset, from_offset, count);
           })
      .def(
          "clone",
          [](const Array& a, nb::handle device) {
            Array copy = Array::empty(device.is_none() ? a.device() : device_from(device), a.extent(), a.dtype());
            {
              Released released;
              copy.copy(a);
            }
            return make_object(std::move(copy));
          },
          nb::arg("device").none() = nb::none())
      .def("bytes", &bytes)
      .def("numpy", [](nb::handle self) { return numpy(self); })
      .def("shared_numpy", [](nb::handle self) { return shared_numpy(self); })
      .def("host_address",
           [](const Array& a) {
             std::byte* address = nullptr;
             {
               Released released;
               address = a.host_address();
             }
             show_reports();
             return reinterpret_cast<std::uintptr_t>(address);
           })
      .def("wait",
           [](const Array& a) {
             {
               Released released;
               a.wait();
             }
             show_reports();
           })
      .def("free",
           [](Array& a) {
             Released released;
             a.free();
           })
      .def("reshape", [](const Array& a, nb::handle shape) { return make_object(a.reshaped(extent_from(shape))); })
      .def("permute", [](const Array& a, nb::handle axes) { return make_object(a.permuted(extent_from(axes))); })
      .def("slice", [](const Array& a, int k, std::int64_t lo, std::int64_t hi,
                       std::int64_t step) { return make_object(a.sliced(k, lo, hi, step)); })
      .def("row", [](const Array& a, std::int64_t i) { return make_object(a.row(i)); })
      .def("scalars", [](const Array& a) { return make_object(a.as_scalars()); })
      .def("elements", [](const Array& a, nb::handle dtype) { return make_object(a.as_elements(type_from(dtype))); })
      .def("view", [](const Array& a, nb::handle dtype) { return make_object(a.viewed(type_from(dtype))); })
      .def("read", &read);
  m.def("init", &init,
        "Makes an array that was not initialised, or is to be another one, a handle of the same elements.");
  m.def("set_array_class", [](nb::type_object cls) {
    if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls.ptr()), base_class()))
      throw nb::type_error("the class of arrays is one derived from Array");
    array_class = reinterpret_cast<PyTypeObject*>(cls.release().ptr());
  });
}

}  // namespace weft::python
