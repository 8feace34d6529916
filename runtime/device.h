// Devices and streams: which device runs a kernel, and in which order.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../backends/vulkan/handles.h"
#include "../frontend/support/loc.h"

namespace weft {

class Recording;
class Stream;

namespace backend {
class Device;
class Stream;
}  // namespace backend

namespace detail {
struct DeviceState;
struct StreamState;
StreamState& state_of(const Stream& stream);
/// The stream that takes this thread's work where a call names no stream: that of the innermost StreamScope, else the
/// default stream.
StreamState& stream_of_thread(DeviceState& device);
}  // namespace detail

/// A moment in the work of a stream: reached when everything that the stream had been given at record() has run. A
/// handle.
class Event {
 public:
  /// An event of no work, which is over from the start.
  Event() = default;
  /// Whether all work before the event has run. Does not wait.
  bool done(Loc loc = Loc::here()) const;
  /// Waits on the host until the event is reached.
  /// Errors: Error(kernel_fault) when a kernel failed by then; Error(device_lost).
  void wait(Loc loc = Loc::here()) const;
  /// Waits as wait() does, but no longer than this many seconds (plus the time for which another thread holds the
  /// stream). Work that has not run by then continues.
  /// \return whether the event is over
  /// Errors: as wait(), when the event is over; Error(invalid_argument) for a negative number and NaN.
  /// Cost: polls, at most a millisecond apart.
  bool wait_for(double seconds, Loc loc = Loc::here()) const;

 private:
  friend class Stream;
  std::shared_ptr<detail::StreamState> stream_;
  std::uint64_t ticket_ = 0;
};

/// How soon a stream's work starts.
enum class StreamPriority {
  normal,  ///< the stream gathers some operations before it submits them: the lowest cost
  high     ///< the stream submits each operation at once, ahead of everything that other streams have gathered
};

/// A queue of work on one device, which behaves as if everything ran in order. A handle: copies are the same stream.
/// Several threads may use a stream; each call has it to itself. Work on an array runs after all earlier work on that
/// array, whichever stream it was given to, and the host waits for none of it.
class Stream {
 public:
  // A stream is never null, so a move is a copy.
  Stream(const Stream&) = default;
  Stream& operator=(const Stream&) = default;

  /// Returns the moment at which everything that the stream has been given so far has run. Submits that work.
  Event record(Loc loc = Loc::here()) const;
  /// Makes everything that the stream is given from now on run after the event, which may be of another stream of the
  /// device. Needed only for dependencies that no array shows. The host does not wait.
  /// Errors: Error(invalid_argument) for an event of another device: wait for that on the host.
  void wait(const Event& event, Loc loc = Loc::here()) const;

  /// Records the work that `work` gives the device into a command buffer of the caller, who submits it to the device's
  /// queue. Nothing of it runs before. <weft/vulkan.h> has Recording, which says what follows; see also
  /// docs/embedding.md.
  ///
  /// The command buffer is in the recording state, outside a render pass. Earlier work of the stream is submitted.
  /// Memory barriers against everything stand before and after the recorded work: its kernels see what the queue did
  /// before, later commands see what they wrote, and weft's arrays need no other barriers. The compute pipeline and
  /// push constants that were bound before are no longer bound.
  /// Errors: whatever `work` throws, which leaves the command buffer as it was; Error(unsupported) on a device that is
  /// not adopted, and for copies of elements that may hold arrays; Error(invalid_argument) for a null command buffer,
  /// for work on another device, and when `work` reads elements or waits on the host.
  Recording record_into(VkCommandBuffer commands, const std::function<void()>& work, Loc loc = Loc::here()) const;

  /// Makes everything that the stream is given from now on run after a timeline semaphore has reached the value; the
  /// host does not wait. The queue does: later work of the device's other streams also comes after, so none of it may
  /// be what the semaphore waits for. Nor may a host thread that is to signal the semaphore first read an array that
  /// other work uses, because that read waits too. The semaphore belongs to the same VkDevice and must live until then.
  /// Errors: Error(unsupported) on a device that is not adopted, except for a TimelineSemaphore;
  /// Error(invalid_argument) for a null semaphore, and while a graph or a recording collects work.
  void wait(VkSemaphore semaphore, std::uint64_t value, Loc loc = Loc::here()) const;
  /// Sets a timeline semaphore to the value once everything that the stream has been given so far has run. Submits that
  /// work.
  /// Errors: as wait(); Error(invalid_argument) for a value that is not above the semaphore's present one and above
  /// that of every earlier call. (Signals by others that have not happened yet are not known.)
  void signal(VkSemaphore semaphore, std::uint64_t value, Loc loc = Loc::here()) const;

