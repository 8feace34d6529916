// A stand-in for drivers with VK_KHR_external_semaphore_fd: a Vulkan layer that offers the extension on devices without
// it, for timeline semaphores by opaque descriptors, within one process.
//
// Below the layer, a shared semaphore is two semaphores on each device. The device's queues signal `out`, whose values
// a thread passes on to the shared payload, and wait for `in`, which gets all values of the payload. So no driver sees
// a semaphore of another device, and only the layer signals `in`, in the order of the values. A descriptor is a file
// that names its payload, and holds the value while no semaphore has it. Sparse bindings and swapchains with shared
// semaphores are not translated.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "layer.h"

namespace {

using namespace layer;

constexpr const char* kLayer = "VK_LAYER_WEFT_semaphore_fd";
constexpr const char* kExtension = VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME;
constexpr VkExternalSemaphoreHandleTypeFlagBits kOpaque = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;

struct Instance : InstanceBelow {
  PFN_vkEnumerateDeviceExtensionProperties extensions = nullptr;
  PFN_vkGetPhysicalDeviceExternalSemaphoreProperties properties = nullptr;
};

/// The functions of the device below. Those of Vulkan 1.2 or 1.3 may be null, or may be those of the extensions.
struct Device : DeviceBelow {
  bool stands_in = false;  ///< the driver lacks the extension, which was asked for
  PFN_vkCreateSemaphore create_semaphore = nullptr;
  PFN_vkDestroySemaphore destroy_semaphore = nullptr;
  PFN_vkGetSemaphoreCounterValue value = nullptr;
  PFN_vkWaitSemaphores wait = nullptr;
  PFN_vkSignalSemaphore signal = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  PFN_vkQueueSubmit2 submit2 = nullptr;
};

using File = std::pair<dev_t, ino_t>;

/// The state that semaphores share.
struct Payload {
  Payload() = default;
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;
  ~Payload() {
    if (fd >= 0) close(fd);
  }
  std::uint64_t value = 0;
  int fd = -1;  ///< of the exported file: while it is open, no other file has its number
  File file{};
  std::vector<struct Shared*> members;
};

/// A semaphore that can be shared, or was imported.
struct Shared {
  Device* device = nullptr;
  bool exportable = false;
  std::shared_ptr<Payload> payload;
  VkSemaphore in = VK_NULL_HANDLE, out = VK_NULL_HANDLE;
  std::uint64_t first = 0;     ///< the first value of `out`
  std::uint64_t promised = 0;  ///< the last value that a queue is to give `out`
  bool ending = false;
  std::thread thread;
};

/// The content of the files. The value is that of a payload without members.
struct Note {
  char name[32] = "weft's shared semaphore";
  pid_t process = getpid();
  std::uint64_t value = 0;
};

Known<Instance> instances;
Known<Device> devices;
std::mutex mutex;  // guards the variables below and what they hold
std::map<std::pair<VkDevice, VkSemaphore>, std::unique_ptr<Shared>> semaphores;
std::map<File, std::weak_ptr<Payload>> exported;

bool lacks_extension(Instance& instance, VkPhysicalDevice physical) {
  const std::vector<VkExtensionProperties> list = extensions_below(instance.extensions, physical);
  return std::none_of(list.begin(), list.end(),
                      [](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, kExtension) == 0; });
}

// The shared state, under the lock

Shared* find(VkDevice device, VkSemaphore semaphore) {
  const auto found = semaphores.find({device, semaphore});
  return found == semaphores.end() ? nullptr : found->second.get();
}

VkResult signal(Device& device, VkSemaphore semaphore, std::uint64_t value) {
  const VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, nullptr, semaphore, value};
  return device.signal(device.handle, &info);
}

void raise(Payload& payload, std::uint64_t value) {
  if (value <= payload.value) return;
  payload.value = value;
  for (const Shared* s : payload.members) signal(*s->device, s->in, value);
}

/// Updates the value with what queues have signalled, even if the threads have yet to run.
void update(Payload& payload) {
  for (const Shared* s : payload.members) {
    std::uint64_t value = 0;
    if (!s->ending && s->device->value(s->device->handle, s->out, &value) == VK_SUCCESS) raise(payload, value);
  }
}

