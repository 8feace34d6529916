// Allocation, delayed freeing and lookup by address for devices on the host.
#include "memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"

namespace weft::backend {

namespace {
constexpr std::align_val_t kAlignment{256};
}

// The limit is no static object with an initialiser: a fork in the middle of that would leave a child that waits for
// its end for ever. Two threads may find the same limit at once.
std::uint64_t host_memory_limit() {
  constexpr std::uint64_t kUntold = 64ull << 30, kAddresses = std::uint64_t(~std::size_t(0)) / 2;
  static constinit std::atomic<std::uint64_t> known = 0;
  std::uint64_t limit = known;
  if (limit == 0) known = limit = std::min(platform::memory_bytes().value_or(kUntold), kAddresses);
  return limit;
}

HostMemory::HostMemory(std::string device, std::uint64_t limit, Pages pages)
    : device_(std::move(device)), limit_(limit), pages_(pages) {}

HostMemory::~HostMemory() {
  for (const auto& [address, block] : live_) give_back(address, block);
}

Allocation HostMemory::allocate(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  Block block{bytes, false, false, 0};
  void* host = nullptr;
  if (bytes <= limit_ - used_) {
    if (pages_ == Pages::large && bytes >= platform::kLargePageBytes) {
      const LargeBlocks::Block found = large_.take(bytes);
      host = found.memory;
      block.large = found.bytes;
    }
    // An empty allocation takes a byte, so that every allocation has an address of its own.
    if (!host) host = ::operator new(bytes ? bytes : 1, kAlignment, std::nothrow);
  }
  if (!host) {
    throw Error(ErrorKind::out_of_memory, fmt::format("{} bytes were asked of device \"{}\", which has {} of {} bytes "
                                                      "left",
                                                      bytes, device_, limit_ - used_, limit_));
  }
  const auto address = reinterpret_cast<std::uint64_t>(host);
  try {
    live_.emplace(address, block);
  } catch (...) {
    give_back(address, block);
    throw;
  }
  used_ += bytes;
  return {address, bytes, static_cast<std::byte*>(host), address};
}

Allocation HostMemory::wrap(std::byte* memory, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  // Lookups by address need allocations that do not overlap.
  const auto after = live_.lower_bound(address);
  const bool inside = after != live_.begin() && address - std::prev(after)->first < std::prev(after)->second.bytes;
  if (inside || (after != live_.end() && after->first - address < bytes)) {
    invalid("{} bytes at address {:#x} are memory of device \"{}\" already", bytes, address, device_);
  }
  live_.emplace(address, Block{bytes, false, true, 0});
  return {address, bytes, memory, address};
}

void HostMemory::free(const Allocation& allocation) {
  std::unique_lock lock(mutex_);
  if (allocation.address == 0) return;
  const auto it = live_.find(allocation.address);
  if (it == live_.end() || it->second.freed) {
    invalid("free: device \"{}\" has no allocation at address {:#x}", device_, allocation.address);
  }
  if (uses_ == 0 || it->second.wrapped) {
    release(allocation.address);
  } else {
    freed_.push_back(allocation.address);
    it->second.freed = true;
  }
}

bool HostMemory::take_share(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  if (bytes > limit_ - used_) return false;
  used_ += bytes;
  return true;
}

void HostMemory::give_share(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  used_ -= bytes;
}

void HostMemory::release(std::uint64_t address) {
  const auto it = live_.find(address);
  const Block block = it->second;
  if (!block.wrapped) used_ -= block.bytes;
  live_.erase(it);
  give_back(address, block);
}

void HostMemory::give_back(std::uint64_t address, const Block& block) {
  if (block.wrapped) return;
  if (block.large)
    large_.give_back({reinterpret_cast<std::byte*>(address), block.large});
  else
    ::operator delete(reinterpret_cast<void*>(address), kAlignment);
}

Extent HostMemory::find(std::uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return {};
  --it;
  return address - it->first <= it->second.bytes ? Extent{it->first, it->second.bytes} : Extent{};
}

HostMemory::Use::Use(HostMemory& memory) : memory_(memory) {
  std::unique_lock lock(memory_.mutex_);
  ++memory_.uses_;
}

HostMemory::Use::~Use() {
  std::unique_lock lock(memory_.mutex_);
  if (--memory_.uses_ > 0) return;
  for (const std::uint64_t address : memory_.freed_) memory_.release(address);
  memory_.freed_.clear();
}

}  // namespace weft::backend
