// The radix sort of keys that fit one tile, with fine grain: one workgroup makes all passes in one launch. A sort by
// columns has three dependent launches per pass.
//
// Keys and values stay in the workgroup: between passes they go through its memory, from their places in the order of
// the pass to the threads that hold these. Threads with room beyond the last key get keys that no other follows,
// whatever the bits; equal ones keep their order, so these are the last after each pass.
//
// A pass of few keys mostly waits, which all threads do at once, so there are many threads; but all of them wait for
// the last one at each barrier: on an H200 512 take nine tenths of the time of 1024. The keys per thread are rounded up
// to a power of two, so that there is not a kernel for each number.
#include "sort_tile.h"

namespace weft::detail {

namespace {

template <class B, class V>
auto make_sort(const Tile& tile, KeyOrder order, bool pairs) {
  return kernel("sort keys of one tile",
                [=](Arr<B> keys, Arr<V> values, Int n, Int begin, Int end, Int passes) {
                  using W = Wider<B, V>;
                  const TileSorter<W> sorter(tile);
                  const std::size_t rounds = std::size_t(tile.rounds);
                  // All loads are under way at once: none is under a condition.
                  const auto known = [&](std::size_t r) { return min(sorter.source(r), n - 1); };
                  std::vector<Var<B>> key;
                  std::vector<Var<V>> value;
                  for (std::size_t r = 0; r < rounds; ++r) key.push_back(Var<B>(keys[known(r)]));
                  for (std::size_t r = 0; r < rounds && pairs; ++r) value.push_back(Var<V>(values[known(r)]));
                  for (std::size_t r = 0; r < rounds; ++r)
                    key[r] = select(sorter.source(r) < n, key[r], last_key<B>(order));
                  Int shift = begin;
                  for (auto pass : range(passes)) {
                    const Int bits = digit_width<Int>(end - shift, passes - pass), digits = Int(1) << bits;
                    const auto digit = [&](std::size_t r) { return digit_of<B>(key[r], order, Var<B>(shift), digits); };
                    const std::vector<UInt> place = sorter.places(digit, [](std::size_t, const Int&, const UInt&) {});
                    barrier();
                    const auto exchange = [&](auto& held) {
                      using T = std::decay_t<decltype(held[0])>;
                      for (std::size_t r = 0; r < rounds; ++r) sorter[place[r]] = Var<W>(held[r]);
                      barrier();
                      for (std::size_t r = 0; r < rounds; ++r) held[r] = T(Var<W>(sorter[sorter.source(r)]));
                      barrier();
                    };
                    exchange(key);
                    if (pairs) exchange(value);
                    shift += bits;
                  }
                  for (std::size_t r = 0; r < rounds; ++r)
                    If (sorter.source(r) < n) {
                      keys[sorter.source(r)] = key[r];
                      if (pairs) values[sorter.source(r)] = value[r];
                    }
                },
                {.block = unsigned(tile.threads())});
}

}  // namespace

template <class B, class V>
void sort_lone_tile(const AlgorithmCall& call, const TileShape& shape, const Array<B>& keys, const Array<V>& values,
                    bool pairs, KeyOrder order, int begin, int end) {
  using K = decltype(make_sort<B, V>(Tile(), order, pairs));
  const Tile tile{shape};
  const K& sort = for_tile<K>(tile, 2 * int(order) + pairs, [&] { return make_sort<B, V>(tile, order, pairs); });
  call.run(sort, tile.threads(), keys, values, keys.size(), begin, end, digit_passes(end - begin));
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
template void sort_lone_tile(const AlgorithmCall&, const TileShape&, const Array<U32>&, const Array<U32>&, bool,
                             KeyOrder, int, int);
template void sort_lone_tile(const AlgorithmCall&, const TileShape&, const Array<U32>&, const Array<U64>&, bool,
                             KeyOrder, int, int);
template void sort_lone_tile(const AlgorithmCall&, const TileShape&, const Array<U64>&, const Array<U32>&, bool,
                             KeyOrder, int, int);
template void sort_lone_tile(const AlgorithmCall&, const TileShape&, const Array<U64>&, const Array<U64>&, bool,
                             KeyOrder, int, int);

}  // namespace weft::detail
