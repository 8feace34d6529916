// Notes the structures among the arguments of a thread's launches.
#include "../detail/given_structures.h"

#include <utility>
#include <vector>

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

}  // namespace weft::detail
