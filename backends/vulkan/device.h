// A VkDevice with its queue, memory, programs and streams: the backend::Device on Vulkan.
#pragma once
#include <volk.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../backend.h"
#include "../disk_cache.h"
#include "commands/chains.h"
#include "commands/kept.h"
#include "commands/timestamps.h"
#include "device_object.h"
#include "handles.h"
#include "instance.h"
#include "memory/memory.h"
#include "program.h"
#include "queue/retirement.h"
#include "queue/semaphore_pool.h"
#include "queue/signals.h"
#include "queue/submitter.h"
#include "queue/waits.h"

namespace weft::backend::vulkan {

/// Operations in the first batch of an idle stream: few enough that the device starts while the host records the rest
/// of, say, a sort. A submission costs the host as much as some launches.
inline constexpr int kMostWhenIdle = 4;

/// Settings that tests change to reach code that their adapter would not need.
struct Tuning {
  std::uint64_t page_bytes = Memory::kPageBytes;
  bool map_device_memory = true;       ///< false: as on a discrete GPU
  bool cache_device_memory = true;     ///< false: as on a discrete GPU whose memory is all visible to the host
  bool share_pages = false;            ///< as on a GPU that CUDA has too
  int most_pages = INT_MAX;            ///< as on a GPU with little memory
  int most_when_idle = kMostWhenIdle;  ///< operations of a stream's batch, see VulkanStream
  bool waits_as_on_gpus = false;       ///< see wait_for()
  bool submits_as_on_gpus = false;     ///< see Submitter
};

/// A queue that weft shares, and the owner's functions around its use.
struct SharedQueue {
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::function<void()> lock, unlock;
};

class VulkanDevice final : public Device {
 public:
  VulkanDevice(std::shared_ptr<Instance> instance, const Adapter& adapter, const Tuning& tuning = {});
  /// Wraps a device that others made and that outlives this object.
  VulkanDevice(Adapter adapter, SharedQueue queue, const Tuning& tuning = {});
  ~VulkanDevice() override;

  const DeviceInfo& info() const override { return info_; }
  FusedTypes fused() override;
  Allocation allocate(std::size_t bytes, MemoryKind kind) override;
  void free(const Allocation& allocation) override;
  void give_back() override;
  Allocation wrap(std::byte* memory, std::size_t bytes) override;
  std::shared_ptr<Program> compile(const ir::Module& module, detail::Hash128 hash) override;
  /// Compiles a module that is not known to be a kernel: see VulkanProgram::made_of().
  std::unique_ptr<VulkanProgram> make_program(const ir::Module& module, detail::Hash128 hash,
                                              spirv::ArgumentsIn arguments);
  std::uint64_t ray_structure_bytes(std::uint32_t num_points, std::uint32_t num_triangles) override;
  std::shared_ptr<RayStructure> create_ray_structure(std::uint64_t memory, std::uint32_t num_points,
                                                     std::uint32_t num_triangles) override;
  std::unique_ptr<Graph> create_graph(std::unique_ptr<Operations> operations) override;
  std::unique_ptr<Stream> create_stream() override;
  std::unique_ptr<Timestamps> create_timestamps(std::uint32_t places) override;
  CompileStats stats() const override;
  bool leave_behind() noexcept override;
  void process_ends() noexcept override;
  /// Call before shaders are made or run.
  /// Errors: as check_alive(); Error(device_lost) on the thread that ends the process.
  void check_runs() const {
    check_alive();
    if (ends_.load(std::memory_order_acquire)) refuse_at_end();
  }

  /// See load_spirv().
  std::shared_ptr<Program> load(const SpirvDesc& desc);

  VkDevice handle() const { return handle_; }
  const VolkDeviceTable& vk() const { return vk_; }
  const Adapter& adapter() const { return adapter_; }
  Memory& memory() { return *memory_; }
  Retirement& retirement() { return *retirement_; }
  Pipelines& pipelines() { return *pipelines_; }
  Signals& signals() { return signals_; }
  Waits& waits() { return waits_; }
  SemaphorePool& semaphores() { return semaphores_; }
  QueueClock& clock() { return clock_; }
  Chains& chains() { return chains_; }
  KeptPool& kept_pool() { return kept_pool_; }
  /// Streams of all threads share the queue, on adopted devices with all its other users.
  Submitter& submitter() { return submitter_; }
  std::uint32_t queue_family() const { return adapter_.queue_family; }

