// Events: moments in the work of a stream, which the host and other streams wait for.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../device.h"
#include "capture.h"

namespace weft {

using detail::StreamState;

namespace {
// An event of a capture has no stream, and the capture's serial as its ticket.
void refuse_captured(const std::shared_ptr<StreamState>& stream, std::uint64_t ticket) {
  if (!stream && ticket)
    throw Error(
        ErrorKind::invalid_argument,
        "this event was recorded in a capture: it is no moment in the work of a stream. Record one after the launch of "
        "the graph");
}
}  // namespace

bool Event::done(Loc loc) const {
  return detail::called_from(loc, [&] {
    refuse_captured(stream_, ticket_);
    return !stream_ || stream_->hold()->done(ticket_);
  });
}
void Event::wait(Loc loc) const {
  detail::called_from(loc, [&] {
    detail::refuse_waits();
    refuse_captured(stream_, ticket_);
    if (stream_) stream_->wait(ticket_);
  });
}
bool Event::wait_for(double seconds, Loc loc) const {
  return detail::called_from(loc, [&] {
    detail::refuse_waits();
    if (!(seconds >= 0)) invalid("a wait of {} seconds", seconds);
    using Clock = std::chrono::steady_clock;
    constexpr double kForEver = 1e8;  // seconds: some years, which the clock can count
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::min(seconds, kForEver)));
    Clock::duration pause = std::chrono::microseconds(20);
    while (!done()) {
      const Clock::duration left = end - Clock::now();
      if (left <= Clock::duration::zero()) return false;
      std::this_thread::sleep_for(std::min(pause, left));
      pause = std::min<Clock::duration>(2 * pause, std::chrono::milliseconds(1));
    }
    wait();
    return true;
  });
}

// In a capture the order follows from the arrays alone, so events there add nothing to what the graph knows.
Event Stream::record(Loc loc) const {
  return detail::called_from(loc, [&] {
    Event event;
    if (detail::Capture* capture = detail::Capture::current()) {
      capture->stream_for(*state_->device);  // refuses other devices
      event.ticket_ = capture->serial;
      return event;
    }
    event.stream_ = state_;
    event.ticket_ = state_->hold()->submit();
    return event;
  });
}
void Stream::wait(const Event& event, Loc loc) const {
  detail::called_from(loc, [&] {
    if (detail::Capture* capture = detail::Capture::current()) {
      capture->stream_for(*state_->device);
      if (!event.stream_ && (event.ticket_ == 0 || event.ticket_ == capture->serial)) return;
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format("a stream is to wait, while {}, for an event from outside: let the stream wait before what is "
                      "captured is launched",
                      capture->doing()));
    }
    refuse_captured(event.stream_, event.ticket_);
    if (!event.stream_) return;
    if (event.stream_->device != state_->device) {
      const std::string &own = state_->device->device->info().name, &other = event.stream_->device->device->info().name;
      invalid("a stream of device {} is to wait for an event of device {}{}: wait for it on the host", own, other,
              other == own ? " (2)" : "");  // the way in which profiles tell them apart
    }
    event.stream_->start(event.ticket_);
  });
}

}  // namespace weft
