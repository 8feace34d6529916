// The passes of the radix sort with fine grain. A column is a row of tiles of some thousand keys, which a workgroup of
// at most 8 subgroups takes one after the other. It sorts a tile by one digit in its own memory before it writes it, so
// that keys of one digit are written side by side.
//
// A thread holds up to 16 keys of a tile, one of each round. In a round the lanes of a subgroup that have the same
// digit find each other by eight votes; the first of them adds their number to the subgroup's counter of that digit,
// and each goes as many places behind what was there as there are lanes before it: the order of equal digits is kept.
// When all rounds are done, the counters of all subgroups say where the digits of each begin in the sorted tile.
//
// What a round leaves in a counter the next finds there: the value that the first lane took is handed to all its
// fellows before they go on, and a lane does not vote in the next round before it has its own.
//
// Nearly all tiles are full. In the last one, which may not be (and is the only one of few keys), a thread has keys
// behind the last that no other comes after, so that they go to the end of the tile; each thread then writes its own
// keys to their places. What both ways have in common is written once, but not the accesses of memory: tests around
// each of them, or values that come from either way, take registers, and the device then has fewer workgroups at once.
//
//   digits of a subgroup of 4 lanes    2 0 2 1 | 0 2 0 0    (two rounds)
//   place among those of its digit     0 0 1 0 | 1 2 2 3
//   counters in the end                0: 4, 1: 1, 2: 3, which begin at 0, 4 and 5
//   sorted                             0 0 0 0 1 2 2 2
#include <map>
#include <mutex>
#include <tuple>

#include "sort_passes.h"

namespace weft::detail {

namespace {

/// The shape of a tile's workgroup.
struct Tile {
  int lanes = 0;      ///< of a subgroup
  int subgroups = 0;  ///< of a workgroup
  int rounds = 0;     ///< keys of a thread

  int threads() const { return lanes * subgroups; }
  int keys() const { return threads() * rounds; }
  /// Of those that threads look after, one by one.
  int turns() const { return (kDigits + threads() - 1) / threads(); }
  bool operator<(const Tile& o) const {
    return std::tie(lanes, subgroups, rounds) < std::tie(o.lanes, o.subgroups, o.rounds);
  }
};

constexpr int kMostSubgroups = 8;
/// Rounds are written out, so that a thread's keys are in its registers. Where subgroups are narrow, as on CPUs, that
/// is more code than it is worth: their drivers take seconds to compile it.
constexpr int most_rounds(int lanes) { return lanes < 16 ? 2 : 16; }
/// Columns of many keys: enough for the largest devices, whose workgroups then need not be equally quick, and few
/// counters to scan.
constexpr std::int64_t kMostColumns = 2048;

/// \param element_bytes  of keys or values, whichever are larger
Tile tile_of(const DeviceState& device, int element_bytes) {
  const backend::DeviceInfo& info = device.device->info();
  Tile t;
  t.lanes = int(info.subgroup_size);
  const auto fits = [&](int rounds) {
    const std::uint64_t counters = std::uint64_t(t.subgroups + 1) * kDigits * sizeof(unsigned);
    return counters + std::uint64_t(t.threads()) * std::uint64_t(rounds * element_bytes) <= info.max_shared;
  };
  // A workgroup of fewer subgroups has more room for each.
  t.subgroups = std::min(kMostSubgroups, int(info.max_block) / std::max(t.lanes, 1));
  for (; t.subgroups > 0; t.subgroups /= 2) {
    for (t.rounds = most_rounds(t.lanes); t.rounds > 0 && !fits(t.rounds);) --t.rounds;
    if (t.rounds > 0) break;
  }
  return t;
}

/// A kernel for each shape of tiles that a device of this process has.
template <class K, class Make>
const K& for_tile(const Tile& tile, int variant, const Make& make) {
  static std::mutex mutex;
  static std::map<std::pair<Tile, int>, K> kernels;
  std::lock_guard lock(mutex);
  const auto known = kernels.find({tile, variant});
  return known != kernels.end() ? known->second : kernels.emplace(std::pair(tile, variant), make()).first->second;
}

/// The lanes of the subgroup that have the same digit as this one.
struct Fellows {
  UInt before = 0u, all = 0u;  ///< those in lanes before this one; their number
  UInt first = 0u;             ///< the lane of the first
};

Fellows find_fellows(const UInt& digit, int lanes) {
  const int words = (lanes + 31) / 32;
  std::vector<UInt> mask(std::size_t(words), UInt(lanes < 32 ? (1u << lanes) - 1u : ~0u));
  // Nearly half of a sort's instructions. With the bit in all places a vote takes fewer of them than with a test of the
  // bit and a choice between the lanes with and without it.
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const Int everywhere = (Int(digit) << (31 - bit)) >> 31;  // the bit in all places
    const Vec<4, unsigned> votes = subgroup_ballot(everywhere != 0);
    for (int w = 0; w < words; ++w) mask[std::size_t(w)] &= ~(votes[w] ^ UInt(everywhere));
  }
  Fellows f;
  const UInt lane = UInt(subgroup_lane());
  for (int w = words - 1; w >= 0; --w) {
    const UInt m = mask[std::size_t(w)], place = lane & 31u;
    UInt below = (UInt(1u) << place) - 1u;
    if (words > 1) below = select((lane >> 5u) > unsigned(w), ~0u, select((lane >> 5u) == unsigned(w), below, 0u));
    f.before += popcount(m & below);
    f.all += popcount(m);
    const UInt first = popcount((m & (~m + 1u)) - 1u) + unsigned(32 * w);
    f.first = words == 1 ? first : select(m != 0u, first, f.first);
  }
  return f;
}

template <class B>
Int digit_of(const Var<B>& key, KeyOrder order, const Var<B>& shift, const Int& digits) {
  return Int((ordered_bits<B>(key, order) >> shift) & Var<B>(digits - 1));
}

/// A key that none comes after: its ordered_bits() are all set.
template <class B>
B last_key(KeyOrder order) {
  return order == KeyOrder::without_sign ? B(~B(0)) : B(~B(0)) >> 1;
}

/// The tiles of a column.
struct Column {
  Int number = workgroup_id(), first, last;

