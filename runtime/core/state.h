// The state that Device, Stream and Array are handles of. Internal to the runtime.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "../../backends/backend.h"
#include "../detail/packed.h"
#include "brief_lock.h"
#include "handles.h"
#include "pacer.h"
#include "parked.h"
#include "programs.h"
#include "report_buffer.h"
#include "stream_clock.h"

namespace weft {
class Stream;
struct VulkanBuffer;
struct SharedMemory;
}  // namespace weft

namespace weft::detail {

class Generation;

struct DeviceState;
class Capture;

/// A stream. It lives as long as its device, so that arrays may name the streams that worked on them.
struct StreamState {
  DeviceState* device = nullptr;
  Capture* capture = nullptr;  ///< collects the stream's work instead of running it; null: the work runs
  /// The last ticket that waits for another program's semaphore; 0: none does.
  std::atomic<backend::Ticket> awaited = 0;
  // The switches that Stream's functions of these names set. A capture copies them from the stream of its thread.
  std::atomic<bool> track_hazards = true, barrier_always = false;

  /// The backend's stream, which nobody else uses while this object is there.
  struct Held {
    std::lock_guard<std::mutex> lock;
    backend::Stream& stream;
    backend::Stream* operator->() const { return &stream; }
    backend::Stream& operator*() const { return stream; }
  };
  /// Locks the backend's stream, because waits and launches may come from different threads.
  /// Errors: Error(device_lost) in the child of a fork.
  Held hold() {
    check_here();
    return {std::lock_guard(mutex_), *given_};
  }
  /// Waits for the ticket, and shows what kernels reported up to it.
  /// Errors: Error(kernel_fault) when a kernel's assert_ or check failed.
  void wait(backend::Ticket ticket) {
    deliver_from([&](Reports& found) { wait(ticket, found); });
  }
  /// Calls f(Reports&), which waits, and delivers the reports that it found. If f throws, they go to keep(), because
  /// they can be read only once.
  template <class F>
  void deliver_from(F f) {
    found_by(f).deliver();
  }
  /// Works like deliver_from(), but keeps failures for the next wait instead of throwing them.
  template <class F>
  void keep_from(F f) {
    keep(found_by(f));
  }
  /// Makes whatever any stream of the device is given from now on run after the ticket. The host does not wait.
  void start(backend::Ticket ticket) { hold()->start(ticket); }
  /// Waits without the lock, because the ticket's work may run only after other threads give the stream more work.
  void sleep(backend::Ticket ticket) {
    if (const auto waiting = hold()->waiting(reported_with(ticket))) waiting();
  }
  /// Calls f(backend::Stream&), which waits for the ticket, and adds reports to `found`.
  template <class F>
  void wait_with(backend::Ticket ticket, Reports& found, F f) {
    sleep(ticket);
    const Held s = hold();
    f(*s);
    collect(*s, ticket, found);
  }
  /// Waits for the ticket, and adds reports to `found`, which the caller delivers or keeps.
  void wait(backend::Ticket ticket, Reports& found) {
    wait_with(ticket, found, [&](backend::Stream& s) { s.wait(ticket); });
  }
  /// Shows what kernels print, and keeps failures for the next wait that can throw them.
  void keep(Reports&& found);
  /// Waits for everything that the stream has been given so far, and adds reports to `found`.
  void synchronize(Reports& found) {
    backend::Ticket last = 0;
    std::function<void()> waiting;
    {
      const Held s = hold();
      waiting = s->waiting(backend::kAllWork);  // starts what it waits for, sooner than submit()
      last = s->submit();
    }
    if (waiting) waiting();
    {
      const Held s = hold();
      s->wait(last);
      collect(*s, last, found);
    }
    give_back();
  }
  /// Starts what was recorded, unless another thread has the lock.
  void try_submit() {
    if (std::unique_lock lock(mutex_, std::try_to_lock); lock) given_->submit();
  }
  /// Starts what was recorded, waits for kernels that report, shows what they print and keeps failures for the next
  /// wait. If the queue is held up, there is no wait, and all reports are kept.
  void release();
  /// Waits, and shows what kernels reported; called before the process ends. A stream that is locked is not waited for,
  /// because the call that holds the lock may be the one that ends the process; nor is a queue that is held up.
  void end() noexcept;
  /// Whether the stream may get another owner now, without a wait for the reports of the last owner's kernels.
  bool free_for_another();
  /// Takes the reports that were kept for the last owner, which the next owner must not be given.
  Reports take_kept() {
    std::lock_guard lock(mutex_);
    return std::exchange(kept_, {});
  }
  /// The buffer that kernels on this stream report to. The stream is locked.
  ReportBuffer& report_buffer();
  /// Notes that a graph or a recording, which runs after all that has reported so far, reports to `reports`, until a
  /// wait reads them. The stream, for recordings that of recordings, is locked.
  void report_later(const std::shared_ptr<ReportBuffer>& reports) {
    if (std::ranges::find(reports_, reports) == reports_.end()) reports_.push_back(reports);
  }
  /// Waits for the graph that reports to `reports`, if nothing has read them yet. Keeps them, and what was reported
  /// before them, for the next wait.
  void settle(ReportBuffer& reports);
  /// Takes the buffer that a capture's launches report to, or null.
  std::shared_ptr<ReportBuffer> take_reports() {
    return reports_.empty() ? nullptr : std::exchange(reports_, {}).front();
  }
  /// The clock that measures the stream's work, and the pacer that splits long launches. The stream is locked.
  StreamClock& clock();
  Pacer& pacer();
  /// Calls f(backend::Stream&, std::unique_ptr<backend::Stream>& listener) under the lock. A listener that f makes
  /// around the stream is given the stream's work from now on; with null the stream gets it again.
  template <class F>
  void listen(F f) {
    std::lock_guard lock(mutex_);
    f(*stream_, listener_);
    given_ = listener_ ? listener_.get() : stream_.get();
  }

