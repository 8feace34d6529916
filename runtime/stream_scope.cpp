// Which stream this thread's work goes to when it names none.
#include <utility>

#include "device.h"
#include "state.h"

namespace weft {

namespace {
// A list through the scopes themselves.
thread_local StreamScope* t_innermost = nullptr;
}  // namespace

StreamScope::StreamScope(Stream stream) : stream_(std::move(stream)), outer_(t_innermost) { t_innermost = this; }
StreamScope::~StreamScope() {
  // Of a scope in a std::optional the end may come out of order.
  StreamScope** link = &t_innermost;
  while (*link && *link != this) link = &(*link)->outer_;
  if (*link) *link = outer_;
}

const StreamScope* StreamScope::of(const detail::DeviceState& device) {
  const StreamScope* scope = t_innermost;
  while (scope && detail::state_of(scope->stream_).device != &device) scope = scope->outer_;
  return scope;
}

detail::StreamState& detail::stream_of_thread(DeviceState& device) {
  const StreamScope* scope = StreamScope::of(device);
  return scope ? detail::state_of(scope->stream_) : *device.default_stream;
}

}  // namespace weft
