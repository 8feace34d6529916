// The part of CUDA's driver interface that weft uses: types, numbers, functions.
//
// It is declared here because weft is built on machines without CUDA and run on those with it. A test compares it with
// <cuda.h> where that is installed.
#pragma once
#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace weft::backend::cuda::abi {

using Result = int;                           // CUresult
using Device = int;                           // CUdevice
using Pointer = unsigned long long;           // CUdeviceptr
using Handle = unsigned long long;            // CUmemGenericAllocationHandle
using Stream = CUstream_st*;                  // CUstream
using ContextHandle = struct ContextObject*;  // CUcontext
using External = struct ExternalMemoryObject*;

inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kDeinitialized = 4, kInvalidContext = 201,
                        kInvalidHandle = 400, kIllegalAddress = 700, kContextIsDestroyed = 709, kNotPermitted = 800,
                        kNotSupported = 801, kCaptureUnsupported = 900, kCaptureImplicit = 906, kUnknown = 999;
// After these errors, of a kernel or of the GPU itself, the context runs nothing more in this process.
inline constexpr Result kBroken[] = {214, 220, 226, kIllegalAddress, 702, 710, 714, 715, 716, 717, 718, 719, 721};

// CUexternalMemoryHandleType, flags of the descriptor
inline constexpr int kOpaqueFd = 1;
inline constexpr unsigned int kDedicated = 1;
// CUmemAllocationHandleType
inline constexpr int kPosixFd = 1;
// CUpointer_attribute, CUmemorytype
inline constexpr int kPointerContext = 1, kMemoryType = 2, kDeviceOrdinal = 9;
inline constexpr unsigned int kDeviceMemory = 2;
// CUstreamCaptureMode, CUstreamCaptureStatus
inline constexpr int kCaptureRelaxed = 2, kNotCapturing = 0;

struct Uuid {
  unsigned char bytes[16];
};

struct ExternalMemoryDesc {  // CUDA_EXTERNAL_MEMORY_HANDLE_DESC
  int type;
  union {
    int fd;
    struct {
      void* handle;
      const void* name;
    } win32;
  } handle;
  unsigned long long size;
  unsigned int flags;
  unsigned int reserved[16];
};

struct ExternalBufferDesc {  // CUDA_EXTERNAL_MEMORY_BUFFER_DESC
  unsigned long long offset, size;
  unsigned int flags;
  unsigned int reserved[16];
};

// F(name here, name in the library, arguments): every function returns a Result. The library's names are the versions
// that every libcuda from 11.4 on has.
#define WEFT_CUDA_FUNCTIONS(F)                                                                                \
  F(init, "cuInit", (unsigned int flags))                                                                     \
  F(get_error_name, "cuGetErrorName", (Result error, const char** name))                                      \
  F(get_error_string, "cuGetErrorString", (Result error, const char** text))                                  \
  F(device_get_count, "cuDeviceGetCount", (int* count))                                                       \
  F(device_get, "cuDeviceGet", (Device * device, int ordinal))                                                \
  F(device_get_uuid, "cuDeviceGetUuid_v2", (Uuid * uuid, Device device))                                      \
  F(primary_ctx_retain, "cuDevicePrimaryCtxRetain", (ContextHandle * context, Device device))                 \
  F(primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", (Device device))                                     \
  F(ctx_push, "cuCtxPushCurrent_v2", (ContextHandle context))                                                 \
  F(ctx_pop, "cuCtxPopCurrent_v2", (ContextHandle * context))                                                 \
  F(ctx_synchronize, "cuCtxSynchronize", ())                                                                  \
  F(stream_synchronize, "cuStreamSynchronize", (Stream stream))                                               \
  F(stream_is_capturing, "cuStreamIsCapturing", (Stream stream, int* status))                                 \
  F(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int* mode))                                  \
  F(memcpy_async, "cuMemcpyAsync", (Pointer to, Pointer from, std::size_t bytes, Stream stream))              \
  F(mem_free, "cuMemFree_v2", (Pointer pointer))                                                              \
  F(mem_get_address_range, "cuMemGetAddressRange_v2", (Pointer * base, std::size_t * bytes, Pointer pointer)) \
  F(pointer_get_attribute, "cuPointerGetAttribute", (void* data, int attribute, Pointer pointer))             \
  F(import_external_memory, "cuImportExternalMemory", (External * memory, const ExternalMemoryDesc* desc))    \
  F(external_memory_get_mapped_buffer, "cuExternalMemoryGetMappedBuffer",                                     \
    (Pointer * pointer, External memory, const ExternalBufferDesc* desc))                                     \
  F(destroy_external_memory, "cuDestroyExternalMemory", (External memory))                                    \
  F(mem_retain_allocation_handle, "cuMemRetainAllocationHandle", (Handle * handle, void* address))            \
  F(mem_export_to_shareable_handle, "cuMemExportToShareableHandle",                                           \
    (void* shareable, Handle handle, int type, unsigned long long flags))                                     \
  F(mem_release, "cuMemRelease", (Handle handle))

/// The functions, by the names here.
struct Functions {
#define WEFT_CUDA_DECLARE(name, symbol, arguments) Result(*name) arguments = nullptr;
  WEFT_CUDA_FUNCTIONS(WEFT_CUDA_DECLARE)
#undef WEFT_CUDA_DECLARE
};

}  // namespace weft::backend::cuda::abi
