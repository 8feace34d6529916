// Computes the numbers of structures' data, and checks the data that launches are given.
#include "generation.h"

#include <fmt/format.h>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../detail/given_structures.h"
#include "context.h"
#include "state.h"

namespace weft::detail {

GenerationNumber& GenerationNumber::add(const ArrayBase& a) {
  if (a.is_null()) return add(0);
  add(a.storage()->serial).add(a.address());
  for (int k = 0; k < a.ndim(); ++k) add(std::uint64_t(a.shape(k))).add(std::uint64_t(a.stride(k)));
  return *this;
}

std::string StructureUse::what() const { return fmt::format("{} of {} {}", structure->name, size, structure->of); }

void use_structure(const StructureUse& use) {
  if (Context::here().makes_structure) return;
  GivenStructures* const given = GivenStructures::current();
  const bool later = Context::here().capture || (given && given->is_for_graph());
  if (!later && !use.holds())
    invalid(
        "{} is not what the device holds: the graph that builds it has not run, its build failed, or it was built "
        "otherwise after this copy of its data was taken (of which no array is exchanged for another). Launch the "
        "graph before, build it, or take the data anew",
        use.what());
  if (given && (later || Context::here().recorder)) given->note(use);
}

}  // namespace weft::detail
