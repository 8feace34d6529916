// Tensors of DLPack made from arrays, and arrays made around tensors.
#include "dlpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "../frontend/support/error.h"
#include "capture.h"
#include "dlpack_abi.h"
#include "observe.h"
#include "state.h"
#include "view.h"

namespace weft::detail {

namespace {

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, "DLPack: " + message);
}
[[noreturn]] void unsupported(const std::string& message) { throw Error(ErrorKind::unsupported, "DLPack: " + message); }

// ---- Arrays to tensors

/// An array that another library uses. `Managed` is one of the two structs.
template <class Managed>
struct Exported {
  Managed managed{};
  View array;                     ///< keeps the memory; null where it was copied
  std::vector<std::byte> copied;  ///< the elements, where they were copied
  std::vector<std::int64_t> shape, strides;

  static void remove(Managed* self) {
    const std::unique_ptr<Exported> owned(static_cast<Exported*>(self->manager_ctx));
  }
};

// The elements where the host sees them, with nothing under way that uses them.
std::byte* share(const ArrayBase& array) {
  Storage& storage = *array.storage();
  if (array.size() == 0) return nullptr;
  if (!storage.allocation.host)
    unsupported(
        fmt::format("the memory of device {} is not the host's, and tensors of Vulkan memory mean something in "
                    "the library that made them alone: export a copy (DlpackOptions::copy)",
                    storage.device->device->info().name));
  if (Recorder* r = recorder()) r->exposing(array);
  before_write(array, current_stream(*storage.device));
  storage.wait_for_users();
  return storage.allocation.host + (array.address() - storage.allocation.address);
}

template <class Managed>
std::unique_ptr<Exported<Managed>> make_tensor(const ArrayBase& array, const DlpackElement& element, bool copy) {
  if (array.is_null()) invalid("a null array is exported");
  auto made = std::make_unique<Exported<Managed>>();
  DLTensor& tensor = made->managed.dl_tensor;
  for (int k = 0; k < array.ndim(); ++k) {
    made->shape.push_back(array.shape(k));
    if (array.stride(k) % element.bytes)
      unsupported(
          fmt::format("the strides of dimension {}, {} bytes, are no multiple of a scalar's", k, array.stride(k)));
    made->strides.push_back(array.stride(k) / element.bytes);
  }
  if (copy) {
    made->copied = View(array).bytes();
    tensor.data = made->copied.data();
  } else {
    tensor.data = share(array);
    made->array = View(array);
  }
  for (int k = 0; k < element.dimensions; ++k) {
    made->shape.push_back(element.sizes[k]);
    made->strides.push_back(element.dimensions == 2 && k == 0 ? element.sizes[1] : 1);
  }
  if (copy) {
    std::int64_t stride = 1;
    for (std::size_t k = made->shape.size(); k-- > 0;) {
      made->strides[k] = stride;
      stride *= std::max<std::int64_t>(made->shape[k], 1);
    }
  }
  tensor.device = {kDLCPU, 0};
  tensor.ndim = int(made->shape.size());
  tensor.dtype = {element.code, element.bits, 1};
  tensor.shape = made->shape.data();
  tensor.strides = made->strides.data();
  made->managed.manager_ctx = made.get();
  made->managed.deleter = Exported<Managed>::remove;
  return made;
}

// ---- Tensors to arrays

