// Checks and packs the arguments of launches.
#include "arguments.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "../../../frontend/types/layout.h"
#include "../../../runtime/launch.h"
#include "../pack.h"
#include "../trace/ids.h"
#include "tensors.h"

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

[[noreturn]] void refuse_array(const Part& part, const Array* given) {
  std::string wanted = "an array of " + part.dtype->name + " with " + std::to_string(part.ndim) + " dimension(s)";
  std::string text = "argument " + std::to_string(part.argument) + part.name + " is ";
  text += given ? "an array of " + given->dtype().name + " with " + std::to_string(given->ndim()) + " dimension(s)"
                : "no array";
  throw nb::type_error((text + ", and the kernel takes " + wanted).c_str());
}

}  // namespace

nb::object follow(PyObject* from, const std::vector<PyObject*>& path) {
  nb::object field = nb::borrow(from);
  for (PyObject* const key : path) {
    field =
        nb::steal(PyDict_Check(field.ptr()) ? PyObject_GetItem(field.ptr(), key) : PyObject_GetAttr(field.ptr(), key));
    if (!field.is_valid()) throw nb::python_error();
  }
  return field;
}

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
  // What is left of arrays around the host's memory, in work that still runs or on a tape, needs that memory further.
  wrapped_.clear();
  for (const std::shared_ptr<Loan>& loan : loans_)
    if (loan.use_count() > 1) loan->keep();
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
  if (!wrap(part, value, device)) refuse_array(part, nullptr);
  arg.array = wrapped_.back().get();
}

bool Arguments::wrap(const Part& part, PyObject* value, nb::handle device) {
  std::optional<HostTensor> tensor = host_tensor(value);
  if (!tensor) return false;
  if (!device_) device_ = device_from(device);
  auto loan = std::make_shared<Loan>(tensor->owner.ptr());
  std::optional<Array> around = array_around(*tensor, *part.dtype, part.ndim, *device_, nullptr, loan);
  if (!around) return false;
  loans_.push_back(std::move(loan));
  kept_.push_back(std::move(tensor->owner));
  wrapped_.push_back(std::make_unique<Array>(*std::move(around)));
  return true;
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

void Arguments::refuse_more(int parts) const {
  if (count_ + std::size_t(parts) > std::size_t(detail::kMostParameters))
    throw nb::type_error("a kernel takes at most 64 parameters, with those for volumes and meshes that it has by ids");
}

void Arguments::add(Array array) {
  refuse_more(1);
  wrapped_.push_back(std::make_unique<Array>(std::move(array)));
  const int before = count_ ? parts().back().argument : 0;
  detail::HostArg& arg = next_arg();
  arg.argument = before + 1;
  arg.array = wrapped_.back().get();
  ++count_;
}

void Arguments::add(const Mesh& mesh, detail::GivenStructures& structures) {
  constexpr int parts_of_mesh = detail::Parameter<Var<MeshArrays>>::parts;
  refuse_more(parts_of_mesh);
  meshes_.push_back(mesh);
  const int before = count_ ? parts().back().argument : 0;
  detail::HostArg* const first = &next_arg();
  for (int k = 0; k < parts_of_mesh; ++k, ++count_) next_arg().argument = before + 1;
  detail::Argument<Var<MeshArrays>>(mesh).get(first, structures);
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
      nb::object field = follow(from, part.path);
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
    // The converter names the argument.
    PyObject* const kinds[] = {PyExc_TypeError, PyExc_ValueError, PyExc_OverflowError, PyExc_AttributeError,
                               PyExc_KeyError};
    if (std::ranges::none_of(kinds, [&](PyObject* kind) { return e.matches(kind); })) throw;
  }
  const Param& param = kernel.params()[std::size_t(position)];
  const nb::object wanted =
      param.ndim ? nb::object(nb::make_tuple(param.dtype->object(), param.ndim)) : param.dtype->object();
  converted = nb::borrow(converter)(handle, position, wanted, nb::handle(value));
  take_all(converted.ptr());
  kept_.push_back(std::move(converted));
}

}  // namespace weft::python
