// Launches, fills and copies on the device, in the order of their hazards.
#include "stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "../../frontend/support/error.h"
#include "../../spirv/emit.h"
#include "device.h"
#include "ray_structure.h"

namespace weft::backend::vulkan {

using ir::Access;

namespace {

VkPipelineStageFlags stages_of(const Adapter& adapter) {
  constexpr VkPipelineStageFlags kUsual = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  return kUsual | (adapter.ray_query ? VK_PIPELINE_STAGE_ACCELERATION_STRUCTURE_BUILD_BIT_KHR : 0);
}
VkAccessFlags writes_of(const Adapter& adapter) {
  constexpr VkAccessFlags kUsual = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  return kUsual | (adapter.ray_query ? VK_ACCESS_ACCELERATION_STRUCTURE_WRITE_BIT_KHR : 0);
}
VkAccessFlags accesses_of(const Adapter& adapter) {
  constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
  return writes_of(adapter) | kReads | (adapter.ray_query ? VK_ACCESS_ACCELERATION_STRUCTURE_READ_BIT_KHR : 0);
}

VkSemaphore make_semaphore(VulkanDevice& device) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  device.check(device.vk().vkCreateSemaphore(device.handle(), &create, nullptr, &semaphore), "vkCreateSemaphore");
  return semaphore;
}

}  // namespace

VulkanStream::VulkanStream(VulkanDevice& device)
    : device_(device),
      vk_(device.vk()),
      stages_(stages_of(device.adapter())),
      writes_(writes_of(device.adapter())),
      all_(accesses_of(device.adapter())),
      layout_(device.pipelines().layout()),
      timeline_(std::make_shared<Timeline>()) {
  try {
    create();
  } catch (...) {
    destroy();
    throw;
  }
  device_.retirement().add(timeline_);
}