  StreamState(DeviceState& device, std::unique_ptr<backend::Stream> stream)
      : device(&device), stream_(std::move(stream)), given_(stream_.get()) {}
  /// Waits, and shows what kernels reported.
  ~StreamState();

 private:
  friend class weft::Stream;
  /// Called before a lock is taken, because another thread may have held it when the process was forked.
  void check_here() const;
  void collect(backend::Stream& s, backend::Ticket ticket, Reports& found) {
    if (!kept_.empty()) found.add(std::exchange(kept_, {}));
    read_reports(s, ticket, found);
  }
  /// Appends reports to `into`, in the order of the work, and forgets buffers that have been read.
  void read_reports(backend::Stream& s, backend::Ticket ticket, Reports& into);
  template <class F>
  Reports found_by(F f) {
    Reports found;
    try {
      f(found);
    } catch (...) {
      keep(std::move(found));
      throw;
    }
    return found;
  }
  void give_back();
  /// Whether the queue may be waiting for the host, which then must not wait for the queue.
  bool held_up() const;
  bool reporting() const {
    return std::ranges::any_of(reports_, [](const auto& r) { return r->pending(); }) || !kept_.lines.empty();
  }
  /// The last ticket that must have run before a wait for `ticket` can read the reports that belong to it.
  backend::Ticket reported_with(backend::Ticket ticket) const {
    backend::Ticket last = ticket;
    for (const auto& r : reports_)
      if (r->is_read_by(ticket)) last = std::max(last, r->last());
    return last;
  }
  std::mutex mutex_;
  std::unique_ptr<StreamClock> clock_;  ///< made by the first measurement; outlives the work of the stream
  std::unique_ptr<Pacer> pacer_;
  std::unique_ptr<backend::Stream> stream_;
  std::unique_ptr<backend::Stream> listener_;
  backend::Stream* given_;  ///< is given the work: stream_ or listener_
  /// Buffers of launches, graphs and recordings, in the order of their work. Those that have been read are gone, but
  /// for one of launches.
  std::vector<std::shared_ptr<ReportBuffer>> reports_;
  std::uint64_t waits_seen_ = 0;  ///< DeviceState::waits at the last launch that reported
  Reports kept_;                  ///< what no call could show or throw yet
};

/// The name of `device` in a message about both devices; it says "another" if they have the same name.
std::string name_beside(const DeviceState& device, const DeviceState& other);

struct DeviceState : std::enable_shared_from_this<DeviceState> {
  ~DeviceState();

