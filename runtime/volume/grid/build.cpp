// Lays out the nodes over given leaves, level by level, as NanoVDB's own builders do: breadth first, without tiles.
#include "build.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

namespace weft::grids {

namespace {

/// The order of leaves: by tile of the root, and then by their places in upper and lower node.
std::tuple<std::uint64_t, std::uint32_t, std::uint32_t> order_of(const vec3i& at) {
  const auto part = [](int x, int shift, unsigned mask) { return unsigned(x) >> shift & mask; };
  const auto place = [&](int shift, int bits, unsigned mask) {
    return part(at.x, shift, mask) << 2 * bits | part(at.y, shift, mask) << bits | part(at.z, shift, mask);
  };
  return {root_key(at.x, at.y, at.z), place(kLowerLog, 5, 31), place(kLeafLog, 4, 15)};
}

struct Box {
  std::int32_t lower[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, upper[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
  void add(const Box& b) {
    for (int k = 0; k < 3; ++k) lower[k] = std::min(lower[k], b.lower[k]), upper[k] = std::max(upper[k], b.upper[k]);
  }
  bool empty() const { return lower[0] > upper[0]; }
};

Box box_of(const LeafPlan& leaf) {
  Box b;
  for (int n = 0; n < 512; ++n)
    if (leaf.active[std::size_t(n / 64)] >> (n & 63) & 1) {
      const int at[] = {leaf.origin.x + (n >> 6), leaf.origin.y + (n >> 3 & 7), leaf.origin.z + (n & 7)};
      for (int k = 0; k < 3; ++k) b.lower[k] = std::min(b.lower[k], at[k]), b.upper[k] = std::max(b.upper[k], at[k]);
    }
  return b;
}

/// One grid in the making.
class Builder {
 public:
  Builder(const GridPlan& plan, std::span<const LeafPlan> leaves)
      : plan_(plan), leaves_(leaves), l_(*layout_of(plan.type)) {}

  std::vector<std::byte> grid() {
    place_nodes();
    root_and_header();
    nodes();
    header_of_tree();
    if (l_.is_index()) put(bytes(), kIndexedValues, next_number_);
    write_checksums(bytes(), l_, levels_);
    return std::move(grid_);
  }

 private:
  std::span<std::byte> bytes() { return grid_; }

  /// Counts the nodes of each level, and finds the place of each level.
  void place_nodes() {
    for (const LeafPlan& leaf : leaves_) {
      const auto [key, upper, lower] = order_of(leaf.origin);
      if (uppers_.empty() || uppers_.back() != key) uppers_.push_back(key);
      if (lowers_.empty() || lowers_.back() != std::pair(key, upper)) lowers_.push_back({key, upper});
    }
    levels_.root = kTree + kTreeBytes;
    levels_.tiles = uppers_.size();
    levels_.first[2] = levels_.root + l_.root.bytes + levels_.tiles * l_.tile_bytes;
    const std::uint64_t counts[] = {leaves_.size(), lowers_.size(), uppers_.size()};
    for (int level = 2; level >= 0; --level) {
      levels_.count[level] = std::uint32_t(counts[level]);
      const std::uint64_t end = levels_.first[level] + counts[level] * l_.node_bytes(level);
      if (end > kMostBytes) no_grid("it would have more than {} bytes", kMostBytes);
      if (level > 0)
        levels_.first[level - 1] = end;
      else
        grid_.resize(end);
    }
  }
  std::uint64_t node(int level, std::size_t k) const { return levels_.first[level] + k * l_.node_bytes(level); }

  void put_value(std::uint64_t at) {
    std::copy(plan_.background.begin(), plan_.background.end(), grid_.begin() + std::ptrdiff_t(at));
  }
  void put_box(std::uint64_t at, const Box& b) {
    put(bytes(), at + kBoxLower, b.lower);
    put(bytes(), at + kBoxUpper, b.upper);
  }

  void root_and_header() {
    const std::span<std::byte> g = bytes();
    put(g, 0, l_.is_index() ? kGridMagic : kMagic);
    put(g, kGridVersion, l_.is_index() ? version_of(32, 6, 0) : kVersion);
    constexpr std::uint32_t has_box = 2, breadth_first = 32;
    put(g, kFlags, has_box | breadth_first);
    put(g, kGridCount, std::uint32_t(1));
    put(g, kGridBytes, std::uint64_t(g.size()));
    if (plan_.name.size() >= kNameBytes)
      no_grid("its name has {} bytes; {} are possible", plan_.name.size(), kNameBytes - 1);
    std::memcpy(g.data() + kName, plan_.name.data(), plan_.name.size());
    put(g, kClass, plan_.grid_class);
    put(g, kType, plan_.type);
    put_transform(g, plan_.matrix, plan_.translation);
    put(g, levels_.root + kTableSize, std::uint32_t(levels_.tiles));
    for (const std::uint32_t at : {l_.background, l_.root.minimum, l_.root.maximum}) put_value(levels_.root + at);
  }

  /// Fills the nodes from the leaves up, so that each knows the box of what is active below it.
  void nodes() {
    std::vector<Box> lower_boxes(lowers_.size()), upper_boxes(uppers_.size());
    for (std::size_t k = 0; k < lowers_.size(); ++k) internal(1, k);
    for (std::size_t k = 0; k < uppers_.size(); ++k) internal(2, k);
    std::size_t lower = 0, upper = 0;
    for (std::size_t k = 0; k < leaves_.size(); ++k) {
      const auto [key, in_upper, in_lower] = order_of(leaves_[k].origin);
      while (lowers_[lower] != std::pair(key, in_upper)) ++lower;
      lower_boxes[lower].add(leaf(k));
      link(node(1, lower), 1, in_lower, node(0, k));
    }
    for (std::size_t k = 0; k < lowers_.size(); ++k) {
      while (uppers_[upper] != lowers_[k].first) ++upper;
      upper_boxes[upper].add(lower_boxes[k]);
      link(node(2, upper), 2, lowers_[k].second, node(1, k));
      put_box(node(1, k), lower_boxes[k]);
    }
    for (std::size_t k = 0; k < uppers_.size(); ++k) {
      put_box(node(2, k), upper_boxes[k]);
      box_.add(upper_boxes[k]);
      const std::uint64_t tile = levels_.root + l_.root.bytes + k * l_.tile_bytes;
      put(bytes(), tile + kTileKey, uppers_[k]);
      put(bytes(), tile + kTileChild, std::int64_t(node(2, k) - levels_.root));
      put_value(tile + l_.tile_value);
    }
    put_box(levels_.root, box_);
  }
  void internal(int level, std::size_t k) {
    const NodeLayout& layout = level == 2 ? l_.upper : l_.lower;
    for (std::uint32_t n = 0; n < kEntries[level]; ++n)
      put_value(node(level, k) + layout.values + std::uint64_t(n) * l_.table_stride);
    for (const std::uint32_t at : {layout.minimum, layout.maximum}) put_value(node(level, k) + at);
  }
  void link(std::uint64_t parent, int level, std::uint32_t entry, std::uint64_t child) {
    std::byte& mask = grid_[parent + child_mask(level) + entry / 8];
    mask |= std::byte(1 << (entry & 7));
    const NodeLayout& layout = level == 2 ? l_.upper : l_.lower;
    const std::uint64_t at = parent + layout.values + std::uint64_t(entry) * l_.table_stride;
    std::fill_n(grid_.begin() + std::ptrdiff_t(at), l_.table_stride, std::byte());
    put(bytes(), at, std::int64_t(child) - std::int64_t(parent));
  }

  Box leaf(std::size_t k) {
    const LeafPlan& plan = leaves_[k];
    const std::uint64_t at = node(0, k);
    const Box box = box_of(plan);
    const std::int32_t origin[] = {plan.origin.x, plan.origin.y, plan.origin.z};
    for (std::size_t c = 0; c < 3; ++c) {
      put(bytes(), at + kBoxLower + 4 * c, box.empty() ? origin[c] : box.lower[c]);
      put(bytes(), at + kLeafExtent + c, std::uint8_t(box.empty() ? 0 : box.upper[c] - box.lower[c]));
    }
    constexpr std::uint8_t has_box = 2;
    put(bytes(), at + kLeafFlags, std::uint8_t(box.empty() ? 0 : has_box));
    put(bytes(), at + kLeafMask, plan.active);
    std::uint64_t count = 0, prefix = 0;
    for (int word = 0; word < 8; ++word) {
      if (word > 0) prefix |= count << 9 * (word - 1);
      count += std::uint64_t(std::popcount(plan.active[std::size_t(word)]));
    }
    voxels_ += count;
    if (l_.is_index()) {
      const bool on = plan_.type == VolumeType::on_index;
      put(bytes(), at + kLeafFirstIndex, next_number_);
      put(bytes(), at + kLeafPrefix, on ? prefix : 0);
      next_number_ += on ? count : kEntries[0];
    } else {
      for (std::uint32_t n = 0; n < kEntries[0]; ++n) put_value(at + l_.leaf.values + n * l_.value_bytes());
      for (const std::uint32_t s : {l_.leaf.minimum, l_.leaf.maximum}) put_value(at + s);
    }
    return box;
  }

  void header_of_tree() {
    const std::span<std::byte> g = bytes();
    for (std::size_t level = 0; level < 3; ++level) {
      put(g, kTree + kFirstNodes + 8 * level, std::int64_t(levels_.first[level] - kTree));
      put(g, kTree + kNodeCounts + 4 * level, levels_.count[level]);
    }
    put(g, kTree + kRootOffset, std::int64_t(levels_.root - kTree));
    put(g, kTree + kTreeVoxels, voxels_);
    put_world_box(g, levels_);
  }

  const GridPlan& plan_;
  const std::span<const LeafPlan> leaves_;
  const Layout& l_;
  Levels levels_;
  std::vector<std::uint64_t> uppers_;                            ///< keys
  std::vector<std::pair<std::uint64_t, std::uint32_t>> lowers_;  ///< key, and entry in the upper node
  std::vector<std::byte> grid_;
  Box box_;
  std::uint64_t voxels_ = 0, next_number_ = 1;  ///< number 0 is the background's
};

}  // namespace

std::vector<LeafPlan> leaves_of(std::span<const vec3i> voxels, bool all) {
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>, LeafPlan> leaves;
  for (const vec3i& v : voxels) {
    LeafPlan& leaf = leaves[order_of(v)];
    leaf.origin = {v.x & ~7, v.y & ~7, v.z & ~7};
    const int n = place_in_leaf(v.x, v.y, v.z);
    if (all)
      leaf.active.fill(~std::uint64_t(0));
    else
      leaf.active[std::size_t(n / 64)] |= std::uint64_t(1) << (n & 63);
  }
  std::vector<LeafPlan> list;
  for (const auto& [order, leaf] : leaves) list.push_back(leaf);
  return list;
}

void put_transform(std::span<std::byte> grid, const mat33d& m, const vec3d& translation) {
  double inverse[3][3];
  const auto cofactor = [&](int r, int c) {
    const int a = (r + 1) % 3, b = (r + 2) % 3, d = (c + 1) % 3, e = (c + 2) % 3;
    return m(a, d) * m(b, e) - m(a, e) * m(b, d);
  };
  const double determinant = m(0, 0) * cofactor(0, 0) + m(0, 1) * cofactor(0, 1) + m(0, 2) * cofactor(0, 2);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c) inverse[c][r] = cofactor(r, c) / determinant;
  const auto both = [&](int k, double x) {
    if (!std::isfinite(x) || !std::isfinite(float(x))) no_grid("its transform is not finite, or has no inverse");
    put(grid, kMap + 4 * std::size_t(k), float(x));
    put(grid, kMap + kMapMatrix + 8 * std::size_t(k), x);
  };
  for (int k = 0; k < 9; ++k) both(k, m(k / 3, k % 3)), both(9 + k, inverse[k / 3][k % 3]);
  for (int k = 0; k < 3; ++k) {
    both(18 + k, translation[k]);
    put(grid, kVoxelSize + 8 * std::size_t(k), std::sqrt(m(0, k) * m(0, k) + m(1, k) * m(1, k) + m(2, k) * m(2, k)));
  }
  put(grid, kMap + kMapTaper, 1.f);
  put(grid, kMap + kMapTaperWide, 1.);
}

void put_world_box(std::span<std::byte> grid, const Levels& levels) {
  std::int32_t first[3], last[3];
  double lower[3] = {INFINITY, INFINITY, INFINITY}, upper[3] = {-INFINITY, -INFINITY, -INFINITY};
  for (std::size_t k = 0; k < 3; ++k) {
    first[k] = get<std::int32_t>(grid, levels.root + kBoxLower + 4 * k);
    last[k] = get<std::int32_t>(grid, levels.root + kBoxUpper + 4 * k);
    if (first[k] > last[k]) return;
  }
  for (int corner = 0; corner < 8; ++corner)
    for (std::size_t k = 0; k < 3; ++k) {
      double x = get<double>(grid, kMap + kMapTranslation + 8 * k);
      for (std::size_t c = 0; c < 3; ++c)
        x += get<double>(grid, kMap + kMapMatrix + 8 * (3 * k + c)) *
             (corner >> c & 1 ? double(last[c]) + 1 : double(first[c]));
      lower[k] = std::min(lower[k], x), upper[k] = std::max(upper[k], x);
    }
  put(grid, kWorldBox, lower);
  put(grid, kWorldBox + 24, upper);
}

std::vector<std::byte> build_grid(const GridPlan& plan, std::span<const LeafPlan> leaves) {
  return Builder(plan, leaves).grid();
}

}  // namespace weft::grids
