// Finds the ranges of places with which a climb of clusters begins. Internal to the runtime.
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include "../../../frontend/kernels/group.h"
#include "bvh_build.h"

namespace weft::detail {

/// Values of the places around those of a subgroup, in its registers: lane k of row r has the value of place `r * width
/// + k` after the subgroup's first one. Rows beyond the first and last one repeat these.
template <class V>
class Rows {
 public:
  /// \param of  the value of row r, from `low` on
  template <class F>
  Rows(const Int& lane, int width, int low, int high, const F& of) : lane_(lane), width_(width), low_(low) {
    for (int r = low; r <= high; ++r) rows_.push_back(of(r));
  }
  const V& operator[](int r) const { return rows_[std::size_t(std::clamp(r - low_, 0, int(rows_.size()) - 1))]; }
  /// The value `by` places after that of row r in this lane; any value beyond all rows.
  V behind(int r, int by) const {
    const int lanes = by & (width_ - 1), row = r + (by - lanes) / width_;
    if (lanes == 0) return (*this)[row];
    const V near = exchange((*this)[row], [&](const UInt& v) { return subgroup_shuffle_down(v, lanes); });
    const V far = exchange((*this)[row + 1], [&](const UInt& v) { return subgroup_shuffle_up(v, width_ - lanes); });
    return select(lane_ < width_ - lanes, near, far);
  }

 private:
  // Exchanges halves of 64-bit words, because not all devices exchange whole ones.
  template <class F>
  static V exchange(const V& v, const F& word) {
    if constexpr (std::is_same_v<V, UInt>)
      return word(v);
    else
      return (V(UInt(word(UInt(v >> V(32u))))) << V(32u)) | V(UInt(word(UInt(v))));
  }

  const Int& lane_;
  int width_, low_;
  std::vector<V> rows_;
};

/// Finds the largest ranges of at most `most` places that a climb passes through, other than that of all places. It
/// does so without a climb, because no thread has to wait for what happens inside a range.
///
/// Keys are sorted, so that the highest cut between two places is where these two differ. A range of more than `most`
/// places around a place contains a window of `most` + 1 places around it, and no cut lower than the window's: the
/// lowest cut of all these windows separates the ranges that are small enough from the others.
///
///   most 2, keys 000 001 010 100 101: windows {000, 001, 010} cut at bit 1, {001, 010, 100} and {010, 100, 101} at 2
///   place 1 (001), lowest cut 1: range {000, 001}; place 2, lowest cut 1: range {010}; place 4, cut 2: {100, 101}
///
/// All threads of the subgroup come, with consecutive places. `most` and `width` are powers of two.
/// \return  whether this thread's place `first` begins such a range; then `last` is its last place
template <class B>
Bool find_range(const Cuts<B>& cuts, const Int& lane, int width, const Int& first, Int& last, int most, const Int& n) {
  using Word = Var<B>;
  const int reach = (most + width - 1) / width;
  const Rows<Word> keys(lane, width, -reach, reach, [&](int r) { return cuts.key(first + r * width); });
  const auto cut = [&](const Int& a, const Word& key_a, const Int& b, const Word& key_b) {
    return cuts.between(a, key_a, b, key_b).bits;
  };
  const auto least = [](const Word& a, const Word& b) { return select(a < b, a, b); };
  // Windows are indexed by their first place. Each step takes the lower of two neighbours, at twice the distance.
  std::vector<Rows<Word>> windows;
  windows.emplace_back(lane, width, -reach, 0, [&](int r) {
    const Int from = first + r * width;
    return cut(from, keys[r], from + most, keys.behind(r, most));
  });
  const Word farthest = windows[0].behind(0, -most);
  for (int d = 1; d < most; d *= 2) {
    const Rows<Word> now = windows.back();
    windows.emplace_back(lane, width, -reach, 0, [&](int r) { return least(now[r], now.behind(r, -d)); });
  }
  Word limit = least(windows.back()[0], farthest);
  If (n <= most) {
    limit = cut(Int(0), cuts.key(0), n - 1, cuts.key(n - 1));
  }
  // A cut is below the limit if its highest bit is: its keys have one more bit in common.
  constexpr B key_bit = B(1) << (8 * sizeof(B) - 1);
  const auto is_below = [&](const Word& c) { return (c < limit) & ((c & B(~key_bit)) < (c ^ limit)); };
  last = first;
  for (int d = most / 2; d > 0; d /= 2) {
    const Int to = last + d;
    last = select(is_below(cut(first, keys[0], to, cuts.key(to))), to, last);
  }
  return !is_below(cut(first - 1, keys.behind(0, -1), first, keys[0]));
}

}  // namespace weft::detail
