// A stand-in for CUDA's driver on machines without it: memory that it shares with lavapipe, and counts of all it gave.
//
// lavapipe's exported memory is a file that begins with a header (src/util/os_memory_fd.c in Mesa): the bytes of the
// file, the offset of the memory in it, and 16 bytes by which the driver knows its own. The offset stands once more
// right before the memory.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "../../backends/cuda/driver_abi.h"
#include "cuda_stand_in.h"

using namespace weft::backend::cuda::abi;

namespace {

struct Header {
  std::size_t bytes = 0, offset = 0;
  unsigned char driver[16] = {};
};

/// Bytes of the process that have an address on "the device".
struct Region {
  std::size_t bytes = 0;
  void* mapped = nullptr;  // includes the bytes before the region
  std::size_t mapped_bytes = 0;
  int device = 0;
  Handle handle = 0;                          // that of cuMemMap
  struct ExternalMemory* external = nullptr;  // that of an import
  ContextHandle context = nullptr;            // that of cuMemAlloc, or of an import
};

struct Copy {
  Pointer to, from;
  std::size_t bytes;
  Stream stream;
};

struct Physical {
  int fd = -1, device = 0, references = 0;
  bool exportable = false;
  std::size_t bytes = 0;
};

struct ExternalMemory {
  int fd = -1, device = 0, mappings = 0;
  Header header;
  ino_t file = 0;  // the descriptor's, which belongs to the driver alone
};

struct All {
  std::mutex mutex;
  CudaStandIn state;
  Header header;  // see cuda_stand_in_learn()
  std::map<Pointer, Region> regions;
  std::map<Pointer, std::size_t> reserved;
  std::map<Handle, Physical> physical;
  Handle last_handle = 0;
  std::vector<Copy> copies;  // copies that run when somebody waits for them
};
All& all() {
  static All* const made = new All;
  return *made;
}
thread_local std::vector<ContextHandle> contexts;
thread_local int capture_mode = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL

Result misuse(const char* what) {
  ++all().state.misuses;
  all().state.last_misuse = what;
  return kInvalidValue;
}

/// A call, during which no other one uses the state.
struct Call {
  std::lock_guard<std::mutex> lock{all().mutex};
  Result result = kSuccess;
  Call(const char* name, bool needs_context) {
    if (all().state.failing && std::strcmp(all().state.failing, name) == 0) {
      result = all().state.failure;
    } else if (needs_context && contexts.empty()) {
      misuse(name);
      result = kInvalidContext;
    }
  }
};
#define ENTER(name, needs_context)                         \
  if (const auto heard = all().state.on_call) heard(name); \
  const Call call(name, needs_context);                    \
  if (call.result != kSuccess) return call.result
// Begins a call that has nothing to do with streams. It breaks a capture, unless its thread allows such calls.
#define ENTER_UNSAFE(name)                                        \
  ENTER(name, true);                                              \
  if (all().state.capturing && capture_mode != kCaptureRelaxed) { \
    ++all().state.captures_broken;                                \
    return kCaptureUnsupported;                                   \
  }

// Runs the copies of one stream, or of all.
void run_copies(const Stream* stream) {
  std::erase_if(all().copies, [&](const Copy& c) {
    if (stream && c.stream != *stream) return false;
    std::memcpy(reinterpret_cast<void*>(c.to), reinterpret_cast<const void*>(c.from), c.bytes);
    return true;
  });
}

int current_device() { return int(reinterpret_cast<std::uintptr_t>(contexts.back())) - 1; }

ino_t file_of(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

// Whether the process has the file in its memory.
bool is_mapped(ino_t file) {
  std::ifstream maps("/proc/self/maps");
  std::string range, rights, offset, device, line;
  for (ino_t inode = 0; maps >> range >> rights >> offset >> device >> inode; std::getline(maps, line))
    if (inode == file) return true;
  return false;
}

bool read_header(int fd, Header& header) {
  return pread(fd, &header, sizeof header, 0) == ssize_t(sizeof header) && header.bytes > header.offset;
}

void* map_file(int fd, std::size_t bytes, void* at = nullptr) {
  void* const found = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return found == MAP_FAILED ? nullptr : found;
}

std::map<Pointer, Region>::iterator region_at(Pointer pointer) {
  auto& regions = all().regions;
  auto after = regions.upper_bound(pointer);
  if (after == regions.begin()) return regions.end();
  --after;
  return pointer - after->first < after->second.bytes ? after : regions.end();
}

void release(Handle handle) {
  auto& physical = all().physical;
  const auto at = physical.find(handle);
  if (at == physical.end() || --at->second.references > 0) return;
  close(at->second.fd);
  physical.erase(at);
}

struct Location {
  int type, id;
};
struct AllocationProp {  // CUmemAllocationProp
  int type, handle_types;
  Location location;
  void* win32;
  unsigned char flags[8];
};

}  // namespace

extern "C" {

CudaStandIn* cuda_stand_in() { return &all().state; }

bool cuda_stand_in_learn(int fd) {
  if (!read_header(fd, all().header)) return false;
  all().state.before_memory = all().header.offset;
  return true;
}

Result cuInit(unsigned int) {
  ENTER("cuInit", false);
  return kSuccess;
}

struct Named {
  Result error;
  const char *name, *text;
};
constexpr Named kErrors[] = {
    {kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}};
const Named* find_error(Result error) {
  for (const Named& e : kErrors)
    if (e.error == error) return &e;
  return nullptr;
}
Result cuGetErrorName(Result error, const char** name) {
  const Named* const found = find_error(error);
  *name = found ? found->name : nullptr;
  return found ? kSuccess : kInvalidValue;
}
Result cuGetErrorString(Result error, const char** text) {
  const Named* const found = find_error(error);
  *text = found ? found->text : nullptr;
  return found ? kSuccess : kInvalidValue;
}

Result cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount", false);
  *count = all().state.devices;
  return kSuccess;
}
Result cuDeviceGet(Device* device, int ordinal) {
  ENTER("cuDeviceGet", false);
  *device = ordinal;
  return kSuccess;
}
Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  ENTER("cuDeviceGetUuid", false);
  std::memcpy(uuid->bytes, all().state.uuids[device], 16);
  return kSuccess;
}

