// Recording of operations, and of the barriers between them.
#include "commands.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "device.h"
#include "ray_structure.h"

namespace weft::backend::vulkan {

namespace {

constexpr std::size_t kKept = 128;  // launches at most

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT,
                               kRayBuild = VK_PIPELINE_STAGE_ACCELERATION_STRUCTURE_BUILD_BIT_KHR;

// Grids that are read from memory have a barrier of their own, see write_launches(). That the device reads commands
// behind a barrier makes it wait with all that follows: on an H200, launches that wait for each other then take 4.6 us
// each instead of 2.6.
VkPipelineStageFlags stages_of(const Adapter& adapter) {
  return kCompute | kTransfer | (adapter.ray_query ? kRayBuild : 0);
}
VkAccessFlags writes_in(VkPipelineStageFlags stages) {
  return (stages & kCompute ? VK_ACCESS_SHADER_WRITE_BIT : 0) |
         (stages & kTransfer ? VK_ACCESS_TRANSFER_WRITE_BIT : 0) |
         (stages & kRayBuild ? VK_ACCESS_ACCELERATION_STRUCTURE_WRITE_BIT_KHR : 0);
}
VkAccessFlags accesses_in(VkPipelineStageFlags stages) {
  return writes_in(stages) | (stages & kCompute ? VK_ACCESS_SHADER_READ_BIT : 0) |
         (stages & kTransfer ? VK_ACCESS_TRANSFER_READ_BIT : 0) |
         (stages & kRayBuild ? VK_ACCESS_ACCELERATION_STRUCTURE_READ_BIT_KHR : 0);
}

}  // namespace

Commands::Commands(VulkanDevice& device) : device_(device), stages_(stages_of(device.adapter())) {
  launches_.reserve(kKept);
}

void Commands::begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage) {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = usage;
  device_.check(device_.vk().vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
  enter(commands);
}

void Commands::enter(VkCommandBuffer commands) {
  commands_ = commands;
  launches_.clear();  // of a command buffer that was given up
  pushed_.clear();
  next_ = Barrier::none;
  bound_ = VK_NULL_HANDLE;
  used_ = 0;
  if (!device_.adopted()) return barrier();
  // Others have used the queue, and what they did there is not known.
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = accesses_in(stages_);
  device_.vk().vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, stages_, 0, 1, &barrier, 0, nullptr,
                                    0, nullptr);
  reached_ = stages_;
  hazards_.clear();
  barrier_due_ = false;
}

VkResult Commands::end(For whom) {
  write_launches();
  if (whom != For::queue) release();
  return device_.vk().vkEndCommandBuffer(std::exchange(commands_, VK_NULL_HANDLE));
}

void Commands::leave() {
  write_launches();
  release();
  commands_ = VK_NULL_HANDLE;
}

