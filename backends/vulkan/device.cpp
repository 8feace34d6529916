// Opens adapters; defers memory until work has run; handles loss of the device.
#include "device.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <vector>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"
#include "commands/graph.h"
#include "commands/ray_structure.h"
#include "commands/timestamps.h"
#include "queue/stream.h"

namespace weft::backend {

using vulkan::Adapter;
using vulkan::Instance;
using vulkan::VulkanDevice;

std::vector<DeviceInfo> list_vulkan_devices() {
  std::vector<DeviceInfo> result;
  try {
    const auto instance = Instance::get(false);
    for (const Adapter& adapter : instance->adapters())
      if (adapter.missing.empty()) result.push_back(adapter.info);
  } catch (const Error& error) {
    // A broken validation setup is worth a message; a machine without Vulkan is not.
    if (error.kind() != ErrorKind::no_device) throw;
  }
  return result;
}

std::unique_ptr<Device> open_vulkan(int adapter_index, const VulkanOptions& options) {
  if (options.on_message) set_vulkan_message_callback(options.on_message);
  auto instance = Instance::get(options.validation);
  const auto& adapters = instance->adapters();
  if (adapters.empty()) throw Error(ErrorKind::no_device, "the Vulkan drivers on this machine have no adapter");
  if (adapter_index < 0 || static_cast<std::size_t>(adapter_index) >= adapters.size()) {
    std::string list;
    for (const Adapter& a : adapters)
      list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", a.info.name, a.info.adapter);
    throw Error(ErrorKind::no_device, fmt::format("there is no vulkan:{}; there is {}", adapter_index, list));
  }
  const Adapter& adapter = adapters[static_cast<std::size_t>(adapter_index)];
  if (!adapter.missing.empty())
    throw Error(ErrorKind::no_device,
                fmt::format("{} ({}) lacks {}", adapter.info.name, adapter.info.adapter, adapter.missing));
  return std::make_unique<VulkanDevice>(std::move(instance), adapter);
}

std::shared_ptr<Program> load_spirv(Device& device, const SpirvDesc& desc) {
  auto* vulkan_device = dynamic_cast<VulkanDevice*>(&device);
  if (!vulkan_device)
    throw Error(ErrorKind::invalid_argument, fmt::format("{} does not run SPIR-V", device.info().name), desc.name);
  return vulkan_device->load(desc);
}

namespace vulkan {

DeviceObject::DeviceObject(VulkanDevice& device) : device_(device) {
  std::lock_guard lock(device.objects_mutex_);
  device.objects_.push_back(this);
}

DeviceObject::~DeviceObject() {
  if (device_.left_behind_.load()) return;
  std::lock_guard lock(device_.objects_mutex_);
  std::erase(device_.objects_, this);
}

VulkanDevice::VulkanDevice(std::shared_ptr<Instance> instance, const Adapter& adapter, const Tuning& tuning)
    : instance_(std::move(instance)), adapter_(adapter), info_(adapter.info), cache_(DiskCache::from_environment()) {
  create();
  try {
    VkQueue queue = VK_NULL_HANDLE;
    vk_.vkGetDeviceQueue(handle_, adapter_.queue_family, 0, &queue);
    check_made(VK_SUCCESS, queue, "vkGetDeviceQueue");
    submitter_.open(
        queue, platform::environment_flag("WEFT_SUBMIT_THREAD", !info_.software || tuning.submits_as_on_gpus), {}, {});
    equip(tuning);
  } catch (...) {
    vk_.vkDestroyDevice(handle_, nullptr);
    throw;
  }
}

VulkanDevice::VulkanDevice(Adapter adapter, SharedQueue queue, const Tuning& tuning)
    : own_adapter_(std::make_shared<Adapter>(std::move(adapter))),
      adapter_(*own_adapter_),
      info_(adapter_.info),
      handle_(queue.device),
      adopted_(true),
      cache_(DiskCache::from_environment()) {
  volkLoadDeviceTable(&vk_, handle_);
  submitter_.open(queue.queue, false, std::move(queue.lock), std::move(queue.unlock));
  equip(tuning);
}

void VulkanDevice::equip(const Tuning& tuning) {
  most_pages_ = tuning.most_pages;
  most_when_idle_ = tuning.most_when_idle;
  // A software device's threads run on the same processors.
  looks_ = platform::environment_flag("WEFT_WAITS_LOOK", !info_.software || tuning.waits_as_on_gpus);
  try {
    memory_ = std::make_unique<Memory>(
        adapter_, handle_, vk_,
        MemoryTuning{tuning.page_bytes, tuning.map_device_memory, tuning.cache_device_memory, tuning.share_pages});
    info_.host_visible = memory_->host_visible(MemoryKind::device);
    pipelines_ = std::make_unique<Pipelines>(*this, cache_);
    retirement_ = std::make_unique<Retirement>(
        [this](const Retired& thing) {
          switch (thing.kind) {
            case Retired::Kind::memory: memory_->free(thing.handle); break;
            case Retired::Kind::pipeline: pipelines_->destroy(thing.handle); break;
            case Retired::Kind::commands: destroy_commands(*this, thing.handle); break;
            case Retired::Kind::ray_structure: destroy_ray_structure(*this, thing.handle); break;
            case Retired::Kind::semaphore: vk_.vkDestroySemaphore(handle_, (VkSemaphore)thing.handle, nullptr); break;
            case Retired::Kind::queries: vk_.vkDestroyQueryPool(handle_, (VkQueryPool)thing.handle, nullptr); break;
          }
        },
        [this](VkSemaphore semaphore) -> Ticket {
          std::uint64_t value = 0;
          const VkResult result = vk_.vkGetSemaphoreCounterValue(handle_, semaphore, &value);
          if (result == VK_SUCCESS) return value;
          if (result == VK_ERROR_DEVICE_LOST) mark_lost("vkGetSemaphoreCounterValue");
          return 0;
        });
  } catch (...) {
    pipelines_.reset();
    memory_.reset();
    throw;
  }
}

void VulkanDevice::create() {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = adapter_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;

  // Turns on the required features, and of the optional ones those that kernels may use.
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  FeatureStructs structs;
  structs.turn_on(adapter_.features, features);
  const std::vector<const char*> extensions = adapter_.used_extensions();

  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &features;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  const VkResult result = vkCreateDevice(adapter_.handle, &create, nullptr, &handle_);
  if (result != VK_SUCCESS)
    throw Error(ErrorKind::no_device,
                fmt::format("{} ({}) does not open: {}", info_.name, info_.adapter, to_string(result)));
  if (!handle_) refuse_nothing("vkCreateDevice");
  volkLoadDeviceTable(&vk_, handle_);
}

VulkanDevice::~VulkanDevice() {
  if (detached()) return;
  // Streams have waited for their work. An adopted device may be used by others and is not ours to wait for.
  if (!adopted_) vk_.vkDeviceWaitIdle(handle_);
  retirement_->release_all();
  semaphores_.clear();
  pipelines_.reset();
  retirement_.reset();
  memory_.reset();
  if (!adopted_) vk_.vkDestroyDevice(handle_, nullptr);
}

void VulkanDevice::detach() {
  if (detached()) return;
  {
    std::lock_guard lock(objects_mutex_);
    for (DeviceObject* object : objects_) object->abandon();
  }
  retirement_->release_all();
  semaphores_.clear();
  pipelines_.reset();
  retirement_.reset();
  memory_.reset();
  detached_.store(true);
  lost_.store(true);
}

bool VulkanDevice::leave_behind() noexcept {
  left_behind_.store(true);
  detached_.store(true);
  lost_.store(true);
  return true;
}

void VulkanDevice::process_ends() noexcept {
  if (ends_.load(std::memory_order_relaxed))
    return;  // the end is announced twice: by the thread's objects and by atexit()
  ending_thread_ = std::this_thread::get_id();
  ends_.store(true, std::memory_order_release);
}

// Other threads may still be at work, and never see the end.
void VulkanDevice::refuse_at_end() const {
  if (std::this_thread::get_id() == ending_thread_)
    throw Error(ErrorKind::device_lost,
                fmt::format("a kernel is launched on {} ({}) after main() has returned or exit() was called: the "
                            "driver's compiler may be gone. Arrays can still be read",
                            info_.name, info_.adapter));
}

Allocation VulkanDevice::allocate(std::size_t bytes, MemoryKind kind) {
  check_alive();
  if (bytes == 0) return {};
  if (const auto found = memory_->find(bytes, kind)) return *found;
  if (retirement_->collect())
    if (const auto found = memory_->find(bytes, kind)) return *found;
  // A new page is expensive, and memory that waits for recorded work will be wanted again.
  retirement_->hurry();
  if (const auto made = grow(bytes, kind)) return *made;
  // Polls, because another thread may end a stream while this one waits.
  while (bytes <= info_.max_allocation && comes_free()) {
    check_alive();
    if (!retirement_->collect()) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      continue;
    }
    if (const auto found = memory_->find(bytes, kind)) return *found;
    if (const auto made = grow(bytes, kind)) return *made;
  }
  memory_->refuse(bytes, kind);
}

std::optional<Allocation> VulkanDevice::grow(std::size_t bytes, MemoryKind kind) {
  if (most_pages_ != INT_MAX && memory_->pages() >= most_pages_) return {};
  return memory_->grow(bytes, kind);
}

// Waits without needing the host, which may have to signal what the queue waits for. If it has just done so, the queue
// takes a moment to see it.
bool VulkanDevice::comes_free() {
  const auto needs = retirement_->comes_free();
  if (!needs) return false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (waits_.hold_up(*needs)) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    check_alive();
  }
  return true;
}