Result cuDevicePrimaryCtxRetain(ContextHandle* context, Device device) {
  ENTER("cuDevicePrimaryCtxRetain", false);
  if (device < 0 || device >= all().state.devices) return misuse("cuDevicePrimaryCtxRetain");
  *context = reinterpret_cast<ContextHandle>(std::uintptr_t(device) + 1);
  ++all().state.contexts;
  return kSuccess;
}
Result cuDevicePrimaryCtxRelease_v2(Device) {
  ENTER("cuDevicePrimaryCtxRelease", false);
  if (all().state.contexts-- == 0) return misuse("cuDevicePrimaryCtxRelease");
  return kSuccess;
}
Result cuCtxPushCurrent_v2(ContextHandle context) {
  ENTER("cuCtxPushCurrent", false);
  if (all().state.contexts == 0 || !context) return misuse("cuCtxPushCurrent");
  contexts.push_back(context);
  return kSuccess;
}
Result cuCtxPopCurrent_v2(ContextHandle* context) {
  ENTER("cuCtxPopCurrent", true);
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}
Result cuCtxSynchronize() {
  ENTER("cuCtxSynchronize", true);
  if (all().state.capturing) {  // in any mode
    ++all().state.captures_broken;
    return kCaptureUnsupported;
  }
  run_copies(nullptr);
  ++all().state.context_waits;
  return kSuccess;
}
Result cuStreamSynchronize(Stream stream) {
  ENTER("cuStreamSynchronize", true);
  if (all().state.capturing && !stream) {
    ++all().state.captures_broken;
    return kCaptureImplicit;
  }
  run_copies(&stream);
  ++all().state.stream_waits;
  all().state.last_stream = stream;
  return kSuccess;
}

Result cuStreamIsCapturing(Stream stream, int* status) {
  ENTER("cuStreamIsCapturing", true);
  *status = kNotCapturing;
  return all().state.capturing && !stream ? kCaptureImplicit : kSuccess;
}
Result cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER("cuThreadExchangeStreamCaptureMode", false);
  std::swap(*mode, capture_mode);
  return kSuccess;
}

Result cuMemcpyAsync(Pointer to, Pointer from, std::size_t bytes, Stream stream) {
  ENTER("cuMemcpyAsync", true);
  for (const Pointer p : {to, from})
    if (const auto r = region_at(p); r != all().regions.end() && p - r->first + bytes > r->second.bytes)
      return kInvalidValue;
  all().copies.push_back({to, from, bytes, stream});
  if (!all().state.late) run_copies(nullptr);
  ++all().state.copies;
  all().state.copied += bytes;
  all().state.last_copied_in = stream;
  return kSuccess;
}