  Column(const Int& tiles, const Int& n, const Tile& tile) {
    first = number * tiles;
    last = min(first + tiles, (n + (tile.keys() - 1)) / tile.keys());
  }
};

template <class B>
auto make_count(const Tile& tile, KeyOrder order) {
  return kernel("count digits of tiles",
                [=](Arr<const B> keys, Arr<unsigned> counts, Int n, Int columns, Int tiles, Var<B> shift, Int digits) {
                  auto counters = shared<unsigned>(kDigits);
                  const Int l = local_id();
                  const Column column(tiles, n, tile);
                  for (auto d : range(l, kDigits, tile.threads())) counters[d] = 0u;
                  barrier();
                  const auto add = [&](const Var<B>& key) {
                    atomic_add(counters[digit_of<B>(key, order, shift, digits)], 1u);
                  };
                  for (auto t : range(column.first, column.last)) {
                    const Int at = t * tile.keys() + l, end = t * tile.keys() + tile.keys();
                    If (end <= n) {
                      std::vector<Var<B>> key;
                      for (int r = 0; r < tile.rounds; ++r) key.push_back(Var<B>(keys[at + r * tile.threads()]));
                      for (const Var<B>& k : key) add(k);
                    }
                    Else {
                      for (auto i : range(at, n, tile.threads())) add(keys[i]);
                    }
                  }
                  barrier();
                  for (auto d : range(l, digits, tile.threads())) counts[d * columns + column.number] = counters[d];
                },
                {.block = unsigned(tile.threads())});
}

template <class B, class V>
auto make_scatter(const Tile& tile, KeyOrder order, bool pairs) {
  // Keys and values are in the workgroup's memory one after the other, as what is wider.
  using W = std::conditional_t<(sizeof(V) > sizeof(B)), V, B>;
  return kernel("move keys of tiles",
                [=](Arr<const B> keys, Arr<const V> values, Arr<const unsigned> starts, Arr<B> sorted_keys,
                    Arr<V> sorted_values, Int n, Int columns, Int tiles, Var<B> shift, Int digits) {
                  auto counters = shared<unsigned, 2>({{tile.subgroups, kDigits}});
                  auto begins = shared<unsigned>(kDigits);
                  auto sorted = shared<W>(tile.keys());
                  const Int l = local_id(), s = subgroup_id();
                  const Column column(tiles, n, tile);
                  const std::size_t rounds = std::size_t(tile.rounds);
                  // Calls f(turn, digit) for the digits that this thread looks after.
                  const auto own_digits = [&](auto f) {
                    for (int turn = 0; turn < tile.turns(); ++turn) {
                      const Int d = l + turn * tile.threads();
                      if (tile.threads() * (turn + 1) <= kDigits)
                        f(std::size_t(turn), d);
                      else If (d < kDigits) {
                        f(std::size_t(turn), d);
                      }
                    }
                  };
                  // Where the next tile's keys of each digit go.
                  std::vector<UInt> start(std::size_t(tile.turns()), UInt(0u));
                  own_digits([&](std::size_t turn, const Int& d) {
                    If (d < digits) {
                      start[turn] = starts[d * columns + column.number];
                    }
                  });

                  for (auto t : range(column.first, column.last)) {
                    const Int first = t * tile.keys(), in_tile = min(n - first, tile.keys());
                    const Int part = s * (tile.rounds * tile.lanes) + subgroup_lane();
                    const auto source = [&](std::size_t r) { return first + part + int(r) * tile.lanes; };
                    std::vector<Var<B>> key(rounds, Var<B>(B(0)));
                    std::vector<UInt> place(rounds, UInt(0u));
                    const auto digit = [&](std::size_t r) { return digit_of<B>(key[r], order, shift, digits); };
                    const Bool full = in_tile == tile.keys();
                    If (full) {
                      for (std::size_t r = 0; r < rounds; ++r) key[r] = keys[source(r)];
                    }
                    Else {
                      for (auto k : range(l, tile.keys(), tile.threads())) {
                        Var<B> known = last_key<B>(order);
                        If (k < in_tile) {
                          known = keys[first + k];
                        }
                        sorted[k] = Var<W>(known);
                      }
                      barrier();
                      for (std::size_t r = 0; r < rounds; ++r)
                        key[r] = Var<B>(Var<W>(sorted[part + int(r) * tile.lanes]));
                      barrier();
                    }
                    own_digits([&](std::size_t, const Int& d) {
                      for (auto k : range(tile.subgroups)) counters(k, d) = 0u;
                    });
                    barrier();

                    // The place of each key among those of its digit in its subgroup's part.
                    for (std::size_t r = 0; r < rounds; ++r) {
                      const Fellows fellows = find_fellows(UInt(digit(r)), tile.lanes);
                      UInt begin = 0u;
                      If (fellows.before == 0u) {
                        begin = atomic_add(counters(s, digit(r)), fellows.all);
                      }
                      place[r] = subgroup_shuffle(begin, fellows.first) + fellows.before;
                    }
                    barrier();

                    // Where digits begin in the sorted tile: a scan of their sums over all subgroups, by the first of
                    // these.
                    std::vector<UInt> sum(std::size_t(tile.turns()), UInt(0u));
                    own_digits([&](std::size_t turn, const Int& d) {
                      for (auto k : range(tile.subgroups)) {
                        const UInt count = counters(k, d);
                        counters(k, d) = sum[turn];
                        sum[turn] += count;
                      }
                      begins[d] = sum[turn];
                    });
                    barrier();
                    If (s == 0) {
                      // Digits of a lane lie side by side.
                      const int each = kDigits / tile.lanes;
                      static_assert(kDigits % 128 == 0, "subgroups of all widths divide them");
                      const Int d = subgroup_lane() * each;
                      UInt total = 0u;
                      for (auto k : range(each)) total += begins[d + k];
                      UInt before = subgroup_exclusive_add(total);
                      for (auto k : range(each)) {
                        const UInt count = begins[d + k];
                        begins[d + k] = before;
                        before += count;
                      }
                    }
                    barrier();
                    // From there to the place among all keys; and where the digits of each subgroup begin.
                    own_digits([&](std::size_t turn, const Int& d) {
                      const UInt begin = begins[d];
                      for (auto k : range(tile.subgroups)) counters(k, d) += begin;
                      begins[d] = start[turn] - begin;
                      start[turn] += sum[turn];
                    });
                    barrier();

                    for (std::size_t r = 0; r < rounds; ++r) place[r] += counters(s, digit(r));
                    If (full) {
                      // Sort, and write in order. Where the keys were in registers the values come, while keys are
                      // written.
                      for (std::size_t r = 0; r < rounds; ++r) sorted[place[r]] = Var<W>(key[r]);
                      std::vector<Var<V>> value;
                      for (std::size_t r = 0; r < rounds && pairs; ++r) value.push_back(Var<V>(values[source(r)]));
                      barrier();
                      const auto place_of = [&](std::size_t r) { return int(r) * tile.threads() + l; };
                      std::vector<UInt> to;
                      for (std::size_t r = 0; r < rounds; ++r) {
                        const Var<B> k = Var<B>(Var<W>(sorted[place_of(r)]));
                        to.push_back(UInt(place_of(r)) + begins[digit_of<B>(k, order, shift, digits)]);
                        sorted_keys[to[r]] = k;
                      }
                      if (pairs) {
                        barrier();
                        for (std::size_t r = 0; r < rounds; ++r) sorted[place[r]] = Var<W>(value[r]);
                        barrier();
                        for (std::size_t r = 0; r < rounds; ++r)
                          sorted_values[to[r]] = Var<V>(Var<W>(sorted[place_of(r)]));
                      }
                    }
                    Else {
                      for (std::size_t r = 0; r < rounds; ++r)
                        If (source(r) < n) {
                          const UInt to = place[r] + begins[digit(r)];
                          sorted_keys[to] = key[r];
                          if (pairs) sorted_values[to] = values[source(r)];
                        }
                    }
                    barrier();
                  }
                },
                {.block = unsigned(tile.threads())});
}

/// How the keys are divided.
struct Division {
  std::int64_t columns, tiles;  ///< tiles of a column
};
Division divide(std::int64_t n, const Tile& tile) {
  const std::int64_t most = ceil_div(n, tile.keys());
  const std::int64_t tiles = std::max(ceil_div(most, kMostColumns), ceil_div(kLeastColumn, tile.keys()));
  return {ceil_div(most, tiles), tiles};
}

template <class B, class V>
Tile tile_for(const DeviceState& device) {
  return tile_of(device, int(std::max(sizeof(B), sizeof(V))));
}

}  // namespace

