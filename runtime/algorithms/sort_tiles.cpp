// The passes of the radix sort with fine grain. A column is a row of tiles of some thousand keys, which a workgroup of
// some 384 threads takes one after the other. It sorts a tile by one digit in its own memory before it writes it, so
// that keys of one digit are written side by side.
//
// A thread holds up to 22 keys of a tile, one of each round. In a round the lanes of a subgroup that have the same
// digit find each other by eight votes. Each goes as many places behind what the subgroup's counter of that digit says
// as there are fellows in lanes before it, and the last of them counts them all: the order of equal digits is kept.
// When all rounds are done, the counters of all subgroups say where the digits of each begin in the sorted tile.
//
// What a round leaves in a counter the next finds there: all lanes have read it before the last one of them writes, and
// none goes on before that. No other subgroup comes to its counters meanwhile, so that it clears them itself, and
// waits for others only where sums of all are taken.
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
  /// Subgroups that have digits, turn by turn.
  int sums() const { return turns() * subgroups; }
  bool operator<(const Tile& o) const {
    return std::tie(lanes, subgroups, rounds) < std::tie(o.lanes, o.subgroups, o.rounds);
  }
};

/// Of a workgroup. With 384 threads and 22 rounds an H200 sorts fastest, of 128 to 512 and 8 to 24: the larger a tile,
/// the longer are the runs of equal digits that are written, and its threads' registers leave no room for a second
/// workgroup anyway.
constexpr int kMostThreads = 384, kMostSubgroups = 12;
/// Rounds are written out, so that a thread's keys are in its registers. Where subgroups are narrow, as on CPUs, that
/// is more code than it is worth: their drivers take seconds, or minutes, to compile it.
int most_rounds(const backend::DeviceInfo& info) {
  if (info.subgroup_size >= 32) return 22;
  if (info.subgroup_size < 16) return 2;
  return info.software ? 8 : 16;
}
/// Columns of many keys: enough for the largest devices, whose workgroups then need not be equally quick, and few
/// counters to scan.
constexpr std::int64_t kMostColumns = 1024;

/// The largest tile that there is room for.
/// \param element_bytes  of keys or values, whichever are larger
Tile tile_of(const DeviceState& device, int element_bytes) {
  const backend::DeviceInfo& info = device.device->info();
  Tile best;
  best.lanes = int(info.subgroup_size);
  if (best.lanes == 0) return best;
  // A workgroup of fewer subgroups has fewer counters and more room for each.
  const int most = std::min(kMostSubgroups, std::min(kMostThreads, int(info.max_block)) / best.lanes);
  for (int subgroups = most; subgroups > 0; subgroups /= 2) {
    const Tile none{best.lanes, subgroups, 0};
    const std::uint64_t counters =
        (std::uint64_t(subgroups + 1) * kDigits + std::uint64_t(none.sums())) * sizeof(unsigned);
    if (counters >= info.max_shared) continue;
    const std::uint64_t each = std::uint64_t(none.threads()) * std::uint64_t(element_bytes);
    const Tile t{best.lanes, subgroups, std::min(most_rounds(info), int((info.max_shared - counters) / each))};
    if (t.keys() > best.keys()) best = t;
  }
  return best;
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
  UInt before = 0u;   ///< those in lanes before this one
  Bool last = false;  ///< none is in a lane behind it
};

Fellows find_fellows(const UInt& digit, int lanes) {
  const int words = (lanes + 31) / 32;
  std::vector<UInt> mask(std::size_t(words), UInt(lanes < 32 ? (1u << lanes) - 1u : ~0u));
  // Nearly half of a sort's instructions.
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const Bool set = (digit & (1u << bit)) != 0u;
    const Vec<4, unsigned> votes = subgroup_ballot(set);
    for (int w = 0; w < words; ++w) mask[std::size_t(w)] &= select(set, UInt(votes[w]), ~UInt(votes[w]));
  }
  Fellows f;
  const UInt lane = UInt(subgroup_lane());
  if (words == 1) {
    f.before = popcount(mask[0] & ((UInt(1u) << lane) - 1u));
    f.last = (mask[0] >> lane) == 1u;
    return f;
  }
  UInt all = 0u;
  for (int w = 0; w < words; ++w) {
    const UInt m = mask[std::size_t(w)], word = lane >> 5u;
    const UInt below =
        select(word > unsigned(w), ~0u, select(word == unsigned(w), (UInt(1u) << (lane & 31u)) - 1u, 0u));
    f.before += popcount(m & below);
    all += popcount(m);
  }
  f.last = f.before + 1u == all;
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
  Int number, first, last;

  Column(const Int& number, const Int& tiles, const Int& n, const Tile& tile) : number(number) {
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
                  const Column column(workgroup_id(), tiles, n, tile);
                  for (auto d : range(l, kDigits, tile.threads())) counters[d] = 0u;
                  barrier();
                  // As many keys of a thread are on their way at once.
                  const int each = std::min(tile.rounds, 16), step = each * tile.threads();
                  const Int last = min(column.last * tile.keys(), n);
                  for (auto first : range(column.first * tile.keys(), last, step)) {
                    std::vector<Var<B>> key;
                    const auto at = [&](int r) { return first + (l + r * tile.threads()); };
                    for (int r = 0; r < each; ++r) key.push_back(Var<B>(keys[min(at(r), last - 1)]));
                    for (int r = 0; r < each; ++r)
                      If (at(r) < last) {
                        atomic_add(counters[digit_of<B>(key[std::size_t(r)], order, shift, digits)], 1u);
                      }
                  }
                  barrier();
                  for (auto d : range(l, digits, tile.threads())) counts[d * columns + column.number] = counters[d];
                },
                {.block = unsigned(tile.threads())});
}

