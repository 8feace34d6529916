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

enum class OperationKind : std::uint8_t {
  launch,
  copy,       ///< of `from` to `to`
  overwrite,  ///< all elements of `to` are replaced by values of the host
  expose,     ///< the host is given the elements of `from` themselves
  untaped,    ///< makes `to` from `from` and `others`, and its derivative is not known
  /// An operation of the library, with a derivative of its own, makes `to` from all of `others`. Only unrecorded()
  /// hears of its launches.
  derive,
  call,  ///< a function of the caller stands for operations on `others`
  read,  ///< the host reads elements of `from`
  /// Captured work is about to run, or work is about to be captured: in both cases, it is not done here and now.
  replay,
};

/// An operation as recorders hear of it.
struct HeardOperation {
  OperationKind kind;
  const ArrayBase* to = nullptr;
  const ArrayBase* from = nullptr;
  std::span<const ArrayBase* const> others = {};
  const char* what = nullptr;             ///< expose, untaped, replay: the operation in a message: "host_span()"
  const char* instead = nullptr;          ///< untaped: what the message advises: "let a kernel ..."
  std::span<const Leaf> leaves = {};      ///< copy: the scalars of an element
  const HostValues* values = nullptr;     ///< overwrite
  const CheckedLaunch* launch = nullptr;  ///< launch
  const MakeRecord* record = nullptr;     ///< derive: makes the record to go back; called if gradients pass
  const std::function<void()>* backward = nullptr;  ///< call
};

/// An object that hears of the operations of one thread, in order. If it throws, so does the operation, which then does
/// nothing.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void hear(const HeardOperation& operation) = 0;
  /// The launch that was heard of last is on its stream.
  virtual void launched() = 0;
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

inline void tell_recorder(const HeardOperation& operation) {
  if (Recorder* r = recorder()) r->hear(operation);
}

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

/// Returns the generation of a structure that stands on elements, such as a mesh on its indices: a change of these ends
/// what the device holds. The elements are watched as long as the generation is kept.
std::shared_ptr<Generation> generation_over(const ArrayBase& elements, const char* name, const char* of);

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
