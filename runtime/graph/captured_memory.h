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
/// has seen and that elements lead to at its end, which is kept, and at each run the memory that handles lead to by
/// then. A run is refused when elements hold other arrays than at the end of the capture.
class CapturedMemory {
 public:
  CapturedMemory() = default;
  /// Takes what the capture has collected.
  /// \param what   the result of the capture, for messages: "a graph"
  /// \param again  the advice of messages if that cannot run: "capture"
  CapturedMemory(Capture& capture, const char* what, const char* again);

  /// The memory of one run.
  struct Reached {
    References by_handles;                            ///< memory that kernels read
    std::vector<Access> accesses;                     ///< of this memory, and of that of the capture
    std::unique_lock<std::recursive_mutex> elements;  ///< see DeviceState::lock_elements()
  };
  /// Orders a run on `on` after what other streams were given to do with its memory. Tells tapes that need elements
  /// which the run may change; they copy these on `copies`. If the run reads or writes elements that may hold arrays,
  /// no other thread writes such elements before the caller releases the lock in `reached`.
  /// \param reached  empty. It must outlive the caller's locks, even when this throws, because the end of memory in it
  ///                 may take them.
  /// Errors: as check(); Error(invalid_argument) for memory that handles lead to and that was freed, and while a
  /// structure that a handle names needs its rebuild.
  void order_before(StreamState& on, StreamState& copies, Reached& reached) const;
  /// Orders later work on the memory of the run after the run: the memory that order_before() has found, or without
  /// it that of the capture. The device then holds what the run has built, and no structure whose memory is changed.
  void touched(StreamState& on, backend::Ticket ticket, Reached& reached) const;
  /// Checks that the run finds everything as at the end of the capture.
  /// Errors: Error(invalid_argument) for memory that was freed, for elements that hold other arrays, and for a
  /// structure of which the device holds other data, unless it holds none and the run builds it.
  void check() const;

  /// Returns pins of the memory: Array::free() of it is refused while they live.
  std::vector<std::shared_ptr<const void>> pins() const;

  /// The arguments that a launch is given instead of those that it was captured with.
  struct Given {
    std::vector<Capture::Touched> memory;  ///< follow_elements() has completed it
    std::vector<View> changed;             ///< the arrays that the kernel changes
    std::vector<Capture::StructureNeed> uses;
  };
  /// Notes that the commands of a launch were exchanged for others, which work on `given`.
  /// \return what the launch was given before. The caller drops it: the device frees no memory that running work uses.
  Given give(std::size_t launch, Given given);
  /// Checks structures that a launch is to be given.
  /// Errors: Error(invalid_argument) for one that the run changes, or builds with other data.
  void check_given(std::span<const StructureUse> uses) const;
  /// Refuses work that builds a structure of which the device holds nothing yet. Errors: Error(unsupported) for it.
  void refuse_first_builds() const;

 private:
  template <class F>
  void each(F f) const;
  void find_accesses(Reached& reached) const;
  /// Calls f(watcher, elements) for tapes from outside the capture, and for structures on the memory that the capture
  /// did not know, with what the run changes. The capture has told all other watchers.
  template <class F>
  void each_watcher(const F& f) const;
  void tell(StreamState& copies) const;
  /// Tells structures whose memory the run changes, which makes them invalid.
  void tell_structures(StreamState& on) const;
  void find_handles(StreamState& on, Reached& reached) const;
  const std::vector<Capture::StructureNeed>& needed() const;
  bool uses(const Generation* structure) const;
  void check_present() const;
  void check_elements() const;
  void check_structures() const;
  bool follows_elements() const;

  std::vector<Capture::Touched> used_;
  std::map<std::size_t, Given> given_;  ///< by number of the launch
  std::vector<Capture::StructureNeed> uses_;
  mutable bool needed_found_ = false;  ///< since give(), which may come a thousand times before the next run
  mutable std::vector<Capture::StructureNeed> needed_;  ///< what a run needs of structures, each once
  std::uint64_t serial_ = 0;                            ///< of the capture; watchers of lower ones were there before it
  bool by_handles_ = false;                             ///< some launch goes by handles
  DeviceState* device_ = nullptr;                       ///< the device of the capture
  const char *what_ = "", *again_ = "";
};

/// Adds to a list of memory what its elements lead to, and notes what they hold.
/// \param told  the watchers of what the work changes through elements were told of the changes that the list has
void follow_elements(DeviceState& device, std::vector<Capture::Touched>& memory, bool told);

}  // namespace weft::detail
