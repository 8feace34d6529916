// Whether the tests of geometry run at full sizes.
#pragma once
#include <cstdlib>

namespace weft::test {

/// Full sizes are for runs by hand, of half an hour: see docs/CONTRIBUTING.md
inline bool full_sizes() { return std::getenv("WEFT_GEOMETRY_FULL") != nullptr; }

}  // namespace weft::test
