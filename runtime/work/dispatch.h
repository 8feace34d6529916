// A launch of a compiled kernel whose arguments were checked: to the stream, in as many dispatches as it takes.
// Internal to the runtime.
#pragma once
#include <functional>

#include "../core/generation.h"
#include "../core/state.h"
#include "../launch.h"

namespace weft::detail {

struct Dispatch {
  const LoadedProgram& program;
  StreamState& on;
  const Extent& threads;
  std::int64_t count;             ///< of threads, more than 0
  std::span<const HostArg> args;  ///< by parameter of the program
  std::int64_t steps;             ///< of the first dimension in one dispatch: see steps_per_dispatch()
  /// Threads of a dispatch at most, whatever `steps` says; parameter `first_thread`, a u32, gets the number of the
  /// first of them, counted from where the step begins.
  std::int64_t lanes = INT64_MAX;
  std::size_t first_thread = SIZE_MAX;
  /// Called between steps, in which threads are numbered from 0 again.
  std::function<void()> between = {};
  /// What is read besides what the arguments are known to lead to.
  std::span<const std::shared_ptr<Storage>> reads = {};
  std::span<const StructureUse> uses = {};  ///< structures by value among the arguments
  bool moves_elements = false;              ///< see KernelCore
  Loc launched = {};                        ///< where in the host's code
};

/// How many steps of the first dimension (threads, when the kernel asks for no coordinates) one dispatch takes.
/// Errors: Error(unsupported) for a launch that is too large for how the kernel counts.
std::int64_t steps_per_dispatch(const DeviceState& device, const ir::Interface& i, const Extent& threads,
                                std::int64_t count);

void dispatch(const Dispatch& work);

/// The argument block of a launch in one dispatch, and what it touches.
struct PackedLaunch {
  struct Touched {
    const ArrayBase* array;
    std::size_t parameter;
    ir::Access access;
  };
  std::vector<std::byte> block;
  std::vector<Touched> arrays;
};
PackedLaunch pack(const ir::Interface& call, std::span<const HostArg> args, const Extent& threads, std::int64_t count);

/// What messages call a part of an argument: "argument 2", "argument 2.points".
std::string argument_name(const HostArg& arg);

}  // namespace weft::detail