// Allocates memory of its own, which is shared with nobody.
Result cuMemAlloc_v2(Pointer* pointer, std::size_t bytes) {
  ENTER_UNSAFE("cuMemAlloc");
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return kOutOfMemory;
  *pointer = reinterpret_cast<Pointer>(mapped);
  const auto context = reinterpret_cast<std::uintptr_t>(contexts.back()) + (all().state.in_other_context ? 100 : 0);
  all().regions[*pointer] = {
      bytes, mapped, bytes, current_device(), 0, nullptr, reinterpret_cast<ContextHandle>(context)};
  return kSuccess;
}
Result cuMemFree_v2(Pointer pointer) {
  ENTER_UNSAFE("cuMemFree");
  const auto at = all().regions.find(pointer);
  if (at == all().regions.end() || at->second.handle) return misuse("cuMemFree");
  if (at->second.device != current_device()) return misuse("cuMemFree in another context");
  run_copies(nullptr);
  if (at->second.external) {
    --at->second.external->mappings;
    --all().state.mappings;
  }
  munmap(at->second.mapped, at->second.mapped_bytes);
  all().regions.erase(at);
  return kSuccess;
}

Result cuMemGetAddressRange_v2(Pointer* base, std::size_t* bytes, Pointer pointer) {
  ENTER("cuMemGetAddressRange", true);
  const auto at = region_at(pointer);
  if (at == all().regions.end()) return kInvalidValue;
  *base = at->first;
  *bytes = at->second.bytes;
  return kSuccess;
}
Result cuPointerGetAttribute(void* data, int attribute, Pointer pointer) {
  ENTER("cuPointerGetAttribute", true);
  const auto at = region_at(pointer);
  if (at == all().regions.end()) return kInvalidValue;
  if (attribute == kDeviceOrdinal)
    std::memcpy(data, &at->second.device, sizeof(int));
  else if (attribute == kMemoryType)
    std::memcpy(data, &kDeviceMemory, sizeof kDeviceMemory);
  else if (attribute == kPointerContext)
    std::memcpy(data, &at->second.context, sizeof at->second.context);
  else
    return misuse("cuPointerGetAttribute");
  return kSuccess;
}

Result cuImportExternalMemory(External* memory, const ExternalMemoryDesc* desc) {
  ENTER_UNSAFE("cuImportExternalMemory");
  ExternalMemory made{desc->handle.fd, current_device(), 0, {}, file_of(desc->handle.fd)};
  if (desc->type != kOpaqueFd || !read_header(made.fd, made.header) ||
      desc->size > made.header.bytes - made.header.offset)
    return kInvalidValue;
  // A file has some bytes more after the memory, as many as the header takes.
  if (made.header.bytes - made.header.offset - desc->size > 64) return misuse("cuImportExternalMemory of another size");
  if (desc->flags != kDedicated) return misuse("cuImportExternalMemory of dedicated memory without the flag");
  *memory = reinterpret_cast<External>(new ExternalMemory(made));
  ++all().state.externals;
  return kSuccess;
}
Result cuExternalMemoryGetMappedBuffer(Pointer* pointer, External memory, const ExternalBufferDesc* desc) {
  ENTER_UNSAFE("cuExternalMemoryGetMappedBuffer");
  auto* const external = reinterpret_cast<ExternalMemory*>(memory);
  if (external->device != current_device()) return misuse("cuExternalMemoryGetMappedBuffer in another context");
  const Header& header = external->header;
  if (desc->offset > header.bytes - header.offset || desc->size > header.bytes - header.offset - desc->offset)
    return kInvalidValue;
  void* const mapped = map_file(external->fd, header.bytes);
  if (!mapped) return kOutOfMemory;
  *pointer = reinterpret_cast<Pointer>(mapped) + header.offset + desc->offset;
  all().regions[*pointer] = {desc->size, mapped, header.bytes, external->device, 0, external, contexts.back()};
  ++external->mappings;
  ++all().state.mappings;
  return kSuccess;
}
Result cuDestroyExternalMemory(External memory) {
  ENTER_UNSAFE("cuDestroyExternalMemory");
  auto* const external = reinterpret_cast<ExternalMemory*>(memory);
  if (external->device != current_device()) return misuse("cuDestroyExternalMemory in another context");
  if (external->mappings > 0) return misuse("cuDestroyExternalMemory before cuMemFree");
  if (file_of(external->fd) != external->file) return misuse("a descriptor that was taken over is closed");
  if (!is_mapped(external->file)) return misuse("cuDestroyExternalMemory after the memory was freed");
  close(external->fd);
  delete external;
  --all().state.externals;
  return kSuccess;
}

