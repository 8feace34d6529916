// Checks the structures among the arguments of a thread's launches, and notes them.
#include "../detail/given_structures.h"

#include <utility>
#include <vector>

#include "../../frontend/support/invalid.h"
#include "../core/context.h"
#include "../core/generation.h"

namespace weft::detail {

struct GivenStructures::List {
  std::vector<StructureUse> uses;
};

GivenStructures::GivenStructures(For what) : before_(std::exchange(Context::here().given, this)), for_(what) {}

GivenStructures::~GivenStructures() { close(); }

void GivenStructures::close() {
  if (std::exchange(open_, false)) Context::here().given = before_;
}

GivenStructures* GivenStructures::current() { return Context::here().given; }

void GivenStructures::note(const StructureUse& use) {
  if (!list_) list_ = std::make_unique<List>();
  list_->uses.push_back(use);
}

std::span<const StructureUse> GivenStructures::uses() const {
  return list_ ? std::span<const StructureUse>(list_->uses) : std::span<const StructureUse>();
}

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
