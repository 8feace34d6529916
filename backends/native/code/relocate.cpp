// The relocations of x86-64 (psABI, table 4.9) and AArch64 (ELF for the Arm 64-bit Architecture, section 5.7).
#include "relocate.h"

#include <cstring>

namespace weft::backend::native {

namespace {

enum X86 : std::uint32_t { kAbs64 = 1, kPc32 = 2, kPlt32 = 4, kPc64 = 24 };

enum Arm : std::uint32_t {
  kArmAbs64 = 257,
  kArmPrel64 = 260,
  kArmPrel32 = 261,
  kAdr = 274,       // adr: 21 bits of distance
  kAdrPage = 275,   // adrp: 21 bits of distance in pages of 4 KiB
  kAddLow12 = 277,  // add: the low 12 bits
  kLoadLow8 = 278,  // loads and stores: the low 12 bits in units of their size
  kJump26 = 282,    // b: 26 bits of distance in instructions
  kCall26 = 283,    // bl
  kLoadLow16 = 284,
  kLoadLow32 = 285,
  kLoadLow64 = 286,
  kLoadLow128 = 299
};

template <class T>
void write(std::byte* place, T value) {
  std::memcpy(place, &value, sizeof value);
}

bool fits(std::int64_t value, int bits) {
  return value >= -(std::int64_t(1) << (bits - 1)) && value < std::int64_t(1) << (bits - 1);
}

bool write_distance32(std::byte* place, std::int64_t distance) {
  if (!fits(distance, 32)) return false;
  write(place, static_cast<std::int32_t>(distance));
  return true;
}

// Replaces `bits` bits of an instruction, from bit `first` on.
void set_bits(std::byte* place, int first, int bits, std::uint64_t value) {
  std::uint32_t instruction;
  std::memcpy(&instruction, place, sizeof instruction);
  const std::uint32_t mask = ((std::uint32_t(1) << bits) - 1) << first;
  write(place, (instruction & ~mask) | (static_cast<std::uint32_t>(value << first) & mask));
}

// adr and adrp keep the two low bits of their immediate apart.
bool set_adr(std::byte* place, std::int64_t value) {
  if (!fits(value, 21)) return false;
  set_bits(place, 29, 2, static_cast<std::uint64_t>(value));
  set_bits(place, 5, 19, static_cast<std::uint64_t>(value >> 2));
  return true;
}

bool set_low12(std::byte* place, std::uint64_t value, int unit) {
  const std::uint64_t low = value & 0xfff;
  if (low & ((std::uint64_t(1) << unit) - 1)) return false;
  set_bits(place, 10, 12, low >> unit);
  return true;
}

bool apply_arm(std::uint32_t type, std::byte* place, std::uint64_t at, std::uint64_t value) {
  const auto distance = static_cast<std::int64_t>(value - at);
  switch (type) {
    case kArmAbs64: write(place, value); return true;
    case kArmPrel64: write(place, distance); return true;
    case kArmPrel32: return write_distance32(place, distance);
    case kAdr: return set_adr(place, distance);
    case kAdrPage: return set_adr(place, static_cast<std::int64_t>((value & ~0xfffull) - (at & ~0xfffull)) >> 12);
    case kAddLow12:
    case kLoadLow8: return set_low12(place, value, 0);
    case kLoadLow16: return set_low12(place, value, 1);
    case kLoadLow32: return set_low12(place, value, 2);
    case kLoadLow64: return set_low12(place, value, 3);
    case kLoadLow128: return set_low12(place, value, 4);
    case kJump26:
    case kCall26:
      if (distance % 4 != 0 || !fits(distance, 28)) return false;
      set_bits(place, 0, 26, static_cast<std::uint64_t>(distance >> 2));
      return true;
    default: return false;
  }
}

}  // namespace

std::size_t relocated_bytes(Machine machine, std::uint32_t type) {
  if (machine == Machine::x86_64) switch (type) {
      case kAbs64:
      case kPc64: return 8;
      case kPc32:
      case kPlt32: return 4;
      default: return 0;
    }
  if (machine == Machine::aarch64) switch (type) {
      case kArmAbs64:
      case kArmPrel64: return 8;
      case kArmPrel32:
      case kAdr:
      case kAdrPage:
      case kAddLow12:
      case kLoadLow8:
      case kJump26:
      case kCall26:
      case kLoadLow16:
      case kLoadLow32:
      case kLoadLow64:
      case kLoadLow128: return 4;
      default: return 0;
    }
  return 0;
}

bool apply_relocation(Machine machine, std::uint32_t type, std::byte* place, std::uint64_t at, std::uint64_t value) {
  if (machine == Machine::aarch64) return apply_arm(type, place, at, value);
  const auto distance = static_cast<std::int64_t>(value - at);
  switch (type) {
    case kAbs64: write(place, value); return true;
    case kPc64: write(place, distance); return true;
    case kPc32:
    case kPlt32: return write_distance32(place, distance);
    default: return false;
  }
}

}  // namespace weft::backend::native
