// Builds hierarchies by merging clusters: H-PLOC.
#include <algorithm>
#include <bit>
#include <vector>

#include "../../../frontend/kernels/group.h"
#include "../../../frontend/language/any_floats.h"
#include "../../core/state.h"
#include "bvh_build.h"
#include "bvh_ranges.h"

namespace weft::detail {

namespace {

constexpr std::int64_t kBlock = 128;
/// Clusters that a subgroup of `width` threads merges at once; half of them remain for the surrounding range. Fewer
/// mean more ranges to merge; more exceed the registers of a narrow subgroup. Trees of both sizes meet the same bounds
/// of surface area in the tests.
constexpr int merged_by(int width) { return width < 32 ? 16 : 32; }
/// How many clusters on each side are searched for the nearest one. A reach of 8 gave no better trees on the test's
/// meshes, by surface area.
constexpr int kReach = 4;
/// Marks the absence of a pair.
constexpr unsigned kNone = ~0u;

/// A part of the tree so far: a leaf, or a node with all that is below.
struct Cluster {
  TracedBox box;
  Int link;   ///< as in BvhNode
  Int first;  ///< the least place of its primitives, which no other cluster has
  Int size;   ///< the number of its nodes; if leaves are packed, see Size
};

Float half_area(const TracedBox& b) {
  Vec3 d = b.upper - b.lower;  // the area of two empty boxes is infinite
  return d.x * (d.y + d.z) + d.y * d.z;
}

/// The contents of a cluster if leaves are packed, and the cost of a search there that finds nothing, by the surface
/// area heuristic: a visit to a node costs as much as a primitive. One word, because a cluster goes from lane to lane
/// as a whole. If the cluster may become one leaf, it has at most 8 primitives: bits 0 to 3 are their number, 4 to 6
/// that of the nodes, and the rest is the part of the leaf's cost that nodes save. If not, the word is the number of
/// nodes, negative.
struct Size {
  Int number;   ///< of primitives; kMany if it cannot become one leaf
  Int nodes;    ///< 0 if it becomes one leaf
  Float saved;  ///< from 0 to 1; 0 if it becomes one leaf

  static Size of(const Int& word) {
    const Bool small = word >= 0;
    return {select(small, word & 15, kMany), select(small, (word >> 4) & 7, -word),
            select(small, Float(word >> 7) * (1.f / kParts), 0.f)};
  }
  Int word(const Int& leaf_size) const {
    const Int parts = min(Int(saved * float(kParts)), kParts - 1);
    return select(number <= leaf_size, number + (nodes << 4) + (parts << 7), -nodes);
  }
  /// Costs nothing in an empty box, which is never visited.
  Float cost(const TracedBox& box) const {
    return select(box.lower.x <= box.upper.x, half_area(box) * Float(number) * (1.f - saved), 0.f);
  }

  static constexpr int kMany = 1 << 20;

 private:
  static constexpr int kParts = 1 << 23;
};

/// Clusters in the registers of a subgroup of `width` threads: lane k has clusters k * each to k * each + each - 1. In
/// a subgroup wider than the number of clusters, some threads idle.
class Clusters {
 public:
  explicit Clusters(int width)
      : merged(merged_by(width)),
        each(std::max(1, merged / width)),
        slots(std::size_t(each)),
        lane(subgroup_lane()),
        width_(width),
        shift_(std::countr_zero(unsigned(each))) {}

  const int merged;  ///< most clusters at once
  const int each;    ///< clusters of a thread, a power of two
  std::vector<Cluster> slots;
  const Int lane;

  Int number(int k) const { return lane * each + k; }
  /// The value of cluster `i`; `values` has those of this thread's clusters.
  template <class V>
  V fetch(const std::vector<V>& values, const Int& i) const {
    Int from = i >> shift_;
    V v = subgroup_shuffle(values[0], from);
    for (int k = 1; k < each; ++k)
      v = select((i & (each - 1)) == k, V(subgroup_shuffle(values[std::size_t(k)], from)), v);
    return v;
  }
  /// The values of part(cluster) for each of this thread's clusters.
  template <class F>
  auto all(F part) const {
    std::vector<decltype(part(slots[0]))> values;
    for (const Cluster& c : slots) values.push_back(part(c));
    return values;
  }

