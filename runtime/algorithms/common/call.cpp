// Checks and scratch memory of algorithms.
#include "call.h"

#include <fmt/format.h>

#include "../../../frontend/support/invalid.h"
#include "../../work/capture.h"

namespace weft::detail {

std::int64_t checked_count(const char* algorithm, std::int64_t n) {
  if (n < 0) invalid("{}: {} elements", algorithm, n);
  if (n > kMostElements) unsupported("{}: {} elements; it counts to {}", algorithm, n, kMostElements);
  return n;
}

void AlgorithmCall::refuse(ErrorKind kind, const std::string& message) const {
  throw Error(kind, fmt::format("{}: {}", algorithm_, message));
}

void AlgorithmCall::takes(const ArrayBase& a, const char* what, bool strided) {
  if (a.is_null()) refuse(ErrorKind::invalid_argument, fmt::format("{} is a null array", what));
  if (a.is_freed()) refuse(ErrorKind::invalid_argument, fmt::format("{} is an array that was freed", what));
  if (!strided && !a.is_contiguous())
    refuse(ErrorKind::unsupported,
           fmt::format("{} is a strided view: give contiguous elements, of contiguous() where it is only read", what));
  DeviceState* const device = a.storage()->device.get();
  if (!device_) {
    device_ = device;
    if (options_.stream && state_of(*options_.stream).device != device)
      refuse(ErrorKind::invalid_argument, fmt::format("the stream is on device {} but {} is on device {}",
                                                      state_of(*options_.stream).device->device->info().name, what,
                                                      name_beside(*device, *state_of(*options_.stream).device)));
  } else if (device != device_) {
    refuse(ErrorKind::invalid_argument,
           fmt::format("{} is on device {} but {} is on device {}", taken_.front().what, device_->device->info().name,
                       what, name_beside(*device, *device_)));
  }
  const std::int64_t most = std::min(kMostElements, device->max_threads);
  if (a.size() > most)
    refuse(ErrorKind::unsupported, fmt::format("{} has {} elements; it counts to {}", what, a.size(), most));
  taken_.push_back({a, what});
}

void AlgorithmCall::has_length(const ArrayBase& a, const char* what, std::int64_t n) const {
  if (a.size() != n) refuse(ErrorKind::invalid_argument, fmt::format("{} has {} elements, not {}", what, a.size(), n));
}

void AlgorithmCall::has_room(const ArrayBase& a, const char* what, std::int64_t n) const {
  if (a.size() < n)
    refuse(ErrorKind::invalid_argument, fmt::format("{} has {} elements, and there may be {}", what, a.size(), n));
}

void AlgorithmCall::are_apart(const ArrayBase& a, const char* what_a, const ArrayBase& b, const char* what_b) const {
  if (a.size() && b.size() && may_overlap(a, b))
    refuse(ErrorKind::invalid_argument, fmt::format("{} and {} share memory", what_a, what_b));
}

void AlgorithmCall::are_same_or_apart(const ArrayBase& a, const char* what_a, const ArrayBase& b,
                                      const char* what_b) const {
  if (a.size() && b.size() && may_overlap(a, b) && !same_elements(a, b))
    refuse(ErrorKind::invalid_argument,
           fmt::format("{} and {} share memory in part: they may be the same elements or have none in common", what_a,
                       what_b));
}

void AlgorithmCall::has_no_derivative(const ArrayBase& to, const ArrayBase& from, const char* what,
                                      const char* instead) const {
  tell_recorder({.kind = OperationKind::untaped, .to = &to, .from = &from, .what = what, .instead = instead});
}

void AlgorithmCall::begin(std::uint64_t bytes, const ArrayBase* replaces, bool none) {
  if (!options_.scratch.is_null()) {
    const Array<std::uint8_t>& given = options_.scratch;
    if (given.storage()->device.get() != device_)
      refuse(ErrorKind::invalid_argument, fmt::format("the scratch memory is on device {} but {} is on device {}",
                                                      given.storage()->device->device->info().name, taken_.front().what,
                                                      name_beside(*device_, *given.storage()->device)));
    if (!given.is_contiguous()) refuse(ErrorKind::unsupported, "the scratch memory is a strided view");
    if (given.address() % 16 != 0)
      refuse(ErrorKind::unsupported, "the scratch memory does not begin at a multiple of 16 bytes");
    if (std::uint64_t(given.size()) < bytes)
      refuse(ErrorKind::invalid_argument,
             fmt::format("the scratch memory has {} bytes, and {} are needed", given.size(), bytes));
    for (const Taken& t : taken_) are_apart(given, "the scratch memory", t.array, t.what);
    scratch_ = given.storage();
    next_ = given.address();
  } else if (bytes && !none) {
    scratch_ = allocate(device_->shared_from_this(), bytes);
    next_ = scratch_->allocation.address;
  }
  end_ = none ? next_ : next_ + bytes;
  if (replaces) {
    const bool given = options_.stream && !Capture::current();
    before_write(*replaces, given ? state_of(*options_.stream) : current_stream(*device_),
                 {.by = algorithm_, .replaces_all = true});
    part_.emplace(&Context::part_of_change, true);
  }
  quiet_.emplace();
}

View AlgorithmCall::take_view(std::int64_t count, std::uint32_t element_bytes) {
  const std::uint64_t at = next_;
  next_ += scratch_piece(count, element_bytes);
  if (next_ > end_) internal_error("an algorithm uses more scratch memory than it asked for");
  return View(scratch_, at, count, element_bytes);
}

bool AlgorithmCall::coarse() const {
  return options_.grain == Grain::automatic ? device_->device->info().software : options_.grain == Grain::coarse;
}

bool AlgorithmCall::on_processor() const {
  return options_.grain == Grain::automatic && device_->device->info().host_threads > 0;
}

}  // namespace weft::detail
