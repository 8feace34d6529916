// Records operations, and the barriers between them.
#include "commands.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "../device.h"
#include "barriers.h"
#include "ray_structure.h"

namespace weft::backend::vulkan {

Commands::Commands(VulkanDevice& device) : device_(device), stages_(stages_of(device.adapter())) {}

void Commands::begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage) {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = usage;
  device_.check(device_.vk().vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
  enter(commands);
}

void Commands::enter(VkCommandBuffer commands) {
  if (!kept_.has_room()) kept_ = device_.kept_pool().take();
  kept_.clear();  // also operations of a command buffer that was abandoned
  commands_ = commands;
  used_ = 0;
  barrier();
  if (!device_.adopted()) return;
  // Others have used the queue, and their accesses are not known.
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = accesses_in(stages_);
  device_.vk().vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, stages_, 0, 1, &barrier, 0, nullptr,
                                    0, nullptr);
  kept_.clear();  // drops the barrier that this one replaces
}

VkResult Commands::Rest::finish(VulkanDevice& device) {
  kept.write(device, commands);
  device.kept_pool().give(std::move(kept));
  if (whom != For::queue) barrier_for_others(device, commands);
  return device.vk().vkEndCommandBuffer(std::exchange(commands, VK_NULL_HANDLE));
}

void Commands::end(For whom, Rest& rest) {
  rest.commands = std::exchange(commands_, VK_NULL_HANDLE);
  rest.whom = whom;
  rest.kept = std::move(kept_);
}

VkResult Commands::end(For whom) {
  Rest rest;
  end(whom, rest);
  return rest.finish(device_);
}

void Commands::leave() {
  barrier_for_others(device_, handle());
  device_.kept_pool().give(std::move(kept_));
  commands_ = VK_NULL_HANDLE;
}

void Commands::barrier() {
  kept_.order(Barrier::memory, stages_);
  reached_ = stages_;
  hazards_.clear();
  barrier_due_ = false;
}

// Barriers cover only the stages that the command buffer has used; full barriers enclose it. A stage that is first used
// after partial barriers, which have reached other stages alone, needs one more.
void Commands::order(std::span<const MemoryRange> ranges, VkPipelineStageFlags stage) {
  used_ |= stage;
  const bool anyhow = barrier_due_ || (track_ && stage & ~reached_);
  if (anyhow) hazards_.clear();
  Barrier needed = track_ ? hazards_.add(ranges) : Barrier::none;
  if (anyhow) needed = Barrier::memory;
  if (needed != Barrier::none) {
    ++(needed == Barrier::memory ? memory_barriers_ : execution_barriers_);
    kept_.order(needed, used_);
    reached_ = used_;
    barrier_due_ = false;
  }
}

void Commands::write_when_full() {
  if (kept_.full()) kept_.write(device_, commands_);
}

void Commands::order_launch(std::span<const MemoryRange> ranges, std::uint64_t grid_at) {
  if (!grid_at) return order(ranges, kCompute);
  std::vector<MemoryRange> all(ranges.begin(), ranges.end());
  all.push_back({grid_at, kGridBytes, ir::Access::read});
  order(all, kCompute);
}

void Commands::dispatch(const VulkanProgram& program, std::span<const std::byte> args, std::uint64_t large,
                        const Grid& grid) {
  const Place grid_in = grid.at ? device_.memory().resolve(grid.at, kGridBytes) : Place();
  if (large) args = std::as_bytes(std::span(&large, 1));
  kept_.launch(program.pipeline(), grid, args, grid_in.buffer, grid_in.offset, used_);
  write_when_full();
}

void Commands::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const Place target = device_.memory().resolve(to, bytes), source = device_.memory().resolve(from, bytes);
  const MemoryRange ranges[] = {{to, bytes, ir::Access::write}, {from, bytes, ir::Access::read}};
  order(ranges, kTransfer);
  kept_.copy(target.buffer, source.buffer, {source.offset, target.offset, bytes});
  write_when_full();
}

void Commands::fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) {
  const Place target = device_.memory().resolve(to, bytes);
  const MemoryRange range{to, bytes, ir::Access::write};
  order({&range, 1}, kTransfer);
  kept_.fill(target.buffer, target.offset, bytes, pattern);
  write_when_full();
}

void Commands::write(std::uint64_t to, std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = 65536;  // the limit of one command
  for (std::size_t at = 0; at < bytes.size(); at += kMost) {
    std::span<const std::byte> words = bytes.subspan(at, std::min(kMost, bytes.size() - at));
    std::vector<std::byte> padded;
    if (words.size() % 4) {
      padded.assign(words.begin(), words.end());
      padded.resize((padded.size() + 3) / 4 * 4);
      words = padded;
    }
    const Place target = device_.memory().resolve(to + at, words.size());
    const MemoryRange range{to + at, words.size(), ir::Access::write};
    order({&range, 1}, kTransfer);
    device_.vk().vkCmdUpdateBuffer(handle(), target.buffer, target.offset, words.size(), words.data());
  }
}

void Commands::build(const VulkanRayStructure& structure, const RayTriangles& triangles) {
  const MemoryRange ranges[] = {{structure.memory(), structure.layout().bytes, ir::Access::write},
                                {triangles.points, std::uint64_t{triangles.num_points} * 12, ir::Access::read},
                                {triangles.indices, std::uint64_t{triangles.num_triangles} * 12, ir::Access::read}};
  order(ranges, kRayBuild | kTransfer);
  const VkAccelerationStructureInstanceKHR instance = structure.instance();
  const Place at = device_.memory().resolve(structure.memory() + structure.layout().instance, sizeof instance);
  device_.vk().vkCmdUpdateBuffer(handle(), at.buffer, at.offset, sizeof instance, &instance);
  const auto between = [&] { memory_barrier(device_.vk(), commands_, used_); };
  between();
  structure.record(commands_, triangles, between);
}

void Commands::moment(VkQueryPool pool, std::uint32_t place, std::uint64_t to) {
  const Place target = to ? device_.memory().resolve(to, 2 * sizeof(std::uint64_t)) : Place();
  kept_.moment(pool, place, target.buffer, target.offset);
  write_when_full();
}

void Commands::track_hazards(bool on) {
  // Untracked operations may conflict with anything.
  if (on && !track_) barrier_due_ = true;
  track_ = on;
  hazards_.clear();
}

void Commands::barrier_always(bool on) {
  always_ = on;
  barrier_due_ = barrier_due_ || on;
}

}  // namespace weft::backend::vulkan
