// Issues all device work: orders it after other work, tells the watchers of what it changes, gives it to the stream,
// and notes it for later work. Recordings, which the caller submits later, use the single steps. Internal to the
// runtime.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include "../core/state.h"
#include "observe.h"

namespace weft::detail {

/// Memory that work accesses.
struct Access {
  Storage* storage;
  bool changes;
  /// The elements that change, for the watchers of the memory; null if these were told before.
  const ArrayBase* elements = nullptr;
  /// The parameter through which a kernel changes them, for messages.
  const char* through = nullptr;
};

/// Device work: its name and its accesses. A function given to submit() issues it.
struct DeviceWork {
  const char* name;  ///< in messages: "fill()", or that of a kernel
  std::span<const Access> accesses;
  /// Rewords the refusal of an access in the caller's terms: which argument of which kernel it is.
  class Words {
   public:
    /// \param why  the error that was thrown when access number `access` was ordered
    virtual Error refusal(const Error& why, std::size_t access) const = 0;

   protected:
    ~Words() = default;
  };
  const Words* words = nullptr;  ///< null: errors are thrown as they are
};

/// Does what order() does, access by access.
void order_each(StreamState& on, std::span<const Access> accesses, const DeviceWork::Words* words);
/// Orders work that is about to be issued after what other streams do to its memory.
/// Errors: Error(invalid_argument) for memory that was freed, reworded by `words`.
/// Cost: a nanosecond or two where nothing is to be ordered: the device has one stream, or this is a capture.
inline void order(StreamState& on, std::span<const Access> accesses, const DeviceWork::Words* words = nullptr) {
  const DeviceState& device = *on.device;
  bool needless = (on.capture || !device.several_streams.load(std::memory_order_relaxed)) &&
                  !device.left_behind.load(std::memory_order_relaxed);
  for (const Access& a : accesses) needless &= !a.storage->is_freed();
  if (!needless) [[unlikely]]
    order_each(on, accesses, words);
}
/// Tells the watchers of what the work changes. Errors: theirs.
inline void tell(StreamState& on, const DeviceWork& work) {
  for (const Access& a : work.accesses)
    if (a.elements) before_write(*a.elements, on, {.by = work.name, .argument = a.through});
}
/// Notes the accesses of captured work for the graph, whose launches are ordered and noted one by one.
void note_captured(StreamState& on, std::span<const Access> accesses);
/// Notes issued work, so that later work on its memory comes after it.
inline void note(StreamState& on, backend::Ticket ticket, std::span<const Access> accesses) {
  if (on.capture) return note_captured(on, accesses);
  for (const Access& a : accesses) a.storage->touched(on, ticket, a.changes);
}

/// Gives device work to a stream, unless `issue` finds that the work has become another one, and then returns nothing.
/// \param issue  `issue()`, which returns the last ticket, or nothing: nothing is noted then
/// Errors: as submit()
template <class Issue>
std::optional<backend::Ticket> try_submit(StreamState& on, const DeviceWork& work, const Issue& issue) {
  order(on, work.accesses, work.words);
  tell(on, work);
  const std::optional<backend::Ticket> ticket = issue();
  if (ticket) note(on, *ticket, work.accesses);
  return ticket;
}

/// Gives device work to a stream. In a capture the work is collected, and each launch of the graph is ordered later.
/// \param issue  `issue(backend::Stream&)`, which has the stream to itself, or `issue()`; returns the last ticket
/// Errors: those of order() and tell(), before anything has happened; those of `issue`.
template <class Issue>
backend::Ticket submit(StreamState& on, const DeviceWork& work, const Issue& issue) {
  return *try_submit(on, work, [&]() -> std::optional<backend::Ticket> {
    if constexpr (std::is_invocable_v<Issue, backend::Stream&>)
      return issue(*on.hold());
    else
      return issue();
  });
}

/// Copies bytes between memory of one device. The caller has told the watchers, and keeps what the bytes refer to.
backend::Ticket copy_bytes(StreamState& on, Storage& to, std::uint64_t to_address, Storage& from,
                           std::uint64_t from_address, std::uint64_t bytes);

}  // namespace weft::detail
