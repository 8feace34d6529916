// The conditions of a graph: work that depends on values in memory when the graph runs.
#include <fmt/format.h>

#include <algorithm>

#include "../../frontend/kernels/names.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../array_create.h"
#include "../core/view.h"
#include "../graph.h"
#include "../work/capture.h"
#include "../work/observe.h"

namespace weft {

using backend::Operation;
using detail::Capture;

namespace {

// These kernels stand in for copies and fills, because only launches take part in conditions. They work in words if
// size and addresses allow it, as those of fills always do.
const auto& copy_words() {
  static const auto k = detail::moving_elements(
      kernel("copy words", [](Arr<unsigned> to, Arr<const unsigned> from) { to[tid()] = from[tid()]; }));
  return k;
}
const auto& copy_bytes() {
  static const auto k = detail::moving_elements(
      kernel("copy bytes", [](Arr<std::uint8_t> to, Arr<const std::uint8_t> from) { to[tid()] = from[tid()]; }));
  return k;
}
const auto& fill_words() {
  static const auto k =
      detail::moving_elements(kernel("fill words", [](Arr<unsigned> to, UInt pattern) { to[tid()] = pattern; }));
  return k;
}
// Writes how many workgroups each launch has: none if the flag is 0.
const auto& gate() {
  static const auto k = kernel("gate", [](Arr<const int> flag, Arr<const unsigned> grids, Arr<unsigned> now) {
    now[tid()] = select(flag[0] != 0, grids[tid()], 0u);
  });
  return k;
}

/// The memory that the capture knows at an address. Values from the host, which only the operations know, become
/// storage like that of arrays.
std::shared_ptr<detail::Storage> memory_at(Capture& capture, std::uint64_t address, std::uint64_t bytes) {
  const auto holds = [&](const backend::Allocation& a) {
    return address >= a.address && address + bytes <= a.address + a.bytes;
  };
  for (const auto& [key, use] : capture.used)
    if (holds(use.storage->allocation)) return use.storage;
  std::vector<backend::Allocation>& uploads = capture.operations().uploads;
  const auto upload = std::ranges::find_if(uploads, holds);
  if (upload == uploads.end()) unsupported("memory that no array holds is copied in a condition");
  auto made = std::make_shared<detail::Storage>(capture.device().shared_from_this(), *upload, upload->bytes);
  uploads.erase(upload);
  return made;
}

/// An array over memory that the capture knows.
template <class T>
Array<T> over(Capture& capture, std::uint64_t address, std::uint64_t bytes) {
  return detail::Row<T>(
      detail::View(memory_at(capture, address, bytes), address, std::int64_t(bytes / sizeof(T)), sizeof(T)));
}

/// Makes launches of an operation. They are added at the end of the list and taken off it again.
std::vector<Operation> as_launches(Capture& capture, const Operation& o) {
  std::vector<Operation>& list = capture.operations().list;
  const std::size_t before = list.size();
  if (o.kind == Operation::Kind::copy) {
    if (o.bytes % 4 == 0 && o.to % 4 == 0 && o.from % 4 == 0)
      launch(copy_words(), std::int64_t(o.bytes / 4), over<unsigned>(capture, o.to, o.bytes),
             over<unsigned>(capture, o.from, o.bytes));
    else
      launch(copy_bytes(), std::int64_t(o.bytes), over<std::uint8_t>(capture, o.to, o.bytes),
             over<std::uint8_t>(capture, o.from, o.bytes));
  } else if (o.kind == Operation::Kind::fill) {
    launch(fill_words(), std::int64_t(o.bytes / 4), over<unsigned>(capture, o.to, o.bytes), o.pattern);
  } else {
    unsupported("a structure for ray queries is built in a condition of a graph");
  }
  std::vector<Operation> made(std::make_move_iterator(list.begin() + std::ptrdiff_t(before)),
                              std::make_move_iterator(list.end()));
  list.resize(before);
  return made;
}

/// Refuses loops that record too many operations: each round of a loop is recorded, and loops in loops multiply.
void refuse_too_many(const char* what, int rounds, std::size_t of_a_round, std::size_t before) {
  constexpr std::size_t kMost = 1 << 20;  ///< operations of a graph with loops; they take a kilobyte each
  if (rounds == 1 || before + std::size_t(rounds) * of_a_round <= kMost) return;
  unsupported(
      "{} repeats {} operations up to {} times, after {} others, and a graph with loops has {} at most: take a lower "
      "limit, or launch a graph of some rounds until a flag that the host reads says that it is enough",
      what, of_a_round, rounds, before, kMost);
}

/// A scope in which captured work is that of a condition.
class InCondition {
 public:
  explicit InCondition(Capture& capture)
      : capture_(capture),
        around_(std::exchange(capture.condition, detail::Storage::next_serial())),
        changed_(capture.changed) {}
  InCondition(const InCondition&) = delete;
  InCondition& operator=(const InCondition&) = delete;
  /// Meshes that were changed before count as changed afterwards, too, because the condition may not hold.
  ~InCondition() {
    capture_.condition = around_;
    capture_.changed.swap(changed_);
  }
  /// Checks that the condition has rebuilt each mesh that it has changed.
  /// Errors: Error(invalid_argument) if it has not.
  void end(const char* what) {
    std::erase_if(capture_.changed, [&](const auto& mesh) { return std::ranges::count(changed_, mesh) > 0; });
    capture_.refuse_changed(fmt::format("{} ends", what).c_str());
  }

