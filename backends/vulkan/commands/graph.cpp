// Records graphs, and exchanges their arguments.
#include "graph.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "../../../frontend/support/error.h"
#include "../device.h"
#include "chains.h"
#include "commands.h"
#include "recordings.h"

namespace weft::backend::vulkan {

namespace {
// Argument blocks in memory are aligned to 16 bytes and written in whole words.
constexpr std::uint64_t kAlign = 16;
std::uint64_t padded(std::uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
}  // namespace

VulkanGraph::VulkanGraph(VulkanDevice& device, std::unique_ptr<Operations> operations)
    : DeviceObject(device), operations_(std::move(operations)), places_(operations_->list.size()) {
  try {
    commands();
  } catch (...) {
    drop();
    throw;
  }
}

VulkanGraph::~VulkanGraph() { abandon(); }

// The shaders of chains are objects of the device themselves. The device is abandoning all its objects now, so the
// shaders end with the graph.
void VulkanGraph::abandon() {
  if (device_.detached()) return;
  std::ranges::move(chains_, std::back_inserter(abandoned_));
  chains_.clear();
  drop();
}

void VulkanGraph::patch(std::size_t operation, std::span<const std::byte> args, std::span<const MemoryRange> arrays) {
  device_.check_alive();
  const bool in_order = exchange(operations_->list.at(operation), args, arrays);
  Place& place = places_[operation];
  if (!in_order || !place.address) changed_ = true;
  if (place.address && !std::exchange(place.due, true)) due_.push_back(operation);
}

VkCommandBuffer VulkanGraph::commands() {
  if (changed_ && !operations_->list.empty()) {
    drop();
    record();
  }
  changed_ = false;
  return commands_;
}

void VulkanGraph::write_arguments(Commands& commands) const {
  for (const std::size_t k : due_) commands.write(places_[k].address, operations_->list[k].args);
}

void VulkanGraph::arguments_written() {
  for (const std::size_t k : due_) places_[k].due = false;
  due_.clear();
}

void VulkanGraph::drop() {
  if (pool_) device_.retirement().drop({Retired::Kind::commands, (std::uint64_t)pool_});
  for (const Allocation& a : memory_) device_.free(a);
  pool_ = VK_NULL_HANDLE;
  commands_ = VK_NULL_HANDLE;
  memory_.clear();
  chains_.clear();
  std::ranges::fill(places_, Place{});
  due_.clear();
}

std::vector<LaunchForm> VulkanGraph::place_arguments(std::span<const Chain> chains) {
  std::vector<LaunchForm> forms(places_.size());
  std::uint64_t bytes = 0;
  auto chain = chains.begin();
  for (std::size_t k = 0; k < places_.size(); ++k) {
    const Operation& o = operations_->list[k];
    if (chain != chains.end() && k == chain->last) ++chain;
    // Steps of chains find their arguments in memory anyhow.
    if (!o.patched || (chain != chains.end() && k >= chain->first)) continue;
    forms[k].program = static_cast<VulkanProgram&>(*o.program).by_address();
    if (forms[k].program) bytes += padded(o.args.size());
  }
  if (bytes == 0) return forms;
  memory_.push_back(device_.allocate(bytes, MemoryKind::device));
  std::uint64_t at = memory_.back().address;
  for (std::size_t k = 0; k < places_.size(); ++k) {
    if (!forms[k].program) continue;
    forms[k].arguments = at;
    places_[k] = {at, true};
    due_.push_back(k);
    at += padded(operations_->list[k].args.size());
  }
  return forms;
}

void VulkanGraph::record() {
  const VolkDeviceTable& vk = device_.vk();
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = device_.queue_family();
  device_.check_made(vk.vkCreateCommandPool(device_.handle(), &pool, nullptr, &pool_), pool_, "vkCreateCommandPool");
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = pool_;
  allocate.commandBufferCount = 1;
  device_.check_made(vk.vkAllocateCommandBuffers(device_.handle(), &allocate, &commands_), commands_,
                     "vkAllocateCommandBuffers");
  const std::span<const Operation> operations = operations_->list;
  const std::vector<Chain> chains = find_chains(operations, device_.adapter().target.max_block);
  const std::vector<LaunchForm> forms = place_arguments(chains);
  // SIMULTANEOUS_USE: the graph may be submitted while it still runs.
  Commands commands(device_);
  commands.track_hazards(operations_->track_hazards);
  commands.barrier_always(operations_->barrier_always);
  commands.begin(commands_, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
  std::size_t done = 0;
  const auto record_up_to = [&](std::size_t end) {
    vulkan::record(device_, commands, operations.subspan(done, end - done), memory_,
                   std::span(forms).subspan(done, end - done));
    done = end;
  };
  for (const Chain& chain : chains) {
    record_up_to(chain.first);
    chains_.push_back(device_.chains().program(chain));
    const std::vector<std::uint64_t> arguments =
        vulkan::record(device_, commands, chain, *chains_.back(), operations, memory_);
    for (std::size_t k = 0; k < arguments.size(); ++k) places_[chain.first + k].address = arguments[k];
    done = chain.last;
  }
  record_up_to(operations.size());
  device_.check(commands.end(Commands::For::everybody), "vkEndCommandBuffer");
  memory_barriers_ = commands.memory_barriers();
  ++recorded_;
}

void destroy_commands(VulkanDevice& device, std::uint64_t pool) {
  device.vk().vkDestroyCommandPool(device.handle(), (VkCommandPool)pool, nullptr);
}

}  // namespace weft::backend::vulkan
