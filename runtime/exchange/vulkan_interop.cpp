// Recordings, semaphores of the caller's, and adopted devices.
#include "../vulkan_interop.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "../../backends/vulkan/commands/recordings.h"
#include "../../backends/vulkan/device.h"
#include "../../backends/vulkan/queue/timeline.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../core/state.h"
#include "../core/view.h"
#include "../extent.h"
#include "../graph/captured_memory.h"
#include "../work/capture.h"
#include "../work/observe.h"

namespace weft {

using backend::vulkan_device;
using backend::vulkan::VulkanDevice;
using backend::vulkan::VulkanRecordings;
using backend::vulkan::VulkanStream;
using backend::vulkan::VulkanTimeline;
using detail::Capture;
using detail::StreamState;

namespace {

// Refuses devices of weft's own, because the caller's handles are valid only on the device that they were made on.
void require_adopted(detail::DeviceState& device, const char* what) {
  if (!vulkan_device(*device.device, what).adopted())
    unsupported("{} on {}, which is not adopted: it has a VkDevice of its own", what, device.device->info().name);
}

// Accepts a semaphore of weft's own, or any on an adopted device.
void require_semaphore(detail::DeviceState& device, VkSemaphore semaphore, const char* what) {
  VulkanDevice& vulkan = vulkan_device(*device.device, what);
  if (!semaphore) invalid("{} with a null semaphore", what);
  if (!vulkan.adopted() && !vulkan.signals().owns(semaphore))
    unsupported(
        "{} on {} with a semaphore that is no TimelineSemaphore of this Device: others' are for devices that are "
        "adopted",
        what, device.device->info().name);
}

StreamState& recordings_of(detail::DeviceState& device) {
  std::lock_guard lock(device.mutex);
  if (!device.recordings) {
    VulkanDevice& vulkan = vulkan_device(*device.device, "record_into()");
    vulkan.check_alive();
    auto made = std::make_unique<VulkanRecordings>(vulkan);
    device.recordings = device.streams.emplace_back(std::make_unique<StreamState>(device, std::move(made))).get();
    device.several_streams = true;
  }
  return *device.recordings;
}

VulkanRecordings& as_recordings(backend::Stream& stream) { return static_cast<VulkanRecordings&>(stream); }
// Of a device that has passed require_semaphore().
VulkanStream& as_vulkan(backend::Stream& stream) { return static_cast<VulkanStream&>(stream.own()); }

}  // namespace

struct Recording::State {
  std::shared_ptr<detail::DeviceState> device;
  StreamState* recordings = nullptr;
  StreamState* stream = nullptr;  ///< from which the recording was requested
  backend::Ticket recording = 0;  ///< 0: nothing is recorded yet
  backend::Ticket ticket = 0;     ///< ticket of the last submission, or of the recording if there is none
  std::unique_ptr<backend::Operations> operations;
  detail::CapturedMemory memory;
  /// Kept as long as this lives, because the owner may submit the command buffer at any time.
  std::vector<std::shared_ptr<const void>> pins;
  std::vector<std::shared_ptr<const void>> reached_pins;  ///< of memory that the last prepare() found
  detail::CapturedMemory::Reached reached;                ///< memory that the next submission reaches
  struct Kept {
    backend::Ticket submission = 0;
    detail::CapturedMemory::Reached reached;
  };
  std::vector<Kept> kept;                         ///< memory of submissions that are not known to have run
  std::shared_ptr<detail::ReportBuffer> reports;  ///< null if no kernel prints, asserts or checks

  /// Waits for the last announced submission, and takes its reports.
  void wait(detail::Reports& found) const { recordings->wait(ticket, found); }

  /// Orders earlier work of weft's on the same memory before the next submission, and tells tapes of elements that will
  /// change.
  void order() {
    release();
    const auto dropped = std::exchange(reached, {});  // of a submission that does not come
    try {
      order_now();
    } catch (...) {
      const auto let_go = std::exchange(reached, {});
      throw;
    }
  }
  /// Does what order() does, with nothing reached yet.
  void order_now() {
    memory.order_before(*recordings, *stream, reached);
    reached.elements = {};  // releases the lock until the recording is submitted
    reached_pins.clear();
    for (const auto& storage : reached.by_handles)
      reached_pins.push_back(storage->pin(detail::Storage::PinnedBy::recording));
  }