  /// Submits what has been gathered. Rarely needed: every wait submits what it waits for.
  void submit(Loc loc = Loc::here());
  /// Waits for everything. Rarely needed: reading an array waits for its producers. Frees what was dropped before,
  /// unless other streams still have work for it.
  void synchronize(Loc loc = Loc::here());

  /// Turns the barriers between launches off (false) or on, for tests that show what they are for; without them results
  /// may be wrong. A graph follows the stream of the thread that captures it, a recording the stream that records it.
  void track_hazards(bool on);
  /// Puts a barrier after every launch, in graphs and recordings too: tells a missing dependency from another mistake.
  void barrier_always(bool on);

  /// The backend's stream, for tests and benchmarks of backends.
  backend::Stream& native();

 private:
  friend class Device;
  friend class StreamScope;
  friend struct detail::DeviceState;
  explicit Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::StreamState> state_;
  friend detail::StreamState& detail::state_of(const Stream& stream);
};

/// Sends this thread's work to a stream instead of the default stream, for as long as the scope lives. It covers all
/// work on the stream's device that names no stream: launches, fills, copies between arrays, values from the host,
/// copy_to_async(), launches of structures and algorithms, the way back of a tape, graphs. (Reading elements waits for
/// whatever wrote them.) For each device the scope made last counts. A scope ends in the thread that made it.
///
///   Stream transfers = device.create_stream();
///   {
///     StreamScope scope(transfers);
///     next.assign(values);       // on `transfers`, while the default stream goes on
///   }
///
/// Cost: none for launches that name a stream; a load for others.
class StreamScope {
 public:
  explicit StreamScope(Stream stream);
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  ~StreamScope();

 private:
  friend class Device;
  friend detail::StreamState& detail::stream_of_thread(detail::DeviceState& device);
  static const StreamScope* of(const detail::DeviceState& device);

  const Stream stream_;
  StreamScope* outer_;
};

/// The counts of the compiler and its caches on a device so far.
struct CompileCounts {
  std::uint64_t compiled = 0;  ///< kernels translated because no cache had them
  std::uint64_t loaded = 0;    ///< kernels taken from the disk cache
  std::uint64_t rejected = 0;  ///< damaged cache entries that were thrown away
};

/// A device that runs kernels. A handle: copies are the same device. A name opens the same device again for as long as
/// the device, or an array on it, lives.
///
/// Names: "vulkan:0", "vulkan:1", ... (the adapters that list() shows), "cpu" (machine code on all cores of the host,
/// which LLVM makes), "reference" (the interpreter: slow, exact, checks every access; "reference:split" rounds as
/// devices without fused operations do). Where there is no LLVM, "cpu" is the first software Vulkan device, or else the
/// interpreter, and a line on stderr says what to install.
class Device {
 public:
  // A device is never null, so a move is a copy.
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;

  /// Opens the device of that name.
  /// Errors: Error(no_device) that says what is missing: the loader, a driver, an adapter of that number, a feature.
  explicit Device(std::string_view name, Loc loc = Loc::here());

  /// Opens the device that WEFT_DEVICE names; where that is not set, the first GPU, else "cpu".
  static Device best(Loc loc = Loc::here());
  /// Opens a separate device, a second one on the same adapter where the name is open already.
  static Device open(std::string_view name, Loc loc = Loc::here());
  /// Takes a Vulkan device that another part of the program has made and continues to use. weft shares its queue: it
  /// calls nothing but vkQueueSubmit on it, within the caller's lock. The VkDevice is not destroyed with this object.
  ///
  /// Before the caller destroys the VkDevice, everything that weft has on it must go: call detach(), or drop the last
  /// array, kernel program, graph and stream handle. Vulkan does not tell when a device is destroyed, so a later use of
  /// a device that was not detached is undefined.
  /// Errors: Error(invalid_argument) naming a handle that is null or does not belong to the others, or an extension
  /// whose functions the VkDevice lacks; Error(unsupported) naming a feature that the adapter lacks or that
  /// VulkanHandles::features does not turn on. weft must believe what is named there, as Vulkan does not tell.
  static Device adopt(const VulkanHandles& handles, Loc loc = Loc::here());
  /// Gives an adopted device back: waits for all work and frees everything that weft has on it. No other thread may be
  /// using the device. From then on every call on it and on its arrays, streams and graphs throws Error(device_lost);
  /// these handles may be dropped at any time, even after the VkDevice. A second call does nothing.
  /// Errors: Error(unsupported) on a device that is not adopted; Error(kernel_fault) when a kernel failed, after
  /// everything is done.
  void detach(Loc loc = Loc::here()) const;
  /// The names of the devices that can be opened here.
  static std::vector<std::string> list();

