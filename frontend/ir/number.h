// The printed form of numbers.
#pragma once
#include <cstdint>
#include <string>

#include "type.h"

namespace weft::ir {

/// The value with these bits as people write it: "true", "-7", and for floats the fewest digits that tell it from its
/// neighbours of the same type ("0.1", "1e+20", "nan", "-inf").
std::string number_text(Type type, std::uint64_t bits);

}  // namespace weft::ir
