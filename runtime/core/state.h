// What stands behind Device, Stream and Array. Internal to the runtime.
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

/// A stream; lives as long as its device, so that arrays may name the streams that worked on them.
struct StreamState {
  DeviceState* device = nullptr;
  Capture* capture = nullptr;  ///< work on it is collected, not run: see capture.h
  /// The last ticket that waits for a semaphore of others'; 0: none does.
  std::atomic<backend::Ticket> awaited = 0;
  // As Stream was told; captures take after the stream of their thread.
  std::atomic<bool> track_hazards = true, barrier_always = false;

  /// Calls f(backend::Stream&) with the stream to itself: a wait may come from another thread than the launches.
  /// Errors: Error(device_lost) in the child of a fork.
  template <class F>
  auto with(F f) {
    check_here();
    std::lock_guard lock(mutex_);
    return f(*given_);
  }
  /// Waits, and shows what kernels reported up to there.
  /// Errors: Error(kernel_fault) when a kernel's assert_ or check failed.
  void wait(backend::Ticket ticket) {
    deliver_from([&](Reports& found) { wait(ticket, found); });
  }
  /// Calls f(Reports&), which waits, and delivers what it found. Where it throws, the stream keeps that for its next
  /// wait: what was read is nowhere else.
  template <class F>
  void deliver_from(F f) {
    found_by(f).deliver();
  }
  /// The same where nothing is to be thrown of what was found.
  template <class F>
  void keep_from(F f) {
    keep(found_by(f));
  }
  /// What any stream of the device is given from now on runs after the ticket. The host does not wait.
  void start(backend::Ticket ticket) {
    with([&](backend::Stream& s) { s.start(ticket); });
  }
  /// Waits without the lock: what is waited for may need that others give the stream work.
  void sleep(backend::Ticket ticket) {
    if (const auto waiting = with([&](backend::Stream& s) { return s.waiting(reported_with(ticket)); })) waiting();
  }
  /// Calls f(backend::Stream&), which waits for the ticket; reports are added to `found`.
  template <class F>
  void wait_with(backend::Ticket ticket, Reports& found, F f) {
    sleep(ticket);
    with([&](backend::Stream& s) {
      f(s);
      collect(s, ticket, found);
    });
  }
  /// Waits for the ticket; reports are added to `found`, which the caller delivers or keeps.
  void wait(backend::Ticket ticket, Reports& found) {
    wait_with(ticket, found, [&](backend::Stream& s) { s.wait(ticket); });
  }
  /// Shows what kernels print; failures are for the next wait that can throw them.
  void keep(Reports&& found);
  /// Waits for everything that the stream has been given so far; reports are added to `found`.
  void synchronize(Reports& found) {
    backend::Ticket last = 0;
    std::function<void()> waiting;
    with([&](backend::Stream& s) {
      waiting = s.waiting(backend::kAllWork);  // starts what it waits for, sooner than submit()
      last = s.submit();
    });
    if (waiting) waiting();
    with([&](backend::Stream& s) {
      s.wait(last);
      collect(s, last, found);
    });
    give_back();
  }
  /// Starts what was recorded, unless another thread has the stream to itself.
  void try_submit() {
    if (std::unique_lock lock(mutex_, std::try_to_lock); lock) given_->submit();
  }
  /// Starts what was recorded, and shows what kernels print; failures are kept for the next wait. So is everything
  /// where the queue is held up.
  void release();
  /// Before the process ends: waits, and shows what kernels reported. A stream that a call has to itself at this moment
  /// is not waited for, as that may be what ends the process; nor is a queue that is held up.
  void end() noexcept;
  /// Whether the stream may be handed out again: without a wait for what its last owner's kernels report.
  bool free_for_another();
  /// Before it is: its failures, which are no business of the next owner.
  Reports take_kept() {
    std::lock_guard lock(mutex_);
    return std::exchange(kept_, {});
  }
  /// Where kernels report to that are given to `s`, the stream, which is locked.
  /// Cost: waits for a graph that reports and has not been waited for, unless the queue is held up.
  ReportBuffer& report_buffer(backend::Stream& s);
  /// Before a graph runs on `s`, the stream, which is locked: it reports to `reports` until the next wait.
  /// Cost: waits for what reported before and has not been waited for. Its lines could not be told from the graph's.
  /// Where the queue is held up, for the graph's own launch before alone.
  void report_to(backend::Stream& s, std::shared_ptr<ReportBuffer> reports);
  /// Of the stream of recordings, which is locked: what was submitted reports to `reports`, until a wait finds it done.
  void report_later(const std::shared_ptr<ReportBuffer>& reports) {
    if (std::ranges::find(earlier_, reports) == earlier_.end()) earlier_.push_back(reports);
  }
  /// Waits for what reports, and keeps what it reported for the next wait.
  void settle() {
    sleep(backend::kAllWork);
    with([&](backend::Stream& s) { settle(s); });
  }
  /// Before a launch that reports, without the lock: after a graph that does, that is waited for.
  void leave_graph() {
    if (with([&](backend::Stream&) { return graph_reports_ && !held_up(); })) settle();
  }
  /// Waits for a graph that the stream ran last, if it was not waited for since: keeps what it reported.
  void settle(ReportBuffer& reports);
  /// Before a graph that reports to `next`, without the lock: waits for what report_to() would.
  void make_way(ReportBuffer& next) {
    settle(next);
    if (with([&](backend::Stream&) { return reporting() && !held_up(); })) settle();
  }
  /// Of a capture: what its launches report to, or null.
  std::shared_ptr<ReportBuffer> take_reports() { return std::move(reports_); }
  /// What measures its work, and what makes long launches in parts. The stream is locked.
  StreamClock& clock();
  Pacer& pacer();
  /// From now on `listener`, made around the stream, is given its work in its place; null: the stream itself again.
  /// f(backend::Stream&, std::unique_ptr<backend::Stream>& listener) is called with the stream to itself.
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
  /// Before a lock is taken, which another thread may have had when the process was forked.
  void check_here() const;
  void collect(backend::Stream& s, backend::Ticket ticket, Reports& found) {
    if (!kept_.empty()) found.add(std::exchange(kept_, {}));
    for (const auto& earlier : earlier_) earlier->collect(s, ticket, found);
    std::erase_if(earlier_, [](const auto& earlier) { return !earlier->pending(); });
    if (reports_) reports_->collect(s, ticket, found);
    if (graph_reports_) {
      graph_reports_->collect(s, ticket, found);
      if (!graph_reports_->pending()) graph_reports_.reset();
    }
  }
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
  void settle(backend::Stream& s);
  void keep_alone(backend::Stream& s, ReportBuffer& reports);
  /// What comes now may wait for others: who waits for what was given before reads that alone. The stream is locked.
  void divide_reports() {
    if (reports_ && reports_->pending()) earlier_.push_back(std::move(reports_));
  }
  /// Whether the host may be the one that the queue waits for: then it must not wait for the queue.
  bool held_up() const;
  bool reporting() const {
    return (reports_ && reports_->pending()) || !earlier_.empty() || graph_reports_ || !kept_.lines.empty();
  }
  /// The last ticket that must have run for the reports to be read that belong to a wait for this one.
  backend::Ticket reported_with(backend::Ticket ticket) const {
    backend::Ticket last = ticket;
    const auto look = [&](const std::shared_ptr<ReportBuffer>& r) {
      if (r && r->is_read_by(ticket)) last = std::max(last, r->last());
    };
    for (const auto& earlier : earlier_) look(earlier);
    look(reports_);
    look(graph_reports_);
    return last;
  }
  std::mutex mutex_;
  std::unique_ptr<StreamClock> clock_;  ///< from the first measurement on; outlives the work of the stream
  std::unique_ptr<Pacer> pacer_;
  std::unique_ptr<backend::Stream> stream_;
  std::unique_ptr<backend::Stream> listener_;
  backend::Stream* given_;                              ///< one of the two
  std::shared_ptr<ReportBuffer> reports_;               ///< from the first launch of a kernel that reports
  std::vector<std::shared_ptr<ReportBuffer>> earlier_;  ///< of launches before those of reports_; of recordings
  /// Of the graph that ran last, until its reports are collected. Of these one at a time has any.
  std::shared_ptr<ReportBuffer> graph_reports_;
  std::uint64_t waits_seen_ = 0;  ///< DeviceState::waits when a launch reported last
  Reports kept_;                  ///< what no call could show or throw yet
};

