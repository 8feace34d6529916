// Work of a thread that is collected for a graph instead of run. Internal to the runtime.
#pragma once
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "../../backends/operations.h"
#include "../arrays/element_write.h"
#include "../core/state.h"
#include "../launch/dispatch.h"
#include "../work/context.h"
#include "../work/form.h"

namespace weft::detail {

struct Change;

/// What a graph needs of a launch to give it other arguments.
struct CapturedLaunch {
  std::size_t operation = 0;   ///< its last dispatch
  std::size_t dispatches = 0;  ///< arguments are exchanged where it is one; copies that a tape made before are apart
  bool taped = false;          ///< a tape has recorded it
  std::shared_ptr<backend::Program> program;
  std::shared_ptr<const ir::Interface> call;
  Extent threads = Extent(0);
  std::array<std::byte, ir::report::kArgumentBytes> report{};  ///< what debug mode adds to its arguments
  /// Structures that were changed before it, or by it too, and not made anew by then: see Capture::Stale.
  std::vector<std::shared_ptr<std::atomic<bool>>> stale_before = {}, stale_behind = {};
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
  /// Of a structure: true while it is not what it says, from a change of what it is of until it is made anew. It keeps
  /// who watches for that.
  using Stale = std::shared_ptr<std::atomic<bool>>;

  /// \param doing  for messages: what happens meanwhile
  /// \param like  of a recording that others submit: the stream whose switches the work takes after. Null: that of the
  ///              thread
  explicit Capture(DeviceState& device, const char* doing = "a graph is captured", const StreamState* like = nullptr);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture();

  /// Of this thread, or null.
  static Capture* current() { return Context::here().capture; }
  /// Errors: Error(invalid_argument) while this thread captures: what was collected has not run.
  static void refuse_waits(const char* what = "the host waits for work or reads elements");
  /// As above, for what is no part of a graph or a recording. \param what  "a stream is to signal a semaphore"
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
  /// \param stale_before  what had changed before, see Structures
  void launched(const Dispatch& work, std::size_t dispatches, std::vector<Stale> stale_before);
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
  /// For an object whose members say on the host what work on the device makes: in a capture they are those of what is
  /// to come, and one that fails puts back what they are now, then calls `then`.
  /// \param members  of the object, tied; nothing is done where this thread captures nothing
  template <class State, class Members>
  static void keep(const std::shared_ptr<State>& state, Members members, std::function<void()> then = {}) {
    Capture* const capture = current();
    if (!capture) return;
    const auto copies = [](const auto&... m) { return std::tuple(m...); };
    capture->if_it_fails([state, members, then = std::move(then), before = std::apply(copies, members(*state))] {
      members(*state) = before;
      if (then) then();
    });
  }
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
    const std::size_t operations_, launches_, changes_, writes_;
    const Forms::Mark forms_;
    bool done_ = false;
  };
  std::size_t position() { return operations().list.size(); }

  backend::Operations& operations();
  struct Used {
    std::shared_ptr<Storage> storage;
    bool writes = false;
    bool changes = false;  ///< a kernel may change what elements hold: it is given the array to change it
    /// What these held in all such launches and somebody watches, whose changes the capture knows of therefore.
    std::vector<Storage*> watched = {};
    /// Of messages: the first launch that works on it, and as which parameter. Null where none does.
    std::shared_ptr<const ir::Interface> kernel = nullptr;
    std::size_t parameter = 0;
  };
  std::map<Storage*, Used> used;
  std::vector<ElementWrite> writes;
  /// Collects a write of elements that may hold arrays: see ElementWrite::run(). From here on `to` refers to both, what
  /// its elements hold and what they will.
  /// Errors: Error(unsupported) for a copy of elements that is recorded for others, who submit it when they like: by
  /// then other elements may stand there.
  void write_elements(const ElementWrite& elements, const std::function<void()>& write);
  std::vector<CapturedLaunch> launches;
  Forms forms;
  bool by_handles = false;  ///< some launch goes by handles
  /// What captured work does to structures. Each launch says the same of them that the capture has found out.
  struct Structures {
    std::vector<Stale> used;     ///< or made anew: they have to be in order when the work is launched
    std::vector<Stale> changed;  ///< what they are of, and not made anew since: they are stale behind it
    std::vector<Stale> written;  ///< what they are of, at any time
    std::vector<Stale> here;     ///< used in the innermost condition
    bool handles_here = false;   ///< work goes by handles there
    std::vector<Stale> unfound;  ///< changed, and not made anew, where work goes by handles
    std::uint64_t since = 0;     ///< where the innermost condition begins, see Storage::serial; 0: there is none
  };
  Structures structures;
  /// Work is captured that changes what the structure is of; that makes it anew; that uses it.
  void change(const Stale& structure);
  void renew(const Stale& structure);
  /// \return  false where it has changed in the capture
  bool use(const Stale& structure);
  /// For use() of a structure that a kernel may find, or may not: it need not be in order by the time of a launch.
  bool find(const Stale& structure);
  /// Captured work makes a structure, see Forms::make().
  void make(const std::shared_ptr<FormCell>& cell, const Form& before, const Form& after) {
    forms.make(cell, before, after, launches.size());
  }
  /// Around the work of a condition, which runs once or never.
  Structures begin_condition();
  /// \param what   calls it, for messages
  /// \param again  or several times
  /// Errors: Error(invalid_argument) for a structure that would be stale in the next round, and is used there.
  void end_condition(const Structures& before, const char* what, bool again);
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

/// While it lives, this thread's work runs as if nothing were captured: what prepares memory that outlives the capture.
class OutsideCapture : Within<Capture*> {
 public:
  OutsideCapture() : Within(&Context::capture, nullptr) {}
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
