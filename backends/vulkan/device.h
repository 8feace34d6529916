// A VkDevice with its queue, memory, programs and streams: what backend::Device is on Vulkan.
#pragma once
#include <volk.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "../backend.h"
#include "../disk_cache.h"
#include "instance.h"
#include "memory.h"
#include "program.h"
#include "retirement.h"

namespace weft::backend::vulkan {

/// What tests change to reach code that their adapter would not need.
struct Tuning {
  std::uint64_t page_bytes = Memory::kPageBytes;
  bool map_device_memory = true;  ///< false: as on a discrete GPU
};

class VulkanDevice final : public Device {
 public:
  VulkanDevice(std::shared_ptr<Instance> instance, const Adapter& adapter, const Tuning& tuning = {});
  ~VulkanDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Allocation allocate(std::size_t bytes, MemoryKind kind) override;
  void free(const Allocation& allocation) override;
  Allocation wrap(std::byte* memory, std::size_t bytes) override;
  std::shared_ptr<Program> compile(const ir::Module& module, ir::Hash hash) override;
  std::uint64_t ray_structure_bytes(std::uint32_t num_points, std::uint32_t num_triangles) override;
  std::shared_ptr<RayStructure> create_ray_structure(std::uint64_t memory, std::uint32_t num_points,
                                                     std::uint32_t num_triangles) override;
  std::unique_ptr<Graph> create_graph(std::unique_ptr<Operations> operations) override;
  std::unique_ptr<Stream> create_stream() override;
  CompileStats stats() const override;

  /// See load_spirv().
  std::shared_ptr<Program> load(const SpirvDesc& desc);

  VkDevice handle() const { return handle_; }
  const VolkDeviceTable& vk() const { return vk_; }
  const Adapter& adapter() const { return adapter_; }
  Memory& memory() { return *memory_; }
  Retirement& retirement() { return *retirement_; }
  Pipelines& pipelines() { return *pipelines_; }
  std::uint32_t queue_family() const { return adapter_.queue_family; }

  /// Hands work to the queue. Streams of all threads share it.
  VkResult submit(const VkSubmitInfo& info);

  /// Throws Error(device_lost) once the device was lost.
  void check_alive() const {
    if (lost_.load(std::memory_order_relaxed)) throw_lost();
  }
  /// Throws unless `result` is a success. Losing the device is remembered.
  void check(VkResult result, const char* call);
  /// From now on every call reports the loss. For what cannot be undone, and for tests.
  void mark_lost(const std::string& why);
  bool lost() const { return lost_.load(); }

 private:
  [[noreturn]] void throw_lost() const;
  void create();

  std::shared_ptr<Instance> instance_;
  const Adapter& adapter_;
  DeviceInfo info_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  std::atomic<bool> lost_{false};
  mutable std::mutex lost_mutex_;
  std::string lost_why_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Retirement> retirement_;
  DiskCache cache_;
  std::unique_ptr<Pipelines> pipelines_;
  std::atomic<std::uint64_t> emitted_{0}, loaded_{0};
};

}  // namespace weft::backend::vulkan
