// A window, by GLFW where that is there.
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

  /// What a surface asks of the instance.
  std::vector<const char*> extensions() const;
  VkSurfaceKHR make_surface(VkInstance instance) const;
  /// Takes what has happened to the window; false when it was closed.
  bool is_open();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
