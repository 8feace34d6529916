// Passes memory from one interface to the other.
#include "sharing.h"

#include <fmt/format.h>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"

namespace weft::backend::cuda {

using namespace abi;

ExternalMemory::ExternalMemory(std::shared_ptr<const Context> context, FileDescriptor&& fd, std::uint64_t bytes,
                               std::uint64_t mapped, bool dedicated)
    : context_(std::move(context)) {
  const Context::Scope current(*context_);
  const Driver& driver = context_->driver();
  ExternalMemoryDesc desc{};
  desc.type = kOpaqueFd;
  desc.handle.fd = fd.get();
  desc.size = bytes;
  desc.flags = dedicated ? kDedicated : 0;
  driver.check(driver.calls().import_external_memory(&memory_, &desc), "cuImportExternalMemory");
  fd.release();
  ExternalBufferDesc buffer{};
  buffer.size = mapped;
  const Result result = driver.calls().external_memory_get_mapped_buffer(&pointer_, memory_, &buffer);
  if (result == kSuccess) return;
  pointer_ = 0;
  release();
  driver.check(result, "cuExternalMemoryGetMappedBuffer");
}

void ExternalMemory::release() noexcept {
  const Functions& calls = context_->driver().calls();
  if (pointer_) calls.mem_free(pointer_);
  calls.destroy_external_memory(memory_);
}

ExternalMemory::~ExternalMemory() {
  try {
    const Context::Scope current(*context_);
    release();
  } catch (const Error&) {
    // CUDA ended before this object did, and freed everything of its own.
  }
}

std::optional<PointerInfo> look_up(const Context& context, Pointer pointer) {
  const Context::Scope current(context);
  const Driver& driver = context.driver();
  const auto ask = [&](auto& answer, int attribute) {
    const Result result = driver.calls().pointer_get_attribute(&answer, attribute, pointer);
    if (result == kInvalidValue) return false;
    driver.check(result, "cuPointerGetAttribute");
    return true;
  };
  PointerInfo info;
  unsigned int type = 0;
  if (!ask(info.device, kDeviceOrdinal) || !ask(type, kMemoryType)) return {};
  info.on_device = type == kDeviceMemory;
  // Memory from cuMemCreate and from pools belongs to no context.
  ContextHandle of = nullptr;
  const Result result = driver.calls().pointer_get_attribute(&of, kPointerContext, pointer);
  info.elsewhere = result == kSuccess && of && info.device == context.device() && !context.is(of);
  return info;
}

ExportedAllocation export_allocation(const Context& context, Pointer pointer) {
  const Context::Scope current(context);
  const Driver& driver = context.driver();
  struct Held {
    const Driver& driver;
    Handle handle = 0;
    ~Held() {
      if (handle) driver.calls().mem_release(handle);
    }
  } held{driver};
  Result result = driver.calls().mem_retain_allocation_handle(&held.handle, reinterpret_cast<void*>(pointer));
  if (result != kSuccess) held.handle = 0;
  if (result == kInvalidValue || result == kNotSupported)
    unsupported("it was not allocated by cuMemCreate, and other memory of CUDA has no handle");
  driver.check(result, "cuMemRetainAllocationHandle");
  std::size_t bytes = 0;
  ExportedAllocation found;
  driver.check(driver.calls().mem_get_address_range(&found.base, &bytes, pointer), "cuMemGetAddressRange");
  found.bytes = bytes;
  int fd = -1;
  result = driver.calls().mem_export_to_shareable_handle(&fd, held.handle, kPosixFd, 0);
  if (result == kInvalidValue || result == kNotPermitted || result == kNotSupported)
    unsupported(
        "it was allocated without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR among the requestedHandleTypes "
        "(cuMemExportToShareableHandle gave {})",
        driver.describe(result));
  driver.check(result, "cuMemExportToShareableHandle");
  found.fd = FileDescriptor(fd);
  return found;
}

namespace {
// Waiting for a stream that is being captured would end the capture, and what the stream was given does not run.
void refuse_captured(const Driver& driver, Stream stream) {
  int status = kNotCapturing;
  const Result result = driver.calls().stream_is_capturing(stream, &status);
  if (result == kCaptureImplicit)
    invalid("CUDA's default stream is asked for while another is captured, which waits for it");
  driver.check(result, "cuStreamIsCapturing");
  if (status != kNotCapturing) invalid("the stream is being captured: what it is given does not run");
}
}  // namespace

void wait(const Context& context, Stream stream) {
  const Context::Scope current(context);
  refuse_captured(context.driver(), stream);
  context.driver().check(context.driver().calls().stream_synchronize(stream), "cuStreamSynchronize");
}

void copy(const Context& context, Stream stream, Pointer to, Pointer from, std::uint64_t bytes,
          std::span<const std::uint64_t> offsets) {
  const Context::Scope current(context);
  const Driver& driver = context.driver();
  refuse_captured(driver, stream);
  Result result = kSuccess;
  for (const std::uint64_t offset : offsets) {
    result = driver.calls().memcpy_async(to, from + offset, bytes, stream);
    if (result != kSuccess) break;
    to += bytes;
  }
  // A copy that was begun must not go on once the memory is gone.
  const Result waited = driver.calls().stream_synchronize(stream);
  driver.check(result, "cuMemcpyAsync");
  driver.check(waited, "cuStreamSynchronize");
}

}  // namespace weft::backend::cuda