/// A workgroup for each digit: what all columns before each have of it, and its number in `totals`.
auto make_scan(const Tile& tile) {
  return kernel("scan counts of digits",
                [=](Arr<unsigned> counts, Arr<unsigned> totals, Int columns) {
                  constexpr int kEach = 4;  // of a thread, side by side
                  auto sums = shared<unsigned>(tile.subgroups);
                  const Int l = local_id(), s = subgroup_id(), row = workgroup_id() * columns;
                  UInt carried = 0u;
                  for (auto first : range(0, columns, kEach * tile.threads())) {
                    const Int at = first + kEach * l;
                    std::vector<UInt> count(kEach, UInt(0u));
                    UInt sum = 0u;
                    for (int k = 0; k < kEach; ++k) {
                      If (at + k < columns) {
                        count[std::size_t(k)] = counts[row + at + k];
                      }
                      sum += count[std::size_t(k)];
                    }
                    const UInt before = subgroup_exclusive_add(sum);
                    If (subgroup_lane() == tile.lanes - 1) {
                      sums[s] = before + sum;
                    }
                    barrier();
                    UInt to = carried + before;
                    for (int k = 0; k < tile.subgroups; ++k) {
                      const UInt of_subgroup = sums[k];
                      to += select(s > k, of_subgroup, 0u);
                      carried += of_subgroup;
                    }
                    for (int k = 0; k < kEach; ++k) {
                      If (at + k < columns) {
                        counts[row + at + k] = to;
                      }
                      to += count[std::size_t(k)];
                    }
                    barrier();
                  }
                  If (l == 0) {
                    totals[workgroup_id()] = carried;
                  }
                },
                {.block = unsigned(tile.threads())});
}

