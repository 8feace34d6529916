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

namespace weft::detail {

struct Change;

/// What a graph needs of a launch to give it other arguments.
struct CapturedLaunch {
  std::size_t operation = 0;   ///< its last dispatch; set by the capture
  std::size_t dispatches = 0;  ///< arguments are exchanged where it is one; copies that a tape made before are apart
  bool taped = false;          ///< a tape has recorded it
  std::shared_ptr<backend::Program> program;
  std::shared_ptr<const ir::Interface> call;
  Extent threads = Extent(0);
  std::array<std::byte, ir::report::kArgumentBytes> report{};  ///< what debug mode adds to its arguments
  /// What it changed, and memory of which tapes of the capture needed elements as they stood there after it, or had
  /// left some there.
  std::vector<backend::MemoryRange> changed = {};
  std::vector<std::shared_ptr<Storage>> needed = {};
};

/// While it lives, elements of the memory are copied: see Storage::begin_copy(). What they held meanwhile is kept.
class Copying {
 public:
  explicit Copying(std::shared_ptr<Storage> from) : from_(std::move(from)) { from_->begin_copy(&replaced_); }
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;
  ~Copying() { from_->end_copy(&replaced_); }
  /// All that the memory has referred to since.
  References references() const { return from_->references(&replaced_); }

 private:
  std::shared_ptr<Storage> from_;
  References replaced_;  ///< under the memory's lock
};

/// While it lives, a run that is not given to the device yet brings this to elements of the memory: see
/// Storage::begin_coming().
class Coming {
 public:
  /// Errors: as Storage::refer_to()
  Coming(std::shared_ptr<Storage> to, References list) : to_(std::move(to)), list_(std::move(list)) {
    to_->begin_coming(list_);
  }
  Coming(const Coming&) = delete;
  Coming& operator=(const Coming&) = delete;
  ~Coming() { to_->end_coming(list_); }

 private:
  std::shared_ptr<Storage> to_;
  References list_;
};

/// Elements that hold arrays are written: their array refers to what these hold. In a capture each launch of the graph
/// does it again, when the elements of `from` may refer to other memory than today.
struct Bring {
  std::shared_ptr<Storage> to;
  std::shared_ptr<Storage> from;  ///< whose elements are copied; null: they come with `list`
  References list;
  bool whole = false;        ///< all elements of `to`: it refers to nothing else any more
  bool conditional = false;  ///< in a condition of a graph: runs once, never, or again
  bool idle = false;         ///< in a capture: elements of `from` hold no arrays so far

  /// Around `write`, which writes the elements. Before it `to` comes to refer to what they will hold too, after it to
  /// that alone where it is whole. Others may write elements of `to` and of `from` meanwhile: all that was noted stays
  /// then. What may refuse the write is best asked before: a write that failed may have written some elements, so that
  /// `to` goes on to refer to what they would hold.
  /// Errors: as refuse_circle(), and then nothing has changed.
  void around(const std::function<void()>& write) const;
  /// Errors: Error(unsupported) for memory that refers to `to` in turn.
  void refuse_circle() const { to->refuse_circle(references()); }
  /// What the elements hold that are written, as far as `from` refers to it now.
  References references() const;
  /// The same when `from` refers to `held`.
  References references(const References& held) const;

 private:
  friend class Capture;
  /// \return  the version of `to`, see Storage::refer_to()
  std::uint64_t begin() const;
  /// \param held  what `from` refers to, or has referred to while it was copied
  void end(std::uint64_t version, const References& held) const;
  /// Elements of `from` held no arrays before the write.
  void brought_nothing(const References& held) const;
};

/// Before a kernel writes elements of `to`, and brings what it is given: what both lead to goes with its launch.
/// Errors: Error(invalid_argument) where that may be an array that was freed.
void refuse_freed(Storage& to, const References& brought);

/// Whether nothing else lies in the array's memory.
bool is_whole(const ArrayBase& a);

/// While it lives, work that this thread gives a device is collected, whichever stream it names: for a graph, or for a
/// command buffer of another's.
///
/// It works on a stream of its own. What is done there keeps the memory that it touches for the graph, and is not noted
/// in it: each launch of the graph is ordered with other work then.
class Capture {
 public:
  /// \param doing  for messages: what happens meanwhile
  /// \param like  the stream whose switches the work takes after; null: that of the thread
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
    const std::size_t operations_, launches_, changes_, leading_, brings_, uses_;
    std::vector<std::shared_ptr<Generation>> changed_;
    bool done_ = false;
  };
  std::size_t position() { return operations().list.size(); }

  backend::Operations& operations();
  struct Used {
    std::shared_ptr<Storage> storage;
    bool writes = false;
    bool refers = false;   ///< its elements held arrays in the capture
    bool changes = false;  ///< a kernel may change what elements hold: it is given the array to change it
    /// Of messages: the first launch that works on it, and as which parameter. Null where none does.
    std::shared_ptr<const ir::Interface> kernel = nullptr;
    std::size_t parameter = 0;
  };
  std::map<Storage*, Used> used;
  std::vector<Bring> brings;
  /// Elements come to hold arrays: those that they were copied to before will, in the next launch.
  void refers(Storage& storage);
  /// Launches of the graph have barriers for what elements of the memory hold.
  void leads_on(Used& use);
  std::vector<CapturedLaunch> launches;
  /// What a launch, or a build or refit, needs of a structure when it runs.
  struct Use : StructureUse {
    std::size_t launch = SIZE_MAX;  ///< its number; SIZE_MAX: a build or refit
    bool first = false;             ///< a build before which the device holds none of the structure's data
    bool changed = false;           ///< a rebuild, since work of the capture changes what a mesh is of
    std::shared_ptr<const ir::Interface> kernel = nullptr;  ///< for messages
  };
  std::vector<Use> uses;
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
  backend::CaptureStream* collector_ = nullptr;
  std::unique_ptr<StreamState> stream_;
  void restore(std::size_t changes);

  std::vector<std::function<void()>> restores_;
  std::vector<Storage*> leading_;  ///< in the order in which their use came to refer to others
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