std::string type_name(const DLDataType& type) {
  constexpr const char* kNames[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  std::string name = type.code < std::size(kNames) ? kNames[type.code] : fmt::format("type {} of ", type.code);
  if (!(type.code == 6 && type.bits == 8)) name += std::to_string(type.bits);
  return type.lanes == 1 ? name : fmt::format("{} in {} lanes", name, type.lanes);
}

// As a number: that of a tensor from elsewhere need not be one of the enumeration.
int type_of(const DLDevice& device) {
  static_assert(sizeof device.device_type == sizeof(int));
  int type = 0;
  std::memcpy(&type, &device.device_type, sizeof type);
  return type;
}

std::string device_name(const DLDevice& device) {
  switch (type_of(device)) {
    case 1: return "the CPU";
    case 2: return "CUDA";
    case 3: return "CUDA (pinned memory of the host)";
    case 4: return "OpenCL";
    case 7: return "Vulkan";
    case 8: return "Metal";
    case 10: return "ROCm";
    case 11: return "ROCm (pinned memory of the host)";
    case 13: return "CUDA (managed memory)";
    case 14: return "oneAPI";
    default: return fmt::format("device type {}", type_of(device));
  }
}

/// A tensor's elements as an array's: checked, in bytes.
struct Elements {
  std::byte* data = nullptr;
  std::array<std::int64_t, 4> shape{}, stride{};
  std::int64_t count = 1;
  std::uint64_t extent = 0;  ///< bytes from the first element to the last one's end
};

// No element lies on another: from the smallest stride to the largest, each leads over all that lie before it.
bool overlap(const Elements& e, int ndim, std::uint32_t element_bytes) {
  std::vector<std::size_t> order(static_cast<std::size_t>(ndim));
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::sort(order, {}, [&](std::size_t d) { return e.stride[d]; });
  std::int64_t end = element_bytes;
  for (const std::size_t d : order) {
    if (e.shape[d] == 1) continue;
    if (e.stride[d] < end) return true;
    end += (e.shape[d] - 1) * e.stride[d];
  }
  return false;
}

// Strides of the tensor, in scalars; those that it leaves out are row-major.
std::vector<std::int64_t> strides_of(const DLTensor& t) {
  std::vector<std::int64_t> strides(std::size_t(t.ndim));
  if (t.strides) std::copy_n(t.strides, t.ndim, strides.begin());
  std::int64_t tight = 1;
  for (int k = t.ndim; k-- > 0;) {
    if (t.shape[k] < 0) invalid(fmt::format("size {} of dimension {} is negative", t.shape[k], k));
    if (!t.strides) strides[std::size_t(k)] = tight;
    if (__builtin_mul_overflow(tight, std::max<std::int64_t>(t.shape[k], 1), &tight) || tight > INT64_MAX / 64)
      invalid("its sizes are larger than any memory");
  }
  return strides;
}

Elements elements_of(const DLTensor& t, const DlpackElement& element, int ndim, std::uint32_t element_bytes) {
  if (type_of(t.device) != kDLCPU)
    unsupported(fmt::format("the tensor is in memory of {}; arrays are made of tensors on the CPU (kDLCPU)",
                            device_name(t.device)));
  const DLDataType wanted{element.code, element.bits, 1};
  if (t.dtype.code != wanted.code || t.dtype.bits != wanted.bits || t.dtype.lanes != 1)
    invalid(fmt::format("the tensor's elements are {}, and the array's scalars are {}", type_name(t.dtype),
                        type_name(wanted)));
  if (t.ndim != ndim + element.dimensions)
    invalid(fmt::format("the tensor has {} dimensions, and the array {}{}", t.ndim, ndim,
                        element.dimensions ? fmt::format(" and {} of its elements", element.dimensions) : ""));
  if (!t.shape) invalid("its shape is null");
  const std::vector<std::int64_t> strides = strides_of(t);
  std::int64_t tight = 1;
  for (int k = element.dimensions; k-- > 0;) {
    const int d = ndim + k;
    if (t.shape[d] != element.sizes[k])
      invalid(fmt::format("dimension {} of the tensor has {} elements, and the array's elements have {} there", d,
                          t.shape[d], element.sizes[k]));
    if (t.shape[d] != 1 && strides[std::size_t(d)] != tight)
      invalid(fmt::format("the scalars of an element do not lie in a row: dimension {} has a stride of {}", d,
                          strides[std::size_t(d)]));
    tight *= element.sizes[k];
  }
  Elements e;
  e.extent = element_bytes;
  for (std::size_t k = 0; k < std::size_t(ndim); ++k) {
    e.shape[k] = t.shape[k];
    e.count *= t.shape[k];
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(strides[k], std::int64_t(element.bytes), &e.stride[k]) ||
        __builtin_mul_overflow(e.stride[k], std::max<std::int64_t>(t.shape[k] - 1, 0), &reach) ||
        __builtin_add_overflow(e.extent, std::uint64_t(reach), &e.extent) || e.extent > std::uint64_t(INT64_MAX))
      if (strides[k] >= 0) invalid("its strides are larger than any memory");
    if (strides[k] < 0 && t.shape[k] > 1) invalid(fmt::format("stride {} of dimension {} is negative", strides[k], k));
    if (t.shape[k] <= 1) e.stride[k] = std::max<std::int64_t>(e.stride[k], 0);
  }
  if (e.count == 0) {
    e.extent = 0;
    return e;
  }
  if (!t.data) invalid("its data is null");
  e.data = static_cast<std::byte*>(t.data) + t.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(e.data) % element.bytes)
    invalid(fmt::format("its data with the byte_offset of {} is not aligned to scalars of {} bytes", t.byte_offset,
                        element.bytes));
  if (overlap(e, ndim, element_bytes)) invalid("its strides let elements lie on each other");
  return e;
}

