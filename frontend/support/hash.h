// Hashes of bytes: the keys of caches and the checksums of their entries.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft::detail {

/// A hash of 128 bits.
struct Hash128 {
  std::uint64_t lo = 0, hi = 0;
  bool operator==(const Hash128&) const = default;
};

/// The XXH3 hash of 64 bits: the same on every machine, but no protection against an attacker.
std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);

/// The XXH3 hash of 128 bits, for keys that are trusted not to collide.
Hash128 hash128(std::span<const std::byte> bytes);
Hash128 hash128(std::string_view text);

/// The hash as 32 hexadecimal digits, the high half first.
std::string to_hex(Hash128 hash);

}  // namespace weft::detail
