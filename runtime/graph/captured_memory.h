// The memory that captured work touches when it runs. Internal to the runtime.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  /// Memory that a run reaches beyond that of the capture.
  struct Reached {
    std::vector<Write> writes;    ///< all of them
    References by_elements;       ///< kernels may read and write it
    References read_by_elements;  ///< kernels read it, and it is not among these
    References by_handles;        ///< kernels read it
    /// What memory referred to before, whose elements are copied or written.
    struct Held {
      References before;
      std::uint64_t version = 0;  ///< of that, see Storage::refer_to()
      std::optional<Copying> copying;
      std::optional<Coming> coming;  ///< until the run has been given to the device
    };
    std::map<Storage*, Held> held;
    References kept;  ///< what comes, until the run has ended
  };
  /// Before a run on `on`: it comes after what other streams were given to do with its memory. Tapes that need elements
  /// which it may change are told, and copy them on `copies`.
  /// Elements that it writes refer to what they will hold.
  /// \param reached  empty. Its end says that the run does not come, until has_brought(). The end of memory may ask for
  ///                 what the caller has locked: it is let go of after that, when this has thrown, too.
  /// Errors: Error(invalid_argument) for elements that held no arrays in the capture and do now, for memory that was
  /// freed, and while a structure behind a handle needs its
  /// rebuild.
  void order_before(StreamState& on, StreamState& copies, Reached& reached) const;
  /// What a run writes. After order_before(), where others may have given elements other arrays meanwhile: once more.
  void add_writes(std::vector<Write>& all) const;
  /// After that: what comes later on its memory, as order_before() has found it, comes after. The device holds what the
  /// run has built, and no structure whose memory `reached` says is changed.
  void touched(StreamState& on, backend::Ticket ticket, const Reached& reached) const;
  /// The run has been given to the device: elements that it writes hold what it writes there, and nothing else. Of a
  /// run that was not prepared `reached` is empty.
  void has_brought(Reached& reached) const;

  /// Array::free() of the memory is refused while the result lives.
  std::vector<std::shared_ptr<const void>> pins() const;

  /// What a launch is given instead of what it was captured with.
  struct Given {
    std::vector<Capture::Used> memory;
    std::vector<View> changed;  ///< of that, by the kernel
    std::vector<Capture::Use> uses;
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
  /// What memory refers to whose elements are copied or written.
  struct Brought {
    References last;  ///< behind the run
    References ever;  ///< at any time in it
    bool written = false, replaced = false;
  };
  /// \param before  what memory refers to before the run
  std::map<Storage*, Brought> brought(const std::function<References(Storage&)>& before) const;
  void note_brought(Reached& reached) const;
  template <class F>
  void each_watcher(const Write& write, const F& f) const;
  /// Structures whose memory the run changes are none any more.
  void tell_structures(StreamState& on, const Reached& reached) const;
  void find_needed();
  bool uses(const Generation* structure) const;
  void reach(StreamState& on, Reached& reached) const;
  void check_present() const;
  void check_elements() const;
  bool is_given(const Storage& storage) const;

  std::vector<Capture::Used> used_;
  std::map<std::size_t, Given> given_;  ///< by launch
  std::vector<Bring> brings_;
  std::vector<Capture::Use> uses_;
  std::vector<Capture::Use> needed_;  ///< what a run needs of structures, each once
  std::uint64_t serial_ = 0;          ///< of the capture: what is older was there
  References idle_;                   ///< copied, when it held no arrays
  bool by_handles_ = false;           ///< some launch goes by handles
  DeviceState* device_ = nullptr;     ///< whose handles they are
  const char *what_ = "", *again_ = "";
};

}  // namespace weft::detail
