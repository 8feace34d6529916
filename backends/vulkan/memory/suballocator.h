// Offsets within pages: best fit, with neighbours joined when they are freed.
#pragma once
#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <utility>
#include <vector>

namespace weft::backend::vulkan {

/// Allocates pieces of numbered regions, whatever the regions are. Not thread-safe.
/// Cost: O(log n) per call in the number of free pieces.
class Suballocator {
 public:
  static constexpr std::uint64_t kAlignment = 256;

  /// A piece in use. free() takes its `id`.
  struct Piece {
    std::uint32_t id = 0;
    std::uint32_t region = 0;
    std::uint64_t offset = 0;
  };

  Suballocator() = default;
  Suballocator(const Suballocator&) = delete;
  Suballocator& operator=(const Suballocator&) = delete;

  /// `bytes` is a multiple of kAlignment. \return the region's number; numbers of removed regions are reused.
  std::uint32_t add_region(std::uint64_t bytes);
  /// The region must be empty.
  void remove_region(std::uint32_t region);
  bool empty(std::uint32_t region) const;

  /// The smallest free piece that holds `bytes` (more than 0), whose rest stays free; or nothing.
  std::optional<Piece> allocate(std::uint64_t bytes);
  /// \return the region of the piece.
  std::uint32_t free(std::uint32_t id);

  /// Bytes in use, each piece rounded up to kAlignment.
  std::uint64_t used() const { return used_; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  // Pieces of a region form a list in order of their offsets; no two neighbours are free.
  struct Node {
    std::uint64_t offset = 0, bytes = 0;
    std::uint32_t region = 0, before = kNone, after = kNone;
    bool used = false;
  };
  // Sorted by size first: lower_bound() is the best fit, and the lowest among equals.
  using Key = std::pair<std::uint64_t, std::pair<std::uint32_t, std::uint64_t>>;

  Key key(const Node& node) const { return {node.bytes, {node.region, node.offset}}; }
  std::uint32_t new_node();
  void join(std::uint32_t left, std::uint32_t right);

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> unused_nodes_;
  std::vector<std::uint32_t> first_;  // by region; kNone for removed ones
  std::pmr::unsynchronized_pool_resource pool_;
  std::pmr::map<Key, std::uint32_t> free_{&pool_};
  std::uint64_t used_ = 0;
};

}  // namespace weft::backend::vulkan