 private:
  Capture& capture_;
  const std::uint64_t around_;
  std::vector<std::shared_ptr<detail::Generation>> changed_;
};

void check_flag(const Capture& capture, const char* what, const Array<int>& flag) {
  if (flag.is_null()) invalid("{} takes a flag of one element, and is given a null array", what);
  if (flag.size() != 1) invalid("{} takes a flag of one element, and is given {}", what, flag.size());
  flag.storage()->check_present();
  if (const detail::DeviceState& other = *flag.storage()->device; &other != &capture.device())
    invalid("{} is given a flag on device {} while {} on device {}", what, detail::name_beside(other, capture.device()),
            capture.doing(), capture.device().device->info().name);
}

/// Captures `work`, and takes its operations off the list again, as launches.
std::vector<Operation> body_of(Capture& capture, const char* what, const std::function<void()>& work) {
  std::vector<Operation>& list = capture.operations().list;
  const std::size_t begin = list.size(), first_write = capture.writes.size();
  InCondition inside(capture);
  detail::call_back(work);
  inside.end(what);
  // If the flag is 0, the elements keep what they held.
  for (std::size_t k = first_write; k < capture.writes.size(); ++k) {
    capture.writes[k].whole = false;
    capture.writes[k].conditional = true;
  }
  std::vector<Operation> body;
  const std::vector<Operation> collected(std::make_move_iterator(list.begin() + std::ptrdiff_t(begin)),
                                         std::make_move_iterator(list.end()));
  list.resize(begin);
  for (const Operation& o : collected) {
    if (o.kind == Operation::Kind::launch || o.always)
      body.push_back(o);
    else
      for (Operation& l : as_launches(capture, o)) body.push_back(std::move(l));
  }
  return body;
}

/// Whether the gate of this condition opens the operation. One that reads its grid from memory has an inner gate.
bool is_gated(const Operation& o) { return o.kind == Operation::Kind::launch && !o.grid.at; }

/// Captures `work`, puts a gate before it, and repeats both.
void conditional(const char* what, const Array<int>& flag, int rounds, const std::function<void()>& work) {
  Capture* const capture = Capture::current();
  if (!capture) invalid("{} is called outside of a capture", what);
  detail::refuse_empty(work, what);
  detail::tell_recorder({.kind = detail::OperationKind::replay, .what = fmt::format("{} is called", what).c_str()});
  check_flag(*capture, what, flag);
  std::vector<Operation>& list = capture->operations().list;
  const std::size_t begin = list.size();
  Capture::Undo undo(*capture);
  std::vector<Operation> body = body_of(*capture, what, work);
  std::vector<unsigned> grids;
  for (const Operation& o : body)
    if (is_gated(o)) grids.insert(grids.end(), {o.grid.x, o.grid.y, o.grid.z});
  if (grids.empty()) {
    list.insert(list.end(), body.begin(), body.end());
    undo.done();
    return;
  }
  refuse_too_many(what, rounds, body.size() + 1, begin);  // with the gate
  const Device device(capture->device().shared_from_this());
  // The grids in memory are 0 until the gate opens, so a condition inside another one stays shut if its gate does not
  // even run.
  const Array<unsigned> all(device, grids);
  Array<unsigned> now = empty<unsigned>(device, std::int64_t(grids.size()));
  now.zero();
  const std::size_t gate_at = list.size();
  for (std::size_t k = begin; k < gate_at; ++k) list[k].always = true;
  launch(gate(), std::int64_t(grids.size()), flag, all, now);
  const std::vector<Operation> round(list.begin() + std::ptrdiff_t(gate_at), list.end());
  std::uint64_t at = now.address();
  for (Operation& o : body)
    if (is_gated(o)) o.grid.at = std::exchange(at, at + 12);
  // These launches are no longer where they were captured, so they cannot be given other arguments.
  for (detail::CapturedLaunch& l : capture->launches)
    if (l.operation >= begin) l.dispatches = 0;
  for (int k = 0; k < rounds; ++k) {
    if (k > 0) list.insert(list.end(), round.begin(), round.end());
    list.insert(list.end(), body.begin(), body.end());
  }
  undo.done();
}

}  // namespace

void graph_if(const Array<int>& flag, const std::function<void()>& work, Loc loc) {
  detail::called_from(loc, [&] { conditional("graph_if()", flag, 1, work); });
}

void graph_while(const Array<int>& flag, int limit, const std::function<void()>& work, Loc loc) {
  detail::called_from(loc, [&] {
    if (limit < 1 || limit > 1 << 20)
      invalid("graph_while() is given a limit of {} rounds; 1 to 2^20 are possible", limit);
    conditional("graph_while()", flag, limit, work);
  });
}

}  // namespace weft
