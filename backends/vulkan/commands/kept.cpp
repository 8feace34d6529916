// Keeps operations, and writes them.
#include "kept.h"

#include <algorithm>
#include <utility>

#include "../device.h"
#include "barriers.h"

namespace weft::backend::vulkan {

void Kept::make_room() {
  operations_.reserve(kMost);
  constants_.reserve(kMost * 32);
}

void Kept::order(Barrier kind, VkPipelineStageFlags stages) {
  // A barrier may be left over: of an operation that was refused meanwhile, or from after a measured one.
  next_ = {std::max(next_.kind, kind), next_.among | stages};
}

Kept::Ordered Kept::take_order() { return std::exchange(next_, {}); }

void Kept::launch(VkPipeline pipeline, const Grid& grid, std::span<const std::byte> constants, VkBuffer grid_in,
                  VkDeviceSize grid_at, VkPipelineStageFlags stages) {
  const std::size_t first = constants_.size();
  constants_.insert(constants_.end(), constants.begin(), constants.end());
  constants_.resize(first + (constants.size() + 3) / 4 * 4);
  operations_.push_back({take_order(), Launch{pipeline, grid, grid_in, grid_at, stages, std::uint32_t(first),
                                              std::uint32_t(constants_.size() - first)}});
}

void Kept::copy(VkBuffer to, VkBuffer from, const VkBufferCopy& region) {
  operations_.push_back({take_order(), Copy{to, from, region}});
}

void Kept::fill(VkBuffer buffer, VkDeviceSize at, VkDeviceSize bytes, std::uint32_t pattern) {
  operations_.push_back({take_order(), Fill{buffer, at, bytes, pattern}});
}

void Kept::moment(VkQueryPool pool, std::uint32_t place, VkBuffer to, VkDeviceSize at) {
  operations_.push_back({take_order(), Moment{pool, place, to, at}});
}

void Kept::clear() {
  operations_.clear();
  constants_.clear();
  next_ = {};
  bound_ = VK_NULL_HANDLE;
}

class Kept::Writer {
 public:
  Writer(Kept& kept, VulkanDevice& device, VkCommandBuffer commands, VkPipelineLayout layout)
      : kept_(kept), vk_(device.vk()), commands_(commands), layout_(layout) {}

  void operator()(const Ordered& order) {
    if (order.kind == Barrier::memory)
      memory_barrier(vk_, commands_, order.among);
    else if (order.kind == Barrier::execution)
      vk_.vkCmdPipelineBarrier(commands_, order.among, order.among, 0, 0, nullptr, 0, nullptr, 0, nullptr);
  }
  void operator()(const Launch& launch) {
    if (kept_.bound_ != launch.pipeline) {
      kept_.bound_ = launch.pipeline;
      vk_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, launch.pipeline);
    }
    if (launch.bytes)
      vk_.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, launch.bytes,
                             kept_.constants_.data() + launch.first);
    const Grid& grid = launch.grid;
    if (launch.grid_in) {
      memory_barrier(vk_, commands_, launch.grid_from, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
                     VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
      vk_.vkCmdDispatchIndirect(commands_, launch.grid_in, launch.grid_at);
    } else if (grid.part) {
      vk_.vkCmdDispatchBase(commands_, 0, grid.first_y, 0, grid.x, grid.y, grid.z);
    } else {
      vk_.vkCmdDispatch(commands_, grid.x, grid.y, grid.z);
    }
  }
  void operator()(const Copy& copy) { vk_.vkCmdCopyBuffer(commands_, copy.from, copy.to, 1, &copy.region); }
  void operator()(const Fill& fill) { vk_.vkCmdFillBuffer(commands_, fill.buffer, fill.at, fill.bytes, fill.pattern); }
  // Both results are copied after the second moment: a copy between them would be measured with the operation.
  void operator()(const Moment& moment) {
    vk_.vkCmdResetQueryPool(commands_, moment.pool, moment.place, 1);
    vk_.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, moment.pool, moment.place);
    if (moment.to)
      vk_.vkCmdCopyQueryPoolResults(commands_, moment.pool, moment.place - 1, 2, moment.to, moment.at,
                                    sizeof(std::uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  }

 private:
  Kept& kept_;
  const VolkDeviceTable& vk_;
  const VkCommandBuffer commands_;
  const VkPipelineLayout layout_;
};

void Kept::write(VulkanDevice& device, VkCommandBuffer commands) {
  Writer write(*this, device, commands, device.pipelines().layout());
  for (const Operation& operation : operations_) {
    write(operation.before);
    std::visit(write, operation.what);
  }
  operations_.clear();
  constants_.clear();
  write(take_order());
}

Kept KeptPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Kept kept = std::move(free_.back());
      free_.pop_back();
      return kept;
    }
  }
  Kept kept;
  kept.make_room();
  return kept;
}

void KeptPool::give(Kept&& kept) {
  kept.clear();
  std::lock_guard lock(mutex_);
  if (free_.size() < kMost) free_.push_back(std::move(kept));
}

}  // namespace weft::backend::vulkan