Allocation VulkanDevice::wrap(std::byte* memory, std::size_t bytes) {
  check_alive();
  return memory_->wrap(memory, bytes);
}

void VulkanDevice::free(const Allocation& allocation) {
  if (detached()) return;
  // The caller's memory may be gone in a moment.
  if (Memory::is_wrapped(allocation.handle)) {
    // The freeing thread has waited for the work on it. On a lost device that wait ends at once, and commands that use
    // the memory may still be being written.
    if (lost()) submitter_.finish(submitter_.last_place());
    memory_->free(allocation.handle);
  } else if (allocation.handle != 0) {
    retirement_->drop({Retired::Kind::memory, allocation.handle});
  }
  memory_->bury();
}

void VulkanDevice::give_back() {
  check_alive();
  retirement_->collect();
  memory_->bury();
  // Mesa's software device keeps the code of pipelines that have run until the queue is given something.
  if (!info_.software || !pipelines_->take_destroyed()) return;
  VkSubmitInfo nothing{};
  nothing.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  check(submitter_.submit(nothing), "vkQueueSubmit");
}

std::uint64_t VulkanDevice::ray_structure_bytes(std::uint32_t num_points, std::uint32_t num_triangles) {
  check_alive();
  if (!adapter_.ray_query) return Device::ray_structure_bytes(num_points, num_triangles);
  return RayLayout(*this, num_points, num_triangles).bytes;
}

