// weft's declarations of CUDA's driver interface against <cuda.h>, if there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <type_traits>

#include "../../backends/cuda/driver_abi.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

namespace {

namespace abi = weft::backend::cuda::abi;

static_assert(abi::kSuccess == CUDA_SUCCESS && abi::kInvalidValue == CUDA_ERROR_INVALID_VALUE &&
              abi::kUnknown == CUDA_ERROR_UNKNOWN && abi::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY &&
              abi::kInvalidContext == CUDA_ERROR_INVALID_CONTEXT && abi::kDeinitialized == CUDA_ERROR_DEINITIALIZED &&
              abi::kInvalidHandle == CUDA_ERROR_INVALID_HANDLE && abi::kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS &&
              abi::kContextIsDestroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED &&
              abi::kNotPermitted == CUDA_ERROR_NOT_PERMITTED && abi::kNotSupported == CUDA_ERROR_NOT_SUPPORTED &&
              abi::kCaptureUnsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
              abi::kCaptureImplicit == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
// Two of the numbers stand for names that the oldest header in use lacks.
constexpr abi::Result kBroken[] = {CUDA_ERROR_ECC_UNCORRECTABLE,
                                   CUDA_ERROR_NVLINK_UNCORRECTABLE,
                                   226,  // CUDA_ERROR_CONTAINED
                                   CUDA_ERROR_ILLEGAL_ADDRESS,
                                   CUDA_ERROR_LAUNCH_TIMEOUT,
                                   CUDA_ERROR_ASSERT,
                                   CUDA_ERROR_HARDWARE_STACK_ERROR,
                                   CUDA_ERROR_ILLEGAL_INSTRUCTION,
                                   CUDA_ERROR_MISALIGNED_ADDRESS,
                                   CUDA_ERROR_INVALID_ADDRESS_SPACE,
                                   CUDA_ERROR_INVALID_PC,
                                   CUDA_ERROR_LAUNCH_FAILED,
                                   721};  // CUDA_ERROR_TENSOR_MEMORY_LEAK
static_assert(std::ranges::equal(abi::kBroken, kBroken));
static_assert(abi::kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED &&
              abi::kNotCapturing == CU_STREAM_CAPTURE_STATUS_NONE &&
              abi::kPointerContext == CU_POINTER_ATTRIBUTE_CONTEXT);
static_assert(abi::kOpaqueFd == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD &&
              abi::kDedicated == CUDA_EXTERNAL_MEMORY_DEDICATED);
static_assert(abi::kPosixFd == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(abi::kMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE &&
              abi::kDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL && abi::kDeviceMemory == CU_MEMORYTYPE_DEVICE);

using Desc = CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
static_assert(sizeof(abi::ExternalMemoryDesc) == sizeof(Desc) &&
              offsetof(abi::ExternalMemoryDesc, type) == offsetof(Desc, type) &&
              offsetof(abi::ExternalMemoryDesc, handle) == offsetof(Desc, handle) &&
              offsetof(abi::ExternalMemoryDesc, size) == offsetof(Desc, size) &&
              offsetof(abi::ExternalMemoryDesc, flags) == offsetof(Desc, flags));
using Buffer = CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
static_assert(sizeof(abi::ExternalBufferDesc) == sizeof(Buffer) &&
              offsetof(abi::ExternalBufferDesc, offset) == offsetof(Buffer, offset) &&
              offsetof(abi::ExternalBufferDesc, size) == offsetof(Buffer, size) &&
              offsetof(abi::ExternalBufferDesc, flags) == offsetof(Buffer, flags));
static_assert(sizeof(abi::Uuid) == sizeof(CUuuid));

// Whether two functions have as many arguments, each as large and of the same kind.
template <class A, class B>
constexpr bool alike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class... A, class... B>
constexpr bool same_call(abi::Result (*)(A...), CUresult (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B))
    return (alike<A, B> && ...);
  else
    return false;
}
#define SAME(name, function) \
  static_assert(same_call(decltype(abi::Functions::name)(nullptr), static_cast<decltype(&function)>(nullptr)))
SAME(init, cuInit);
SAME(get_error_name, cuGetErrorName);
SAME(get_error_string, cuGetErrorString);
SAME(device_get_count, cuDeviceGetCount);
SAME(device_get, cuDeviceGet);
SAME(device_get_uuid, cuDeviceGetUuid);
SAME(primary_ctx_retain, cuDevicePrimaryCtxRetain);
SAME(primary_ctx_release, cuDevicePrimaryCtxRelease);
SAME(ctx_push, cuCtxPushCurrent);
SAME(ctx_pop, cuCtxPopCurrent);
SAME(ctx_synchronize, cuCtxSynchronize);
SAME(stream_synchronize, cuStreamSynchronize);
SAME(stream_is_capturing, cuStreamIsCapturing);
SAME(exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
SAME(memcpy_async, cuMemcpyAsync);
SAME(mem_free, cuMemFree);
SAME(mem_get_address_range, cuMemGetAddressRange);
SAME(pointer_get_attribute, cuPointerGetAttribute);
SAME(import_external_memory, cuImportExternalMemory);
SAME(external_memory_get_mapped_buffer, cuExternalMemoryGetMappedBuffer);
SAME(destroy_external_memory, cuDestroyExternalMemory);
SAME(mem_retain_allocation_handle, cuMemRetainAllocationHandle);
SAME(mem_export_to_shareable_handle, cuMemExportToShareableHandle);
SAME(mem_release, cuMemRelease);

// The macros of the header lead to the versions that are loaded.
constexpr const char* kSymbols[] = {
#define SYMBOL(name, symbol, arguments) symbol,
    WEFT_CUDA_FUNCTIONS(SYMBOL)};
#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)
TEST(CudaAbi, FunctionsHaveTheNamesOfTheHeader) {
  const std::string header[] = {EXPANDED(cuDeviceGetUuid),  EXPANDED(cuDevicePrimaryCtxRelease),
                                EXPANDED(cuCtxPushCurrent), EXPANDED(cuCtxPopCurrent),
                                EXPANDED(cuMemFree),        EXPANDED(cuMemGetAddressRange)};
  for (std::string name : header) {
    if (name == "cuDeviceGetUuid") name += "_v2";  // before CUDA 13 the header did not add the version
    EXPECT_NE(std::find(std::begin(kSymbols), std::end(kSymbols), name), std::end(kSymbols)) << name;
  }
}

}  // namespace

#else

TEST(CudaAbi, FunctionsHaveTheNamesOfTheHeader) { GTEST_SKIP() << "there is no cuda.h here"; }

#endif
