// Recordings, semaphores of others, adopted devices.
#include "vulkan_interop.h"

#include <fmt/format.h>

#include "../frontend/support/error.h"
#include "capture.h"
#include "observe.h"
#include "state.h"
#include "view.h"

namespace weft {

using detail::Capture;
using detail::StreamState;

namespace {

[[noreturn]] void invalid(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

// Handles of others make sense on their device alone.
void require_adopted(detail::DeviceState& device, const char* what) {
  if (!backend::VulkanAccess(*device.device, what).adopted())
    throw Error(ErrorKind::unsupported, fmt::format("{} on {}, which is not adopted: it has a VkDevice of its own",
                                                    what, device.device->info().name));
}

StreamState& recordings_of(detail::DeviceState& device) {
  std::lock_guard lock(device.mutex);
  if (!device.recordings) {
    auto made = backend::VulkanAccess(*device.device, "record_into()").create_recordings();
    device.recordings = device.streams.emplace_back(std::make_unique<StreamState>(device, std::move(made))).get();
    device.several_streams = true;
  }
  return *device.recordings;
}

}  // namespace

struct Recording::State {
  std::shared_ptr<detail::DeviceState> device;
  StreamState* recordings = nullptr;
  backend::Ticket ticket = 0;
  std::unique_ptr<backend::Operations> operations;
  std::vector<Capture::Used> used;

  ~State() {
    if (!recordings) return;
    try {
      recordings->with([&](backend::Stream& s) { backend::end_vulkan(s, ticket); });
    } catch (const std::exception&) {
      // A lost device runs nothing any more.
    }
  }
};

Recording::Recording() = default;
Recording::Recording(std::unique_ptr<State> state) : state_(std::move(state)) {}
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

Recording::State& Recording::state() const {
  if (!state_) invalid("a null Recording is used");
  return *state_;
}

void Recording::prepare() const {
  State& s = state();
  for (const Capture::Used& u : s.used) u.storage->order_before(*s.recordings, u.writes);
}

void Recording::tell(VkSemaphore semaphore, std::uint64_t value) const {
  State& s = state();
  Capture::refuse_waits();
  s.recordings->with([&](backend::Stream& b) { backend::submitted_vulkan(b, s.ticket, semaphore, value); });
  // The work happens now, whatever was done since it was recorded.
  for (const Capture::Used& u : s.used) u.storage->touched(*s.recordings, s.ticket, u.writes);
}

void Recording::submitted() const { tell({}, 0); }

void Recording::submitted(VkSemaphore semaphore, std::uint64_t value) const {
  if (!semaphore) invalid("a recording is said to be submitted with a null semaphore");
  tell(semaphore, value);
}

bool Recording::done() const {
  State& s = state();
  return s.recordings->with([&](backend::Stream& b) { return b.done(s.ticket); });
}

Recording Stream::record_into(VkCommandBuffer commands, const std::function<void()>& work) const {
  detail::DeviceState& device = *state_->device;
  require_adopted(device, "record_into()");
  if (!commands) invalid("work is recorded into a null VkCommandBuffer");
  auto made = std::make_unique<Recording::State>();
  made->device = device.shared_from_this();
  {
    Capture collecting(device, "work is recorded into a command buffer");
    work();
    for (auto& [storage, use] : collecting.used) made->used.push_back(std::move(use));
    made->operations = collecting.take();
  }
  StreamState& recordings = recordings_of(device);
  state_->with([](backend::Stream& s) { s.submit(); });
  for (const Capture::Used& u : made->used) {
    detail::Storage& storage = *u.storage;
    if (u.writes && storage.watched()) {
      const detail::View all(u.storage, storage.allocation.address, std::int64_t(storage.bytes), 1);
      for (const auto& watcher : storage.watchers())
        if (!watcher->captured) watcher->before_write(all, *state_);
    }
    storage.order_before(recordings, u.writes);
  }
  made->ticket =
      recordings.with([&](backend::Stream& s) { return backend::record_vulkan(s, commands, *made->operations); });
  made->recordings = &recordings;
  for (const Capture::Used& u : made->used) u.storage->touched(recordings, made->ticket, u.writes);
  return Recording(std::move(made));
}

void Stream::wait(VkSemaphore semaphore, std::uint64_t value) const {
  Capture::refuse_waits();
  require_adopted(*state_->device, "wait()");
  if (!semaphore) invalid("a stream is to wait for a null semaphore");
  state_->with([&](backend::Stream& s) { return backend::VulkanStreamAccess(s, "wait()").await(semaphore, value); });
}

void Stream::signal(VkSemaphore semaphore, std::uint64_t value) const {
  Capture::refuse_waits();
  require_adopted(*state_->device, "signal()");
  if (!semaphore) invalid("a stream is to signal a null semaphore");
  state_->with([&](backend::Stream& s) { return backend::VulkanStreamAccess(s, "signal()").signal(semaphore, value); });
}

void Device::detach() const {
  Capture::refuse_waits();
  const backend::VulkanAccess access(*state_->device, "detach()");
  if (!access.adopted())
    throw Error(ErrorKind::unsupported,
                fmt::format("detach() on {}, which is not adopted: it goes with its last handle", name()));
  detail::Reports found;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& s : state_->streams) try {
        s->synchronize(found);
      } catch (const Error& e) {
        // A lost device is given back as it is.
        if (e.kind() != ErrorKind::device_lost) throw;
      }
  }
  access.detach();
  found.deliver();
}

}  // namespace weft
