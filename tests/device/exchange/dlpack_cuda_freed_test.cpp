// Memory that CUDA has seen: not used again before CUDA has finished, and never waited for with a lock held.
#include <atomic>
#include <cstring>
#include <thread>

#include "dlpack_cuda.h"

using namespace weft;
using namespace weft::test;

namespace {

CUDA_TEST(DlpackCudaFreed);

TEST_P(DlpackCudaFreed, FreedMemoryWaitsForCuda) {
  if (!stands_in()) GTEST_SKIP() << "CUDA's work is late in the stand-in";
  auto source = counting(CudaMemory::plain);
  auto* const stream = reinterpret_cast<CUstream_st*>(std::uintptr_t(2));
  Array<float> x = zeros<float>(gpu(), 64);
  const std::uint64_t address = x.address();
  DLManagedTensor* tensor = to_dlpack_unversioned(x);
  counts().late = true;
  cuda_copy_later(number(), tensor->dl_tensor.data, source->data(), 256, stream);
  const int waits = counts().context_waits;
  tensor->deleter(tensor);
  x = {};
  EXPECT_EQ(counts().context_waits, waits) << "who drops an array does not wait";
  Array<float> y = full<float>(gpu(), 64, 5.f);
  EXPECT_NE(y.address(), address);
  y.wait();
  gpu().synchronize();  // the copy runs here
  EXPECT_EQ(counts().context_waits, waits + 1);
  EXPECT_EQ(y.to_vector(), std::vector<float>(64, 5.f));
  EXPECT_EQ(zeros<float>(gpu(), 64).address(), address) << "used again";
}

TEST_P(DlpackCudaFreed, FreedMemoryIsUsedAgainBeforeItAddsUp) {
  if (!stands_in()) GTEST_SKIP() << "counted by the stand-in";
  for (const bool made_to_be_shared : {false, true}) {
    const int waits = counts().context_waits;
    int most = 0;
    for (int k = 0; k < 40; ++k) {  // arrays of 8 MiB, of which 8 may wait
      Array<float> x = made_to_be_shared ? shareable<float>(gpu(), 2 << 20) : zeros<float>(gpu(), 2 << 20);
      DLManagedTensor* tensor = to_dlpack_unversioned(x);
      tensor->deleter(tensor);
      most = std::max(most, counts().mappings);
    }
    EXPECT_LE(most, 11);
    EXPECT_GE(counts().context_waits, waits + 3);
    EXPECT_LE(counts().context_waits, waits + 6);
  }
}

TEST_P(DlpackCudaFreed, MemoryThatCudaCannotBeWaitedForStays) {
  if (!stands_in()) GTEST_SKIP() << "failures are the stand-in's";
  const auto drop_one = [&] {
    Array<float> x = shareable<float>(gpu(), 64);
    DLManagedTensor* tensor = to_dlpack_unversioned(x);
    tensor->deleter(tensor);
  };
  counts().failing = "cuCtxSynchronize";
  drop_one();
  for (int k = 0; k < 3; ++k) gpu().synchronize();
  EXPECT_EQ(counts().mappings, 1);
  counts().failing = nullptr;
  gpu().synchronize();
  EXPECT_EQ(counts().mappings, 0);
  // In a context in which a kernel failed nothing runs any more.
  counts().failing = "cuCtxSynchronize";
  counts().failure = cuda::abi::kIllegalAddress;
  drop_one();
  gpu().synchronize();
  EXPECT_EQ(counts().mappings, 0);
  counts().failing = nullptr;
}

TEST_P(DlpackCudaFreed, ACaptureGoesOn) {
  if (!stands_in()) GTEST_SKIP() << "streams are captured in the stand-in";
  auto memory = counting(CudaMemory::plain);
  int deleted = 0;
  DLManagedTensor* taken = Old::make(number(), memory->data(), {8}, deleted);
  Array<float> x = shareable<float>(gpu(), 64), y = shareable<float>(gpu(), 64);
  DLManagedTensor* tensor = to_dlpack_unversioned(x);
  counts().capturing = true;
  tensor->deleter(tensor);
  x = {};
  gpu().synchronize();
  EXPECT_EQ(counts().mappings, 1) << "kept: nobody knows whether CUDA has finished";
  tensor = to_dlpack_unversioned(y);  // maps a page
  tensor->deleter(tensor);
  const std::string text = "CUDA's default stream is asked for while another is captured";
  expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), taken, {.copy = true}); }), text);
  expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), taken); }), text);
  EXPECT_EQ(counts().captures_broken, 0);
  counts().capturing = false;
  const int before = counts().mappings;
  gpu().synchronize();
  EXPECT_EQ(counts().mappings, before - 1) << "that of x";
  EXPECT_EQ(from_dlpack<float>(gpu(), taken, {.copy = true}).at(3), 3);
}

// Another thread allocates and frees while CUDA is called, because the call may be waiting for that thread.
TEST_P(DlpackCudaFreed, CallsCudaWithoutLocks) {
  if (!stands_in()) GTEST_SKIP() << "seen by the stand-in";
  static const Device* device;
  static std::atomic<int> heard;
  device = &gpu();
  heard = 0;
  counts().on_call = [](const char* name) {
    for (const char* slow : {"cuMemFree", "cuDestroyExternalMemory", "cuImportExternalMemory", "cuCtxSynchronize",
                             "cuDevicePrimaryCtxRetain"})
      if (std::strcmp(name, slow) == 0) {
        std::thread([] {
          backend::Device& native = device->native();
          native.free(native.allocate(32, backend::MemoryKind::device));
        }).join();
        ++heard;
      }
  };
  const auto pass_on = [](Array<float> x) {
    DLManagedTensor* tensor = to_dlpack_unversioned(x);
    tensor->deleter(tensor);
  };
  pass_on(shareable<float>(gpu(), 64));
  // Each page holds one array: the second page that becomes free sends the first to the driver.
  for (int k = 0; k < 3; ++k) pass_on(zeros<float>(gpu(), 1 << 20));
  gpu().synchronize();
  EXPECT_EQ(counts().mappings, 1) << "one page is kept";
  EXPECT_GE(heard, 4 + 1 + 1 + 2 * 3);
  counts().on_call = nullptr;
}

}  // namespace
