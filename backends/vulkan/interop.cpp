// Adopted devices: what they must have, how they are taken up and given back.
#include "interop.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "device.h"

namespace weft {

using namespace backend::vulkan;

namespace {

// An old instance hides the capabilities of its devices.
constexpr const char* kHidden = ", or the VkInstance was made for a version of Vulkan below 1.2, which hides it";

// Refuses a device without the functions of its claimed version: loader and drivers give the functions of a version
// only to instances and devices of that version, and calling a missing one would jump to nowhere.
void require_function(bool found, const char* function, const char* what) {
  if (!found)
    unsupported(
        "{}: the VkInstance was made for a version of Vulkan below 1.2 (VkApplicationInfo::apiVersion), whatever "
        "api_version says: it has no {}",
        what, function);
}

// Errors: Error(invalid_argument) for a device that the instance does not have.
std::uint32_t checked_version(VkInstance instance, VkPhysicalDevice physical, std::uint32_t version, const char* what) {
  if (!instance) invalid("{} without a VkInstance", what);
  if (!physical) invalid("{} without a VkPhysicalDevice", what);
  load_loader();
  const char* const features = "vkGetPhysicalDeviceFeatures2";
  require_function(vkGetInstanceProcAddr(instance, features) != nullptr, features, what);
  load_functions(instance);
  std::uint32_t count = 0;
  std::vector<VkPhysicalDevice> all;
  if (vkEnumeratePhysicalDevices(instance, &count, nullptr) == VK_SUCCESS) {
    all.resize(count);
    if (vkEnumeratePhysicalDevices(instance, &count, all.data()) < 0) count = 0;
    all.resize(count);
  }
  if (std::ranges::find(all, physical) == all.end())
    invalid("{}: the VkPhysicalDevice is not one of the VkInstance's", what);
  if (version && version < VK_API_VERSION_1_2)
    unsupported("{}: api_version, that of the VkInstance, is {}.{}, and weft needs 1.2", what,
                VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
  return version ? version : VK_API_VERSION_1_2;
}

}  // namespace

struct VulkanRequirements::State {
  Adapter adapter;
  FeatureStructs structs;
};

VulkanRequirements::VulkanRequirements(VkInstance instance, VkPhysicalDevice physical_device, std::uint32_t api_version)
    : state_(std::make_unique<State>()) {
  const std::uint32_t version = checked_version(instance, physical_device, api_version, "VulkanRequirements");
  state_->adapter = describe(physical_device, version);
  const Adapter& a = state_->adapter;
  if (!a.missing.empty())
    throw Error(ErrorKind::no_device,
                fmt::format("weft cannot use {}: it lacks {}{}", a.info.adapter, a.missing, kHidden));
}

VulkanRequirements::~VulkanRequirements() = default;

void VulkanRequirements::add_features(VkPhysicalDeviceFeatures2& chain) {
  if (chain.sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
    invalid("VulkanRequirements::add_features is given a struct whose sType is not that of VkPhysicalDeviceFeatures2");
  state_->structs.turn_on(state_->adapter.features, chain);
}

void VulkanRequirements::add_extensions(std::vector<const char*>& names) const {
  for (const char* name : state_->adapter.used_extensions())
    if (std::ranges::find(names, std::string_view(name)) == names.end()) names.push_back(name);
}

namespace backend {

std::unique_ptr<Device> adopt_vulkan(const VulkanHandles& handles) { return vulkan::adopt(handles, {}); }

std::unique_ptr<VulkanDevice> vulkan::adopt(const VulkanHandles& h, const Tuning& tuning) {
  const std::uint32_t version = checked_version(h.instance, h.physical_device, h.api_version, "a device is adopted");
  if (!h.device) invalid("a device is adopted without a VkDevice");
  for (const char* function :
       {"vkGetBufferDeviceAddress", "vkGetSemaphoreCounterValue", "vkSignalSemaphore", "vkWaitSemaphores"})
    require_function(vkGetDeviceProcAddr(h.device, function) != nullptr, function, "a device is adopted");
  if (!h.queue) invalid("a device is adopted without a VkQueue");
  if (!h.lock != !h.unlock) invalid("a device is adopted with a lock() and no unlock(), or the other way round");
  const std::vector<VkQueueFamilyProperties> families = queue_families(h.physical_device);
  if (h.queue_family >= families.size())
    invalid("a device is adopted with queue family {}; there are {}", h.queue_family, families.size());
  if (!(families[h.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
    unsupported("a device is adopted with a queue of family {}, which does not compute", h.queue_family);

  Extensions extensions;
  for (const char* name : h.extensions) {
    if (!name) invalid("a device is adopted with an extension whose name is null");
    extensions.emplace_back(name);
  }
  // Extensions that are named but not turned on are found here, where the driver tells, and not by a call of a missing
  // function.
  constexpr std::pair<const char*, const char*> kFunctions[] = {
      {VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME, "vkCreateAccelerationStructureKHR"},
      {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, "vkGetMemoryHostPointerPropertiesEXT"},
      {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, "vkGetMemoryFdKHR"},
      {VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME, "vkGetSemaphoreFdKHR"}};
  for (const auto& [extension, function] : kFunctions)
    if (std::ranges::find(h.extensions, std::string_view(extension)) != h.extensions.end() &&
        !vkGetDeviceProcAddr(h.device, function))
      invalid("a device is adopted with the extension {}, and was made without it: it has no {}", extension, function);
  const Adapter able = describe(h.physical_device, version);
  if (!able.missing.empty())
    unsupported("weft cannot adopt a device on {}: it lacks {}{}", able.info.adapter, able.missing, kHidden);
  Adapter made =
      describe(h.physical_device, version, extensions, Features::enabled(h.features, h.core_features), h.queue_family);
  if (!made.missing.empty())
    unsupported(
        "weft cannot adopt a device that was made without {}: {} has it; turn it on in vkCreateDevice "
        "(VulkanRequirements does) and hand the same features to weft",
        made.missing, made.info.adapter);
  static std::atomic<int> adopted{0};
  made.info.name = fmt::format("adopted:{}", adopted++);
  made.info.dispatch_budget = 0;  // its owner knows what a frame allows
  return std::make_unique<VulkanDevice>(std::move(made), SharedQueue{h.device, h.queue, h.lock, h.unlock}, tuning);
}

VulkanDevice& vulkan_device(Device& device, const char* what) {
  if (!VulkanAccess::fits(device)) unsupported("{} on {}, which is not a Vulkan device", what, device.info().name);
  return static_cast<VulkanDevice&>(device);
}

bool VulkanAccess::fits(Device& device) { return dynamic_cast<VulkanDevice*>(&device) != nullptr; }

std::array<std::uint8_t, 16> VulkanAccess::device_uuid() const { return device_.adapter().device_uuid; }

bool VulkanAccess::adopted() const { return device_.adopted(); }

Memory& VulkanAccess::memory() const {
  device_.check_alive();
  return device_.memory();
}

VulkanBuffer VulkanAccess::locate(std::uint64_t address, std::uint64_t bytes) const {
  const Place place = memory().resolve(address, bytes);
  return {place.buffer, place.offset, bytes, address, place.usage};
}

Allocation VulkanAccess::wrap(const VulkanBuffer& buffer) const {
  return memory().wrap(buffer.buffer, buffer.offset, buffer.bytes, buffer.usage);
}

Allocation VulkanAccess::allocate_shared(std::uint64_t bytes) const { return memory().allocate_shared(bytes); }

SharedMemory VulkanAccess::share(std::uint64_t address) const { return memory().share(address); }

Allocation VulkanAccess::import_shared(SharedMemory&& shared, std::uint64_t array_bytes) const {
  return memory().import_shared(std::move(shared), array_bytes);
}

Allocation VulkanAccess::import_foreign(FileDescriptor&& fd, std::uint64_t bytes) const {
  return memory().import_foreign(std::move(fd), bytes);
}

PageAttachment VulkanAccess::attach(std::uint64_t address, const MakeAttachment& make) const {
  return memory().attach(address, make);
}

bool VulkanAccess::shares(std::uint64_t address) const { return memory().shares(address); }

bool VulkanAccess::host_reads_fast(std::uint64_t address) const {
  return address ? memory().resolve(address, 0).cached : memory().cached(MemoryKind::device);
}

bool held_up(Device& device) {
  auto* const d = dynamic_cast<VulkanDevice*>(&device);
  return d && !d->detached() && d->waits().any();
}

}  // namespace backend
}  // namespace weft
