// Drivers that report success and make nothing: every object and every address is checked.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "../../../backends/operations.h"
#include "../../../backends/vulkan/device.h"
#include "../../../backends/vulkan/interop.h"
#include "../../../backends/vulkan/vulkan.h"
#include "../../../frontend/support/error.h"
#include "vulkan_shaders.h"

namespace weft::backend {
namespace {

using vulkan::Instance;
using vulkan::VulkanDevice;

// The results of the functions that replace the driver's.
std::uint64_t given_address = 0;
void* given_memory = nullptr;

VKAPI_ATTR VkDeviceAddress VKAPI_CALL address_of(VkDevice, const VkBufferDeviceAddressInfo*) { return given_address; }
VKAPI_ATTR VkResult VKAPI_CALL map(VkDevice, VkDeviceMemory, VkDeviceSize, VkDeviceSize, VkMemoryMapFlags,
                                   void** made) {
  *made = given_memory;
  return VK_SUCCESS;
}
/// Replaces functions that make one object.
template <class Handle, class Info>
VKAPI_ATTR VkResult VKAPI_CALL make_nothing(VkDevice, const Info*, const VkAllocationCallbacks*, Handle* made) {
  *made = {};
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL allocate_nothing(VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer* made) {
  *made = nullptr;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL make_no_pipeline(VkDevice, VkPipelineCache, std::uint32_t,
                                                const VkComputePipelineCreateInfo*, const VkAllocationCallbacks*,
                                                VkPipeline* made) {
  *made = {};
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL export_nothing(VkDevice, const VkMemoryGetFdInfoKHR*, int* fd) {
  *fd = -1;
  return VK_SUCCESS;
}

class VulkanLies : public testing::Test {
 protected:
  void SetUp() override {
    if (list_vulkan_devices().empty()) GTEST_SKIP() << "no Vulkan adapter";
    open();
  }
  void TearDown() override { close(); }
  void open() {
    close();
    const auto instance = Instance::get(false);
    device_ = std::make_unique<VulkanDevice>(instance, instance->adapters().at(0));
  }
  void close() {
    for (const Allocation& a : kept_) device_->free(a);
    kept_.clear();
    device_.reset();
  }
  VolkDeviceTable& driver() { return const_cast<VolkDeviceTable&>(device_->vk()); }

  /// Expects that f() throws with `lie` in place of a driver's function, and works without it.
  template <class Function>
  void expect_refused(Function VolkDeviceTable::*function, Function lie, ErrorKind kind, const std::string& part,
                      const std::function<void()>& f) {
    const Function honest = driver().*function;
    driver().*function = lie;
    try {
      f();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
    driver().*function = honest;
    f();
  }

  void allocate(std::size_t bytes, MemoryKind kind) {
    const Allocation made = device_->allocate(bytes, kind);
    ASSERT_NE(made.address, 0u);
    if (made.host) std::memset(made.host, 1, bytes);
    kept_.push_back(made);
  }
  std::unique_ptr<VulkanDevice> device_;
  std::vector<Allocation> kept_;
};

constexpr std::uint64_t kAllOnes = ~0ull;

TEST_F(VulkanLies, AddressesWhereNothingLiesAreNotHandedOut) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::upload, MemoryKind::readback})
    for (const std::uint64_t address : {std::uint64_t(0), kAllOnes, kAllOnes - 500}) {
      SCOPED_TRACE(address);
      given_address = address;
      for (const std::size_t bytes : {std::size_t(1000), std::size_t(70) << 20}) {
        open();  // without pages of an earlier round
        expect_refused(&VolkDeviceTable::vkGetBufferDeviceAddress, &address_of, ErrorKind::out_of_memory,
                       std::to_string(bytes) + " bytes of", [&] { allocate(bytes, kind); });
      }
    }
}

TEST_F(VulkanLies, NorIsOneAddressTwice) {
  allocate(1000, MemoryKind::upload);
  given_address = kept_[0].address + 4096;
  expect_refused(&VolkDeviceTable::vkGetBufferDeviceAddress, &address_of, ErrorKind::out_of_memory, "bytes of readback",
                 [&] { allocate(1000, MemoryKind::readback); });
}

TEST_F(VulkanLies, MemoryThatIsMappedNowhereIsNotHandedOut) {
  for (void* const memory : {static_cast<void*>(nullptr), reinterpret_cast<void*>(std::uintptr_t(kAllOnes))})
    for (const MemoryKind kind : {MemoryKind::upload, MemoryKind::readback}) {
      SCOPED_TRACE(memory);
      given_memory = memory;
      open();
      expect_refused(&VolkDeviceTable::vkMapMemory, &map, ErrorKind::out_of_memory, "1000 bytes of",
                     [&] { allocate(1000, kind); });
    }
}

TEST_F(VulkanLies, MemoryAndBuffersThatAreNothingAreRefused) {
  const auto small = [&] { allocate(1000, MemoryKind::device); };
  expect_refused(&VolkDeviceTable::vkAllocateMemory, &make_nothing<VkDeviceMemory, VkMemoryAllocateInfo>,
                 ErrorKind::out_of_memory, "1000 bytes of device memory", small);
  open();
  expect_refused(&VolkDeviceTable::vkCreateBuffer, &make_nothing<VkBuffer, VkBufferCreateInfo>,
                 ErrorKind::out_of_memory, "1000 bytes of device memory", small);
  if (!device_->info().wraps_host) return;
  std::vector<std::byte> memory(10000);
  const auto around = [&] { kept_.push_back(device_->wrap(memory.data(), memory.size())); };
  given_address = kAllOnes;
  expect_refused(&VolkDeviceTable::vkGetBufferDeviceAddress, &address_of, ErrorKind::unsupported,
                 "cannot use the 10000 bytes of the host's memory", around);
}

TEST_F(VulkanLies, SharedMemoryThatIsNothingIsRefused) {
  if (!device_->adapter().memory_fd) GTEST_SKIP() << "it shares none";
  const VulkanAccess access(*device_, "a test");
  given_address = kAllOnes;
  expect_refused(&VolkDeviceTable::vkGetBufferDeviceAddress, &address_of, ErrorKind::out_of_memory,
                 "1024 bytes of memory to be shared", [&] { kept_.push_back(access.allocate_shared(1024)); });
  expect_refused(&VolkDeviceTable::vkGetMemoryFdKHR, &export_nothing, ErrorKind::unsupported, "vkGetMemoryFdKHR",
                 [&] { (void)access.share(kept_.back().address); });
}

TEST_F(VulkanLies, ObjectsThatAreNothingAreRefused) {
  const auto kind = ErrorKind::unsupported;
  const auto nothing = [](const char* call) { return std::string(call) + " on " + "vulkan:0 ("; };
  const auto stream = [&] { (void)device_->create_stream(); };
  expect_refused(&VolkDeviceTable::vkCreateCommandPool, &make_nothing<VkCommandPool, VkCommandPoolCreateInfo>, kind,
                 nothing("vkCreateCommandPool"), stream);
  expect_refused(&VolkDeviceTable::vkAllocateCommandBuffers, &allocate_nothing, kind,
                 nothing("vkAllocateCommandBuffers"), stream);
  open();  // some semaphores are still to be made
  expect_refused(&VolkDeviceTable::vkCreateSemaphore, &make_nothing<VkSemaphore, VkSemaphoreCreateInfo>, kind,
                 nothing("vkCreateSemaphore"), stream);
  expect_refused(&VolkDeviceTable::vkCreateQueryPool, &make_nothing<VkQueryPool, VkQueryPoolCreateInfo>, kind,
                 nothing("vkCreateQueryPool"), [&] { (void)device_->create_timestamps(2); });
  const auto words = test::shader("");
  const auto program = [&] { (void)load_spirv(*device_, {"test", words, sizeof(test::ShaderArgs)}); };
  expect_refused(&VolkDeviceTable::vkCreateShaderModule, &make_nothing<VkShaderModule, VkShaderModuleCreateInfo>, kind,
                 "refuses the shader", program);
  expect_refused(&VolkDeviceTable::vkCreateComputePipelines, &make_no_pipeline, kind, "refuses the shader", program);
  const auto graph = [&] {
    auto operations = std::make_unique<Operations>(*device_);
    operations->list.emplace_back().kind = Operation::Kind::fill;
    operations->list.back().to = kept_.at(0).address;
    operations->list.back().bytes = 4;
    (void)device_->create_graph(std::move(operations));
  };
  allocate(1000, MemoryKind::device);
  expect_refused(&VolkDeviceTable::vkCreateCommandPool, &make_nothing<VkCommandPool, VkCommandPoolCreateInfo>, kind,
                 nothing("vkCreateCommandPool"), graph);
  expect_refused(&VolkDeviceTable::vkAllocateCommandBuffers, &allocate_nothing, kind,
                 nothing("vkAllocateCommandBuffers"), graph);
}

}  // namespace
}  // namespace weft::backend
