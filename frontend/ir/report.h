// Reports of a running kernel: the table of its messages, and the buffer that carries their values to the host.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../support/loc.h"
#include "type.h"

namespace weft::ir {

/// A part of a message: a text, or the place of a value that each record carries.
struct MessagePiece {
  std::string text;           ///< of a text
  Type type = Type::none;     ///< of a value's scalars; none for a text
  std::uint32_t rows = 1;     ///< of a value
  std::uint32_t columns = 1;  ///< of a value; 1 for scalars and vectors
  bool joined = false;        ///< no blank stands before it
  bool composite = false;     ///< a vector or matrix, even of one component
  bool is_text() const { return type == Type::none; }
  std::uint32_t scalars() const { return is_text() ? 0 : rows * columns; }
  /// 32-bit words in a record: one for each scalar, two for those of 64 bits.
  std::uint32_t words() const { return scalars() * (bits(type) == 64 ? 2 : 1); }
};

/// A message of a kernel: a print(), an assert_() or a check of debug mode in its source, or a failure that its adjoint
/// finds.
struct Message {
  enum class Kind : std::uint8_t {
    print,       ///< pieces: the texts and values that are printed
    assertion,   ///< pieces: the text and values that explain it
    index,       ///< pieces: the array's name, then for each dimension the index and the extent
    range,       ///< pieces: the array's name, then lo, hi, step and the extent
    division,    ///< pieces: "division" or "remainder", the dividend
    not_finite,  ///< pieces: the array's name, its indices, then the value
    gradient,    ///< of an adjoint; pieces: the thing that has no gradient, and why
  };
  Kind kind = Kind::print;
  std::vector<MessagePiece> pieces;
  Loc loc;

  bool is_failure() const { return kind != Kind::print; }
  /// The length of a record: message, launch, thread, then the values of the pieces in order.
  std::uint32_t words() const;
};

/// The buffer in which the kernels of a stream leave their records, in 32-bit words from its start.
///
/// Lines to print and failures lie apart, so that many lines hide no failure. A record takes its place by one atomic
/// addition to its part's counter; if it does not fit, it is counted as lost. A counter stops growing at 2^31, so that
/// it cannot wrap around however much is lost.
namespace report {
inline constexpr std::uint32_t kPrintsUsed = 0;     ///< counter: words
inline constexpr std::uint32_t kFailuresUsed = 1;   ///< counter: words
inline constexpr std::uint32_t kPrintCapacity = 2;  ///< words for lines; written by the host
inline constexpr std::uint32_t kFailuresLost = 3;   ///< number of failures without record
inline constexpr std::uint32_t kPrintsLost = 16;  ///< lines without record, by the number that the host gave the kernel
inline constexpr std::uint32_t kLostSlots = 240;
inline constexpr std::uint32_t kHeaderWords = kPrintsLost + kLostSlots;
inline constexpr std::uint32_t kFailures = kHeaderWords;  ///< start of the failures
inline constexpr std::uint32_t kPrints = 16384;           ///< start of the lines
inline constexpr std::uint32_t kFailureCapacity = kPrints - kFailures;
inline constexpr std::uint32_t kEnd = ~0u;             ///< in place of a message: no record follows
inline constexpr std::uint32_t kHighWater = 1u << 31;  ///< additions to a counter from here on are taken back
inline constexpr std::uint32_t kRecordHead = 3;        ///< words before a record's values

/// The bytes that reports take in the argument block, at Interface::report_offset: u64 address of the buffer, u32
/// number of the launch, u32 number of the kernel among those that share kPrintsLost.
inline constexpr std::uint32_t kArgumentBytes = 16;
}  // namespace report

}  // namespace weft::ir
