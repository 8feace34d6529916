// Arrays of other libraries as weft's: DLPack's tensors, CUDA's interface of arrays, and memory of the host.
#include "exchange.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../../runtime/exchange/dlpack_abi.h"
#include "../../../runtime/exchange/dlpack_cuda.h"
#include "../module.h"
#include "numpy_layout.h"
#include "tensors.h"
#include "wrapped.h"

namespace weft::python {

namespace {

/// A tensor that was taken, and the object that deletes it: the deleter of the other library may be code of Python's,
/// and runs where that is allowed.
struct Borrowed {
  DLManagedTensor tensor;
  PyObject* owner;
};

/// A tensor that `owner` keeps, for the library, which lets it go by the deleter.
std::unique_ptr<Borrowed> borrow_tensor(const DLTensor& given, nb::object owner) {
  auto borrowed = std::make_unique<Borrowed>();
  borrowed->tensor.dl_tensor = given;
  borrowed->tensor.manager_ctx = borrowed.get();
  borrowed->owner = owner.release().ptr();
  borrowed->tensor.deleter = [](DLManagedTensor* self) {
    const std::unique_ptr<Borrowed> end(static_cast<Borrowed*>(self->manager_ctx));
    drop_later(end->owner);
  };
  return borrowed;
}

template <class T>
void delete_taken(PyObject* owner) {
  auto* const tensor = static_cast<T*>(PyCapsule_GetPointer(owner, nullptr));
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}

/// A capsule with a tensor that nobody has taken.
class Capsule {
 public:
  /// Errors: TypeError for other objects, and for a tensor that was taken; BufferError for later versions of DLPack.
  explicit Capsule(nb::object object) : object_(std::move(object)) {
    PyObject* const capsule = object_.ptr();
    if (PyCapsule_IsValid(capsule, kNewCapsule)) {
      auto* const t = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kNewCapsule));
      if (t->version.major > 1) throw nb::buffer_error("the tensor is of a later version of DLPack");
      read_only_ = t->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
      versioned_ = true;
      tensor_ = &t->dl_tensor;
    } else if (PyCapsule_IsValid(capsule, kOldCapsule)) {
      tensor_ = &static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOldCapsule))->dl_tensor;
    } else {
      throw nb::type_error("this is no tensor of DLPack, or one that was taken already");
    }
  }
  Capsule(const Capsule&) = delete;

  const DLTensor& tensor() const { return *tensor_; }
  bool is_read_only() const { return read_only_; }
  /// Takes the tensor out of the capsule, which is marked, so that nobody takes it again. Returns the object that
  /// deletes it.
  nb::object take() {
    void* const managed = PyCapsule_GetPointer(object_.ptr(), versioned_ ? kNewCapsule : kOldCapsule);
    nb::object owner = nb::steal(PyCapsule_New(
        managed, nullptr, versioned_ ? &delete_taken<DLManagedTensorVersioned> : &delete_taken<DLManagedTensor>));
    if (!owner.is_valid()) throw nb::python_error();
    if (PyCapsule_SetName(object_.ptr(), versioned_ ? "used_dltensor_versioned" : "used_dltensor") != 0) {
      PyCapsule_SetDestructor(owner.ptr(), nullptr);
      throw nb::python_error();
    }
    return owner;
  }
  /// Puts a tensor back that was refused, unless something holds it by now.
  void put_back(const nb::object& owner) {
    if (Py_REFCNT(owner.ptr()) != 1) return;
    if (PyCapsule_SetName(object_.ptr(), versioned_ ? kNewCapsule : kOldCapsule) != 0)
      PyErr_Clear();
    else
      PyCapsule_SetDestructor(owner.ptr(), nullptr);
  }

 private:
  nb::object object_;
  const DLTensor* tensor_ = nullptr;
  bool versioned_ = false, read_only_ = false;
};

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
    const detail::DlpackElement e = dlpack_element_of(t);
    if (e.code == type.code && e.bits == type.bits && type.lanes == 1) return t;
  }
  throw nb::type_error("the tensor's type is none of weft's");
}

