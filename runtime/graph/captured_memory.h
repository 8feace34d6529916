// The memory that captured work touches when it runs. Internal to the runtime.
#pragma once
#include <functional>
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
  /// The references that a run brings to the elements that it writes.
  struct Brought {
    ComingReferences coming;  ///< all that the elements hold at any time in the run
    /// The references of memory whose elements are copied or written, before and after the run.
    struct Referring {
      ReferenceList before;
      References after;
      bool whole = false;  ///< the memory refers to nothing else after the run
    };
    std::map<Storage*, Referring> referring;
  };
  /// Memory that a run reaches beyond that of the capture.
  struct Reached {
    std::vector<Write> writes;    ///< all writes of the run
    References by_elements;       ///< memory that kernels may read and write
    References read_by_elements;  ///< memory that kernels only read, without that of by_elements
    References by_handles;        ///< memory that kernels read
    Brought brought, found_first;
    std::unique_lock<std::recursive_mutex> elements;  ///< held if the run writes any: DeviceState::lock_elements()
  };
  /// Orders a run on `on` after what other streams were given to do with its memory. Tells tapes that need elements
  /// which the run may change; they copy these on `copies`. Until has_brought() no other thread writes elements that
  /// hold arrays, unless the caller releases the lock in `reached`.
  /// \param reached  empty. It must outlive the caller's locks, even when this throws, because the end of memory in it
  ///                 may take them.
  /// Errors: Error(invalid_argument) for memory that was freed, and while a structure that a handle names needs its
  /// rebuild; Error(unsupported) for elements that come to hold each other in a circle.
  void order_before(StreamState& on, StreamState& copies, Reached& reached) const;
  /// Adds what a run writes. Called once more after order_before() if other threads may have assigned arrays to
  /// elements in between.
  void add_writes(Reached& reached) const;
  /// Orders later work on the memory of the run, as order_before() has found it, after the run. The device then holds
  /// what the run has built, and no structure whose memory `reached` says is changed.
  void touched(StreamState& on, backend::Ticket ticket, const Reached& reached) const;
  /// Makes memory refer to what the elements hold that the run writes. Called when the device was given the run.
  /// `reached` is empty if the run was not prepared.
  void has_brought(Reached& reached) const;

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
  /// The accesses of a run, as far as they have been found by now.
  std::vector<Access> accesses(const Reached& reached) const;
  Brought find_brought() const;
  static void refuse_circles(const Brought& brought);
  template <class F>
  void each_watcher(const Write& write, const F& f) const;
  /// Tells structures whose memory the run changes, which makes them invalid.
  void tell_structures(StreamState& on, const Reached& reached) const;
  void find_needed();
  bool uses(const Generation* structure) const;
  void reach(StreamState& on, Reached& reached) const;
  void check_present() const;
  void check_elements() const;

  std::vector<Capture::Touched> used_;
  std::map<std::size_t, Given> given_;  ///< by number of the launch
  std::vector<ElementWrite> element_writes_;
  std::vector<Capture::StructureNeed> uses_;
  std::vector<Capture::StructureNeed> needed_;  ///< what a run needs of structures, each once
  std::uint64_t serial_ = 0;                    ///< of the capture; watchers of lower ones were there before it
  bool by_handles_ = false;                     ///< some launch goes by handles
  DeviceState* device_ = nullptr;               ///< the device of the capture
  const char *what_ = "", *again_ = "";
};

}  // namespace weft::detail
