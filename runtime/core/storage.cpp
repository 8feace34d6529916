// Memory of a device and the order of work on it between streams.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "../../backends/vulkan/interop.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../device.h"
#include "context.h"
#include "state.h"
#include "view.h"

namespace weft::detail {

std::uint64_t Storage::next_serial() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

namespace {
// Drops references one after the other, and not each within the end of the memory before, which would need a stack as
// deep as a chain of elements is long.
void drop(ReferenceList list) {
  if (auto* const ended = Context::here().ended) return ended->push_back(std::move(list));
  std::vector<ReferenceList> open;
  const Within within(&Context::ended, &open);
  while (list) {
    list.reset();
    if (open.empty()) return;
    list = std::move(open.back());
    open.pop_back();
  }
}
}  // namespace

Storage::~Storage() {
  end();
  if (references_) drop(std::move(references_));
}

void Storage::end() {
  if (device->left_behind.load(std::memory_order_relaxed)) return;
  if (wrapped) {
    for (const Use& u : uses(false)) {
      try {
        u.stream->keep_from([&](Reports& found) { u.stream->wait(u.ticket, found); });
      } catch (const std::exception&) {
        // A lost device runs nothing any more.
      }
    }
  }
  if (!is_freed()) give_back();
}

void Storage::give_back() {
  if (outside.address) disclaim(*device, outside.address);
  if (user_outside_.finish) {
    device->parked.add(allocation, std::move(user_outside_));
  } else if (is_handle) {
    std::vector<Handles::Written> writes;
    for (const Use& u : uses(true)) writes.push_back({u.stream, u.write});
    device->handles.bury(allocation, writes);
  } else if (allocation.bytes) {
    device->device->free(allocation);
  }
}

void Storage::refuse_pinned() const {
  if (holds_gradients) invalid("gradients of an array are freed: they go with their last handle");
  constexpr std::array<const char*, std::size_t(PinnedBy::count)> kBy = {
      "a tape that has recorded work on it; reset() that first", "a Recording; let it end first",
      "a tensor of DLPack's; have it dropped first"};
  std::string by;
  for (std::size_t k = 0; k < pins_.size(); ++k)
    if (pins_[k] > 0) by += (by.empty() ? "" : ", and ") + std::string(kBy[k]);
  if (!by.empty()) invalid("an array is freed that others still work on: " + by);
}

void Storage::free() {
  check_present();
  {
    std::lock_guard lock(mutex_);
    refuse_pinned();
  }
  // A failure that is reported here leaves everything as it was.
  check_wait();
  wait_for(uses(false), false);
  // These are destroyed without the lock, because that may free other memory and call functions of the caller's.
  std::shared_ptr<void> owner;
  ReferenceList references;
  {
    std::lock_guard lock(mutex_);
    check_present();
    refuse_pinned();
    freed_ = true;
    owner = std::move(owner_);
    references = std::move(references_);
  }
  give_back();
}

void Storage::refuse_freed() { invalid("an array is used after it was freed: Array::free() gave its memory back"); }

std::shared_ptr<const void> Storage::pin(PinnedBy by) {
  // The pin is made first: if there is no memory for it, its deleter runs at once, and must find neither the lock held
  // nor the pin counted.
  const auto pinned = std::make_shared<bool>(false);
  const std::shared_ptr<const void> pin(this, [by, pinned, self = weak_from_this()](const void*) {
    const std::shared_ptr<Storage> storage = self.lock();
    if (!storage || !*pinned) return;
    std::lock_guard lock(storage->mutex_);
    --storage->pins_[std::size_t(by)];
  });
  std::lock_guard lock(mutex_);
  check_present();
  ++pins_[std::size_t(by)];
  *pinned = true;
  return pin;
}

void Storage::order_after_others(StreamState& stream, bool writes) {
  std::vector<Use> others;
  {
    std::lock_guard lock(mutex_);
    // A write comes after all work of other streams here, a read after their writes.
    std::ranges::copy_if(uses_, std::back_inserter(others),
                         [&](const Use& u) { return u.stream != &stream && !u.started && (writes || u.writes); });
  }
  if (others.empty()) return;
  for (const Use& u : others) u.stream->start(writes ? u.ticket : u.write);
  std::lock_guard lock(mutex_);
  for (Use& u : uses_)
    for (const Use& o : others)
      if (u.stream == o.stream && u.ticket == o.ticket && (writes || u.write == u.ticket)) u.started = true;
}

void Storage::touched(StreamState& stream, backend::Ticket ticket, bool writes) {
  std::lock_guard lock(mutex_);
  auto own = std::ranges::find(uses_, &stream, &Use::stream);
  if (own == uses_.end()) {
    uses_.push_back({&stream});
    own = uses_.end() - 1;
  }
  // Threads that share the stream may get here in another order than they got their tickets.
  own->ticket = std::max(own->ticket, ticket);
  own->started = false;
  if (!writes) return;
  own->write = std::max(own->write, ticket);
  own->writes = true;
  std::rotate(own, own + 1, uses_.end());
}

// The work of each stream here, or of those that write. The last writer comes last.
std::vector<Storage::Use> Storage::uses(bool writers) {
  std::lock_guard lock(mutex_);
  std::vector<Use> list;
  std::ranges::copy_if(uses_, std::back_inserter(list), [&](const Use& u) { return u.writes || !writers; });
  return list;
}

// The streams' waits for semaphores, if code outside weft knows the memory: weft knows nothing else about that code's
// writes. Accesses of the host ask for these waits. They are not noted with each use, because work on other arrays need
// not come after them.
std::vector<Storage::Use> Storage::awaited() {
  std::vector<Use> list;
  if (!(wrapped || lent.load(std::memory_order_relaxed)) || device->waits.load() == 0) return list;
  for (StreamState* s : device->all_streams())
    if (const backend::Ticket ticket = s->awaited.load(std::memory_order_acquire))
      list.push_back({.stream = s, .ticket = ticket, .write = ticket, .writes = true});
  return list;
}

// What an access of the host waits for, or refuses to wait for.
std::vector<Storage::Use> Storage::before_host(bool writers) {
  check_wait();
  std::vector<Use> list = awaited();
  const std::vector<Use> own = uses(writers);
  list.insert(list.end(), own.begin(), own.end());  // the last writer at the end
  return list;
}

// Drops uses that were waited for, unless they have changed since.
void Storage::forget(std::span<const Use> done) {
  std::lock_guard lock(mutex_);
  if (uses_.size() < 2) return;
  std::erase_if(uses_, [&](const Use& u) {
    return std::ranges::any_of(done, [&](const Use& d) {
      return d.stream == u.stream && d.ticket == u.ticket && d.write == u.write && d.write == d.ticket;
    });
  });
}

void Storage::check_wait() const {
  check_present();
  refuse_waits();
  device->device->check_alive();
}

void Storage::wait_for_writers() { wait_for(before_host(true), true); }

void Storage::wait_for_everybody() { wait_for(before_host(false), false); }

// Waits for the uses' last writes, or for all of their work. A failure in the reports of one stream does not end the
// waits for the other streams.
void Storage::wait_for(std::span<const Use> list, bool writes) {
  if (list.empty()) return;
  list.front().stream->deliver_from([&](Reports& found) {
    for (const Use& u : list) u.stream->wait(writes ? u.write : u.ticket, found);
    forget(list);
  });
}

// It sorts, because lists may be long: an array for each element.
void make_unique(References& list) {
  std::ranges::sort(list);
  const auto rest = std::ranges::unique(list);
  list.erase(rest.begin(), rest.end());
}

bool HeldMemory::add(const HeldMemory& more) {
  const std::size_t before = others.size() + itself;
  others.insert(others.end(), more.others.begin(), more.others.end());
  make_unique(others);
  itself |= more.itself;
  return others.size() + itself != before;
}

void Storage::reach(References& found) {
  std::unordered_set<Storage*> visited{this};
  References open{shared_from_this()};
  while (!open.empty()) {
    const std::shared_ptr<Storage> at = std::move(open.back());
    open.pop_back();
    const ReferenceList held = at->references();
    if (!held) continue;
    if (held->itself) found.push_back(at);
    for (const std::shared_ptr<Storage>& s : held->others) {
      found.push_back(s);
      if (s->may_hold_arrays && visited.insert(s.get()).second) open.push_back(s);
    }
  }
  make_unique(found);
}

void Storage::refuse_circle(const References& references, References& looked_at) {
  const ReferenceList known = this->references();
  for (const std::shared_ptr<Storage>& s : references) {
    if (s.get() == this || !s->may_hold_arrays || (known && std::ranges::binary_search(known->others, s))) continue;
    References beyond;
    s->reach(beyond);
    const bool circle = std::ranges::any_of(beyond, [&](const auto& b) { return b.get() == this; });
    looked_at.insert(looked_at.end(), beyond.begin(), beyond.end());
    if (circle) unsupported("arrays of structs hold each other in a circle");
  }
}

bool Storage::leads_to_freed() {
  if (!may_hold_arrays) return false;
  References beyond;
  reach(beyond);
  return std::ranges::any_of(beyond, &Storage::is_freed);
}

ReferenceList Storage::references() {
  std::lock_guard lock(mutex_);
  return references_;
}

void Storage::add_references(HeldMemory more) {
  if (const ReferenceList before = references()) more.add(*before);
  set_references(std::move(more));
}

ReferenceList Storage::set_references(HeldMemory held) {
  ReferenceList list = as_list(std::move(held));
  {
    std::lock_guard lock(mutex_);
    const bool same = references_ && list ? *references_ == *list : references_ == list;
    references_.swap(list);
    if (same) return list;  // what handles lead to stays
  }
  if (is_handle) device->handles.changed();
  return list;
}

void Storage::used_outside(OutsideUser user) {
  std::lock_guard lock(mutex_);
  if (!user_outside_.finish) user_outside_ = std::move(user);
}

std::shared_ptr<const Gradient> Storage::gradient() {
  if (!has_gradient()) return nullptr;
  std::lock_guard lock(mutex_);
  return gradient_;
}

void Storage::set_gradient(std::shared_ptr<const Gradient> gradient) {
  std::lock_guard lock(mutex_);
  if (gradient_) return;
  gradient_ = std::move(gradient);
  has_gradient_.store(true, std::memory_order_release);
}

void Storage::watch(const std::shared_ptr<Watcher>& watcher) {
  std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [](const auto& w) { return w.expired(); });
  watchers_.push_back(watcher);
  watched_ = true;
}

