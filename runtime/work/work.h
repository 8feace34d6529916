// The one door for device work: here it is ordered after other work, told to those who watch what it changes, issued,
// and noted for what comes later. What is recorded now and submitted by others later goes through its parts. Internal
// to the runtime.
#pragma once
#include <cstddef>
#include <span>
#include <type_traits>

#include "../core/state.h"
#include "observe.h"

namespace weft::detail {

/// Memory that work accesses.
struct Access {
  Storage* storage;
  bool changes;
  /// What it changes there, for the watchers of the memory; null where they were told of it before.
  const ArrayBase* elements = nullptr;
  /// The parameter of the kernel through which it does, in messages.
  const char* through = nullptr;
  bool by_elements = false;  ///< elements of the arguments lead there
};

/// Device work: what it is called and what it accesses. How it is issued is said to submit().
struct DeviceWork {
  const char* name;  ///< in messages: "fill()", or that of a kernel
  std::span<const Access> accesses;
  /// Puts the refusal of an access into the words of the work's giver: which argument of which kernel it is.
  class Words {
   public:
    /// \param why  thrown where access number `access` was ordered
    virtual Error refusal(const Error& why, std::size_t access) const = 0;

   protected:
    ~Words() = default;
  };
  const Words* words = nullptr;  ///< null: errors go as they are
};

/// Before work is issued: it comes after what other streams do to its memory.
/// Errors: Error(invalid_argument) for memory that was freed, in the words of `words` where there are any.
void order(StreamState& on, std::span<const Access> accesses, const DeviceWork::Words* words = nullptr);
/// And those hear of it who watch what it changes. Errors: theirs.
void tell(StreamState& on, const DeviceWork& work);
/// The work of a capture: each launch of the graph is noted.
void note_captured(StreamState& on, std::span<const Access> accesses);
/// After it was issued: what comes later on its memory comes after it.
inline void note(StreamState& on, backend::Ticket ticket, std::span<const Access> accesses) {
  if (on.capture) return note_captured(on, accesses);
  for (const Access& a : accesses) a.storage->touched(on, ticket, a.changes);
}

/// Gives device work to a stream. In a capture it is collected: each launch of the graph is ordered then.
/// \param issue  `issue(backend::Stream&)`, which has the stream to itself, or `issue()`; returns the last ticket
/// Errors: as order() and tell(), and nothing has happened then; and those of `issue`.
template <class Issue>
backend::Ticket submit(StreamState& on, const DeviceWork& work, const Issue& issue) {
  order(on, work.accesses, work.words);
  tell(on, work);
  backend::Ticket ticket = 0;
  if constexpr (std::is_invocable_v<Issue, backend::Stream&>)
    ticket = on.with(issue);
  else
    ticket = issue();
  note(on, ticket, work.accesses);
  return ticket;
}

/// Copies bytes between memory of one device. Watchers were told, and what the bytes refer to is kept elsewhere.
backend::Ticket copy_bytes(StreamState& on, Storage& to, std::uint64_t to_address, Storage& from,
                           std::uint64_t from_address, std::uint64_t bytes);

}  // namespace weft::detail
