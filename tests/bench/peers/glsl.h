// Hand-written GLSL as programs of a device, against which weft's kernels are measured.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "../../../backends/backend.h"

namespace weft::bench {

/// Words of SPIR-V 1.5 for Vulkan 1.2, by glslang without its optimiser: the driver's compiler gets glslang's output as
/// it is, as it gets weft's.
/// Errors: std::runtime_error with glslang's log.
std::vector<std::uint32_t> compile_glsl(const std::string& name, const std::string& text);

/// A GLSL compute shader on a device, its workgroups and its arguments, ready to be launched again and again.
class GlslKernel {
 public:
  /// \param args    the bytes of the push constants
  /// \param ranges  the memory that the shader touches, which weft's launch finds out by itself
  template <class Args>
  GlslKernel(backend::Device& device, std::string name, const std::string& text, backend::Grid grid, const Args& args,
             std::vector<backend::MemoryRange> ranges)
      : name_(std::move(name)), grid_(grid), ranges_(std::move(ranges)) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&args);
    args_.assign(bytes, bytes + sizeof args);
    load(device, text);
  }

  const std::string& name() const { return name_; }
  void launch(backend::Stream& stream) const { stream.launch(*program_, grid_, args_, ranges_); }

 private:
  void load(backend::Device& device, const std::string& text);

  std::string name_;
  backend::Grid grid_;
  std::vector<std::byte> args_;
  std::vector<backend::MemoryRange> ranges_;
  std::shared_ptr<backend::Program> program_;
};

}  // namespace weft::bench