/// For messages about two devices: the name of the first, told apart where both have one name.
std::string name_beside(const DeviceState& device, const DeviceState& other);

/// Hears of the streams of a device: a profile does.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  /// A stream begins, which is given no work yet.
  virtual void join(StreamState& stream) = 0;
};

struct DeviceState : std::enable_shared_from_this<DeviceState> {
  ~DeviceState();

  std::uint64_t id = 0;  ///< never used again by another device
  std::unique_ptr<backend::Device> device;
  StreamState* default_stream = nullptr;
  StreamState* recordings = nullptr;  ///< stands for what others submit; from the first recording on
  Programs programs;
  Handles handles;
  Parked parked;
  /// Locks all writes of elements that may hold arrays, from the look at what a source refers to until the list of the
  /// target is swapped: no other thread replaces what is being copied. Issuing never waits for a queue that others hold
  /// up, so the lock may be held meanwhile; watchers, which have locks of their own, are told before or after.
  /// Errors: Error(device_lost) in the child of a fork.
  std::unique_lock<std::recursive_mutex> lock_elements() {
    device->check_alive();
    return std::unique_lock(elements);
  }
  std::recursive_mutex elements;
  /// Streams stay as long as the device: who waits for them holds no lock.
  std::vector<StreamState*> all_streams() {
    std::lock_guard lock(mutex);
    std::vector<StreamState*> all;
    for (const auto& s : streams) all.push_back(s.get());
    return all;
  }
  /// A dispatch has no more threads, and no array of more elements is addressed in 32 bits. Tests lower it.
  std::int64_t max_threads = (1ll << 31) - 1;
  std::atomic<double> dispatch_budget = 0;            ///< seconds; 0: none
  std::atomic<std::uint64_t> waits = 0;               ///< for semaphores, by any stream: what the queue gets then waits
  std::mutex mutex;                                   ///< guards what follows
  std::shared_ptr<StreamListener> profile;            ///< hears of all work
  std::vector<std::unique_ptr<StreamState>> streams;  ///< the first is the default stream
  std::vector<StreamState*> idle;                     ///< streams that no handle names
  std::map<std::uintptr_t, std::uint64_t> wrapped;    ///< memory outside that arrays stand on: address, bytes
  std::atomic<std::uint64_t> allocated = 0;           ///< bytes so far, freed ones included
  std::atomic<bool> several_streams = false;          ///< work on one stream needs no order among streams
  std::atomic<bool> left_behind = false;              ///< in the parent of this process: see backend::Device
};