bool sorts_fine(const DeviceState& device) {
  const Tile t = tile_of(device, 8);
  return t.lanes >= 4 && t.subgroups >= 1;
}

template <class B, class V>
std::int64_t fine_columns(const DeviceState& device, std::int64_t n) {
  return divide(n, tile_for<B, V>(device)).columns;
}

template <class B, class V>
void count_fine(const Work& work, const SortPass<B, V>& pass, const Array<unsigned>& counts) {
  using K = decltype(make_count<B>(Tile(), pass.order));
  const std::int64_t n = pass.keys.size();
  const Tile tile = tile_for<B, V>(work.device());
  const auto [columns, tiles] = divide(n, tile);
  const K& count = for_tile<K>(tile, int(pass.order), [&] { return make_count<B>(tile, pass.order); });
  work.run(count, columns * tile.threads(), pass.keys, counts, n, columns, tiles, pass.shift, 1 << pass.bits);
}

template <class B, class V>
void scatter_fine(const Work& work, const SortPass<B, V>& pass, bool pairs, const Array<unsigned>& starts) {
  using K = decltype(make_scatter<B, V>(Tile(), pass.order, pairs));
  const std::int64_t n = pass.keys.size();
  const Tile tile = tile_for<B, V>(work.device());
  const auto [columns, tiles] = divide(n, tile);
  const K& move =
      for_tile<K>(tile, 2 * int(pass.order) + pairs, [&] { return make_scatter<B, V>(tile, pass.order, pairs); });
  work.run(move, columns * tile.threads(), pass.keys, pass.values, starts, pass.sorted_keys, pass.sorted_values, n,
           columns, tiles, pass.shift, 1 << pass.bits);
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Counts = Array<unsigned>;
template std::int64_t fine_columns<U32, U32>(const DeviceState&, std::int64_t);
template std::int64_t fine_columns<U32, U64>(const DeviceState&, std::int64_t);
template std::int64_t fine_columns<U64, U32>(const DeviceState&, std::int64_t);
template std::int64_t fine_columns<U64, U64>(const DeviceState&, std::int64_t);
template void count_fine(const Work&, const SortPass<U32, U32>&, const Counts&);
template void count_fine(const Work&, const SortPass<U32, U64>&, const Counts&);
template void count_fine(const Work&, const SortPass<U64, U32>&, const Counts&);
template void count_fine(const Work&, const SortPass<U64, U64>&, const Counts&);
template void scatter_fine(const Work&, const SortPass<U32, U32>&, bool, const Counts&);
template void scatter_fine(const Work&, const SortPass<U32, U64>&, bool, const Counts&);
template void scatter_fine(const Work&, const SortPass<U64, U32>&, bool, const Counts&);
template void scatter_fine(const Work&, const SortPass<U64, U64>&, bool, const Counts&);

}  // namespace weft::detail
