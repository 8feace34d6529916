// Data of structures, thread by thread: they are known by the memory of which they have an array.
#include "taken_structures.h"

#include <algorithm>
#include <unordered_map>

#include "state.h"

namespace weft::detail::taken_structures {

namespace {
struct Taken {
  std::unordered_map<std::uint64_t, FormUse> by_memory;  ///< see Form::memory
  std::size_t pruned = 64;
};
thread_local Taken t_taken;
thread_local int t_building = 0;
}  // namespace

Building::Building() { ++t_building; }
Building::~Building() { --t_building; }

void note(const FormUse& use) {
  Taken& t = t_taken;
  t.by_memory.insert_or_assign(use.form.memory[0], use);
  if (t.by_memory.size() < t.pruned) return;
  // Those that are gone, and that nothing which was captured asks for.
  std::erase_if(t.by_memory, [](const auto& known) { return known.second.cell.use_count() == 1; });
  t.pruned = std::max<std::size_t>(64, 2 * t.by_memory.size());
}

std::vector<FormUse> among(std::span<const HostArg> args, const GivenStructures* given) {
  std::vector<FormUse> uses;
  if (given) uses.assign(given->forms().begin(), given->forms().end());
  if (t_building > 0 || t_taken.by_memory.empty()) return uses;
  for (const HostArg& arg : args) {
    if (!arg.array || arg.array->is_null()) continue;
    const auto known = t_taken.by_memory.find(arg.array->storage()->serial);
    if (known == t_taken.by_memory.end()) continue;
    const auto same = [&](const FormUse& u) { return u.cell == known->second.cell; };
    if (std::ranges::none_of(uses, same)) uses.push_back(known->second);
  }
  return uses;
}

}  // namespace weft::detail::taken_structures
