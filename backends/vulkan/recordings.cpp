// Recording for others, and what is known of how far they are.
#include "recordings.h"

#include <cstring>

#include "../../frontend/support/error.h"
#include "../../spirv/emit.h"
#include "device.h"
#include "ray_structure.h"

namespace weft::backend::vulkan {

namespace {
[[noreturn]] void not_its_work() { internal_error("work is given to the stream of recordings"); }
}  // namespace

void record(VulkanDevice& device, Commands& commands, std::span<const Operation> operations,
            std::vector<Allocation>& large) {
  std::vector<MemoryRange> ranges;
  for (const Operation& o : operations) switch (o.kind) {
      case Operation::Kind::launch: {
        Allocation args;
        if (o.args.size() > spirv::kPushConstantBytes) {
          args = device.allocate(o.args.size(), MemoryKind::upload);
          large.push_back(args);
          std::memcpy(args.host, o.args.data(), o.args.size());
        }
        ranges = o.ranges;
        if (o.grid_at) ranges.push_back({o.grid_at, 12, ir::Access::read});
        commands.order(ranges);
        commands.dispatch(static_cast<const VulkanProgram&>(*o.program), o.args, args.address, o.grid, o.grid_at);
        break;
      }
      case Operation::Kind::copy: commands.copy(o.to, o.from, o.bytes); break;
      case Operation::Kind::fill: commands.fill(o.to, o.bytes, o.pattern); break;
      case Operation::Kind::build:
        commands.build(static_cast<const VulkanRayStructure&>(*o.structure), o.triangles);
        break;
    }
}

VulkanRecordings::VulkanRecordings(VulkanDevice& device) : DeviceObject(device), marks_(device) {}

VulkanRecordings::~VulkanRecordings() { abandon(); }

// The stream of marks is an object of its own, and is abandoned as such.
void VulkanRecordings::abandon() {
  for (auto& [ticket, recorded] : recorded_)
    for (const Allocation& a : recorded.large) device_.memory().free(a.handle);
  recorded_.clear();
}

Ticket VulkanRecordings::record(VkCommandBuffer commands, const Operations& operations) {
  device_.check_alive();
  Recorded recorded;
  Commands recording(device_);
  recording.enter(commands);
  try {
    vulkan::record(device_, recording, operations.list, recorded.large);
  } catch (...) {
    for (const Allocation& a : recorded.large) device_.memory().free(a.handle);
    throw;
  }
  recording.leave();
  recorded_.emplace(++last_, std::move(recorded));
  return last_;
}

Ticket VulkanRecordings::submitted(Ticket recording, VkSemaphore semaphore, std::uint64_t value) {
  device_.check_alive();
  const auto at = recorded_.find(recording);
  if (at == recorded_.end()) internal_error("a recording that has ended is said to be submitted");
  Recorded& recorded = at->second;
  if (recorded.submitted && has_run(recorded)) forget(recording);
  recorded.value = semaphore ? value : marks_.mark();
  recorded.semaphore = semaphore;
  recorded.submitted = true;
  submissions_[++last_] = {recording, std::make_shared<std::atomic<bool>>(false)};
  return last_;
}

void VulkanRecordings::forget(Ticket recording) {
  std::erase_if(submissions_, [&](const auto& entry) { return entry.second.recording == recording; });
}

const VulkanRecordings::Recorded* VulkanRecordings::find(Ticket ticket) const {
  if (const auto submission = submissions_.find(ticket); submission != submissions_.end()) {
    if (submission->second.has_run->load()) return nullptr;
    ticket = submission->second.recording;
  }
  const auto at = recorded_.find(ticket);
  return at == recorded_.end() ? nullptr : &at->second;
}

void VulkanRecordings::end(Ticket recording) {
  if (device_.detached()) return;
  const auto at = recorded_.find(recording);
  if (at == recorded_.end()) return;
  forget(recording);
  const Recorded recorded = std::move(at->second);
  recorded_.erase(at);
  // Nobody else uses the arguments.
  struct Free {
    VulkanDevice& device;
    const Recorded& recorded;
    ~Free() {
      for (const Allocation& a : recorded.large) device.memory().free(a.handle);
    }
  } free{device_, recorded};
  if (recorded.submitted) wait_for(recorded);
}

void VulkanRecordings::require_submitted(const Recorded& recorded) const {
  if (!recorded.submitted)
    throw Error(ErrorKind::invalid_argument,
                "an array is used by work that was recorded into a command buffer and is not submitted: call "
                "Recording::submitted() when the queue has the command buffer, or let the Recording end");
}

bool VulkanRecordings::has_run(const Recorded& recorded) {
  if (!recorded.semaphore) return marks_.done(recorded.value);
  std::uint64_t value = 0;
  device_.check(device_.vk().vkGetSemaphoreCounterValue(device_.handle(), recorded.semaphore, &value),
                "vkGetSemaphoreCounterValue");
  return value >= recorded.value;
}

std::function<void()> VulkanRecordings::waiting_for(const Recorded& recorded) {
  if (!recorded.semaphore) return marks_.waiting(recorded.value);
  return [&device = device_, semaphore = recorded.semaphore, value = recorded.value] {
    device.wait_for(semaphore, value);
  };
}

void VulkanRecordings::wait_for(const Recorded& recorded) {
  device_.check_alive();
  if (const auto waiting = waiting_for(recorded)) waiting();
}

void VulkanRecordings::start(Ticket ticket) {
  device_.check_alive();
  // Submitted before what comes now is.
  if (const Recorded* recorded = find(ticket)) require_submitted(*recorded);
}

bool VulkanRecordings::done(Ticket ticket) {
  device_.check_alive();
  const Recorded* const recorded = find(ticket);
  if (!recorded) return true;
  require_submitted(*recorded);
  return has_run(*recorded);
}

void VulkanRecordings::wait(Ticket ticket) {
  device_.check_alive();
  const Recorded* const recorded = find(ticket);
  if (!recorded) return;
  require_submitted(*recorded);
  wait_for(*recorded);
}

std::function<void()> VulkanRecordings::waiting(Ticket ticket) {
  device_.check_alive();
  if (ticket != kAllWork) {
    const Recorded* const recorded = find(ticket);
    if (!recorded || !recorded->submitted) return {};
    std::function<void()> waiting = waiting_for(*recorded);
    const auto submission = submissions_.find(ticket);
    if (!waiting || submission == submissions_.end()) return waiting;
    return [waiting = std::move(waiting), has_run = submission->second.has_run] {
      waiting();
      has_run->store(true);
    };
  }
  std::vector<std::function<void()>> all;
  for (const auto& [recording, recorded] : recorded_)
    if (recorded.submitted)
      if (auto waiting = waiting_for(recorded)) all.push_back(std::move(waiting));
  return [all = std::move(all)] {
    for (const auto& waiting : all) waiting();
  };
}

void VulkanRecordings::synchronize() {
  device_.check_alive();
  for (const auto& [recording, recorded] : recorded_)
    if (recorded.submitted) wait_for(recorded);
}

void VulkanRecordings::download(void* to, std::uint64_t from, std::size_t bytes, Ticket after) {
  wait(after);
  marks_.download(to, from, bytes, 0);
}

Ticket VulkanRecordings::launch(Program&, Grid, std::span<const std::byte>, std::span<const MemoryRange>) {
  not_its_work();
}
Ticket VulkanRecordings::copy(std::uint64_t, std::uint64_t, std::size_t) { not_its_work(); }
Ticket VulkanRecordings::fill(std::uint64_t, std::size_t, std::uint32_t) { not_its_work(); }
Ticket VulkanRecordings::upload(std::uint64_t, const void*, std::size_t) { not_its_work(); }
Ticket VulkanRecordings::replay(Graph&) { not_its_work(); }

}  // namespace weft::backend::vulkan
