// Arrays for other libraries: DLPack's protocol of Python, and CUDA's interface of arrays.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>

#include "../../../runtime/core/state.h"
#include "../../../runtime/exchange/dlpack_abi.h"
#include "../../../runtime/exchange/dlpack_cuda.h"
#include "../module.h"
#include "exchange.h"
#include "reports.h"
#include "wrapped.h"

namespace weft::python {

namespace {

using Pair = std::pair<int, int>;

/// Deletes a tensor that nobody has taken. The deleter is the library's own, which needs no GIL.
template <class T>
void delete_untaken(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* const tensor = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}
void delete_new(PyObject* capsule) { delete_untaken<DLManagedTensorVersioned>(capsule, kNewCapsule); }
void delete_old(PyObject* capsule) { delete_untaken<DLManagedTensor>(capsule, kOldCapsule); }

/// Where an array's memory is, as DLPack counts devices.
struct Home {
  Pair device;         ///< type and number
  bool mapped = true;  ///< the host can read and write it
};

Home home_of(const Array& a) {
  if (a.is_null()) throw nb::value_error("an array that was freed, or never made, has no memory");
  const detail::Storage& storage = *a.storage();
  storage.check_present();
  detail::DeviceState& device = *storage.device;
  const bool mapped = a.size() ? storage.allocation.host != nullptr : device.device->info().host_visible;
  if (mapped && !detail::nearer_to_cuda(device, a.size() ? storage.allocation.address : 0)) return {{kDLCPU, 0}, true};
  const int cuda = detail::cuda_twin(device).device;
  if (cuda >= 0) return {{kDLCUDA, cuda}, mapped};
  const std::string& name = device.device->info().name;
  const std::size_t colon = name.find(':');
  return {{kDLVulkan, colon == std::string::npos ? 0 : std::atoi(name.c_str() + colon + 1)}, false};
}

std::string device_text(const Pair& device) {
  return "(" + std::to_string(device.first) + ", " + std::to_string(device.second) + ")";
}

/// How an array goes to the device that is asked for.
/// Errors: BufferError for devices that cannot have the memory, and for a copy that is needed and not allowed.
DlpackOptions options_for(const Array& a, const Home& home, const Pair& wanted, std::optional<bool> copy) {
  const std::string name = a.device().name();
  DlpackOptions options;
  if (wanted == Pair(kDLCPU, 0)) {
    options.memory = DlpackMemory::host;
    options.copy = copy.value_or(!home.mapped);
    if (!options.copy && !home.mapped)
      throw nb::buffer_error(
          ("the memory of device " + name + " is not the host's: a copy is needed, and copy=False refuses it").c_str());
    return options;
  }
  const detail::CudaTwin twin = detail::cuda_twin(*a.device().state());
  if (wanted.first == kDLCUDA && wanted.second == twin.device) {
    options.memory = DlpackMemory::cuda;
    options.copy = copy.value_or(false);
    return options;
  }
  std::string text = "the memory of device " + name + " is not that of DLPack's device " + device_text(wanted);
  if (wanted.first == kDLCUDA && !twin.why.empty()) text += ": " + twin.why;
  if (wanted.first == kDLVulkan)
    text = "the memory of device " + name + " is neither the host's nor CUDA's (" + twin.why +
           "): dl_device=(1, 0) gives a copy on the host";
  throw nb::buffer_error(text.c_str());
}

/// Refuses streams that a consumer cannot mean. Others need nothing: work on the array is waited for.
/// Errors: TypeError, ValueError; BufferError for a stream of a device that has none.
void check_stream(nb::handle stream, bool cuda) {
  if (stream.is_none()) return;
  if (!PyLong_Check(stream.ptr()) || PyBool_Check(stream.ptr()))
    throw nb::type_error("a stream is a whole number, or None");
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(stream.ptr(), &overflow);
  if (overflow < 0 || (overflow == 0 && number < -1)) throw nb::value_error("a stream is -1 or greater");
  if (overflow == 0 && number == -1) return;
  if (!cuda) throw nb::buffer_error("the processor has no streams of CUDA's: stream is None or -1");
  if (overflow == 0 && number == 0)
    throw nb::value_error("stream 0 could be two: 1 is the legacy default stream, 2 that of each thread");
}

/// Calls a function without the GIL; what the library does not support is a BufferError, as the protocol has it.
template <class F>
void export_by(F function) {
  try {
    Released released;
    function();
  } catch (const weft::Error& e) {
    if (e.kind() == ErrorKind::unsupported || e.kind() == ErrorKind::no_device) throw nb::buffer_error(e.what());
    throw;
  }
  show_reports();
}

nb::object dlpack(const Array& a, nb::handle stream, std::optional<Pair> max_version, std::optional<Pair> device,
                  std::optional<bool> copy) {
  const detail::DlpackElement element = dlpack_element_of(a.dtype());
  const Home home = home_of(a);
  const Pair wanted = device.value_or(home.device);
  const DlpackOptions options = options_for(a, home, wanted, copy);
  check_stream(stream, wanted.first == kDLCUDA);
  const bool versioned = max_version && max_version->first >= 1;
  void* tensor = nullptr;
  export_by([&] {
    if (versioned)
      tensor = detail::export_versioned(a, element, options);
    else
      tensor = detail::export_unversioned(a, element, options);
  });
  if (!options.copy) remember_memory(a);
  PyObject* const capsule =
      PyCapsule_New(tensor, versioned ? kNewCapsule : kOldCapsule, versioned ? &delete_new : &delete_old);
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

nb::tuple numbers(const std::int64_t* first, int count, std::int64_t factor) {
  nb::list all;
  for (int k = 0; k < count; ++k) all.append(first[k] * factor);
  return nb::tuple(all);
}

/// CUDA's description of an array's memory, version 3. Nothing is left to wait for.
/// Errors: AttributeError for memory that CUDA does not have, so that other libraries look for other interfaces.
nb::dict cuda_array_interface(const Array& a) {
  if (a.is_null() || a.is_freed()) throw nb::attribute_error("an array without memory is none of CUDA's");
  if (a.dtype().is_struct()) throw nb::attribute_error("arrays of structs are none of CUDA's");
  const Home home = home_of(a);
  if (home.device.first != kDLCUDA)
    throw nb::attribute_error(("the memory of device " + a.device().name() + " is not CUDA's").c_str());
  const detail::DlpackElement element = dlpack_element_of(a.dtype());
  std::unique_ptr<DLManagedTensor, void (*)(DLManagedTensor*)> tensor(nullptr,
                                                                      [](DLManagedTensor* t) { t->deleter(t); });
  export_by([&] { tensor.reset(detail::export_unversioned(a, element, {.memory = DlpackMemory::cuda})); });
  const DLTensor& t = tensor->dl_tensor;
  const char kind = element.code == 6 ? 'b' : element.code == 2 ? 'f' : element.code == 0 ? 'i' : 'u';
  nb::dict described;
  described["shape"] = numbers(t.shape, t.ndim, 1);
  described["typestr"] = std::string(element.bytes == 1 ? "|" : "<") + kind + std::to_string(element.bytes);
  described["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(t.data), false);
  described["strides"] = numbers(t.strides, t.ndim, element.bytes);
  described["version"] = 3;
  return described;
}

}  // namespace

detail::DlpackElement dlpack_element_of(const DType& t) {
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

void add_exports(nb::handle array) {
  nb::cpp_function(&dlpack, nb::scope(array), nb::name("__dlpack__"), nb::is_method(),
                   nb::arg("stream").none() = nb::none(), nb::kw_only(), nb::arg("max_version").none() = nb::none(),
                   nb::arg("dl_device").none() = nb::none(), nb::arg("copy").none() = nb::none());
  nb::cpp_function([](const Array& a) { return home_of(a).device; }, nb::scope(array), nb::name("__dlpack_device__"),
                   nb::is_method());
  const nb::handle property(reinterpret_cast<PyObject*>(&PyProperty_Type));
  nb::setattr(array, "__cuda_array_interface__", property(nb::cpp_function(&cuda_array_interface)));
}

}  // namespace weft::python