void VulkanStream::create() {
  timeline_->semaphore = make_semaphore(device_);
  for (Batch& batch : batches_) {
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = device_.queue_family();
    device_.check(vk_.vkCreateCommandPool(device_.handle(), &pool, nullptr, &batch.pool), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = batch.pool;
    allocate.commandBufferCount = 1;
    device_.check(vk_.vkAllocateCommandBuffers(device_.handle(), &allocate, &batch.commands),
                  "vkAllocateCommandBuffers");
  }
}

void VulkanStream::destroy() {
  for (Batch& batch : batches_) vk_.vkDestroyCommandPool(device_.handle(), batch.pool, nullptr);
  vk_.vkDestroyCommandPool(device_.handle(), download_pool_, nullptr);
  vk_.vkDestroySemaphore(device_.handle(), download_semaphore_, nullptr);
  vk_.vkDestroySemaphore(device_.handle(), timeline_->semaphore, nullptr);
}

VulkanStream::~VulkanStream() {
  try {
    if (!device_.lost()) flush();
  } catch (const std::exception&) {
    // The device is lost then, and so is the work.
  }
  const Ticket submitted = timeline_->submitted.load();
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &timeline_->semaphore;
  wait.pValues = &submitted;
  vk_.vkWaitSemaphores(device_.handle(), &wait, ~0ull);
  device_.retirement().remove(timeline_);
  device_.memory().free(ring_.handle);
  destroy();
}

// Starts a batch: against all earlier work of the queue, of this stream and of others.
void VulkanStream::begin() {
  if (in_flight_ > 0) retire(poll());
  if (in_flight_ == kBatches) {
    const Ticket oldest = batches_[current_].last;
    wait_semaphore(timeline_->semaphore, oldest);
    retire(oldest);
  }
  Batch& batch = batches_[current_];
  device_.check(vk_.vkResetCommandPool(device_.handle(), batch.pool, 0), "vkResetCommandPool");
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device_.check(vk_.vkBeginCommandBuffer(batch.commands, &info), "vkBeginCommandBuffer");
  commands_ = batch.commands;
  recording_ = true;
  bound_ = VK_NULL_HANDLE;
  count_ = 0;
  limit_ = in_flight_ == 0 ? kMostWhenIdle : kMost;
  memory_barrier(stages_, all_);
  hazards_.clear();
  barrier_due_ = false;
}

void VulkanStream::memory_barrier(VkPipelineStageFlags to, VkAccessFlags access) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = writes_;
  barrier.dstAccessMask = access;
  vk_.vkCmdPipelineBarrier(commands_, stages_, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// Opens a batch if there is none, and puts what is needed before an operation on `ranges`.
void VulkanStream::order(std::span<const MemoryRange> ranges) {
  if (!recording_) begin();
  Barrier needed = track_ ? hazards_.add(ranges) : Barrier::none;
  if (barrier_due_) needed = Barrier::memory;
  if (needed == Barrier::none) return;
  if (needed == Barrier::memory) {
    memory_barrier(stages_, all_);
    ++memory_barriers_;
  } else {
    vk_.vkCmdPipelineBarrier(commands_, stages_, stages_, 0, 0, nullptr, 0, nullptr, 0, nullptr);
    ++execution_barriers_;
  }
  barrier_due_ = false;
}

// Closes the recording of one operation.
Ticket VulkanStream::recorded() {
  timeline_->recorded.store(++recorded_, std::memory_order_release);
  barrier_due_ = always_;
  ++count_;
  if (count_ >= limit_ || timeline_->submit_soon.load(std::memory_order_relaxed)) flush();
  return recorded_;
}

void VulkanStream::flush() {
  if (!recording_) return;
  recording_ = false;
  timeline_->submit_soon.store(false, std::memory_order_relaxed);
  // Mapped memory is read by the host as soon as the semaphore says so.
  const bool host_reads = device_.info().host_visible || to_host_ || device_.memory().any_wrapped();
  to_host_ = false;
  if (host_reads) memory_barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  VkResult result = vk_.vkEndCommandBuffer(commands_);
  Batch& batch = batches_[current_];
  batch.last = recorded_;
  batch.ring_end = ring_head_;
  if (result == VK_SUCCESS) {
    VkTimelineSemaphoreSubmitInfo timeline{};
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &recorded_;
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &timeline;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands_;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &timeline_->semaphore;
    result = device_.submit(info);
  }
  if (result != VK_SUCCESS) {
    // The tickets of this batch can never be reached: nothing that follows would be right.
    device_.mark_lost(fmt::format("vkQueueSubmit ({})", to_string(result)));
    device_.check_alive();
  }
  timeline_->submitted.store(recorded_, std::memory_order_release);
  ++in_flight_;
  current_ = (current_ + 1) % kBatches;
}

Ticket VulkanStream::poll() {
  std::uint64_t value = 0;
  device_.check(vk_.vkGetSemaphoreCounterValue(device_.handle(), timeline_->semaphore, &value),
                "vkGetSemaphoreCounterValue");
  timeline_->reach(value);
  return value;
}

// Takes back the batches that have run.
void VulkanStream::retire(Ticket completed) {
  timeline_->reach(completed);
  while (in_flight_ > 0) {
    const Batch& oldest = batches_[(current_ - in_flight_ + kBatches) % kBatches];
    if (oldest.last > completed) break;
    ring_tail_ = oldest.ring_end;
    --in_flight_;
  }
}

void VulkanStream::wait_semaphore(VkSemaphore semaphore, std::uint64_t value) {
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &semaphore;
  wait.pValues = &value;
  device_.check(vk_.vkWaitSemaphores(device_.handle(), &wait, ~0ull), "vkWaitSemaphores");
}

// Nothing recorded, nothing in flight.
bool VulkanStream::idle() {
  if (recording_) return false;
  if (in_flight_ > 0) retire(poll());
  return in_flight_ == 0;
}

// Mapped upload memory that is the host's until the batch which reads it is submitted. At most a quarter of the ring.
Allocation VulkanStream::ring(std::uint64_t bytes) {
  constexpr std::uint64_t kAlign = 64;
  if (ring_.handle == 0) ring_ = device_.allocate(kRingBytes, MemoryKind::upload);
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  std::uint64_t start = ring_head_;
  if (start % kRingBytes + bytes > kRingBytes) start = (start / kRingBytes + 1) * kRingBytes;
  if (start + bytes - ring_tail_ > kRingBytes) {
    flush();
    if (in_flight_ > 0) retire(poll());
    while (start + bytes - ring_tail_ > kRingBytes && in_flight_ > 0) {
      const Ticket oldest = batches_[(current_ - in_flight_ + kBatches) % kBatches].last;
      wait_semaphore(timeline_->semaphore, oldest);
      retire(oldest);
    }
    // Without any batch in flight the whole ring is free, also what was skipped at its end.
    if (in_flight_ == 0) ring_tail_ = start;
  }
  ring_head_ = start + bytes;
  const std::uint64_t place = start % kRingBytes;
  return {ring_.address + place, bytes, ring_.host + place, 0};
}

Ticket VulkanStream::launch(Program& program, Grid grid, std::span<const std::byte> args,
                            std::span<const MemoryRange> ranges) {
  device_.check_alive();
  auto& shader = static_cast<VulkanProgram&>(program);
  if (shader.device() != &device_)
    throw Error(ErrorKind::invalid_argument, "it was compiled for another device than it is launched on",
                shader.name());
  if (args.size() != shader.args_bytes())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} bytes of arguments given, {} expected", args.size(), shader.args_bytes()),
                shader.name());
  const std::uint32_t* most = device_.adapter().properties.limits.maxComputeWorkGroupCount;
  if (grid.x > most[0] || grid.y > most[1] || grid.z > most[2])
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a grid of {} x {} x {} workgroups; {} allows {} x {} x {}", grid.x, grid.y, grid.z,
                            device_.info().name, most[0], most[1], most[2]),
                shader.name());
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return recorded_;

  // Large arguments come first: making room for them may close the batch.
  Allocation large;
  const bool indirect = args.size() > spirv::kPushConstantBytes;
  if (indirect) {
    large = args.size() > kRingBytes / 4 ? device_.allocate(args.size(), MemoryKind::upload) : ring(args.size());
    std::memcpy(large.host, args.data(), args.size());
  }
  order(ranges);
  if (bound_ != shader.pipeline()) {
    bound_ = shader.pipeline();
    vk_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
  }
  if (indirect) {
    vk_.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof large.address, &large.address);
  } else if (args.size() % 4 == 0 && !args.empty()) {
    vk_.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, std::uint32_t(args.size()), args.data());
  } else if (!args.empty()) {
    std::array<std::byte, spirv::kPushConstantBytes> padded{};
    std::memcpy(padded.data(), args.data(), args.size());
    vk_.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, (std::uint32_t(args.size()) + 3) / 4 * 4,
                           padded.data());
  }
  vk_.vkCmdDispatch(commands_, grid.x, grid.y, grid.z);
  const Ticket ticket = recorded();
  device_.free(large);
  return ticket;
}

