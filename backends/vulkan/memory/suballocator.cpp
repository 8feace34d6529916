// Splits and joins pieces of pages.
#include "suballocator.h"

#include <algorithm>

#include "../../../frontend/support/error.h"

namespace weft::backend::vulkan {

std::uint32_t Suballocator::new_node() {
  if (unused_nodes_.empty()) {
    nodes_.emplace_back();
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  const std::uint32_t id = unused_nodes_.back();
  unused_nodes_.pop_back();
  nodes_[id] = Node{};
  return id;
}

std::uint32_t Suballocator::add_region(std::uint64_t bytes) {
  if (bytes == 0 || bytes % kAlignment != 0) internal_error("a page's size is not a multiple of the alignment");
  const std::uint32_t region =
      static_cast<std::uint32_t>(std::find(first_.begin(), first_.end(), kNone) - first_.begin());
  if (region == first_.size()) first_.push_back(kNone);
  const std::uint32_t id = new_node();
  nodes_[id].bytes = bytes;
  nodes_[id].region = region;
  first_[region] = id;
  free_.emplace(key(nodes_[id]), id);
  return region;
}

bool Suballocator::empty(std::uint32_t region) const {
  const Node& node = nodes_[first_[region]];
  return !node.used && node.after == kNone;
}

void Suballocator::remove_region(std::uint32_t region) {
  if (!empty(region)) internal_error("a page in use is given back");
  const std::uint32_t id = first_[region];
  free_.erase(key(nodes_[id]));
  unused_nodes_.push_back(id);
  first_[region] = kNone;
}

std::optional<Suballocator::Piece> Suballocator::allocate(std::uint64_t bytes) {
  if (bytes > ~0ull - kAlignment) return std::nullopt;
  const std::uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto best = free_.lower_bound(Key{rounded, {0, 0}});
  if (best == free_.end()) return std::nullopt;
  const std::uint32_t id = best->second;
  auto entry = free_.extract(best);
  if (nodes_[id].bytes > rounded) {
    const std::uint32_t rest = new_node();
    Node& node = nodes_[id];
    Node& tail = nodes_[rest];
    tail = {node.offset + rounded, node.bytes - rounded, node.region, id, node.after, false};
    if (node.after != kNone) nodes_[node.after].before = rest;
    node.after = rest;
    node.bytes = rounded;
    // The map's node is reused, because splitting is the common case.
    entry.key() = key(tail);
    entry.mapped() = rest;
    free_.insert(std::move(entry));
  }
  nodes_[id].used = true;
  used_ += rounded;
  return Piece{id, nodes_[id].region, nodes_[id].offset};
}

// Adds the free piece `right` to `left`, which precedes it.
void Suballocator::join(std::uint32_t left, std::uint32_t right) {
  Node& a = nodes_[left];
  const Node& b = nodes_[right];
  a.bytes += b.bytes;
  a.after = b.after;
  if (b.after != kNone) nodes_[b.after].before = left;
  unused_nodes_.push_back(right);
}

std::uint32_t Suballocator::free(std::uint32_t id) {
  if (id >= nodes_.size() || !nodes_[id].used) internal_error("device memory is freed twice");
  nodes_[id].used = false;
  used_ -= nodes_[id].bytes;
  const std::uint32_t before = nodes_[id].before, after = nodes_[id].after;
  if (after != kNone && !nodes_[after].used) {
    free_.erase(key(nodes_[after]));
    join(id, after);
  }
  if (before != kNone && !nodes_[before].used) {
    free_.erase(key(nodes_[before]));
    join(before, id);
    id = before;
  }
  free_.emplace(key(nodes_[id]), id);
  return nodes_[id].region;
}

}  // namespace weft::backend::vulkan
