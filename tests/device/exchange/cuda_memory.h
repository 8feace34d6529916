// Memory as another library has it from CUDA, by CUDA's driver or by the library that stands in for it.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "../../../backends/cuda/sharing.h"
#include "../../../frontend/support/platform.h"

namespace weft::test {

namespace cuda = backend::cuda;

/// The driver that weft uses.
inline void* cuda_library() {
  return platform::find_library(platform::environment("WEFT_CUDA_DRIVER").value_or("libcuda.so.1"));
}

template <class... Args>
void cuda_call(const char* name, Args... args) {
  const auto function = reinterpret_cast<cuda::abi::Result (*)(Args...)>(platform::find_function(cuda_library(), name));
  ASSERT_TRUE(function) << name;
  ASSERT_EQ(function(args...), cuda::abi::kSuccess) << name;
}

/// An allocation of cuMemCreate, with handles for others (`exportable`) or without (`kept`), or of cuMemAlloc
/// (`plain`).
class CudaMemory {
 public:
  enum Kind { exportable, kept, plain };
  static constexpr std::size_t kBytes = 2 << 20;  // cuMemCreate gives multiples of this

  CudaMemory(int device, Kind kind) : context_(cuda::Context::hold(cuda::Driver::get(), device)), kind_(kind) {
    const cuda::Context::Scope current(*context_);
    if (kind == plain) {
      cuda_call("cuMemAlloc_v2", &pointer_, std::size_t(kBytes));
      return;
    }
    struct Location {
      int type = 1, id = 0;
    };
    struct {
      int type = 1, handles = 0;
      Location location;
      void* win32 = nullptr;
      unsigned char flags[8] = {};
    } properties;
    properties.handles = kind == exportable ? cuda::abi::kPosixFd : 0;
    properties.location.id = device;
    struct {
      Location location;
      int flags = 3;
    } access;
    access.location.id = device;
    cuda::abi::Handle handle = 0;
    cuda_call("cuMemCreate", &handle, std::size_t(kBytes), static_cast<const void*>(&properties), 0ull);
    cuda_call("cuMemAddressReserve", &pointer_, std::size_t(kBytes), std::size_t(0), 0ull, 0ull);
    cuda_call("cuMemMap", pointer_, std::size_t(kBytes), std::size_t(0), handle, 0ull);
    cuda_call("cuMemRelease", handle);
    cuda_call("cuMemSetAccess", pointer_, std::size_t(kBytes), static_cast<const void*>(&access), std::size_t(1));
  }
  ~CudaMemory() {
    const cuda::Context::Scope current(*context_);
    if (kind_ == plain) {
      cuda_call("cuMemFree_v2", pointer_);
      return;
    }
    cuda_call("cuMemUnmap", pointer_, std::size_t(kBytes));
    cuda_call("cuMemAddressFree", pointer_, std::size_t(kBytes));
  }
  CudaMemory(const CudaMemory&) = delete;

  float* data() const { return reinterpret_cast<float*>(pointer_); }
  int device() const { return context_->device(); }

 private:
  std::shared_ptr<const cuda::Context> context_;
  Kind kind_;
  cuda::abi::Pointer pointer_ = 0;
};

/// Copies as the other library would, and waits.
inline void cuda_copy(int device, void* to, const void* from, std::size_t bytes) {
  const auto pointer = [](const void* p) { return cuda::abi::Pointer(reinterpret_cast<std::uintptr_t>(p)); };
  const std::uint64_t begin[] = {0};
  cuda::copy(*cuda::Context::hold(cuda::Driver::get(), device), nullptr, pointer(to), pointer(from), bytes, begin);
}
/// Copies as the other library would, without waiting.
inline void cuda_copy_later(int device, void* to, const void* from, std::size_t bytes, CUstream_st* stream) {
  const auto pointer = [](const void* p) { return cuda::abi::Pointer(reinterpret_cast<std::uintptr_t>(p)); };
  const auto context = cuda::Context::hold(cuda::Driver::get(), device);
  const cuda::Context::Scope current(*context);
  cuda_call("cuMemcpyAsync", pointer(to), pointer(from), bytes, stream);
}
inline float cuda_read(int device, const void* data, int k) {
  float value = 0;
  cuda_copy(device, &value, static_cast<const float*>(data) + k, sizeof value);
  return value;
}
inline void cuda_write(int device, void* data, int k, float value) {
  cuda_copy(device, static_cast<float*>(data) + k, &value, sizeof value);
}

}  // namespace weft::test