  /// Notes that the submission works on its memory from now on. Handles may be changed to refer to other memory while
  /// it runs, so this keeps what they refer to now.
  /// \return  the error that prepare() would have thrown
  std::optional<Error> submitted() {
    std::optional<Error> refused;
    kept.push_back({ticket, std::exchange(reached, {})});
    detail::CapturedMemory::Reached& now = kept.back().reached;
    memory.touched(*recordings, ticket, now);
    try {
      memory.check();
    } catch (const Error& e) {
      refused = e;
    }
    release();
    return refused;
  }

  /// Releases the memory that submissions which have run had reached.
  void release() {
    std::vector<Kept> ended;  // released last, because the end of memory may ask the stream of recordings
    const StreamState::Held s = recordings->hold();
    const auto run = std::partition(kept.begin(), kept.end(), [&](const Kept& k) { return !s->done(k.submission); });
    ended.assign(std::make_move_iterator(run), std::make_move_iterator(kept.end()));
    kept.erase(run, kept.end());
  }

  ~State() {
    if (recording == 0) return;
    try {
      recordings->sleep(ticket);
      recordings->keep_from([&](detail::Reports& found) {
        if (reports && ticket != recording) wait(found);
        as_recordings(*recordings->hold()).end(recording);
      });
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

void Recording::prepare(Loc loc) const {
  detail::called_from(loc, [&] {
    State& s = state();
    s.device->device->check_alive();
    detail::tell_recorder({.kind = detail::OperationKind::replay, .what = "a recording is prepared"});
    const bool reported = s.reports && s.ticket != s.recording;
    if (reported) detail::refuse_waits();
    s.order();
    as_recordings(*s.recordings->hold()).prepared(s.recording);
    if (reported) wait();
  });
}

void Recording::wait(Loc loc) const {
  detail::called_from(loc, [&] {
    const State& s = state();
    detail::refuse_waits();
    s.recordings->deliver_from([&](detail::Reports& found) { s.wait(found); });
  });
}

void Recording::tell(VkSemaphore semaphore, std::uint64_t value) const {
  State& s = state();
  detail::refuse_waits();
  std::uint64_t before = 0;
  {
    const StreamState::Held b = s.recordings->hold();
    // The queue has the work in any case. Without the semaphore, it counts as run when all work of the queue has run.
    if (semaphore) before = as_recordings(*b).goes_back(s.recording, semaphore, value);
    if (before) semaphore = {};
    s.ticket = as_recordings(*b).submitted(s.recording, semaphore, value);
    if (s.reports) {
      s.reports->recorded(s.ticket);
      s.recordings->report_later(s.reports);
    }
  }
  // The work happens now, whatever was done since it was recorded.
  const std::optional<Error> refused = s.submitted();
  detail::tell_recorder({.kind = detail::OperationKind::replay, .what = "a recording is submitted"});
  if (refused) throw *refused;
  if (before)
    invalid(
        fmt::format("a recording is said to have run when its semaphore has the value {}, and a submission before it "
                    "when that has {}: the values of a timeline grow",
                    value, before));
}

void Recording::submitted(Loc loc) const {
  detail::called_from(loc, [&] { tell({}, 0); });
}

void Recording::submitted(VkSemaphore semaphore, std::uint64_t value, Loc loc) const {
  detail::called_from(loc, [&] {
    if (!semaphore) invalid("a recording is said to be submitted with a null semaphore");
    if (value == 0)
      invalid("a recording is said to be submitted with a semaphore that gets 0, which it has from the start");
    tell(semaphore, value);
  });
}

bool Recording::done(Loc loc) const {
  return detail::called_from(loc, [&] {
    State& s = state();
    return s.recordings->hold()->done(s.ticket);
  });
}

namespace detail {

ArrayBase make_shared_array(const Device& device, const Extent& extent, int ndim, std::uint32_t element_bytes) {
  const std::uint64_t bytes = checked_bytes(extent, ndim, element_bytes);
  return View(allocate_shared(device.state(), bytes), extent, element_bytes);
}

ArrayBase import_shared_array(const Device& device, const Extent& extent, int ndim, std::uint32_t element_bytes,
                              SharedMemory&& memory) {
  const std::uint64_t bytes = checked_bytes(extent, ndim, element_bytes);
  return View(import_shared(device.state(), std::move(memory), bytes), extent, element_bytes);
}

}  // namespace detail

SharedMemory export_memory(const ArrayBase& array, Loc loc) {
  return detail::called_from(loc, [&] {
    if (array.is_null()) invalid("the memory of a null array is shared");
    array.storage()->check_present();
    SharedMemory shared =
        backend::VulkanAccess(*array.storage()->device->device, "export_memory()").share(array.address());
    array.storage()->lent = true;
    return shared;
  });
}

namespace {
// The device must outlive the semaphore.
template <class... A>
std::shared_ptr<VulkanTimeline> make_timeline(const Device& device, A&&... arguments) {
  struct Kept {
    std::shared_ptr<detail::DeviceState> device;
    std::unique_ptr<VulkanTimeline> timeline;
  };
  auto kept = std::make_shared<Kept>();
  kept->device = device.state();
  VulkanDevice& vulkan = vulkan_device(*kept->device->device, "TimelineSemaphore");
  kept->timeline = std::make_unique<VulkanTimeline>(vulkan, std::forward<A>(arguments)...);
  return {kept, kept->timeline.get()};
}
}  // namespace

TimelineSemaphore::TimelineSemaphore(const Device& device, std::uint64_t value, bool shareable)
    : timeline_(make_timeline(device, value, shareable)) {}
TimelineSemaphore::TimelineSemaphore(const Device& device, FileDescriptor&& fd)
    : timeline_(make_timeline(device, std::move(fd))) {}
std::uint64_t TimelineSemaphore::value() const { return timeline_->value(); }
void TimelineSemaphore::signal(std::uint64_t value, Loc loc) const {
  detail::called_from(loc, [&] {
    Capture::refuse_semaphores("the host is to signal a semaphore");
    timeline_->signal(value);
  });
}
void TimelineSemaphore::wait(std::uint64_t value, Loc loc) const {
  detail::called_from(loc, [&] {
    detail::refuse_waits();
    timeline_->wait(value);
  });
}
VkSemaphore TimelineSemaphore::vk() const { return timeline_->vk(); }
FileDescriptor TimelineSemaphore::share() const { return timeline_->share(); }

Recording Stream::record_into(VkCommandBuffer commands, const std::function<void()>& work, Loc loc) const {
  return detail::called_from(loc, [&] {
    detail::DeviceState& device = *state_->device;
    require_adopted(device, "record_into()");
    if (!commands) invalid("work is recorded into a null VkCommandBuffer");
    device.device->check_alive();
    detail::refuse_empty(work, "record_into()");
    auto made = std::make_unique<Recording::State>();
    made->device = device.shared_from_this();
    {
      Capture collecting(device, "work is recorded into a command buffer", state_.get());
      detail::call_back(work);
      made->memory = detail::CapturedMemory(collecting, "a recording", "record");
      made->memory.refuse_first_builds();
      made->pins = made->memory.pins();
      made->reports = collecting.take_reports();
      made->operations = collecting.take();
      if (made->reports) made->reports->record_into(*made->operations);
      // An error here fails the capture as well.
      const detail::OutsideCapture at_once;
      StreamState& recordings = recordings_of(device);
      state_->hold()->submit();
      made->recordings = &recordings;
      made->stream = state_.get();
      made->order_now();
      made->recording = made->ticket = as_recordings(*recordings.hold()).record(commands, *made->operations);
      made->memory.touched(recordings, made->ticket, made->reached);
    }
    return Recording(std::move(made));
  });
}

void Stream::wait(VkSemaphore semaphore, std::uint64_t value, Loc loc) const {
  detail::called_from(loc, [&] {
    Capture::refuse_semaphores("a stream is to wait for a semaphore");
    require_semaphore(*state_->device, semaphore, "wait()");
    // The whole queue will wait. Work that streams have been given by now comes before the wait, and is reported
    // separately. If another thread is giving a stream work right now, none of that is known to be earlier.
    ++state_->device->waits;
    for (StreamState* other : state_->device->all_streams()) other->try_submit();
    const StreamState::Held s = state_->hold();
    state_->awaited.store(as_vulkan(*s).await(semaphore, value), std::memory_order_release);
  });
}

void Stream::signal(VkSemaphore semaphore, std::uint64_t value, Loc loc) const {
  detail::called_from(loc, [&] {
    Capture::refuse_semaphores("a stream is to signal a semaphore");
    require_semaphore(*state_->device, semaphore, "signal()");
    as_vulkan(*state_->hold()).signal(semaphore, value);
  });
}

void Device::detach(Loc loc) const {
  detail::called_from(loc, [&] {
    detail::refuse_waits();
    VulkanDevice& vulkan = vulkan_device(*state_->device, "detach()");
    if (!vulkan.adopted()) unsupported("detach() on {}, which is not adopted: it goes with its last handle", name());
    state_->default_stream->deliver_from([&](detail::Reports& found) {
      for (StreamState* s : state_->all_streams()) try {
          s->synchronize(found);
        } catch (const Error& e) {
          // A lost device is returned as it is.
          if (e.kind() != ErrorKind::device_lost) throw;
        }
      vulkan.detach();
    });
  });
}

}  // namespace weft