inline void StreamState::check_here() const {
  if (device->left_behind.load(std::memory_order_relaxed)) [[unlikely]]
    device->device->check_alive();
}

struct Gradient;
class Watcher;

class Storage;
/// The memory whose addresses elements may hold. A list is never changed, only swapped for another one; null: empty.
using ReferenceList = std::shared_ptr<const References>;
/// Memory, by what will refer to it once a run was issued.
using ComingReferences = std::map<Storage*, References>;

/// Those of a storage, kept while they are told of something. A few of them stay off the heap.
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

/// Memory of a device, shared by an array and its views, and the work on it that has not been waited for.
class Storage : public std::enable_shared_from_this<Storage> {
 public:
  Storage(std::shared_ptr<DeviceState> device, backend::Allocation allocation, std::uint64_t bytes)
      : device(std::move(device)), allocation(allocation), bytes(bytes) {}
  /// Where others see memory that is theirs.
  struct Outside {
    std::uintptr_t address = 0;  ///< 0: it has none
    int cuda_device = -1;        ///< whose memory it is; the host's with -1
  };
  /// Around memory of another's, which `owner` keeps where it is set. The end waits for the work that uses it.
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
  const std::uint64_t bytes;  ///< of the elements; the allocation is padded to words
  const bool wrapped = false;
  const Outside outside;
  bool holds_gradients = false;    ///< set before any array names it
  bool is_handle = false;          ///< see Handles::add()
  bool is_copy = false;            ///< of elements that may be put back: no view is of the copy itself
  bool may_hold_arrays = false;    ///< elements may, by their type; set before other threads name it
  std::atomic<bool> lent = false;  ///< others know where it is, and may write
  /// Grows from storage to storage: tells which was there before.
  const std::uint64_t serial = next_serial();
  std::shared_ptr<Generation> structure;  ///< whose data are known by their array here; set where it is made

