// The memory that captured work touches when it runs. Internal to the runtime.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "capture.h"
#include "state.h"

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

  /// Memory that a run reaches beyond that of the capture.
  struct Reached {
    References by_elements;  ///< kernels may read and write it
    References by_handles;   ///< kernels read it
    std::vector<Bring::Begun> brought;
  };
  /// Before a run on `on`: it comes after what other streams were given to do with its memory. Tapes that need elements
  /// which it may change are told, and copy them on `copies`.
  /// Elements that it writes refer to what they will hold.
  /// Errors: Error(invalid_argument) for elements that held no arrays in the capture and do now, for memory that was
  /// freed, and while a structure behind a handle is stale.
  Reached order_before(StreamState& on, StreamState& copies) const;
  /// After that: what comes later on its memory comes after.
  void touched(StreamState& on, backend::Ticket ticket, const Reached& reached) const;
  /// The run has been given to the device: elements that it writes hold what it writes there, and nothing else.
  void has_brought(const Reached& reached) const;

  /// Array::free() of the memory is refused while the result lives.
  std::vector<std::shared_ptr<const void>> pins() const;

  /// The commands of a launch are exchanged for others, which work on this memory. What was given for the launch before
  /// returned, to be let go of: the device frees no memory that what runs works on.
  std::vector<Capture::Used> give(std::size_t launch, std::vector<Capture::Used> memory);

 private:
  template <class F>
  void each(F f) const;
  void check_present() const;
  void check_elements() const;
  bool is_given(const Storage& storage) const;

  std::vector<Capture::Used> used_;
  std::map<std::size_t, std::vector<Capture::Used>> given_;  ///< by launch
  std::vector<Bring> brings_;
  bool by_handles_ = false;        ///< some launch goes by handles
  DeviceState* device_ = nullptr;  ///< whose handles they are
  const char *what_ = "", *again_ = "";
};

}  // namespace weft::detail
