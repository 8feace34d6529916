// Issues a launch of a compiled kernel with checked arguments, in as many dispatches as it takes. Internal to the
// runtime.
#pragma once
#include <functional>

#include "../core/generation.h"
#include "../core/state.h"
#include "../detail/given_structures.h"
#include "../detail/host_arg.h"
#include "../detail/sizes.h"

namespace weft::detail {

struct Dispatch {
  const LoadedProgram& program;
  StreamState& on;
  const Extent& threads;
  std::int64_t count;             ///< number of threads, more than 0
  std::span<const HostArg> args;  ///< by parameter of the program
  std::int64_t steps;             ///< of the first dimension in one dispatch: see steps_per_dispatch()
  /// The most threads of a dispatch, whatever `steps` says. Parameter number `first_thread`, a u32, gets the number of
  /// the dispatch's first thread within its step.
  std::int64_t lanes = INT64_MAX;
  std::size_t first_thread = SIZE_MAX;
  /// Called between steps, each of which numbers its threads from 0.
  std::function<void()> between = {};
  std::span<const StructureUse> uses = {};  ///< structures by value among the arguments
  bool moves_elements = false;              ///< see KernelCore
  Loc launched = {};                        ///< place in the host's code
};

void dispatch(const Dispatch& work);

/// The argument block of a launch in one dispatch, and the arrays that it accesses.
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

/// The name of a part of an argument in messages: "argument 2", "argument 2.points".
std::string argument_name(const HostArg& arg);

}  // namespace weft::detail
