// The memory that captured work touches when it runs. Internal to the runtime.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "../core/state.h"
#include "../core/view.h"
#include "../work/capture.h"
#include "../work/work.h"

namespace weft::detail {

/// The memory that a graph, or a recording in a command buffer of the caller's, works on: the memory that the capture
/// has seen, which is kept, and at each run the memory that elements and handles lead to by then.
class CapturedMemory {
 public:
  CapturedMemory() = default;
  /// Takes what the capture has collected.
  /// \param what   the result of the capture, for messages: "a graph"
  /// \param again  the advice of messages if that cannot run: "capture"
  CapturedMemory(Capture& capture, const char* what, const char* again);

  /// A change that a run makes.
  struct Write {
    View to;
    bool by_itself = false;    ///< known in the capture, which has told all watchers of that time
    bool by_elements = false;  ///< elements lead to the memory
  };
  /// What a run writes, as memory refers to other memory when it is looked at.
  struct Found {
    ComingReferences coming;  ///< all that the elements which it writes hold at any time in the run
    /// The references of memory whose elements are copied or written, before and after the run.
    struct Referring {
      ReferenceList before;      ///< once prepared: with what comes
      ReferenceList unprepared;  ///< once prepared: without
      HeldMemory after;
      bool whole = false;  ///< the memory refers to nothing else after the run
    };
    std::map<Storage*, Referring> referring;
    std::vector<Write> writes;  ///< all writes of the run
  };
  /// Memory that a run reaches beyond that of the capture.
  struct Reached {
    Found found;
    References by_elements;        ///< memory that kernels may read and write
    References read_by_elements;   ///< memory that kernels only read, without that of by_elements
    References by_handles;         ///< memory that kernels read
    std::vector<Access> accesses;  ///< of all this memory, and of that of the capture
    bool prepared = false;         ///< by order_before()
    /// What was looked at before, which must not end while anything is locked.
    std::vector<Found> earlier;
    References looked_at;
    std::unique_lock<std::recursive_mutex> elements;  ///< see DeviceState::lock_elements()
  };
  /// Orders a run on `on` after what other streams were given to do with its memory. Tells tapes that need elements
  /// which the run may change; they copy these on `copies`. The elements that the run writes refer to what they will
  /// hold. If the run reads or writes elements that may hold arrays, no other thread writes such elements until
  /// has_run(), unless the caller releases the lock in `reached`.
  /// \param reached  empty. It must outlive the caller's locks, even when this throws, because the end of memory in it
  ///                 may take them.
  /// Errors: Error(invalid_argument) for memory that was freed, and while a structure that a handle names needs its
  /// rebuild; Error(unsupported) for elements that come to hold each other in a circle.
  void order_before(StreamState& on, StreamState& copies, Reached& reached) const;
  /// Orders later work on the memory of the run, as order_before() has found it, after the run. The device then holds
  /// what the run has built, and no structure whose memory `reached` says is changed.
  void touched(StreamState& on, backend::Ticket ticket, Reached& reached) const;
  /// Adds what a run writes by what elements lead to now. Called before touched() if the run was not prepared, or if
  /// other threads may have assigned arrays to elements since.
  void find_writes(Found& found) const;
  /// Called when a prepared run will not come: memory does not refer to what the run would have brought.
  void will_not_run(const Reached& reached) const;
  /// Called when the device was given the run: elements that it has written refer to nothing but what they hold now.
  void has_run(Reached& reached) const;

  /// Returns pins of the memory: Array::free() of it is refused while they live.
  std::vector<std::shared_ptr<const void>> pins() const;

  /// The arguments that a launch is given instead of those that it was captured with.
  struct Given {
    std::vector<Capture::Touched> memory;
    std::vector<View> changed;  ///< the arrays that the kernel changes
    std::vector<Capture::StructureNeed> uses;
  };
  /// Notes that the commands of a launch were exchanged for others, which work on `given`.
  /// \return what the launch was given before. The caller drops it: the device frees no memory that running work uses.
  Given give(std::size_t launch, Given given);
  /// Checks structures that a launch is to be given.
  /// Errors: Error(invalid_argument) for one that the run changes, or builds with other data.
  void check_given(std::span<const StructureUse> uses) const;
  /// Checks that the device holds the structures that a run needs.
  /// Errors: Error(invalid_argument) if it holds other data of one, unless it holds none and the run builds it.
  void check_structures() const;
  /// Refuses work that builds a structure of which the device holds nothing yet. Errors: Error(unsupported) for it.
  void refuse_first_builds() const;

 private:
  template <class F>
  void each(F f) const;
  void find_accesses(Reached& reached) const;
  void find(Reached& reached) const;
  void find_coming(Found& found) const;
  void tell(StreamState& copies, const Found& found) const;
  template <class F>
  void each_watcher(const Write& write, const F& f) const;
  /// Tells structures whose memory the run changes, which makes them invalid.
  void tell_structures(StreamState& on, const Reached& reached) const;
  const std::vector<Capture::StructureNeed>& needed() const;
  bool uses(const Generation* structure) const;
  void reach(StreamState& on, Reached& reached) const;
  void check_present() const;
  void check_elements(References& looked_at) const;
  bool follows_elements() const;

  std::vector<Capture::Touched> used_;
  std::map<std::size_t, Given> given_;  ///< by number of the launch
  std::vector<ElementWrite> element_writes_;
  std::vector<Capture::TapedElements> taped_;
  std::vector<Capture::StructureNeed> uses_;
  mutable bool needed_found_ = false;  ///< since give(), which may come a thousand times before the next run
  mutable std::vector<Capture::StructureNeed> needed_;  ///< what a run needs of structures, each once
  std::uint64_t serial_ = 0;                            ///< of the capture; watchers of lower ones were there before it
  bool by_handles_ = false;                             ///< some launch goes by handles
  DeviceState* device_ = nullptr;                       ///< the device of the capture
  const char *what_ = "", *again_ = "";
};

}  // namespace weft::detail
