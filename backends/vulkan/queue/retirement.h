// What may only be given back when the work that uses it has run.
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

/// How far a stream has come. Written by the stream's thread, read by all.
struct Timeline {
  VkSemaphore semaphore = VK_NULL_HANDLE;  ///< its value is the last ticket that has run
  std::atomic<Ticket> recorded{0};         ///< the last ticket given out
  std::atomic<Ticket> submitted{0};        ///< the last one that the queue has, or the list before it (Submitter)
  std::atomic<Ticket> completed{0};        ///< the last one known to have run
  std::atomic<bool> submit_soon{false};    ///< memory waits for what is recorded: submit with the next operation

  /// Notes that `ticket` has run.
  void reach(Ticket ticket) {
    Ticket known = completed.load(std::memory_order_relaxed);
    while (known < ticket && !completed.compare_exchange_weak(known, ticket)) {
    }
  }
};

/// Something that is no longer wanted.
struct Retired {
  enum class Kind : std::uint8_t { memory, pipeline, ray_structure, commands, semaphore, queries } kind = Kind::memory;
  std::uint64_t handle = 0;
};

/// Work of a stream, up to a ticket.
using Need = std::pair<std::shared_ptr<Timeline>, Ticket>;

/// Things that wait for the work recorded before they were dropped, on all streams. Thread-safe.
/// Cost: no allocation while nothing is in flight; else things dropped between the same two operations share a group.
class Retirement {
 public:
  /// `release` is called once for each thing, under this object's lock. `poll` reads a semaphore's value.
  Retirement(std::function<void(const Retired&)> release, std::function<Ticket(VkSemaphore)> poll)
      : release_(std::move(release)), poll_(std::move(poll)) {}

  void add(std::shared_ptr<Timeline> timeline);
  /// All its work has run or will never run. Its semaphore is not read again.
  void remove(const std::shared_ptr<Timeline>& timeline);

  /// Drops a thing: at once when nothing is recorded or in flight, else later.
  void drop(const Retired& thing);

  /// Asks the device how far it is and releases what can be. \return whether anything was released.
  bool collect();

  /// Makes streams with work that things wait for submit it at their next operation.
  void hurry();

  /// What the oldest waiting things wait for, where all of that work was submitted: they will come free by themselves.
  std::optional<std::vector<Need>> comes_free();
  /// What was submitted of each stream.
  std::vector<Need> submitted();

  /// Whether a ticket has run; asks the device where that is not known.
  bool reached(const std::shared_ptr<Timeline>& timeline, Ticket ticket);

  /// Whether nothing is recorded or in flight on any stream.
  bool idle();

  /// Releases everything: the device is idle or lost.
  void release_all();

 private:
  // Things that were dropped when the streams stood at the same tickets.
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
  // Oldest first. The needs of each group are at least those of the group before it, so they become ready in order.
  std::deque<Group> groups_;
  std::vector<Group> spare_;
  std::vector<Need> needs_;  // scratch of drop()
  std::size_t since_poll_ = 0;
};

}  // namespace weft::backend::vulkan