  /// Combines values over the lanes by exchanges, because drivers for CPUs reduce lanes one by one. Besides, if a
  /// reduction says which lane to read from next, NVIDIA's driver (580.159) compiles this kernel to read a thread's own
  /// values.
  template <class V, class F>
  V over_lanes(V v, F combine) const {
    for (int d = 1; d < width_; d *= 2) v = combine(v, V(subgroup_shuffle_xor(v, d)));
    return subgroup_broadcast_first(v);  // tells the compiler that all lanes agree
  }
  UInt any_bits(const UInt& bits) const {
    return over_lanes(bits, [](const UInt& a, const UInt& b) { return a | b; });
  }
  /// The first lane in which `there` is true; the subgroup's width if there is none.
  Int first_lane(const Bool& there) const {
    return over_lanes(select(there, lane, width_), [](const Int& a, const Int& b) { return min(a, b); });
  }

 private:
  int width_, shift_;
};

// The nearest of the clusters up to kReach before and after each one, by the area of the box around both. A pair has
// one key: the area, with the exclusive or of the two numbers in its last bits, which tells a cluster's pairs apart and
// finds its partner. Thus no cluster has two nearest ones, the pair with the least key of all is mutual, and among
// equal boxes numbers 2 k and 2 k + 1 pair up. The first cluster of a pair computes its key and passes it to the second
// one.
std::vector<UInt> nearest(const Clusters& c, const Int& count) {
  const int each = c.each, lanes = (each - 1 + kReach) / each;
  std::vector<TracedBox> boxes = c.all([](const Cluster& s) { return s.box; });
  for (int d = 1; d <= lanes; ++d)
    for (int k = 0; k < each; ++k) {
      const TracedBox& own = boxes[std::size_t(k)];
      boxes.push_back({subgroup_shuffle_down(own.lower, d), subgroup_shuffle_down(own.upper, d)});
    }
  std::vector<UInt> best(boxes.size());
  for (UInt& b : best) b = kNone;
  for (int k = 0; k < each; ++k)
    for (int r = 1; r <= kReach; ++r) {
      Int i = c.number(k), j = i + r;
      UInt area = bitcast<unsigned>(half_area(join(boxes[std::size_t(k)], boxes[std::size_t(k + r)])));
      UInt key = select(j < count, (area & ~31u) | UInt(i ^ j), kNone);
      for (int t : {k, k + r}) best[std::size_t(t)] = min(best[std::size_t(t)], key);
    }
  for (int t = each; t < int(boxes.size()); ++t) {
    const int d = t / each;
    UInt told = select(c.lane >= d, UInt(subgroup_shuffle_up(best[std::size_t(t)], d)), kNone);
    UInt& own = best[std::size_t(t % each)];
    own = min(own, told);
  }
  best.resize(std::size_t(each));
  return best;
}

/// The number of the set bit with rank `rank` (from 0).
class SetBits {
 public:
  /// \param most  bits of the mask that may be set: 16 or 32
  SetBits(const UInt& mask, int most) : ones_(mask), most_(most) {
    pairs_ = mask - ((mask >> 1u) & 0x55555555u);
    fours_ = (pairs_ & 0x33333333u) + ((pairs_ >> 2u) & 0x33333333u);
    bytes_ = (fours_ + (fours_ >> 4u)) & 0x0f0f0f0fu;
    halves_ = bytes_ + (bytes_ >> 8u);
  }
  Int count() const { return Int((halves_ + (halves_ >> 16u)) & 63u); }
  Int at(const Int& rank) const {
    UInt left = UInt(rank), bit = 0u;
    const auto step = [&](const UInt& sums, unsigned width, unsigned mask) {
      UInt below = (sums >> bit) & mask;
      Bool beyond = left >= below;
      left = select(beyond, left - below, left);
      bit = select(beyond, bit + width, bit);
    };
    if (most_ > 16) step(halves_, 16, 31);
    step(bytes_, 8, 15);
    step(fours_, 4, 7);
    step(pairs_, 2, 3);
    step(ones_, 1, 1);
    return Int(bit);
  }

 private:
  UInt ones_, pairs_, fours_, bytes_, halves_;
  int most_;
};

/// The arrays to which nodes are written.
struct Output {
  Var<BvhData> bvh;
  Arr<vec4> halves;
  Arr<vec2i> records;
  bool packs;     ///< leaves are packed; if not, there are no Sizes
  Int leaf_size;  ///< fewer than all primitives, because the root stays a node