  static std::uint64_t next_serial();

  /// Gives the memory back while arrays still name it: see Array::free().
  void free();
  bool is_freed() const { return freed_.load(std::memory_order_relaxed); }
  /// Errors: Error(invalid_argument) once it was freed.
  void check_present() const {
    if (is_freed()) [[unlikely]]
      refuse_freed();
  }
  /// Others who work on memory, whom weft cannot wait for, or who do not ask.
  enum class PinnedBy { tape, recording, tensor, count };
  /// While the result lives, which does not keep the memory, free() is refused and says why.
  std::shared_ptr<const void> pin(PinnedBy by);

  /// Before work on `stream`: it is to run after what other streams do here.
  /// Errors: Error(invalid_argument) once the memory was freed.
  /// Cost: a few nanoseconds while the device has one stream, or in a capture, each of whose launches is ordered.
  void order_before(StreamState& stream, bool writes) {
    check_present();
    if (device->left_behind.load(std::memory_order_relaxed)) [[unlikely]]
      device->device->check_alive();
    if (stream.capture || !device->several_streams.load(std::memory_order_relaxed)) return;
    order_after_others(stream, writes);
  }
  /// After it was recorded.
  void touched(StreamState& stream, backend::Ticket ticket, bool writes);
  void wait_for_writers();
  /// Errors: Error(kernel_fault) when all are done.
  void wait_for_users();
  /// For them, and for the semaphores that streams wait for where others know the memory.
  void wait_for_everybody();
  /// Other memory whose addresses the elements may hold. It lives as long as this memory refers to it, and work on this
  /// memory may work on it.
  ReferenceList references();
  /// Adds to them. \return  the new list; never the one from before, unless both are empty
  ReferenceList add_references(References more);
  void set_references(References list);
  /// Swaps the list for `next` if it is still `expected`. \return  whether it was
  bool swap_references(const ReferenceList& expected, ReferenceList next);
  /// Sorted, each memory once, without this memory itself, which then holds itself.
  ReferenceList list_of(References references);
  /// Elements hold, or have held, views of this memory: it cannot refer to itself, and what they are copied to refers
  /// to it.
  void hold_itself() { holds_itself_.store(true, std::memory_order_relaxed); }
  bool holds_itself() const { return holds_itself_.load(std::memory_order_relaxed); }
  /// Adds all memory that can be reached from here, and this memory itself if it holds itself.
  /// \param coming  references that count as if they were there already
  void reach(References& found, const ComingReferences& coming = {});
  /// Errors: Error(unsupported) for memory that refers to this one in turn: it would never be freed.
  void refuse_circle(const References& references, const ComingReferences& coming = {});
  /// Whether an array was freed that can be reached from here.
  bool leads_to_freed();

