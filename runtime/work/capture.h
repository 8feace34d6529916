// Collects the work of a thread for a graph instead of running it. Internal to the runtime.
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "../../backends/operations.h"
#include "../core/context.h"
#include "../core/generation.h"
#include "../core/state.h"
#include "../detail/host_arg.h"
#include "../extent.h"
#include "element_write.h"

namespace weft::detail {

struct Change;

/// The data of a launch that a graph keeps to give it other arguments.
struct CapturedLaunch {
  std::size_t operation = 0;   ///< the launch's last dispatch; set by the capture
  std::size_t dispatches = 0;  ///< without a tape's copies before it; if it is 1, arguments can be exchanged
  bool taped = false;          ///< a tape has recorded it
  std::shared_ptr<backend::Program> program;
  std::shared_ptr<const ir::Interface> call;
  Extent threads = Extent(0);
  std::array<std::byte, ir::report::kArgumentBytes> report{};  ///< what debug mode adds to its arguments
  /// The ranges that it changed, and the memory whose elements, as they were after it, tapes of the capture need or
  /// have left there.
  std::vector<backend::MemoryRange> changed = {};
  std::vector<std::shared_ptr<Storage>> needed = {};
};

/// A scope in which the work that this thread gives a device is collected, whichever stream it names: for a graph, or
/// for a command buffer of the caller's.
///
/// The work goes to a stream of the capture's own. The graph keeps the memory that the work touches. The memory does
/// not note the work, because each launch of the graph is ordered with other work when it comes.
class Capture {
 public:
  /// \param doing  what the capture does, for messages
  /// \param like  for a recording, which the caller submits: the stream whose switches the work takes. Null: for a
  ///              graph, with the switches of the thread's stream
  explicit Capture(DeviceState& device, const char* doing = "a graph is captured", const StreamState* like = nullptr);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture();

  /// The capture of this thread, or null.
  static Capture* current() { return Context::here().capture; }
  /// Refuses an operation on semaphores, which are no part of a graph or a recording.
  /// \param what  for the message: "a stream is to signal a semaphore"
  /// Errors: Error(invalid_argument) in a capture.
  static void refuse_semaphores(const char* what);

  DeviceState& device() const { return device_; }
  const char* doing() const { return doing_; }
  /// The stream that collects the work.
  /// Errors: Error(invalid_argument) for another device than the one that is captured.
  StreamState& stream_for(DeviceState& device);

  void touch(std::shared_ptr<Storage> storage, bool writes);
  /// Tells the watchers of elements that work is about to change. A tape from outside the capture could not know when
  /// the change happens, and a tape from outside a condition not whether it does.
  /// Errors: Error(invalid_argument) if such a tape still needs the elements, and for indices of a mesh.
  void before_write(const ArrayBase& elements, const Change& change);
  /// Notes a launch whose dispatches were collected.
  /// \param args, uses  of the launch
  /// \param moves_elements  see KernelCore
  void launched(CapturedLaunch launch, std::span<const HostArg> args, std::span<const StructureUse> uses,
                bool moves_elements);
  /// Notes a launch over no threads, which is no node that could be given arguments.
  void launched_nothing();
  /// Notes that a tape has recorded the last launch.
  void taped() { launches.back().taped = true; }
  /// Notes that the last launch will be given other arguments.
  void will_be_set();
  /// Memory that captured work accesses.
  struct Touched {
    std::shared_ptr<Storage> storage;
    bool writes = false;
    bool changes = false;          ///< a kernel is given the array to change it, and may change what its elements hold
    bool untold = false;           ///< changed through elements: no watcher was told in the capture
    ReferenceList held = nullptr;  ///< what its elements hold, each time that the work runs
    /// The first launch that works on it, and as which parameter, for messages. Null: none does.
    std::shared_ptr<const ir::Interface> kernel = nullptr;
    std::size_t parameter = 0;
  };
  std::size_t position() { return operations().list.size(); }

  backend::Operations& operations();
  std::map<Storage*, Touched> used;
  /// Notes a write of elements, which each run makes again.
  /// \param adds  the elements come to hold arrays that they did not
  /// Errors: Error(unsupported) if runs would begin with other elements: see fix_elements(); and for a copy in a
  /// recording, which the caller submits at any time: by then the elements may hold other arrays.
  void writes_elements(const ElementWrite& elements, bool adds);
  /// Notes that captured work relies on what elements hold: a copy of them, or a tape that has recorded a launch which
  /// follows them. They may come to hold nothing else in the capture.
  void fix_elements(Storage& elements) { fixed_.insert(&elements); }
  std::vector<CapturedLaunch> launches;
  /// The data of a structure that a launch, or a build or refit, needs when it runs.
  struct StructureNeed : StructureUse {
    std::size_t launch = SIZE_MAX;  ///< number of the launch; SIZE_MAX: a build or refit
    bool first = false;             ///< a build before which the device holds none of the structure's data
    std::shared_ptr<const ir::Interface> kernel = nullptr;  ///< for messages
  };
  std::vector<StructureNeed> uses;
  /// Notes work that builds or refits a structure in its present memory and size.
  /// Errors: Error(invalid_argument), in a condition, for a structure of which the device holds nothing yet.
  void builds(const StructureUse& use);
  /// Whether captured work builds or refits it.
  bool builds(const Generation& structure) const {
    return std::ranges::any_of(
        uses, [&](const StructureNeed& use) { return use.structure.get() == &structure && use.launch == SIZE_MAX; });
  }
  bool by_handles = false;  ///< some launch goes by handles
  /// Work of the capture has failed and left a part of itself: "a condition". The capture cannot end well.
  const char* failed = nullptr;
  /// A scope of work that is captured as a whole or not at all: an exception that leaves it fails the capture.
  class Whole {
   public:
    Whole(Capture& capture, const char* what) : capture_(capture), what_(what) {}
    Whole(const Whole&) = delete;
    ~Whole() {
      if (!done_) capture_.failed = what_;
    }
    void done() { done_ = true; }

   private:
    Capture& capture_;
    const char* what_;
    bool done_ = false;
  };
  /// The serial (see Storage::serial) at which the innermost condition begins; 0: there is none.
  std::uint64_t condition = 0;
  std::uint64_t serial = 0;  ///< at which the capture begins: memory and watchers made in it have higher ones
  std::unique_ptr<backend::Operations> take();
  /// Takes the buffer that the launches report to, or null. Call before take().
  std::shared_ptr<ReportBuffer> take_reports();

 private:
  DeviceState& device_;
  const char* doing_;
  const bool submitted_by_others_;
  backend::CaptureStream* collector_ = nullptr;
  std::unique_ptr<StreamState> stream_;
  std::set<Storage*> fixed_;  ///< see fix_elements(); `used` keeps them
  Capture* before_;
};

/// Sets an element that kernels find by a handle to zeros, when its object ends: at once, and in a capture also after
/// the captured work, which may write it again in each launch. Errors, as of a lost device, are ignored.
void clear_handle(const ArrayBase& element) noexcept;

/// Refuses an empty std::function. Errors: Error(invalid_argument), naming the call.
template <class F>
void refuse_empty(const std::function<F>& f, const char* call) {
  if (!f) throw Error(ErrorKind::invalid_argument, std::string(call) + " is given an empty function");
}

/// The stream for this thread's work on a device that names no stream: that of the capture, if there is one.
StreamState& current_stream(DeviceState& device);

}  // namespace weft::detail
