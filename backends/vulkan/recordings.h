// Work that is recorded into command buffers of others, who submit them.
#pragma once
#include <volk.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "../operations.h"
#include "device_object.h"
#include "stream.h"

namespace weft::backend::vulkan {

/// Records operations into a command buffer that is being recorded. `large` receives arguments that are longer than
/// push constants: they must stay as long as the commands.
void record(VulkanDevice& device, Commands& commands, std::span<const Operation> operations,
            std::vector<Allocation>& large);

/// To the runtime a stream whose tickets are recordings. What it knows of a submission is what it is told.
class VulkanRecordings final : public Stream, private DeviceObject {
 public:
  explicit VulkanRecordings(VulkanDevice& device);
  ~VulkanRecordings() override;

  /// The operations, with barriers against everything around them. They must stay until end().
  /// \return what the recording is called by from then on: a ticket that has not been submitted
  Ticket record(VkCommandBuffer commands, const Operations& operations);
  /// The command buffer of a recording is in the queue; it has run when the semaphore has the value, or, without a
  /// semaphore, when all has run that the queue was given so far.
  /// \return the ticket of this submission, later than all others
  Ticket submitted(Ticket recording, VkSemaphore semaphore, std::uint64_t value);
  /// The commands are not needed any more. Waits for the submission that was told of last.
  void end(Ticket recording);

  void download(void* to, std::uint64_t from, std::size_t bytes, Ticket after) override;
  Ticket submit() override { return 0; }  ///< others submit
  /// Errors (as wait): Error(invalid_argument) for a recording that is not submitted: nothing can come after it.
  void start(Ticket ticket) override;
  bool done(Ticket ticket) override;
  void wait(Ticket ticket) override;
  std::function<void()> waiting(Ticket ticket) override;
  void synchronize() override;

  // The runtime gives these to other streams.
  Ticket launch(Program&, Grid, std::span<const std::byte>, std::span<const MemoryRange>) override;
  Ticket copy(std::uint64_t, std::uint64_t, std::size_t) override;
  Ticket fill(std::uint64_t, std::size_t, std::uint32_t) override;
  Ticket upload(std::uint64_t, const void*, std::size_t) override;
  Ticket replay(Graph&) override;
  void track_hazards(bool) override {}
  void barrier_always(bool) override {}
  bool measure(Timestamps*, std::uint32_t) override { return false; }
  void start_at_once(bool) override {}

 private:
  struct Recorded {
    std::vector<Allocation> large;
    bool submitted = false;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    std::uint64_t value = 0;  ///< of the semaphore, or a ticket of marks_
  };
  void abandon() override;
  void require_submitted(const Recorded& recorded) const;
  bool has_run(const Recorded& recorded);
  void wait_for(const Recorded& recorded);
  std::function<void()> waiting_for(const Recorded& recorded);
  /// Of a recording, or of a submission of one; null when it has ended or has run.
  const Recorded* find(Ticket ticket) const;
  void forget(Ticket recording);

  VulkanStream marks_;  ///< tells how far the queue is, where no semaphore does
  Ticket last_ = 0;
  std::map<Ticket, Recorded> recorded_;
  /// Who comes to wait for an earlier submission than the latest waits for that: the caller's semaphore of the earlier
  /// one may be gone.
  struct Submission {
    Ticket recording = 0;
    std::shared_ptr<std::atomic<bool>> has_run;  ///< somebody has waited for it
  };
  std::map<Ticket, Submission> submissions_;
};

}  // namespace weft::backend::vulkan
