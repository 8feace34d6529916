// Shows the renderer's image in a window.
#include <algorithm>

#include "renderer.h"

// Makes no swapchain while the window has no area.
void Renderer::make_swapchain() {
  VkSurfaceCapabilitiesKHR can{};
  check(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(physical_, surface_, &can),
        "vkGetPhysicalDeviceSurfaceCapabilitiesKHR");
  shown_ = can.currentExtent.width == ~0u ? VkExtent2D{width_, height_} : can.currentExtent;
  if (shown_.width == 0 || shown_.height == 0) return;
  std::uint32_t count = 0;
  check(vkGetPhysicalDeviceSurfaceFormatsKHR(physical_, surface_, &count, nullptr),
        "vkGetPhysicalDeviceSurfaceFormatsKHR");
  std::vector<VkSurfaceFormatKHR> formats(count);
  check(vkGetPhysicalDeviceSurfaceFormatsKHR(physical_, surface_, &count, formats.data()),
        "vkGetPhysicalDeviceSurfaceFormatsKHR");
  // A format that keeps the image's numbers as they are is preferred.
  const auto plain = std::find_if(formats.begin(), formats.end(), [](const VkSurfaceFormatKHR& f) {
    return f.format == VK_FORMAT_B8G8R8A8_UNORM || f.format == VK_FORMAT_R8G8B8A8_UNORM;
  });
  const VkSurfaceFormatKHR format = plain == formats.end() ? formats.at(0) : *plain;
  VkSwapchainCreateInfoKHR create{};
  create.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR;
  create.surface = surface_;
  create.minImageCount = std::max(can.minImageCount, can.maxImageCount ? std::min(3u, can.maxImageCount) : 3u);
  create.imageFormat = format.format;
  create.imageColorSpace = format.colorSpace;
  create.imageExtent = shown_;
  create.imageArrayLayers = 1;
  create.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  create.preTransform = can.currentTransform;
  create.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
  create.presentMode = VK_PRESENT_MODE_FIFO_KHR;
  create.clipped = VK_TRUE;
  check(vkCreateSwapchainKHR(device_, &create, nullptr, &swapchain_), "vkCreateSwapchainKHR");
  check(vkGetSwapchainImagesKHR(device_, swapchain_, &count, nullptr), "vkGetSwapchainImagesKHR");
  targets_.resize(count);
  check(vkGetSwapchainImagesKHR(device_, swapchain_, &count, targets_.data()), "vkGetSwapchainImagesKHR");
  for (std::uint32_t k = 0; k < count; ++k) drawn_.push_back(make_semaphore(false));
}

void Renderer::destroy_swapchain() {
  for (const VkSemaphore s : drawn_) vkDestroySemaphore(device_, s, nullptr);
  drawn_.clear();
  if (swapchain_) vkDestroySwapchainKHR(device_, swapchain_, nullptr);
  swapchain_ = VK_NULL_HANDLE;
}

// Acquires an image; false if there is nothing to draw to now. A window that has changed gets images of its new size.
bool Renderer::acquire(VkSemaphore acquired, std::uint32_t& target) {
  if (!swapchain_) make_swapchain();
  if (!swapchain_) return false;
  const VkResult result = vkAcquireNextImageKHR(device_, swapchain_, ~0ull, acquired, VK_NULL_HANDLE, &target);
  if (result != VK_ERROR_OUT_OF_DATE_KHR) {
    check(result, "vkAcquireNextImageKHR");
    return true;
  }
  wait_idle();
  destroy_swapchain();
  return false;
}

void Renderer::show(VkCommandBuffer commands, VkImage target) {
  VkImageMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = target;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  barrier.newLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr, 0,
                       nullptr, 1, &barrier);
  VkImageBlit region{};
  region.srcSubresource = region.dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.srcOffsets[1] = {std::int32_t(width_), std::int32_t(height_), 1};
  region.dstOffsets[1] = {std::int32_t(shown_.width), std::int32_t(shown_.height), 1};
  vkCmdBlitImage(commands, colour_.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, target,
                 VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region, VK_FILTER_LINEAR);
  barrier.oldLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
  barrier.newLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR;
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = 0;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, nullptr, 0,
                       nullptr, 1, &barrier);
}

void Renderer::present(std::uint32_t target) {
  VkPresentInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR;
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &drawn_[target];
  info.swapchainCount = 1;
  info.pSwapchains = &swapchain_;
  info.pImageIndices = &target;
  const std::lock_guard lock(queue_mutex_);
  // An image that is out of date is replaced by acquire().
  const VkResult result = vkQueuePresentKHR(queue_, &info);
  if (result != VK_ERROR_OUT_OF_DATE_KHR) check(result, "vkQueuePresentKHR");
}
