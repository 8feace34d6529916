// How a workgroup sorts its tile of keys by one digit, in fine grain. Internal to the runtime; sort_tiles.cpp moves
// tiles of many keys by it, and sort_lone_tile.cpp sorts keys that are one tile.
//
// A thread holds up to 22 keys of a tile, one per round. In a round the lanes of a subgroup that have the same digit
// find each other by eight votes. A lane's place is the subgroup's counter of that digit plus the number of its fellows
// in lanes before it, and the last fellow adds all of them to the counter: the order of equal digits is kept. After all
// rounds, a scan over all counters, by digit and within a digit by subgroup, gives where the digits of each subgroup
// begin in the sorted tile.
//
// Counters pass from round to round without further barriers: all lanes have read a counter before the last fellow
// writes it, and none goes on before that. No other subgroup uses its counters meanwhile, so a subgroup clears them
// itself, and waits for others only where sums over all are taken.
//
// Counters, sorted keys and sorted values take turns in the same memory. All have the width of the wider elements, so
// 8-byte elements have fewer threads as well.
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

/// A tile, and how its threads share the counters.
struct Tile : TileShape {
  int threads() const { return lanes * subgroups; }
  int keys() const { return threads() * rounds; }
  /// parts() threads handle the counters of a digit, each those of rows() subgroups. A thread does so for turns()
  /// digits, one by one: more than one if there are fewer threads than digits.
  int parts() const { return std::max(1, threads() / kDigits); }
  int rows() const { return (subgroups + parts() - 1) / parts(); }
  int turns() const { return (kDigits + threads() - 1) / threads(); }
  /// Number of sums of subgroups, turn by turn.
  int sums() const { return turns() * subgroups; }
  /// Distance between the counters of subgroups: one more than the digits, so that threads that handle one digit access
  /// different banks of the memory.
  static constexpr int kStride = kDigits + 1;
  /// Bytes that a workgroup needs beside keys and counters: the beginnings of digits, and sums.
  std::uint64_t other_bytes() const { return (kDigits + std::uint64_t(sums())) * sizeof(unsigned); }
  /// Elements of the memory that keys and counters share.
  int shared_elements() const { return std::max(keys(), subgroups * kStride); }
  bool operator<(const Tile& o) const {
    return std::tie(lanes, subgroups, rounds) < std::tie(o.lanes, o.subgroups, o.rounds);
  }
};

/// The kernel for a shape of tiles.
template <class K, class Make>
const K& for_tile(const Tile& tile, int variant, const Make& make) {
  return made_once<K>(std::pair(tile, variant), make);
}

/// The lanes of the subgroup that have the same digit as this one.
struct Fellows {
  UInt before = 0u;   ///< number of fellows in earlier lanes
  Bool last = false;  ///< no fellow is in a later lane
};

inline Fellows find_fellows(const UInt& digit, int lanes) {
  const int words = (lanes + 31) / 32;
  std::vector<UInt> mask(std::size_t(words), UInt(lanes < 32 ? (1u << lanes) - 1u : ~0u));
  // These votes are nearly half of a sort's instructions.
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

/// A key that no other follows: its ordered_bits() are all set.
template <class B>
B last_key(KeyOrder order) {
  return order == KeyOrder::without_sign ? B(~B(0)) : B(~B(0)) >> 1;
}

/// The element type of the workgroup's memory, in which keys and values take turns: the wider of the two.
template <class B, class V>
using Wider = std::conditional_t<(sizeof(V) > sizeof(B)), V, B>;

/// Sorts a tile within a kernel, in memory of elements of W.
template <class W>
class TileSorter {
 public:
  /// One number for each of a thread's turns().
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
  /// The place in the tile from which the key of a round is read: a subgroup's keys are contiguous, and so are its
  /// lanes' in a round.
  Int source(std::size_t round) const {
    return subgroup_ * (tile_.rounds * tile_.lanes) + lane_ + int(round) * tile_.lanes;
  }

  /// Calls f(turn, digit, part) for the digits that this thread handles.
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

  /// The exclusive scan of all threads' numbers, turn by turn. All threads must call it.
  OfTurns scan(const OfTurns& numbers) const {
    OfTurns before = zeros();
    // The sums are in order of turns, then of subgroups.
    for (std::size_t turn = 0; turn < before.size(); ++turn) {
      before[turn] = subgroup_exclusive_add(numbers[turn]);
      If (lane_ == tile_.lanes - 1) {
        sums_[int(turn) * tile_.subgroups + subgroup_] = before[turn] + numbers[turn];
      }
    }
    barrier();
    for (std::size_t turn = 0; turn < before.size(); ++turn) {
      // Each lane adds up some of the sums of earlier subgroups.
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

  /// The place of each of this thread's keys in the sorted tile, by digit(round). Uses the memory: a barrier must come
  /// between earlier reads of it and this. Afterwards counter(0, d) says where digit d begins, until a barrier.
  /// \param begin  begin(turn, d, where): called by the first thread that handles a digit, in its own_digits()
  template <class Digit, class Begin>
  std::vector<UInt> places(Digit digit, Begin begin) const {
    const std::size_t rounds = std::size_t(tile_.rounds);
    std::vector<UInt> place(rounds, UInt(0u));
    // Finds the place of each key among those of its digit in its subgroup's part.
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

    // Finds where the digits of each subgroup begin in the sorted tile.
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
  /// Calls f(row, subgroup) for the subgroups whose counters of a digit part `part` handles.
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
