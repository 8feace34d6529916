// Radix sort from the lowest digit on. A pass divides the keys into contiguous columns: each counts its digits, the
// counts are scanned digit by digit, and each column moves its keys, in their order, to where its share of each digit
// begins. No column waits for another within a launch.
//
// On the device "cpu" a column is one thread's, in scalar code: sort_scalar.cpp.
//
// With coarse grain a column is the run of one thread, whose 256 counters stay in its core's cache; if one workgroup
// has all of these threads, it makes all passes: sort_small.cpp. With fine grain a column is the tiles of a workgroup:
// sort_tiles.cpp; keys for which one tile has room are sorted by one workgroup: sort_lone_tile.cpp.
#include "../sort.h"

#include <fmt/format.h>

#include "../scan/scan_runs.h"
#include "sort_passes.h"

namespace weft::detail {

namespace {

constexpr std::int64_t kKeysPerThread = 512, kMostColumns = 4096;

// Counts of one digit are contiguous, so those of one thread are a column count apart: an odd number of cache lines,
// because otherwise they would all compete for the same places in the cache.
std::int64_t coarse_columns(std::int64_t n) {
  constexpr std::int64_t line = 16;
  return line * (std::min(ceil_div(n, line * kKeysPerThread), kMostColumns / line) | 1);
}

template <class B>
const auto& coarse_count(KeyOrder order) {
  const auto make = [](KeyOrder o) {
    return kernel("count digits",
                  [=](Arr<const B> keys, Arr<unsigned> counts, Int n, Int run, Int columns, Var<B> shift, Int digits) {
                    Int t = tid();
                    for (auto d : range(digits)) counts[d * columns + t] = 0u;
                    for (auto i : range(t * run, min(t * run + run, n))) {
                      const Var<B> digit = (ordered_bits<B>(keys[i], o) >> shift) & Var<B>(digits - 1);
                      counts[Int(digit) * columns + t] += 1u;
                    }
                  },
                  {.block = 64});
  };
  static const decltype(make(order)) all[] = {make(KeyOrder::without_sign), make(KeyOrder::with_sign),
                                              make(KeyOrder::real)};
  return all[int(order)];
}

template <class B, class V>
const auto& coarse_scatter(KeyOrder order, bool pairs) {
  const auto make = [](KeyOrder o, bool with_values) {
    return kernel("move keys",
                  [=](Arr<const B> keys, Arr<const V> values, Arr<unsigned> starts, Arr<B> sorted_keys,
                      Arr<V> sorted_values, Int n, Int run, Int columns, Var<B> shift, Int digits) {
                    Int t = tid();
                    for (auto i : range(t * run, min(t * run + run, n))) {
                      const Var<B> key = keys[i];
                      const Int digit = Int((ordered_bits<B>(key, o) >> shift) & Var<B>(digits - 1));
                      const Int counter = digit * columns + t;
                      const UInt to = starts[counter];
                      starts[counter] = to + 1u;
                      sorted_keys[to] = key;
                      if (with_values) sorted_values[to] = values[i];
                    }
                  },
                  {.block = 64});
  };
  using O = KeyOrder;
  static const decltype(make(order, pairs)) all[3][2] = {{make(O::without_sign, false), make(O::without_sign, true)},
                                                         {make(O::with_sign, false), make(O::with_sign, true)},
                                                         {make(O::real, false), make(O::real, true)}};
  return all[int(order)][pairs];
}

bool sorts_coarse(const AlgorithmCall& call) { return call.coarse() || !sorts_fine(call.device()); }

// The tile of a sort by one workgroup; without rounds if there is none.
TileShape lone_tile_of(const AlgorithmCall& call, int element_bytes, std::int64_t n) {
  return sorts_coarse(call) ? TileShape() : lone_tile(call.device(), element_bytes, n);
}

// The length of a thread's run; the last threads may have none.
std::int64_t run_of(std::int64_t n, std::int64_t columns) { return ceil_div(n, columns); }

}  // namespace

KeyOrder order_of(ir::Type type) {
  return ir::is_float(type) ? KeyOrder::real : ir::is_signed(type) ? KeyOrder::with_sign : KeyOrder::without_sign;
}

template <class B>
void count_coarse(const AlgorithmCall& call, const Array<B>& keys, KeyOrder order, int shift, int bits,
                  const Array<unsigned>& counts, std::int64_t columns) {
  call.run(coarse_count<B>(order), columns, keys, counts, keys.size(), run_of(keys.size(), columns), columns, shift,
           1 << bits);
}

template <class B, class V>
void scatter_coarse(const AlgorithmCall& call, const SortPass<B, V>& pass, bool pairs, const Array<unsigned>& starts,
                    std::int64_t columns) {
  const std::int64_t n = pass.keys.size();
  call.run(coarse_scatter<B, V>(pass.order, pairs), columns, pass.keys, pass.values, starts, pass.sorted_keys,
           pass.sorted_values, n, run_of(n, columns), columns, pass.shift, 1 << pass.bits);
}

std::uint64_t sort_scratch(std::int64_t n, std::uint32_t key_bytes, std::uint32_t value_bytes) {
  const std::int64_t coarse = n <= kSmallSort ? kSmallSortColumns : coarse_columns(n);
  const std::int64_t counts = kDigits * std::max(coarse, ceil_div(n, kLeastColumn));
  return scratch_piece(n, key_bytes) + scratch_piece(n, value_bytes) + scratch_piece(counts, sizeof(unsigned)) +
         scratch_piece(kDigits, sizeof(unsigned)) + scan_scratch(counts, sizeof(unsigned));
}

template <class B, class V>
void sort_elements(AlgorithmCall& call, const Array<B>& keys, const Array<V>& values, bool pairs, KeyOrder order,
                   int begin, int end) {
  const std::int64_t n = keys.size();
  const int passes = digit_passes(end - begin);
  if (n < 2 || passes == 0) return;
  if (sorts_alone(call, n)) return sort_alone(call, keys, values, pairs, order, begin, end);
  const bool scalar = call.on_processor(), coarse = sorts_coarse(call);
  if (coarse && !scalar && n <= kSmallSort) return sort_small(call, keys, values, pairs, order, begin, end);
  const int widest = int(pairs ? std::max(sizeof(B), sizeof(V)) : sizeof(B));
  const TileShape lone = lone_tile_of(call, widest, n);
  if (lone.rounds > 0) return sort_lone_tile(call, lone, keys, values, pairs, order, begin, end);
  const FineShape shape = coarse ? FineShape() : fine_shape(call.device(), widest, n);
  const std::int64_t columns = scalar ? ceil_div(n, kScalarColumn) : coarse ? coarse_columns(n) : shape.columns;
  const Array<B> other_keys = call.take<B>(n);
  const Array<V> other_values = pairs ? call.take<V>(n) : values;
  const Array<unsigned> all_counts = call.take<unsigned>(kDigits * columns);
  const Array<unsigned> totals = call.take<unsigned>(kDigits);
  const auto mark = call.mark();
  SortPass<B, V> pass{keys, other_keys, values, other_values, order, begin, 0};
  for (int k = 0; k < passes; ++k) {
    pass.bits = digit_width(end - pass.shift, passes - k);
    const Array<unsigned> counts = all_counts.slice(0, columns << pass.bits);
    if (scalar) {
      count_scalar(call, pass.keys, order, pass.shift, pass.bits, counts, columns);
      scan_runs(call, counts, counts, false);
      call.back_to(mark);
      move_scalar(call, pass, pairs, counts, columns);
    } else if (coarse) {
      count_coarse(call, pass.keys, order, pass.shift, pass.bits, counts, columns);
      scan_runs(call, counts, counts, false);
      call.back_to(mark);
      scatter_coarse(call, pass, pairs, counts, columns);
    } else {
      count_fine(call, shape, pass.keys, order, pass.shift, pass.bits, counts);
      scan_fine(call, shape, pass.bits, counts, totals);
      scatter_fine(call, shape, pass, pairs, counts, totals);
    }
    pass.shift += pass.bits;
    std::swap(pass.keys, pass.sorted_keys);
    std::swap(pass.values, pass.sorted_values);
  }
  if (passes % 2 == 0) return;
  copy_all(call, keys, other_keys);
  if (pairs) copy_all(call, values, other_values);
}

template void sort_elements(AlgorithmCall&, const Array<std::uint32_t>&, const Array<std::uint32_t>&, bool, KeyOrder,
                            int, int);
template void sort_elements(AlgorithmCall&, const Array<std::uint32_t>&, const Array<std::uint64_t>&, bool, KeyOrder,
                            int, int);
template void sort_elements(AlgorithmCall&, const Array<std::uint64_t>&, const Array<std::uint32_t>&, bool, KeyOrder,
                            int, int);
template void sort_elements(AlgorithmCall&, const Array<std::uint64_t>&, const Array<std::uint64_t>&, bool, KeyOrder,
                            int, int);

std::uint64_t radix_sort_scratch_bytes(std::int64_t n, std::uint32_t key_bytes, std::uint32_t value_bytes) {
  return sort_scratch(checked_count("radix_sort", n), key_bytes, value_bytes);
}

void radix_sort(const ArrayBase& keys, const ArrayBase* values, ir::Type type, const SortOptions& options) {
  const AlgorithmOptions general{options.stream, options.scratch, options.grain};
  AlgorithmCall call(values ? "radix_sort_pairs" : "radix_sort", general);
  call.takes(keys, "the array of keys");
  const int width = 8 * ir::bytes(type), end = options.end_bit ? options.end_bit : width;
  if (options.begin_bit < 0 || end > width || options.begin_bit > end)
    call.refuse(ErrorKind::invalid_argument,
                fmt::format("bits {} to {} of keys that have {}", options.begin_bit, end, width));
  const char* const instead =
      "sort copies outside record(), with numbers 0, 1, ... as values, and let a kernel read through those";
  if (values) {
    call.takes(*values, "the array of values");
    call.has_length(*values, "the array of values", keys.size());
    call.are_apart(keys, "the array of keys", *values, "the array of values");
    call.has_no_derivative(*values, *values, "a sort of an array", instead);
  }
  call.has_no_derivative(keys, keys, "a sort of an array", instead);
  const std::uint32_t value_bytes = values ? values->element_bytes() : 0;
  const int widest = int(std::max(keys.element_bytes(), value_bytes));
  call.begin(sort_scratch(keys.size(), keys.element_bytes(), value_bytes), nullptr,
             lone_tile_of(call, widest, keys.size()).rounds > 0);
  const auto sort = [&]<class B, class V>(B, V) {
    const Array<B> k = Row<B>(keys);
    const Array<V> v = values ? Row<V>(*values) : Row<V>(keys);
    sort_elements<B, V>(call, k, v, values, order_of(type), options.begin_bit, end);
  };
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  const bool wide_values = values ? value_bytes == 8 : keys.element_bytes() == 8;
  if (keys.element_bytes() == 4)
    wide_values ? sort(U32(), U64()) : sort(U32(), U32());
  else
    wide_values ? sort(U64(), U64()) : sort(U64(), U32());
}

}  // namespace weft::detail
