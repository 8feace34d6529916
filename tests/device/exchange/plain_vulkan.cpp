// A device, a pipeline and dispatches, by the requirements that the loader names.
#include "plain_vulkan.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "../../common/compute_pipeline.h"
#include "../embedding/renderer.h"

namespace weft::test {

namespace {

/// The feature structures of a device, for queries and for turning features on.
struct Features {
  VkPhysicalDeviceFeatures2 core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &vulkan11, {}};
  VkPhysicalDeviceVulkan11Features vulkan11{};
  VkPhysicalDeviceVulkan12Features vulkan12{};
  VkPhysicalDeviceSubgroupSizeControlFeatures sizes{};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{};
  VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR flow{};

  Features() {
    vulkan11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    atomic_float.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
    flow.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR;
    vulkan11.pNext = &vulkan12;
  }
  Features(const Features&) = delete;

  VkBool32* find(const std::string& name) {
#define WEFT_FEATURE(part, feature) \
  if (name == #feature) return &part.feature
    WEFT_FEATURE(core.features, shaderInt64);
    WEFT_FEATURE(core.features, shaderInt16);
    WEFT_FEATURE(core.features, shaderFloat64);
    WEFT_FEATURE(vulkan11, storageBuffer16BitAccess);
    WEFT_FEATURE(vulkan12, storageBuffer8BitAccess);
    WEFT_FEATURE(vulkan12, shaderInt8);
    WEFT_FEATURE(vulkan12, shaderFloat16);
    WEFT_FEATURE(vulkan12, shaderBufferInt64Atomics);
    WEFT_FEATURE(vulkan12, shaderSharedInt64Atomics);
    WEFT_FEATURE(vulkan12, shaderSubgroupExtendedTypes);
    WEFT_FEATURE(vulkan12, scalarBlockLayout);
    WEFT_FEATURE(vulkan12, bufferDeviceAddress);
    WEFT_FEATURE(sizes, subgroupSizeControl);
    WEFT_FEATURE(sizes, computeFullSubgroups);
    WEFT_FEATURE(atomic_float, shaderBufferFloat32AtomicAdd);
    WEFT_FEATURE(atomic_float, shaderBufferFloat64AtomicAdd);
    WEFT_FEATURE(atomic_float, shaderSharedFloat32AtomicAdd);
    WEFT_FEATURE(atomic_float, shaderSharedFloat64AtomicAdd);
    WEFT_FEATURE(flow, shaderSubgroupUniformControlFlow);
#undef WEFT_FEATURE
    return nullptr;
  }
  /// Links the structure of an extension into the chain, in which it may stand only with that extension.
  void chain(const std::string& extension) {
    const auto link = [&](auto& more) {
      more.pNext = vulkan12.pNext;
      vulkan12.pNext = &more;
    };
    if (extension == "VK_EXT_subgroup_size_control") link(sizes);
    if (extension == "VK_EXT_shader_atomic_float") link(atomic_float);
    if (extension == "VK_KHR_shader_subgroup_uniform_control_flow") link(flow);
  }
};

std::vector<const char*> required(const weft_kernel* kernel, weft_requirement which) {
  std::vector<const char*> names;
  for (std::uint32_t k = 0; const char* name = weft_kernel_requirement(kernel, which, k); ++k) names.push_back(name);
  return names;
}

}  // namespace

struct PlainVulkan::State {
  weft_kernel_info info{};
  std::vector<std::string> messages;
  VkPhysicalDeviceProperties properties{};
  Features wanted;
  std::optional<Renderer> renderer;
  std::optional<ComputePipeline> pipeline;