  Int nodes(const Cluster& c) const { return packs ? Size::of(c.size).nodes : c.size; }
  /// The primitives of a cluster that is a leaf, or becomes one; 0 for others.
  Int leaf_count(const Cluster& c) const {
    if (!packs) return select(c.size == 0, 1, 0);
    const Size size = Size::of(c.size);
    return select(size.nodes == 0, size.number, 0);
  }
  /// The size of the cluster that joins two others; records it for `node`.
  /// \param is_node  false for threads that have no such node
  /// \param across   see merge_nearest()
  Int join_sizes(const Cluster& a, const Cluster& b, const TracedBox& both, const Int& node, const Bool& is_node,
                 const Bool& across) const {
    Size size{Int(Size::kMany), nodes(a) + nodes(b) + 1, 0.f};
    if (packs) {
      const Size of_a = Size::of(a.size), of_b = Size::of(b.size);
      size.number = select(across, Size::kMany, of_a.number + of_b.number);
      If (size.number <= leaf_size) {
        Float as_leaf = size.cost(both), as_node = half_area(both) + of_a.cost(a.box) + of_b.cost(b.box);
        // False for areas of 0, infinite ones and NaN.
        Bool saves = as_node < as_leaf;
        size.saved = select(saves, 1.f - as_node / as_leaf, 0.f);
        size.nodes = select(saves, size.nodes, 0);
      }
    }
    If (is_node) {
      NodeRecord::store_below(records, node, select(size.nodes > 0, size.nodes, -size.number),
                              leaf_count(a) + leaf_count(b));
    }
    return packs ? size.word(leaf_size) : size.nodes;
  }
};

/// Runs one round: clusters that are each other's nearest become one, and the others close up.
/// \param across  the clusters may be of several groups: no leaf may hold them
void merge_nearest(Clusters& c, Int& count, const Output& out, const Bool& across) {
  const std::vector<UInt> best = nearest(c, count);
  const auto links = c.all([](const Cluster& s) { return s.link; });
  const auto firsts = c.all([](const Cluster& s) { return s.first; });
  const auto sizes = c.all([](const Cluster& s) { return s.size; });
  const auto lowers = c.all([](const Cluster& s) { return s.box.lower; });
  const auto uppers = c.all([](const Cluster& s) { return s.box.upper; });
  UInt kept = 0u;
  for (int k = 0; k < c.each; ++k) {
    Cluster& own = c.slots[std::size_t(k)];
    const UInt& key = best[std::size_t(k)];
    Int i = c.number(k), j = select(key == kNone, i, i ^ Int(key & 31u));
    Bool pair = (i < count) & (j != i) & (c.fetch(best, j) == key);
    Bool first = pair & (i < j), second = pair & (j < i);
    const Cluster other{{c.fetch(lowers, j), c.fetch(uppers, j)}, j, c.fetch(firsts, j), c.fetch(sizes, j)};
    // The second cluster's least place is the first place of no other pair, ever, so that it names the node.
    Int node = select(first, other.first, own.first) - 1;
    If (pair) {
      Int child = node * 2 + Int(second);
      If (own.link >= 0) {
        NodeRecord::store_above(out.records, own.link, child, 1 + select(second, out.nodes(other), 0));
      }
      store_half(out.halves, child, {own.box, own.link, select(own.link >= 0, 0, 1)});
    }
    TracedBox both = join(own.box, other.box);
    Int size = out.join_sizes(own, other, both, node, first, across);
    own.box = either(first, both, own.box);
    own.link = select(first, node, own.link);
    own.size = select(first, size, own.size);
    kept |= select((i < count) & !second, UInt(1u) << UInt(i & 31), 0u);
  }
  const SetBits left(c.any_bits(kept), c.merged);
  count = left.count();
  const auto new_links = c.all([](const Cluster& s) { return s.link; });
  const auto new_sizes = c.all([](const Cluster& s) { return s.size; });
  const auto new_lowers = c.all([](const Cluster& s) { return s.box.lower; });
  const auto new_uppers = c.all([](const Cluster& s) { return s.box.upper; });
  for (int k = 0; k < c.each; ++k) {
    Int i = c.number(k), from = select(i < count, left.at(i), i);
    c.slots[std::size_t(k)] = {{c.fetch(new_lowers, from), c.fetch(new_uppers, from)},
                               c.fetch(new_links, from),
                               c.fetch(firsts, from),
                               c.fetch(new_sizes, from)};
  }
}

/// The clusters of merged ranges, in memory: the first places of the range have them, as many as its count says.
struct Lists {
  Arr<vec4> bounds;  ///< two by place: lower bound and link, upper bound and first
  Arr<int> sizes;    ///< by place
  Arr<int> counts;   ///< by the range's first place, shifted right
  int shift;         ///< see count_shift()