/// The current device if it is CUDA's device of that number (-1: any), else another one that is; the current one if
/// none is, which then says why it is not.
Device device_of_cuda(int number) {
  const auto is_it = [&](const Device& device) {
    const int twin = detail::cuda_twin(*device.state()).device;
    return twin >= 0 && (number < 0 || twin == number);
  };
  const Device current = current_device();
  if (is_it(current)) return current;
  for (const std::string& name : Device::list()) {
    if (!name.starts_with("vulkan")) continue;
    const Device device(name);
    if (is_it(device)) return device;
  }
  return current;
}

/// The device of an array on a tensor: the one that is given; else one that has the memory. For the host's that is the
/// current device unless it is a GPU, on which programs hardly expect the array; then it is the processor.
Device device_for(const DLTensor& given, nb::handle device) {
  if (!device.is_none()) return device_from(device);
  const int type = int(given.device.device_type);
  if (type == kDLCUDA || type == kDLCUDAManaged) return device_of_cuda(given.device.device_id);
  const Device current = current_device();
  const bool is_gpu = current.name().starts_with("vulkan") && !current.is_software();
  if (current.wraps_host() && !is_gpu) return current;
  try {
    return Device("cpu");
  } catch (const weft::Error&) {  // LLVM is not installed
    return current;
  }
}

/// The number of dimensions of an array of a tensor's elements. Errors: TypeError.
int dimensions_of(const DLTensor& given, const DType& type) {
  const int ndim = given.ndim - type.inner_dimensions();
  if (ndim < 1 || ndim > 4) throw nb::type_error("the tensor's dimensions are no array of that type");
  return ndim;
}

nb::object import_by(const Device& on, const DLTensor& given, const DType& type, const DlpackOptions& options,
                     nb::object owner) {
  const detail::DlpackElement element = dlpack_element_of(type);
  const int ndim = dimensions_of(given, type);
  std::unique_ptr<Borrowed> borrowed = borrow_tensor(given, std::move(owner));
  Array array(type, ndim);
  try {
    Released released;
    array.become(detail::import_tensor(on, &borrowed->tensor, element, ndim, type.size, options));
  } catch (...) {
    Py_DECREF(borrowed->owner);  // the tensor is still ours
    throw;
  }
  (void)borrowed.release();  // the deleter has it, and was called already for a copy
  return make_object(std::move(array));
}

nb::object array_on(const Device& on, const DLTensor& given, const DType& type, bool copy, const nb::object& owner) {
  if (!copy && on.wraps_host()) {
    // Arrays on one memory know each other: another library gives one tensor several times, and parts of it.
    std::optional<HostTensor> tensor = host_tensor(given, owner);
    if (tensor && has_same_bits(tensor->type, type.type)) tensor->type = type.type;
    if (std::optional<Array> array =
            tensor ? array_around(*tensor, type, dimensions_of(given, type), on) : std::nullopt)
      return make_object(*std::move(array));
  }
  return import_by(on, given, type, {.copy = copy}, owner);
}

nb::object from_dlpack(nb::handle object, nb::handle dtype, nb::handle device, bool copy) {
  drop_now();
  Capsule capsule(capsule_from(object));
  const DLTensor given = capsule.tensor();
  if (capsule.is_read_only() && !copy)
    throw nb::buffer_error("the tensor is read only, and kernels may write an array: copy=True gives a copy");
  const DType& type = dtype.is_none() ? scalar_from(given.dtype) : type_from(dtype);
  dimensions_of(given, type);
  const Device on = device_for(given, device);
  const nb::object owner = capsule.take();
  try {
    return array_on(on, given, type, copy, owner);
  } catch (...) {
    capsule.put_back(owner);
    throw;
  }
}

