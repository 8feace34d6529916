// Relocations: how an address gets into an instruction or into data.
#pragma once
#include <cstddef>
#include <cstdint>

#include "processor.h"

namespace weft::backend::native {

/// The bytes that a relocation of this type changes; 0 if it is none of those that code without a table of addresses
/// (GOT) has.
std::size_t relocated_bytes(Machine machine, std::uint32_t type);

/// Writes the address `value` to `place`, which will be at the address `at`, as the type says.
/// \return false if the value does not fit
bool apply_relocation(Machine machine, std::uint32_t type, std::byte* place, std::uint64_t at, std::uint64_t value);

}  // namespace weft::backend::native
