// Defers releasing objects until the work that uses them has run.
#pragma once
#include <volk.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "../../backend.h"

namespace weft::backend::vulkan {

/// The progress of a stream. Written by the stream's thread, read by all.
struct Timeline {
  VkSemaphore semaphore = VK_NULL_HANDLE;  ///< its value is the last ticket that has run
  std::atomic<Ticket> recorded{0};         ///< the last ticket given out
  std::atomic<Ticket> submitted{0};        ///< the last one in the queue, or in the list before it (Submitter)
  std::atomic<Ticket> completed{0};        ///< the last one known to have run
  std::atomic<bool> submit_soon{false};    ///< memory waits for recorded work: submit with the next operation

  /// Notes that `ticket` has run.
  void reach(Ticket ticket) {
    Ticket known = completed.load(std::memory_order_relaxed);
    while (known < ticket && !completed.compare_exchange_weak(known, ticket)) {
    }
  }
};

/// An object that is no longer wanted.
struct Retired {
  enum class Kind : std::uint8_t { memory, pipeline, ray_structure, commands, semaphore, queries } kind = Kind::memory;
  std::uint64_t handle = 0;
};

/// Work of a stream, up to a ticket.
using Need = std::pair<std::shared_ptr<Timeline>, Ticket>;

/// Objects that wait for the work recorded on all streams before they were dropped. Thread-safe.
/// Cost: no allocation while nothing is in flight; otherwise objects dropped between the same two operations share a
/// group.
class Retirement {
 public:
  /// `release` is called once per object, under this object's lock. `poll` reads a semaphore's value.
  Retirement(std::function<void(const Retired&)> release, std::function<Ticket(VkSemaphore)> poll)
      : release_(std::move(release)), poll_(std::move(poll)) {}

  void add(std::shared_ptr<Timeline> timeline);
  /// Removes a timeline whose work has run or will never run. Its semaphore is not read again.
  void remove(const std::shared_ptr<Timeline>& timeline);

  /// Releases an object: at once if nothing is recorded or in flight, else later.
  void drop(const Retired& thing);

  /// Asks the device for its progress and releases what can be. \return whether anything was released.
  bool collect();

  /// Makes streams with work that objects wait for submit it with their next operation.
  void hurry();

  /// The work that the oldest waiting objects need, if all of it was submitted, so that they come free by themselves.
  std::optional<std::vector<Need>> comes_free();
  /// The last submitted ticket of each stream.
  std::vector<Need> submitted();

  /// Whether a ticket has run; asks the device if that is not known.
  bool reached(const std::shared_ptr<Timeline>& timeline, Ticket ticket);

  /// Whether nothing is recorded or in flight on any stream.
  bool idle();

  /// Releases everything: the device is idle or lost.
  void release_all();

 private:
  // Objects that were dropped when the streams had the same tickets.
  struct Group {
    std::vector<Need> needs;
    std::vector<Retired> things;
  };

  void poll_locked();
  bool reached_locked(Timeline& timeline, Ticket ticket);
  bool release_ready_locked();

  std::function<void(const Retired&)> release_;
  std::function<Ticket(VkSemaphore)> poll_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Timeline>> timelines_;
  // Oldest first. The needs of each group are at least those of the group before it, so groups become ready in order.
  std::deque<Group> groups_;
  std::vector<Group> spare_;
  std::vector<Need> needs_;  // scratch of drop()
  std::size_t since_poll_ = 0;
};

}  // namespace weft::backend::vulkan
