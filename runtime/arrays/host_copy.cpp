// Asynchronous copies to the host: the device copies into staging memory, in order with its stream, and wait() copies
// that to its place.
#include "../host_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "../../frontend/support/error.h"
#include "../detail/host_vector.h"
#include "../work/capture.h"
#include "../work/work.h"
#include "host_copy_state.h"

namespace weft {

HostCopy::HostCopy() = default;
HostCopy::HostCopy(std::unique_ptr<detail::HostCopyState> state) : state_(std::move(state)) {}
HostCopy::HostCopy(HostCopy&& other) noexcept = default;
HostCopy& HostCopy::operator=(HostCopy&& other) noexcept {
  if (this == &other) return *this;
  finish();
  state_ = std::move(other.state_);
  return *this;
}
HostCopy::~HostCopy() { finish(); }

namespace {
// Copies all parts to their places, whatever earlier kernels reported.
void arrive(detail::HostCopyState& state, detail::Reports& found) {
  for (detail::HostCopyState::Part& part : state.parts) {
    detail::state_of(state.stream).wait(part.ticket, found);
    std::memcpy(part.to, part.staging->allocation.host, part.bytes);
    part.staging.reset();
  }
}
}  // namespace

void HostCopy::finish() noexcept {
  const std::unique_ptr<detail::HostCopyState> state = std::move(state_);
  if (!state) return;
  try {
    detail::state_of(state->stream).keep_from([&](detail::Reports& found) { arrive(*state, found); });
  } catch (const std::exception&) {
    // The device is lost, as the next call on it says.
  }
}

bool HostCopy::done(Loc loc) const {
  if (!state_ || state_->parts.empty()) return true;
  const backend::Ticket last = state_->parts.back().ticket;
  return detail::called_from(loc, [&] { return detail::state_of(state_->stream).hold()->done(last); });
}

void HostCopy::wait(Loc loc) {
  const std::unique_ptr<detail::HostCopyState> state = std::move(state_);
  if (!state) return;
  detail::called_from(loc, [&] {
    detail::state_of(state->stream).deliver_from([&](detail::Reports& found) { arrive(*state, found); });
  });
}

namespace detail {

void refuse_host_vector(std::uint64_t count, std::uint64_t bytes) {
  throw Error(ErrorKind::out_of_memory,
              fmt::format("the host has no memory for {} elements of {} bytes", count, bytes));
}

std::unique_ptr<HostCopyState> start_host_copy(Storage& storage, std::uint64_t from, std::uint64_t bytes,
                                               std::byte* to) {
  // The copy has parts, so that staging memory is freed part by part.
  constexpr std::uint64_t kPart = 64ull << 20;
  refuse_waits("elements are copied to the host");
  auto state = std::make_unique<HostCopyState>(storage.device, Device(storage.device).stream());
  StreamState& stream = state_of(state->stream);
  for (std::uint64_t at = 0; at < bytes; at += kPart) {
    HostCopyState::Part part;
    part.bytes = std::min(kPart, bytes - at);
    part.to = to + at;
    part.staging = allocate(storage.device, part.bytes, backend::MemoryKind::readback);
    part.ticket = copy_bytes(stream, *part.staging, part.staging->allocation.address, storage, from + at, part.bytes);
    state->parts.push_back(std::move(part));
  }
  // The work is submitted now, so that the device begins while the host does something else.
  stream.hold()->submit();
  return state;
}

}  // namespace detail
}  // namespace weft