Watchers Storage::watchers() {
  Watchers alive;
  std::lock_guard lock(mutex_);
  for (const auto& w : watchers_)
    if (auto watcher = w.lock()) alive.add(std::move(watcher));
  if (alive.begin() == alive.end()) {
    watchers_.clear();
    watched_ = false;
  }
  return alive;
}

void Storage::download(void* to, std::uint64_t from, std::size_t bytes) {
  std::vector<Use> list = before_host(true);
  if (list.empty()) list.push_back({&stream_of_thread(*device)});  // any stream will do if there is no writer
  const Use& last = list.back();
  list.front().stream->deliver_from([&](Reports& found) {
    for (const Use& u : list)
      if (u.stream != last.stream || u.write > last.write) u.stream->wait(u.write, found);
    last.stream->wait_with(last.write, found, [&](backend::Stream& s) { s.download(to, from, bytes, last.write); });
    forget(list);
  });
}

namespace {
// Memory is padded because fills work on whole words, and so do atomic operations on smaller elements.
std::uint64_t padded(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

// Calls f, which allocates `bytes`, a second time if memory runs out: freed memory may still wait for work, which is
// finished before. Work that is held up cannot be finished, because the host may have to signal something first.
template <class F>
backend::Allocation allocate_by(const F& f, DeviceState& device, std::uint64_t bytes) {
  device.device->check_alive();
  device.allocated += bytes;
  device.parked.make_room(*device.device);
  try {
    return f();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::out_of_memory || bytes > device.device->info().memory_bytes) throw;
  }
  if (backend::held_up(*device.device)) {
    for (StreamState* s : device.all_streams()) s->hold()->submit();
    device.parked.free_finished(*device.device);
  } else {
    const OutsideCapture at_once;
    device.default_stream->keep_from([&](Reports& found) {
      for (StreamState* s : device.all_streams()) s->synchronize(found);
      device.parked.free_finished(*device.device);
    });
  }
  return f();
}
}  // namespace