  std::uint64_t id = 0;  ///< never used again by another device
  std::unique_ptr<backend::Device> device;
  StreamState* default_stream = nullptr;
  StreamState* recordings = nullptr;  ///< stands for the recordings that callers submit; null before the first
  Programs programs;
  Handles handles;
  Parked parked;
  /// Locks what the elements of this device's memory refer to: from a look at it until the work is noted that reads or
  /// replaces it. Issuing work never waits for a queue that is held up, so the lock may be held meanwhile. Watchers
  /// have locks of their own, under which they copy elements, and so are told before. Callers declare what they may be
  /// the last to refer to before the lock, because the end of memory runs code of the caller's. Errors:
  /// Error(device_lost) in the child of a fork.
  std::unique_lock<std::recursive_mutex> lock_elements() {
    device->check_alive();
    return std::unique_lock(elements);
  }
  std::recursive_mutex elements;
  /// Streams live as long as the device, so callers may wait for them without holding a lock.
  std::vector<StreamState*> all_streams() {
    std::lock_guard lock(mutex);
    std::vector<StreamState*> all;
    for (const auto& s : streams) all.push_back(s.get());
    return all;
  }
  /// The most threads of a dispatch, and the most elements of an array that 32 bits address. Tests lower it.
  std::int64_t max_threads = (1ll << 31) - 1;
  std::atomic<double> dispatch_budget = 0;            ///< seconds; 0: none
  std::atomic<std::uint64_t> waits = 0;               ///< semaphore waits so far: all later work of the queue waits too
  std::mutex mutex;                                   ///< guards the members below
  std::function<void(StreamState&)> profile;          ///< hears of a new stream before that is given work; null: none
  std::vector<std::unique_ptr<StreamState>> streams;  ///< the first is the default stream
  std::vector<StreamState*> idle;                     ///< streams that no handle names
  std::map<std::uintptr_t, std::uint64_t> wrapped;    ///< memory from outside weft under arrays: address, bytes
  std::atomic<std::uint64_t> allocated = 0;           ///< bytes so far, freed ones included
  std::atomic<bool> several_streams = false;          ///< false: with one stream, work needs no order among streams
  std::atomic<bool> left_behind = false;              ///< stayed in the process's parent: see backend::Device
};

inline void StreamState::check_here() const {
  if (device->left_behind.load(std::memory_order_relaxed)) [[unlikely]]
    device->device->check_alive();
}

struct Gradient;
class Watcher;

class Storage;
/// Sorts a list and leaves each storage once.
void make_unique(References& list);
/// The memory whose addresses elements may hold.
struct HeldMemory {
  References others;    ///< sorted, each once
  bool itself = false;  ///< the elements' own memory, which cannot refer to itself; in a copy: the original's
  bool empty() const { return others.empty() && !itself; }
  /// \return  whether there is more than before
  bool add(const HeldMemory& more);
  bool operator==(const HeldMemory&) const = default;
};
/// Such a list is never changed, only swapped for another one; null: empty.
using ReferenceList = std::shared_ptr<const HeldMemory>;
inline ReferenceList as_list(HeldMemory held) {
  return held.empty() ? nullptr : std::make_shared<const HeldMemory>(std::move(held));
}
/// The watchers of a storage, kept alive while they are told of a change. The first three need no heap memory.
class Watchers {
 public:
  void add(std::shared_ptr<Watcher> watcher) {
    if (count_ < few_.size()) {
      few_[count_] = std::move(watcher);
    } else {
      if (many_.empty()) many_.assign(few_.begin(), few_.end());
      many_.push_back(std::move(watcher));
    }
    ++count_;
  }
  const std::shared_ptr<Watcher>* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  const std::shared_ptr<Watcher>* end() const { return begin() + count_; }

