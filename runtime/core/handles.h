// The structures of a device that kernels find by 64-bit values. Internal to the runtime.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "../../backends/backend.h"
#include "../detail/packed.h"

namespace weft::detail {

class Generation;
struct StreamState;

/// Which memory is behind handles: elements at whose addresses kernels read, and what these refer to. A kernel that
/// goes by handles (ir::Interface::by_handles) may read all of it. Thread-safe.
class Handles {
 public:
  /// From now on kernels may read this element by its address, until its memory goes.
  /// \param structure  which is refused while the device holds none of its data; null: never
  void add(const std::shared_ptr<Storage>& element, std::shared_ptr<const Generation> structure);
  /// The structure of an element is gone: nobody is to wait until it is made anew.
  void gone(const std::shared_ptr<Storage>& element);
  /// An element refers to other memory than before.
  void changed();
  /// Work that wrote.
  struct Written {
    StreamState* stream = nullptr;
    backend::Ticket ticket = 0;
    bool operator==(const Written&) const = default;
  };
  /// The memory of an element that is gone, which holds zeros once the work is done: kept as long as the
  /// device lives, so that who still has the handle reads zeros and nothing else.
  void bury(const backend::Allocation& element, std::span<const Written> writes);
  void end(backend::Device& device);

  /// Errors: Error(invalid_argument) while a structure needs its rebuild.
  void refuse_unbuilt();
  /// All elements and what they refer to, each once. Work on `stream` may begin after this.
  /// Errors: as refuse_unbuilt()
  /// Cost: a few dozen nanoseconds for each, and more after one was made, changed or gone.
  References all(StreamState& stream);

 private:
  struct Element {
    std::weak_ptr<Storage> storage;
    std::shared_ptr<const Generation> structure;
  };
  std::mutex mutex_;
  std::vector<Element> elements_;
  /// What the elements refer to, each once; empty: not known. The elements keep it, so it is dropped with the first of
  /// them that goes.
  std::shared_ptr<const References> beyond_;
  std::uint64_t changes_ = 0;
  std::vector<backend::Allocation> graves_;
  std::vector<Written> buried_;  ///< the last of each stream
};

}  // namespace weft::detail
