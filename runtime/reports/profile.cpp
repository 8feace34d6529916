// Profilers and timers: the current log, and the scope of each thread.
#include "../profile.h"

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../core/state.h"
#include "../work/capture.h"
#include "profile_log.h"

namespace weft {

using detail::ProfileLog;

Profiler::Profiler(const std::vector<Device>& devices, const ProfilerOptions& options)
    : log_(std::make_shared<ProfileLog>(options)) {
  detail::refuse_waits();
  log_->make_current();
  try {
    std::vector<std::shared_ptr<detail::DeviceState>> states;
    for (const Device& device : devices) states.push_back(device.state());
    log_->start(states);
  } catch (...) {
    log_->leave_current();
    try {
      log_->stop();
    } catch (const Error&) {
      // The first error says more.
    }
    throw;
  }
}

Profiler::~Profiler() {
  if (!log_) return;
  try {
    log_->leave_current();
    log_->stop();
  } catch (const std::exception&) {
    // Every call on a lost device reports the loss, so it may be ignored here.
  }
}

Profile Profiler::stop() {
  detail::refuse_waits();
  if (!log_) invalid("a profiler is stopped twice");
  const std::shared_ptr<ProfileLog> log = std::move(log_);
  log->leave_current();
  log->stop();
  return log->result();
}

Timer::Timer(std::string_view name) : log_(ProfileLog::current()) {
  if (!log_) return;
  parent_ = detail::open_scope(*log_);
  scope_ = log_->begin_scope(name, parent_);
  detail::set_open_scope(*log_, scope_);
}

Timer::~Timer() {
  if (!log_) return;
  log_->end_scope(scope_);
  detail::close_scope(*log_, scope_, parent_);
}

}  // namespace weft
