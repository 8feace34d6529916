// The parts of a Vulkan layer: the links to the next layer or driver below, the state by handle, and the negotiation
// with the loader.
//
// A layer keeps its data of instances and devices in a Known of each, of types derived from InstanceBelow and
// DeviceBelow, and gives the loader two tables of functions: see the layers beside this file.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#define VK_NO_PROTOTYPES
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

namespace layer {

/// Loads functions of the next layer or driver below; functions that are already loaded stay.
template <class Get, class Handle>
struct Below {
  Handle handle = VK_NULL_HANDLE;
  Get get = nullptr;
  template <class F>
  void load(F& f, const char* name) const {
    if (!f) f = reinterpret_cast<F>(get(handle, name));
  }
};
struct InstanceBelow : Below<PFN_vkGetInstanceProcAddr, VkInstance> {
  PFN_vkDestroyInstance destroy = nullptr;
};
struct DeviceBelow : Below<PFN_vkGetDeviceProcAddr, VkDevice> {
  PFN_vkDestroyDevice destroy = nullptr;
};

// The key of a handle: the pointer of the loader at its beginning, the same for all handles that belong together.
template <class Handle>
void* key_of(Handle handle) {
  return *reinterpret_cast<void**>(handle);
}

template <class T>
const T* find_in_chain(const void* chain, VkStructureType type) {
  for (auto* s = static_cast<const VkBaseInStructure*>(chain); s; s = s->pNext)
    if (s->sType == type) return reinterpret_cast<const T*>(s);
  return nullptr;
}

/// The loader's link to the layer or driver below, in a chain that layers may write to.
template <class Link>
Link* find_link(const void* chain, VkStructureType type) {
  for (auto* link = find_in_chain<Link>(chain, type); link; link = find_in_chain<Link>(link->pNext, type))
    if (link->function == VK_LAYER_LINK_INFO) return const_cast<Link*>(link);
  return nullptr;
}

/// Data by handle. Thread-safe.
template <class T>
class Known {
 public:
  template <class Handle>
  T& of(Handle handle) {
    const std::lock_guard lock(mutex_);
    return all_.at(key_of(handle));
  }
  template <class Handle>
  void add(Handle handle, const T& t) {
    const std::lock_guard lock(mutex_);
    all_[key_of(handle)] = t;
  }
  /// Removes the data of a handle and returns it.
  template <class Handle>
  T take(Handle handle) {
    const std::lock_guard lock(mutex_);
    return all_.extract(key_of(handle)).mapped();
  }

 private:
  std::mutex mutex_;
  std::map<void*, T> all_;  // a map, so that elements stay where they are
};

/// Makes the instance below, and fills `i`.
inline VkResult create_below(const VkInstanceCreateInfo* create, const VkAllocationCallbacks* how, VkInstance* made,
                             InstanceBelow& i) {
  auto* const link = find_link<VkLayerInstanceCreateInfo>(create->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  i.get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  PFN_vkCreateInstance below = nullptr;
  i.load(below, "vkCreateInstance");
  if (const VkResult result = below(create, how, made); result != VK_SUCCESS) return result;
  i.handle = *made;
  i.load(i.destroy, "vkDestroyInstance");
  return VK_SUCCESS;
}

/// Makes the device below, with `changed` in place of `create`, and fills `d`.
inline VkResult create_below(VkInstance instance, VkPhysicalDevice physical, const VkDeviceCreateInfo* create,
                             const VkDeviceCreateInfo* changed, const VkAllocationCallbacks* how, VkDevice* made,
                             DeviceBelow& d) {
  auto* const link = find_link<VkLayerDeviceCreateInfo>(create->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  d.get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto below = reinterpret_cast<PFN_vkCreateDevice>(get(instance, "vkCreateDevice"));
  if (const VkResult result = below(physical, changed, how, made); result != VK_SUCCESS) return result;
  d.handle = *made;
  d.load(d.destroy, "vkDestroyDevice");
  return VK_SUCCESS;
}

struct Function {
  const char* name;
  PFN_vkVoidFunction function;
};
template <class F>
Function function(const char* name, F* f) {
  return {name, reinterpret_cast<PFN_vkVoidFunction>(f)};
}
template <std::size_t N>
PFN_vkVoidFunction named(const Function (&list)[N], const char* name) {
  for (const Function& f : list)
    if (std::strcmp(f.name, name) == 0) return f.function;
  return nullptr;
}

/// The layer's answer when an instance is asked for a function: its own, if there is one below that it stands for.
template <class T, std::size_t N, std::size_t M>
PFN_vkVoidFunction of_instance(Known<T>& instances, VkInstance handle, const char* name,
                               const Function (&of_instances)[N], const Function (&of_devices)[M]) {
  if (const PFN_vkVoidFunction f = named(of_instances, name)) return f;
  if (!handle) return nullptr;
  const PFN_vkVoidFunction below = instances.of(handle).get(handle, name), own = named(of_devices, name);
  return below && own ? own : below;
}

/// The extensions of the device below.
inline std::vector<VkExtensionProperties> extensions_below(PFN_vkEnumerateDeviceExtensionProperties below,
                                                           VkPhysicalDevice physical) {
  std::uint32_t count = 0;
  below(physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> list(count);
  below(physical, nullptr, &count, list.data());
  list.resize(count);
  return list;
}

/// Returns as much of a list as the caller asks for.
template <class T>
VkResult give(const std::vector<T>& list, std::uint32_t* count, T* result) {
  const auto all = std::uint32_t(list.size());
  if (result) std::copy_n(list.begin(), *count = std::min(*count, all), result);
  if (!result) *count = all;
  return *count < all ? VK_INCOMPLETE : VK_SUCCESS;
}

/// Does the work of vkNegotiateLoaderLayerInterfaceVersion().
inline VkResult negotiate(VkNegotiateLayerInterface* about, PFN_vkGetInstanceProcAddr of_instances,
                          PFN_vkGetDeviceProcAddr of_devices) {
  if (about->loaderLayerInterfaceVersion < 2) return VK_ERROR_INITIALIZATION_FAILED;
  about->loaderLayerInterfaceVersion = 2;
  about->pfnGetInstanceProcAddr = of_instances;
  about->pfnGetDeviceProcAddr = of_devices;
  about->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

}  // namespace layer
