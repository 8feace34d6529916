// A small renderer in plain Vulkan, which knows nothing of weft: it draws points of a vertex buffer as balls, into an
// image and into a window.
#pragma once
#include <volk.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

/// The data of a point in the vertex buffer.
struct Point {
  float place[3];
  float colour[3];
};

/// A camera that looks along -z from (0, height, distance).
struct PointCamera {
  float height = 1, distance = 5;
  float zoom = 2;  ///< cotangent of half the angle from top to bottom
};

struct RendererSetup {
  std::string device;  ///< "software", "gpu", or empty: a GPU if there is one
  int width = 640, height = 360;
  std::uint32_t num_points = 0;
  float radius = 0.02f;
  PointCamera camera;
  bool validate = false;
  /// The window to draw into: the instance extensions of its system, and a function that makes its surface. Empty:
  /// none.
  std::vector<const char*> surface_extensions;
  std::function<VkSurfaceKHR(VkInstance)> make_surface;
  /// Called for other parts of the program that are to use the device, with the features and extensions with which it
  /// is going to be made.
  std::function<void(VkInstance, VkPhysicalDevice, VkPhysicalDeviceFeatures2&, std::vector<const char*>&)> guest;
};

/// Errors: std::runtime_error naming what is missing, or the call that failed.
class Renderer {
 public:
  static constexpr std::uint32_t kApiVersion = VK_API_VERSION_1_2;
  static constexpr int kFrames = 2;  ///< frames that are being recorded or in flight at once
  /// Points are drawn, filled by copies and by shaders that know the address, and read back.
  static constexpr VkBufferUsageFlags kPointUsage =
      VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
      VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

  explicit Renderer(const RendererSetup& setup);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical_device() const { return physical_; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }
  std::uint32_t queue_family() const { return family_; }
  const VkPhysicalDeviceFeatures2& features() const { return features_; }
  const std::vector<const char*>& extensions() const { return extensions_; }
  /// The lock to hold around every use of the queue.
  std::mutex& queue_mutex() { return queue_mutex_; }
  std::string device_name() const;

  /// The vertex buffer: `num_points` of Point.
  VkBuffer points() const { return points_; }
  VkBufferUsageFlags point_usage() const { return kPointUsage; }

  /// Begins a frame and returns its number among the kFrames. Its command buffer is no longer in use.
  int begin_frame();
  /// Records and submits the frame. `before` may record commands that come before the drawing.
  void end_frame(const std::function<void(VkCommandBuffer)>& before);
  /// The semaphore, which has the value submitted() when the last frame is done.
  VkSemaphore timeline() const { return timeline_; }
  std::uint64_t submitted() const { return submitted_; }

  /// The pixels of the last frame, in rows from the top; the bytes of a pixel from the lowest are red, green, blue,
  /// alpha.
  std::vector<std::uint32_t> picture();
  /// A buffer of the device, which lives as long as the renderer.
  VkBuffer make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage);
  /// These copy to a buffer (VK_BUFFER_USAGE_TRANSFER_DST_BIT) and from one (_SRC_BIT), after all submitted work. They
  /// wait.
  void write(VkBuffer to, const void* from, std::size_t bytes);
  void read(VkBuffer from, void* to, std::size_t bytes);
  void wait_idle();
  /// The number of messages of the validation layer so far.
  int messages() const { return messages_; }

 private:
  struct Buffer {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
  };
  struct Image {
    VkImage image = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkImageView view = VK_NULL_HANDLE;
  };
  struct Frame {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkSemaphore acquired = VK_NULL_HANDLE;
    std::uint64_t value = 0;
  };

  // These are in renderer_device.cpp.
  void make_instance(const RendererSetup& setup);
  void choose_device(const std::string& wish);
  void make_device(const RendererSetup& setup);
  std::uint32_t memory_type(std::uint32_t usable, VkMemoryPropertyFlags wanted) const;
  Buffer make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage, VkMemoryPropertyFlags memory);
  void destroy(const Buffer& buffer);
  void make_image(Image& made, VkFormat format, VkImageUsageFlags usage, VkImageAspectFlags aspect);
  VkSemaphore make_semaphore(bool timeline);
  void destroy();
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                                   VkDebugUtilsMessageTypeFlagsEXT,
                                                   const VkDebugUtilsMessengerCallbackDataEXT*, void*);
  // These are in renderer_draw.cpp.
  void make_pass();
  void make_pipeline();
  void draw(VkCommandBuffer commands);
  // These are in renderer_transfer.cpp.
  std::byte* stage(VkDeviceSize bytes);
  void run_now(const std::function<void(VkCommandBuffer)>& record);
  // These are in renderer_window.cpp.
  void make_swapchain();
  void destroy_swapchain();
  bool acquire(VkSemaphore acquired, std::uint32_t& target);
  void show(VkCommandBuffer commands, VkImage target);
  void present(std::uint32_t target);

  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::atomic<int> messages_{0};
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkPhysicalDeviceFeatures2 features_{};
  VkPhysicalDeviceVulkan12Features features12_{};
  std::vector<const char*> extensions_;
  VkDevice device_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;

  std::uint32_t width_, height_, num_points_;
  float radius_;
  PointCamera camera_;
  Buffer staging_;
  VkDeviceSize staging_bytes_ = 0;
  std::byte* staged_ = nullptr;  ///< its address on the host
  std::vector<Buffer> buffers_;
  VkBuffer points_ = VK_NULL_HANDLE;
  Image colour_, depth_;
  VkRenderPass pass_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  std::array<Frame, kFrames> frames_{};
  int frame_ = 0;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::uint64_t submitted_ = 0;

  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  VkExtent2D shown_{};
  std::vector<VkImage> targets_;
  std::vector<VkSemaphore> drawn_;  ///< one for each target
};

/// Checks a result. Errors: std::runtime_error unless it is a success.
void check(VkResult result, const char* call);
