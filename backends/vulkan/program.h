// Compute pipelines from SPIR-V, and the caches on the way.
#pragma once
#include <volk.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../../spirv/emit.h"
#include "../backend.h"
#include "../disk_cache.h"
#include "device_object.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// One pipeline. After the program is dropped, the pipeline lives on until the work that uses it has run.
class VulkanProgram final : public Program, private DeviceObject {
 public:
  VulkanProgram(VulkanDevice& device, std::string name, VkPipeline pipeline, std::uint32_t args_bytes)
      : DeviceObject(device), name_(std::move(name)), pipeline_(pipeline), args_bytes_(args_bytes) {}
  ~VulkanProgram() override { abandon(); }

  /// Sets the kernel from which the program was compiled. Called once, before the first launch; not for shaders that
  /// were loaded.
  void made_of(std::shared_ptr<const ir::Module> kernel, detail::Hash128 hash);
  /// The kernel if it may be a step of a chain, or null.
  const ir::Module* step() const { return may_chain_ ? kernel_.get() : nullptr; }
  detail::Hash128 hash() const { return hash_; }
  /// The same kernel with its arguments in memory, whatever their size: compiled when first requested. Null if there is
  /// none: on devices without 64-bit integers, if the driver refuses it, and for loaded shaders. Thread-safe.
  /// Errors: as Device::compile(), except Error(unsupported).
  const VulkanProgram* by_address();

  const VulkanDevice* device() const { return &device_; }
  const std::string& name() const override { return name_; }
  VkPipeline pipeline() const { return pipeline_; }
  std::uint32_t args_bytes() const { return args_bytes_; }

 private:
  void abandon() override;

  std::string name_;
  VkPipeline pipeline_;
  std::uint32_t args_bytes_;
  std::shared_ptr<const ir::Module> kernel_;
  detail::Hash128 hash_;
  bool may_chain_ = false;
  std::mutex mutex_;  ///< guards the members below
  std::unique_ptr<VulkanProgram> by_address_;
  bool asked_ = false;
};

/// The pipelines of a device: the layout they share and the driver's cache of them, kept on disk. Thread-safe.
class Pipelines {
 public:
  Pipelines(VulkanDevice& device, DiskCache& cache);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  /// Errors: Error(unsupported) when the driver refuses the shader, Error(out_of_memory), Error(device_lost).
  /// `full_subgroups`: every subgroup has as many threads as the device's subgroups have.
  VkPipeline create(std::span<const std::uint32_t> words, const std::string& name, bool full_subgroups);
  void destroy(std::uint64_t pipeline);
  /// Whether any were destroyed since the last call.
  bool take_destroyed() { return destroyed_.exchange(false); }

  /// The layout of all pipelines: kPushConstantBytes of push constants and nothing else, so a change of pipeline does
  /// not require constants to be pushed again.
  VkPipelineLayout layout() const { return layout_; }

  /// Writes the driver's cache to disk if it has grown.
  void save();

 private:
  VkPipelineCache load();
  std::size_t bytes_of(VkPipelineCache cache);

  VulkanDevice& device_;
  DiskCache& disk_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::mutex save_mutex_;
  std::size_t saved_bytes_ = 0;  // size of our cache when it last equalled the one on disk
  std::atomic<int> created_since_save_{0};
  std::atomic<bool> destroyed_{false};
};

/// The key of a module's SPIR-V on disk: everything that determines the words.
std::string spirv_key(detail::Hash128 hash, const std::string& device_key, const spirv::Target& target, bool optimised,
                      spirv::ArgumentsIn arguments = spirv::ArgumentsIn::push_constants);

/// The key of the driver's pipeline cache on disk.
std::string pipeline_key(const DeviceInfo& info);

/// Whether bytes from disk may be given to the driver as its pipeline cache.
bool pipeline_cache_fits(std::span<const std::byte> bytes, const VkPhysicalDeviceProperties& properties);

}  // namespace weft::backend::vulkan
