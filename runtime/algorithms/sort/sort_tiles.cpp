// The passes of the radix sort with fine grain. A column is one tile of some thousand keys, or several if a workgroup
// has little room. It sorts a tile by one digit in its own memory before it writes it, so that keys of one digit are
// written side by side.
//
// The larger a tile, the longer are the runs of equal digits that are written. But memory idles while a tile is ranked,
// and the arithmetic units idle while it is written: two workgroups must fit side by side, so that one does this while
// the other does that. Registers decide it: an H200 gives a thread 128 of them for 22 keys, and has room for two
// workgroups of 256 such threads. Of 512, or of 1024 with 11 keys, it has room for one, which takes a fifth longer.
// Figures: docs/performance.md.
//
// Nearly all tiles are full. In the last one, which may not be, threads beyond the last key get keys that no other
// follows, so these go to the end of the tile; each thread then writes its own keys to their places. The common part of
// both ways is written once, but not the memory accesses: tests around each of them, or values that come from either
// way, take registers.
#include "sort_tile.h"

namespace weft::detail {

namespace {

constexpr int kMostSubgroups = 32;
// Bits of a place in a tile; its register has room for a digit besides. most_rounds() gives a tile 11,264 keys at most.
constexpr int kPlaceBits = 16;
static_assert(kPlaceBits + kDigitBits <= 32);
/// The most rounds. They are unrolled, so that a thread's keys are in its registers: on an H200 1024 threads hold 11
/// keys each, and fewer threads hold more. On narrow subgroups, as CPUs have, that is more code than it is worth: their
/// drivers take seconds, or minutes, to compile it.
int most_rounds(const backend::DeviceInfo& info, int threads) {
  if (info.subgroup_size < 16) return 2;
  const int most = std::clamp(11 * 1024 / threads, 1, sort_limits().most_rounds);
  return info.subgroup_size >= 32 ? most : std::min(most, info.software ? 8 : 16);
}

/// The largest tile for which there is room.
Tile largest_tile(const DeviceState& device, int element_bytes, int most_threads = sort_limits().most_threads) {
  const backend::DeviceInfo& info = device.device->info();
  Tile best;
  best.lanes = int(info.subgroup_size);
  if (best.lanes == 0) return best;
  const int most = std::min(kMostSubgroups, std::min(most_threads, int(info.max_block)) / best.lanes);
  for (int subgroups = most; subgroups > 0; subgroups /= 2) {
    Tile t{{best.lanes, subgroups, 0}};
    if (t.other_bytes() >= info.max_shared) continue;
    const int elements = int((info.max_shared - t.other_bytes()) / std::uint64_t(element_bytes));
    if (subgroups * Tile::kStride > elements) continue;
    t.rounds = std::min(most_rounds(info, t.threads()), elements / t.threads());
    if (t.keys() > best.keys()) best = t;
  }
  return best;
}

/// A smaller tile if there would be too few to keep a large device busy.
Tile tile_of(const DeviceState& device, int element_bytes, std::int64_t n) {
  constexpr int kFewRounds = 8;
  Tile tile = largest_tile(device, element_bytes);
  if (n < sort_limits().few_tiles * tile.keys()) tile.rounds = std::min(tile.rounds, kFewRounds);
  return tile;
}

/// The largest of the parts into which `whole` is divided as evenly as possible, each of `most` or less.
int even_parts(int whole, int most) {
  const int parts = (whole + most - 1) / most;
  return (whole + parts - 1) / parts;
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
                  const int threads = tile.threads();
                  const Column column(workgroup_id(), tiles, n, tile);
                  for (auto d : range(l, kDigits, threads)) counters[d] = 0u;
                  barrier();
                  // Loads of so many keys of a thread are under way at once.
                  const int each = even_parts(tile.rounds, 16), step = each * threads;
                  const Int last = min(column.last * tile.keys(), n);
                  for (auto first : range(column.first * tile.keys(), last, step)) {
                    std::vector<Var<B>> key;
                    const auto at = [&](int r) { return first + (l + r * threads); };
                    for (int r = 0; r < each; ++r) key.push_back(Var<B>(keys[min(at(r), last - 1)]));
                    for (int r = 0; r < each; ++r)
                      If (at(r) < last) {
                        atomic_add(counters[digit_of<B>(key[std::size_t(r)], order, shift, digits)], 1u);
                      }
                  }
                  barrier();
                  for (auto d : range(l, digits, threads)) counts[d * columns + column.number] = counters[d];
                },
                {.block = unsigned(tile.threads())});
}

