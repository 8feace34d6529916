// Sorts all segments at once: the numbers of the keys by the keys' order, then, stably, by the number of their segment;
// then keys and values are read through them. Neither many short segments nor a single long one therefore cost more
// than others.
#include "../segmented_sort.h"

#include <bit>

#include "../../../frontend/language/report.h"
#include "../scan/scan_runs.h"
#include "sort_passes.h"

namespace weft::detail {

namespace {

/// Segments are numbered from 0, before the first offset, to the number of offsets, from the last one on.
int segment_bits(std::int64_t offsets) { return std::bit_width(std::uint64_t(offsets)); }

void number_segments(AlgorithmCall& call, const Array<int>& offsets, const Array<unsigned>& segments) {
  static const auto mark = kernel("mark offsets", [](Arr<const int> offsets, Arr<unsigned> segments) {
    Int i = tid();
    const Int at = offsets[i];
    If (at >= 0 && at < segments.shape(0)) {
      atomic_add(segments[at], 1u);
    }
    if (!tracing::Trace::current().debug().checks) return;
    const Int keys = segments.shape(0);
    assert_(at >= 0 && at <= keys, "segmented_sort: offset", i, "is", at, "among", keys, "keys");
    const Int before = offsets[max(i - 1, Int(0))];
    assert_(before <= at, "segmented_sort: offset", i, "is", at, "and the one before it", before);
  });
  set_all(call, segments, 0u);
  call.run(mark, offsets.size(), offsets, segments);
  const auto before = call.mark();
  scan_runs(call, segments, segments, true);
  call.back_to(before);
}

/// Writes the bits that order keys, and numbers 0, 1, ...; keys outside the segments all get equal bits, so they stay.
template <class B>
const auto& order_kernel(KeyOrder order) {
  const auto make = [](KeyOrder o) {
    return kernel("order of keys", [=](Arr<const B> keys, Arr<const unsigned> segments, Arr<B> ordered,
                                       Arr<unsigned> numbers, UInt offsets) {
      Int i = tid();
      const UInt s = segments[i];
      ordered[i] = select(s == 0u || s == offsets, Var<B>(B(0)), ordered_bits<B>(keys[i], o));
      numbers[i] = UInt(i);
    });
  };
  static const decltype(make(order)) all[] = {make(KeyOrder::without_sign), make(KeyOrder::with_sign),
                                              make(KeyOrder::real)};
  return all[int(order)];
}

template <class T>
void permute(const AlgorithmCall& call, const Array<T>& x, const Array<T>& copy, const Array<unsigned>& numbers) {
  copy_all(call, copy, x);
  call.run(gather_kernel<T, unsigned>(), x.size(), x, copy, numbers);
}

std::uint64_t scratch(std::int64_t n, std::int64_t offsets, std::uint32_t key_bytes, std::uint32_t value_bytes) {
  if (offsets < 2) return 0;
  const std::uint64_t copies = scratch_piece(n, std::max({key_bytes, value_bytes, 4u}));
  const std::uint64_t sorts = std::max({sort_scratch(n, key_bytes, 4), sort_scratch(n, 4, 4), scan_scratch(n, 4)});
  return 3 * scratch_piece(n, 4) + copies + sorts;
}

template <class B, class V>
void sort_segments(AlgorithmCall& call, const Array<B>& keys, const Array<V>* values, const Array<int>& offsets,
                   KeyOrder order) {
  const std::int64_t n = keys.size();
  const Array<unsigned> segments = call.take<unsigned>(n), numbers = call.take<unsigned>(n),
                        sorted = call.take<unsigned>(n);
  // The memory first holds the bits that order the keys, then copies of keys and values.
  const Array<std::uint8_t> copy = call.take<std::uint8_t>(n * std::int64_t(std::max(sizeof(B), sizeof(V))));
  const Array<B> key_copy = Row<B>(copy).slice(0, n);
  const Array<V> value_copy = Row<V>(copy).slice(0, n);
  const auto mark = call.mark();
  number_segments(call, offsets, segments);
  call.run(order_kernel<B>(order), n, keys, segments, key_copy, numbers, offsets.size());
  sort_elements<B, unsigned>(call, key_copy, numbers, true, KeyOrder::without_sign, 0, 8 * int(sizeof(B)));
  call.back_to(mark);
  call.run(gather_kernel<unsigned, unsigned>(), n, sorted, segments, numbers);
  sort_elements<unsigned, unsigned>(call, sorted, numbers, true, KeyOrder::without_sign, 0,
                                    segment_bits(offsets.size()));
  permute(call, keys, key_copy, numbers);
  if (values) permute(call, *values, value_copy, numbers);
}

}  // namespace

std::uint64_t segmented_sort_scratch_bytes(std::int64_t n, std::int64_t offsets, std::uint32_t key_bytes,
                                           std::uint32_t value_bytes) {
  checked_count("segmented_sort", offsets);
  return scratch(checked_count("segmented_sort", n), offsets, key_bytes, value_bytes);
}

void segmented_sort(const ArrayBase& keys, const ArrayBase* values, const ArrayBase& offsets, ir::Type type,
                    const AlgorithmOptions& options) {
  AlgorithmCall call(values ? "segmented_sort_pairs" : "segmented_sort", options);
  call.takes(keys, "the array of keys");
  const char* const instead =
      "sort copies outside record(), with numbers 0, 1, ... as values, and let a kernel read through those";
  if (values) {
    call.takes(*values, "the array of values");
    call.has_length(*values, "the array of values", keys.size());
    call.are_apart(keys, "the array of keys", *values, "the array of values");
    call.has_no_derivative(*values, *values, "a sort of an array", instead);
  }
  call.takes(offsets, "the array of offsets");
  call.are_apart(keys, "the array of keys", offsets, "the array of offsets");
  if (values) call.are_apart(*values, "the array of values", offsets, "the array of offsets");
  call.has_no_derivative(keys, keys, "a sort of an array", instead);
  const std::uint32_t value_bytes = values ? values->element_bytes() : 0;
  call.begin(scratch(keys.size(), offsets.size(), keys.element_bytes(), value_bytes));
  if (keys.size() < 2 || offsets.size() < 2) return;
  const Array<int> at = Row<int>(offsets);
  const auto sort = [&]<class B, class V>(B, V) {
    const Array<B> k = Row<B>(keys);
    const Array<V> v = values ? Row<V>(*values) : Row<V>(keys);
    sort_segments<B, V>(call, k, values ? &v : nullptr, at, order_of(type));
  };
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  if (keys.element_bytes() == 4)
    value_bytes == 8 ? sort(U32(), U64()) : sort(U32(), U32());
  else
    value_bytes == 8 ? sort(U64(), U64()) : sort(U64(), U32());
}

}  // namespace weft::detail
