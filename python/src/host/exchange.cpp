// DLPack in Python: arrays for other libraries, and theirs as arrays.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <tuple>

#include "../../../runtime/dlpack.h"
#include "../../../runtime/exchange/dlpack_abi.h"
#include "../module.h"
#include "arrays.h"
#include "reports.h"
#include "tensors.h"
#include "wrapped.h"

namespace weft::python {

namespace {

constexpr const char* kNew = "dltensor_versioned";
constexpr const char* kOld = "dltensor";

detail::DlpackElement element_of(const DType& t) {
  if (t.is_struct()) throw nb::type_error("elements that are structs are no tensor");
  const ir::Type type = t.type;
  const std::uint8_t code = ir::is_bool(type) ? 6 : ir::is_float(type) ? 2 : ir::is_signed(type) ? 0 : 1;
  const bool matrix = t.kind == DType::Kind::matrix;
  const std::uint32_t bytes = std::uint32_t(ir::bytes(type));
  return {code,
          std::uint8_t(8 * bytes),
          bytes,
          t.inner_dimensions(),
          {matrix ? t.rows : t.count(), matrix ? t.columns : 0}};
}

// ---- Arrays for others

/// Deletes a tensor that nobody has taken. The deleter is the library's own, which needs no GIL.
template <class T>
void delete_untaken(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* const tensor = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}
void delete_new(PyObject* capsule) { delete_untaken<DLManagedTensorVersioned>(capsule, kNew); }
void delete_old(PyObject* capsule) { delete_untaken<DLManagedTensor>(capsule, kOld); }

nb::object dlpack(const Array& a, nb::handle, std::optional<std::pair<int, int>> max_version,
                  std::optional<std::pair<int, int>> device, std::optional<bool> copy) {
  DlpackOptions options;
  options.copy = copy.value_or(false);
  if (device) {
    if (device->first != kDLCPU && device->first != kDLCUDA)
      throw nb::buffer_error("an array goes to DLPack's CPU and CUDA alone");
    options.memory = device->first == kDLCPU ? DlpackMemory::host : DlpackMemory::cuda;
  }
  const detail::DlpackElement element = element_of(a.dtype());
  const bool versioned = max_version && max_version->first >= 1;
  void* tensor = nullptr;
  {
    nb::gil_scoped_release released;
    if (versioned)
      tensor = detail::export_versioned(a, element, options);
    else
      tensor = detail::export_unversioned(a, element, options);
  }
  show_reports();
  remember_memory(a);
  PyObject* const capsule = PyCapsule_New(tensor, versioned ? kNew : kOld, versioned ? &delete_new : &delete_old);
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

/// DLPack's type and number of the device that has the memory.
std::pair<int, int> dlpack_device(const Array& a) {
  const std::unique_ptr<DLManagedTensor, void (*)(DLManagedTensor*)> tensor(
      detail::export_unversioned(a, element_of(a.dtype()), {}), [](DLManagedTensor* t) { t->deleter(t); });
  return {int(tensor->dl_tensor.device.device_type), tensor->dl_tensor.device.device_id};
}

// ---- Others' tensors

/// A tensor that was taken, and the object that deletes it: the deleter of the other library may be code of Python's,
/// and runs where that is allowed.
struct Borrowed {
  DLManagedTensor tensor;
  PyObject* owner;
};

template <class T>
void delete_taken(PyObject* owner) {
  auto* const tensor = static_cast<T*>(PyCapsule_GetPointer(owner, nullptr));
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}

/// Takes the tensor out of a capsule, which is marked, so that nobody takes it again. Returns the object that deletes
/// it.
template <class T>
nb::object take(PyObject* capsule, const char* name, const char* used) {
  void* const tensor = PyCapsule_GetPointer(capsule, name);
  nb::object owner = nb::steal(PyCapsule_New(tensor, nullptr, &delete_taken<T>));
  if (!owner.is_valid()) throw nb::python_error();
  if (PyCapsule_SetName(capsule, used) != 0) {
    PyCapsule_SetDestructor(owner.ptr(), nullptr);
    throw nb::python_error();
  }
  return owner;
}

struct Taken {
  const DLTensor& tensor;
  nb::object owner;
};

/// The tensor of a capsule, taken out of it. One that is refused stays in its capsule.
Taken take_tensor(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kNew)) {
    const auto* t = static_cast<const DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kNew));
    if (t->version.major > 1) throw nb::buffer_error("the tensor is of a later version of DLPack");
    if (t->flags & DLPACK_FLAG_BITMASK_READ_ONLY) throw nb::buffer_error("the tensor is read only");
    return {t->dl_tensor, take<DLManagedTensorVersioned>(capsule, kNew, "used_dltensor_versioned")};
  }
  if (PyCapsule_IsValid(capsule, kOld)) {
    const auto* t = static_cast<const DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOld));
    return {t->dl_tensor, take<DLManagedTensor>(capsule, kOld, "used_dltensor")};
  }
  throw nb::type_error("this is no tensor of DLPack, or one that was taken already");
}

