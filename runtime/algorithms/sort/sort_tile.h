// How a workgroup sorts its tile of keys by one digit, in fine grain. Internal to the runtime; sort_tiles.cpp moves
// tiles of many keys by it, and sort_lone_tile.cpp sorts keys that are one tile.
//
// A thread holds up to 22 keys of a tile, one of each round. In a round the lanes of a subgroup that have the same
// digit find each other by eight votes. Each goes as many places behind what the subgroup's counter of that digit says
// as there are fellows in lanes before it, and the last of them counts them all: the order of equal digits is kept.
// When all rounds are done, a scan over all counters, by digit and among those of one digit by subgroup, says where the
// digits of each subgroup begin in the sorted tile.
//
// What a round leaves in a counter the next finds there: all lanes have read it before the last one of them writes, and
// none goes on before that. No other subgroup comes to its counters meanwhile, so that it clears them itself, and
// waits for others only where sums of all are taken.
//
// Counters, sorted keys and sorted values take turns in the same memory, and all have the width of what is wider, so
// that 8-byte ones have fewer threads as well.
//
//   digits of a subgroup of 4 lanes    2 0 2 1 | 0 2 0 0    (two rounds)
//   place among those of its digit     0 0 1 0 | 1 2 2 3
//   counters in the end                0: 4, 1: 1, 2: 3, which begin at 0, 4 and 5
//   sorted                             0 0 0 0 1 2 2 2
#pragma once
#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "../../../frontend/kernels/group.h"
#include "sort_passes.h"

