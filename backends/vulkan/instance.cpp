// Loads Vulkan, and routes the messages of the validation layers.
#include "instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"

namespace weft::backend {

namespace {

struct Messages {
  std::mutex mutex;
  MessageCallback callback;
  std::atomic<std::uint64_t> count{0};
};

// Lives as long as the process, because drivers may send messages while it ends.
Messages& messages() {
  static Messages* instance = new Messages;
  return *instance;
}

}  // namespace

void set_vulkan_message_callback(MessageCallback callback) {
  std::lock_guard lock(messages().mutex);
  messages().callback = std::move(callback);
}

std::uint64_t vulkan_message_count() { return messages().count.load(); }

namespace vulkan {

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
// Newer loaders and drivers exist, but weft uses nothing newer, and some layers refuse versions that they don't know.
constexpr std::uint32_t kNewestVersion = VK_API_VERSION_1_3;

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  // The layer's own bookkeeping of timeline semaphores ran late (a slow, busy machine); the message itself says that it
  // is "most likely a validation bug". It says nothing about the caller.
  if (data->pMessageIdName && std::strcmp(data->pMessageIdName, "UNASSIGNED-VkSemaphore-state-timeout") == 0)
    return VK_FALSE;
  Messages& all = messages();
  all.count.fetch_add(1);
  MessageCallback callback;
  {
    std::lock_guard lock(all.mutex);
    callback = all.callback;
  }
  const char* kind = severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? "error" : "warning";
  const std::string text = fmt::format("Vulkan validation {}: {}", kind, data->pMessage ? data->pMessage : "");
  if (callback)
    callback(text);
  else
    std::fprintf(stderr, "%s\n", text.c_str());
  return VK_FALSE;
}

bool has(const std::vector<VkExtensionProperties>& list, const char* name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

std::vector<VkExtensionProperties> instance_extensions(const char* layer) {
  std::uint32_t count = 0;
  std::vector<VkExtensionProperties> list;
  if (vkEnumerateInstanceExtensionProperties(layer, &count, nullptr) != VK_SUCCESS) return list;
  list.resize(count);
  if (vkEnumerateInstanceExtensionProperties(layer, &count, list.data()) < 0) count = 0;
  list.resize(count);
  return list;
}

bool layer_present(const char* name) {
  std::uint32_t count = 0;
  if (vkEnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> list(count);
  if (vkEnumerateInstanceLayerProperties(&count, list.data()) < 0) return false;
  return std::any_of(list.begin(), list.begin() + count,
                     [&](const auto& layer) { return std::strcmp(layer.layerName, name) == 0; });
}

}  // namespace

void load_loader() {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (vkGetInstanceProcAddr == nullptr && volkInitialize() != VK_SUCCESS)
    throw Error(ErrorKind::no_device, "there is no Vulkan loader (libvulkan.so.1, vulkan-1.dll) on this machine");
}

// The loader's functions find their instance through the handle that they are given, so loading them once serves all.
void load_functions(VkInstance instance) {
  static const bool loaded = (volkLoadInstanceOnly(instance), true);
  (void)loaded;
}

std::shared_ptr<Instance> Instance::get(bool validation) {
  // There are two instances, because a program that never asked for validation should not pay for another's. The one
  // with validation stays: the layer leaks a little per device, and while it is loaded, leak checkers can tell its
  // leaks from ours.
  struct Shared {
    std::mutex mutex;
    std::weak_ptr<Instance> plain, validated;
    std::shared_ptr<Instance> kept;
  };
  static Shared* const shared = new Shared;
  std::lock_guard lock(shared->mutex);
  validation = validation || platform::environment_flag("WEFT_VALIDATION", false);
  std::weak_ptr<Instance>& slot = validation ? shared->validated : shared->plain;
  std::shared_ptr<Instance> instance = slot.lock();
  if (instance && instance->process_ != platform::process_id())
    throw Error(
        ErrorKind::device_lost,
        "Vulkan was opened before this process was forked, and has stayed with its parent: fork before the first "
        "device is opened, or start another program in the child");
  if (!instance) {
    instance.reset(new Instance(validation));
    slot = instance;
    if (validation) shared->kept = instance;
  }
  return instance;
}

// In one piece: a list of what Vulkan is asked for, whose parts point to each other until the instance is made.
Instance::Instance(bool validation) : process_(platform::process_id()) {
  load_loader();
  api_version_ = std::min(volkGetInstanceVersion(), kNewestVersion);
  if (api_version_ < VK_API_VERSION_1_2)
    throw Error(ErrorKind::no_device, "the Vulkan loader on this machine is older than version 1.2");

  std::vector<const char*> extensions, layers;
  const auto available = instance_extensions(nullptr);
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  if (has(available, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    create.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enabled;
  VkDebugUtilsMessengerCreateInfoEXT messenger{};
  messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  if (validation) {
    if (!layer_present(kValidationLayer))
      unsupported("validation was asked for, and the Vulkan layer {} is not installed", kValidationLayer);
    layers.push_back(kValidationLayer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    create.pNext = &messenger;
    if (has(instance_extensions(kValidationLayer), VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME)) {
      extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
      features.pNext = &messenger;
      create.pNext = &features;
    }
  }
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = application.pEngineName = "weft";
  application.apiVersion = api_version_;
  create.pApplicationInfo = &application;
  create.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  create.enabledLayerCount = static_cast<std::uint32_t>(layers.size());
  create.ppEnabledLayerNames = layers.data();
  const VkResult result = vkCreateInstance(&create, nullptr, &handle_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    throw Error(ErrorKind::no_device, "there is no Vulkan driver on this machine (\"cpu\" needs none)");
  if (result != VK_SUCCESS)
    throw Error(ErrorKind::no_device, fmt::format("Vulkan does not start: {}", to_string(result)));
  if (!handle_) throw Error(ErrorKind::no_device, "Vulkan does not start: vkCreateInstance succeeds and makes nothing");

  load_functions(handle_);
  if (validation) {
    const auto create_messenger = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(handle_, "vkCreateDebugUtilsMessengerEXT"));
    // The messenger given to vkCreateInstance sees only that call and its counterpart.
    if (create_messenger) create_messenger(handle_, &messenger, nullptr, &messenger_);
  }
  find_adapters();
}

Instance::~Instance() {
  if (messenger_) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(handle_, "vkDestroyDebugUtilsMessengerEXT"));
    if (destroy) destroy(handle_, messenger_, nullptr);
  }
  vkDestroyInstance(handle_, nullptr);
}

void Instance::find_adapters() {
  std::uint32_t count = 0;
  std::vector<VkPhysicalDevice> handles;
  if (vkEnumeratePhysicalDevices(handle_, &count, nullptr) == VK_SUCCESS) {
    handles.resize(count);
    if (vkEnumeratePhysicalDevices(handle_, &count, handles.data()) < 0) count = 0;
    handles.resize(count);
  }
  for (const VkPhysicalDevice handle : handles)
    if (handle) adapters_.push_back(describe(handle, api_version_));
  std::stable_partition(adapters_.begin(), adapters_.end(), [](const Adapter& a) { return a.missing.empty(); });
  for (std::size_t i = 0; i < adapters_.size(); ++i) adapters_[i].info.name = fmt::format("vulkan:{}", i);
}

std::string to_string(VkResult result) {
  switch (result) {
#define WEFT_NAME(name) \
  case name: return #name;
    WEFT_NAME(VK_SUCCESS)
    WEFT_NAME(VK_NOT_READY)
    WEFT_NAME(VK_TIMEOUT)
    WEFT_NAME(VK_INCOMPLETE)
    WEFT_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    WEFT_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    WEFT_NAME(VK_ERROR_INITIALIZATION_FAILED)
    WEFT_NAME(VK_ERROR_DEVICE_LOST)
    WEFT_NAME(VK_ERROR_MEMORY_MAP_FAILED)
    WEFT_NAME(VK_ERROR_LAYER_NOT_PRESENT)
    WEFT_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    WEFT_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    WEFT_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    WEFT_NAME(VK_ERROR_TOO_MANY_OBJECTS)
    WEFT_NAME(VK_ERROR_FRAGMENTED_POOL)
    WEFT_NAME(VK_ERROR_UNKNOWN)
    WEFT_NAME(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)
    WEFT_NAME(VK_ERROR_INVALID_SHADER_NV)
#undef WEFT_NAME
    default: return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

}  // namespace vulkan
}  // namespace weft::backend
