// The memory that captured work touches when it runs. Internal to the runtime.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "../arrays/view.h"
#include "../core/state.h"
#include "../work/work.h"
#include "capture.h"

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
    /// Structures that the capture, or set(), has told of it. Null: none.
    const std::vector<Capture::Stale>* known = nullptr;
    bool by_itself = false;    ///< in the capture, which has told all structures that were there
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
  /// Before a run on `on`: it comes after what other streams were given to do with its memory. Tapes that need elements
  /// which it may change are told, and copy them on `copies`.
  /// Until has_brought() nobody else writes elements that hold arrays, unless the caller unlocks them.
  /// \param reached  empty. The end of memory may ask for what the caller has locked: it is let go of after that, when
  ///                 this has thrown, too.
  /// Errors: Error(invalid_argument) for memory that was freed, and while a structure behind a handle is stale;
  /// Error(unsupported) for elements that come to hold each other in a circle.
  void order_before(StreamState& on, StreamState& copies, Reached& reached) const;
  /// What a run writes. After order_before(), where others may have given elements other arrays meanwhile: once more.
  void add_writes(Reached& reached) const;
  /// After that: what comes later on its memory, as order_before() has found it, comes after. Structures that `reached`
  /// says are changed are stale, those too that were mended or made meanwhile.
  void touched(StreamState& on, backend::Ticket ticket, const Reached& reached) const;
  /// The run has been given to the device: memory refers to what elements hold that it has written there. Of a run that
  /// was not prepared `reached` is empty.
  void has_brought(Reached& reached) const;

  /// Array::free() of the memory is refused while the result lives.
  std::vector<std::shared_ptr<const void>> pins() const;

  /// What a launch is given instead of what it was captured with.
  struct Given {
    std::vector<Capture::Used> memory;
    std::vector<View> changed;               ///< of that, by the kernel
    std::vector<Capture::Stale> structures;  ///< that it uses
    std::vector<FormUse> forms;              ///< of those that it is given
    std::vector<Capture::Stale> stale;       ///< anyhow, behind the launch
  };
  /// The commands of a launch are exchanged for others, which work on this. What was given for the launch before is
  /// returned, to be let go of: the device frees no memory that what runs works on.
  Given give(std::size_t launch, Given given);
  /// Of the structures that it is given by value.
  Forms& forms() { return forms_; }

 private:
  template <class F>
  void each(F f) const;
  /// What a run works on, as far as it has been found by now.
  std::vector<Access> accesses(const Reached& reached) const;
  Brought find_brought() const;
  static void refuse_circles(const Brought& brought);
  template <class F>
  void each_watcher(const Write& write, const F& f) const;
  /// Structures whose memory the run changes, and does not make anew.
  void make_stale(StreamState& on, const Reached& reached) const;
  template <class F>
  bool any_used(const F& f) const;
  void reach(StreamState& on, Reached& reached) const;
  void check_present() const;
  void check_elements() const;

  std::vector<Capture::Used> used_;
  std::map<std::size_t, Given> given_;  ///< by launch
  std::vector<ElementWrite> element_writes_;
  Capture::Structures structures_;
  Forms forms_;
  std::uint64_t serial_ = 0;       ///< of the capture: what is older was there
  bool by_handles_ = false;        ///< some launch goes by handles
  DeviceState* device_ = nullptr;  ///< whose handles they are
  const char *what_ = "", *again_ = "";
};

}  // namespace weft::detail
