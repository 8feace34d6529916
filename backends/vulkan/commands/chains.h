// Launches of a graph that one shader makes: small ones, each of which waits for the one before.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../../operations.h"

namespace weft::backend::vulkan {

class Commands;
class VulkanDevice;
class VulkanProgram;

/// Operations [first, last) of a list, all of them launches of one workgroup. See spirv::emit_chain().
struct Chain {
  std::size_t first = 0, last = 0;
  std::vector<const VulkanProgram*> kernels;       ///< each once
  std::vector<std::uint32_t> which;                ///< by step, an index into `kernels`
  std::vector<std::vector<std::uint32_t>> places;  ///< of a round: indices into `kernels`
  std::uint32_t threads = 0;                       ///< of the launch that has most, rounded up
};

/// A step costs less than a dispatch with its barrier, and a shader must be made for it first: this many launches in a
/// row are worth it. A chain has no more steps than `kMostSteps`: a dispatch more is little beside so many, and devices
/// with a display stop a dispatch that runs too long.
inline constexpr std::size_t kLeastSteps = 16, kMostSteps = 256;

/// The chains of a list, in order. Launches that have nothing to wait for are free to overlap, so that a row of more
/// than a few of these ends a chain. Cost: linear in the number of operations.
std::vector<Chain> find_chains(std::span<const Operation> operations, std::uint32_t max_threads);

/// The shaders of chains. Those that are in use are shared. Thread-safe.
class Chains {
 public:
  explicit Chains(VulkanDevice& device) : device_(device) {}
  /// Errors: as VulkanDevice::compile().
  std::shared_ptr<VulkanProgram> program(const Chain& chain);
  /// How many were made.
  std::uint64_t made() const;

 private:
  VulkanDevice& device_;
  mutable std::mutex mutex_;
  std::uint64_t made_ = 0;
  std::map<std::string, std::weak_ptr<VulkanProgram>> programs_;
};

/// Records a chain of `operations`. `memory` receives what must stay as long as the commands.
/// \return  by step, where the argument block of its launch is read from when the commands run
std::vector<std::uint64_t> record(VulkanDevice& device, Commands& commands, const Chain& chain,
                                  const VulkanProgram& program, std::span<const Operation> operations,
                                  std::vector<Allocation>& memory);

}  // namespace weft::backend::vulkan
