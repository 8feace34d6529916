// Work of a thread that is collected for a graph instead of run. Internal to the runtime.
#pragma once
#include <array>
#include <exception>
#include <functional>
#include <map>
#include <memory>
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

/// What a graph needs of a launch to give it other arguments.
struct CapturedLaunch {
  std::size_t operation = 0;    ///< its last dispatch; set by the capture
  std::size_t dispatches = 0;   ///< arguments are exchanged where it is one; copies that a tape made before are apart
  bool taped = false;           ///< a tape has recorded it
  bool moves_elements = false;  ///< see KernelCore
  std::shared_ptr<backend::Program> program;
  std::shared_ptr<const ir::Interface> call;
  Extent threads = Extent(0);
  std::array<std::byte, ir::report::kArgumentBytes> report{};  ///< what debug mode adds to its arguments
  /// What it changed, and memory of which tapes of the capture needed elements as they stood there after it, or had
  /// left some there.
  std::vector<backend::MemoryRange> changed = {};
  std::vector<std::shared_ptr<Storage>> needed = {};
};

/// While it lives, work that this thread gives a device is collected, whichever stream it names: for a graph, or for a
/// command buffer of another's.
///
/// It works on a stream of its own. What is done there keeps the memory that it touches for the graph, and is not noted
/// in it: each launch of the graph is ordered with other work then.
class Capture {
 public:
  /// \param doing  for messages: what happens meanwhile
  /// \param like  of a recording that others submit: the stream whose switches the work takes after. Null: that of the
  ///              thread
  explicit Capture(DeviceState& device, const char* doing = "a graph is captured", const StreamState* like = nullptr);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture();

  /// Of this thread, or null.
  static Capture* current() { return Context::here().capture; }
  /// As refuse_waits(), for what is no part of a graph or a recording. \param what  "a stream is to signal a semaphore"
  static void refuse_semaphores(const char* what);

  DeviceState& device() const { return device_; }
  const char* doing() const { return doing_; }
  /// Errors: Error(invalid_argument) for another device than the one that is captured.
  StreamState& stream_for(DeviceState& device);

  void touch(std::shared_ptr<Storage> storage, bool writes);
  /// Before work changes elements: a tape from outside could not tell when they do, nor could one from outside of a
  /// condition whether they do.
  /// Errors: Error(invalid_argument) where such a tape still needs them.
  void before_write(const ArrayBase& elements, const Change& change);
  /// After the dispatches of a launch.
  /// \param args, uses  of the launch
  void launched(CapturedLaunch launch, std::span<const HostArg> args, std::span<const StructureUse> uses);
  /// After a launch over no threads: it is no node that could be given arguments.
  void launched_nothing();
  /// A tape has recorded the last launch.
  void taped() { launches.back().taped = true; }
  /// The last launch is to be given other arguments.
  void will_be_set();
  /// Called, last one first, when the capture or the condition ends by an exception: what the host has noted of an
  /// object meanwhile is put back, since the work that goes with it never runs.
  /// \param restore  throws nothing
  void if_it_fails(std::function<void()> restore);
  /// What is captured in its life goes again, unless all has been done: an error that the caller may catch in the
  /// capture leaves nothing of it.
  class Undo {
   public:
    explicit Undo(Capture& capture);
    Undo(const Undo&) = delete;
    ~Undo();
    void done() { done_ = true; }

   private:
    Capture& capture_;
    const std::size_t operations_, launches_, changes_, writes_, uses_;
    std::vector<std::shared_ptr<Generation>> changed_;
    bool done_ = false;
  };
  std::size_t position() { return operations().list.size(); }

  backend::Operations& operations();
  struct Touched {
    std::shared_ptr<Storage> storage;
    bool writes = false;
    bool changes = false;  ///< a kernel may change what elements hold: it is given the array to change it
    /// Of messages: the first launch that works on it, and as which parameter. Null where none does.
    std::shared_ptr<const ir::Interface> kernel = nullptr;
    std::size_t parameter = 0;
  };
  std::map<Storage*, Touched> used;
  std::vector<ElementWrite> writes;
  /// Collects a write of elements that may hold arrays: see ElementWrite::run(). From here on `to` refers to both, what
  /// its elements hold and what they will.
  /// Errors: Error(unsupported) for a copy of elements that is recorded for others, who submit it when they like: by
  /// then other elements may stand there.
  void write_elements(const ElementWrite& elements, const std::function<void()>& write);
  std::vector<CapturedLaunch> launches;
  /// What a launch, or a build or refit, needs of a structure when it runs.
  struct StructureNeed : StructureUse {
    std::size_t launch = SIZE_MAX;  ///< its number; SIZE_MAX: a build or refit
    bool first = false;             ///< a build before which the device holds none of the structure's data
    bool changed = false;           ///< a rebuild, since work of the capture changes what a mesh is of
    std::shared_ptr<const ir::Interface> kernel = nullptr;  ///< for messages
  };
  std::vector<StructureNeed> uses;
  /// Work builds or refits a structure in the memory and to the size that it has.
  /// Errors: Error(invalid_argument) for a structure of which the device holds nothing yet, in a condition.
  void builds(const StructureUse& use);
  /// Work changes the indices of a mesh. Until its rebuild, in the same condition, nothing may use it.
  void changes_indices(std::shared_ptr<Generation> mesh);
  void rebuilds(const StructureUse& mesh);
  bool is_changed(const Generation& mesh) const;
  /// Errors: Error(invalid_argument) where a mesh was changed by then and not rebuilt. \param what  for messages
  void refuse_changed(const char* what) const;
  /// Meshes whose indices are changed, and that were not rebuilt since.
  std::vector<std::shared_ptr<Generation>> changed;
  bool by_handles = false;  ///< some launch goes by handles
  /// Where the innermost condition begins, see Storage::serial; 0: there is none.
  std::uint64_t condition = 0;
  std::uint64_t serial = 0;  ///< of the first memory that is made in the capture
  std::unique_ptr<backend::Operations> take();
  /// What the launches report to, or null. Before take().
  std::shared_ptr<ReportBuffer> take_reports();

 private:
  DeviceState& device_;
  const char* doing_;
  const bool submitted_by_others_;
  backend::CaptureStream* collector_ = nullptr;
  std::unique_ptr<StreamState> stream_;
  void restore(std::size_t changes);
  void will_refer(const ElementWrite& elements);

  std::vector<std::function<void()>> restores_;
  Capture* before_;
  const int exceptions_ = std::uncaught_exceptions();
};

/// At the end of an object that others may know by a handle: the element becomes zeros at once, and in a capture also
/// behind what was captured, which may write it again in each launch. A lost device has nothing to be told.
void clear_handle(const ArrayBase& element) noexcept;

/// Errors: Error(invalid_argument) naming the call for a function that holds none.
template <class F>
void refuse_empty(const std::function<F>& f, const char* call) {
  if (!f) throw Error(ErrorKind::invalid_argument, std::string(call) + " is given an empty function");
}

/// Where this thread's work on a device goes that names no stream.
StreamState& current_stream(DeviceState& device);

}  // namespace weft::detail