std::shared_ptr<Storage> allocate(const std::shared_ptr<DeviceState>& device, std::uint64_t bytes,
                                  backend::MemoryKind kind) {
  const std::uint64_t all = padded(bytes);
  const auto call = [&] { return bytes ? device->device->allocate(all, kind) : backend::Allocation{}; };
  return std::make_shared<Storage>(device, allocate_by(call, *device, all), bytes);
}

std::shared_ptr<Storage> allocate_shared(const std::shared_ptr<DeviceState>& device, std::uint64_t bytes) {
  const backend::VulkanAccess access(*device->device, "shareable()");
  if (bytes == 0) invalid("an array without elements is to be shared: it has no memory");
  const auto call = [&] { return access.allocate_shared(padded(bytes)); };
  return std::make_shared<Storage>(device, allocate_by(call, *device, padded(bytes)), nullptr, Storage::Outside{});
}

std::shared_ptr<Storage> import_shared(const std::shared_ptr<DeviceState>& device, SharedMemory&& memory,
                                       std::uint64_t bytes) {
  const backend::VulkanAccess access(*device->device, "import_memory()");
  return std::make_shared<Storage>(device, access.import_shared(std::move(memory), bytes), nullptr, Storage::Outside{});
}

View View::all_of(const std::shared_ptr<Storage>& storage) {
  return View(storage, storage->allocation.address, std::int64_t(storage->bytes), 1);
}

