// A Vulkan device as a renderer would make it, for tests of weft inside of it. Knows nothing of weft.
#pragma once
#include <volk.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace weft::test {

/// An instance and a device with one queue on the software adapter (or the first that is a GPU). The instance has the
/// validation layer if that is installed and WEFT_VALIDATION is not 0; messages of the layer fail the test.
class Renderer {
 public:
  static constexpr std::uint32_t kVersion = VK_API_VERSION_1_3;
  struct Wish {
    bool gpu = false;
    /// Called with the features and extensions before the device is made.
    std::function<void(Renderer&)> prepare;
    std::uint32_t version = kVersion;
    /// Takes the validation layer's messages, which then fail nothing.
    std::vector<std::string>* messages = nullptr;
    /// Adds the layer, if it is there, that stands in for VK_KHR_external_semaphore_fd where the driver lacks it.
    bool semaphore_fd = false;
  };
  /// A plain device: whatever `prepare` turns on and nothing else. Throws std::runtime_error.
  explicit Renderer(const Wish& wish);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  bool validated = false;                        ///< the validation layer is on
  std::vector<std::string>* messages = nullptr;  ///< that of the wish
  bool semaphore_fd = false;                     ///< that of the wish
  VolkDeviceTable vk{};
  VkPhysicalDeviceFeatures2 features{};
  std::vector<const char*> extensions;
  /// Whether the adapter has an extension, with whatever the device was made.
  bool has_extension(const char* name) const;
  std::mutex queue_mutex;

  /// A buffer that shaders reach by its address, in memory of its own.
  struct Buffer {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkBufferUsageFlags usage = 0;
    std::byte* host = nullptr;
  };
  static constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  /// Makes a buffer, which lives as long as the renderer.
  Buffer make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage = kUsage);

  /// A timeline semaphore; lives as long as the renderer.
  VkSemaphore make_timeline(std::uint64_t value = 0, bool shareable = false);
  /// A file descriptor of a shareable semaphore; the caller owns it.
  int fd_of(VkSemaphore semaphore) const;
  /// Imports a semaphore that somebody else has shared. Takes the descriptor.
  VkSemaphore import_timeline(int fd);
  std::uint64_t value_of(VkSemaphore semaphore) const;
  void signal(VkSemaphore semaphore, std::uint64_t value) const;
  void wait_for(VkSemaphore semaphore, std::uint64_t value) const;

  /// A command buffer in the recording state; lives as long as the renderer.
  VkCommandBuffer begin();
  /// Ends and submits the commands, within the lock of the queue; signals the semaphore if there is one.
  void submit(VkCommandBuffer commands, VkSemaphore signal = VK_NULL_HANDLE, std::uint64_t value = 0);
  /// Submits the commands after one value of a semaphore, which then gets another.
  void submit_between(VkCommandBuffer commands, VkSemaphore semaphore, std::uint64_t from, std::uint64_t to);
  void submit_again(VkCommandBuffer commands);
  void wait_idle();
  /// Destroys the device; other calls must not follow.
  void destroy_device();

 private:
  void make(const Wish& wish);
  void destroy();

  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<Buffer> buffers_;
  std::vector<VkSemaphore> semaphores_;
};

}  // namespace weft::test
