// Hashes of bytes: the keys of caches and the checksums of their entries.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft {

/// 128 bits of hash.
struct Hash128 {
  std::uint64_t lo = 0, hi = 0;
  bool operator==(const Hash128&) const = default;
};

/// XXH3 of 64 bits. The same on every machine; not meant against an attacker.
std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);

/// XXH3 of 128 bits: for keys that are trusted not to collide.
Hash128 hash128(std::span<const std::byte> bytes);
Hash128 hash128(std::string_view text);

/// 32 hexadecimal digits, the high half first.
std::string to_hex(Hash128 hash);

}  // namespace weft