void VulkanStream::record_copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const Place target = device_.memory().resolve(to, bytes), source = device_.memory().resolve(from, bytes);
  const MemoryRange ranges[] = {{to, bytes, Access::write}, {from, bytes, Access::read}};
  order(ranges);
  to_host_ = to_host_ || target.host;
  const VkBufferCopy region{source.offset, target.offset, bytes};
  vk_.vkCmdCopyBuffer(commands_, source.buffer, target.buffer, 1, &region);
}

Ticket VulkanStream::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  device_.check_alive();
  if (bytes == 0 || to == from) return recorded_;
  if (to < from + bytes && from < to + bytes)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a copy of {} bytes from {:#x} to {:#x} overlaps itself", bytes, from, to));
  record_copy(to, from, bytes);
  return recorded();
}

Ticket VulkanStream::fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) {
  device_.check_alive();
  if (bytes == 0) return recorded_;
  if (bytes % 4 != 0 || to % 4 != 0)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a fill of {} bytes at {:#x}: both must be multiples of 4", bytes, to));
  const Place target = device_.memory().resolve(to, bytes);
  const MemoryRange range{to, bytes, Access::write};
  order({&range, 1});
  vk_.vkCmdFillBuffer(commands_, target.buffer, target.offset, bytes, pattern);
  return recorded();
}

Ticket VulkanStream::build(RayStructure& structure, const RayTriangles& triangles) {
  device_.check_alive();
  if (!device_.adapter().ray_query) return Stream::build(structure, triangles);
  auto& built = static_cast<VulkanRayStructure&>(structure);
  const RayLayout& layout = built.layout();
  const VkAccelerationStructureInstanceKHR instance = built.instance();
  upload(built.memory() + layout.instance, &instance, sizeof instance);
  const MemoryRange ranges[] = {{built.memory(), layout.bytes, Access::write},
                                {triangles.points, std::uint64_t{triangles.num_points} * 12, Access::read},
                                {triangles.indices, std::uint64_t{triangles.num_triangles} * 12, Access::read}};
  order(ranges);
  built.record(commands_, triangles, [&] { memory_barrier(stages_, all_); });
  return recorded();
}

Ticket VulkanStream::submit() {
  device_.check_alive();
  flush();
  return recorded_;
}

void VulkanStream::check_ticket(Ticket ticket) const {
  if (ticket > recorded_)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("ticket {} is not of this stream, whose last is {}", ticket, recorded_));
}

bool VulkanStream::done(Ticket ticket) {
  device_.check_alive();
  check_ticket(ticket);
  if (timeline_->completed.load(std::memory_order_acquire) >= ticket) return true;
  if (ticket > timeline_->submitted.load(std::memory_order_relaxed)) return false;
  retire(poll());
  return timeline_->completed.load(std::memory_order_acquire) >= ticket;
}

void VulkanStream::wait(Ticket ticket) {
  device_.check_alive();
  check_ticket(ticket);
  if (timeline_->completed.load(std::memory_order_acquire) >= ticket) return;
  if (ticket > timeline_->submitted.load(std::memory_order_relaxed)) flush();
  wait_semaphore(timeline_->semaphore, signal_of(ticket));
  retire(poll());
}

// The value that the semaphore takes when a ticket has run. Waiting for one in between comes to the same, but sends the
// validation layers on a search that ends after ten seconds.
Ticket VulkanStream::signal_of(Ticket ticket) const {
  for (int age = in_flight_; age > 0; --age) {
    const Batch& batch = batches_[(current_ - age + kBatches) % kBatches];
    if (batch.last >= ticket) return batch.last;
  }
  return ticket;
}

void VulkanStream::track_hazards(bool on) {
  // What ran untracked may conflict with anything.
  if (on && !track_) barrier_due_ = true;
  track_ = on;
  hazards_.clear();
}

void VulkanStream::barrier_always(bool on) {
  always_ = on;
  barrier_due_ = barrier_due_ || on;
}

}  // namespace weft::backend::vulkan