void Commands::release() {
  if (device_.adopted())
    memory_barrier(stages_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                   VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT);
  else
    memory_barrier(stages_, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

void Commands::memory_barrier(VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags access) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = writes_in(from);
  barrier.dstAccessMask = access;
  device_.vk().vkCmdPipelineBarrier(commands_, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}
void Commands::memory_barrier(VkPipelineStageFlags among) { memory_barrier(among, among, accesses_in(among)); }

void Commands::barrier() {
  write_launches();
  memory_barrier(stages_);
  reached_ = stages_;
  hazards_.clear();
  barrier_due_ = false;
}

// Barriers are of those stages alone that the command buffer has used: before and behind it stand barriers of all. A
// stage that is used for the first time behind such barriers, which have reached others alone, needs one more.
void Commands::order(std::span<const MemoryRange> ranges, VkPipelineStageFlags stage) {
  used_ |= stage;
  const bool anyhow = barrier_due_ || (track_ && stage & ~reached_);
  if (anyhow) hazards_.clear();
  Barrier needed = track_ ? hazards_.add(ranges) : Barrier::none;
  if (anyhow) needed = Barrier::memory;
  if (needed != Barrier::none) {
    ++(needed == Barrier::memory ? memory_barriers_ : execution_barriers_);
    // A launch that was refused meanwhile has left one.
    next_ = std::max(next_, needed);
    next_stages_ = reached_ = used_;
    barrier_due_ = false;
  }
  if (stage != kCompute) write_launches();
}

void Commands::write_barrier(Barrier kind, VkPipelineStageFlags among) {
  if (kind == Barrier::memory)
    memory_barrier(among);
  else if (kind == Barrier::execution)
    device_.vk().vkCmdPipelineBarrier(commands_, among, among, 0, 0, nullptr, 0, nullptr, 0, nullptr);
}

void Commands::order_launch(std::span<const MemoryRange> ranges) { order(ranges, kCompute); }

void Commands::dispatch(const VulkanProgram& program, std::span<const std::byte> args, std::uint64_t large,
                        const Grid& grid, std::uint64_t grid_at) {
  const Place grid_in = grid_at ? device_.memory().resolve(grid_at, 12) : Place();
  if (large) args = std::as_bytes(std::span(&large, 1));
  const std::size_t pushed = pushed_.size();
  pushed_.insert(pushed_.end(), args.begin(), args.end());
  pushed_.resize(pushed + (args.size() + 3) / 4 * 4);
  Launch& launch = launches_.emplace_back();
  launch.pipeline = program.pipeline();
  launch.grid = grid;
  launch.grid_in = grid_in.buffer;
  launch.grid_at = grid_in.offset;
  launch.pushed = std::uint32_t(pushed);
  launch.bytes = std::uint32_t(pushed_.size() - pushed);
  launch.before = next_;
  launch.stages = grid_at ? used_ : next_stages_;
  next_ = Barrier::none;
  if (launches_.size() >= kKept) write_launches();
}

void Commands::write_launches() {
  const VolkDeviceTable& vk = device_.vk();
  const VkPipelineLayout layout = device_.pipelines().layout();
  for (const Launch& launch : launches_) {
    write_barrier(launch.before, launch.stages);
    if (bound_ != launch.pipeline) {
      bound_ = launch.pipeline;
      vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
    }
    if (launch.bytes)
      vk.vkCmdPushConstants(commands_, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, launch.bytes,
                            pushed_.data() + launch.pushed);
    const Grid& grid = launch.grid;
    if (launch.grid_in) {
      memory_barrier(launch.stages, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
      vk.vkCmdDispatchIndirect(commands_, launch.grid_in, launch.grid_at);
    } else if (grid.part) {
      vk.vkCmdDispatchBase(commands_, 0, grid.first_y, 0, grid.x, grid.y, grid.z);
    } else {
      vk.vkCmdDispatch(commands_, grid.x, grid.y, grid.z);
    }
  }
  launches_.clear();
  pushed_.clear();
  // Of what is no launch.
  write_barrier(std::exchange(next_, Barrier::none), next_stages_);
}

void Commands::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const Place target = device_.memory().resolve(to, bytes), source = device_.memory().resolve(from, bytes);
  const MemoryRange ranges[] = {{to, bytes, ir::Access::write}, {from, bytes, ir::Access::read}};
  order(ranges, kTransfer);
  const VkBufferCopy region{source.offset, target.offset, bytes};
  device_.vk().vkCmdCopyBuffer(commands_, source.buffer, target.buffer, 1, &region);
}

void Commands::fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) {
  const Place target = device_.memory().resolve(to, bytes);
  const MemoryRange range{to, bytes, ir::Access::write};
  order({&range, 1}, kTransfer);
  device_.vk().vkCmdFillBuffer(commands_, target.buffer, target.offset, bytes, pattern);
}

void Commands::write(std::uint64_t to, std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = 65536;  // of a command
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
    device_.vk().vkCmdUpdateBuffer(commands_, target.buffer, target.offset, words.size(), words.data());
  }
}

void Commands::build(const VulkanRayStructure& structure, const RayTriangles& triangles) {
  const MemoryRange ranges[] = {{structure.memory(), structure.layout().bytes, ir::Access::write},
                                {triangles.points, std::uint64_t{triangles.num_points} * 12, ir::Access::read},
                                {triangles.indices, std::uint64_t{triangles.num_triangles} * 12, ir::Access::read}};
  order(ranges, kRayBuild | kTransfer);
  const VkAccelerationStructureInstanceKHR instance = structure.instance();
  const Place at = device_.memory().resolve(structure.memory() + structure.layout().instance, sizeof instance);
  device_.vk().vkCmdUpdateBuffer(commands_, at.buffer, at.offset, sizeof instance, &instance);
  const auto between = [&] { memory_barrier(used_); };
  between();
  structure.record(commands_, triangles, between);
}

void Commands::track_hazards(bool on) {
  // What ran untracked may conflict with anything.
  if (on && !track_) barrier_due_ = true;
  track_ = on;
  hazards_.clear();
}

void Commands::barrier_always(bool on) {
  always_ = on;
  barrier_due_ = barrier_due_ || on;
}

}  // namespace weft::backend::vulkan