/// The type of numbers that CUDA's interface calls "<f4". Errors: TypeError for those that weft lacks.
DLDataType cuda_type_of(const std::string& text) {
  constexpr std::string_view kKinds = "iuf";  // in the order of DLPack's codes
  const int bytes = text.size() == 3 ? text[2] - '0' : 0;
  const std::size_t code = bytes > 0 ? kKinds.find(text[1]) : std::string_view::npos;
  const bool is_bool = text == "|b1";
  if ((code == std::string_view::npos && !is_bool) || text[0] == '>')
    throw nb::type_error(("numbers of type \"" + text + "\" are none of weft's").c_str());
  return {std::uint8_t(is_bool ? 6 : code), std::uint8_t(8 * bytes), 1};
}

/// What an object says of its memory by CUDA's interface of arrays.
struct CudaDescription {
  DLTensor tensor{};
  std::vector<std::int64_t> shape, strides;  ///< strides in numbers; empty: row-major
  bool read_only = false;
  CUstream_st* stream = nullptr;

  void describe(const nb::dict& given) {
    tensor.dtype = cuda_type_of(nb::cast<std::string>(given["typestr"]));
    const auto memory = nb::cast<std::pair<std::uintptr_t, bool>>(given["data"]);
    tensor.data = reinterpret_cast<void*>(memory.first);
    read_only = memory.second;
    shape = nb::cast<std::vector<std::int64_t>>(given["shape"]);
    if (given.contains("strides") && !given["strides"].is_none())
      for (const std::int64_t stride : nb::cast<std::vector<std::int64_t>>(given["strides"])) {
        if (stride % (tensor.dtype.bits / 8))
          throw nb::type_error("a stride is no multiple of the size of the numbers");
        strides.push_back(stride / (tensor.dtype.bits / 8));
      }
    if (!strides.empty() && strides.size() != shape.size()) throw nb::type_error("each size has a stride, or none has");
    if (given.contains("stream") && !given["stream"].is_none()) {
      const auto number = nb::cast<std::uintptr_t>(given["stream"]);
      stream = number == 1 ? nullptr : reinterpret_cast<CUstream_st*>(number);
    }
    tensor.ndim = int(shape.size());
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
  }
};

/// An array on memory that an object describes by CUDA's interface of arrays, on a device that is the same GPU.
/// Errors: TypeError for a description that is none; BufferError for memory that is read only, and for a device that is
/// none of CUDA's; Error(unsupported), as for DLPack's tensors of CUDA's.
nb::object from_cuda_interface(nb::handle object, nb::handle dtype, nb::handle device, bool copy) {
  drop_now();
  CudaDescription given;
  try {
    given.describe(nb::cast<nb::dict>(object.attr("__cuda_array_interface__")));
  } catch (const nb::cast_error&) {
    throw nb::type_error("the object's __cuda_array_interface__ is no description of an array");
  }
  if (given.read_only && !copy)
    throw nb::buffer_error("the memory is read only, and kernels may write an array: copy=True gives a copy");
  const Device on = device.is_none() ? device_of_cuda(-1) : device_from(device);
  const detail::CudaTwin twin = detail::cuda_twin(*on.state());
  if (twin.device < 0)
    throw nb::buffer_error(("the memory is CUDA's, and that of device " + on.name() + " is not: " + twin.why).c_str());
  given.tensor.device = {kDLCUDA, twin.device};
  const DType& type = dtype.is_none() ? scalar_from(given.tensor.dtype) : type_from(dtype);
  return import_by(on, given.tensor, type, {.copy = copy, .stream = given.stream}, nb::borrow(object));
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
  add_exports(nb::type<Array>());
  m.def("from_tensor", &from_tensor, nb::arg("object"), nb::arg("dtype").none() = nb::none(),
        nb::arg("device").none() = nb::none(), nb::arg("cls").none() = nb::none());
  m.def("from_dlpack", &from_dlpack, nb::arg("object"), nb::arg("dtype").none() = nb::none(),
        nb::arg("device").none() = nb::none(), nb::arg("copy") = false);
  m.def("know_numpy", &know_numpy, nb::arg("sample"));
  m.def("from_cuda_interface", &from_cuda_interface, nb::arg("object"), nb::arg("dtype").none() = nb::none(),
        nb::arg("device").none() = nb::none(), nb::arg("copy") = false);
}

}  // namespace weft::python
