// The passes of the radix sort with fine grain. A column is a tile of 2048 or 4096 keys, which a workgroup of at most 8
// subgroups sorts by one digit before it writes it, so that keys of one digit are written side by side.
//
// Each subgroup has counters of its own for its part of the tile. First it counts; then its counters are set to where
// its keys of each digit begin in the sorted tile; then it takes its keys again in rounds of one key for each lane. The
// lanes that have the same digit find each other by eight votes; the first of them adds their number to the counter,
// and each goes as many places behind what was there as there are lanes before it: the order of equal digits is kept.
//
// What a round leaves in a counter the next finds there: the value that the first lane took is handed to all its
// fellows before they go on, and a lane does not vote in the next round before it has its own.
//
// What is sorted inside the tile are the places that the keys come from, whatever the size of keys and values; these
// are read a third time, from the cache, when they are written.
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
  int keys = 0;

  int threads() const { return lanes * subgroups; }
  int rounds() const { return keys / threads(); }
  /// Of the counters by subgroup; one more for a workgroup of one subgroup, which has to keep two things there.
  int rows() const { return std::max(subgroups, 2); }
  bool operator<(const Tile& o) const {
    return std::tie(lanes, subgroups, keys) < std::tie(o.lanes, o.subgroups, o.keys);
  }
};

constexpr int kMostSubgroups = 8, kLargeTile = 2 * kLeastTile;

Tile tile_of(const DeviceState& device) {
  const backend::DeviceInfo& info = device.device->info();
  Tile t;
  t.lanes = int(info.subgroup_size);
  t.subgroups = std::min(kMostSubgroups, int(info.max_block) / std::max(t.lanes, 1));
  const std::uint32_t large = (kMostSubgroups * kDigits + kLargeTile) * sizeof(unsigned);
  t.keys = info.max_shared >= large ? kLargeTile : int(kLeastTile);
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

UInt count_bits(UInt x) {
  x = x - ((x >> 1u) & 0x55555555u);
  x = (x & 0x33333333u) + ((x >> 2u) & 0x33333333u);
  return (((x + (x >> 4u)) & 0x0f0f0f0fu) * 0x01010101u) >> 24u;
}

/// The lanes of the subgroup that have the same digit as this one.
struct Fellows {
  UInt before = 0u, all = 0u;  ///< their number; those in lanes before this one
  UInt first = 0u;             ///< the lane of the first
};

Fellows find_fellows(const UInt& digit, const Bool& takes_part, int lanes) {
  const int words = (lanes + 31) / 32;
  std::vector<UInt> mask;
  const Vec<4, unsigned> some = subgroup_ballot(takes_part);
  for (int w = 0; w < words; ++w) mask.push_back(some[w]);
  for (unsigned bit = 0; bit < unsigned(kDigitBits); ++bit) {
    const Bool set = ((digit >> bit) & 1u) != 0u;
    const Vec<4, unsigned> votes = subgroup_ballot(set);
    for (int w = 0; w < words; ++w) mask[std::size_t(w)] = mask[std::size_t(w)] & select(set, votes[w], ~votes[w]);
  }
  Fellows f;
  const UInt lane = UInt(subgroup_lane());
  for (int w = words - 1; w >= 0; --w) {
    const UInt m = mask[std::size_t(w)], place = lane & 31u;
    UInt below = (UInt(1u) << place) - 1u;
    if (words > 1) below = select((lane >> 5u) > unsigned(w), ~0u, select((lane >> 5u) == unsigned(w), below, 0u));
    f.before += count_bits(m & below);
    f.all += count_bits(m);
    f.first = select(m != 0u, count_bits((m & (~m + 1u)) - 1u) + unsigned(32 * w), f.first);
  }
  return f;
}

template <class B>
Int digit_of(const Var<B>& key, KeyOrder order, const Var<B>& shift, const Int& digits) {
  return Int((ordered_bits<B>(key, order) >> shift) & Var<B>(digits - 1));
}

template <class B>
auto make_count(const Tile& tile, KeyOrder order) {
  return kernel("count digits of tiles",
                [=](Arr<const B> keys, Arr<unsigned> counts, Int n, Int columns, Var<B> shift, Int digits) {
                  auto counters = shared<unsigned>(kDigits);
                  const Int l = local_id(), column = workgroup_id();
                  for (auto d : range(l, kDigits, tile.threads())) counters[d] = 0u;
                  barrier();
                  for (auto r : range(tile.rounds())) {
                    const Int i = column * tile.keys + r * tile.threads() + l;
                    If (i < n) {
                      atomic_add(counters[digit_of<B>(keys[i], order, shift, digits)], 1u);
                    }
                  }
                  barrier();
                  for (auto d : range(l, digits, tile.threads())) counts[d * columns + column] = counters[d];
                },
                {.block = unsigned(tile.threads())});
}

template <class B, class V>
auto make_scatter(const Tile& tile, KeyOrder order, bool pairs) {
  return kernel("move keys of tiles",
                [=](Arr<const B> keys, Arr<const V> values, Arr<const unsigned> starts, Arr<B> sorted_keys,
                    Arr<V> sorted_values, Int n, Int columns, Var<B> shift, Int digits) {
                  auto counters = shared<unsigned, 2>({{tile.rows(), kDigits}});
                  auto sources = shared<unsigned>(tile.keys);
                  const Int l = local_id(), s = subgroup_id(), column = workgroup_id(), first = column * tile.keys;
                  const Int in_tile = min(n - first, tile.keys);
                  const int threads = tile.threads(), turns = (kDigits + threads - 1) / threads;
                  // Calls f(turn, digit) for the digits that this thread looks after.
                  const auto own_digits = [&](auto f) {
                    for (int turn = 0; turn < turns; ++turn) {
                      const Int d = l + turn * threads;
                      If (d < kDigits) {
                        f(std::size_t(turn), d);
                      }
                    }
                  };

                  // Count the digits of each subgroup's part.
                  own_digits([&](std::size_t, const Int& d) {
                    for (int k = 0; k < tile.rows(); ++k) counters(k, d) = 0u;
                  });
                  barrier();
                  const Int part = s * (tile.rounds() * tile.lanes) + subgroup_lane();
                  for (auto r : range(tile.rounds())) {
                    const Int at = part + r * tile.lanes;
                    If (at < in_tile) {
                      atomic_add(counters(s, digit_of<B>(keys[first + at], order, shift, digits)), 1u);
                    }
                  }
                  barrier();

                  // Where digits begin in the sorted tile: a scan of their sums over all subgroups, by the first of
                  // these.
                  own_digits([&](std::size_t, const Int& d) {
                    UInt sum = 0u;
                    for (int k = 0; k < tile.subgroups; ++k) sum += counters(k, d);
                    sources[d] = sum;
                  });
                  barrier();
                  If (s == 0) {
                    UInt before = 0u;
                    for (auto r : range(ceil_div(kDigits, tile.lanes))) {
                      const Int d = Int(r) * tile.lanes + subgroup_lane();
                      const UInt count = sources[d], sum = before + subgroup_inclusive_add(count);
                      sources[d] = sum - count;
                      before = subgroup_broadcast(sum, tile.lanes - 1);
                    }
                  }
                  barrier();

                  // Where the digits of each subgroup begin there, and how far it is from there to the place among all
                  // keys.
                  std::vector<UInt> distance(std::size_t(turns), UInt(0u));
                  own_digits([&](std::size_t turn, const Int& d) {
                    UInt at = sources[d];
                    If (d < digits) {
                      distance[turn] = starts[d * columns + column] - at;
                    }
                    for (int k = 0; k < tile.subgroups; ++k) {
                      const UInt count = counters(k, d);
                      counters(k, d) = at;
                      at += count;
                    }
                  });
                  barrier();

                  // Sort the places.
                  for (auto r : range(tile.rounds())) {
                    const Int at = part + r * tile.lanes;
                    const Bool takes_part = at < in_tile;
                    Int digit = 0;
                    If (takes_part) {
                      digit = digit_of<B>(keys[first + at], order, shift, digits);
                    }
                    const Fellows fellows = find_fellows(UInt(digit), takes_part, tile.lanes);
                    UInt begin = 0u;
                    If (takes_part && fellows.before == 0u) {
                      begin = atomic_add(counters(s, digit), fellows.all);
                    }
                    begin = subgroup_shuffle(begin, fellows.first);
                    If (takes_part) {
                      sources[begin + fellows.before] = UInt(at);
                    }
                  }
                  barrier();
                  own_digits([&](std::size_t turn, const Int& d) { counters(0, d) = distance[turn]; });
                  barrier();

                  // Write them in order.
                  for (auto r : range(tile.rounds())) {
                    const Int place = r * threads + l;
                    If (place < in_tile) {
                      const Int from = first + Int(sources[place]);
                      const Var<B> key = keys[from];
                      const UInt to = UInt(place) + counters(0, digit_of<B>(key, order, shift, digits));
                      sorted_keys[to] = key;
                      if (pairs) sorted_values[to] = values[from];
                    }
                  }
                },
                {.block = unsigned(tile.threads())});
}

}  // namespace

