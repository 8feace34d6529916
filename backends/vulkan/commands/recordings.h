// Work that is recorded into command buffers of others, who submit them.
#pragma once
#include <volk.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "../../operations.h"
#include "../device_object.h"
#include "../queue/stream.h"

namespace weft::backend::vulkan {

/// How a launch is recorded whose arguments others see to.
struct LaunchForm {
  const VulkanProgram* program = nullptr;  ///< VulkanProgram::by_address(); null: it is recorded with what it has
  std::uint64_t arguments = 0;             ///< where they are
};

/// Records operations into a command buffer that is being recorded. `large` receives arguments that are longer than
/// push constants: they must stay as long as the commands.
/// \param forms  of each of them, or none
void record(VulkanDevice& device, Commands& commands, std::span<const Operation> operations,
            std::vector<Allocation>& large, std::span<const LaunchForm> forms = {});

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
  /// The command buffer is about to be submitted again.
  void prepared(Ticket recording);
  /// Before submitted(): what it was told of the semaphore before, where that is above the value; or where it is the
  /// value, and the semaphore had it before the recording was made, or prepared. Else 0.
  std::uint64_t goes_back(Ticket recording, VkSemaphore semaphore, std::uint64_t value);
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

  /// Submissions that are told apart: those that are not known to have run. For tests.
  std::size_t submissions() const { return submissions_.size(); }

 private:
  /// One that was told of. Its semaphore is the caller's, who may destroy it once the recording has ended, or was
  /// submitted again after this one had run: from then on nobody asks it.
  struct Submission {
    Ticket recording = 0;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    std::uint64_t value = 0;           ///< of the semaphore, or a ticket of marks_
    std::atomic<bool> has_run{false};  ///< known to
    std::mutex mutex;                  ///< guards what follows
    std::condition_variable left;
    int waiting = 0;      ///< threads that ask the semaphore
    bool closed = false;  ///< nobody may any more, as it has run

    void wait(VulkanDevice& device);
    /// Of one that has run.
    void close();
  };
  struct Recorded {
    std::vector<Allocation> large;
    Ticket ready = 0;                  ///< when it was recorded, or prepared last
    std::shared_ptr<Submission> last;  ///< null while there is none
  };
  void abandon() override;
  bool has_run(Submission& latest);
  bool is_over(Submission& earlier, VkSemaphore semaphore, std::uint64_t reached);
  std::function<void()> waiting_for(const std::shared_ptr<Submission>& latest);
  /// The latest of a recording, which is named by its ticket or by that of any of its submissions: the semaphores of
  /// earlier ones may be gone. Null when it has ended or is known to have run.
  std::shared_ptr<Submission> find(Ticket ticket) const;
  std::vector<std::shared_ptr<Submission>> take(Ticket recording);

  VulkanStream marks_;  ///< tells how far the queue is, where no semaphore does
  Ticket last_ = 0;
  std::map<Ticket, Recorded> recorded_;
  std::map<Ticket, std::shared_ptr<Submission>> submissions_;
  static constexpr std::size_t kMostTold = 64;
  struct Told {
    std::uint64_t value = 0;  ///< the largest
    Ticket reached = 0;       ///< since when the semaphore is known to have it; 0: it is not
  };
  std::map<VkSemaphore, Told> told_;  ///< also of semaphores that are gone
  /// Asks the semaphores of submissions that are not known to have run, which are there.
  void look_at_told();
  /// One is known to have run.
  void ran(const Submission& submission);
};

}  // namespace weft::backend::vulkan
