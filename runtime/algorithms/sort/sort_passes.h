// The passes of the radix sort, and how keys are ordered by their bits. Internal to the runtime.
#pragma once
#include "../common/call.h"

namespace weft::detail {

/// How the bits of a key order it.
enum class KeyOrder { without_sign, with_sign, real };
KeyOrder order_of(ir::Type type);

/// Bits whose unsigned order is that of the keys. Equal for -0 and 0; all set for NaNs.
template <class B>
Var<B> ordered_bits(const Var<B>& key, KeyOrder order) {
  constexpr int width = 8 * sizeof(B);
  constexpr B sign = B(1) << (width - 1), infinity = sizeof(B) == 4 ? B(0x7f800000u) : B(0x7ffull << (width - 12));
  if (order == KeyOrder::without_sign) return key;
  if (order == KeyOrder::with_sign) return key ^ sign;
  const Var<B> magnitude = key & B(~sign);
  const Bool negative = (key & sign) != B(0) && magnitude != B(0);
  return select(magnitude > infinity, B(~B(0)), select(negative, ~key, magnitude | sign));
}

inline constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;
/// Passes over so many bits, by digits of about the same width: 12 bits are two of 6.
constexpr int digit_passes(int bits) { return (bits + kDigitBits - 1) / kDigitBits; }
/// The width of the next digit, given the remaining bits and passes. Takes numbers, or traced ones.
template <class I>
I digit_width(const I& bits, const I& passes) {
  return (bits + passes - 1) / passes;
}

/// One pass: the keys' source, their destination, and the digit.
template <class B, class V>
struct SortPass {
  Array<B> keys, sorted_keys;
  Array<V> values, sorted_values;  ///< arbitrary if there are none
  KeyOrder order;
  int shift, bits;
};

// Fine grain: sort_tiles.cpp. Both files of fine grain share sort_tile.h.

/// The least length of a column, for which the scratch memory is made.
inline constexpr std::int64_t kLeastColumn = 2048;

/// Limits that determine the shapes of tiles and columns, beside the device. Tests change them, while nothing is
/// sorted, to reach with few keys code that otherwise takes many.
struct SortLimits {
  int most_threads = 256;                    ///< of a tile
  int most_rounds = 22;                      ///< keys of a thread, see most_rounds()
  int lone_threads = 512;                    ///< of a tile that has all keys
  std::int64_t few_tiles = 192;              ///< if there would be fewer, tiles are small
  std::int64_t least_column = kLeastColumn;  ///< the least: a column has as many tiles as that takes
  bool lone_tile = true;                     ///< keys for which a tile has room are sorted as one
};
SortLimits& sort_limits();

/// The shape of a tile's workgroup.
struct TileShape {
  int lanes = 0;      ///< of a subgroup
  int subgroups = 0;  ///< of a workgroup
  int rounds = 0;     ///< keys of a thread
  bool operator==(const TileShape&) const = default;
};
/// The tiles of a sort, and the division of the keys into columns of tiles.
struct FineShape {
  TileShape tile;
  std::int64_t columns = 0;  ///< each has kLeastColumn keys or more, except the last
  std::int64_t tiles = 0;    ///< of a column
  bool operator==(const FineShape&) const = default;
};

/// Whether the device's subgroups and workgroups allow fine grain.
bool sorts_fine(const DeviceState& device);
/// \param element_bytes  of keys or values, whichever are larger
FineShape fine_shape(const DeviceState& device, int element_bytes, std::int64_t n);
/// Counts digits: counts[digit * columns + column].
template <class B>
void count_fine(const AlgorithmCall& call, const FineShape& shape, const Array<B>& keys, KeyOrder order, int shift,
                int bits, const Array<unsigned>& counts);
/// Scans the counts of each digit separately; `totals` receives the digit's count in all columns.
void scan_fine(const AlgorithmCall& call, const FineShape& shape, int bits, const Array<unsigned>& counts,
               const Array<unsigned>& totals);
/// Moves the keys, and any values, to the places that `counts` and `totals` give.
template <class B, class V>
void scatter_fine(const AlgorithmCall& call, const FineShape& shape, const SortPass<B, V>& pass, bool pairs,
                  const Array<unsigned>& starts, const Array<unsigned>& totals);

// Few keys, fine grain: sort_lone_tile.cpp.

/// The tile that has room for `n` keys; without rounds if there is none or SortLimits disable it. Arguments as above.
TileShape lone_tile(const DeviceState& device, int element_bytes, std::int64_t n);
/// sort_elements() by one launch of one workgroup. Takes no scratch memory.
template <class B, class V>
void sort_lone_tile(const AlgorithmCall& call, const TileShape& shape, const Array<B>& keys, const Array<V>& values,
                    bool pairs, KeyOrder order, int begin, int end);

// Processors: sort_scalar.cpp.

/// Keys of a column, so many that the counters of 256 digits are a small part of them.
inline constexpr std::int64_t kScalarColumn = 1 << 14;
/// Whether one thread sorts all of so many keys.
bool sorts_alone(const AlgorithmCall& call, std::int64_t n);
/// sort_elements() by one launch of one thread.
template <class B, class V>
void sort_alone(AlgorithmCall& call, const Array<B>& keys, const Array<V>& values, bool pairs, KeyOrder order,
                int begin, int end);
/// Counts digits: counts[digit * columns + column].
template <class B>
void count_scalar(const AlgorithmCall& call, const Array<B>& keys, KeyOrder order, int shift, int bits,
                  const Array<unsigned>& counts, std::int64_t columns);
/// Moves the keys, and any values, to the places that the scanned counts give.
template <class B, class V>
void move_scalar(const AlgorithmCall& call, const SortPass<B, V>& pass, bool pairs, const Array<unsigned>& starts,
                 std::int64_t columns);

// Few keys, coarse grain: sort_small.cpp.

inline constexpr std::int64_t kSmallSort = 1 << 14;    ///< the most keys
inline constexpr std::int64_t kSmallSortColumns = 16;  ///< one per thread
/// sort_elements() by one launch of one workgroup.
template <class B, class V>
void sort_small(AlgorithmCall& call, const Array<B>& keys, const Array<V>& values, bool pairs, KeyOrder order,
                int begin, int end);

/// Sorts by bits [begin, end) of the keys' order. \param pairs  whether there are values
template <class B, class V>
void sort_elements(AlgorithmCall& call, const Array<B>& keys, const Array<V>& values, bool pairs, KeyOrder order,
                   int begin, int end);
/// Scratch memory that sort_elements() takes, for any grain.
std::uint64_t sort_scratch(std::int64_t n, std::uint32_t key_bytes, std::uint32_t value_bytes);

}  // namespace weft::detail
