// A stand-in for a GPU: a Vulkan layer above drivers that compile for a GPU that is not there.
//
// Memory is the host's, and the device's addresses are the host's. Copies and fills are done when they are recorded, so
// that a program reads back the bytes that it put there. No other recorded command is done, nor even passed to the
// driver, and submitted work is over at once: semaphores are numbers. All else is the driver's, above all its compiler.
// The layer is made for Mesa's RADV, which with RADV_FORCE_FAMILY=navi31 opens a device without hardware, and so
// without memory or queues.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "layer.h"

namespace {

using namespace layer;

struct Instance : InstanceBelow {
  PFN_vkEnumerateDeviceExtensionProperties extensions = nullptr;
};
struct Device : DeviceBelow {
  PFN_vkGetBufferMemoryRequirements requirements = nullptr;
  PFN_vkDestroyBuffer destroy_buffer = nullptr;
};

Known<Instance> instances;
Known<Device> devices;
std::mutex mutex;                               // guards the variables below
std::map<std::uint64_t, std::uint64_t> values;  // values of semaphores
std::uint64_t last_semaphore = 0;
struct Bound {
  std::uint64_t address = 0;
  VkDeviceSize bytes = 0;  // to the end of its memory
};
std::map<std::uint64_t, Bound> bound;                // buffers
std::map<std::uint64_t, VkDeviceSize> memory_bytes;  // allocations

template <class Handle>
std::uint64_t number(Handle handle) {
  return std::uint64_t(handle);
}

// Describes the host's memory, because a device that is not there has none.
void give_memory(VkPhysicalDeviceMemoryProperties& memory) {
  constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  memory = {};
  memory.memoryHeapCount = 2;
  memory.memoryHeaps[0] = {VkDeviceSize(8) << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  memory.memoryHeaps[1] = {VkDeviceSize(8) << 30, 0};
  memory.memoryTypeCount = 3;
  memory.memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  memory.memoryTypes[1] = {kHost, 1};
  memory.memoryTypes[2] = {kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1};
}
VKAPI_ATTR void VKAPI_CALL memory_properties(VkPhysicalDevice, VkPhysicalDeviceMemoryProperties* memory) {
  give_memory(*memory);
}
VKAPI_ATTR void VKAPI_CALL memory_properties2(VkPhysicalDevice, VkPhysicalDeviceMemoryProperties2* memory) {
  give_memory(memory->memoryProperties);
  for (auto* p = static_cast<VkBaseOutStructure*>(memory->pNext); p; p = p->pNext)
    if (p->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT)
      for (VkDeviceSize& bytes : reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(p)->heapBudget)
        bytes = VkDeviceSize(8) << 30;
}
VKAPI_ATTR void VKAPI_CALL requirements(VkDevice handle, VkBuffer buffer, VkMemoryRequirements* needs) {
  devices.of(handle).requirements(handle, buffer, needs);
  needs->memoryTypeBits = 0b111;  // all of give_memory()
}
VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*,
                                        VkDeviceMemory* made) {
  void* const p = std::aligned_alloc(65536, (info->allocationSize + 65535) / 65536 * 65536);
  if (!p) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  std::memset(p, 0, info->allocationSize);
  *made = VkDeviceMemory(p);
  const std::lock_guard lock(mutex);
  memory_bytes[number(*made)] = info->allocationSize;
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice, VkDeviceMemory memory, const VkAllocationCallbacks*) {
  if (!memory) return;
  {
    // The entry goes first, because the freed memory may be allocated again at once.
    const std::lock_guard lock(mutex);
    memory_bytes.erase(number(memory));
  }
  std::free((void*)memory);
}
VKAPI_ATTR VkResult VKAPI_CALL map(VkDevice, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize, VkMemoryMapFlags,
                                   void** at) {
  *at = (char*)memory + offset;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL bind(VkDevice, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset) {
  const std::lock_guard lock(mutex);
  bound[number(buffer)] = {number(memory) + offset, memory_bytes.at(number(memory)) - offset};
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_buffer(VkDevice handle, VkBuffer buffer, const VkAllocationCallbacks* how) {
  {
    const std::lock_guard lock(mutex);
    bound.erase(number(buffer));
  }
  devices.of(handle).destroy_buffer(handle, buffer, how);
}
Bound bound_of(VkBuffer buffer) {
  const std::lock_guard lock(mutex);
  return bound.at(number(buffer));
}
VKAPI_ATTR VkDeviceAddress VKAPI_CALL address(VkDevice, const VkBufferDeviceAddressInfo* info) {
  return bound_of(info->buffer).address;
}
VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer, const VkCommandBufferBeginInfo*) { return VK_SUCCESS; }
VKAPI_ATTR VkResult VKAPI_CALL end(VkCommandBuffer) { return VK_SUCCESS; }
VKAPI_ATTR VkResult VKAPI_CALL reset_pool(VkDevice, VkCommandPool, VkCommandPoolResetFlags) { return VK_SUCCESS; }
// Finds the bytes of a buffer. Copies and fills are done when they are recorded, so that programs can read them back.
char* memory_of(VkBuffer buffer) { return reinterpret_cast<char*>(bound_of(buffer).address); }
VKAPI_ATTR void VKAPI_CALL copy(VkCommandBuffer, VkBuffer from, VkBuffer to, std::uint32_t count,
                                const VkBufferCopy* regions) {
  for (std::uint32_t k = 0; k < count; ++k)
    std::memmove(memory_of(to) + regions[k].dstOffset, memory_of(from) + regions[k].srcOffset, regions[k].size);
}
VKAPI_ATTR void VKAPI_CALL fill(VkCommandBuffer, VkBuffer to, VkDeviceSize offset, VkDeviceSize bytes,
                                std::uint32_t value) {
  if (bytes == VK_WHOLE_SIZE) bytes = (bound_of(to).bytes - offset) / sizeof(value) * sizeof(value);
  for (VkDeviceSize at = 0; at < bytes; at += sizeof(value))
    std::memcpy(memory_of(to) + offset + at, &value, sizeof(value));
}
VKAPI_ATTR void VKAPI_CALL update(VkCommandBuffer, VkBuffer to, VkDeviceSize offset, VkDeviceSize bytes,
                                  const void* from) {
  std::memcpy(memory_of(to) + offset, from, bytes);
}
// Hides the extensions that share memory and semaphores with other drivers.
VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice physical, const char* layer, std::uint32_t* count,
                                          VkExtensionProperties* list) {
  const auto below = instances.of(physical).extensions;
  if (layer) return below(physical, layer, count, list);
  std::vector<VkExtensionProperties> known = extensions_below(below, physical);
  std::erase_if(known, [](const VkExtensionProperties& e) { return std::strstr(e.extensionName, "external_"); });
  return give(known, count, list);
}
// Serves as any command without effect, whatever its arguments are: in this calling convention the caller removes them.
VKAPI_ATTR void VKAPI_CALL nothing() {}

VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice, const VkSemaphoreCreateInfo* create,
                                                const VkAllocationCallbacks*, VkSemaphore* made) {
  const auto* type =
      find_in_chain<VkSemaphoreTypeCreateInfo>(create->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  const std::lock_guard lock(mutex);
  values[++last_semaphore] = type ? type->initialValue : 0;
  *made = VkSemaphore(last_semaphore);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_semaphore(VkDevice, VkSemaphore semaphore, const VkAllocationCallbacks*) {
  const std::lock_guard lock(mutex);
  values.erase(number(semaphore));
}
VKAPI_ATTR VkResult VKAPI_CALL get_value(VkDevice, VkSemaphore semaphore, std::uint64_t* value) {
  const std::lock_guard lock(mutex);
  *value = values[number(semaphore)];
  return VK_SUCCESS;
}
// Waits for nothing, because submitted work is over at once.
VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice, const VkSemaphoreWaitInfo*, std::uint64_t) {
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL signal_semaphore(VkDevice, const VkSemaphoreSignalInfo* signal) {
  const std::lock_guard lock(mutex);
  values[number(signal->semaphore)] = signal->value;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue, std::uint32_t count, const VkSubmitInfo* infos, VkFence) {
  const std::lock_guard lock(mutex);
  for (std::uint32_t k = 0; k < count; ++k)
    if (const auto* timeline = find_in_chain<VkTimelineSemaphoreSubmitInfo>(
            infos[k].pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO))
      for (std::uint32_t s = 0; s < timeline->signalSemaphoreValueCount; ++s)
        values[number(infos[k].pSignalSemaphores[s])] = timeline->pSignalSemaphoreValues[s];
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL wait_queue(VkQueue) { return VK_SUCCESS; }
VKAPI_ATTR VkResult VKAPI_CALL wait_device(VkDevice) { return VK_SUCCESS; }

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* create, const VkAllocationCallbacks* how,
                                               VkInstance* made) {
  Instance i;
  if (const VkResult result = create_below(create, how, made, i); result != VK_SUCCESS) return result;
  i.load(i.extensions, "vkEnumerateDeviceExtensionProperties");
  instances.add(*made, i);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance handle, const VkAllocationCallbacks* how) {
  if (handle) instances.take(handle).destroy(handle, how);
}
VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* create,
                                             const VkAllocationCallbacks* how, VkDevice* made) {
  Device d;
  if (const VkResult result = create_below(instances.of(physical).handle, physical, create, create, how, made, d);
      result != VK_SUCCESS)
    return result;
  d.load(d.requirements, "vkGetBufferMemoryRequirements");
  d.load(d.destroy_buffer, "vkDestroyBuffer");
  devices.add(*made, d);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice handle, const VkAllocationCallbacks* how) {
  if (handle) devices.take(handle).destroy(handle, how);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice handle, const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance handle, const char* name);

const Function of_instances[] = {function("vkGetInstanceProcAddr", get_instance_function),
                                 function("vkCreateInstance", create_instance),
                                 function("vkDestroyInstance", destroy_instance),
                                 function("vkCreateDevice", create_device),
                                 function("vkEnumerateDeviceExtensionProperties", extensions),
                                 function("vkGetPhysicalDeviceMemoryProperties", memory_properties),
                                 function("vkGetPhysicalDeviceMemoryProperties2", memory_properties2)};
const Function of_devices[] = {function("vkGetDeviceProcAddr", get_device_function),
                               function("vkDestroyDevice", destroy_device),
                               function("vkCreateSemaphore", create_semaphore),
                               function("vkDestroySemaphore", destroy_semaphore),
                               function("vkGetSemaphoreCounterValue", get_value),
                               function("vkWaitSemaphores", wait_semaphores),
                               function("vkSignalSemaphore", signal_semaphore),
                               function("vkQueueSubmit", submit),
                               function("vkAllocateMemory", allocate),
                               function("vkFreeMemory", free_memory),
                               function("vkMapMemory", map),
                               function("vkBindBufferMemory", bind),
                               function("vkDestroyBuffer", destroy_buffer),
                               function("vkGetBufferDeviceAddress", address),
                               function("vkGetBufferMemoryRequirements", requirements),
                               function("vkCmdCopyBuffer", copy),
                               function("vkCmdFillBuffer", fill),
                               function("vkCmdUpdateBuffer", update),
                               function("vkQueueWaitIdle", wait_queue),
                               function("vkBeginCommandBuffer", begin),
                               function("vkEndCommandBuffer", end),
                               function("vkResetCommandPool", reset_pool),
                               function("vkDeviceWaitIdle", wait_device)};

// Functions that would give the driver handles that are not its own. Programs that ask for them get null.
const char* const not_there[] = {"vkQueueSubmit2",
                                 "vkQueueBindSparse",
                                 "vkBindBufferMemory2",
                                 "vkBindImageMemory",
                                 "vkUnmapMemory",
                                 "vkFlushMappedMemoryRanges",
                                 "vkInvalidateMappedMemoryRanges",
                                 "vkGetDeviceMemoryCommitment",
                                 "vkGetBufferMemoryRequirements2",
                                 "vkGetDeviceMemoryOpaqueCaptureAddress",
                                 "vkGetBufferOpaqueCaptureAddress"};

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice handle, const char* name) {
  for (const char* missing : not_there)
    if (std::strncmp(name, missing, std::strlen(missing)) == 0) return nullptr;  // also its ..KHR
  const PFN_vkVoidFunction below = devices.of(handle).get(handle, name), own = named(of_devices, name);
  if (below && !own && std::strncmp(name, "vkCmd", 5) == 0) return reinterpret_cast<PFN_vkVoidFunction>(nothing);
  return below && own ? own : below;
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance handle, const char* name) {
  return of_instance(instances, handle, name, of_instances, of_devices);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* about) {
  setenv("WEFT_HARDWARE_LAYER", "1", 1);  // tells programs that must not run without the layer
  return negotiate(about, get_instance_function, get_device_function);
}