  void check_properties(VkPhysicalDevice adapter, const weft_kernel* kernel);
  void turn_on(Renderer& r, const weft_kernel* kernel);
};

void PlainVulkan::State::check_properties(VkPhysicalDevice adapter, const weft_kernel* kernel) {
  vkGetPhysicalDeviceProperties(adapter, &properties);
  VkPhysicalDeviceVulkan11Properties p11{};
  p11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  VkPhysicalDeviceProperties2 p{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &p11, {}};
  vkGetPhysicalDeviceProperties2(adapter, &p);
  const auto subgroup = [&](const std::string& name) -> VkSubgroupFeatureFlags {
    if (name == "VK_SUBGROUP_FEATURE_BASIC_BIT") return VK_SUBGROUP_FEATURE_BASIC_BIT;
    if (name == "VK_SUBGROUP_FEATURE_VOTE_BIT") return VK_SUBGROUP_FEATURE_VOTE_BIT;
    if (name == "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT") return VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    if (name == "VK_SUBGROUP_FEATURE_BALLOT_BIT") return VK_SUBGROUP_FEATURE_BALLOT_BIT;
    if (name == "VK_SUBGROUP_FEATURE_SHUFFLE_BIT") return VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    throw std::runtime_error("an unknown property is required: " + name);
  };
  for (const char* name : required(kernel, WEFT_PROPERTIES))
    if (!(p11.subgroupSupportedOperations & subgroup(name)))
      throw std::runtime_error(std::string("the device lacks ") + name);
  if (info.subgroup_size && info.subgroup_size != p11.subgroupSize)
    throw std::runtime_error("the device has subgroups of another size");
  if (info.workgroup_size > properties.limits.maxComputeWorkGroupInvocations ||
      info.shared_bytes > properties.limits.maxComputeSharedMemorySize)
    throw std::runtime_error("the device's workgroups are smaller");
}

void PlainVulkan::State::turn_on(Renderer& r, const weft_kernel* kernel) {
  r.extensions = required(kernel, WEFT_DEVICE_EXTENSIONS);
  Features there;
  for (const char* name : r.extensions) there.chain(name), wanted.chain(name);
  vkGetPhysicalDeviceFeatures2(r.physical, &there.core);
  for (const char* name : required(kernel, WEFT_FEATURES)) {
    const VkBool32* has = there.find(name);
    if (!has) throw std::runtime_error(std::string("an unknown feature is required: ") + name);
    if (!*has) throw std::runtime_error(std::string("the device lacks ") + name);
    *wanted.find(name) = VK_TRUE;
  }
  r.features = wanted.core;
}

PlainVulkan::PlainVulkan(const weft_kernel* kernel, bool gpu) : state_(new State) {
  State& s = *state_;
  if (weft_kernel_describe(kernel, &s.info) != WEFT_LOADER_OK) throw std::runtime_error(weft_loader_error());
  s.renderer.emplace(Renderer::Wish{gpu,
                                    [&](Renderer& r) {
                                      s.check_properties(r.physical, kernel);
                                      s.turn_on(r, kernel);
                                    },
                                    VK_API_VERSION_1_2, &s.messages});
  s.pipeline.emplace(s.renderer->vk, s.renderer->device, std::span(s.info.words, s.info.word_count), s.info.entry_point,
                     s.info.push_bytes,
                     s.info.subgroup_size ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0);
}

PlainVulkan::~PlainVulkan() { state_->renderer->wait_idle(); }

PlainVulkan::Memory PlainVulkan::allocate(std::size_t bytes) {
  Renderer& r = *state_->renderer;
  Memory memory;
  memory.bytes = (std::max<std::size_t>(bytes, 4) + 3) / 4 * 4;
  const Renderer::Buffer made =
      r.make_buffer(memory.bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
  memory.host = made.host;
  std::memset(memory.host, 0, memory.bytes);
  VkBufferDeviceAddressInfo where{};
  where.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  where.buffer = made.buffer;
  memory.address = r.vk.vkGetBufferDeviceAddress(r.device, &where);
  return memory;
}

void PlainVulkan::run(std::span<const std::byte> block, weft_groups groups) {
  State& s = *state_;
  Renderer& r = *s.renderer;
  // The push constants are the block itself, or its address.
  std::uint64_t address = 0;
  const void* pushed = block.data();
  if (s.info.by_address) {
    const Memory copy = allocate(block.size());
    std::memcpy(copy.host, block.data(), block.size());
    address = copy.address;
    pushed = &address;
  }
  const VkCommandBuffer commands = r.begin();
  s.pipeline->bind(commands);
  s.pipeline->dispatch(commands, pushed, groups.x, groups.y, groups.z);
  VkMemoryBarrier to_host{};
  to_host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  to_host.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  r.vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host,
                            0, nullptr, 0, nullptr);
  r.submit(commands);
  r.wait_idle();
}

std::uint32_t PlainVulkan::max_groups_x() const { return state_->properties.limits.maxComputeWorkGroupCount[0]; }

bool PlainVulkan::validated() const { return state_->renderer->validated; }

const std::vector<std::string>& PlainVulkan::messages() const { return state_->messages; }

}  // namespace weft::test
