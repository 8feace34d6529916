// Shares memory between Vulkan and CUDA by file descriptors.
#include "dlpack_cuda.h"

#include <fmt/format.h>

#include "../../backends/cuda/sharing.h"
#include "../../backends/vulkan/interop.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../detail/host_vector.h"

namespace weft::detail {

namespace cuda = backend::cuda;

namespace {

cuda::abi::Pointer pointer_of(const std::byte* data) {
  return static_cast<cuda::abi::Pointer>(reinterpret_cast<std::uintptr_t>(data));
}

// The context for a tensor on this device.
std::shared_ptr<const cuda::Context> context_for(int cuda_device) {
  std::string why;
  const cuda::Driver* const driver = cuda::Driver::find(&why);
  if (!driver) throw Error(ErrorKind::no_device, "DLPack: the tensor is on CUDA, and " + why);
  if (cuda_device >= driver->count())
    invalid("DLPack: the tensor is on CUDA device {}, and there are {}", cuda_device, driver->count());
  return cuda::Context::hold(*driver, cuda_device);
}

// CUDA's description of a tensor's memory.
cuda::PointerInfo look_up(const cuda::Context& context, const std::byte* data) {
  const auto info = cuda::look_up(context, pointer_of(data));
  if (!info) invalid("DLPack: {:#x} is not memory that CUDA knows", pointer_of(data));
  if (info->elsewhere)
    unsupported(
        "DLPack: the tensor's memory belongs to another context on CUDA device {} than the primary one, which is all "
        "that is known here (cuDevicePrimaryCtxRetain, or CUDA's runtime library)",
        context.device());
  return *info;
}

/// A CUDA allocation as memory of a device: shared by the storages of all tensors in it.
struct Import {
  std::shared_ptr<const cuda::Context> context;  ///< kept for the next tensor
  std::shared_ptr<DeviceState> device;
  backend::Allocation allocation;
  cuda::abi::Pointer base = 0;
  std::uint64_t bytes = 0;

