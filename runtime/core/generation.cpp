// Computes the numbers of structures' data, and checks those that launches are given.
#include "generation.h"

#include <fmt/format.h>

#include "../../frontend/support/invalid.h"
#include "context.h"
#include "state.h"

namespace weft::detail {

GenerationNumber& GenerationNumber::add(const ArrayBase& a) {
  if (a.is_null()) return add(0);
  add(a.storage()->serial).add(a.address());
  for (int k = 0; k < a.ndim(); ++k) add(std::uint64_t(a.shape(k))).add(std::uint64_t(a.stride(k)));
  return *this;
}

bool StructureUse::holds() const { return structure->held() == number; }

std::string StructureUse::what() const { return fmt::format("{} of {} {}", structure->name, size, structure->of); }

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
