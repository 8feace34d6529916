// Copies between the host and the renderer's buffers and image.
#include <cstring>

#include "renderer.h"

// Host memory that the device copies to and from, as large as the largest copy so far.
std::byte* Renderer::stage(VkDeviceSize bytes) {
  if (bytes <= staging_bytes_) return staged_;
  destroy(staging_);
  staging_ = {};
  staging_bytes_ = 0;
  staging_ = make_buffer(bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                         VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  void* mapped = nullptr;
  check(vkMapMemory(device_, staging_.memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  staging_bytes_ = bytes;
  staged_ = static_cast<std::byte*>(mapped);
  return staged_;
}

// Runs commands in the command buffer of the next frame, which is free again when this returns.
void Renderer::run_now(const std::function<void(VkCommandBuffer)>& record) {
  const VkCommandBuffer commands = frames_[std::size_t(begin_frame())].commands;
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
                       nullptr, 0, nullptr);
  record(commands);
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                       VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0,
                       nullptr);
  check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  {
    const std::lock_guard lock(queue_mutex_);
    check(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
  }
  wait_idle();
}

void Renderer::write(VkBuffer to, const void* from, std::size_t bytes) {
  std::memcpy(stage(bytes), from, bytes);
  const VkBufferCopy region{0, 0, bytes};
  run_now([&](VkCommandBuffer commands) { vkCmdCopyBuffer(commands, staging_.buffer, to, 1, &region); });
}

void Renderer::read(VkBuffer from, void* to, std::size_t bytes) {
  const std::byte* const host = stage(bytes);
  const VkBufferCopy region{0, 0, bytes};
  run_now([&](VkCommandBuffer commands) { vkCmdCopyBuffer(commands, from, staging_.buffer, 1, &region); });
  std::memcpy(to, host, bytes);
}

std::vector<std::uint32_t> Renderer::picture() {
  std::vector<std::uint32_t> pixels(std::size_t(width_) * height_);
  const std::byte* const host = stage(pixels.size() * 4);
  VkBufferImageCopy region{};
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.imageExtent = {width_, height_, 1};
  run_now([&](VkCommandBuffer commands) {
    vkCmdCopyImageToBuffer(commands, colour_.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, staging_.buffer, 1, &region);
  });
  std::memcpy(pixels.data(), host, pixels.size() * 4);
  return pixels;
}

void Renderer::wait_idle() {
  const std::lock_guard lock(queue_mutex_);
  check(vkQueueWaitIdle(queue_), "vkQueueWaitIdle");
}
