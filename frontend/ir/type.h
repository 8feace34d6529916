// The IR's scalar types: their names, widths and classes.
#pragma once
#include <cstdint>

namespace weft::ir {

enum class Type : std::uint8_t { none, b1, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64 };

inline constexpr int kTypeCount = 13;

constexpr bool is_bool(Type t) { return t == Type::b1; }
constexpr bool is_signed(Type t) { return t >= Type::i8 && t <= Type::i64; }
constexpr bool is_unsigned(Type t) { return t >= Type::u8 && t <= Type::u64; }
constexpr bool is_int(Type t) { return t >= Type::i8 && t <= Type::u64; }
constexpr bool is_float(Type t) { return t >= Type::f16; }
constexpr bool is_numeric(Type t) { return t >= Type::i8; }

/// The width in bits. A boolean has one and is never stored in memory as such (arrays of bool hold bytes 0 and 1).
constexpr int bits(Type t) {
  constexpr int widths[kTypeCount] = {0, 1, 8, 16, 32, 64, 8, 16, 32, 64, 16, 32, 64};
  return widths[static_cast<int>(t)];
}

/// The size in memory, in bytes.
constexpr int bytes(Type t) { return (bits(t) + 7) / 8; }

/// All bits that a value of this type may set in its 64-bit container.
constexpr std::uint64_t mask(Type t) { return bits(t) == 64 ? ~0ull : (1ull << bits(t)) - 1; }

/// The integer type of the same width without a sign (or with one); other types as they are.
constexpr Type to_unsigned(Type t) { return is_signed(t) ? Type(int(t) + 4) : t; }
constexpr Type to_signed(Type t) { return is_unsigned(t) ? Type(int(t) - 4) : t; }

/// The printer's name: "f32", "i64", "b1", ...
constexpr const char* name(Type t) {
  constexpr const char* names[kTypeCount] = {"none", "b1",  "i8",  "i16", "i32", "i64", "u8",
                                             "u16",  "u32", "u64", "f16", "f32", "f64"};
  return names[static_cast<int>(t)];
}

/// The name that users know: "float32", "int64", "bool", ...
constexpr const char* user_name(Type t) {
  constexpr const char* names[kTypeCount] = {"nothing", "bool",   "int8",   "int16",   "int32",   "int64",  "uint8",
                                             "uint16",  "uint32", "uint64", "float16", "float32", "float64"};
  return names[static_cast<int>(t)];
}

}  // namespace weft::ir
