// The radix sort of few keys by one workgroup in one launch, with coarse grain: on a processor each of the twenty
// launches of a sort by passes takes longer than its part of the work.
//
// The passes follow each other in the launch: each thread has a run of the keys, and counters of its own for the digits
// in it; all counters are scanned, digit by digit and for each digit thread by thread, and give the place of the
// thread's next key of that digit. Keys go to the other array in one pass and back in the next: the number of passes is
// even, and one may have no bits, which keeps the order.
//
//   two threads, keys 2 1 | 0 1, digits of 2 bits
//   counters of digit 0: 0 1, of 1: 1 1, of 2: 1 0, of 3: 0 0
//   scanned              0 0        1 2        3 4        4 4
//   moved                0 1 1 2: the 1 of the first thread to place 1, that of the second to 2
#include "../../../frontend/kernels/group.h"
#include "sort_passes.h"

namespace weft::detail {

namespace {

constexpr int kThreads = int(kSmallSortColumns);

template <class B, class V>
auto make_sort(KeyOrder order, bool pairs) {
  return kernel(
      "sort few keys",
      [=](Arr<B> keys, Arr<V> values, Arr<B> other_keys, Arr<V> other_values, Arr<unsigned> counts, Int n, Int begin,
          Int end, Int passes) {
        auto sums = shared<unsigned>(kThreads);
        const Int t = local_id(), run = (n + (kThreads - 1)) / kThreads, first = t * run, last = min(first + run, n);
        const auto pass = [&](const Arr<B>& from, const Arr<V>& values_from, const Arr<B>& to, const Arr<V>& values_to,
                              const Int& shift, const Int& bits) {
          const Int digits = Int(1) << bits;
          const auto counter_of = [&](const Var<B>& key) {
            const Int by = min(shift, int(8 * sizeof(B)) - 1);  // without bits, `shift` may be the key's width
            return Int((ordered_bits<B>(key, order) >> Var<B>(by)) & Var<B>(digits - 1)) * kThreads + t;
          };
          for (auto d : range(digits)) counts[d * kThreads + t] = 0u;
          for (auto i : range(first, last)) counts[counter_of(from[i])] += 1u;
          barrier();
          // Each thread scans as many contiguous counters as there are digits.
          UInt sum = 0u;
          for (auto c : range(t * digits, (t + 1) * digits)) sum += counts[c];
          sums[t] = sum;
          barrier();
          UInt before = 0u;
          for (auto s : range(t)) before += sums[s];
          for (auto c : range(t * digits, (t + 1) * digits)) {
            const UInt count = counts[c];
            counts[c] = before;
            before += count;
          }
          barrier();
          for (auto i : range(first, last)) {
            const Var<B> key = from[i];
            const Int counter = counter_of(key);
            const UInt place = counts[counter];
            counts[counter] = place + 1u;
            to[place] = key;
            if (pairs) values_to[place] = values_from[i];
          }
          barrier();
        };
        Int shift = begin;
        for (auto k : range(0, passes, 2)) {
          const Int there = digit_width<Int>(end - shift, passes - k), middle = shift + there,
                    back = digit_width<Int>(end - middle, passes - k - 1);
          pass(keys, values, other_keys, other_values, shift, there);
          pass(other_keys, other_values, keys, values, middle, back);
          shift = middle + back;
        }
      },
      {.block = kThreads});
}

}  // namespace

template <class B, class V>
void sort_small(AlgorithmCall& call, const Array<B>& keys, const Array<V>& values, bool pairs, KeyOrder order,
                int begin, int end) {
  using O = KeyOrder;
  static const decltype(make_sort<B, V>(order, pairs)) all[3][2] = {
      {make_sort<B, V>(O::without_sign, false), make_sort<B, V>(O::without_sign, true)},
      {make_sort<B, V>(O::with_sign, false), make_sort<B, V>(O::with_sign, true)},
      {make_sort<B, V>(O::real, false), make_sort<B, V>(O::real, true)}};
  const std::int64_t n = keys.size(), digits = digit_passes(end - begin);
  const Array<B> other_keys = call.take<B>(n);
  const Array<V> other_values = pairs ? call.take<V>(n) : values;
  call.run(all[int(order)][pairs], kThreads, keys, values, other_keys, other_values,
           call.take<unsigned>(kDigits * kSmallSortColumns), n, begin, end, (digits + 1) / 2 * 2);
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
template void sort_small(AlgorithmCall&, const Array<U32>&, const Array<U32>&, bool, KeyOrder, int, int);
template void sort_small(AlgorithmCall&, const Array<U32>&, const Array<U64>&, bool, KeyOrder, int, int);
template void sort_small(AlgorithmCall&, const Array<U64>&, const Array<U32>&, bool, KeyOrder, int, int);
template void sort_small(AlgorithmCall&, const Array<U64>&, const Array<U64>&, bool, KeyOrder, int, int);

}  // namespace weft::detail
