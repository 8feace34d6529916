// The one door for device work: here it is ordered after other work, told to those who watch what it changes, issued,
// and noted for what comes later. Internal to the runtime.
#pragma once
#include <cstddef>
#include <span>
#include <type_traits>

#include "observe.h"
#include "state.h"

namespace weft::detail {

/// Memory that work accesses.
struct Access {
  Storage* storage;
  bool changes;
  /// What it changes there, for the watchers of the memory; null where they were told of it before.
  const ArrayBase* elements = nullptr;
  /// The parameter of the kernel through which it does, in messages.
  const char* through = nullptr;
};

/// Device work: what it is called and what it accesses. How it is issued is said to submit().
struct Work {
  const char* name;  ///< in messages: "fill()", or that of a kernel
  std::span<const Access> accesses;
  /// Words for a refusal: that work on memory is in the way (a recording that is not submitted), or a capture's.
  class Words {
   public:
    /// \param why  thrown where access number `access` was ordered
    virtual Error refusal(const Error& why, std::size_t access) const = 0;

   protected:
    ~Words() = default;
  };
  const Words* words = nullptr;  ///< null: errors go as they are
};

/// Orders the work after what other streams do to its memory, and tells who watches that.
/// Errors: Error(invalid_argument) for memory that was freed; what watchers throw. Nothing has happened then.
void before_issue(StreamState& on, const Work& work);

/// Gives device work to a stream. In a capture it is collected: each launch of the graph is ordered then.
/// \param issue  `issue(backend::Stream&)`, which has the stream to itself, or `issue()`; returns the last ticket
/// Errors: as before_issue(), and those of `issue`.
template <class Issue>
backend::Ticket submit(StreamState& on, const Work& work, const Issue& issue) {
  before_issue(on, work);
  backend::Ticket ticket = 0;
  if constexpr (std::is_invocable_v<Issue, backend::Stream&>)
    ticket = on.with(issue);
  else
    ticket = issue();
  for (const Access& a : work.accesses) a.storage->touched(on, ticket, a.changes);
  return ticket;
}

/// Copies bytes between memory of one device. Watchers were told, and what the bytes refer to is kept elsewhere.
backend::Ticket copy_bytes(StreamState& on, Storage& to, std::uint64_t to_address, Storage& from,
                           std::uint64_t from_address, std::uint64_t bytes);

}  // namespace weft::detail
