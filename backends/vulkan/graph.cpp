// Recording of graphs, once and in parts.
#include "graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "../../frontend/support/error.h"
#include "commands.h"
#include "device.h"
#include "recordings.h"

namespace weft::backend::vulkan {

VulkanGraph::VulkanGraph(VulkanDevice& device, std::unique_ptr<Operations> operations)
    : DeviceObject(device), operations_(std::move(operations)) {
  if (!operations_->list.empty()) segments_.push_back({.first = 0, .last = operations_->list.size()});
  try {
    commands();
  } catch (...) {
    for (Segment& s : segments_) drop(s);
    throw;
  }
}

VulkanGraph::~VulkanGraph() { abandon(); }

// The shaders of chains are objects of the device themselves, which is going through all of these: they end with this
// one.
void VulkanGraph::abandon() {
  for (Segment& s : segments_) {
    std::ranges::move(s.chains, std::back_inserter(abandoned_));
    drop(s);
  }
  segments_.clear();
}

void VulkanGraph::patch(std::size_t operation, std::span<const std::byte> args) {
  device_.check_alive();
  Operation& patched = operations_->list.at(operation);
  if (patched.kind != Operation::Kind::launch || patched.args.size() != args.size())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("operation {} of a graph is given {} bytes of arguments", operation, args.size()));
  patched.args.assign(args.begin(), args.end());
  changed_ = true;
  const auto at = std::ranges::find_if(segments_, [&](const Segment& s) { return operation < s.last; });
  if (at->last - at->first == 1) {
    at->changed = true;
    return;
  }
  const std::size_t first = at->first, last = at->last;
  drop(*at);
  std::vector<Segment> parts;
  for (const auto& [from, to] :
       {std::pair(first, operation), std::pair(operation, operation + 1), std::pair(operation + 1, last)})
    if (from < to) parts.push_back({.first = from, .last = to});
  const auto place = segments_.erase(at);
  segments_.insert(place, parts.begin(), parts.end());
}

std::span<const VkCommandBuffer> VulkanGraph::commands() {
  if (changed_) {
    for (Segment& s : segments_)
      if (s.changed) {
        drop(s);
        record(s, &s == &segments_.back());
      }
    commands_.clear();
    for (const Segment& s : segments_) commands_.push_back(s.commands);
    changed_ = false;
  }
  return commands_;
}

void VulkanGraph::drop(Segment& segment) {
  if (segment.pool) device_.retirement().drop({Retired::Kind::commands, (std::uint64_t)segment.pool});
  for (const Allocation& a : segment.large) device_.free(a);
  segment.pool = VK_NULL_HANDLE;
  segment.commands = VK_NULL_HANDLE;
  segment.large.clear();
  segment.chains.clear();
  segment.changed = true;
}

void VulkanGraph::record(Segment& segment, bool is_last) {
  const VolkDeviceTable& vk = device_.vk();
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = device_.queue_family();
  device_.check(vk.vkCreateCommandPool(device_.handle(), &pool, nullptr, &segment.pool), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = segment.pool;
  allocate.commandBufferCount = 1;
  device_.check(vk.vkAllocateCommandBuffers(device_.handle(), &allocate, &segment.commands),
                "vkAllocateCommandBuffers");
  // It may be submitted while it still runs.
  Commands commands(device_);
  commands.begin(segment.commands, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
  const auto operations = std::span(operations_->list).subspan(segment.first, segment.last - segment.first);
  std::size_t recorded = 0;
  for (const Chain& chain : find_chains(operations, device_.adapter().target.max_block)) {
    segment.chains.push_back(device_.chains().program(chain));
    vulkan::record(device_, commands, operations.subspan(recorded, chain.first - recorded), segment.large);
    vulkan::record(device_, commands, chain, *segment.chains.back(), operations, segment.large);
    recorded = chain.last;
  }
  vulkan::record(device_, commands, operations.subspan(recorded), segment.large);
  device_.check(commands.end(is_last ? Commands::For::everybody : Commands::For::queue), "vkEndCommandBuffer");
  segment.changed = false;
}

void destroy_commands(VulkanDevice& device, std::uint64_t pool) {
  device.vk().vkDestroyCommandPool(device.handle(), (VkCommandPool)pool, nullptr);
}

}  // namespace weft::backend::vulkan
