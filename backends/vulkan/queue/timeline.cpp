// Makes, shares and drops semaphores.
#include "timeline.h"

#include <fmt/format.h>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../device.h"

namespace weft::backend::vulkan {

VulkanTimeline::VulkanTimeline(VulkanDevice& device, std::uint64_t value, bool shareable) : DeviceObject(device) {
  device.check_alive();
  create(value, shareable);
}

VulkanTimeline::VulkanTimeline(VulkanDevice& device, FileDescriptor&& fd) : DeviceObject(device) {
  device.check_alive();
  require_sharing();
  if (fd.is_empty()) invalid("a semaphore is imported from an empty file descriptor");
  create(0, true);
  VkImportSemaphoreFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR;
  import.semaphore = semaphore_;
  import.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  import.fd = fd.get();
  const VkResult result = device.vk().vkImportSemaphoreFdKHR(device.handle(), &import);
  if (result != VK_SUCCESS) {
    abandon();
    invalid("file descriptor {} is not a timeline semaphore for {} ({}): {}", fd.get(), device.info().name,
            device.info().adapter, to_string(result));
  }
  fd.release();
}

void VulkanTimeline::require_sharing() const {
  if (!device_.adapter().semaphore_fd)
    unsupported("{} ({}) does not share timeline semaphores (VK_KHR_external_semaphore_fd)", device_.info().name,
                device_.info().adapter);
}

void VulkanTimeline::create(std::uint64_t value, bool shareable) {
  if (shareable) require_sharing();
  shareable_ = shareable;
  VkExportSemaphoreCreateInfo share{};
  share.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO;
  share.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.pNext = shareable ? &share : nullptr;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  type.initialValue = value;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  device_.check_made(device_.vk().vkCreateSemaphore(device_.handle(), &create, nullptr, &semaphore_), semaphore_,
                     "vkCreateSemaphore");
  device_.signals().own(semaphore_);
}

// Streams may still wait for it and signal it.
void VulkanTimeline::abandon() {
  if (device_.detached()) return;
  if (!semaphore_) return;
  device_.signals().disown(semaphore_);
  device_.retirement().drop({Retired::Kind::semaphore, (std::uint64_t)semaphore_});
  semaphore_ = VK_NULL_HANDLE;
}

std::uint64_t VulkanTimeline::value() const {
  device_.check_alive();
  std::uint64_t value = 0;
  device_.check(device_.vk().vkGetSemaphoreCounterValue(device_.handle(), semaphore_, &value),
                "vkGetSemaphoreCounterValue");
  return value;
}

void VulkanTimeline::signal(std::uint64_t value) {
  device_.check_alive();
  device_.signals().signal(semaphore_, value);
}

void VulkanTimeline::wait(std::uint64_t value) const {
  device_.check_alive();
  device_.wait_for(semaphore_, value);
}

FileDescriptor VulkanTimeline::share() const {
  device_.check_alive();
  if (!shareable_) invalid("a semaphore is shared that was not made to be");
  VkSemaphoreGetFdInfoKHR get{};
  get.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR;
  get.semaphore = semaphore_;
  get.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  const VkResult got = device_.vk().vkGetSemaphoreFdKHR(device_.handle(), &get, &fd);
  device_.check_made(got, fd >= 0, "vkGetSemaphoreFdKHR");
  return FileDescriptor(fd);
}

}  // namespace weft::backend::vulkan
