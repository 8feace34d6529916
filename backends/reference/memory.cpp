// Allocation, delayed freeing and lookup by address for the reference device.
#include "memory.h"

#include <fmt/format.h>

#include <iterator>
#include <new>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"

namespace weft::backend {

namespace {
constexpr std::align_val_t kAlignment{256};
}

HostMemory::~HostMemory() {
  for (const auto& [address, block] : live_)
    if (!block.wrapped) ::operator delete(reinterpret_cast<void*>(address), kAlignment);
}

Allocation HostMemory::allocate(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  // An empty allocation takes a byte, so that every allocation has an address of its own.
  void* host = bytes <= limit_ - used_ ? ::operator new(bytes ? bytes : 1, kAlignment, std::nothrow) : nullptr;
  if (!host) {
    throw Error(ErrorKind::out_of_memory,
                fmt::format("{} bytes were asked of device \"reference\", which has {} of {} bytes left", bytes,
                            limit_ - used_, limit_));
  }
  const auto address = reinterpret_cast<std::uint64_t>(host);
  try {
    live_.emplace(address, Block{bytes, false, false});
  } catch (...) {
    ::operator delete(host, kAlignment);
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
    invalid("{} bytes at address {:#x} are memory of device \"reference\" already", bytes, address);
  }
  live_.emplace(address, Block{bytes, false, true});
  return {address, bytes, memory, address};
}

void HostMemory::free(const Allocation& allocation) {
  std::unique_lock lock(mutex_);
  if (allocation.address == 0) return;
  const auto it = live_.find(allocation.address);
  if (it == live_.end() || it->second.freed) {
    invalid("free: device \"reference\" has no allocation at address {:#x}", allocation.address);
  }
  if (uses_.empty() || it->second.wrapped) {
    release(allocation.address);
  } else {
    it->second.freed = true;
    freed_.push_back({++moment_, allocation.address});
  }
}

void HostMemory::release(std::uint64_t address) {
  const auto it = live_.find(address);
  const bool wrapped = it->second.wrapped;
  if (!wrapped) used_ -= it->second.bytes;
  live_.erase(it);
  if (!wrapped) ::operator delete(reinterpret_cast<void*>(address), kAlignment);
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
  moment_ = ++memory_.moment_;
  memory_.uses_.insert(moment_);
}

HostMemory::Use::~Use() {
  std::unique_lock lock(memory_.mutex_);
  memory_.uses_.erase(moment_);
  std::size_t ready = 0;
  for (const Freed& freed : memory_.freed_) {
    if (!memory_.uses_.empty() && *memory_.uses_.begin() < freed.moment) break;
    memory_.release(freed.address);
    ++ready;
  }
  memory_.freed_.erase(memory_.freed_.begin(), memory_.freed_.begin() + static_cast<std::ptrdiff_t>(ready));
}

}  // namespace weft::backend
