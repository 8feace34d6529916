// A renderer's device with weft on it.
#pragma once
#include <gtest/gtest.h>
#include <weft/vulkan.h>
#include <weft/weft.h>

#include <atomic>

#include "renderer.h"

namespace weft::test {

/// The handles with which the renderer made its device.
inline VulkanHandles handles_of(Renderer& r) {
  VulkanHandles h;
  h.instance = r.instance;
  h.physical_device = r.physical;
  h.device = r.device;
  h.queue = r.queue;
  h.queue_family = r.family;
  h.api_version = Renderer::kVersion;
  h.extensions = r.extensions;
  h.features = &r.features;
  h.lock = [&r] { r.queue_mutex.lock(); };
  h.unlock = [&r] { r.queue_mutex.unlock(); };
  return h;
}

/// A wish for a device with all that weft uses.
inline Renderer::Wish wish_for_weft(bool gpu, bool semaphore_fd = false) {
  Renderer::Wish wish;
  wish.gpu = gpu;
  wish.semaphore_fd = semaphore_fd;
  wish.prepare = [](Renderer& r) {
    // The requirements stay until the end of the process, because the renderer's chain names their structs.
    static std::vector<std::unique_ptr<VulkanRequirements>> all;
    all.push_back(std::make_unique<VulkanRequirements>(r.instance, r.physical, Renderer::kVersion));
    all.back()->add_features(r.features);
    all.back()->add_extensions(r.extensions);
  };
  return wish;
}

struct Embedded {
  explicit Embedded(bool gpu, bool semaphore_fd = false)
      : renderer(wish_for_weft(gpu, semaphore_fd)), device(adopt(*this)) {}
  Renderer renderer;
  std::atomic<int> locks = 0, unlocks = 0;
  Device device;

 private:
  static Device adopt(Embedded& e) {
    VulkanHandles h = handles_of(e.renderer);
    h.lock = [&e] { e.renderer.queue_mutex.lock(), ++e.locks; };
    h.unlock = [&e] { ++e.unlocks, e.renderer.queue_mutex.unlock(); };
    return Device::adopt(h);
  }
};

}  // namespace weft::test
