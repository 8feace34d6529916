// Which stream this thread's work goes to when it names none.
#include <utility>

#include "device.h"
#include "state.h"

namespace weft {

namespace {
// A list through the scopes themselves, which end in the opposite order of their making.
thread_local const StreamScope* t_innermost = nullptr;
}  // namespace

StreamScope::StreamScope(Stream stream) : stream_(std::move(stream)), outer_(std::exchange(t_innermost, this)) {}
StreamScope::~StreamScope() { t_innermost = outer_; }

const StreamScope* StreamScope::of(const detail::DeviceState& device) {
  const StreamScope* scope = t_innermost;
  while (scope && state_of(scope->stream_).device != &device) scope = scope->outer_;
  return scope;
}

detail::StreamState& detail::stream_of_thread(DeviceState& device) {
  const StreamScope* scope = StreamScope::of(device);
  return scope ? state_of(scope->stream_) : *device.default_stream;
}

}  // namespace weft