/// A kernel with a workgroup per digit: scans the digit's counts over the columns, and writes its total to `totals`.
auto make_scan(const Tile& tile) {
  return kernel("scan counts of digits",
                [=](Arr<unsigned> counts, Arr<unsigned> totals, Int columns) {
                  constexpr int kEach = 4;  // columns of a thread, side by side
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

/// A workgroup that moves the keys of a column of tiles, and the values that go with them, to their places.
///
/// Keys of one digit are contiguous in the result, those of earlier columns first, and of earlier tiles in a column.
/// Each digit's place in the result is `start` (in registers of the digit's own threads); it moves on with each tile.
///
///   start[d] = keys of all digits before d + keys of digit d in the columns before
///   for each tile of the column
///     place[r] = where a thread's key number r goes among the keys of the tile, in order of their digits
///     full:  sort in shared memory, and write in order: neighbours in the tile go to neighbours in the result
///     else:  the last tile of all; the places beyond the end are taken by keys that sort last, and are not written
///     start[d] += keys of digit d in the tile
template <class B, class V>
class ColumnMover {
  using W = Wider<B, V>;

 public:
  /// The kernel's arguments.
  struct Given {
    const Arr<const B>& keys;
    const Arr<const V>& values;
    const Arr<const unsigned>&starts, &totals;
    const Arr<B>& sorted_keys;
    const Arr<V>& sorted_values;
    const Int &n, &columns, &tiles;
    const Var<B>& shift;
    const Int& digits;
  };

  // The last columns run first: the counting launch read them last, and caches may still have them.
  ColumnMover(const Tile& tile, KeyOrder order, bool pairs, const Given& given)
      : tile_(tile),
        order_(order),
        pairs_(pairs),
        given_(given),
        sorter_(tile),
        begins_(shared<unsigned>(kDigits)),
        lane_(local_id()),
        column_(workgroup_count() - 1 - workgroup_id(), given.tiles, given.n, tile),
        rounds_(std::size_t(tile.rounds)),
        key_(rounds_, Var<B>(B(0))) {}

  void run() {
    read_full(column_.first * tile_.keys());
    find_starts();  // while the first keys are loaded
    for (auto t : range(column_.first, column_.last)) move(t);
  }

 private:
  using Places = std::vector<UInt>;

  // Reads the keys of a full tile whose first key is at `first`. Other tiles are read when their turn comes.
  void read_full(const Int& first) {
    If (given_.n - first >= tile_.keys()) {
      for (std::size_t r = 0; r < rounds_; ++r) key_[r] = given_.keys[first + sorter_.source(r)];
    }
  }

  // Finds where the first keys of each digit go.
  void find_starts() {
    auto start = sorter_.zeros(), total = sorter_.zeros();
    sorter_.own_digits([&](std::size_t turn, const Int& d, const Int& part) {
      If (part == 0 && d < given_.digits) {
        start[turn] = given_.starts[d * given_.columns + column_.number];
        total[turn] = given_.totals[d];
      }
    });
    const auto digits_before = sorter_.scan(total);
    for (std::size_t turn = 0; turn < start.size(); ++turn) start[turn] += digits_before[turn];
    start_ = std::move(start);
  }

  void move(const Int& t) {
    const Int first = t * tile_.keys(), keys_left = min(given_.n - first, tile_.keys());
    const Bool full = keys_left == tile_.keys();
    If (!full) {
      read_last(first, keys_left);
    }
    // For each digit, the distance from a place in the tile to the place among all keys.
    const auto digit = [&](std::size_t r) { return digit_of_key(key_[r]); };
    Places place = sorter_.places(digit, [&](std::size_t turn, const Int& d, const UInt& in_tile) {
      start_[turn] -= in_tile;
      begins_[d] = start_[turn];
    });
    If (t + 1 < column_.last) {
      go_on();
    }
    barrier();
    If (full) {
      write_full(first, place);
      If (t + 1 < column_.last) {
        barrier();  // the next tile's counters use this memory
        read_full(first + tile_.keys());
      }
    }
    Else { write_last(first, place); }
  }

  void read_last(const Int& first, const Int& keys_left) {
    for (auto k : range(lane_, tile_.keys(), tile_.threads())) {
      Var<B> known = last_key<B>(order_);
      If (k < keys_left) {
        known = given_.keys[first + k];
      }
      sorter_[k] = Var<W>(known);
    }
    barrier();
    for (std::size_t r = 0; r < rounds_; ++r) key_[r] = Var<B>(Var<W>(sorter_[sorter_.source(r)]));
    barrier();
  }

  // Moves `start` on: the next tile's keys go after this one's.
  void go_on() {
    sorter_.own_digits([&](std::size_t turn, const Int& d, const Int& part) {
      If (part == 0) {
        const Int after = min(d + 1, kDigits - 1);
        start_[turn] += select(d + 1 < kDigits, UInt(Var<W>(sorter_.counter(0, after))), unsigned(tile_.keys()));
      }
    });
  }

  // The values are loaded while keys are written.
  void write_full(const Int& first, Places& place) {
    for (std::size_t r = 0; r < rounds_; ++r) sorter_[place[r]] = Var<W>(key_[r]);
    std::vector<Var<V>> value;
    for (std::size_t r = 0; r < rounds_ && pairs_; ++r)
      value.push_back(Var<V>(given_.values[first + sorter_.source(r)]));
    barrier();
    const auto place_of = [&](std::size_t r) { return int(r) * tile_.threads() + lane_; };
    const auto to = [&](std::size_t r, const Int& d) { return UInt(place_of(r)) + begins_[d]; };
    for (std::size_t r = 0; r < rounds_; ++r) {
      const Var<B> k = Var<B>(Var<W>(sorter_[place_of(r)]));
      const Int d = digit_of_key(k);
      given_.sorted_keys[to(r, d)] = k;
      // One register holds two numbers, because registers are scarcest here.
      if (pairs_) place[r] |= UInt(d) << kPlaceBits;
    }
    if (!pairs_) return;
    barrier();
    for (std::size_t r = 0; r < rounds_; ++r) sorter_[place[r] & ((1u << kPlaceBits) - 1u)] = Var<W>(value[r]);
    barrier();
    for (std::size_t r = 0; r < rounds_; ++r)
      given_.sorted_values[to(r, Int(place[r] >> kPlaceBits))] = Var<V>(Var<W>(sorter_[place_of(r)]));
  }

  void write_last(const Int& first, const Places& place) {
    for (std::size_t r = 0; r < rounds_; ++r)
      If (first + sorter_.source(r) < given_.n) {
        const UInt to = place[r] + begins_[digit_of_key(key_[r])];
        given_.sorted_keys[to] = key_[r];
        if (pairs_) given_.sorted_values[to] = given_.values[first + sorter_.source(r)];
      }
  }

  Int digit_of_key(const Var<B>& key) const { return digit_of<B>(key, order_, given_.shift, given_.digits); }

  const Tile& tile_;
  const KeyOrder order_;
  const bool pairs_;
  const Given given_;
  const TileSorter<W> sorter_;
  const decltype(shared<unsigned>(1)) begins_;
  const Int lane_;
  const Column column_;
  const std::size_t rounds_;
  std::vector<Var<B>> key_;
  std::vector<UInt> start_;
};

template <class B, class V>
auto make_scatter(const Tile& tile, KeyOrder order, bool pairs) {
  return kernel("move keys of tiles",
                [=](Arr<const B> keys, Arr<const V> values, Arr<const unsigned> starts, Arr<const unsigned> totals,
                    Arr<B> sorted_keys, Arr<V> sorted_values, Int n, Int columns, Int tiles, Var<B> shift, Int digits) {
                  ColumnMover<B, V>(
                      tile, order, pairs,
                      {keys, values, starts, totals, sorted_keys, sorted_values, n, columns, tiles, shift, digits})
                      .run();
                },
                {.block = unsigned(tile.threads())});
}

/// The shape of workgroups that scan counts, four of each thread at once: a round covers 1,024 columns, some six
/// million keys. More threads would cover more keys in one round, and took longer on an H200 for fewer keys.
Tile scan_shape(const DeviceState& device) {
  constexpr int kThreads = 256;
  const backend::DeviceInfo& info = device.device->info();
  const int lanes = int(info.subgroup_size);
  return {{lanes, std::clamp(std::min(kThreads, int(info.max_block)) / lanes, 1, kMostSubgroups), 0}};
}

}  // namespace

SortLimits& sort_limits() {
  static SortLimits limits;
  return limits;
}

bool sorts_fine(const DeviceState& device) {
  const Tile t = largest_tile(device, 8);
  return t.lanes >= 4 && t.subgroups >= 1;
}

TileShape lone_tile(const DeviceState& device, int element_bytes, std::int64_t n) {
  Tile tile = largest_tile(device, element_bytes, sort_limits().lone_threads);
  const int most = sort_limits().lone_tile ? tile.rounds : 0;
  for (tile.rounds = 1; tile.rounds <= most; tile.rounds *= 2)
    if (n <= tile.keys()) return tile;
  return {};
}

FineShape fine_shape(const DeviceState& device, int element_bytes, std::int64_t n) {
  const Tile tile = tile_of(device, element_bytes, n);
  const std::int64_t tiles = ceil_div(sort_limits().least_column, tile.keys());
  return {tile, ceil_div(n, tiles * tile.keys()), tiles};
}

template <class B>
void count_fine(const AlgorithmCall& call, const FineShape& shape, const Array<B>& keys, KeyOrder order, int shift,
                int bits, const Array<unsigned>& counts) {
  using K = decltype(make_count<B>(Tile(), order));
  const Tile tile{shape.tile};
  const K& count = for_tile<K>(tile, int(order), [&] { return make_count<B>(tile, order); });
  call.run(count, shape.columns * tile.threads(), keys, counts, keys.size(), shape.columns, shape.tiles, shift,
           1 << bits);
}

void scan_fine(const AlgorithmCall& call, const FineShape& shape, int bits, const Array<unsigned>& counts,
               const Array<unsigned>& totals) {
  using K = decltype(make_scan(Tile()));
  const Tile scanning = scan_shape(call.device());
  const K& scan = for_tile<K>(scanning, 0, [&] { return make_scan(scanning); });
  call.run(scan, std::int64_t(scanning.threads()) << bits, counts, totals, shape.columns);
}

template <class B, class V>
void scatter_fine(const AlgorithmCall& call, const FineShape& shape, const SortPass<B, V>& pass, bool pairs,
                  const Array<unsigned>& starts, const Array<unsigned>& totals) {
  using K = decltype(make_scatter<B, V>(Tile(), pass.order, pairs));
  const Tile tile{shape.tile};
  const K& move =
      for_tile<K>(tile, 2 * int(pass.order) + pairs, [&] { return make_scatter<B, V>(tile, pass.order, pairs); });
  call.run(move, shape.columns * tile.threads(), pass.keys, pass.values, starts, totals, pass.sorted_keys,
           pass.sorted_values, pass.keys.size(), shape.columns, shape.tiles, pass.shift, 1 << pass.bits);
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Counts = Array<unsigned>;
template void count_fine(const AlgorithmCall&, const FineShape&, const Array<U32>&, KeyOrder, int, int, const Counts&);
template void count_fine(const AlgorithmCall&, const FineShape&, const Array<U64>&, KeyOrder, int, int, const Counts&);
template void scatter_fine(const AlgorithmCall&, const FineShape&, const SortPass<U32, U32>&, bool, const Counts&,
                           const Counts&);
template void scatter_fine(const AlgorithmCall&, const FineShape&, const SortPass<U32, U64>&, bool, const Counts&,
                           const Counts&);
template void scatter_fine(const AlgorithmCall&, const FineShape&, const SortPass<U64, U32>&, bool, const Counts&,
                           const Counts&);
template void scatter_fine(const AlgorithmCall&, const FineShape&, const SortPass<U64, U64>&, bool, const Counts&,
                           const Counts&);

}  // namespace weft::detail