 private:
  std::array<std::shared_ptr<Watcher>, 3> few_;
  std::vector<std::shared_ptr<Watcher>> many_;
  std::size_t count_ = 0;
};

/// Memory of a device, shared by an array and its views, and the work on it that may not have run yet.
class Storage : public std::enable_shared_from_this<Storage> {
 public:
  Storage(std::shared_ptr<DeviceState> device, backend::Allocation allocation, std::uint64_t bytes)
      : device(std::move(device)), allocation(allocation), bytes(bytes) {}
  /// The place at which the owner of wrapped memory sees it.
  struct Outside {
    std::uintptr_t address = 0;  ///< 0: it has none
    int cuda_device = -1;        ///< the CUDA device whose memory it is; -1: memory of the host
  };
  /// Wraps memory of another owner, which `owner`, if set, keeps alive. The destructor waits for work that uses it.
  Storage(std::shared_ptr<DeviceState> device, backend::Allocation allocation, std::shared_ptr<void> owner,
          Outside outside)
      : device(std::move(device)),
        allocation(allocation),
        bytes(allocation.bytes),
        wrapped(true),
        outside(outside),
        owner_(std::move(owner)) {}
  ~Storage();

  const std::shared_ptr<DeviceState> device;
  const backend::Allocation allocation;
  const std::uint64_t bytes;  ///< size of the elements; the allocation is padded to words
  const bool wrapped = false;
  const Outside outside;
  bool holds_gradients = false;    ///< set before any array names it
  bool is_handle = false;          ///< kernels read it by its address: see Handles::add()
  bool is_copy = false;            ///< a copy of elements that may be put back; these hold no views of the copy itself
  bool may_hold_arrays = false;    ///< elements of this type may hold arrays; set before other threads name it
  std::atomic<bool> lent = false;  ///< code outside weft knows the address, and may write there
  /// Grows from storage to storage, which tells the older of two.
  const std::uint64_t serial = next_serial();
  std::shared_ptr<Generation> structure;  ///< the structure whose data are recognised by this memory; set when made

  static std::uint64_t next_serial();

  /// Gives the memory back while arrays still name it: see Array::free().
  void free();
  bool is_freed() const { return freed_.load(std::memory_order_relaxed); }
  /// Errors: Error(invalid_argument) once the memory was freed.
  void check_present() const {
    if (is_freed()) [[unlikely]]
      refuse_freed();
  }
  /// Users of the memory that free() cannot wait for, or that do not check whether it was freed.
  enum class PinnedBy { tape, recording, tensor, count };
  /// Refuses free(), with a message that names `by`, while the result lives. The result does not keep the memory.
  std::shared_ptr<const void> pin(PinnedBy by);

  /// Makes the work that `stream` is given next run after what other streams do here.
  /// Errors: Error(invalid_argument) once the memory was freed.
  /// Cost: a few nanoseconds while the device has one stream, or in a capture, which is ordered at each graph launch.
  void order_before(StreamState& stream, bool writes) {
    check_present();
    if (device->left_behind.load(std::memory_order_relaxed)) [[unlikely]]
      device->device->check_alive();
    if (stream.capture || !device->several_streams.load(std::memory_order_relaxed)) return;
    order_after_others(stream, writes);
  }
  /// Notes work on this memory that was recorded.
  void touched(StreamState& stream, backend::Ticket ticket, bool writes);
  /// Waits for the work that writes here, or for all work here, and for the semaphores that streams wait for if code
  /// outside weft knows the memory.
  /// Errors: Error(kernel_fault), after all waits, when a kernel failed.
  void wait_for_writers();
  void wait_for_everybody();
  /// Other memory whose addresses the elements may hold. It lives as long as this memory refers to it, and work on this
  /// memory may work on it.
  ReferenceList references();
  /// Adds references, under DeviceState::lock_elements().
  void add_references(HeldMemory more);
  /// Swaps the list. \return  the earlier one
  ReferenceList set_references(HeldMemory held);
  /// Adds to `found` all memory that can be reached from here, and this memory itself if it holds itself.
  void reach(References& found);
  /// Refuses references that lead back to this memory, because a circle would never be freed.
  /// \param looked_at  gets the memory on the way, which may end with it
  /// Errors: Error(unsupported) for such references.
  void refuse_circle(const References& references, References& looked_at);
  /// Whether an array that can be reached from here was freed.
  bool leads_to_freed();

