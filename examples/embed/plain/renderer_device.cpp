// The renderer's instance, device and memory.
#define VOLK_IMPLEMENTATION
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "renderer.h"

void check(VkResult result, const char* call) {
  if (result < 0) throw std::runtime_error(std::string(call) + " failed (VkResult " + std::to_string(result) + ")");
}

VKAPI_ATTR VkBool32 VKAPI_CALL Renderer::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                                    VkDebugUtilsMessageTypeFlagsEXT,
                                                    const VkDebugUtilsMessengerCallbackDataEXT* data, void* renderer) {
  // The layer's bookkeeping of semaphores may run late on a busy machine, as its message says itself.
  if (data->pMessageIdName && std::strstr(data->pMessageIdName, "VkSemaphore-state-timeout")) return VK_FALSE;
  std::fprintf(stderr, "%s\n", data->pMessage);
  ++static_cast<Renderer*>(renderer)->messages_;
  return VK_FALSE;
}

void Renderer::make_instance(const RendererSetup& setup) {
  if (volkInitialize() != VK_SUCCESS) throw std::runtime_error("there is no Vulkan loader on this machine");
  std::vector<const char*> extensions = setup.surface_extensions;
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "embed";
  application.apiVersion = kApiVersion;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  if (setup.validate) {
    create.enabledLayerCount = 1;
    create.ppEnabledLayerNames = &layer;
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }
  create.enabledExtensionCount = std::uint32_t(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  const VkResult result = vkCreateInstance(&create, nullptr, &instance_);
  if (result == VK_ERROR_LAYER_NOT_PRESENT)
    throw std::runtime_error(std::string("--validate needs the layer ") + layer);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) throw std::runtime_error("there is no Vulkan driver on this machine");
  check(result, "vkCreateInstance");
  volkLoadInstanceOnly(instance_);
  if (!setup.validate) return;
  VkDebugUtilsMessengerCreateInfoEXT messenger{};
  messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = this;
  check(vkCreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

void Renderer::choose_device(const std::string& wish) {
  if (!wish.empty() && wish != "software" && wish != "gpu")
    throw std::runtime_error("--device is software or gpu, and not " + wish);
  std::uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> all(count);
  check(vkEnumeratePhysicalDevices(instance_, &count, all.data()), "vkEnumeratePhysicalDevices");
  VkPhysicalDevice software = VK_NULL_HANDLE, gpu = VK_NULL_HANDLE;
  for (const VkPhysicalDevice p : all) {
    VkPhysicalDeviceProperties properties{};
    vkGetPhysicalDeviceProperties(p, &properties);
    VkPhysicalDevice& known = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? software : gpu;
    if (!known && properties.apiVersion >= kApiVersion) known = p;
  }
  physical_ = wish == "software" ? software : wish == "gpu" ? gpu : gpu ? gpu : software;
  if (!physical_) throw std::runtime_error("there is no adapter for --device " + (wish.empty() ? "gpu" : wish));

  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  for (family_ = 0; family_ < count; ++family_) {
    VkBool32 shows = VK_TRUE;
    if (surface_)
      check(vkGetPhysicalDeviceSurfaceSupportKHR(physical_, family_, surface_, &shows),
            "vkGetPhysicalDeviceSurfaceSupportKHR");
    constexpr VkQueueFlags kBoth = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
    if ((families[family_].queueFlags & kBoth) == kBoth && shows) return;
  }
  throw std::runtime_error(device_name() + " has no queue that draws, computes and shows");
}

std::string Renderer::device_name() const {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(physical_, &properties);
  return properties.deviceName;
}

void Renderer::make_device(const RendererSetup& setup) {
  // These features are those that the renderer itself uses.
  features_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features_.pNext = &features12_;
  features12_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12_.timelineSemaphore = features12_.bufferDeviceAddress = VK_TRUE;
  if (surface_) extensions_.push_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
  if (setup.guest) setup.guest(instance_, physical_, features_, extensions_);

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &features_;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = std::uint32_t(extensions_.size());
  create.ppEnabledExtensionNames = extensions_.data();
  check(vkCreateDevice(physical_, &create, nullptr, &device_), "vkCreateDevice");
  volkLoadDevice(device_);
  vkGetDeviceQueue(device_, family_, 0, &queue_);
}

std::uint32_t Renderer::memory_type(std::uint32_t usable, VkMemoryPropertyFlags wanted) const {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
  for (std::uint32_t k = 0; k < memory.memoryTypeCount; ++k)
    if ((usable >> k & 1) && (memory.memoryTypes[k].propertyFlags & wanted) == wanted) return k;
  throw std::runtime_error(device_name() + " has no memory of the kind that is needed");
}

Renderer::Buffer Renderer::make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage, VkMemoryPropertyFlags memory) {
  Buffer made;
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = bytes;
  create.usage = usage;
  check(vkCreateBuffer(device_, &create, nullptr, &made.buffer), "vkCreateBuffer");
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(device_, made.buffer, &needs);
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  if (usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) allocate.pNext = &flags;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = memory_type(needs.memoryTypeBits, memory);
  VkResult result = vkAllocateMemory(device_, &allocate, nullptr, &made.memory);
  if (result == VK_SUCCESS) result = vkBindBufferMemory(device_, made.buffer, made.memory, 0);
  if (result != VK_SUCCESS) destroy(made);
  check(result, "vkAllocateMemory");
  return made;
}

void Renderer::destroy(const Buffer& buffer) {
  vkDestroyBuffer(device_, buffer.buffer, nullptr);
  vkFreeMemory(device_, buffer.memory, nullptr);
}

VkBuffer Renderer::make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage) {
  buffers_.push_back(make_buffer(bytes, usage, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  return buffers_.back().buffer;
}

void Renderer::make_image(Image& made, VkFormat format, VkImageUsageFlags usage, VkImageAspectFlags aspect) {
  VkImageCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
  create.imageType = VK_IMAGE_TYPE_2D;
  create.format = format;
  create.extent = {width_, height_, 1};
  create.mipLevels = create.arrayLayers = 1;
  create.samples = VK_SAMPLE_COUNT_1_BIT;
  create.usage = usage;
  check(vkCreateImage(device_, &create, nullptr, &made.image), "vkCreateImage");
  VkMemoryRequirements needs{};
  vkGetImageMemoryRequirements(device_, made.image, &needs);
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = memory_type(needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  check(vkAllocateMemory(device_, &allocate, nullptr, &made.memory), "vkAllocateMemory");
  check(vkBindImageMemory(device_, made.image, made.memory, 0), "vkBindImageMemory");
  VkImageViewCreateInfo view{};
  view.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
  view.image = made.image;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = format;
  view.subresourceRange = {aspect, 0, 1, 0, 1};
  check(vkCreateImageView(device_, &view, nullptr, &made.view), "vkCreateImageView");
}

VkSemaphore Renderer::make_semaphore(bool timeline) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = timeline ? VK_SEMAPHORE_TYPE_TIMELINE : VK_SEMAPHORE_TYPE_BINARY;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  VkSemaphore made = VK_NULL_HANDLE;
  check(vkCreateSemaphore(device_, &create, nullptr, &made), "vkCreateSemaphore");
  return made;
}

void Renderer::destroy() {
  if (device_) {
    vkDeviceWaitIdle(device_);
    destroy_swapchain();
    for (const Frame& f : frames_) {
      vkDestroyCommandPool(device_, f.pool, nullptr);
      vkDestroySemaphore(device_, f.acquired, nullptr);
    }
    vkDestroySemaphore(device_, timeline_, nullptr);
    vkDestroyPipeline(device_, pipeline_, nullptr);
    vkDestroyPipelineLayout(device_, layout_, nullptr);
    vkDestroyFramebuffer(device_, framebuffer_, nullptr);
    vkDestroyRenderPass(device_, pass_, nullptr);
    for (const Image& i : {colour_, depth_}) {
      vkDestroyImageView(device_, i.view, nullptr);
      vkDestroyImage(device_, i.image, nullptr);
      vkFreeMemory(device_, i.memory, nullptr);
    }
    for (const Buffer& b : buffers_) destroy(b);
    destroy(staging_);
    vkDestroyDevice(device_, nullptr);
  }
  if (!instance_) return;
  if (surface_) vkDestroySurfaceKHR(instance_, surface_, nullptr);
  if (messenger_) vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  vkDestroyInstance(instance_, nullptr);
}
