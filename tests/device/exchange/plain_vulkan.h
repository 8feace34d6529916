// A small program in plain Vulkan that launches exported kernels. It knows the loader, and nothing else of weft.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../../../loader/loader.h"

namespace weft::test {

/// A device of its own on which only the requirements of one kernel are turned on, under the validation layer, which
/// reports any requirement that the kernel leaves out.
class PlainVulkan {
 public:
  /// \param gpu  on a GPU; otherwise on a software device
  /// Throws std::runtime_error that names what the device lacks.
  PlainVulkan(const weft_kernel* kernel, bool gpu);
  ~PlainVulkan();
  PlainVulkan(const PlainVulkan&) = delete;
  PlainVulkan& operator=(const PlainVulkan&) = delete;

  struct Memory {
    std::uint64_t address = 0;
    std::byte* host = nullptr;
    std::size_t bytes = 0;
  };
  /// Mapped memory, zeros, until the end of this object.
  Memory allocate(std::size_t bytes);
  /// Dispatches the kernel and waits.
  void run(std::span<const std::byte> block, weft_groups groups);
  std::uint32_t max_groups_x() const;
  /// Whether there is a validation layer, and its messages.
  bool validated() const;
  const std::vector<std::string>& messages() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::test
