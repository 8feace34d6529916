// Structures whose data were taken by themselves, to be given to launches later. Internal to the runtime.
#pragma once
#include <vector>

#include "form.h"
#include "launch.h"

namespace weft::detail::taken_structures {

/// This thread takes the data, not for an argument of a launch. Of a structure that is taken again the last time
/// counts.
void note(const FormUse& use);

/// While it lives, this thread builds or refits a structure: its launches do not ask for what is there.
class Building {
 public:
  Building();
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  ~Building();
};

/// The structures that a launch is given: those among its arguments, and those of which arguments are data that this
/// thread has taken before.
/// Cost: of the latter, a search for each array, where any was ever taken.
std::vector<FormUse> among(std::span<const HostArg> args, const GivenStructures* given);

}  // namespace weft::detail::taken_structures
