// Radix sort from the lowest digit on. A pass divides the keys into contiguous columns: each counts its digits, the
// counts are scanned digit by digit, and each column moves its keys, in their order, to where its share of each digit
// begins. No column waits for another within a launch.
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

template <class T>
void copy_back(const Work& work, const Array<T>& to, const Array<T>& from) {
  static const auto copy = kernel("copy back", [](Arr<T> to, Arr<const T> from) {
    Int i = tid();
    to[i] = from[i];
  });
  work.run(copy, to.size(), to, from);
}

bool sorts_coarse(const Work& work) { return work.coarse() || !sorts_fine(work.device()); }

// The tile of a sort by one workgroup; without rounds if there is none.
TileShape lone_tile_of(const Work& work, int element_bytes, std::int64_t n) {
  return sorts_coarse(work) ? TileShape() : lone_tile(work.device(), element_bytes, n);
}

// The length of a thread's run; the last threads may have none.
std::int64_t run_of(std::int64_t n, std::int64_t columns) { return ceil_div(n, columns); }

}  // namespace

KeyOrder order_of(ir::Type type) {
  return ir::is_float(type) ? KeyOrder::real : ir::is_signed(type) ? KeyOrder::with_sign : KeyOrder::without_sign;
}

template <class B>
void count_coarse(const Work& work, const Array<B>& keys, KeyOrder order, int shift, int bits,
                  const Array<unsigned>& counts, std::int64_t columns) {
  work.run(coarse_count<B>(order), columns, keys, counts, keys.size(), run_of(keys.size(), columns), columns, shift,
           1 << bits);
}

template <class B, class V>
void scatter_coarse(const Work& work, const SortPass<B, V>& pass, bool pairs, const Array<unsigned>& starts,
                    std::int64_t columns) {
  const std::int64_t n = pass.keys.size();
  work.run(coarse_scatter<B, V>(pass.order, pairs), columns, pass.keys, pass.values, starts, pass.sorted_keys,
           pass.sorted_values, n, run_of(n, columns), columns, pass.shift, 1 << pass.bits);
}

std::uint64_t sort_scratch(std::int64_t n, std::uint32_t key_bytes, std::uint32_t value_bytes) {
  const std::int64_t coarse = n <= kSmallSort ? kSmallSortColumns : coarse_columns(n);
  const std::int64_t counts = kDigits * std::max(coarse, ceil_div(n, kLeastColumn));
  return scratch_piece(n, key_bytes) + scratch_piece(n, value_bytes) + scratch_piece(counts, sizeof(unsigned)) +
         scratch_piece(kDigits, sizeof(unsigned)) + scan_scratch(counts, sizeof(unsigned));
}

template <class B, class V>
void sort_elements(Work& work, const Array<B>& keys, const Array<V>& values, bool pairs, KeyOrder order, int begin,
                   int end) {
  const std::int64_t n = keys.size();
  const int passes = digit_passes(end - begin);
  if (n < 2 || passes == 0) return;
  const bool coarse = sorts_coarse(work);
  if (coarse && n <= kSmallSort) return sort_small(work, keys, values, pairs, order, begin, end);
  const int widest = int(pairs ? std::max(sizeof(B), sizeof(V)) : sizeof(B));
  const TileShape lone = lone_tile_of(work, widest, n);
  if (lone.rounds > 0) return sort_lone_tile(work, lone, keys, values, pairs, order, begin, end);
  const FineShape shape = coarse ? FineShape() : fine_shape(work.device(), widest, n);
  const std::int64_t columns = coarse ? coarse_columns(n) : shape.columns;
  const Array<B> other_keys = work.take<B>(n);
  const Array<V> other_values = pairs ? work.take<V>(n) : values;
  const Array<unsigned> all_counts = work.take<unsigned>(kDigits * columns);
  const Array<unsigned> totals = work.take<unsigned>(kDigits);
  const auto mark = work.mark();
  SortPass<B, V> pass{keys, other_keys, values, other_values, order, begin, 0};
  for (int k = 0; k < passes; ++k) {
    pass.bits = digit_width(end - pass.shift, passes - k);
    const Array<unsigned> counts = all_counts.slice(0, columns << pass.bits);
    if (coarse) {
      count_coarse(work, pass.keys, order, pass.shift, pass.bits, counts, columns);
      scan_runs(work, counts, counts, {});
      work.back_to(mark);
      scatter_coarse(work, pass, pairs, counts, columns);
    } else {
      count_fine(work, shape, pass.keys, order, pass.shift, pass.bits, counts);
      scan_fine(work, shape, pass.bits, counts, totals);
      scatter_fine(work, shape, pass, pairs, counts, totals);
    }
    pass.shift += pass.bits;
    std::swap(pass.keys, pass.sorted_keys);
    std::swap(pass.values, pass.sorted_values);
  }
  if (passes % 2 == 0) return;
  copy_back(work, keys, other_keys);
  if (pairs) copy_back(work, values, other_values);
}

template void sort_elements(Work&, const Array<std::uint32_t>&, const Array<std::uint32_t>&, bool, KeyOrder, int, int);
template void sort_elements(Work&, const Array<std::uint32_t>&, const Array<std::uint64_t>&, bool, KeyOrder, int, int);
template void sort_elements(Work&, const Array<std::uint64_t>&, const Array<std::uint32_t>&, bool, KeyOrder, int, int);
template void sort_elements(Work&, const Array<std::uint64_t>&, const Array<std::uint64_t>&, bool, KeyOrder, int, int);

std::uint64_t radix_sort_scratch_bytes(std::int64_t n, std::uint32_t key_bytes, std::uint32_t value_bytes) {
  return sort_scratch(checked_count("radix_sort", n), key_bytes, value_bytes);
}

void radix_sort(const ArrayBase& keys, const ArrayBase* values, ir::Type type, const SortOptions& options) {
  const AlgorithmOptions general{options.stream, options.scratch, options.grain};
  Work work(values ? "radix_sort_pairs" : "radix_sort", general);
  work.takes(keys, "the array of keys");
  const int width = 8 * ir::bytes(type), end = options.end_bit ? options.end_bit : width;
  if (options.begin_bit < 0 || end > width || options.begin_bit > end)
    work.refuse(ErrorKind::invalid_argument,
                fmt::format("bits {} to {} of keys that have {}", options.begin_bit, end, width));
  const char* const instead =
      "sort copies outside record(), with numbers 0, 1, ... as values, and let a kernel read through those";
  if (values) {
    work.takes(*values, "the array of values");
    work.has_length(*values, "the array of values", keys.size());
    work.are_apart(keys, "the array of keys", *values, "the array of values");
    work.has_no_derivative(*values, *values, "a sort of an array", instead);
  }
  work.has_no_derivative(keys, keys, "a sort of an array", instead);
  const std::uint32_t value_bytes = values ? values->element_bytes() : 0;
  const int widest = int(std::max(keys.element_bytes(), value_bytes));
  work.begin(sort_scratch(keys.size(), keys.element_bytes(), value_bytes), nullptr,
             lone_tile_of(work, widest, keys.size()).rounds > 0);
  const auto sort = [&]<class B, class V>(B, V) {
    const Array<B> k = Row<B>(keys);
    const Array<V> v = values ? Row<V>(*values) : Row<V>(keys);
    sort_elements<B, V>(work, k, v, values, order_of(type), options.begin_bit, end);
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
