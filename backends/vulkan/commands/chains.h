// Chains: dependent small launches of a graph that one shader runs.
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

/// Operations [first, last) of a list, each a launch of one workgroup. See spirv::emit_chain().
struct Chain {
  std::size_t first = 0, last = 0;
  std::vector<const VulkanProgram*> kernels;       ///< each once
  std::vector<std::uint32_t> which;                ///< by step, an index into `kernels`
  std::vector<std::vector<std::uint32_t>> places;  ///< by place of a round: indices into `kernels`
  std::uint32_t threads = 0;                       ///< of the largest launch, rounded up
};

/// Lengths of a chain. A step costs less than a dispatch with its barrier, but a shader must be made first: kLeastSteps
/// launches in a row are worth it. Past kMostSteps, one more dispatch is little beside the steps, and systems reset
/// devices with a display if a dispatch runs too long.
inline constexpr std::size_t kLeastSteps = 16, kMostSteps = 256;

/// The chains of a list, in order. Independent launches may overlap, so more than a few of them in a row end a chain.
/// Cost: linear in the number of operations.
std::vector<Chain> find_chains(std::span<const Operation> operations, std::uint32_t max_threads);

/// The shaders of chains, shared while they are in use. Thread-safe.
class Chains {
 public:
  explicit Chains(VulkanDevice& device) : device_(device) {}
  /// Errors: as VulkanDevice::compile().
  std::shared_ptr<VulkanProgram> program(const Chain& chain);
  /// Counts the shaders made.
  std::uint64_t made() const;

 private:
  VulkanDevice& device_;
  mutable std::mutex mutex_;
  std::uint64_t made_ = 0;
  std::map<std::string, std::weak_ptr<VulkanProgram>> programs_;
};

/// Records a chain of `operations`. `memory` receives allocations that must outlive the commands.
/// \return  by step, the address from which the commands read the argument block of its launch
std::vector<std::uint64_t> record(VulkanDevice& device, Commands& commands, const Chain& chain,
                                  const VulkanProgram& program, std::span<const Operation> operations,
                                  std::vector<Allocation>& memory);

}  // namespace weft::backend::vulkan
