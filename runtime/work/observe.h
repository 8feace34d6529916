// Objects that hear of operations on arrays before these happen: the tape that records, and watchers that still need
// the elements. Internal to the runtime.
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
  std::span<const StructureUse> uses;  ///< structures that the launch is given by value
};

/// The values that the host gives for the elements of an array.
struct HostValues {
  std::span<const std::byte> bytes;  ///< of all elements, or of one that stands for each
  /// The scalars of an element; elements lie `element_bytes` apart. Empty: all bytes count.
  std::span<const Leaf> leaves = {};
  std::uint32_t element_bytes = 1;
  const References* held = nullptr;  ///< if the bytes hold addresses: of this memory, or of the array's own
};

/// A change that is about to happen to elements, for their watchers.
struct Change {
  const char* by;                  ///< in a message: "fill()", or the name of a kernel
  const char* argument = nullptr;  ///< the argument of that kernel through which the elements change
  bool replaces_all = false;       ///< each element gets a new value
};

class TapeCore;
class TapeRecord;
using MakeRecord = std::function<std::unique_ptr<TapeRecord>(TapeCore&)>;

/// An object that hears of the operations of one thread, in order. If it throws, so does the operation, which then does
/// nothing.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void launching(const CheckedLaunch& launch) = 0;
  /// The launch of the last launching() is on its stream.
  virtual void launched() = 0;
  /// \param leaves  scalars of an element
  virtual void copying(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) = 0;
  /// All elements are replaced by values of the host.
  virtual void overwriting(const ArrayBase& to, const HostValues& values) = 0;
  /// The host is given the elements themselves.
  /// \param what  the operation in a message: "host_span()"
  virtual void exposing(const ArrayBase& elements, const char* what) = 0;
  /// An operation whose derivative is not known makes `to` from `from`.
  /// \param others   arrays that it reads beside `from`
  /// \param what     the operation in a message: "a copy of an array"
  /// \param instead  what the message advises: "let a kernel ..."
  virtual void untaped(const ArrayBase& to, const ArrayBase& from, std::span<const ArrayBase* const> others,
                       const char* what, const char* instead) = 0;
  /// An operation of the library, with a derivative of its own, makes `to` from all of `from`. Only unrecorded() hears
  /// of its launches.
  /// \param record  makes the record that goes back through the operation; called if gradients pass
  virtual void deriving(const ArrayBase& to, std::span<const ArrayBase* const> from, const MakeRecord& record) = 0;
  /// Captured work is about to run, or work is about to be captured: in both cases, it is not done here and now.
  /// \param what  the operation in a message: "a graph is launched"
  virtual void replaying(const char* what) = 0;
  /// The host reads elements.
  virtual void reading(const ArrayBase& from) = 0;
  /// A function of the caller stands for operations on these arrays.
  virtual void calling(std::function<void()> backward, std::span<const ArrayBase* const> arrays) = 0;
  /// The recorder that hears of operations which are not to be recorded; null: none does.
  virtual Recorder* unrecorded() { return nullptr; }
  /// How a change that this recorder hears of relates to a tape.
  enum class Hears {
    nothing,     ///< the change is not on that tape
    all,         ///< it is on the tape, or is taken back
    first_time,  ///< it is not on the tape, but made in a step that the way back runs again
    again,       ///< it is not on the tape, and made while the way back runs such a step again
  };
  virtual Hears hears_for(const TapeCore& tape) const = 0;
};

/// The recorder that hears of this thread's operations now, or null.
inline Recorder* recorder() { return Context::here().recorder; }

/// A scope in which `recorder` hears of this thread's operations; with null, none does.
class HeardBy : Within<Recorder*> {
 public:
  explicit HeardBy(Recorder* recorder) : Within(&Context::recorder, recorder) {}
};

/// A scope in which no tape records this thread's operations. It is for operations that have no derivative, and that
/// are repeated with all others when steps are run again.
class Quiet : HeardBy {
 public:
  Quiet() : HeardBy(recorder() ? recorder()->unrecorded() : nullptr) {}
};

/// An object that hears of changes of a storage by any thread: see Storage::watch().
class Watcher {
 public:
  Watcher();
  virtual ~Watcher() = default;
  /// These elements are about to be changed by work on `stream`, or by the host after a wait for all that uses them.
  virtual void before_write(const ArrayBase& elements, StreamState& stream, const Change& change) = 0;
  /// Whether a change of these elements would destroy values that are still needed.
  virtual bool needs(const ArrayBase&) { return false; }
  /// Whether it must hear of each change, because a tape's recorded work has left elements there for later records.
  virtual bool follows(const ArrayBase&) { return false; }
  /// The structure that stands on the memory, which is invalid once the memory changes. Null for all other watchers.
  virtual const Generation* structure() const { return nullptr; }
  /// Whether that structure stands on these elements.
  virtual bool stands_on(const ArrayBase&) const { return false; }

  const std::uint64_t serial;  ///< see Storage::serial
  const bool captured;         ///< made while a graph was captured: it watches what each launch of the graph does
};

/// Tells the watchers of an array that captured work changes.
void before_captured_write(const ArrayBase& elements, StreamState& stream, const Change& change);

/// Tells the watchers of an array's memory.
/// Cost: a few nanoseconds where there are none.
inline void before_write(const ArrayBase& elements, StreamState& stream, const Change& change) {
  if (!elements.storage()->watched()) return;
  if (stream.capture) return before_captured_write(elements, stream, change);
  for (const auto& w : elements.storage()->watchers())
    if (!w->captured) w->before_write(elements, stream, change);
}

/// Whether these are the same elements in the same order.
bool same_elements(const ArrayBase& a, const ArrayBase& b);

/// Whether an element of one may share bytes with an element of the other. Views that interleave like the columns of a
/// matrix are known to be apart; of other views only the extents are compared.
bool may_overlap(const ArrayBase& a, const ArrayBase& b);

}  // namespace weft::detail
