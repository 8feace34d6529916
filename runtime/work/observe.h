// Who hears of what is done to arrays before it is done: a tape that records, and whoever still needs the elements.
// Internal to the runtime.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "../../frontend/ir/module.h"
#include "../core/context.h"
#include "../core/generation.h"
#include "../core/state.h"
#include "../core/view.h"
#include "../detail/host_arg.h"

namespace weft::detail {

class KernelCore;

/// A launch whose arguments were checked and that has threads to run.
struct CheckedLaunch {
  KernelCore& kernel;
  const LoadedProgram& program;
  const ir::Variant& variant;
  const Extent& threads;
  std::int64_t count;
  std::span<const HostArg> args;
  StreamState& stream;
  std::span<const StructureUse> uses;  ///< of structures by value
};

/// What the host gives for the elements of an array.
struct HostValues {
  std::span<const std::byte> bytes;  ///< of all elements, or of one that stands for each
  /// The scalars of an element, which lies at multiples of `element_bytes`; with none all bytes count.
  std::span<const Leaf> leaves = {};
  std::uint32_t element_bytes = 1;
  const References* held = nullptr;  ///< where the bytes hold addresses: of this memory, or of that of the array itself
};

/// What is about to happen to elements, for those who watch them.
struct Change {
  const char* by;                  ///< in a message: "fill()", or the name of a kernel
  const char* argument = nullptr;  ///< of that kernel: through which it changes them
  bool replaces_all = false;       ///< each gets another value
  bool by_elements = false;        ///< which lead to them: by then they may lead elsewhere
};

class TapeCore;
class TapeRecord;
using MakeRecord = std::function<std::unique_ptr<TapeRecord>(TapeCore&)>;

/// Hears of the operations of one thread, in order. What it throws is thrown by the operation, which then does nothing.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void launching(const CheckedLaunch& launch) = 0;
  /// That launch is on its stream.
  virtual void launched() = 0;
  /// \param leaves  scalars of an element
  virtual void copying(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) = 0;
  /// All elements are replaced by values of the host.
  virtual void overwriting(const ArrayBase& to, const HostValues& values) = 0;
  /// The host is given the elements themselves.
  /// \param what  as it is called in a message: "host_span()"
  virtual void exposing(const ArrayBase& elements, const char* what) = 0;
  /// An operation on arrays of which no derivative is known.
  /// \param others   what it reads beside `from`
  /// \param what     as it is called in a message: "a copy of an array"
  /// \param instead  what the message advises: "let a kernel ..."
  virtual void untaped(const ArrayBase& to, const ArrayBase& from, std::span<const ArrayBase* const> others,
                       const char* what, const char* instead) = 0;
  /// An operation of the library that makes `to` from all of `from`, with a derivative of its own. What it launches is
  /// heard by unrecorded() only.
  /// \param record  makes what goes back through it; called where gradients pass
  virtual void deriving(const ArrayBase& to, std::span<const ArrayBase* const> from, const MakeRecord& record) = 0;
  /// Work is about to run that was captured before, or to be captured for later: not what is done here and now.
  /// \param what  in a message: "a graph is launched"
  virtual void replaying(const char* what) = 0;
  /// The host reads elements.
  virtual void reading(const ArrayBase& from) = 0;
  /// A function of the caller stands for operations on these arrays.
  virtual void calling(std::function<void()> backward, std::span<const ArrayBase* const> arrays) = 0;
  /// Who hears of what is not to be recorded.
  virtual Recorder* unrecorded() { return nullptr; }
  /// What it is to a tape that a change is made of which this one hears.
  enum class Hears {
    nothing,     ///< it is not on that tape
    all,         ///< it is, or is taken back
    first_time,  ///< it is not, in a step that is made again on the way back
    again,       ///< it is not, in such a step that is made again to go back through it
  };
  virtual Hears hears_for(const TapeCore& tape) const = 0;
};

/// The one that hears of this thread's operations now, or null.
inline Recorder* recorder() { return Context::here().recorder; }

/// While it lives, `recorder` (or, for null, nobody) hears of this thread's operations.
class HeardBy : Within<Recorder*> {
 public:
  explicit HeardBy(Recorder* recorder) : Within(&Context::recorder, recorder) {}
};

/// While it lives, no tape hears of this thread's operations as such: of what is to be made again with the rest when
/// steps are run again, and has no derivative.
class Quiet : HeardBy {
 public:
  Quiet() : HeardBy(recorder() ? recorder()->unrecorded() : nullptr) {}
};

/// Hears of changes of a storage by any thread: see Storage::watch().
class Watcher {
 public:
  Watcher();
  virtual ~Watcher() = default;
  /// These elements are about to be changed by work on `stream`, or by the host after a wait for all that uses them.
  virtual void before_write(const ArrayBase& elements, StreamState& stream, const Change& change) = 0;
  /// Whether a change would take something away that is still needed.
  virtual bool needs(const ArrayBase&) { return false; }
  /// Whether it must hear of each change: a tape's recorded work has left elements there, for what it records later.
  virtual bool follows(const ArrayBase&) { return false; }
  /// Work is captured that changes these elements; before_write() comes with each launch of the graph.
  virtual void before_captured_write(const ArrayBase&, const Change&) {}
  /// The structure that stands on the memory, and is none any more once that changes. Null for all others.
  virtual const Generation* structure() const { return nullptr; }
  /// Whether that structure stands on these elements.
  virtual bool stands_on(const ArrayBase&) const { return false; }

  const std::uint64_t serial;  ///< see Storage::serial
  const bool captured;         ///< made while a graph was captured: it watches what each launch of that does
};

/// Of an array that work changes which is captured, or that a graph changes.
void before_captured_write(const ArrayBase& elements, StreamState& stream, const Change& change);

/// Tells the watchers of an array's memory.
/// Cost: a few nanoseconds where there are none.
inline void before_write(const ArrayBase& elements, StreamState& stream, const Change& change) {
  if (!elements.storage()->watched()) return;
  if (stream.capture) return before_captured_write(elements, stream, change);
  for (const auto& w : elements.storage()->watchers()) w->before_write(elements, stream, change);
}

/// Whether these are the same elements in the same order.
bool same_elements(const ArrayBase& a, const ArrayBase& b);

/// Whether an element of one may share bytes with an element of the other. Views that interleave in the way of columns
/// of one matrix are told apart; of others only the extents are compared.
bool may_overlap(const ArrayBase& a, const ArrayBase& b);

}  // namespace weft::detail