View::View(const std::shared_ptr<Storage>& storage, const Extent& extent, std::uint32_t element_bytes)
    : View(storage, storage->allocation.address, extent.rank, element_bytes, extent.n,
           tight_strides(extent.n, extent.rank, element_bytes)) {}

void claim(DeviceState& device, std::uintptr_t begin, std::uint64_t bytes) {
  if (!device.device->info().wraps_bytes && (begin % 4 || bytes % 4))
    invalid("{} bytes at address {:#x} are wrapped: both must be multiples of 4", bytes, begin);
  std::lock_guard lock(device.mutex);
  auto after = device.wrapped.upper_bound(begin);
  if (after != device.wrapped.begin()) {
    const auto before = std::prev(after);
    if (begin - before->first < before->second) after = before;
  }
  if (after != device.wrapped.end() && after->first < begin + bytes)
    invalid("{} bytes at address {:#x} are wrapped, a part of which an array on {} stands on already", bytes, begin,
            device.device->info().name);
  device.wrapped.emplace(begin, bytes);
}

void disclaim(DeviceState& device, std::uintptr_t begin) {
  std::lock_guard lock(device.mutex);
  device.wrapped.erase(begin);
}

std::shared_ptr<Storage> wrap(const std::shared_ptr<DeviceState>& device, const VulkanBuffer& buffer,
                              std::shared_ptr<void> owner) {
  const backend::VulkanAccess access(*device->device, "wrap_buffer()");
  if (!access.adopted())
    unsupported("a VkBuffer is wrapped on {}, which is not adopted: it has a VkDevice of its own",
                device->device->info().name);
  device->device->check_alive();
  if (buffer.bytes == 0) return std::make_shared<Storage>(device, backend::Allocation{}, 0);
  return std::make_shared<Storage>(device, access.wrap(buffer), std::move(owner), Storage::Outside{});
}

std::shared_ptr<Storage> wrap(const std::shared_ptr<DeviceState>& device, std::byte* memory, std::uint64_t bytes,
                              std::shared_ptr<void> owner) {
  const backend::DeviceInfo& info = device->device->info();
  if (!info.wraps_host) unsupported("{} ({}) cannot use memory of the host without a copy", info.name, info.adapter);
  device->device->check_alive();
  if (bytes == 0) return std::make_shared<Storage>(device, backend::Allocation{}, 0);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  claim(*device, begin, bytes);
  try {
    const backend::Allocation allocation = device->device->wrap(memory, bytes);
    return std::make_shared<Storage>(device, allocation, std::move(owner), Storage::Outside{begin});
  } catch (...) {
    disclaim(*device, begin);
    throw;
  }
}

}  // namespace weft::detail