// In row-major order.
std::vector<std::byte> gather(const Elements& e, int ndim, std::uint32_t element_bytes) {
  std::vector<std::byte> all(std::size_t(e.count) * element_bytes);
  std::array<std::int64_t, 4> at{};
  for (std::int64_t n = 0; n < e.count; ++n) {
    const std::int64_t from = std::inner_product(at.begin(), at.begin() + ndim, e.stride.begin(), std::int64_t(0));
    std::copy_n(e.data + from, element_bytes, all.data() + n * element_bytes);
    for (int k = ndim; k-- > 0 && ++at[std::size_t(k)] == e.shape[std::size_t(k)];) at[std::size_t(k)] = 0;
  }
  return all;
}

/// An array whose element type is known by its size.
class Landing : public ArrayBase {
 public:
  Landing(const Device& device, const Elements& e, int ndim, std::uint32_t element_bytes)
      : ArrayBase(ndim, element_bytes) {
    Extent extent(0);
    extent.rank = ndim;
    extent.n = e.shape;
    create(device, extent, ndim);
    const std::vector<std::byte> all = gather(e, ndim, element_bytes);
    upload(all.data(), std::uint64_t(e.count));
  }
  DlpackPlace place() const { return {storage_, address_, shape_, stride_}; }
};

/// Calls the deleter at its end, once the tensor is taken over.
template <class Managed>
struct Taken {
  Managed* tensor;
  bool ours = false;
  ~Taken() {
    if (ours && tensor->deleter) tensor->deleter(tensor);
  }
};

template <class Managed>
DlpackPlace import_managed(const Device& device, Managed* tensor, bool read_only, const DlpackElement& element,
                           int ndim, std::uint32_t element_bytes, bool copy) {
  const Elements e = elements_of(tensor->dl_tensor, element, ndim, element_bytes);
  const auto owner = std::make_shared<Taken<Managed>>(Taken<Managed>{tensor});
  if (copy) {
    DlpackPlace place = Landing(device, e, ndim, element_bytes).place();
    owner->ours = true;
    return place;
  }
  if (read_only)
    unsupported("the tensor is read-only, and kernels may write an array: import a copy (DlpackOptions::copy)");
  if (!tensor->deleter)
    invalid(
        "the tensor has no deleter, so that nothing keeps its memory for the array: import a copy, or wrap() the "
        "memory");
  DlpackPlace place{nullptr, 0, e.shape, e.stride};
  // What weft itself gave away comes back as what it was: two arrays around one memory would not know of each other.
  using Own = Exported<Managed>;
  if (tensor->deleter == Own::remove) {
    const View& array = static_cast<Own*>(tensor->manager_ctx)->array;
    if (!array.is_null() && array.storage()->device == device.state()) {
      const Storage& storage = *array.storage();
      place.storage = array.storage();
      place.address = e.count ? storage.allocation.address + std::uint64_t(e.data - storage.allocation.host) : 0;
      owner->ours = true;
      return place;
    }
  }
  place.storage = wrap(device.state(), e.data, e.extent, owner);
  place.address = place.storage->allocation.address;
  owner->ours = true;
  return place;
}

}  // namespace

DLManagedTensorVersioned* export_versioned(const ArrayBase& array, const DlpackElement& element, bool copy) {
  auto made = make_tensor<DLManagedTensorVersioned>(array, element, copy);
  made->managed.version = {1, 0};
  made->managed.flags = copy ? DLPACK_FLAG_BITMASK_IS_COPIED : 0;
  return &made.release()->managed;
}

DLManagedTensor* export_unversioned(const ArrayBase& array, const DlpackElement& element, bool copy) {
  return &make_tensor<DLManagedTensor>(array, element, copy).release()->managed;
}

DlpackPlace import_tensor(const Device& device, DLManagedTensorVersioned* tensor, const DlpackElement& element,
                          int ndim, std::uint32_t element_bytes, bool copy) {
  if (!tensor) invalid("the tensor is null");
  if (tensor->version.major != 1)
    unsupported(
        fmt::format("the tensor is of version {}.{}; 1 is known", tensor->version.major, tensor->version.minor));
  const bool read_only = tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  return import_managed(device, tensor, read_only, element, ndim, element_bytes, copy);
}

DlpackPlace import_tensor(const Device& device, DLManagedTensor* tensor, const DlpackElement& element, int ndim,
                          std::uint32_t element_bytes, bool copy) {
  if (!tensor) invalid("the tensor is null");
  return import_managed(device, tensor, false, element, ndim, element_bytes, copy);
}

}  // namespace weft::detail