template <class B, class V>
auto make_scatter(const Tile& tile, KeyOrder order, bool pairs) {
  // Keys and values are in the workgroup's memory one after the other, as what is wider.
  using W = std::conditional_t<(sizeof(V) > sizeof(B)), V, B>;
  return kernel("move keys of tiles",
                [=](Arr<const B> keys, Arr<const V> values, Arr<const unsigned> starts, Arr<const unsigned> totals,
                    Arr<B> sorted_keys, Arr<V> sorted_values, Int n, Int columns, Int tiles, Var<B> shift, Int digits) {
                  auto counters = shared<unsigned, 2>({{tile.subgroups, kDigits}});
                  auto begins = shared<unsigned>(kDigits);
                  auto sums = shared<unsigned>(tile.sums());
                  auto sorted = shared<W>(tile.keys());
                  const Int l = local_id(), s = subgroup_id();
                  // The last columns come first: the pass has read them last when it counted, and caches may still have
                  // them.
                  const Column column(workgroup_count() - 1 - workgroup_id(), tiles, n, tile);
                  const std::size_t rounds = std::size_t(tile.rounds);
                  using OfTurns = std::vector<UInt>;
                  const OfTurns nothing(std::size_t(tile.turns()), UInt(0u));
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
                  // What comes before each digit by the numbers of all.
                  const auto scan_digits = [&](const OfTurns& number) {
                    OfTurns before = nothing;
                    for (std::size_t turn = 0; turn < number.size(); ++turn) {
                      before[turn] = subgroup_exclusive_add(number[turn]);
                      If (subgroup_lane() == tile.lanes - 1) {
                        sums[int(turn) * tile.subgroups + s] = before[turn] + number[turn];
                      }
                    }
                    barrier();
                    own_digits([&](std::size_t turn, const Int& d) {
                      constexpr int kFew = 8;
                      const Int subgroups_before = d / tile.lanes;
                      if (kDigits / tile.lanes <= kFew)
                        for (int k = 0; k + 1 < kDigits / tile.lanes; ++k)
                          before[turn] += select(subgroups_before > k, UInt(sums[k]), 0u);
                      else
                        for (auto k : range(subgroups_before)) before[turn] += sums[k];
                    });
                    return before;
                  };
                  // Its subgroup's counters: no other comes to them before the next barrier.
                  const auto clear = [&] {
                    for (auto d : range(subgroup_lane(), kDigits, tile.lanes)) counters(s, d) = 0u;
                    subgroup_barrier();
                  };

                  // Where the next tile's keys of each digit go.
                  OfTurns start = nothing, total = nothing;
                  own_digits([&](std::size_t turn, const Int& d) {
                    If (d < digits) {
                      start[turn] = starts[d * columns + column.number];
                      total[turn] = totals[d];
                    }
                  });
                  const OfTurns of_digits = scan_digits(total);
                  for (std::size_t turn = 0; turn < start.size(); ++turn) start[turn] += of_digits[turn];
                  clear();

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
                      barrier();  // the tile before is still being read
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
                    }

                    // The place of each key among those of its digit in its subgroup's part.
                    for (std::size_t r = 0; r < rounds; ++r) {
                      const Int d = digit(r);
                      const Fellows fellows = find_fellows(UInt(d), tile.lanes);
                      place[r] = UInt(counters(s, d)) + fellows.before;
                      subgroup_barrier();
                      If (fellows.last) {
                        counters(s, d) = place[r] + 1u;
                      }
                      subgroup_barrier();
                    }
                    barrier();

                    // Where digits begin in the sorted tile, by their sums over all subgroups; from there to the place
                    // among all keys; and where the digits of each subgroup begin.
                    OfTurns sum = nothing;
                    own_digits([&](std::size_t turn, const Int& d) {
                      for (int k = 0; k < tile.subgroups; ++k) {
                        const UInt count = counters(k, d);
                        counters(k, d) = sum[turn];
                        sum[turn] += count;
                      }
                    });
                    const OfTurns begin = scan_digits(sum);
                    own_digits([&](std::size_t turn, const Int& d) {
                      for (int k = 0; k < tile.subgroups; ++k) counters(k, d) += begin[turn];
                      begins[d] = start[turn] - begin[turn];
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
                      clear();
                    }
                    Else {  // the last of all
                      for (std::size_t r = 0; r < rounds; ++r)
                        If (source(r) < n) {
                          const UInt to = place[r] + begins[digit(r)];
                          sorted_keys[to] = key[r];
                          if (pairs) sorted_values[to] = values[source(r)];
                        }
                    }
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
void scan_fine(const Work& work, const SortPass<B, V>& pass, const Array<unsigned>& counts,
               const Array<unsigned>& totals) {
  using K = decltype(make_scan(Tile()));
  const Tile tile = tile_for<B, V>(work.device());
  const K& scan = for_tile<K>(tile, 0, [&] { return make_scan(tile); });
  work.run(scan, std::int64_t(tile.threads()) << pass.bits, counts, totals, divide(pass.keys.size(), tile).columns);
}

template <class B, class V>
void scatter_fine(const Work& work, const SortPass<B, V>& pass, bool pairs, const Array<unsigned>& starts,
                  const Array<unsigned>& totals) {
  using K = decltype(make_scatter<B, V>(Tile(), pass.order, pairs));
  const std::int64_t n = pass.keys.size();
  const Tile tile = tile_for<B, V>(work.device());
  const auto [columns, tiles] = divide(n, tile);
  const K& move =
      for_tile<K>(tile, 2 * int(pass.order) + pairs, [&] { return make_scatter<B, V>(tile, pass.order, pairs); });
  work.run(move, columns * tile.threads(), pass.keys, pass.values, starts, totals, pass.sorted_keys, pass.sorted_values,
           n, columns, tiles, pass.shift, 1 << pass.bits);
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
template void scan_fine(const Work&, const SortPass<U32, U32>&, const Counts&, const Counts&);
template void scatter_fine(const Work&, const SortPass<U32, U32>&, bool, const Counts&, const Counts&);
template void scan_fine(const Work&, const SortPass<U32, U64>&, const Counts&, const Counts&);
template void scatter_fine(const Work&, const SortPass<U32, U64>&, bool, const Counts&, const Counts&);
template void scan_fine(const Work&, const SortPass<U64, U32>&, const Counts&, const Counts&);
template void scatter_fine(const Work&, const SortPass<U64, U32>&, bool, const Counts&, const Counts&);
template void scan_fine(const Work&, const SortPass<U64, U64>&, const Counts&, const Counts&);
template void scatter_fine(const Work&, const SortPass<U64, U64>&, bool, const Counts&, const Counts&);

}  // namespace weft::detail