  /// Blocks until a timeline semaphore has at least the value. On GPUs the thread looks at it for a while before it
  /// sleeps.
  /// \param patience  the longest wait, in ns
  /// \return  whether the value was reached
  bool wait_for(VkSemaphore semaphore, std::uint64_t value, std::uint64_t patience = ~0ull);
  /// See Tuning.
  int most_when_idle() const { return most_when_idle_; }

  /// Whether others made the device and also use its queue and memory.
  bool adopted() const { return adopted_; }
  /// Destroys every Vulkan object. All work must have run, and no other thread may be in a call. From then on
  /// check_alive() throws, and releasing what is still held does nothing.
  void detach();
  /// Also true for devices left behind by a fork: releasing what is held does nothing there either.
  bool detached() const { return detached_.load(std::memory_order_relaxed); }

  /// Throws Error(device_lost) once the device was lost or detached.
  void check_alive() const override {
    if (lost_.load(std::memory_order_relaxed)) throw_lost();
  }
  /// Throws unless `result` is a success. Remembers the loss of a device.
  void check(VkResult result, const char* call);
  /// Throws also if the call reports success but made nothing: drivers that run out of something do not always notice.
  template <class Handle>
  void check_made(VkResult result, const Handle& made, const char* call) {
    check(result, call);
    if (!made) refuse_nothing(call);
  }
  /// Makes every call from now on report the loss. For failures that cannot be undone, and for tests.
  void mark_lost(const char* call, VkResult result = VK_ERROR_DEVICE_LOST) noexcept;
  bool lost() const { return lost_.load(); }

 private:
  friend class DeviceObject;
  [[noreturn]] void throw_lost() const;
  void refuse_at_end() const;
  [[noreturn]] void refuse_nothing(const char* call) const;
  void create();
  void equip(const Tuning& tuning);
  std::optional<Allocation> grow(std::size_t bytes, MemoryKind kind);
  bool comes_free();
  bool reached_soon(VkSemaphore semaphore, std::uint64_t value, std::chrono::nanoseconds most);

  std::shared_ptr<Instance> instance_;          ///< null for an adopted device
  std::shared_ptr<const Adapter> own_adapter_;  ///< an adopted device's
  const Adapter& adapter_;
  DeviceInfo info_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  const bool adopted_ = false;
  std::atomic<bool> detached_{false};     ///< or left behind
  std::atomic<bool> left_behind_{false};  ///< in the parent process of a fork
  std::atomic<bool> ends_{false};         ///< the process ends, on ending_thread_
  std::thread::id ending_thread_;
  std::mutex fused_mutex_;
  std::optional<FusedTypes> fused_;  ///< once it was asked for
  std::mutex objects_mutex_;
  std::vector<DeviceObject*> objects_;
  std::atomic<bool> lost_{false};
  mutable std::mutex lost_mutex_;
  const char* lost_in_ = "";  ///< the call that gave lost_with_
  VkResult lost_with_ = VK_SUCCESS;
  int most_pages_ = INT_MAX, most_when_idle_ = kMostWhenIdle;
  bool looks_ = false;                       ///< see wait_for()
  std::atomic<bool> waits_are_long_{false};  ///< whether the last one was
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Retirement> retirement_;
  DiskCache cache_;
  std::unique_ptr<Pipelines> pipelines_;
  Signals signals_{*this};
  Waits waits_{*this};
  SemaphorePool semaphores_{*this};
  QueueClock clock_;
  Chains chains_{*this};
  KeptPool kept_pool_;
  Submitter submitter_{*this};
  std::atomic<std::uint64_t> emitted_{0}, loaded_{0};
};

/// See backend::adopt_vulkan().
std::unique_ptr<VulkanDevice> adopt(const VulkanHandles& handles, const Tuning& tuning);

}  // namespace weft::backend::vulkan
