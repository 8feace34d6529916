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

/// What a graph, or a recording in a command buffer of another's, works on: the memory that the capture has seen, which
/// is kept, and at each run what elements and handles lead to by then.
class CapturedMemory {
 public:
  CapturedMemory() = default;
  /// Takes what the capture has collected.
  /// \param what   it is captured for, for messages: "a graph"
  /// \param again  what to do where that cannot run: "capture"
  CapturedMemory(Capture& capture, const char* what, const char* again);

  /// A change that a run makes.
  struct Write {
    View to;
    bool by_itself = false;    ///< in the capture, which has told all who watched then
    bool by_elements = false;  ///< which lead to the memory
  };
  /// What a run brings to the elements that it writes.
  struct Brought {
    ComingReferences coming;  ///< what they hold at any time in it
    /// What memory refers to whose elements are copied or written.
    struct Referring {
      ReferenceList before;
      References after;
      bool whole = false;  ///< and to nothing else after the run
    };
    std::map<Storage*, Referring> referring;
  };
  /// Memory that a run reaches beyond that of the capture.
  struct Reached {
    std::vector<Write> writes;    ///< all of them
    References by_elements;       ///< kernels may read and write it
    References read_by_elements;  ///< kernels read it, and it is not among these
    References by_handles;        ///< kernels read it
    Brought brought, found_first;
    std::unique_lock<std::recursive_mutex> elements;  ///< see DeviceState::lock_elements(); where it writes any
  };
  /// Orders a run on `on` after what other streams were given to do with its memory. Tapes that need elements which the
  /// run may change are told, and copy them on `copies`. Until has_brought() no other thread writes elements that hold
  /// arrays, unless the caller releases the lock in `reached`.
  /// \param reached  empty. It must outlive the caller's locks, even when this throws: memory that ends with it may ask
  ///                 for them.
  /// Errors: Error(invalid_argument) for memory that was freed, and while a structure that a handle names needs its
  /// rebuild; Error(unsupported) for elements that come to hold each other in a circle.
  void order_before(StreamState& on, StreamState& copies, Reached& reached) const;
  /// Adds what a run writes. To be called once more after order_before() where other threads may have assigned arrays
  /// to elements in between.
  void add_writes(Reached& reached) const;
  /// Orders later work on the memory of the run, as order_before() has found it, after the run. The device then holds
  /// what the run has built, and no structure whose memory `reached` says is changed.
  void touched(StreamState& on, backend::Ticket ticket, const Reached& reached) const;
  /// Once the device was given the run: memory refers to what the elements hold that the run has written there.
  /// `reached` is empty if the run was not prepared.
  void has_brought(Reached& reached) const;

  /// Array::free() of the memory is refused while the result lives.
  std::vector<std::shared_ptr<const void>> pins() const;

  /// What a launch is given instead of what it was captured with.
  struct Given {
    std::vector<Capture::Touched> memory;
    std::vector<View> changed;  ///< of that, by the kernel
    std::vector<Capture::StructureNeed> uses;
  };
  /// The commands of a launch are exchanged for others, which work on this. What was given for the launch before is
  /// returned, to be let go of: the device frees no memory that what runs works on.
  Given give(std::size_t launch, Given given);
  /// A launch would be given these structures. Errors: Error(invalid_argument) for one that the run builds otherwise.
  void check_given(std::span<const StructureUse> uses) const;
  /// Errors: Error(invalid_argument) where the device holds other data of a structure than those of the run, unless it
  /// holds none and the run builds it.
  void check_structures() const;
  /// Errors: Error(unsupported) for work that builds a structure of which the device holds nothing yet.
  void refuse_first_builds() const;

 private:
  template <class F>
  void each(F f) const;
  /// What a run works on, as far as it has been found by now.
  std::vector<Access> accesses(const Reached& reached) const;
  Brought find_brought() const;
  static void refuse_circles(const Brought& brought);
  template <class F>
  void each_watcher(const Write& write, const F& f) const;
  /// Structures whose memory the run changes are none any more.
  void tell_structures(StreamState& on, const Reached& reached) const;
  void find_needed();
  bool uses(const Generation* structure) const;
  void reach(StreamState& on, Reached& reached) const;
  void check_present() const;
  void check_elements() const;

  std::vector<Capture::Touched> used_;
  std::map<std::size_t, Given> given_;  ///< by launch
  std::vector<ElementWrite> element_writes_;
  std::vector<Capture::StructureNeed> uses_;
  std::vector<Capture::StructureNeed> needed_;  ///< what a run needs of structures, each once
  std::uint64_t serial_ = 0;                    ///< of the capture: what is older was there
  bool by_handles_ = false;                     ///< some launch goes by handles
  DeviceState* device_ = nullptr;               ///< whose handles they are
  const char *what_ = "", *again_ = "";
};

}  // namespace weft::detail
