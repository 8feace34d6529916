// Acceleration structures, in which ray queries find triangles.
#pragma once
#include <volk.h>

#include <cstdint>
#include <functional>

#include "../../backend.h"
#include "../device_object.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// The parts of a structure's memory, as offsets: the structure over the triangles, the one over its only instance,
/// that instance, and scratch memory of builds.
struct RayLayout {
  RayLayout(VulkanDevice& device, std::uint32_t num_points, std::uint32_t num_triangles);

  std::uint32_t num_points = 0, num_triangles = 0;
  std::uint64_t bottom = 0, bottom_bytes = 0;
  std::uint64_t top = 0, top_bytes = 0;
  std::uint64_t instance = 0;
  std::uint64_t scratch = 0;
  std::uint64_t bytes = 0;
};

/// Triangles and a single, untransformed instance of them, as VK_KHR_ray_query requires.
class VulkanRayStructure final : public RayStructure, private DeviceObject {
 public:
  VulkanRayStructure(VulkanDevice& device, std::uint64_t memory, std::uint32_t num_points, std::uint32_t num_triangles);
  ~VulkanRayStructure() override;
  VulkanRayStructure(const VulkanRayStructure&) = delete;
  VulkanRayStructure& operator=(const VulkanRayStructure&) = delete;

  std::uint64_t number() const override { return top_address_; }
  std::uint64_t memory() const { return memory_; }
  const RayLayout& layout() const { return layout_; }
  /// The instance that must be at layout().instance when record() is called.
  VkAccelerationStructureInstanceKHR instance() const;
  /// Records both builds, with `barrier` between them.
  void record(VkCommandBuffer commands, const RayTriangles& triangles, const std::function<void()>& barrier) const;

 private:
  std::uint64_t address_of(VkAccelerationStructureKHR structure);
  VkAccelerationStructureKHR make(std::uint64_t offset, std::uint64_t bytes, VkAccelerationStructureTypeKHR type);
  void abandon() override;

  const std::uint64_t memory_;
  const RayLayout layout_;
  VkAccelerationStructureKHR bottom_ = VK_NULL_HANDLE, top_ = VK_NULL_HANDLE;
  std::uint64_t bottom_address_ = 0, top_address_ = 0;
};

/// Destroys a Retired::handle.
void destroy_ray_structure(VulkanDevice& device, std::uint64_t handle);

}  // namespace weft::backend::vulkan