  /// Others use the memory as well: at its end it is parked until they have finished. The first one given counts.
  void used_outside(OutsideUser user);
  /// Where the gradients of the elements lie; null without requires_grad().
  std::shared_ptr<const Gradient> gradient();
  bool has_gradient() const { return has_gradient_.load(std::memory_order_acquire); }
  /// Keeps the one that is there already.
  void set_gradient(std::shared_ptr<const Gradient> gradient);

  /// From now on `watcher` hears of everything that is about to change elements, as long as it lives.
  void watch(const std::shared_ptr<Watcher>& watcher);
  bool watched() const { return watched_.load(std::memory_order_relaxed); }
  Watchers watchers();

  /// Copies to the host when the last write has arrived, and no later than that.
  void download(void* to, std::uint64_t from, std::size_t bytes);

 private:
  void order_after_others(StreamState& stream, bool writes);
  /// The last work of one stream here. It is kept until it is known to have run: two threads may give two streams work
  /// at the same time, and neither knows then which of it comes first.
  struct Use {
    StreamState* stream = nullptr;
    backend::Ticket ticket = 0;
    backend::Ticket write = 0;  ///< of the last work that writes
    bool writes = false;        ///< whether there is such
    bool started = false;       ///< what any stream is given from now on runs after it
  };
  std::vector<Use> users();
  std::vector<Use> writers();
  std::vector<Use> awaited();
  std::vector<Use> before_host_reads();
  static void wait_for(std::span<const Use> list);
  void forget(std::span<const Use> done);
  void give_back();
  [[noreturn]] static void refuse_freed();
  void refuse_pinned() const;
  std::atomic<bool> freed_ = false;
  std::array<int, std::size_t(PinnedBy::count)> pins_ = {};
  std::shared_ptr<void> owner_;
  OutsideUser user_outside_;
  BriefLock mutex_;
  ReferenceList references_;  ///< see list_of()
  std::atomic<bool> holds_itself_ = false;
  std::shared_ptr<const Gradient> gradient_;
  std::atomic<bool> has_gradient_ = false;
  std::vector<std::weak_ptr<Watcher>> watchers_;
  std::atomic<bool> watched_ = false;
  std::vector<Use> uses_;  ///< one for each stream; who wrote last stands last
};

/// Bytes outside of weft that an array is to stand on, from here to the end of its storage (see Storage::Outside).
/// Errors: Error(invalid_argument) where they do not begin and end at words, or lie under an array already: two arrays
/// on the same memory would not know of each other's work.
void claim(DeviceState& device, std::uintptr_t begin, std::uint64_t bytes);
void disclaim(DeviceState& device, std::uintptr_t begin);

/// Of the addresses of contiguous arrays: what wide accesses count on.
constexpr std::uint64_t wide_alignment(std::uint32_t element_bytes) {
  return std::min(16u, element_bytes & (~element_bytes + 1));
}

/// The allocation is padded to whole words.
std::shared_ptr<Storage> allocate(const std::shared_ptr<DeviceState>& device, std::uint64_t bytes,
                                  backend::MemoryKind kind = backend::MemoryKind::device);
/// Memory that others can be given, and that others have given: see weft::shareable(), weft::import_memory().
std::shared_ptr<Storage> allocate_shared(const std::shared_ptr<DeviceState>& device, std::uint64_t bytes);
std::shared_ptr<Storage> import_shared(const std::shared_ptr<DeviceState>& device, SharedMemory&& memory,
                                       std::uint64_t bytes);
/// Around a buffer of another's: see weft::wrap_buffer().
std::shared_ptr<Storage> wrap(const std::shared_ptr<DeviceState>& device, const VulkanBuffer& buffer,
                              std::shared_ptr<void> owner);
/// Around memory of the host: see weft::wrap().
std::shared_ptr<Storage> wrap(const std::shared_ptr<DeviceState>& device, std::byte* memory, std::uint64_t bytes,
                              std::shared_ptr<void> owner);

}  // namespace weft::detail
