// Makes DLPack tensors from arrays, and arrays around tensors.
#include "../dlpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../core/state.h"
#include "../core/view.h"
#include "../extent.h"
#include "../work/capture.h"
#include "../work/observe.h"
#include "dlpack_abi.h"
#include "dlpack_cuda.h"
#include "dlpack_elements.h"

namespace weft::detail {

namespace {

// ---- Arrays to tensors

/// An array that another library uses. `Managed` is one of DLPack's two structs.
template <class Managed>
struct Exported {
  Managed managed{};
  View array;  ///< keeps the memory; null if it was copied to the host
  std::shared_ptr<const void> pin;
  std::vector<std::byte> copied;  ///< the elements, if they were copied
  std::vector<std::int64_t> shape, strides;

  static void remove(Managed* self) {
    const std::unique_ptr<Exported> owned(static_cast<Exported*>(self->manager_ctx));
  }
};

// The memory that other libraries were given, by the address at which they see it. It is recognised when it comes back,
// because two arrays around one memory would not know of each other.
class Given {
 public:
  static Given& all() {
    static Given* const given = new Given;
    return *given;
  }
  void add(const std::byte* data, const std::shared_ptr<Storage>& storage) {
    std::lock_guard lock(mutex_);
    if (by_place_.size() >= sweep_at_) {
      std::erase_if(by_place_, [](const auto& g) { return g.second.expired(); });
      sweep_at_ = 2 * by_place_.size() + 64;
    }
    by_place_[reinterpret_cast<std::uintptr_t>(data)] = storage;
  }
  /// The memory, of any device, that contains these bytes, or null.
  std::pair<std::shared_ptr<Storage>, std::uint64_t> find(const std::byte* data, std::uint64_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    // Storages that are not returned may have become the last holders of their memory, whose end waits for devices and
    // calls functions of the caller's. They end outside the lock, which those functions may take.
    std::shared_ptr<Storage> storage;
    std::lock_guard lock(mutex_);
    for (auto g = by_place_.upper_bound(at); g != by_place_.begin();) {
      storage = (--g)->second.lock();
      if (!storage || storage->is_freed()) {
        g = by_place_.erase(g);  // other memory that begins before it may have the bytes now
        continue;
      }
      const std::uint64_t offset = at - g->first, all = storage->allocation.bytes;
      if (offset > all || bytes > all - offset) break;
      return {std::move(storage), offset};
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, std::weak_ptr<Storage>> by_place_;
  std::size_t sweep_at_ = 64;
};

/// The place of a tensor's elements.
struct Shown {
  std::byte* data = nullptr;
  DLDevice device{kDLCPU, 0};
};

// The place at which other libraries see the elements.
Shown place(const ArrayBase& array, DlpackMemory memory) {
  Storage& storage = *array.storage();
  DeviceState& device = *storage.device;
  // Elements that do not exist could be anywhere, but the tensor says where they would be.
  const bool mapped = array.size() ? storage.allocation.host != nullptr : device.device->info().host_visible;
  if (memory == DlpackMemory::host && !mapped)
    unsupported("DLPack: the memory of device {} is not the host's: export a copy (DlpackOptions::copy)",
                device.device->info().name);
  const std::uint64_t address = array.size() ? storage.allocation.address : 0;
  if (memory == DlpackMemory::host || (memory == DlpackMemory::automatic && mapped && !nearer_to_cuda(device, address)))
    return {storage.allocation.host, {kDLCPU, 0}};
  if (storage.outside.cuda_device < 0) {
    const CudaTwin twin = cuda_twin(device);
    if (memory == DlpackMemory::automatic && twin.device < 0) {
      if (array.size() == 0) return {};
      unsupported(
          fmt::format("DLPack: the memory of device {} is not the host's, and CUDA does not have it: {}; export a copy "
                      "(DlpackOptions::copy)",
                      device.device->info().name, twin.why));
    }
    if (twin.device < 0) unsupported("DLPack: an array is asked for as CUDA's memory, and {}", twin.why);
    if (array.size() == 0) return {nullptr, {kDLCUDA, twin.device}};
  }
  const CudaPlace on_cuda = map_for_cuda(storage);
  return {on_cuda.data, {kDLCUDA, on_cuda.device}};
}

// Shares the elements, after all work that uses them, and returns the place at which other libraries see them.
Shown share(const ArrayBase& array, DlpackMemory memory) {
  Storage& storage = *array.storage();
  Shown shown = place(array, memory);
  if (array.size() == 0) return {nullptr, shown.device};
  tell_recorder({.kind = OperationKind::expose, .from = &array, .what = "a DLPack tensor"});
  before_write(array, current_stream(*storage.device), {.by = "a DLPack tensor"});
  storage.wait_for_everybody();
  Given::all().add(shown.data, array.storage());
  shown.data += array.address() - storage.allocation.address;
  return shown;
}

// A contiguous copy of the elements on the same device. No tape hears of it.
View copy_of(const ArrayBase& array) {
  const HeardBy unheard(nullptr);
  View copied = View::like(array);
  copied.copy(array);
  return copied;
}

// The stride in scalars.
std::int64_t stride(const ArrayBase& array, int k, const DlpackElement& element) {
  if (array.stride(k) % element.bytes)
    unsupported("DLPack: the strides of dimension {}, {} bytes, are no multiple of a scalar's", k, array.stride(k));
  return array.stride(k) / element.bytes;
}

template <class Managed>
std::unique_ptr<Exported<Managed>> make_tensor(const ArrayBase& given, const DlpackElement& element,
                                               const DlpackOptions& options) {
  if (given.is_null()) invalid("DLPack: a null array is exported");
  given.storage()->check_present();
  auto made = std::make_unique<Exported<Managed>>();
  DLTensor& tensor = made->managed.dl_tensor;
  const bool to_host = options.copy && options.memory != DlpackMemory::cuda;
  if (to_host) {
    made->copied = View(given).bytes();
    tensor.data = made->copied.data();
    tensor.device = {kDLCPU, 0};
  } else {
    if (options.copy) tell_recorder({.kind = OperationKind::read, .from = &given});
    made->array = options.copy ? copy_of(given) : View(given);
    made->pin = made->array.storage()->pin(Storage::PinnedBy::tensor);
    const Shown shown = share(made->array, options.memory);
    tensor.data = shown.data;
    tensor.device = shown.device;
  }
  for (int k = 0; k < given.ndim(); ++k) {
    made->shape.push_back(given.shape(k));
    made->strides.push_back(to_host ? 0 : stride(made->array, k, element));
  }
  for (int k = 0; k < element.dimensions; ++k) {
    made->shape.push_back(element.sizes[k]);
    made->strides.push_back(element.dimensions == 2 && k == 0 ? element.sizes[1] : 1);
  }
  std::int64_t tight = 1;
  for (std::size_t k = made->shape.size(); to_host && k-- > 0; tight *= std::max<std::int64_t>(made->shape[k], 1))
    made->strides[k] = tight;
  tensor.ndim = int(made->shape.size());
  tensor.dtype = {element.code, element.bits, 1};
  tensor.shape = made->shape.data();
  tensor.strides = made->strides.data();
  made->managed.manager_ctx = made.get();
  made->managed.deleter = Exported<Managed>::remove;
  return made;
}

// ---- Tensors to arrays

// Gathers elements in row-major order.
std::vector<std::byte> gather(const Elements& e, int ndim, std::uint32_t element_bytes) {
  auto all = host_vector<std::byte>(std::uint64_t(e.count) * element_bytes);
  std::array<std::int64_t, 4> at{};
  for (std::int64_t n = 0; n < e.count; ++n) {
    const std::int64_t from = std::inner_product(at.begin(), at.begin() + ndim, e.stride.begin(), std::int64_t(0));
    std::copy_n(e.data + from, element_bytes, all.data() + n * element_bytes);
    for (int k = ndim; k-- > 0 && ++at[std::size_t(k)] == e.shape[std::size_t(k)];) at[std::size_t(k)] = 0;
  }
  return all;
}

// A new array of elements that the host reads.
View landed(const Device& device, const Elements& e, int ndim, std::uint32_t element_bytes) {
  const Extent extent = extent_of(e.shape, ndim);
  View row(allocate(device.state(), checked_bytes(extent, ndim, element_bytes)), extent, element_bytes);
  row.assign(gather(e, ndim, element_bytes));
  return row;
}

// Copies from memory that weft itself gave away, after its own work there.
View copy_own(const Device& device, const std::shared_ptr<Storage>& own, std::uint64_t offset, Elements e, int ndim,
              std::uint32_t element_bytes) {
  const View laid(own, own->allocation.address + offset, ndim, element_bytes, e.shape, e.stride);
  if (own->device == device.state()) return copy_of(laid);
  std::vector<std::byte> all = laid.bytes();
  e.data = all.data();
  e.stride = tight_strides(e.shape, ndim, element_bytes);
  return landed(device, e, ndim, element_bytes);
}

View copy_tensor(const Device& device, Elements e, int ndim, std::uint32_t element_bytes,
                 const DlpackOptions& options) {
  CUstream_st* const stream = options.stream;
  if (e.count == 0) return landed(device, e, ndim, element_bytes);
  if (const auto [own, offset] = Given::all().find(e.data, e.extent); own) {
    if (e.cuda_device >= 0 && options.wait) wait_for_cuda(e.cuda_device, stream);
    return copy_own(device, own, offset, e, ndim, element_bytes);
  }
  if (e.cuda_device < 0) return landed(device, e, ndim, element_bytes);
  Runs runs = runs_of(e, ndim, element_bytes);
  const CudaPieces pieces{e.cuda_device, e.data, runs.bytes, std::move(runs.offsets)};
  if (runs.gathers) e.stride = tight_strides(e.shape, ndim, element_bytes);
  const auto there = copy_from_cuda(device.state(), pieces, stream);
  if (!there) {
    std::vector<std::byte> all = read_cuda(pieces, stream);
    e.data = all.data();
    return landed(device, e, ndim, element_bytes);
  }
  const View laid(there, there->allocation.address, ndim, element_bytes, e.shape, e.stride);
  return laid.is_contiguous() ? View(there, extent_of(e.shape, ndim), element_bytes) : copy_of(laid);
}

/// Calls the deleter when it ends, once the tensor has been taken over.
template <class Managed>
struct Taken {
  Managed* tensor;
  bool ours = false;
  ~Taken() {
    if (ours && tensor->deleter) tensor->deleter(tensor);
  }
};

template <class Managed>
View import_managed(const Device& device, Managed* tensor, bool read_only, const DlpackElement& element, int ndim,
                    std::uint32_t element_bytes, const DlpackOptions& options) {
  device.state()->device->check_alive();
  const Elements e = elements_of(tensor->dl_tensor, element, ndim, element_bytes);
  if (reinterpret_cast<std::uintptr_t>(options.stream) == std::uintptr_t(-1))
    invalid("DLPack: the stream is -1, which says in some interfaces that nobody waits: say so by {.wait = false}");
  const auto owner = std::make_shared<Taken<Managed>>(Taken<Managed>{tensor});
  if (options.copy) {
    View copied = copy_tensor(device, e, ndim, element_bytes, options);
    owner->ours = true;
    return copied;
  }
  if (read_only)
    unsupported("DLPack: the tensor is read-only, and kernels may write an array: import a copy (DlpackOptions::copy)");
  if (!tensor->deleter)
    invalid(
        "the tensor has no deleter, so that nothing keeps its memory for the array: import a copy, or wrap() the "
        "memory");
  std::shared_ptr<Storage> storage;
  std::uint64_t from = 0;
  const bool on_cuda = e.cuda_device >= 0;
  if (on_cuda && e.count && options.wait) wait_for_cuda(e.cuda_device, options.stream);
  if (const auto [own, offset] = Given::all().find(e.data, e.extent); own && own->device == device.state() && e.count) {
    storage = own;
    from = offset;
  } else if (on_cuda && e.count == 0) {
    storage = std::make_shared<Storage>(device.state(), backend::Allocation{}, 0);
  } else {
    storage = on_cuda ? wrap_cuda(device.state(), e.data, e.extent, e.cuda_device, owner)
                      : wrap(device.state(), e.data, e.extent, owner);
  }
  owner->ours = true;
  return View(storage, storage->allocation.address + from, ndim, element_bytes, e.shape, e.stride);
}

}  // namespace

DLManagedTensorVersioned* export_versioned(const ArrayBase& array, const DlpackElement& element,
                                           const DlpackOptions& options) {
  auto made = make_tensor<DLManagedTensorVersioned>(array, element, options);
  made->managed.version = {1, 0};
  made->managed.flags = options.copy ? DLPACK_FLAG_BITMASK_IS_COPIED : 0;
  return &made.release()->managed;
}

DLManagedTensor* export_unversioned(const ArrayBase& array, const DlpackElement& element,
                                    const DlpackOptions& options) {
  return &make_tensor<DLManagedTensor>(array, element, options).release()->managed;
}

ArrayBase import_tensor(const Device& device, DLManagedTensorVersioned* tensor, const DlpackElement& element, int ndim,
                        std::uint32_t element_bytes, const DlpackOptions& options) {
  if (!tensor) invalid("DLPack: the tensor is null");
  if (tensor->version.major != 1)
    unsupported("DLPack: the tensor is of version {}.{}; 1 is known", tensor->version.major, tensor->version.minor);
  const bool read_only = tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  return import_managed(device, tensor, read_only, element, ndim, element_bytes, options);
}

ArrayBase import_tensor(const Device& device, DLManagedTensor* tensor, const DlpackElement& element, int ndim,
                        std::uint32_t element_bytes, const DlpackOptions& options) {
  if (!tensor) invalid("DLPack: the tensor is null");
  return import_managed(device, tensor, false, element, ndim, element_bytes, options);
}

}  // namespace weft::detail
