// The stream of a thread's work that names none.
#include <utility>

#include "../device.h"
#include "context.h"
#include "state.h"

namespace weft {

// The scopes of a thread form a linked list.
StreamScope::StreamScope(Stream stream)
    : stream_(std::move(stream)), outer_(std::exchange(detail::Context::here().stream_scope, this)) {}
StreamScope::~StreamScope() {
  // A scope in a std::optional may end out of order.
  StreamScope** link = &detail::Context::here().stream_scope;
  while (*link && *link != this) link = &(*link)->outer_;
  if (*link) *link = outer_;
}

const StreamScope* StreamScope::of(const detail::DeviceState& device) {
  const StreamScope* scope = detail::Context::here().stream_scope;
  while (scope && detail::state_of(scope->stream_).device != &device) scope = scope->outer_;
  return scope;
}

detail::StreamState& detail::stream_of_thread(DeviceState& device) {
  const StreamScope* scope = StreamScope::of(device);
  return scope ? detail::state_of(scope->stream_) : *device.default_stream;
}

}  // namespace weft