bool sorts_fine(const DeviceState& device) {
  const Tile t = tile_of(device);
  return t.lanes >= 4 && t.subgroups >= 1;
}

std::int64_t sort_tile(const DeviceState& device) { return tile_of(device).keys; }

template <class B>
void count_fine(const Work& work, const Array<B>& keys, KeyOrder order, int shift, int bits,
                const Array<unsigned>& counts, std::int64_t columns) {
  using K = decltype(make_count<B>(Tile(), order));
  const Tile tile = tile_of(work.device());
  const K& count = for_tile<K>(tile, int(order), [&] { return make_count<B>(tile, order); });
  work.run(count, columns * tile.threads(), keys, counts, keys.size(), columns, shift, 1 << bits);
}

template <class B, class V>
void scatter_fine(const Work& work, const SortPass<B, V>& pass, bool pairs, const Array<unsigned>& starts,
                  std::int64_t columns) {
  using K = decltype(make_scatter<B, V>(Tile(), pass.order, pairs));
  const Tile tile = tile_of(work.device());
  const K& move =
      for_tile<K>(tile, 2 * int(pass.order) + pairs, [&] { return make_scatter<B, V>(tile, pass.order, pairs); });
  work.run(move, columns * tile.threads(), pass.keys, pass.values, starts, pass.sorted_keys, pass.sorted_values,
           pass.keys.size(), columns, pass.shift, 1 << pass.bits);
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Counts = Array<unsigned>;
template void count_fine(const Work&, const Array<U32>&, KeyOrder, int, int, const Counts&, std::int64_t);
template void count_fine(const Work&, const Array<U64>&, KeyOrder, int, int, const Counts&, std::int64_t);
template void scatter_fine(const Work&, const SortPass<U32, U32>&, bool, const Counts&, std::int64_t);
template void scatter_fine(const Work&, const SortPass<U32, U64>&, bool, const Counts&, std::int64_t);
template void scatter_fine(const Work&, const SortPass<U64, U32>&, bool, const Counts&, std::int64_t);
template void scatter_fine(const Work&, const SortPass<U64, U64>&, bool, const Counts&, std::int64_t);

}  // namespace weft::detail
