// The radix sort for processors, as scalar code: a workgroup has one thread, whose counters of digits stay in its
// core's first cache, and whose 256 places to write to move on through whole cache lines.
//
// A column of keys is a workgroup's; see sort.cpp for columns. The whole sort is one launch of one workgroup where
// there are few keys, or where the device has a single host thread: no other could take part. That workgroup counts the
// digits of all passes at once, because they do not depend on the order of its keys.
//
//   keys 21 10 20, digits base 10
//   counted  last digit: 0 has 2, 1 has 1; first digit: 1 has 1, 2 has 2
//   pass 1   10 20 21   the places begin at 0 and 2
//   pass 2   10 20 21   at 0 and 1
//
// Keys go to the other array in one pass and back in the next. After an odd number of passes they are copied.
#include "../../../frontend/kernels/group.h"
#include "sort_passes.h"

namespace weft::detail {

namespace {

/// Where in an array of counters those of a digit begin, and which bits are the digit.
template <class B>
struct Digit {
  Int counters, shift;
  Var<B> mask;

  Digit(const Int& first_counter, const Int& lowest, const Int& bits)
      : counters(first_counter),
        shift(min(lowest, int(8 * sizeof(B)) - 1)),  // without bits, `lowest` may be the key's width
        mask((Var<B>(B(1)) << Var<B>(bits)) - B(1)) {}
  Int counter_of(const Var<B>& key, KeyOrder order) const {
    return counters + Int((ordered_bits<B>(key, order) >> Var<B>(shift)) & mask);
  }
};

/// The keys and values of a thread, from element `first` to `last` - 1.
template <class B, class V>
struct Column {
  const KeyOrder order;
  const bool pairs;
  const Int first, last;

