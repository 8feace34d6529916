// Structures among the arguments of a launch, thread by thread.
#include "../detail/given_structures.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "../work/context.h"
#include "../work/form.h"

namespace weft::detail {

struct GivenStructures::List {
  std::vector<FormUse> forms;
  std::vector<std::shared_ptr<std::atomic<bool>>> meshes;
};

GivenStructures::GivenStructures(For what) : before_(std::exchange(Context::here().given, this)), for_(what) {}

GivenStructures::~GivenStructures() { close(); }

void GivenStructures::close() {
  if (std::exchange(open_, false)) Context::here().given = before_;
}

GivenStructures* GivenStructures::current() { return Context::here().given; }

void GivenStructures::note(const FormUse& use) {
  if (!list_) list_ = std::make_unique<List>();
  list_->forms.push_back(use);
}

void GivenStructures::note(const std::shared_ptr<std::atomic<bool>>& mesh) {
  if (!list_) list_ = std::make_unique<List>();
  if (!std::ranges::count(list_->meshes, mesh)) list_->meshes.push_back(mesh);
}

std::span<const FormUse> GivenStructures::forms() const {
  return list_ ? std::span<const FormUse>(list_->forms) : std::span<const FormUse>();
}

std::span<const std::shared_ptr<std::atomic<bool>>> GivenStructures::meshes() const {
  return list_ ? std::span<const std::shared_ptr<std::atomic<bool>>>(list_->meshes)
               : std::span<const std::shared_ptr<std::atomic<bool>>>();
}

}  // namespace weft::detail
