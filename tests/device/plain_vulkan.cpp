// Instance, device, memory, pipeline and dispatch, by the requirements that the loader names.
#include "plain_vulkan.h"

#include <volk.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace weft::test {

namespace {

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS) throw std::runtime_error(std::string(call) + " failed: " + std::to_string(result));
}

/// The feature structures of a device, to be asked and to be turned on.
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
  /// The structures of extensions stand in the chain only with their extension.
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

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* list) {
  static_cast<std::vector<std::string>*>(list)->emplace_back(data->pMessage);
  return VK_FALSE;
}

}  // namespace

struct PlainVulkan::State {
  struct Buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
  };
  weft_kernel_info info{};
  std::vector<std::string> messages;
  VkInstance instance = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  VkPhysicalDevice adapter = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  std::uint32_t family = 0;
  VkDevice device = VK_NULL_HANDLE;
  VolkDeviceTable vk{};
  VkQueue queue = VK_NULL_HANDLE;
  VkShaderModule shader = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  std::vector<Buffer> buffers;

  template <class F>
  F get(const char* name) const {
    return reinterpret_cast<F>(vkGetInstanceProcAddr(instance, name));
  }
  void make_instance();
  void find_adapter(bool gpu);
  void check_properties(const weft_kernel* kernel);
  void make_device(const weft_kernel* kernel);
  void make_pipeline();
};

void PlainVulkan::State::make_instance() {
  if (!vkGetInstanceProcAddr) check(volkInitialize(), "loading Vulkan");
  const char* const layers[] = {"VK_LAYER_KHRONOS_validation"};
  const char* const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;
  create.enabledLayerCount = create.enabledExtensionCount = 1;
  create.ppEnabledLayerNames = layers;
  create.ppEnabledExtensionNames = extensions;
  check(reinterpret_cast<PFN_vkCreateInstance>(vkGetInstanceProcAddr(VK_NULL_HANDLE, "vkCreateInstance"))(
            &create, nullptr, &instance),
        "vkCreateInstance");
  VkDebugUtilsMessengerCreateInfoEXT listen{};
  listen.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  listen.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  listen.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  listen.pfnUserCallback = on_message;
  listen.pUserData = &messages;
  check(
      get<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT")(instance, &listen, nullptr, &messenger),
      "vkCreateDebugUtilsMessengerEXT");
}

void PlainVulkan::State::find_adapter(bool gpu) {
  std::uint32_t count = 16;
  VkPhysicalDevice adapters[16];
  const VkResult found = get<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance, &count, adapters);
  if (found != VK_INCOMPLETE) check(found, "vkEnumeratePhysicalDevices");
  for (std::uint32_t k = 0; k < count && !adapter; ++k) {
    get<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties")(adapters[k], &properties);
    if ((properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) == gpu) adapter = adapters[k];
  }
  if (!adapter) throw std::runtime_error("no such adapter");
  VkQueueFamilyProperties families[16];
  count = 16;
  get<PFN_vkGetPhysicalDeviceQueueFamilyProperties>("vkGetPhysicalDeviceQueueFamilyProperties")(adapter, &count,
                                                                                                families);
  while (family < count && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;
}

void PlainVulkan::State::check_properties(const weft_kernel* kernel) {
  VkPhysicalDeviceVulkan11Properties p11{};
  p11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  VkPhysicalDeviceProperties2 p{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &p11, {}};
  get<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2")(adapter, &p);
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

void PlainVulkan::State::make_device(const weft_kernel* kernel) {
  const std::vector<const char*> extensions = required(kernel, WEFT_DEVICE_EXTENSIONS);
  Features there, wanted;
  for (const char* name : extensions) there.chain(name), wanted.chain(name);
  get<PFN_vkGetPhysicalDeviceFeatures2>("vkGetPhysicalDeviceFeatures2")(adapter, &there.core);
  for (const char* name : required(kernel, WEFT_FEATURES)) {
    const VkBool32* has = there.find(name);
    if (!has) throw std::runtime_error(std::string("an unknown feature is required: ") + name);
    if (!*has) throw std::runtime_error(std::string("the device lacks ") + name);
    *wanted.find(name) = VK_TRUE;
  }
  const float priority = 1;
  VkDeviceQueueCreateInfo queues{};
  queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queues.queueFamilyIndex = family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &wanted.core;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queues;
  create.enabledExtensionCount = std::uint32_t(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  check(get<PFN_vkCreateDevice>("vkCreateDevice")(adapter, &create, nullptr, &device), "vkCreateDevice");
  if (!vkGetDeviceProcAddr) vkGetDeviceProcAddr = get<PFN_vkGetDeviceProcAddr>("vkGetDeviceProcAddr");
  volkLoadDeviceTable(&vk, device);
  vk.vkGetDeviceQueue(device, family, 0, &queue);
}

void PlainVulkan::State::make_pipeline() {
  VkShaderModuleCreateInfo module{};
  module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module.codeSize = info.word_count * 4;
  module.pCode = info.words;
  check(vk.vkCreateShaderModule(device, &module, nullptr, &shader), "vkCreateShaderModule");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, info.push_bytes};
  VkPipelineLayoutCreateInfo create_layout{};
  create_layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  create_layout.pushConstantRangeCount = 1;
  create_layout.pPushConstantRanges = &range;
  check(vk.vkCreatePipelineLayout(device, &create_layout, nullptr, &layout), "vkCreatePipelineLayout");
  VkComputePipelineCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = shader;
  create.stage.pName = info.entry_point;
  if (info.subgroup_size) create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  create.layout = layout;
  check(vk.vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline),
        "vkCreateComputePipelines");
  VkCommandPoolCreateInfo create_pool{};
  create_pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  create_pool.queueFamilyIndex = family;
  check(vk.vkCreateCommandPool(device, &create_pool, nullptr, &pool), "vkCreateCommandPool");
}

