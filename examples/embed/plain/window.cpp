// Opens a window by GLFW, or reports that the program was built without it.
#include "window.h"

#include <stdexcept>
#include <string>

#ifdef WEFT_EXAMPLES_GLFW
#include <GLFW/glfw3.h>

struct Window::State {
  GLFWwindow* window = nullptr;
  State() {
    if (!glfwInit()) fail("there is no display to open a window on");
  }
  ~State() { glfwTerminate(); }
  [[noreturn]] static void fail(const std::string& what) {
    const char* why = nullptr;
    glfwGetError(&why);
    throw std::runtime_error("--window: " + what + (why ? " (" + std::string(why) + ")" : ""));
  }
};

Window::Window(int width, int height, const char* title) : state_(std::make_unique<State>()) {
  if (!glfwVulkanSupported()) State::fail("the display does not show what Vulkan draws");
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  glfwWindowHint(GLFW_RESIZABLE, GLFW_FALSE);
  state_->window = glfwCreateWindow(width, height, title, nullptr, nullptr);
  if (!state_->window) State::fail("no window opens");
}
Window::~Window() = default;

std::vector<const char*> Window::extensions() const {
  std::uint32_t count = 0;
  const char** names = glfwGetRequiredInstanceExtensions(&count);
  if (!names) State::fail("the display does not show what Vulkan draws");
  return {names, names + count};
}

VkSurfaceKHR Window::make_surface(VkInstance instance) const {
  VkSurfaceKHR surface = VK_NULL_HANDLE;
  if (glfwCreateWindowSurface(instance, state_->window, nullptr, &surface) != VK_SUCCESS)
    State::fail("the window has no surface");
  return surface;
}

bool Window::is_open() {
  glfwPollEvents();
  return !glfwWindowShouldClose(state_->window);
}

#else

struct Window::State {};

Window::Window(int, int, const char*) {
  throw std::runtime_error("--window: this program was built without GLFW (Debian: libglfw3-dev)");
}
Window::~Window() = default;
std::vector<const char*> Window::extensions() const { return {}; }
VkSurfaceKHR Window::make_surface(VkInstance) const { return VK_NULL_HANDLE; }
bool Window::is_open() { return false; }

#endif
