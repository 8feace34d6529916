// A window, by GLFW if that is available.
#pragma once
#include <volk.h>

#include <memory>
#include <vector>

/// Errors: std::runtime_error when the program was built without GLFW, or there is no display to open a window on.
class Window {
 public:
  Window(int width, int height, const char* title);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// The instance extensions that a surface needs.
  std::vector<const char*> extensions() const;
  VkSurfaceKHR make_surface(VkInstance instance) const;
  /// Handles the events of the window; false once it was closed.
  bool is_open();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