PlainVulkan::PlainVulkan(const weft_kernel* kernel, bool gpu) : state_(new State) {
  State& s = *state_;
  if (weft_kernel_describe(kernel, &s.info) != WEFT_LOADER_OK) throw std::runtime_error(weft_loader_error());
  s.make_instance();
  s.find_adapter(gpu);
  s.check_properties(kernel);
  s.make_device(kernel);
  s.make_pipeline();
}

PlainVulkan::~PlainVulkan() {
  State& s = *state_;
  s.vk.vkDeviceWaitIdle(s.device);
  for (const auto& b : s.buffers) {
    s.vk.vkDestroyBuffer(s.device, b.buffer, nullptr);
    s.vk.vkFreeMemory(s.device, b.memory, nullptr);
  }
  s.vk.vkDestroyCommandPool(s.device, s.pool, nullptr);
  s.vk.vkDestroyPipeline(s.device, s.pipeline, nullptr);
  s.vk.vkDestroyPipelineLayout(s.device, s.layout, nullptr);
  s.vk.vkDestroyShaderModule(s.device, s.shader, nullptr);
  s.vk.vkDestroyDevice(s.device, nullptr);
  s.get<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(s.instance, s.messenger, nullptr);
  s.get<PFN_vkDestroyInstance>("vkDestroyInstance")(s.instance, nullptr);
}

PlainVulkan::Memory PlainVulkan::allocate(std::size_t bytes) {
  State& s = *state_;
  bytes = (std::max<std::size_t>(bytes, 4) + 3) / 4 * 4;
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = bytes;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  State::Buffer made{};
  check(s.vk.vkCreateBuffer(s.device, &create, nullptr, &made.buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  s.vk.vkGetBufferMemoryRequirements(s.device, made.buffer, &needs);
  VkPhysicalDeviceMemoryProperties types;
  s.get<PFN_vkGetPhysicalDeviceMemoryProperties>("vkGetPhysicalDeviceMemoryProperties")(s.adapter, &types);
  constexpr VkMemoryPropertyFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &flags;
  allocate.allocationSize = needs.size;
  while (!(needs.memoryTypeBits >> allocate.memoryTypeIndex & 1) ||
         (types.memoryTypes[allocate.memoryTypeIndex].propertyFlags & kMapped) != kMapped)
    if (++allocate.memoryTypeIndex == types.memoryTypeCount) throw std::runtime_error("no memory can be mapped");
  check(s.vk.vkAllocateMemory(s.device, &allocate, nullptr, &made.memory), "vkAllocateMemory");
  s.buffers.push_back(made);
  check(s.vk.vkBindBufferMemory(s.device, made.buffer, made.memory, 0), "vkBindBufferMemory");
  Memory memory;
  memory.bytes = bytes;
  void* host = nullptr;
  check(s.vk.vkMapMemory(s.device, made.memory, 0, VK_WHOLE_SIZE, 0, &host), "vkMapMemory");
  memory.host = static_cast<std::byte*>(host);
  std::memset(memory.host, 0, bytes);
  VkBufferDeviceAddressInfo where{};
  where.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  where.buffer = made.buffer;
  memory.address = s.vk.vkGetBufferDeviceAddress(s.device, &where);
  return memory;
}

void PlainVulkan::run(std::span<const std::byte> block, weft_groups groups) {
  State& s = *state_;
  // What is pushed: the block itself, or where it lies.
  std::uint64_t address = 0;
  const void* pushed = block.data();
  if (s.info.by_address) {
    const Memory copy = allocate(block.size());
    std::memcpy(copy.host, block.data(), block.size());
    address = copy.address;
    pushed = &address;
  }
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = s.pool;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(s.vk.vkAllocateCommandBuffers(s.device, &allocate, &commands), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  check(s.vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  s.vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, s.pipeline);
  s.vk.vkCmdPushConstants(commands, s.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, s.info.push_bytes, pushed);
  s.vk.vkCmdDispatch(commands, groups.x, groups.y, groups.z);
  VkMemoryBarrier to_host{};
  to_host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  to_host.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  s.vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host,
                            0, nullptr, 0, nullptr);
  check(s.vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  check(s.vk.vkQueueSubmit(s.queue, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
  check(s.vk.vkQueueWaitIdle(s.queue), "vkQueueWaitIdle");
}

std::uint32_t PlainVulkan::max_groups_x() const { return state_->properties.limits.maxComputeWorkGroupCount[0]; }

const std::vector<std::string>& PlainVulkan::messages() const { return state_->messages; }

}  // namespace weft::test
