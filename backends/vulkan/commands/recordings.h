// Work recorded into command buffers of others, who submit them.
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

/// The form of a launch whose arguments others provide.
struct LaunchForm {
  const VulkanProgram* program =
      nullptr;  ///< VulkanProgram::by_address(); null: the launch is recorded with its present arguments
  std::uint64_t arguments = 0;  ///< their address
};

/// Records operations into a command buffer in recording. `large` receives arguments that exceed push constants; they
/// must outlive the commands.
/// \param forms  one for each operation, or empty
void record(VulkanDevice& device, Commands& commands, std::span<const Operation> operations,
            std::vector<Allocation>& large, std::span<const LaunchForm> forms = {});

/// A stream whose tickets are recordings. It knows of submissions only what it is told.
class VulkanRecordings final : public Stream, private DeviceObject {
 public:
  explicit VulkanRecordings(VulkanDevice& device);
  ~VulkanRecordings() override;

  /// Records the operations between full barriers. They must stay until end().
  /// \return the recording's name from then on: a ticket that has not been submitted
  Ticket record(VkCommandBuffer commands, const Operations& operations);
  /// Notes that a recording's command buffer is in the queue. It has run when the semaphore has the value, or, without
  /// a semaphore, when everything has run that the queue was given so far.
  /// \return the ticket of this submission, later than all others
  Ticket submitted(Ticket recording, VkSemaphore semaphore, std::uint64_t value);
  /// Notes that the command buffer is about to be submitted again.
  void prepared(Ticket recording);
  /// Checks a value before submitted(). Returns the semaphore's earlier value if that is above `value`, or if it equals
  /// `value` and the semaphore had it before the recording was made or prepared; otherwise 0.
  std::uint64_t goes_back(Ticket recording, VkSemaphore semaphore, std::uint64_t value);
  /// Ends a recording whose commands are no longer needed. Waits for the last announced submission.
  void end(Ticket recording);

  void download(void* to, std::uint64_t from, std::size_t bytes, Ticket after) override;
  Ticket submit() override { return 0; }  ///< others submit
  /// Errors (of wait() too): Error(invalid_argument) for a recording that is not submitted, since nothing can come
  /// after it.
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

  /// Submissions that are told apart, because they are not known to have run. For tests.
  std::size_t submissions() const { return submissions_.size(); }

 private:
  /// An announced submission. Its semaphore is the caller's, who may destroy it once the recording has ended, or was
  /// submitted again after this submission had run; from then on nobody reads it.
  struct Submission {
    Ticket recording = 0;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    std::uint64_t value = 0;           ///< of the semaphore, or a ticket of marks_
    std::atomic<bool> has_run{false};  ///< is known to have run
    std::mutex mutex;                  ///< guards the members below
    std::condition_variable left;
    int waiting = 0;      ///< threads that wait for the semaphore
    bool closed = false;  ///< nobody may wait any more, because the submission has run

    void wait(VulkanDevice& device);
    /// Call when the submission has run.
    void close();
  };
  struct Recorded {
    std::vector<Allocation> large;
    Ticket ready = 0;                  ///< when it was recorded, or last prepared
    std::shared_ptr<Submission> last;  ///< null if there is none
  };
  void abandon() override;
  bool has_run(Submission& latest);
  bool is_over(Submission& earlier, VkSemaphore semaphore, std::uint64_t reached);
  std::function<void()> waiting_for(const std::shared_ptr<Submission>& latest);
  /// The latest submission of a recording, which is named by its ticket or by that of any of its submissions; the
  /// semaphores of earlier ones may be gone. Null if the recording has ended or the submission is known to have run.
  std::shared_ptr<Submission> find(Ticket ticket) const;
  std::vector<std::shared_ptr<Submission>> take(Ticket recording);

  VulkanStream marks_;  ///< tells how far the queue is, for submissions without a semaphore
  Ticket last_ = 0;
  std::map<Ticket, Recorded> recorded_;
  std::map<Ticket, std::shared_ptr<Submission>> submissions_;
  static constexpr std::size_t kMostTold = 64;
  struct Told {
    std::uint64_t value = 0;  ///< the largest announced
    Ticket reached = 0;       ///< when the semaphore was first known to have `value`; 0: it is not
  };
  std::map<VkSemaphore, Told> told_;  ///< also semaphores that are gone
  /// Reads the semaphores of submissions that are not known to have run; these semaphores exist.
  void look_at_told();
  /// Notes that a submission has run.
  void ran(const Submission& submission);
};

}  // namespace weft::backend::vulkan
