// Records work for others, and tracks how far its submissions are.
#include "recordings.h"

#include <algorithm>
#include <cstring>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../../spirv/emit.h"
#include "../device.h"
#include "ray_structure.h"

namespace weft::backend::vulkan {

namespace {
[[noreturn]] void not_its_work() { internal_error("work is given to the stream of recordings"); }
}  // namespace

namespace {
void record_launch(VulkanDevice& device, Commands& commands, const Operation& o, std::vector<Allocation>& large,
                   const LaunchForm& form) {
  const VulkanProgram* program = form.program;
  std::uint64_t arguments = form.arguments;
  if (!program) {
    program = static_cast<const VulkanProgram*>(o.program.get());
    if (o.args.size() > spirv::kPushConstantBytes) {
      const Allocation args = device.allocate(o.args.size(), MemoryKind::upload);
      large.push_back(args);
      std::memcpy(args.host, o.args.data(), o.args.size());
      arguments = args.address;
    }
  }
  commands.order_launch(o.ranges, o.grid.at);
  commands.dispatch(*program, o.args, arguments, o.grid);
}
}  // namespace

void record(VulkanDevice& device, Commands& commands, std::span<const Operation> operations,
            std::vector<Allocation>& large, std::span<const LaunchForm> forms) {
  for (std::size_t k = 0; k < operations.size(); ++k) {
    const Operation& o = operations[k];
    switch (o.kind) {
      case Operation::Kind::launch:
        record_launch(device, commands, o, large, forms.empty() ? LaunchForm() : forms[k]);
        break;
      case Operation::Kind::copy: commands.copy(o.to, o.from, o.bytes); break;
      case Operation::Kind::fill: commands.fill(o.to, o.bytes, o.pattern); break;
      case Operation::Kind::build:
        commands.build(static_cast<const VulkanRayStructure&>(*o.structure), o.triangles);
        break;
    }
    commands.done();
  }
}

VulkanRecordings::VulkanRecordings(VulkanDevice& device) : DeviceObject(device), marks_(device) {}

VulkanRecordings::~VulkanRecordings() { abandon(); }

// The stream of marks is an object of the device itself, and is abandoned as such.
void VulkanRecordings::abandon() {
  if (device_.detached()) return;
  for (auto& [ticket, recorded] : recorded_)
    for (const Allocation& a : recorded.large) device_.memory().free(a.handle);
  recorded_.clear();
}

Ticket VulkanRecordings::record(VkCommandBuffer commands, const Operations& operations) {
  device_.check_alive();
  Recorded recorded;
  Commands recording(device_);
  recording.track_hazards(operations.track_hazards);
  recording.barrier_always(operations.barrier_always);
  recording.enter(commands);
  try {
    vulkan::record(device_, recording, operations.list, recorded.large);
  } catch (...) {
    for (const Allocation& a : recorded.large) device_.memory().free(a.handle);
    throw;
  }
  recording.leave();
  look_at_told();
  recorded.ready = ++last_;
  recorded_.emplace(last_, std::move(recorded));
  return last_;
}

void VulkanRecordings::prepared(Ticket recording) {
  const auto at = recorded_.find(recording);
  if (at == recorded_.end()) return;
  look_at_told();
  at->second.ready = ++last_;
}

void VulkanRecordings::look_at_told() {
  for (const auto& [ticket, submission] : submissions_)
    if (has_run(*submission)) ran(*submission);
}

void VulkanRecordings::ran(const Submission& submission) {
  const auto told = told_.find(submission.semaphore);
  if (told != told_.end() && told->second.value == submission.value && told->second.reached == 0)
    told->second.reached = last_;
}

// Waits outside of all locks.
void VulkanRecordings::Submission::wait(VulkanDevice& device) {
  {
    std::lock_guard lock(mutex);
    if (closed) return;
    ++waiting;
  }
  struct Leave {
    Submission& self;
    ~Leave() {
      std::lock_guard lock(self.mutex);
      --self.waiting;
      self.left.notify_all();
    }
  } leave{*this};
  device.wait_for(semaphore, value);
  has_run.store(true);
}

void VulkanRecordings::Submission::close() {
  std::unique_lock lock(mutex);
  closed = true;
  has_run.store(true);
  left.wait(lock, [this] { return waiting == 0; });
}

// A new semaphore may get the handle of a destroyed one. Its value is lower than its namesake's was when a submission
// had run; but if that submission is still to come, the semaphore exists.
std::uint64_t VulkanRecordings::goes_back(Ticket recording, VkSemaphore semaphore, std::uint64_t value) {
  device_.check_alive();
  const auto known = told_.find(semaphore);
  const auto at = recorded_.find(recording);
  if (known == told_.end() || at == recorded_.end()) return 0;
  const Told told = known->second;
  if (value > told.value) return 0;
  if (value == told.value && (told.reached == 0 || at->second.ready < told.reached)) return 0;
  std::uint64_t reached = 0;
  device_.check(device_.vk().vkGetSemaphoreCounterValue(device_.handle(), semaphore, &reached),
                "vkGetSemaphoreCounterValue");
  const bool to_come = std::ranges::any_of(submissions_, [&](const auto& entry) {
    const Submission& s = *entry.second;
    return s.semaphore == semaphore && s.value == told.value && !s.has_run.load();
  });
  if (reached >= told.value || to_come) return told.value;
  told_.erase(known);
  return 0;
}

Ticket VulkanRecordings::submitted(Ticket recording, VkSemaphore semaphore, std::uint64_t value) {
  device_.check_alive();
  const auto at = recorded_.find(recording);
  if (at == recorded_.end()) internal_error("a recording that has ended is said to be submitted");
  Recorded& recorded = at->second;
  if (recorded.last && has_run(*recorded.last)) {
    for (const auto& earlier : take(recording)) {
      earlier->close();
      ran(*earlier);
    }
  } else if (recorded.last) {
    std::uint64_t reached = 0;
    if (semaphore)
      device_.check(device_.vk().vkGetSemaphoreCounterValue(device_.handle(), semaphore, &reached),
                    "vkGetSemaphoreCounterValue");
    std::erase_if(submissions_, [&](const auto& entry) {
      if (entry.second->recording != recording || !is_over(*entry.second, semaphore, reached)) return false;
      entry.second->close();
      ran(*entry.second);
      return true;
    });
  }
  auto made = std::make_shared<Submission>();
  made->recording = recording;
  made->semaphore = semaphore;
  made->value = semaphore ? value : marks_.mark();
  recorded.last = made;
  submissions_[++last_] = std::move(made);
  if (semaphore) {
    if (told_.size() >= kMostTold && !told_.contains(semaphore)) told_.clear();
    Told& told = told_[semaphore];
    if (value > told.value) told = {value, 0};
  }
  return last_;
}

// Whether an earlier submission is known to have run, given that `semaphore`, which exists, has reached a value.
bool VulkanRecordings::is_over(Submission& earlier, VkSemaphore semaphore, std::uint64_t reached) {
  if (earlier.has_run.load()) return true;
  if (!earlier.semaphore) return marks_.done(earlier.value);
  return earlier.semaphore == semaphore && earlier.value <= reached;
}

// Takes all submissions that are told apart; from now on they are not.
std::vector<std::shared_ptr<VulkanRecordings::Submission>> VulkanRecordings::take(Ticket recording) {
  std::vector<std::shared_ptr<Submission>> taken;
  std::erase_if(submissions_, [&](const auto& entry) {
    if (entry.second->recording != recording) return false;
    taken.push_back(entry.second);
    return true;
  });
  return taken;
}

std::shared_ptr<VulkanRecordings::Submission> VulkanRecordings::find(Ticket ticket) const {
  if (const auto submission = submissions_.find(ticket); submission != submissions_.end()) {
    if (submission->second->has_run.load()) return nullptr;
    ticket = submission->second->recording;
  }
  const auto at = recorded_.find(ticket);
  if (at == recorded_.end()) return nullptr;
  if (!at->second.last)
    invalid(
        "work is waited for, or its memory used, that was recorded into a command buffer and is not submitted: call "
        "Recording::submitted() when the queue has the command buffer, or let the Recording end");
  return at->second.last->has_run.load() ? nullptr : at->second.last;
}

void VulkanRecordings::end(Ticket recording) {
  if (device_.detached()) return;
  const auto at = recorded_.find(recording);
  if (at == recorded_.end()) return;
  const auto submissions = take(recording);
  const Recorded recorded = std::move(at->second);
  recorded_.erase(at);
  // Nobody else uses the arguments, so they are freed at once.
  struct Free {
    VulkanDevice& device;
    const Recorded& recorded;
    ~Free() {
      for (const Allocation& a : recorded.large) device.memory().free(a.handle);
    }
  } free{device_, recorded};
  if (!recorded.last) return;
  device_.check_alive();
  if (const auto waiting = waiting_for(recorded.last)) waiting();
  for (const auto& submission : submissions) {
    submission->close();
    ran(*submission);
  }
}

bool VulkanRecordings::has_run(Submission& latest) {
  if (latest.has_run.load()) return true;
  if (latest.semaphore) {
    std::uint64_t value = 0;
    device_.check(device_.vk().vkGetSemaphoreCounterValue(device_.handle(), latest.semaphore, &value),
                  "vkGetSemaphoreCounterValue");
    if (value < latest.value) return false;
  } else if (!marks_.done(latest.value)) {
    return false;
  }
  latest.has_run.store(true);
  return true;
}

// Empty if there is nothing to wait for.
std::function<void()> VulkanRecordings::waiting_for(const std::shared_ptr<Submission>& latest) {
  if (latest->has_run.load()) return {};
  if (latest->semaphore) return [&device = device_, latest] { latest->wait(device); };
  auto marked = marks_.waiting(latest->value);
  if (!marked) return {};
  return [marked = std::move(marked), latest] {
    marked();
    latest->has_run.store(true);
  };
}

void VulkanRecordings::start(Ticket ticket) {
  device_.check_alive();
  // find() refuses a recording that is not submitted; whatever comes now is submitted after it.
  (void)find(ticket);
}

bool VulkanRecordings::done(Ticket ticket) {
  device_.check_alive();
  const auto latest = find(ticket);
  return !latest || has_run(*latest);
}

void VulkanRecordings::wait(Ticket ticket) {
  device_.check_alive();
  const auto latest = find(ticket);
  if (!latest) return;
  if (const auto waiting = waiting_for(latest)) waiting();
}

std::function<void()> VulkanRecordings::waiting(Ticket ticket) {
  device_.check_alive();
  if (ticket != kAllWork) {
    const auto recorded = recorded_.find(ticket);
    if (recorded != recorded_.end() && !recorded->second.last) return {};
    const auto latest = find(ticket);
    return latest ? waiting_for(latest) : std::function<void()>();
  }
  std::vector<std::function<void()>> all;
  for (const auto& [recording, recorded] : recorded_)
    if (recorded.last)
      if (auto waiting = waiting_for(recorded.last)) all.push_back(std::move(waiting));
  return [all = std::move(all)] {
    for (const auto& waiting : all) waiting();
  };
}

void VulkanRecordings::synchronize() {
  if (const auto waiting = this->waiting(kAllWork)) waiting();
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