nb::object capsule_from(nb::handle object) {
  if (PyCapsule_CheckExact(object.ptr())) return nb::borrow(object);
  if (!nb::hasattr(object, "__dlpack__")) throw nb::type_error("the object has no __dlpack__()");
  const nb::object call = object.attr("__dlpack__");
  try {
    return call(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (const nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
  }
  return call();
}

/// The type of scalars with DLPack's code and width.
const DType& scalar_from(DLDataType type) {
  for (int k = 1; k < ir::kTypeCount; ++k) {
    const DType& t = scalar_type_of(ir::Type(k));
    const detail::DlpackElement e = element_of(t);
    if (e.code == type.code && e.bits == type.bits && type.lanes == 1) return t;
  }
  throw nb::type_error("the tensor's type is none of weft's");
}

nb::object from_dlpack(nb::handle object, nb::handle dtype, nb::handle device, bool copy) {
  drop_now();
  const Taken taken = take_tensor(capsule_from(object).ptr());
  const DLTensor& given = taken.tensor;
  const DType& type = dtype.is_none() ? scalar_from(given.dtype) : type_from(dtype);
  const detail::DlpackElement element = element_of(type);
  const int ndim = given.ndim - element.dimensions;
  if (ndim < 1 || ndim > 4) throw nb::type_error("the tensor's dimensions are no array of that type");
  const Device on = device_from(device);
  if (!copy && on.wraps_host()) {
    // Arrays on one memory know each other: another library gives one tensor several times, and parts of it.
    std::optional<HostTensor> tensor = host_tensor(given, taken.owner);
    if (tensor && has_same_bits(tensor->type, type.type)) tensor->type = type.type;
    if (std::optional<Array> array = tensor ? array_around(*tensor, type, ndim, on) : std::nullopt)
      return make_object(*std::move(array));
  }
  auto borrowed = std::make_unique<Borrowed>();
  borrowed->tensor.dl_tensor = given;
  borrowed->tensor.manager_ctx = borrowed.get();
  borrowed->owner = nb::object(taken.owner).release().ptr();
  borrowed->tensor.deleter = [](DLManagedTensor* self) {
    const std::unique_ptr<Borrowed> end(static_cast<Borrowed*>(self->manager_ctx));
    drop_later(end->owner);
  };
  DlpackOptions options;
  options.copy = copy;
  Array array(type, ndim);
  try {
    nb::gil_scoped_release released;
    array.become(detail::import_tensor(on, &borrowed->tensor, element, ndim, type.size, options));
  } catch (...) {
    Py_DECREF(borrowed->owner);  // the tensor is still ours
    throw;
  }
  (void)borrowed.release();  // the deleter has it, and was called already for a copy
  return make_object(std::move(array));
}

/// An array on the memory of an object that host_tensor() describes.
/// Errors: TypeError for other objects, types and dimensions; Error(unsupported) on a device with memory of its own.
/// \param cls  of the object; None: the package's
nb::object from_tensor(nb::handle object, nb::handle dtype, nb::handle device, nb::handle cls) {
  drop_now();
  std::optional<HostTensor> tensor = host_tensor(object.ptr());
  if (!tensor)
    throw nb::type_error("the object has no writable memory of the host that is described to other libraries");
  const DType* type = nullptr;
  if (dtype.is_none()) {
    if (tensor->type == ir::Type::none) throw nb::type_error("the tensor's type is none of weft's");
    type = &scalar_type_of(tensor->type);
  } else {
    type = &type_from(dtype);
    if (has_same_bits(tensor->type, type->type)) tensor->type = type->type;
  }
  const int ndim = tensor->ndim - type->inner_dimensions();
  if (ndim < 1 || ndim > 4) throw nb::type_error("an array has 1 to 4 dimensions");
  std::string fault;
  std::optional<Array> array = array_around(*tensor, *type, ndim, device_from(device), &fault);
  if (!array) throw nb::type_error(fault.c_str());
  return make_object(*std::move(array), cls);
}

}  // namespace

void add_exchange(nb::module_& m) {
  const nb::handle array = nb::type<Array>();
  nb::cpp_function(&dlpack, nb::scope(array), nb::name("__dlpack__"), nb::is_method(),
                   nb::arg("stream").none() = nb::none(), nb::arg("max_version").none() = nb::none(),
                   nb::arg("dl_device").none() = nb::none(), nb::arg("copy").none() = nb::none());
  nb::cpp_function(&dlpack_device, nb::scope(array), nb::name("__dlpack_device__"), nb::is_method());
  m.def("from_tensor", &from_tensor, nb::arg("object"), nb::arg("dtype").none() = nb::none(),
        nb::arg("device").none() = nb::none(), nb::arg("cls").none() = nb::none());
  m.def("from_dlpack", &from_dlpack, nb::arg("object"), nb::arg("dtype").none() = nb::none(),
        nb::arg("device").none() = nb::none(), nb::arg("copy") = false);
}

}  // namespace weft::python
