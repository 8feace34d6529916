// Data between the host and the device: directly through mapped memory where possible, else through staging.
#include <algorithm>
#include <cstring>
#include <utility>

#include "../../../frontend/support/error.h"
#include "../device.h"
#include "stream.h"

namespace weft::backend::vulkan {

namespace {

// Reading memory that the host does not cache costs a bus round trip per access; below this size, less than a copy.
constexpr std::size_t kSlowRead = 256;
/// The patience for a chunk of an upload to arrive, in ns: several times what the copy takes.
constexpr std::uint64_t kPatience = 5'000'000;

}  // namespace

Ticket VulkanStream::upload(std::uint64_t to, const void* from, std::size_t bytes) {
  device_.check_alive();
  if (bytes == 0) return recorded_;
  const Place target = device_.memory().resolve(to, bytes);
  if (writes_at_once(target)) {
    std::memcpy(target.host, from, bytes);
    return recorded_;
  }
  const auto* data = static_cast<const std::byte*>(from);
  if (bytes <= kRingBytes / 16) {
    const Allocation between = staging(bytes);
    const Freed freed{device_, between};
    std::memcpy(between.host, data, bytes);
    open().copy(to, between.address, bytes);
    return recorded();
  }
  // At most two full chunks are under way, whatever the total. If a chunk does not arrive, the device is busy with
  // something else: the host does not wait for that, but goes on until kBatches are in flight, and further if others
  // must signal first. Each chunk is submitted at once, because staging memory comes free only after work that the
  // queue has.
  Ticket before = 0, last = 0;
  bool behind = false;
  for (std::size_t at = 0; at < bytes; at += kStagingBytes) {
    const std::size_t part = std::min<std::size_t>(kStagingBytes, bytes - at);
    if (before != 0 && done(before))
      behind = false;
    else if (before != 0 && !behind && !held_up(before))
      behind = !device_.wait_for(timeline_->semaphore, signal_of(before), kPatience);
    const Allocation between = device_.allocate(part, MemoryKind::upload);
    const Freed freed{device_, between};
    std::memcpy(between.host, data + at, part);
    open().copy(to + at, between.address, part);
    before = last;
    last = recorded();
    if (part == kStagingBytes) flush();
  }
  return last;
}

void VulkanStream::download(void* to, std::uint64_t from, std::size_t bytes, Ticket after) {
  device_.check_alive();
  if (bytes == 0) return;
  check_ticket(after);
  const Place source = device_.memory().resolve(from, bytes);
  if (source.host && (source.cached || bytes <= kSlowRead)) {
    wait(after);
    std::memcpy(to, source.host, bytes);
    return;
  }
  staged_download(static_cast<std::byte*>(to), from, bytes, after);
}

void VulkanStream::create_download() {
  vk_.vkDestroyCommandPool(device_.handle(), std::exchange(download_pool_, VK_NULL_HANDLE),
                           nullptr);  // of a failed attempt
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = device_.queue_family();
  device_.check_made(vk_.vkCreateCommandPool(device_.handle(), &pool, nullptr, &download_pool_), download_pool_,
                     "vkCreateCommandPool");
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = download_pool_;
  allocate.commandBufferCount = 1;
  for (Slot& slot : slots_)
    device_.check_made(vk_.vkAllocateCommandBuffers(device_.handle(), &allocate, &slot.commands), slot.commands,
                       "vkAllocateCommandBuffers");
  const Point point = device_.semaphores().take();
  download_semaphore_ = point.semaphore;
  download_value_ = point.value;
}

// Waits for the copy of a half and hands out its bytes.
void VulkanStream::finish(Slot& slot) {
  if (slot.value == 0) return;
  device_.wait_for(download_semaphore_, slot.value);
  std::memcpy(slot.to, slot.staging.host, slot.bytes);
  slot.value = 0;
}

void VulkanStream::record_download(const Slot& slot, const Place& source) {
  const Place target = device_.memory().resolve(slot.staging.address, slot.bytes);
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device_.check(vk_.vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer");
  const VkBufferCopy region{source.offset, target.offset, slot.bytes};
  vk_.vkCmdCopyBuffer(slot.commands, source.buffer, target.buffer, 1, &region);
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk_.vkCmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                           nullptr, 0, nullptr);
  device_.check(vk_.vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer");
}

void VulkanStream::submit_download(Slot& slot, Ticket after) {
  // The waits make what they wait for visible to the copy: the producers' writes, and the last use of the staging
  // memory.
  const VkSemaphore waits[] = {timeline_->semaphore, download_semaphore_};
  const std::uint64_t wait_values[] = {signal_of(after), download_value_};
  const VkPipelineStageFlags stages[] = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT};
  const std::uint64_t signal_value = download_value_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = 2;
  timeline.pWaitSemaphoreValues = wait_values;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &signal_value;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = 2;
  info.pWaitSemaphores = waits;
  info.pWaitDstStageMask = stages;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &slot.commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &download_semaphore_;
  device_.check(device_.submitter().submit(info), "vkQueueSubmit");
  slot.value = download_value_ = signal_value;
}

// Two halves take turns: while one is copied out by the host, the device fills the other.
void VulkanStream::staged_download(std::byte* to, std::uint64_t from, std::size_t bytes, Ticket after) {
  if (download_semaphore_ == VK_NULL_HANDLE) create_download();
  start_now(after);

  // The staging memory is freed at once: when this returns, no copy is under way.
  struct Return {
    VulkanStream& stream;
    ~Return() {
      for (Slot& slot : stream.slots_) {
        if (slot.value != 0) {
          VkSemaphoreWaitInfo wait{};
          wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
          wait.semaphoreCount = 1;
          wait.pSemaphores = &stream.download_semaphore_;
          wait.pValues = &slot.value;
          stream.vk_.vkWaitSemaphores(stream.device_.handle(), &wait, ~0ull);
          slot.value = 0;
        }
        stream.device_.memory().free(slot.staging.handle);
        slot.staging = {};
      }
    }
  } give_back{*this};

  for (std::size_t at = 0, turn = 0; at < bytes; at += kStagingBytes, turn ^= 1) {
    Slot& slot = slots_[turn];
    finish(slot);
    slot.bytes = std::min<std::size_t>(kStagingBytes, bytes - at);
    slot.to = to + at;
    if (slot.staging.handle == 0) slot.staging = device_.allocate(slot.bytes, MemoryKind::readback);
    const Place source = device_.memory().resolve(from + at, slot.bytes);
    record_download(slot, source);
    submit_download(slot, after);
  }
  finish(slots_[0]);
  finish(slots_[1]);
}

}  // namespace weft::backend::vulkan