  /// Notes a user outside weft: at its end the memory is parked until that user has finished. The first user counts.
  void used_outside(OutsideUser user);
  /// The memory of the elements' gradients; null without requires_grad().
  std::shared_ptr<const Gradient> gradient();
  bool has_gradient() const { return has_gradient_.load(std::memory_order_acquire); }
  /// Does nothing if there is a gradient already.
  void set_gradient(std::shared_ptr<const Gradient> gradient);

  /// Makes `watcher` hear, as long as it lives, of everything that is about to change elements.
  void watch(const std::shared_ptr<Watcher>& watcher);
  bool watched() const { return watched_.load(std::memory_order_relaxed); }
  Watchers watchers();

  /// Copies to the host as soon as the last write has arrived.
  void download(void* to, std::uint64_t from, std::size_t bytes);

 private:
  void order_after_others(StreamState& stream, bool writes);
  /// The last work of one stream here. It is kept until it is known to have run: two threads may give two streams work
  /// at the same time, and neither knows then which of it comes first.
  struct Use {
    StreamState* stream = nullptr;
    backend::Ticket ticket = 0;
    backend::Ticket write = 0;  ///< the ticket of the last work that writes
    bool writes = false;        ///< whether any work writes
    bool started = false;       ///< whatever any stream is given from now on runs after it
  };
  std::vector<Use> uses(bool writers);
  std::vector<Use> awaited();
  std::vector<Use> before_host(bool writers);
  void check_wait() const;
  void wait_for(std::span<const Use> list, bool writes);
  void forget(std::span<const Use> done);
  void end();
  void give_back();
  [[noreturn]] static void refuse_freed();
  void refuse_pinned() const;
  std::atomic<bool> freed_ = false;
  std::array<int, std::size_t(PinnedBy::count)> pins_ = {};
  std::shared_ptr<void> owner_;
  OutsideUser user_outside_;
  BriefLock mutex_;
  ReferenceList references_;
  std::shared_ptr<const Gradient> gradient_;
  std::atomic<bool> has_gradient_ = false;
  std::vector<std::weak_ptr<Watcher>> watchers_;
  std::atomic<bool> watched_ = false;
  std::vector<Use> uses_;  ///< one for each stream; the last writer stands last
};

/// Claims bytes from outside weft for an array, until the end of its storage (see Storage::Outside).
/// Errors: Error(invalid_argument) if they do not begin and end at words, or lie under an array already: two arrays on
/// the same memory would not know of each other's work.
void claim(DeviceState& device, std::uintptr_t begin, std::uint64_t bytes);
void disclaim(DeviceState& device, std::uintptr_t begin);

/// The alignment of contiguous arrays' addresses, which wide accesses rely on.
constexpr std::uint64_t wide_alignment(std::uint32_t element_bytes) {
  return std::min(16u, element_bytes & (~element_bytes + 1));
}

/// Allocates memory, padded to whole words.
std::shared_ptr<Storage> allocate(const std::shared_ptr<DeviceState>& device, std::uint64_t bytes,
                                  backend::MemoryKind kind = backend::MemoryKind::device);
/// Memory that other interfaces can be given, and memory that they gave: see weft::shareable(), weft::import_memory().
std::shared_ptr<Storage> allocate_shared(const std::shared_ptr<DeviceState>& device, std::uint64_t bytes);
std::shared_ptr<Storage> import_shared(const std::shared_ptr<DeviceState>& device, SharedMemory&& memory,
                                       std::uint64_t bytes);
/// Wraps a buffer of the caller's: see weft::wrap_buffer().
std::shared_ptr<Storage> wrap(const std::shared_ptr<DeviceState>& device, const VulkanBuffer& buffer,
                              std::shared_ptr<void> owner);
/// Wraps memory of the host: see weft::wrap().
std::shared_ptr<Storage> wrap(const std::shared_ptr<DeviceState>& device, std::byte* memory, std::uint64_t bytes,
                              std::shared_ptr<void> owner);

}  // namespace weft::detail