  Import(std::shared_ptr<const cuda::Context> context, std::shared_ptr<DeviceState> on,
         cuda::ExportedAllocation&& found)
      : context(std::move(context)),
        device(std::move(on)),
        allocation(
            backend::VulkanAccess(*device->device, "from_dlpack()").import_foreign(std::move(found.fd), found.bytes)),
        base(found.base),
        bytes(found.bytes) {}
  Import(const Import&) = delete;
  ~Import() { device->device->free(allocation); }
};

// Imports the allocation around a pointer. A mapping is imported once: two buffers on the same memory would count as
// two memories when work is ordered.
std::shared_ptr<Import> import_allocation(const std::shared_ptr<DeviceState>& device,
                                          const std::shared_ptr<const cuda::Context>& context,
                                          cuda::abi::Pointer pointer) {
  using Key = std::pair<std::uint64_t, cuda::abi::Pointer>;  // device, base
  struct Known {
    std::mutex mutex;
    std::map<Key, std::weak_ptr<Import>> imports;
  };
  static Known* const known = new Known;
  cuda::ExportedAllocation found = cuda::export_allocation(*context, pointer);
  std::shared_ptr<Import> import;
  std::lock_guard lock(known->mutex);
  std::erase_if(known->imports, [](const auto& i) { return i.second.expired(); });
  std::weak_ptr<Import>& place = known->imports[{device->id, found.base}];
  import = place.lock();
  if (!import) place = import = std::make_shared<Import>(context, device, std::move(found));
  return import;
}

/// A storage of a device's own, mapped for CUDA.
struct Mapped {
  std::shared_ptr<cuda::ExternalMemory> memory;  // of the page that holds the storage
  cuda::abi::Pointer pointer = 0;
};
Mapped map(const Storage& storage) {
  const CudaTwin twin = cuda_twin(*storage.device);
  if (twin.device < 0) unsupported("DLPack: an array is asked for as CUDA's memory, and {}", twin.why);
  // The context is held before memory is locked, because it may take long to make.
  const std::shared_ptr<const cuda::Context> context = cuda::Context::hold(cuda::Driver::get(), twin.device);
  const std::uint64_t address = storage.allocation.address;
  const backend::PageAttachment attached =
      backend::VulkanAccess(*storage.device->device, "CUDA")
          .attach(address, [&](SharedMemory&& shared) -> std::shared_ptr<void> {
            return std::make_shared<cuda::ExternalMemory>(context, std::move(shared.fd), shared.bytes,
                                                          shared.buffer_bytes, shared.dedicated);
          });
  const auto memory = std::static_pointer_cast<cuda::ExternalMemory>(attached.thing);
  return {memory, memory->pointer() + (address - attached.page)};
}

}  // namespace

CudaTwin cuda_twin(DeviceState& device) {
  const backend::DeviceInfo& info = device.device->info();
  if (!backend::VulkanAccess::fits(*device.device)) return {-1, fmt::format("{} is not a GPU", info.name)};
  CudaTwin twin;
  const cuda::Driver* const driver = cuda::Driver::find(&twin.why);
  if (!driver) return twin;
  const backend::VulkanAccess access(*device.device, "CUDA");
  if (const auto found = driver->find_device(access.device_uuid()))
    twin.device = *found;
  else
    twin.why = fmt::format("none of CUDA's {} devices is {} ({})", driver->count(), info.name, info.adapter);
  return twin;
}

bool nearer_to_cuda(DeviceState& device, std::uint64_t address) {
  if (!backend::VulkanAccess::fits(*device.device)) return false;
  const backend::VulkanAccess access(*device.device, "CUDA");
  if (access.host_reads_fast(address) || cuda_twin(device).device < 0) return false;
  return address == 0 || access.shares(address);
}

CudaPlace map_for_cuda(Storage& storage) {
  if (storage.outside.cuda_device >= 0)
    return {reinterpret_cast<std::byte*>(storage.outside.address), storage.outside.cuda_device};
  const Mapped mapped = map(storage);
  const std::shared_ptr<const cuda::Context>& context = mapped.memory->context();
  storage.used_outside({context, [](const void* who) { return static_cast<const cuda::Context*>(who)->finish(); }});
  return {reinterpret_cast<std::byte*>(mapped.pointer), context->device()};
}

std::shared_ptr<Storage> wrap_cuda(const std::shared_ptr<DeviceState>& device, std::byte* data, std::uint64_t bytes,
                                   int cuda_device, std::shared_ptr<void> owner) {
  const std::shared_ptr<const cuda::Context> context = context_for(cuda_device);
  const std::string& name = device->device->info().name;
  constexpr const char* kCopy = "import a copy (DlpackOptions::copy)";
  const CudaTwin twin = cuda_twin(*device);
  if (twin.device < 0) unsupported("DLPack: the tensor is on CUDA device {}, and {}: {}", cuda_device, twin.why, kCopy);
  if (twin.device != cuda_device)
    unsupported("DLPack: the tensor is on CUDA device {}, and {} is CUDA device {}: {}", cuda_device, name, twin.device,
                kCopy);
  const cuda::PointerInfo info = look_up(*context, data);
  if (!info.on_device)
    unsupported("DLPack: the tensor is on CUDA device {}, and its memory is the host's: {}", cuda_device, kCopy);
  if (info.device != cuda_device)
    invalid("DLPack: the tensor is on CUDA device {}, and its memory on {}", cuda_device, info.device);

  struct Kept {
    std::shared_ptr<void> owner;
    std::shared_ptr<Import> import;  // destroyed first
  };
  auto kept = std::make_shared<Kept>();
  try {
    kept->import = import_allocation(device, context, pointer_of(data));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unsupported) throw;
    unsupported(
        fmt::format("DLPack: the tensor's memory on CUDA device {} cannot be shared with {}: {}; {}, or allocate it "
                    "with cuMemCreate and a handle of that type",
                    cuda_device, name, e.message(), kCopy));
  }
  const std::uint64_t offset = pointer_of(data) - kept->import->base;
  if (offset > kept->import->bytes || bytes > kept->import->bytes - offset)
    unsupported("DLPack: the tensor reaches beyond the allocation of {} bytes in which it begins: {}",
                kept->import->bytes, kCopy);
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  claim(*device, begin, bytes);
  try {
    const backend::Allocation piece{kept->import->allocation.address + offset, bytes, nullptr, 0};
    kept->owner = std::move(owner);
    return std::make_shared<Storage>(device, piece, std::move(kept), Storage::Outside{begin, cuda_device});
  } catch (...) {
    disclaim(*device, begin);
    throw;
  }
}

void wait_for_cuda(int cuda_device, CUstream_st* stream) { cuda::wait(*context_for(cuda_device), stream); }

std::shared_ptr<Storage> copy_from_cuda(const std::shared_ptr<DeviceState>& device, const CudaPieces& pieces,
                                        CUstream_st* stream) {
  const std::shared_ptr<const cuda::Context> context = context_for(pieces.cuda_device);
  if (cuda_twin(*device).device < 0) return nullptr;
  look_up(*context, pieces.data);
  auto storage = allocate(device, pieces.bytes * pieces.offsets.size());  // earlier work there has ended
  if (!backend::VulkanAccess(*device->device, "CUDA").shares(storage->allocation.address)) return nullptr;
  cuda::copy(*context, stream, map(*storage).pointer, pointer_of(pieces.data), pieces.bytes, pieces.offsets);
  return storage;  // the copy has ended, too
}

std::vector<std::byte> read_cuda(const CudaPieces& pieces, CUstream_st* stream) {
  const std::shared_ptr<const cuda::Context> context = context_for(pieces.cuda_device);
  look_up(*context, pieces.data);
  auto all = host_vector<std::byte>(pieces.bytes * pieces.offsets.size());
  cuda::copy(*context, stream, pointer_of(all.data()), pointer_of(pieces.data), pieces.bytes, pieces.offsets);
  return all;
}

}  // namespace weft::detail
