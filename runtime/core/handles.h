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

/// The memory that handles lead to: elements at whose addresses kernels read, and the memory that these elements refer
/// to. A kernel that goes by handles (ir::Interface::by_handles) may read all of it. Thread-safe.
class Handles {
 public:
  /// Lets kernels read this element by its address from now on, until its memory goes.
  /// \param structure  kernels are refused while the device holds none of its data; null: never
  void add(const std::shared_ptr<Storage>& element, std::shared_ptr<const Generation> structure);
  /// Forgets the structure of an element, which is gone, so that no launch is refused for want of its rebuild.
  void gone(const std::shared_ptr<Storage>& element);
  /// Notes that an element refers to other memory than before.
  void changed();
  /// Work that wrote an element.
  struct Written {
    StreamState* stream = nullptr;
    backend::Ticket ticket = 0;
    bool operator==(const Written&) const = default;
  };
  /// Keeps the memory of an element that is gone as long as the device lives. It holds zeros once the work is done, so
  /// that kernels which still have the handle read nothing else.
  void bury(const backend::Allocation& element, std::span<const Written> writes);
  void end(backend::Device& device);

  /// Refuses a kernel that goes by handles while a structure needs its rebuild.
  /// Errors: Error(invalid_argument) in that case.
  void refuse_unbuilt();
  /// Returns all elements and what they refer to, each once. Waits for the writes of buried elements on other streams,
  /// so that work on `stream` may begin.
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
  /// The memory that the elements refer to, each once; null: not known. The elements keep that memory, so the list is
  /// dropped as soon as one of them goes.
  std::shared_ptr<const References> beyond_;
  std::uint64_t changes_ = 0;
  std::vector<backend::Allocation> graves_;
  std::vector<Written> buried_;  ///< the last writes of buried elements, one for each stream
};

}  // namespace weft::detail