  template <class Counters>
  void count(const Arr<const B>& keys, const Counters& counters, const Digit<B>& digit) const {
    for (auto i : range(first, last)) counters[digit.counter_of(keys[i], order)] += 1u;
  }
  /// Moves each key to where its digit's counter says.
  template <class Keys, class Values, class Counters>
  void move(const Keys& keys, const Values& values, const Arr<B>& sorted_keys, const Arr<V>& sorted_values,
            const Counters& counters, const Digit<B>& digit) const {
    for (auto i : range(first, last)) {
      const Var<B> key = keys[i];
      const Int counter = digit.counter_of(key, order);
      const UInt to = counters[counter];
      counters[counter] = to + 1u;
      sorted_keys[to] = key;
      if (pairs) sorted_values[to] = values[i];
    }
  }
};

template <class B>
auto make_count(KeyOrder order) {
  return kernel("count digits of a column",
                [=](Arr<const B> keys, Arr<unsigned> counts, Int n, Int columns, Int shift, Int bits) {
                  auto counters = shared<unsigned>(kDigits);
                  const Int column = workgroup_id(), digits = Int(1) << bits, first = column * int(kScalarColumn);
                  for (auto d : range(digits)) counters[d] = 0u;
                  Column<B, B>{order, false, first, min(first + int(kScalarColumn), n)}.count(keys, counters,
                                                                                              Digit<B>(0, shift, bits));
                  for (auto d : range(digits)) counts[d * columns + column] = counters[d];
                },
                {.block = 1});
}

template <class B, class V>
auto make_move(KeyOrder order, bool pairs) {
  return kernel("move keys of a column",
                [=](Arr<const B> keys, Arr<const V> values, Arr<const unsigned> starts, Arr<B> sorted_keys,
                    Arr<V> sorted_values, Int n, Int columns, Int shift, Int bits) {
                  auto places = shared<unsigned>(kDigits);
                  const Int column = workgroup_id(), first = column * int(kScalarColumn);
                  for (auto d : range(Int(1) << bits)) places[d] = starts[d * columns + column];
                  Column<B, V>{order, pairs, first, min(first + int(kScalarColumn), n)}.move(
                      keys, values, sorted_keys, sorted_values, places, Digit<B>(0, shift, bits));
                },
                {.block = 1});
}

template <class B, class V>
auto make_sort(KeyOrder order, bool pairs) {
  return kernel("sort keys alone",
                [=](Arr<B> keys, Arr<V> values, Arr<B> other_keys, Arr<V> other_values, Int n, Int begin, Int end) {
                  constexpr int kMost = int(sizeof(B));  // passes
                  auto counters = shared<unsigned>(kMost * kDigits);
                  const Column<B, V> all{order, pairs, workgroup_id(), n};  // the group's number is 0
                  for (auto c : range(kMost * kDigits)) counters[c] = 0u;
                  const Int passes = (end - begin + (kDigitBits - 1)) / kDigitBits;
                  std::vector<Digit<B>> digits;
                  Int shift = begin;
                  for (int k = 0; k < kMost; ++k) {
                    const Int bits = select(k < passes, digit_width<Int>(end - shift, max(passes - k, 1)), Int(0));
                    digits.emplace_back(Int(k * kDigits), Int(shift), bits);
                    shift += bits;
                  }
                  for (auto i : range(n)) {
                    const Var<B> key = keys[i];
                    for (int k = 0; k < kMost; ++k)
                      If (k < passes) {
                        counters[digits[std::size_t(k)].counter_of(key, order)] += 1u;
                      }
                  }
                  for (int k = 0; k < kMost; ++k)
                    If (k < passes) {
                      const Digit<B>& digit = digits[std::size_t(k)];
                      UInt before = 0u;
                      for (auto c : range(k * kDigits, (k + 1) * kDigits)) {
                        const UInt count = counters[c];
                        counters[c] = before;
                        before += count;
                      }
                      if (k % 2 == 0)
                        all.move(keys, values, other_keys, other_values, counters, digit);
                      else
                        all.move(other_keys, other_values, keys, values, counters, digit);
                    }
                },
                {.block = 1});
}

/// The kernel for an order of keys, with values or without.
template <class K, class Make>
struct AllOrders {
  using O = KeyOrder;
  explicit AllOrders(const Make& make)
      : all{make(O::without_sign, false), make(O::without_sign, true), make(O::with_sign, false),
            make(O::with_sign, true),     make(O::real, false),        make(O::real, true)} {}
  const K& operator()(KeyOrder order, bool pairs) const { return all[2 * int(order) + pairs]; }
  const K all[6];
};

}  // namespace

bool sorts_alone(const AlgorithmCall& call, std::int64_t n) {
  return call.on_processor() && (n <= kScalarColumn || call.device().device->info().host_threads == 1);
}

template <class B, class V>
void sort_alone(AlgorithmCall& call, const Array<B>& keys, const Array<V>& values, bool pairs, KeyOrder order,
                int begin, int end) {
  using Sort = decltype(make_sort<B, V>(order, pairs));
  static const AllOrders<Sort, decltype(&make_sort<B, V>)> sorts(&make_sort<B, V>);
  const std::int64_t n = keys.size();
  const Array<B> other_keys = call.take<B>(n);
  const Array<V> other_values = pairs ? call.take<V>(n) : values;
  call.run(sorts(order, pairs), 1, keys, values, other_keys, other_values, n, begin, end);
  if (digit_passes(end - begin) % 2 == 0) return;
  copy_all(call, keys, other_keys);
  if (pairs) copy_all(call, values, other_values);
}

template <class B>
void count_scalar(const AlgorithmCall& call, const Array<B>& keys, KeyOrder order, int shift, int bits,
                  const Array<unsigned>& counts, std::int64_t columns) {
  static const decltype(make_count<B>(order)) all[] = {
      make_count<B>(KeyOrder::without_sign), make_count<B>(KeyOrder::with_sign), make_count<B>(KeyOrder::real)};
  call.run(all[int(order)], columns, keys, counts, keys.size(), columns, shift, bits);
}

template <class B, class V>
void move_scalar(const AlgorithmCall& call, const SortPass<B, V>& pass, bool pairs, const Array<unsigned>& starts,
                 std::int64_t columns) {
  using Move = decltype(make_move<B, V>(pass.order, pairs));
  static const AllOrders<Move, decltype(&make_move<B, V>)> moves(&make_move<B, V>);
  call.run(moves(pass.order, pairs), columns, pass.keys, pass.values, starts, pass.sorted_keys, pass.sorted_values,
           pass.keys.size(), columns, pass.shift, pass.bits);
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Counts = Array<unsigned>;
template void sort_alone(AlgorithmCall&, const Array<U32>&, const Array<U32>&, bool, KeyOrder, int, int);
template void sort_alone(AlgorithmCall&, const Array<U32>&, const Array<U64>&, bool, KeyOrder, int, int);
template void sort_alone(AlgorithmCall&, const Array<U64>&, const Array<U32>&, bool, KeyOrder, int, int);
template void sort_alone(AlgorithmCall&, const Array<U64>&, const Array<U64>&, bool, KeyOrder, int, int);
template void count_scalar(const AlgorithmCall&, const Array<U32>&, KeyOrder, int, int, const Counts&, std::int64_t);
template void count_scalar(const AlgorithmCall&, const Array<U64>&, KeyOrder, int, int, const Counts&, std::int64_t);
template void move_scalar(const AlgorithmCall&, const SortPass<U32, U32>&, bool, const Counts&, std::int64_t);
template void move_scalar(const AlgorithmCall&, const SortPass<U32, U64>&, bool, const Counts&, std::int64_t);
template void move_scalar(const AlgorithmCall&, const SortPass<U64, U32>&, bool, const Counts&, std::int64_t);
template void move_scalar(const AlgorithmCall&, const SortPass<U64, U64>&, bool, const Counts&, std::int64_t);

}  // namespace weft::detail
