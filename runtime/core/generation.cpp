// Computes the numbers of structures' data.
#include "generation.h"

#include <fmt/format.h>

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

}  // namespace weft::detail