Result cuMemCreate(Handle* handle, std::size_t bytes, const void* properties, unsigned long long) {
  ENTER("cuMemCreate", false);
  const auto* const p = static_cast<const AllocationProp*>(properties);
  Header header = all().header;
  if (header.offset == 0) return misuse("cuMemCreate");  // before cuda_stand_in_learn()
  header.bytes = header.offset + bytes;
  const int fd = memfd_create("stand-in for CUDA memory", 0);
  if (fd < 0 || ftruncate(fd, off_t(header.bytes)) != 0 || pwrite(fd, &header, sizeof header, 0) < 0 ||
      pwrite(fd, &header.offset, sizeof header.offset, off_t(header.offset - sizeof header.offset)) < 0)
    return kOutOfMemory;
  *handle = ++all().last_handle;
  all().physical[*handle] = {fd, p->location.id, 1, (p->handle_types & kPosixFd) != 0, bytes};
  ++all().state.handles;
  return kSuccess;
}
Result cuMemRetainAllocationHandle(Handle* handle, void* address) {
  ENTER("cuMemRetainAllocationHandle", false);
  const auto at = region_at(reinterpret_cast<Pointer>(address));
  if (at == all().regions.end() || !at->second.handle) return kInvalidValue;
  *handle = at->second.handle;
  ++all().physical[*handle].references;
  ++all().state.handles;
  return kSuccess;
}
Result cuMemRelease(Handle handle) {
  ENTER("cuMemRelease", false);
  if (!all().physical.contains(handle)) return misuse("cuMemRelease");
  --all().state.handles;
  release(handle);
  return kSuccess;
}
Result cuMemExportToShareableHandle(void* shareable, Handle handle, int type, unsigned long long) {
  ENTER("cuMemExportToShareableHandle", false);
  const auto at = all().physical.find(handle);
  if (at == all().physical.end()) return misuse("cuMemExportToShareableHandle");
  if (type != kPosixFd || !at->second.exportable) return kInvalidValue;
  const int fd = dup(at->second.fd);
  std::memcpy(shareable, &fd, sizeof fd);
  return kSuccess;
}

Result cuMemAddressReserve(Pointer* pointer, std::size_t bytes, std::size_t, Pointer, unsigned long long) {
  ENTER("cuMemAddressReserve", false);
  // There must be room for the header, which comes before the memory.
  const std::size_t room = bytes + all().header.offset;
  void* const found = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return kOutOfMemory;
  *pointer = reinterpret_cast<Pointer>(found) + all().header.offset;
  all().reserved[*pointer] = room;
  return kSuccess;
}
Result cuMemAddressFree(Pointer pointer, std::size_t) {
  ENTER("cuMemAddressFree", false);
  const auto at = all().reserved.find(pointer);
  if (at == all().reserved.end()) return misuse("cuMemAddressFree");
  munmap(reinterpret_cast<void*>(pointer - all().header.offset), at->second);
  all().reserved.erase(at);
  return kSuccess;
}
Result cuMemMap(Pointer pointer, std::size_t bytes, std::size_t, Handle handle, unsigned long long) {
  ENTER("cuMemMap", false);
  const auto reserved = all().reserved.find(pointer);
  const auto at = all().physical.find(handle);
  if (reserved == all().reserved.end() || at == all().physical.end()) return misuse("cuMemMap");
  void* const place = reinterpret_cast<void*>(pointer - all().header.offset);
  const std::size_t whole = all().header.offset + bytes;
  if (mmap(place, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, at->second.fd, 0) == MAP_FAILED)
    return kOutOfMemory;
  ++at->second.references;
  all().regions[pointer] = {bytes, place, whole, at->second.device, handle};
  return kSuccess;
}
Result cuMemSetAccess(Pointer, std::size_t, const void*, std::size_t) { return kSuccess; }
Result cuMemUnmap(Pointer pointer, std::size_t) {
  ENTER("cuMemUnmap", false);
  const auto at = all().regions.find(pointer);
  if (at == all().regions.end() || !at->second.handle) return misuse("cuMemUnmap");
  const Handle handle = at->second.handle;
  all().regions.erase(at);
  release(handle);
  return kSuccess;
}

}  // extern "C"
