// Sizes, objects and builds of acceleration structures.
#include "ray_structure.h"

#include <algorithm>
#include <utility>

#include "../device.h"

namespace weft::backend::vulkan {

namespace {

constexpr std::uint64_t kAlignment = 256;  // of a structure in its buffer, by the specification

std::uint64_t aligned(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

// One geometry and how a structure of it is built. Must not move: `info` points into it.
struct Build {
  explicit Build(const RayTriangles& t) {
    geometry.geometryType = VK_GEOMETRY_TYPE_TRIANGLES_KHR;
    auto& triangles = geometry.geometry.triangles;
    triangles.sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_TRIANGLES_DATA_KHR;
    triangles.vertexFormat = VK_FORMAT_R32G32B32_SFLOAT;
    triangles.vertexData.deviceAddress = t.points;
    triangles.vertexStride = 12;
    triangles.maxVertex = t.num_points - 1;
    triangles.indexType = VK_INDEX_TYPE_UINT32;
    triangles.indexData.deviceAddress = t.indices;
    complete(VK_ACCELERATION_STRUCTURE_TYPE_BOTTOM_LEVEL_KHR, t.num_triangles);
  }
  explicit Build(std::uint64_t instance) {
    geometry.geometryType = VK_GEOMETRY_TYPE_INSTANCES_KHR;
    auto& instances = geometry.geometry.instances;
    instances.sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_INSTANCES_DATA_KHR;
    instances.data.deviceAddress = instance;
    complete(VK_ACCELERATION_STRUCTURE_TYPE_TOP_LEVEL_KHR, 1);
  }
  Build(const Build&) = delete;

  VkAccelerationStructureBuildSizesInfoKHR sizes(VulkanDevice& device) const {
    VkAccelerationStructureBuildSizesInfoKHR found{};
    found.sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_SIZES_INFO_KHR;
    device.vk().vkGetAccelerationStructureBuildSizesKHR(
        device.handle(), VK_ACCELERATION_STRUCTURE_BUILD_TYPE_DEVICE_KHR, &info, &range.primitiveCount, &found);
    return found;
  }
  void record(VulkanDevice& device, VkCommandBuffer commands, VkAccelerationStructureKHR to, std::uint64_t scratch) {
    info.dstAccelerationStructure = to;
    info.scratchData.deviceAddress = scratch;
    const VkAccelerationStructureBuildRangeInfoKHR* ranges = &range;
    device.vk().vkCmdBuildAccelerationStructuresKHR(commands, 1, &info, &ranges);
  }

  VkAccelerationStructureGeometryKHR geometry{};
  VkAccelerationStructureBuildGeometryInfoKHR info{};
  VkAccelerationStructureBuildRangeInfoKHR range{};

 private:
  void complete(VkAccelerationStructureTypeKHR type, std::uint32_t count) {
    geometry.sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_KHR;
    geometry.flags = VK_GEOMETRY_OPAQUE_BIT_KHR;
    info.sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR;
    info.type = type;
    info.flags = VK_BUILD_ACCELERATION_STRUCTURE_PREFER_FAST_TRACE_BIT_KHR;
    info.mode = VK_BUILD_ACCELERATION_STRUCTURE_MODE_BUILD_KHR;
    info.geometryCount = 1;
    info.pGeometries = &geometry;
    range.primitiveCount = count;
  }
};

std::uint64_t handle_of(VkAccelerationStructureKHR structure) { return (std::uint64_t)structure; }

}  // namespace

RayLayout::RayLayout(VulkanDevice& device, std::uint32_t points, std::uint32_t triangles)
    : num_points(points), num_triangles(triangles) {
  const auto low = Build(RayTriangles{0, 0, points, triangles}).sizes(device);
  const auto high = Build(std::uint64_t{0}).sizes(device);
  bottom_bytes = low.accelerationStructureSize;
  top_bytes = high.accelerationStructureSize;
  top = aligned(bottom_bytes, kAlignment);
  instance = aligned(top + top_bytes, kAlignment);
  // Allocations begin at multiples of 256; the extra bytes allow for a larger alignment of scratch memory.
  scratch = aligned(instance + sizeof(VkAccelerationStructureInstanceKHR), kAlignment);
  bytes = scratch + std::max(low.buildScratchSize, high.buildScratchSize) + device.adapter().ray_scratch_alignment;
}

VulkanRayStructure::VulkanRayStructure(VulkanDevice& device, std::uint64_t memory, std::uint32_t num_points,
                                       std::uint32_t num_triangles)
    : DeviceObject(device), memory_(memory), layout_(device, num_points, num_triangles) {
  try {
    bottom_ = make(layout_.bottom, layout_.bottom_bytes, VK_ACCELERATION_STRUCTURE_TYPE_BOTTOM_LEVEL_KHR);
    top_ = make(layout_.top, layout_.top_bytes, VK_ACCELERATION_STRUCTURE_TYPE_TOP_LEVEL_KHR);
    bottom_address_ = address_of(bottom_);
    top_address_ = address_of(top_);
  } catch (...) {
    abandon();
    throw;
  }
}

VulkanRayStructure::~VulkanRayStructure() { abandon(); }

VkAccelerationStructureKHR VulkanRayStructure::make(std::uint64_t offset, std::uint64_t bytes,
                                                    VkAccelerationStructureTypeKHR type) {
  const Place place = device_.memory().resolve(memory_ + offset, bytes);
  VkAccelerationStructureCreateInfoKHR create{};
  create.sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_CREATE_INFO_KHR;
  create.buffer = place.buffer;
  create.offset = place.offset;
  create.size = bytes;
  create.type = type;
  VkAccelerationStructureKHR made = VK_NULL_HANDLE;
  device_.check_made(device_.vk().vkCreateAccelerationStructureKHR(device_.handle(), &create, nullptr, &made), made,
                     "vkCreateAccelerationStructureKHR");
  return made;
}

std::uint64_t VulkanRayStructure::address_of(VkAccelerationStructureKHR structure) {
  VkAccelerationStructureDeviceAddressInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_DEVICE_ADDRESS_INFO_KHR;
  info.accelerationStructure = structure;
  const std::uint64_t address = device_.vk().vkGetAccelerationStructureDeviceAddressKHR(device_.handle(), &info);
  device_.check_made(VK_SUCCESS, address != 0 && address != ~0ull, "vkGetAccelerationStructureDeviceAddressKHR");
  return address;
}

void VulkanRayStructure::abandon() {
  if (device_.detached()) return;
  for (VkAccelerationStructureKHR* structure : {&bottom_, &top_})
    if (const VkAccelerationStructureKHR old = std::exchange(*structure, VK_NULL_HANDLE))
      device_.retirement().drop({Retired::Kind::ray_structure, handle_of(old)});
}

VkAccelerationStructureInstanceKHR VulkanRayStructure::instance() const {
  VkAccelerationStructureInstanceKHR made{};
  for (int k = 0; k < 3; ++k) made.transform.matrix[k][k] = 1;
  made.mask = 0xff;
  made.flags = VK_GEOMETRY_INSTANCE_TRIANGLE_FACING_CULL_DISABLE_BIT_KHR | VK_GEOMETRY_INSTANCE_FORCE_OPAQUE_BIT_KHR;
  made.accelerationStructureReference = bottom_address_;
  return made;
}

void VulkanRayStructure::record(VkCommandBuffer commands, const RayTriangles& triangles,
                                const std::function<void()>& barrier) const {
  const std::uint64_t scratch = aligned(memory_ + layout_.scratch, device_.adapter().ray_scratch_alignment);
  Build(triangles).record(device_, commands, bottom_, scratch);
  barrier();
  Build(memory_ + layout_.instance).record(device_, commands, top_, scratch);
}

void destroy_ray_structure(VulkanDevice& device, std::uint64_t handle) {
  device.vk().vkDestroyAccelerationStructureKHR(device.handle(), (VkAccelerationStructureKHR)handle, nullptr);
}

}  // namespace weft::backend::vulkan
