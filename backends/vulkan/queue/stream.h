// Records, batches and retires the work of one thread.
#pragma once
#include <volk.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "../../backend.h"
#include "../commands/commands.h"
#include "../device_object.h"
#include "../memory/host_arena.h"
#include "../memory/memory.h"
#include "retirement.h"
#include "semaphore_pool.h"
#include "submitter.h"

namespace weft::backend::vulkan {

class VulkanDevice;
class VulkanTimestamps;

/// A stream is a row of command buffers and one timeline semaphore, whose value is the last ticket that has run.
///
/// Operations gather in a batch, which goes to the queue at submit() and wait(), and when it is full. If the host has
/// waited and the stream is idle, a batch is full with kMostWhenIdle operations, so that the device starts early; the
/// batch after a full one has twice as many, up to kMost, so that the host has the time to record it while the device
/// works. A batch of more than kFew that nobody waits for is left to another thread, see Submitter. A batch begins with
/// a barrier against everything that the queue was given before; within it, Hazards decides.
///
/// When kBatches are in flight, the host waits for the oldest, so as not to run ahead without bound. It does not wait
/// if that batch comes after a wait for a semaphore of another's, because the host may be the one to signal it. Then
/// there are more batches, and more upload memory, until the signal has come.
class VulkanStream final : public Stream, private DeviceObject {
 public:
  explicit VulkanStream(VulkanDevice& device);
  ~VulkanStream() override;

  Ticket launch(Program& program, Grid grid, std::span<const std::byte> args,
                std::span<const MemoryRange> ranges) override;
  Ticket copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) override;
  Ticket fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) override;
  Ticket upload(std::uint64_t to, const void* from, std::size_t bytes) override;
  Ticket build(RayStructure& structure, const RayTriangles& triangles) override;
  Ticket replay(Graph& graph) override;
  void download(void* to, std::uint64_t from, std::size_t bytes, Ticket after) override;

  bool measure(Timestamps* into, std::uint32_t first) override;
  void start_at_once(bool on) override { at_once_ = on; }

  Ticket submit() override;
  void start(Ticket ticket) override;
  bool done(Ticket ticket) override;
  void wait(Ticket ticket) override;
  std::function<void()> waiting(Ticket ticket) override;
  void synchronize() override { wait(recorded_); }
  void track_hazards(bool on) override { commands_.track_hazards(on); }
  void barrier_always(bool on) override { commands_.barrier_always(on); }

  /// Makes later work wait until a timeline semaphore of another's has the value.
  Ticket await(VkSemaphore semaphore, std::uint64_t value);
  /// Sets the semaphore to the value when everything has run that the queue was given so far, this stream's work
  /// included.
  /// Errors: Error(invalid_argument) for a value that is not above the present one and all pending ones.
  Ticket signal(VkSemaphore semaphore, std::uint64_t value);
  /// A ticket for everything that the queue was given so far.
  Ticket mark();

  /// Barriers recorded so far, without those at the beginnings of batches. For tests and tuning.
  std::uint64_t memory_barriers() const { return commands_.memory_barriers(); }
  std::uint64_t execution_barriers() const { return commands_.execution_barriers(); }
  /// Operations of the batch that are kept, see Kept. For tests.
  std::size_t kept() const { return commands_.kept(); }
  /// Number of batches: in flight, spare, and the one in recording.
  std::size_t batches() const { return in_flight_.size() + spare_.size() + (current_ ? 1 : 0); }

  static constexpr int kMost = 128;
  static constexpr int kFew = 16;
  static constexpr int kBatches = 12;
  static constexpr std::uint64_t kRingBytes = 1 << 20;
  static constexpr std::uint64_t kStagingBytes = 16 << 20;

 private:
  struct Batch {
    HostArena memory;  // of the pool
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    Submission work;
    std::uint64_t ring_end = 0;                        // when the batch has run, the ring is free up to here
    Ticket last() const { return work.ticket.value; }  // of its operations
  };
  using Urgency = Submitter::Urgency;

  // Frees memory after what is recorded by then, also if that is refused.
  struct Freed {
    Device& device;
    const Allocation& memory;
    ~Freed() { device.free(memory); }
  };

  using Batches = std::deque<std::unique_ptr<Batch>>;

  // One half of a download through staging memory.
  struct Slot {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    Allocation staging;
    std::uint64_t value = 0;  // of the download semaphore; 0: not in use
    std::byte* to = nullptr;
    std::size_t bytes = 0;
  };

  void create();
  void destroy(Ticket ended);
  void abandon() override;
  std::unique_ptr<Batch> make_batch();
  void end(Batch& batch);
  void free_batch();
  bool held_up(const Batch& batch);
  bool held_up(Ticket ticket);
  Batches::const_iterator batch_of(Ticket ticket) const;
  void wait_for_oldest();
  void begin();
  Commands& open();
  void begin_measured();
  void end_measured(std::uint64_t grid_at);
  Ticket recorded(std::uint64_t grid_at = 0);
  void flush(Urgency urgency = Urgency::much, const Point& signal = {});
  struct Beside {  // what a submission has beside its batch
    Point wait{}, signal{};
    VkCommandBuffer commands = VK_NULL_HANDLE;
  };
  void submit(const Beside& beside, Urgency urgency);
  Ticket submit_empty(const Point& signal);
  void start_now(Ticket ticket);
  bool writes_at_once(const Place& target);
  Ticket poll();
  Ticket signal_of(Ticket ticket) const;
  void retire(Ticket completed);
  Allocation staging(std::uint64_t bytes);
  Allocation ring(std::uint64_t bytes);
  void check_ticket(Ticket ticket) const;
  void create_download();
  void staged_download(std::byte* to, std::uint64_t from, std::size_t bytes, Ticket after);
  void record_download(const Slot& slot, const Place& source);
  void submit_download(Slot& slot, Ticket after);
  void finish(Slot& slot);

  const VolkDeviceTable& vk_;
  std::shared_ptr<Timeline> timeline_;
  Ticket recorded_ = 0;  ///< begins with the value that an earlier stream left in the semaphore

  std::unique_ptr<Batch> current_;  // in recording, or the next to be; null: to be found
  Batches in_flight_;               // oldest first
  std::vector<std::unique_ptr<Batch>> spare_;
  Commands commands_;
  int count_ = 0, limit_ = 0;  // operations in the batch, and its limit
  int next_limit_;             // limit of the next batch
  bool waited_ = true;         // whether the host has waited since the last batch began
  bool at_once_ = false;
  VulkanTimestamps* measure_ = nullptr;  // for the next operation
  std::uint32_t measure_first_ = 0;

  // Upload memory for argument blocks and small uploads. Head and tail only grow; their position is modulo the size.
  Allocation ring_;
  std::uint64_t ring_head_ = 0, ring_tail_ = 0;

  // Downloads have commands and a semaphore of their own: they wait for their producers and for nothing recorded later.
  VkCommandPool download_pool_ = VK_NULL_HANDLE;
  VkSemaphore download_semaphore_ = VK_NULL_HANDLE;
  std::uint64_t download_value_ = 0;
  std::array<Slot, 2> slots_{};
};

}  // namespace weft::backend::vulkan