  void store(const Int& place, const Cluster& c) const {
    bounds[place * 2] = Vec4(c.box.lower, bitcast<float>(c.link));
    bounds[place * 2 + 1] = Vec4(c.box.upper, bitcast<float>(c.first));
    sizes[place] = c.size;
  }
  Cluster load(const Int& place) const {
    Vec4 lower = bounds[place * 2], upper = bounds[place * 2 + 1];
    return {{Vec3(lower.x, lower.y, lower.z), Vec3(upper.x, upper.y, upper.z)},
            bitcast<int>(lower.w),
            bitcast<int>(upper.w),
            Int(sizes[place])};
  }
  Int& count(const Int& first) const { return counts[first >> shift]; }
};

/// Merged ranges have more than half of merged_by() places, so that no two begin that close to each other; only groups
/// may have fewer.
int count_shift(int width, bool grouped) { return grouped ? 0 : std::countr_zero(unsigned(merged_by(width) / 2)); }

/// A complete range of places, and the first place of its second half.
struct Range {
  Int from, split, to;
  Bool across;  ///< the range has several groups
};

/// Merges the clusters of a range's two halves into at most `goal`. All threads of the subgroup come, with the same
/// arguments. The result is in c.
void merge_halves(Clusters& c, Int& count, const Lists& lists, const Output& out, const Arr<const int>& order,
                  const Range& range, const Int& goal) {
  const int left = c.merged / 2;
  // A half of few places has not been merged, so its primitives are its clusters. Groups are an exception: they have
  // one place or are merged into one cluster before they meet others.
  const auto is_merged = [&](const Int& first, const Int& last) {
    return (range.across & (last > first)) | (last - first >= left);
  };
  const Bool merged[] = {is_merged(range.from, range.split - 1), is_merged(range.split, range.to)};
  Int counts[] = {range.split - range.from, range.to - range.split + 1};
  const Int firsts[] = {range.from, range.split};
  for (int half = 0; half < 2; ++half)
    If (merged[half]) {
      counts[half] = lists.count(firsts[half]);
    }
  count = subgroup_broadcast_first(counts[0] + counts[1]);
  for (int k = 0; k < c.each; ++k) {
    Int i = c.number(k);
    Bool second = i >= counts[0];
    Int place = select(second, range.split + i - counts[0], range.from + i);
    Cluster& own = c.slots[std::size_t(k)];
    If (i < count) {
      If (select(second, merged[1], merged[0])) {
        own = lists.load(place);
      }
      Else { own = {box_of(out.bvh.lowers, out.bvh.uppers, order[place]), ~place, place, int(out.packs)}; }
    }
  }
  While (count > goal) {
    merge_nearest(c, count, out, range.across);
  }
  for (int k = 0; k < c.each; ++k) {
    Int i = c.number(k);
    If (i < count) {
      lists.store(range.from + i, c.slots[std::size_t(k)]);
    }
  }
  If (c.lane == 0) {
    lists.count(range.from) = count;
  }
}

// Source: Benthin et al. 2024. Threads climb as in build_lbvh(), but the ranges that they pass through are no nodes:
// they only say which clusters may meet. Once a range of more than 16 places is complete (8 in narrow subgroups, see
// merged_by()), the clusters of its two halves, at most 16 each, are merged until 16 are left. Each round merges those
// that are the nearest of their nearest. The whole range merges until one is left. Thus area decides about the upper
// levels of the tree, among many clusters, and not the place where the curve happens to be cut. A range that is a whole
// group also merges until one is left, so that a group is one cluster before it meets others.
//
// The climb begins with the largest ranges of at most merged_by() places, each in one thread, which merges it at once:
// most of the atomic operations of a climb are those of its first steps. (With groups it begins with single places.)
//
// A merge is work for a whole subgroup: it merges the ranges that its threads have completed one after the other, with
// merged_by() clusters in registers. Every thread takes part in every operation of the subgroup. Before a thread
// announces its range as complete, all threads of the subgroup have passed a fence that follows their writes of it;
// before they read, they have passed a fence that follows the announcement. (Subgroup operations between fence and
// announcement make all threads of the subgroup pass together on all devices, although Vulkan's memory model does not
// call this a synchronisation.)
//
//   of 32:
//   range            [0 .. 19]               [20 .. 39]
//   clusters there   16 (four were merged)   16
//   range [0 .. 39]: 32 clusters -> rounds: 32, 21, 15 -> stops at 15, in places 0 to 14
//
// In one piece: one kernel, whose steps share what its threads know.
template <class B>
auto hploc_kernel(int width, bool grouped, bool packs) {
  return kernel("bvh_hploc",
                [width, grouped, packs](Var<BvhData> bvh, Arr<vec4> halves, Arr<int> arrived, Arr<const B> keys,
                                        Arr<const int> order, Arr<vec4> bounds, Arr<int> sizes, Arr<int> counts,
                                        Arr<vec2i> records, Int n) {
                  const tracing::AnyFloats any;
                  const tracing::AsWritten as_written;
                  const int left = merged_by(width) / 2;
                  const Lists lists{bounds, sizes, counts, count_shift(width, grouped)};
                  const Output out{bvh, halves, records, packs, min(bvh.leaf_size, n - 1)};
                  Int i = tid(), first = i, last = i, split = 0;
                  Bool climbs = i < n, due = false, is_group = false;
                  const Arr<int> groups = bvh.groups;
                  const Cuts<B> cuts{keys, groups, grouped, n};
                  Clusters c(width);
                  if (!grouped) {
                    climbs = climbs & find_range(cuts, c.lane, width, first, last, 2 * left, n);
                    due = climbs & (last - first >= left);
                    split = first + left;  // any place would do: neither half has been merged
                  }
                  Climb<B> climb(cuts, first, last);
                  While (subgroup_any(climbs)) {
                    fence();
                    Int worker = c.first_lane(due);
                    While (worker < width) {
                      Int count = 0;
                      Range range{subgroup_broadcast(first, worker), subgroup_broadcast(split, worker),
                                  subgroup_broadcast(last, worker), false};
                      Bool whole = range.to - range.from + 1 == n;
                      Int goal = select(whole, 1, left);
                      if (grouped) {
                        range.across = groups[range.from] != groups[range.to];
                        goal = select(subgroup_broadcast(is_group, worker), 1, goal);
                      }
                      merge_halves(c, count, lists, out, order, range, goal);
                      If (whole & (c.lane == 0)) {
                        NodeRecord::store_above(records, c.slots[0].link, -1, 0);
                        bvh.info[kBvhRoot] = UInt(c.slots[0].link);
                      }
                      climbs = climbs & !(whole & (c.lane == worker));
                      due = due & (c.lane != worker);
                      fence();
                      worker = c.first_lane(due);
                    }
                    If (climbs) {
                      const Bool is_second = climb.is_second();
                      const Int parent = select(is_second, first - 1, last);
                      Int far_end = atomic_exchange(arrived[parent], 1 + select(is_second, last, first));
                      climbs = far_end != 0;
                      If (climbs) {
                        arrived[parent] = 0;
                        split = parent + 1;
                        first = select(is_second, far_end - 1, first);
                        last = select(is_second, last, far_end - 1);
                        climb.join(is_second, first, last);
                        due = (last - first >= left) | (last - first + 1 == n);
                        if (grouped) {
                          const Int group = groups[first];
                          const Bool across = groups[last] != group;
                          is_group = !across & ((first == 0) | (groups[max(first - 1, 0)] != group)) &
                                     ((last == n - 1) | (groups[min(last + 1, n - 1)] != group));
                          due |= is_group | across;
                        }
                      }
                    }
                  }
                },
                {.block = std::uint32_t(kBlock)});
}

// One kernel for each width, because it fixes the number of clusters in a thread's registers.
template <class B>
const auto& hploc_kernel_for(const Device& device, bool grouped, bool packs) {
  using Made = decltype(hploc_kernel<B>(4, false, false));
  static const std::vector<Made> all = [] {
    std::vector<Made> made;
    for (int width = 4; width <= 128; width *= 2)
      for (int k = 0; k < 4; ++k) made.push_back(hploc_kernel<B>(width, k & 2, k & 1));
    return made;
  }();
  const unsigned width = device.native().info().subgroup_size;
  // A device whose subgroups have another width has none for kernels, and refuses each of these.
  const int row = std::has_single_bit(width) && width >= 4 && width <= 128 ? std::countr_zero(width) - 2 : 0;
  return all[std::size_t(4 * row + 2 * grouped + packs)];
}

template <class B>
void build_from(const BvhBuild& build, const Array<B>& keys) {
  const Device device = build.device();
  const std::int64_t n = build.count(), threads = (n + kBlock - 1) / kBlock * kBlock;
  const int shift = count_shift(int(device.native().info().subgroup_size), build.grouped);
  launch(hploc_kernel_for<B>(device, build.grouped, build.data.leaf_size > 1), threads, build.data,
         halves_of(build.data.nodes), build.arrived, keys, build.data.primitives, Array<vec4>::empty(device, 2 * n),
         Array<int>::empty(device, n), Array<int>::empty(device, (n >> shift) + 1),
         NodeRecord::halves_of(build.records), n);
}

}  // namespace

void build_hploc(const BvhBuild& build) {
  if (build.fine_keys.is_null())
    build_from(build, build.keys);
  else
    build_from(build, build.fine_keys);
}

}  // namespace weft::detail
