// Plain Vulkan, under validation.
#include "renderer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "../../../frontend/support/platform.h"

namespace weft::test {

namespace {

void check(VkResult result, const char* call) {
  if (result < 0) throw std::runtime_error(std::string(call) + " failed");
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* renderer) {
  const Renderer& r = *static_cast<const Renderer*>(renderer);
  const std::string id = data->pMessageIdName ? data->pMessageIdName : "";
  // See backends/vulkan/instance.cpp: the layer's bookkeeping runs late on a busy machine.
  if (id == "UNASSIGNED-VkSemaphore-state-timeout") return VK_FALSE;
  // Some versions of the layer take the values that they read of a shared semaphore for pending signals.
  if (id == "VUID-VkSemaphoreSignalInfo-value-03259" && r.semaphore_fd) return VK_FALSE;
  if (r.messages)
    r.messages->emplace_back(data->pMessage);
  else
    ADD_FAILURE() << data->pMessage;
  return VK_FALSE;
}

bool has_layer(const char* name) {
  std::uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  vkEnumerateInstanceLayerProperties(&count, layers.data());
  for (const VkLayerProperties& l : layers)
    if (std::strcmp(l.layerName, name) == 0) return true;
  return false;
}

}  // namespace

Renderer::Renderer(const Wish& wish) {
  try {
    make(wish);
  } catch (...) {
    destroy();
    throw;
  }
}

void Renderer::make(const Wish& wish) {
  messages = wish.messages;
  semaphore_fd = wish.semaphore_fd;
  // volk's functions here are this program's own; the library has others.
  check(volkInitialize(), "volkInitialize");
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = wish.version;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;
  std::vector<const char*> layers;  // the first is the nearest to the program
  const char* debug = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  validated = platform::environment_flag("WEFT_VALIDATION", true) && has_layer("VK_LAYER_KHRONOS_validation");
  if (validated) {
    layers.push_back("VK_LAYER_KHRONOS_validation");
    create.enabledExtensionCount = 1;
    create.ppEnabledExtensionNames = &debug;
  }
  if (wish.semaphore_fd && has_layer("VK_LAYER_WEFT_semaphore_fd")) layers.push_back("VK_LAYER_WEFT_semaphore_fd");
  create.enabledLayerCount = std::uint32_t(layers.size());
  create.ppEnabledLayerNames = layers.data();
  check(vkCreateInstance(&create, nullptr, &instance), "vkCreateInstance");
  volkLoadInstanceOnly(instance);
  if (validated) {
    VkDebugUtilsMessengerCreateInfoEXT messenger{};
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = this;
    check(vkCreateDebugUtilsMessengerEXT(instance, &messenger, nullptr, &messenger_), "the messenger");
  }

  std::uint32_t count = 0;
  vkEnumeratePhysicalDevices(instance, &count, nullptr);
  std::vector<VkPhysicalDevice> all(count);
  vkEnumeratePhysicalDevices(instance, &count, all.data());
  for (const VkPhysicalDevice p : all) {
    VkPhysicalDeviceProperties properties{};
    vkGetPhysicalDeviceProperties(p, &properties);
    if ((properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) != wish.gpu && !physical) physical = p;
  }
  if (!physical) throw std::runtime_error("there is no such adapter");
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  while (!(families.at(family).queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;

  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  if (wish.prepare) wish.prepare(*this);
  const float priority = 1;
  VkDeviceQueueCreateInfo queues{};
  queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queues.queueFamilyIndex = family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  VkDeviceCreateInfo make{};
  make.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  make.pNext = &features;
  make.queueCreateInfoCount = 1;
  make.pQueueCreateInfos = &queues;
  make.enabledExtensionCount = std::uint32_t(extensions.size());
  make.ppEnabledExtensionNames = extensions.data();
  check(vkCreateDevice(physical, &make, nullptr, &device), "vkCreateDevice");
  volkLoadDeviceTable(&vk, device);
  vk.vkGetDeviceQueue(device, family, 0, &queue);
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = family;
  check(vk.vkCreateCommandPool(device, &pool, nullptr, &pool_), "vkCreateCommandPool");
}

Renderer::~Renderer() { destroy(); }

void Renderer::destroy() {
  destroy_device();
  if (messenger_) {
    volkLoadInstanceOnly(instance);
    vkDestroyDebugUtilsMessengerEXT(instance, messenger_, nullptr);
  }
  if (instance) vkDestroyInstance(instance, nullptr);
}

void Renderer::destroy_device() {
  if (!device) return;
  vk.vkDeviceWaitIdle(device);
  for (const Buffer& b : buffers_) {
    vk.vkDestroyBuffer(device, b.buffer, nullptr);
    vk.vkFreeMemory(device, b.memory, nullptr);
  }
  for (const VkSemaphore s : semaphores_) vk.vkDestroySemaphore(device, s, nullptr);
  vk.vkDestroyCommandPool(device, pool_, nullptr);
  vk.vkDestroyDevice(device, nullptr);
  device = VK_NULL_HANDLE;
}

Renderer::Buffer Renderer::make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage) {
  Buffer b;
  b.usage = usage;
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = bytes;
  create.usage = usage;
  check(vk.vkCreateBuffer(device, &create, nullptr, &b.buffer), "vkCreateBuffer");
  VkMemoryRequirements needs{};
  vk.vkGetBufferMemoryRequirements(device, b.buffer, &needs);
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  constexpr VkMemoryPropertyFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  std::uint32_t type = 0;
  while (!(needs.memoryTypeBits >> type & 1) || (memory.memoryTypes[type].propertyFlags & kMapped) != kMapped) ++type;
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  if (usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) allocate.pNext = &flags;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  check(vk.vkAllocateMemory(device, &allocate, nullptr, &b.memory), "vkAllocateMemory");
  check(vk.vkBindBufferMemory(device, b.buffer, b.memory, 0), "vkBindBufferMemory");
  void* host = nullptr;
  check(vk.vkMapMemory(device, b.memory, 0, VK_WHOLE_SIZE, 0, &host), "vkMapMemory");
  b.host = static_cast<std::byte*>(host);
  buffers_.push_back(b);
  return b;
}

bool Renderer::has_extension(const char* name) const {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> found(count);
  vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, found.data());
  for (const VkExtensionProperties& e : found)
    if (std::strcmp(e.extensionName, name) == 0) return true;
  return false;
}

VkSemaphore Renderer::make_timeline(std::uint64_t value, bool shareable) {
  VkExportSemaphoreCreateInfo share{};
  share.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO;
  share.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  if (shareable) type.pNext = &share;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  type.initialValue = value;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  VkSemaphore made = VK_NULL_HANDLE;
  check(vk.vkCreateSemaphore(device, &create, nullptr, &made), "vkCreateSemaphore");
  semaphores_.push_back(made);
  return made;
}

int Renderer::fd_of(VkSemaphore semaphore) const {
  VkSemaphoreGetFdInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR;
  info.semaphore = semaphore;
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  check(vk.vkGetSemaphoreFdKHR(device, &info, &fd), "vkGetSemaphoreFdKHR");
  return fd;
}

VkSemaphore Renderer::import_timeline(int fd) {
  VkImportSemaphoreFdInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR;
  info.semaphore = make_timeline();  // was not made to be shared: nothing asks for that
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  info.fd = fd;
  check(vk.vkImportSemaphoreFdKHR(device, &info), "vkImportSemaphoreFdKHR");
  return info.semaphore;
}

std::uint64_t Renderer::value_of(VkSemaphore semaphore) const {
  std::uint64_t value = 0;
  check(vk.vkGetSemaphoreCounterValue(device, semaphore, &value), "vkGetSemaphoreCounterValue");
  return value;
}

void Renderer::signal(VkSemaphore semaphore, std::uint64_t value) const {
  VkSemaphoreSignalInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
  info.semaphore = semaphore;
  info.value = value;
  check(vk.vkSignalSemaphore(device, &info), "vkSignalSemaphore");
}

void Renderer::wait_for(VkSemaphore semaphore, std::uint64_t value) const {
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  check(vk.vkWaitSemaphores(device, &info, ~0ull), "vkWaitSemaphores");
}

VkCommandBuffer Renderer::begin() {
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = pool_;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vk.vkAllocateCommandBuffers(device, &allocate, &commands), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  check(vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  return commands;
}

void Renderer::submit(VkCommandBuffer commands, VkSemaphore signal, std::uint64_t value) {
  check(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  if (signal) {
    info.pNext = &timeline;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &signal;
  }
  const std::lock_guard lock(queue_mutex);
  check(vk.vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
}

void Renderer::submit_between(VkCommandBuffer commands, VkSemaphore semaphore, std::uint64_t from, std::uint64_t to) {
  check(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = timeline.signalSemaphoreValueCount = 1;
  timeline.pWaitSemaphoreValues = &from;
  timeline.pSignalSemaphoreValues = &to;
  const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = info.signalSemaphoreCount = 1;
  info.pWaitSemaphores = info.pSignalSemaphores = &semaphore;
  info.pWaitDstStageMask = &all;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  const std::lock_guard lock(queue_mutex);
  check(vk.vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
}

void Renderer::submit_again(VkCommandBuffer commands) {
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  const std::lock_guard lock(queue_mutex);
  check(vk.vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
}

void Renderer::wait_idle() {
  const std::lock_guard lock(queue_mutex);
  vk.vkQueueWaitIdle(queue);
}

}  // namespace weft::test
