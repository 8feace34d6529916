// The fixture of the tests of DLPack with CUDA.
#pragma once
#include <weft/runtime/dlpack.h>
#include <weft/vulkan.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../../../backends/vulkan/device.h"
#include "../../../runtime/core/state.h"
#include "../../../runtime/exchange/dlpack_abi.h"
#include "../../stand_in/cuda_stand_in.h"
#include "../watched_test.h"
#include "cuda_memory.h"
#include "dlpack_foreign.h"

#ifndef WEFT_CUDA_STAND_IN  // if it is not built
#define WEFT_CUDA_STAND_IN ""
#endif

namespace weft::test {

inline constexpr DlpackOptions kCuda{.memory = DlpackMemory::cuda};
inline constexpr const char* kDriver = "WEFT_CUDA_DRIVER";

inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::size_t(std::distance(begin(all), end(all)));
}

/// A test with a GPU that CUDA has, and CUDA's driver; or with the software device and a stand-in for the driver
/// (tests/stand_in): another library, which the environment names, whose memory is the same bytes as lavapipe's.
class CudaTest : public WatchedTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (on_gpu()) {
      number_ = twin_of(device());
      if (number_ < 0) GTEST_SKIP() << "CUDA does not have this GPU";
      subject_ = std::make_unique<Device>(device());
      return;
    }
    if (std::string(WEFT_CUDA_STAND_IN).empty()) GTEST_SKIP() << "there is no stand-in here";
    platform::set_environment(kDriver, WEFT_CUDA_STAND_IN);
    stand_in_ = reinterpret_cast<CudaStandInState*>(platform::find_function(cuda_library(), "cuda_stand_in"))();
    const auto learn =
        reinterpret_cast<CudaStandInLearn*>(platform::find_function(cuda_library(), "cuda_stand_in_learn"));
    instance_ = backend::vulkan::Instance::get(false);  // with validation if the environment asks for it
    // CUDA has two devices, of which the second is the software device.
    const backend::vulkan::Adapter& adapter = software();
    stand_in_->devices = 2;
    stand_in_->uuids[0][0] = 0xff;
    std::ranges::copy(adapter.device_uuid, stand_in_->uuids[1]);
    stand_in_->failing = nullptr;
    number_ = 1;
    subject_ = std::make_unique<Device>(open({.page_bytes = 1 << 20, .map_device_memory = false, .share_pages = true}));
    if (!adapter.memory_fd) GTEST_SKIP() << "the software device does not share memory";
    const Array<float> any = shareable<float>(*subject_, 1);
    ASSERT_TRUE(learn(export_memory(any).fd.get()));
  }
  void TearDown() override {
    subject_.reset();
    if (!IsSkipped()) device().synchronize();  // the memory that was given away is free after this
    platform::set_environment(kDriver, nullptr);
    if (!stand_in_) return;
    EXPECT_EQ(stand_in_->captures_broken, 0);
    EXPECT_EQ(stand_in_->misuses, 0) << stand_in_->last_misuse;
    EXPECT_EQ(stand_in_->contexts, 0);
    EXPECT_EQ(stand_in_->externals, 0);
    EXPECT_EQ(stand_in_->mappings, 0);
    EXPECT_EQ(stand_in_->handles, 0);
    *stand_in_ = {};
  }

  static int twin_of(const Device& device) {
    const cuda::Driver* const driver = cuda::Driver::find();
    const backend::VulkanAccess access(device.native(), "test");
    return driver ? driver->find_device(access.device_uuid()).value_or(-1) : -1;
  }

  const backend::vulkan::Adapter& software() const {
    return *std::ranges::find(instance_->adapters(), true, [](const auto& a) { return a.info.software; });
  }

  /// The software device with memory of another kind. gpu() has memory as on a GPU that CUDA has, too: not mapped, in
  /// pages that can be exported.
  Device open(const backend::vulkan::Tuning& tuning) const {
    static std::uint64_t ids = 1ull << 40;
    auto state = std::make_shared<detail::DeviceState>();
    state->id = ids++;
    state->device = std::make_unique<backend::vulkan::VulkanDevice>(instance_, software(), tuning);
    state->streams.push_back(std::make_unique<detail::StreamState>(*state, state->device->create_stream()));
    state->default_stream = state->streams.front().get();
    return Device(state);
  }

  /// The device whose GPU CUDA has; on the software device it ends with the test.
  const Device& gpu() const { return *subject_; }
  int number() const { return number_; }
  /// The counters of the stand-in; on a GPU, an object without effect.
  CudaStandIn& counts() const {
    static CudaStandIn none;
    return stand_in_ ? *stand_in_ : none;
  }
  bool stands_in() const { return stand_in_ != nullptr; }
  float read(const DLTensor& t, int k) const { return cuda_read(number_, t.data, k); }
  void write(const DLTensor& t, int k, float value) const { cuda_write(number_, t.data, k, value); }
  /// 0, 1, 2, ...
  std::shared_ptr<CudaMemory> counting(CudaMemory::Kind kind) const {
    auto memory = std::make_shared<CudaMemory>(number_, kind);
    std::vector<float> values(256);
    std::iota(values.begin(), values.end(), 0.f);
    cuda_copy(number_, memory->data(), values.data(), 1024);
    return memory;
  }

  std::unique_ptr<Device> subject_;  ///< gpu(); a test may end it

 private:
  CudaStandIn* stand_in_ = nullptr;
  std::shared_ptr<backend::vulkan::Instance> instance_;
  int number_ = -1;
};

/// Defines a suite like DEVICE_TEST.
#define CUDA_TEST(Suite)                                                \
  class Suite : public ::weft::test::CudaTest {};                       \
  INSTANTIATE_TEST_SUITE_P(On, Suite, testing::Values("vulkan", "gpu"), \
                           [](const auto& info) { return std::string(info.param); })

}  // namespace weft::test