std::shared_ptr<RayStructure> VulkanDevice::create_ray_structure(std::uint64_t memory, std::uint32_t num_points,
                                                                 std::uint32_t num_triangles) {
  check_alive();
  if (!adapter_.ray_query) return Device::create_ray_structure(memory, num_points, num_triangles);
  return std::make_shared<VulkanRayStructure>(*this, memory, num_points, num_triangles);
}

std::unique_ptr<Graph> VulkanDevice::create_graph(std::unique_ptr<Operations> operations) {
  check_runs();
  return std::make_unique<VulkanGraph>(*this, std::move(operations));
}

std::unique_ptr<Stream> VulkanDevice::create_stream() {
  check_alive();
  return std::make_unique<VulkanStream>(*this);
}

bool VulkanDevice::reached_soon(VkSemaphore semaphore, std::uint64_t value, std::chrono::nanoseconds most) {
  constexpr int kLooks = 8;  // a look takes some 13 ns with NVIDIA's driver, and a system call with others
  const auto end = std::chrono::steady_clock::now() + most;
  for (;;) {
    for (int k = 0; k < kLooks; ++k) {
      std::uint64_t reached = 0;
      check(vk_.vkGetSemaphoreCounterValue(handle_, semaphore, &reached), "vkGetSemaphoreCounterValue");
      // A device that is gone may read as all ones; waiting for it tells.
      if (reached >= value && reached != ~0ull) return true;
    }
    check_alive();
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::yield();  // to other threads that have work for the processor
  }
}