namespace weft::detail {

/// A tile, and who looks after what of it.
struct Tile : TileShape {
  int threads() const { return lanes * subgroups; }
  int keys() const { return threads() * rounds; }
  /// Of the counters of a digit: parts() threads look after them, each after those of rows() subgroups. A thread does
  /// so for turns() digits, one by one: more than one where there are fewer threads than digits.
  int parts() const { return std::max(1, threads() / kDigits); }
  int rows() const { return (subgroups + parts() - 1) / parts(); }
  int turns() const { return (kDigits + threads() - 1) / threads(); }
  /// Sums of subgroups, turn by turn.
  int sums() const { return turns() * subgroups; }
  /// Counters of a subgroup, and where those of the next begin: apart, so that threads that look after one digit come
  /// to different banks of the memory.
  static constexpr int kStride = kDigits + 1;
  /// What a workgroup needs of its memory beside keys and counters: where digits begin, and sums.
  std::uint64_t other_bytes() const { return (kDigits + std::uint64_t(sums())) * sizeof(unsigned); }
  /// Elements of memory that keys and counters share.
  int shared_elements() const { return std::max(keys(), subgroups * kStride); }
  bool operator<(const Tile& o) const {
    return std::tie(lanes, subgroups, rounds) < std::tie(o.lanes, o.subgroups, o.rounds);
  }
};

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

inline Fellows find_fellows(const UInt& digit, int lanes) {
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

/// Keys and values of `B` and `V` are in the workgroup's memory one after the other, as what is wider.
template <class B, class V>
using Wider = std::conditional_t<(sizeof(V) > sizeof(B)), V, B>;

/// Sorts a tile within a kernel, in memory of elements of W.
template <class W>
class TileSorter {
 public:
  /// A number for each of a thread's turns().
  using OfTurns = std::vector<UInt>;

  explicit TileSorter(const Tile& tile)
      : tile_(tile),
        memory_(shared<W>(tile.shared_elements())),
        sums_(shared<unsigned>(tile.sums())),
        thread_(local_id()),
        subgroup_(subgroup_id()),
        lane_(subgroup_lane()) {}

  OfTurns zeros() const { return OfTurns(std::size_t(tile_.turns()), UInt(0u)); }

  /// The memory between sorts: as many elements as a tile has keys.
  auto& operator[](const Int& i) const { return memory_[i]; }
  auto& operator[](const UInt& i) const { return memory_[i]; }
  auto& counter(const Int& subgroup, const Int& digit) const { return memory_[subgroup * Tile::kStride + digit]; }
  /// Where in the tile the key of a round comes from: a subgroup's are side by side, and its lanes' of a round.
  Int source(std::size_t round) const {
    return subgroup_ * (tile_.rounds * tile_.lanes) + lane_ + int(round) * tile_.lanes;
  }

  /// Calls f(turn, digit, part) for what this thread looks after.
  template <class F>
  void own_digits(F f) const {
    for (int turn = 0; turn < tile_.turns(); ++turn) {
      const Int at = thread_ + turn * tile_.threads(), d = at / tile_.parts(), part = at - d * tile_.parts();
      if (tile_.threads() * (turn + 1) <= kDigits * tile_.parts())
        f(std::size_t(turn), d, part);
      else If (d < kDigits) {
        f(std::size_t(turn), d, part);
      }
    }
  }

  /// What comes before each thread's turns, by the numbers of all. All threads come.
  OfTurns scan(const OfTurns& numbers) const {
    OfTurns before = zeros();
    // The sums count the subgroups turn by turn.
    for (std::size_t turn = 0; turn < before.size(); ++turn) {
      before[turn] = subgroup_exclusive_add(numbers[turn]);
      If (lane_ == tile_.lanes - 1) {
        sums_[int(turn) * tile_.subgroups + subgroup_] = before[turn] + numbers[turn];
      }
    }
    barrier();
    for (std::size_t turn = 0; turn < before.size(); ++turn) {
      // Each lane adds up some of the sums of the subgroups before.
      const Int subgroups_before = int(turn) * tile_.subgroups + subgroup_;
      UInt some = 0u;
      for (int first = 0; first < (int(turn) + 1) * tile_.subgroups; first += tile_.lanes) {
        const Int at = first + lane_;
        some += select(at < subgroups_before, UInt(sums_[min(at, subgroups_before)]), 0u);
      }
      before[turn] += subgroup_add(some);
    }
    return before;
  }

  /// Where each of this thread's keys goes in the sorted tile, by digit(round). Takes the memory: a barrier must come
  /// between what was read of it and this. Afterwards counter(0, d) says where digit d begins, until a barrier.
  /// \param begin  begin(turn, d, where): called by the first of those who look after a digit, in their own_digits()
  template <class Digit, class Begin>
  std::vector<UInt> places(Digit digit, Begin begin) const {
    const std::size_t rounds = std::size_t(tile_.rounds);
    std::vector<UInt> place(rounds, UInt(0u));
    // The place of each key among those of its digit in its subgroup's part.
    for (auto d : range(lane_, kDigits, tile_.lanes)) counter(subgroup_, d) = Var<W>(W(0));
    subgroup_barrier();
    for (std::size_t r = 0; r < rounds; ++r) {
      const Int d = digit(r);
      const Fellows fellows = find_fellows(UInt(d), tile_.lanes);
      place[r] = UInt(Var<W>(counter(subgroup_, d))) + fellows.before;
      subgroup_barrier();
      If (fellows.last) {
        counter(subgroup_, d) = Var<W>(place[r] + 1u);
      }
      subgroup_barrier();
    }
    barrier();

    // Where the digits of each subgroup begin in the sorted tile.
    OfTurns sum = zeros();
    std::vector<OfTurns> count(std::size_t(tile_.rows()), zeros());
    own_digits([&](std::size_t turn, const Int& d, const Int& part) {
      own_counters(part, [&](std::size_t row, const Int& subgroup) {
        count[row][turn] = UInt(Var<W>(counter(subgroup, d)));
        sum[turn] += count[row][turn];
      });
    });
    const OfTurns in_tile = scan(sum);
    own_digits([&](std::size_t turn, const Int& d, const Int& part) {
      UInt to = in_tile[turn];
      If (part == 0) {
        begin(turn, d, to);
      }
      own_counters(part, [&](std::size_t row, const Int& subgroup) {
        counter(subgroup, d) = Var<W>(to);
        to += count[row][turn];
      });
    });
    barrier();
    for (std::size_t r = 0; r < rounds; ++r) place[r] += UInt(Var<W>(counter(subgroup_, digit(r))));
    return place;
  }

 private:
  /// Calls f(row, subgroup) for those whose counters of a digit part `part` looks after.
  template <class F>
  void own_counters(const Int& part, F f) const {
    for (int row = 0; row < tile_.rows(); ++row) {
      const Int subgroup = part * tile_.rows() + row;
      if (tile_.rows() * tile_.parts() == tile_.subgroups)
        f(std::size_t(row), subgroup);
      else If (subgroup < tile_.subgroups) {
        f(std::size_t(row), subgroup);
      }
    }
  }

  const Tile tile_;
  const Shared<W> memory_;
  const Shared<unsigned> sums_;
  const Int thread_, subgroup_, lane_;
};

}  // namespace weft::detail
