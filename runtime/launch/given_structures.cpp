// Checks the structures among the arguments of a launch, and notes them.
#include "../detail/given_structures.h"

#include "../../frontend/support/invalid.h"
#include "../core/context.h"

namespace weft::detail {

void GivenStructures::add(const StructureUse& use) {
  const Context& context = Context::here();
  if (!use.structure || context.makes_structure) return;
  const bool later = context.capture || for_ == For::graph;
  if (!later && !use.holds())
    invalid(
        "{} is not what the device holds: the graph that builds it has not run, its build failed, or it was built "
        "otherwise after this copy of its data was taken (of which no array is exchanged for another). Launch the "
        "graph before, build it, or take the data anew",
        use.what());
  if (later || context.recorder) uses_.push_back(use);
}

}  // namespace weft::detail