// A thread that sleeps wakes late: on an H200 a launch and its wait take at least 54 us with sleep, and 18 us if the
// thread looks itself. It does not look long if waits have been longer than that.
bool VulkanDevice::wait_for(VkSemaphore semaphore, std::uint64_t value, std::uint64_t patience) {
  constexpr std::chrono::nanoseconds kLong = std::chrono::milliseconds(1), kBriefly = std::chrono::microseconds(50);
  const auto start = std::chrono::steady_clock::now();
  const auto waited = [&] { return std::uint64_t((std::chrono::steady_clock::now() - start).count()); };
  if (looks_) {
    const std::chrono::nanoseconds most = waits_are_long_.load(std::memory_order_relaxed) ? kBriefly : kLong;
    if (reached_soon(semaphore, value, std::min<std::uint64_t>(patience, most.count()) * std::chrono::nanoseconds(1))) {
      waits_are_long_.store(false, std::memory_order_relaxed);
      return true;
    }
  }
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &semaphore;
  wait.pValues = &value;
  // If the work that was to signal it failed, the driver may not know of any loss.
  constexpr std::uint64_t kNap = 1'000'000'000;
  VkResult result = VK_TIMEOUT;
  for (bool more = true; result == VK_TIMEOUT && more; check_alive()) {
    const std::uint64_t left = patience == ~0ull ? patience : patience - std::min(patience, waited());
    result = vk_.vkWaitSemaphores(handle_, &wait, std::min(left, kNap));
    more = left > kNap;
  }
  if (looks_) waits_are_long_.store(waited() > std::uint64_t(kLong.count()), std::memory_order_relaxed);
  if (result == VK_TIMEOUT) return false;
  check(result, "vkWaitSemaphores");
  return true;
}

std::unique_ptr<Timestamps> VulkanDevice::create_timestamps(std::uint32_t places) {
  check_alive();
  return std::make_unique<VulkanTimestamps>(*this, places);
}

// Asked for when it is needed, and kept with the driver's version, because opening a device must not wait for a shader.
FusedTypes VulkanDevice::fused() {
  const std::lock_guard lock(fused_mutex_);
  if (fused_) return *fused_;
  const std::string key = "fused:" + info_.cache_key;
  if (const auto known = cache_.get(key); known && known->size() == 2) {
    fused_ = FusedTypes{(*known)[0] != std::byte{0}, (*known)[1] != std::byte{0}};
  } else {
    fused_ = find_fused(*this);
    const std::byte answer[] = {std::byte(fused_->f32), std::byte(fused_->f64)};
    cache_.put(key, answer);
  }
  return *fused_;
}

CompileStats VulkanDevice::stats() const {
  return {emitted_.load(), loaded_.load(), cache_.rejected(), chains_.made()};
}

void VulkanDevice::check(VkResult result, const char* call) {
  if (result >= 0) return;
  if (result == VK_ERROR_DEVICE_LOST) {
    mark_lost(call);
    throw_lost();
  }
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY)
    throw Error(ErrorKind::out_of_memory,
                fmt::format("{} on {} ({}) gave {}", call, info_.name, info_.adapter, to_string(result)));
  unsupported("{} on {} ({}) gave {}", call, info_.name, info_.adapter, to_string(result));
}

void VulkanDevice::refuse_nothing(const char* call) const {
  unsupported("{} on {} ({}) gave VK_SUCCESS, and nothing that can be used", call, info_.name, info_.adapter);
}

void VulkanDevice::mark_lost(const char* call, VkResult result) noexcept {
  std::lock_guard lock(lost_mutex_);
  if (lost_.load()) return;
  lost_in_ = call;
  lost_with_ = result;
  lost_.store(true);
}

void VulkanDevice::throw_lost() const {
  if (left_behind_.load())
    throw Error(ErrorKind::device_lost,
                fmt::format("{} ({}) was opened before this process was forked, and has stayed with its parent: fork "
                            "before the first device is opened, or start another program in the child",
                            info_.name, info_.adapter));
  if (detached())
    throw Error(ErrorKind::device_lost,
                fmt::format("{} ({}) was detached: its owner has it back, and all that weft had there is gone",
                            info_.name, info_.adapter));
  std::lock_guard lock(lost_mutex_);
  throw Error(ErrorKind::device_lost, fmt::format("{} ({}) stopped answering in {} ({}); open it again to go on",
                                                  info_.name, info_.adapter, lost_in_, to_string(lost_with_)));
}

}  // namespace vulkan
}  // namespace weft::backend