bool make_file(Payload& payload) {
  const int fd = memfd_create("semaphore", MFD_CLOEXEC);
  struct stat status {};
  const Note note;
  if (fd < 0 || fstat(fd, &status) != 0 || pwrite(fd, &note, sizeof note, 0) != sizeof note) {
    if (fd >= 0) close(fd);
    return false;
  }
  payload.fd = fd;
  payload.file = {status.st_dev, status.st_ino};
  return true;
}

/// The payload of a descriptor; null for a descriptor of something else.
std::shared_ptr<Payload> payload_behind(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return nullptr;
  const File file{status.st_dev, status.st_ino};
  std::erase_if(exported, [](const auto& item) { return item.second.expired(); });
  if (const auto found = exported.find(file); found != exported.end())
    if (auto known = found->second.lock()) return known;
  const Note own;
  Note note;
  if (pread(fd, &note, sizeof note, 0) != sizeof note) return nullptr;
  if (std::memcmp(note.name, own.name, sizeof own.name) != 0 || note.process != own.process) return nullptr;
  auto payload = std::make_shared<Payload>();
  payload->value = note.value;
  payload->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  payload->file = file;
  if (payload->fd < 0) return nullptr;
  exported[file] = payload;
  return payload;
}

void leave(Shared& shared) {
  Payload& payload = *shared.payload;
  std::erase(payload.members, &shared);
  if (!payload.members.empty() || payload.fd < 0) return;
  Note note;
  note.value = payload.value;
  (void)!pwrite(payload.fd, &note, sizeof note, 0);
}

// The shared state, without the lock

VkResult wait_for(Device& device, VkSemaphore semaphore, std::uint64_t value, std::uint64_t nanoseconds) {
  const VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &value};
  return device.wait(device.handle, &info, nanoseconds);
}

void follow(Shared& shared) {
  for (std::uint64_t seen = shared.first; wait_for(*shared.device, shared.out, seen + 1, ~0ull) == VK_SUCCESS;) {
    const std::lock_guard lock(mutex);
    if (shared.ending || shared.device->value(shared.device->handle, shared.out, &seen) != VK_SUCCESS) return;
    raise(*shared.payload, seen);
  }
}

VkResult make_timeline(Device& device, std::uint64_t value, const VkAllocationCallbacks* how, VkSemaphore& made) {
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
                                       VK_SEMAPHORE_TYPE_TIMELINE, value};
  const VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  return device.create_semaphore(device.handle, &create, how, &made);
}