  const std::string& name() const;
  /// The adapter's name, as its driver gives it.
  const std::string& adapter() const;
  const std::string& driver() const;
  bool is_software() const;
  std::uint64_t memory_bytes() const;
  /// Whether an array can use memory of the host: see wrap().
  bool wraps_host() const;
  /// Whether meshes may be built for the device's own ray queries: see RaySearch::device.
  bool has_ray_query() const;
  /// Whether `fma`, and the products and sums that kernels contract to it (KernelOptions::contract), are rounded once
  /// in that type; where they are not, the product is rounded too. Devices that answer alike compute alike, but for
  /// what docs/semantics.md leaves open. Cost: on a Vulkan device the first call runs a kernel, unless the disk cache
  /// knows the answer.
  bool fuses_float32(Loc loc = Loc::here()) const;
  bool fuses_float64(Loc loc = Loc::here()) const;

  /// The stream that takes this thread's work where a call names none: that of a StreamScope, else the default stream.
  Stream stream() const;
  /// Makes a new stream, which lives until its last handle goes. Where kernels may report, the end of the last handle
  /// waits for the stream's launches, so that their reports are heard. If the queue waits for another program's
  /// semaphore, it does not: the reports are then heard by the next wait that involves that work, or for the device. A
  /// failure that nobody has been told of by then is thrown by the next call that waits for the device or for an array
  /// that the stream worked on; or, once a later create_stream() takes the stream up again, by the next wait on the
  /// default stream.
  ///
  /// No device runs streams by priority: they share one queue, which finishes the work that it has started and then
  /// takes the rest in the order of submission. A high priority is therefore a place in that order, at the cost of a
  /// submission for each operation. It changes neither what is computed nor the order of work on an array.
  Stream create_stream(StreamPriority priority = StreamPriority::normal, Loc loc = Loc::here()) const;
  /// Splits launches that would take longer than this into several dispatches, by workgroups, each submitted on its
  /// own. The system then does not take the device for hung (Windows does after 2 s in one submission), and other
  /// programs get their turn. The budget starts at 0.5 on integrated and discrete GPUs that have a clock and are not
  /// adopted, and at 0 elsewhere, where launches stay whole. A launch in more than twelve parts makes the host wait for
  /// the first ones, because the device holds no more than twelve submissions of a stream.
  ///
  /// The time of a launch is estimated from earlier launches of the kernel, some of which the device's clock measures.
  /// A kernel that is new, or was never launched over so many threads, starts with parts of 65536 threads, which grow
  /// as their times come in. The estimate assumes that time follows the number of threads: where an argument makes each
  /// thread work a hundred times longer, the first parts take that much longer too. A workgroup is never split, and
  /// neither is a graph.
  /// Errors: Error(invalid_argument) for a negative number; Error(unsupported) when the device has no clock.
  /// Cost: up to twice the host's time for a launch that is known to be short (suite launch of the benchmarks); one
  /// launch in 64 is measured, which keeps it apart from its neighbours.
  void set_dispatch_budget(double seconds, Loc loc = Loc::here()) const;
  double dispatch_budget() const;
  /// Waits for all streams of the device. Frees what was dropped before: memory, kernels and graphs.
  void synchronize(Loc loc = Loc::here()) const;
  CompileCounts compile_counts() const;

  /// The backend's device, for embedding and benchmarks.
  backend::Device& native() const;

  bool operator==(const Device& other) const { return state_ == other.state_; }

  explicit Device(std::shared_ptr<detail::DeviceState> state) : state_(std::move(state)) {}
  const std::shared_ptr<detail::DeviceState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::DeviceState> state_;
};

}  // namespace weft