/// Ends a shared semaphore. All of the caller's work with it has run.
void end(std::unique_ptr<Shared> shared) {
  if (!shared) return;
  Device& device = *shared->device;
  if (shared->thread.joinable()) {
    wait_for(device, shared->out, shared->promised, 1'000'000'000);
    {
      const std::lock_guard lock(mutex);
      update(*shared->payload);
      shared->ending = true;
      leave(*shared);
      std::uint64_t value = 0;
      device.value(device.handle, shared->out, &value);
      signal(device, shared->out, value + 1);
    }
    shared->thread.join();
  }
  device.destroy_semaphore(device.handle, shared->in, nullptr);
  device.destroy_semaphore(device.handle, shared->out, nullptr);
}

std::unique_ptr<Shared> take(VkDevice device, VkSemaphore semaphore) {
  const std::lock_guard lock(mutex);
  auto node = semaphores.extract({device, semaphore});
  return node.empty() ? nullptr : std::move(node.mapped());
}

/// Gives the payload to a semaphore, which the device below has as well and leaves unused.
VkResult share(Device& device, VkSemaphore semaphore, std::shared_ptr<Payload> payload, bool exportable) {
  auto made = std::make_unique<Shared>();
  made->device = &device;
  made->exportable = exportable;
  VkResult result = VK_SUCCESS;
  {
    const std::lock_guard lock(mutex);
    update(*payload);
    made->first = made->promised = payload->value;
    result = make_timeline(device, made->first, nullptr, made->in);
    if (result == VK_SUCCESS) result = make_timeline(device, made->first, nullptr, made->out);
    if (result == VK_SUCCESS) {
      made->payload = std::move(payload);
      made->payload->members.push_back(made.get());
      made->thread = std::thread([&shared = *made] { follow(shared); });
      std::swap(semaphores[{device.handle, semaphore}], made);
    }
  }
  end(std::move(made));  // the semaphore's former state, or, after a failure, the new one
  return result;
}

// The layer's functions of the device

VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice handle, const VkSemaphoreCreateInfo* create,
                                                const VkAllocationCallbacks* how, VkSemaphore* made) {
  Device& device = devices.of(handle);
  const auto* type =
      find_in_chain<VkSemaphoreTypeCreateInfo>(create->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  const auto* fd =
      find_in_chain<VkExportSemaphoreCreateInfo>(create->pNext, VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
  if (!device.stands_in || !fd || !(fd->handleTypes & kOpaque) || !type ||
      type->semaphoreType != VK_SEMAPHORE_TYPE_TIMELINE)
    return device.create_semaphore(handle, create, how, made);
  if (const VkResult result = make_timeline(device, type->initialValue, how, *made); result != VK_SUCCESS)
    return result;
  auto payload = std::make_shared<Payload>();
  payload->value = type->initialValue;
  const VkResult result = share(device, *made, std::move(payload), true);
  if (result != VK_SUCCESS) device.destroy_semaphore(handle, *made, how);
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroy_semaphore(VkDevice handle, VkSemaphore semaphore, const VkAllocationCallbacks* how) {
  end(take(handle, semaphore));
  devices.of(handle).destroy_semaphore(handle, semaphore, how);
}

VKAPI_ATTR VkResult VKAPI_CALL get_fd(VkDevice handle, const VkSemaphoreGetFdInfoKHR* info, int* fd) {
  const std::lock_guard lock(mutex);
  const Shared* const shared = find(handle, info->semaphore);
  if (!shared || !shared->exportable || info->handleType != kOpaque) return VK_ERROR_UNKNOWN;
  Payload& payload = *shared->payload;
  if (payload.fd < 0) {
    if (!make_file(payload)) return VK_ERROR_OUT_OF_HOST_MEMORY;
    exported[payload.file] = shared->payload;
  }
  *fd = fcntl(payload.fd, F_DUPFD_CLOEXEC, 0);
  return *fd < 0 ? VK_ERROR_TOO_MANY_OBJECTS : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL import_fd(VkDevice handle, const VkImportSemaphoreFdInfoKHR* info) {
  Device& device = devices.of(handle);
  std::shared_ptr<Payload> payload;
  bool exportable = false;
  {
    const std::lock_guard lock(mutex);
    if (info->handleType == kOpaque && !info->flags) payload = payload_behind(info->fd);
    if (!payload) return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    if (const Shared* known = find(handle, info->semaphore)) exportable = known->exportable;
  }
  const VkResult result = share(device, info->semaphore, std::move(payload), exportable);
  if (result == VK_SUCCESS) close(info->fd);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL get_value(VkDevice handle, VkSemaphore semaphore, std::uint64_t* value) {
  Device& device = devices.of(handle);
  const std::lock_guard lock(mutex);
  const Shared* const shared = find(handle, semaphore);
  if (!shared) return device.value(handle, semaphore, value);
  update(*shared->payload);
  return device.value(handle, shared->in, value);
}

VKAPI_ATTR VkResult VKAPI_CALL signal_semaphore(VkDevice handle, const VkSemaphoreSignalInfo* info) {
  Device& device = devices.of(handle);
  const std::lock_guard lock(mutex);
  const Shared* const shared = find(handle, info->semaphore);
  if (!shared) return device.signal(handle, info);
  update(*shared->payload);
  if (info->value <= shared->payload->value) return VK_ERROR_UNKNOWN;  // a mistake of the caller
  raise(*shared->payload, info->value);
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice handle, const VkSemaphoreWaitInfo* info,
                                               std::uint64_t nanoseconds) {
  Device& device = devices.of(handle);
  std::vector<VkSemaphore> list(info->pSemaphores, info->pSemaphores + info->semaphoreCount);
  VkSemaphoreWaitInfo below = *info;
  below.pSemaphores = list.data();
  {
    const std::lock_guard lock(mutex);
    for (VkSemaphore& s : list)
      if (const Shared* const shared = find(handle, s)) {
        update(*shared->payload);  // a wait without patience sees what value() would see
        s = shared->in;
      }
  }
  return device.wait(handle, &below, nanoseconds);
}

VkSemaphore to_wait_for(const Device& device, VkSemaphore semaphore) {
  const Shared* const shared = find(device.handle, semaphore);
  return shared ? shared->in : semaphore;
}

VkSemaphore to_signal(const Device& device, VkSemaphore semaphore, std::uint64_t value) {
  Shared* const shared = find(device.handle, semaphore);
  if (!shared) return semaphore;
  shared->promised = value;
  return shared->out;
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  Device& device = devices.of(queue);
  std::vector<VkSubmitInfo> below(infos, infos + count);
  std::deque<std::vector<VkSemaphore>> lists;
  {
    const std::lock_guard lock(mutex);
    for (VkSubmitInfo& s : below) {
      const auto* values =
          find_in_chain<VkTimelineSemaphoreSubmitInfo>(s.pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
      auto& waits = lists.emplace_back(s.pWaitSemaphores, s.pWaitSemaphores + s.waitSemaphoreCount);
      for (VkSemaphore& w : waits) w = to_wait_for(device, w);
      auto& signals = lists.emplace_back(s.pSignalSemaphores, s.pSignalSemaphores + s.signalSemaphoreCount);
      for (std::uint32_t i = 0; i < s.signalSemaphoreCount; ++i)
        if (values && i < values->signalSemaphoreValueCount)
          signals[i] = to_signal(device, signals[i], values->pSignalSemaphoreValues[i]);
      s.pWaitSemaphores = waits.data();
      s.pSignalSemaphores = signals.data();
    }
  }
  return device.submit(queue, count, below.data(), fence);
}

VKAPI_ATTR VkResult VKAPI_CALL submit2(VkQueue queue, std::uint32_t count, const VkSubmitInfo2* infos, VkFence fence) {
  Device& device = devices.of(queue);
  std::vector<VkSubmitInfo2> below(infos, infos + count);
  std::deque<std::vector<VkSemaphoreSubmitInfo>> lists;
  {
    const std::lock_guard lock(mutex);
    for (VkSubmitInfo2& s : below) {
      auto& waits = lists.emplace_back(s.pWaitSemaphoreInfos, s.pWaitSemaphoreInfos + s.waitSemaphoreInfoCount);
      for (VkSemaphoreSubmitInfo& w : waits) w.semaphore = to_wait_for(device, w.semaphore);
      auto& signals = lists.emplace_back(s.pSignalSemaphoreInfos, s.pSignalSemaphoreInfos + s.signalSemaphoreInfoCount);
      for (VkSemaphoreSubmitInfo& w : signals) w.semaphore = to_signal(device, w.semaphore, w.value);
      s.pWaitSemaphoreInfos = waits.data();
      s.pSignalSemaphoreInfos = signals.data();
    }
  }
  return device.submit2(queue, count, below.data(), fence);
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice handle, const VkAllocationCallbacks* how) {
  if (!handle) return;
  std::vector<VkSemaphore> left;  // a mistake of the caller
  {
    const std::lock_guard lock(mutex);
    for (const auto& [key, shared] : semaphores)
      if (key.first == handle) left.push_back(key.second);
  }
  for (const VkSemaphore s : left) end(take(handle, s));
  devices.take(handle).destroy(handle, how);
}

// The layer's functions of the physical device and the instance

VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice physical, const char* layer, std::uint32_t* count,
                                          VkExtensionProperties* result) {
  Instance& instance = instances.of(physical);
  std::vector<VkExtensionProperties> list;
  const bool own = layer && std::strcmp(layer, kLayer) == 0;
  if (layer && !own) return instance.extensions(physical, layer, count, result);
  if (!own) list = extensions_below(instance.extensions, physical);
  if (own || lacks_extension(instance, physical)) {
    VkExtensionProperties e{};
    std::strcpy(e.extensionName, kExtension);
    e.specVersion = VK_KHR_EXTERNAL_SEMAPHORE_FD_SPEC_VERSION;
    list.push_back(e);
  }
  return give(list, count, result);
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical, const VkPhysicalDeviceExternalSemaphoreInfo* info,
                                      VkExternalSemaphoreProperties* found) {
  Instance& instance = instances.of(physical);
  instance.properties(physical, info, found);
  const auto* type =
      find_in_chain<VkSemaphoreTypeCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  if (!type || type->semaphoreType != VK_SEMAPHORE_TYPE_TIMELINE || info->handleType != kOpaque) return;
  if (!lacks_extension(instance, physical)) return;
  found->exportFromImportedHandleTypes = found->compatibleHandleTypes = kOpaque;
  found->externalSemaphoreFeatures =
      VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* create, const VkAllocationCallbacks* how,
                                               VkInstance* made) {
  Instance i;
  if (const VkResult result = create_below(create, how, made, i); result != VK_SUCCESS) return result;
  i.load(i.extensions, "vkEnumerateDeviceExtensionProperties");
  i.load(i.properties, "vkGetPhysicalDeviceExternalSemaphoreProperties");
  i.load(i.properties, "vkGetPhysicalDeviceExternalSemaphorePropertiesKHR");
  instances.add(*made, i);
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance handle, const VkAllocationCallbacks* how) {
  if (handle) instances.take(handle).destroy(handle, how);
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* create,
                                             const VkAllocationCallbacks* how, VkDevice* made) {
  Instance& instance = instances.of(physical);
  Device d;
  std::vector<const char*> names(create->ppEnabledExtensionNames,
                                 create->ppEnabledExtensionNames + create->enabledExtensionCount);
  VkDeviceCreateInfo changed = *create;
  if (lacks_extension(instance, physical))
    d.stands_in = std::erase_if(names, [](const char* name) { return std::strcmp(name, kExtension) == 0; }) > 0;
  changed.enabledExtensionCount = std::uint32_t(names.size());
  changed.ppEnabledExtensionNames = names.data();
  if (const VkResult result = create_below(instance.handle, physical, create, &changed, how, made, d);
      result != VK_SUCCESS)
    return result;
  d.load(d.create_semaphore, "vkCreateSemaphore");
  d.load(d.destroy_semaphore, "vkDestroySemaphore");
  d.load(d.value, "vkGetSemaphoreCounterValue");
  d.load(d.value, "vkGetSemaphoreCounterValueKHR");
  d.load(d.wait, "vkWaitSemaphores");
  d.load(d.wait, "vkWaitSemaphoresKHR");
  d.load(d.signal, "vkSignalSemaphore");
  d.load(d.signal, "vkSignalSemaphoreKHR");
  d.load(d.submit, "vkQueueSubmit");
  d.load(d.submit2, "vkQueueSubmit2");
  d.load(d.submit2, "vkQueueSubmit2KHR");
  devices.add(*made, d);
  return VK_SUCCESS;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice handle, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance handle, const char* name);

const Function of_instances[] = {
    function("vkGetInstanceProcAddr", get_instance_function),
    function("vkCreateInstance", create_instance),
    function("vkDestroyInstance", destroy_instance),
    function("vkCreateDevice", create_device),
    function("vkEnumerateDeviceExtensionProperties", extensions),
    function("vkGetPhysicalDeviceExternalSemaphoreProperties", properties),
    function("vkGetPhysicalDeviceExternalSemaphorePropertiesKHR", properties),
};
const Function of_devices[] = {
    function("vkGetDeviceProcAddr", get_device_function),
    function("vkDestroyDevice", destroy_device),
    function("vkCreateSemaphore", create_semaphore),
    function("vkDestroySemaphore", destroy_semaphore),
    function("vkGetSemaphoreCounterValue", get_value),
    function("vkGetSemaphoreCounterValueKHR", get_value),
    function("vkWaitSemaphores", wait_semaphores),
    function("vkWaitSemaphoresKHR", wait_semaphores),
    function("vkSignalSemaphore", signal_semaphore),
    function("vkSignalSemaphoreKHR", signal_semaphore),
    function("vkQueueSubmit", submit),
    function("vkQueueSubmit2", submit2),
    function("vkQueueSubmit2KHR", submit2),
};
const Function of_the_extension[] = {
    function("vkGetSemaphoreFdKHR", get_fd),
    function("vkImportSemaphoreFdKHR", import_fd),
};

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice handle, const char* name) {
  Device& device = devices.of(handle);
  if (device.stands_in)
    if (const PFN_vkVoidFunction f = named(of_the_extension, name)) return f;
  const PFN_vkVoidFunction below = device.get(handle, name), own = named(of_devices, name);
  return below && own ? own : below;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance handle, const char* name) {
  return of_instance(instances, handle, name, of_instances, of_devices);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* about) {
  return negotiate(about, get_instance_function, get_device_function);
}
