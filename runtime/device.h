// Devices and streams: where kernels run, and in what order.
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
/// Where work of this thread goes that names no stream: that of the innermost StreamScope, or the default stream.
StreamState& stream_of_thread(DeviceState& device);
}  // namespace detail

/// A moment in the work of a stream: all that it had been given when the event was recorded. A handle.
class Event {
 public:
  /// Of no work: it is over.
  Event() = default;
  /// Whether all of it has run. Does not wait.
  bool done(Loc loc = Loc::here()) const;
  /// Waits on the host. Errors: Error(kernel_fault) when a kernel failed by then; Error(device_lost).
  void wait(Loc loc = Loc::here()) const;
  /// The same, but no longer than so many seconds, and as long as another thread has the stream to itself; what has not
  /// run by then goes on. \return whether it is over
  /// Errors: as wait(), when it is over; Error(invalid_argument) for a negative number and NaN.
  /// Cost: looks for it every now and then, at most a millisecond apart.
  bool wait_for(double seconds, Loc loc = Loc::here()) const;

 private:
  friend class Stream;
  std::shared_ptr<detail::StreamState> stream_;
  std::uint64_t ticket_ = 0;
};

/// How soon a stream's work starts.
enum class StreamPriority {
  normal,  ///< it is gathered, some operations at a time, before the device gets it: least cost
  high     ///< the device gets each operation at once, before all that other streams have gathered
};

/// A queue of work on one device, which behaves as if everything ran in order. A handle: copies are the same stream.
/// Streams may be used by several threads; each call has the stream to itself. Work on an array runs after what other
/// streams have been given to do with it before; nobody waits for that on the host.
class Stream {
 public:
  // There is no stream of nothing: to move one is to copy it.
  Stream(const Stream&) = default;
  Stream& operator=(const Stream&) = default;

  /// The moment at which all that the stream has been given so far has run. Starts it.
  Event record(Loc loc = Loc::here()) const;
  /// What the stream is given from now on runs after the event, which may be of another stream of the same device: for
  /// what arrays do not show. The host does not wait.
  /// Errors: Error(invalid_argument) for an event of another device: wait for that on the host.
  void wait(const Event& event, Loc loc = Loc::here()) const;

  /// Work that `work` gives the device is not run but recorded into a command buffer of the caller's, who submits it to
  /// the queue of the device: in <weft/vulkan.h>, see Recording for what follows, and docs/embedding.md.
  ///
  /// The command buffer is in the recording state, outside of a render pass. What the stream was given before is
  /// started. Before and after the recorded work stand memory barriers against everything: kernels see what the queue
  /// did before, whatever comes after sees what they wrote, and no other barriers are needed for weft's arrays. The
  /// compute pipeline and push constants that were bound are not any more.
  /// Errors: what `work` throws, after which the command buffer is as it was; Error(unsupported) on a device that is
  /// not adopted; Error(invalid_argument) for a null command buffer, for reading elements or waiting on the host
  /// meanwhile, and for work on another device.
  Recording record_into(VkCommandBuffer commands, const std::function<void()>& work, Loc loc = Loc::here()) const;

  /// What the stream is given from now on runs when a timeline semaphore has at least the value; nothing waits on the
  /// host. The queue waits: what other streams of the device are given from now on comes later, too, so that nothing
  /// of it may be what the semaphore waits for, and the host must not read arrays that others know before it signals it
  /// itself: that waits, too. The semaphore is of the same VkDevice and must stay until then.
  /// Errors: Error(unsupported) on a device that is not adopted, TimelineSemaphores apart; Error(invalid_argument) for
  /// a null semaphore, and while a graph or a recording collects work.
  void wait(VkSemaphore semaphore, std::uint64_t value, Loc loc = Loc::here()) const;
  /// A timeline semaphore gets the value when all has run that the stream has been given so far, which is started.
  /// Errors: as wait(), and Error(invalid_argument) for a value that is not above the one that the semaphore has, or is
  /// to have by an earlier call. (Signals of others that have not happened are not known.)
  void signal(VkSemaphore semaphore, std::uint64_t value, Loc loc = Loc::here()) const;

  /// Starts what has been recorded. Almost never needed: waiting starts what it waits for.
  void submit(Loc loc = Loc::here());
  /// Waits for everything. Almost never needed: reading an array waits for its producers. What was dropped before, and
  /// other streams have no work for, is given back then.
  void synchronize(Loc loc = Loc::here());

  /// With false no barriers stand between launches. For tests that show what they are for; results may be wrong. Graphs
  /// take after the stream of the thread that captures them, recordings after the stream that records.
  void track_hazards(bool on);
  /// A barrier after every launch, also in graphs and recordings: tells a missing dependency from another mistake.
  void barrier_always(bool on);

  /// For backends' tests and benchmarks.
  backend::Stream& native();

 private:
  friend class Device;
  friend class StreamScope;
  friend struct detail::DeviceState;
  explicit Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::StreamState> state_;
  friend detail::StreamState& detail::state_of(const Stream& stream);
};

/// While it lives, work of this thread on the stream's device that names no stream goes to this one and not to the
/// default stream: launches, fills, copies between arrays, values of the host, copy_to_async(), what structures and
/// algorithms launch, the way back of a tape, graphs. (Reads of elements wait for who wrote them.) Of several that live
/// the last one made counts, for each device. They end in the thread that made them.
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

/// What the compiler and its caches did on a device so far.
struct CompileCounts {
  std::uint64_t compiled = 0;  ///< kernels translated because no cache had them
  std::uint64_t loaded = 0;    ///< kernels taken from the disk cache
  std::uint64_t rejected = 0;  ///< damaged cache entries that were thrown away
};

/// A device that runs kernels. A handle: copies are the same device, and so are devices made from the same name while
/// one of them (or an array on it) lives.
///
/// Names: "vulkan:0", "vulkan:1", ... (the adapters that list() shows), "cpu" (the first software Vulkan device),
/// "reference" (the interpreter: slow, exact, checks every access).
class Device {
 public:
  // There is no null device: to move one is to copy it.
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;

  /// Errors: Error(no_device) that says what is missing: the loader, a driver, an adapter of that number, a feature.
  explicit Device(std::string_view name, Loc loc = Loc::here());

  /// WEFT_DEVICE where that is set, else the first adapter that is a GPU, else the first of any kind.
  static Device best(Loc loc = Loc::here());
  /// A device of its own, even where one of that name is open: a second one on the same adapter.
  static Device open(std::string_view name, Loc loc = Loc::here());
  /// A Vulkan device that another part of the program has made and goes on using. Its queue is shared: weft uses it
  /// within the caller's lock, and nothing of it but vkQueueSubmit. The device is not destroyed with this object.
  ///
  /// Before the caller destroys it, all that weft has on it must go: when the last array, kernel program, graph and
  /// stream handle is gone, or by detach(). Vulkan does not tell when a device is destroyed, so that a later use of one
  /// that was not detached is undefined.
  /// Errors: Error(invalid_argument) naming the handle that is null or does not belong to the others, and an extension
  /// whose functions the VkDevice lacks; Error(unsupported) naming the feature that the adapter lacks or that
  /// VulkanHandles::features does not turn on. What is named there is believed, as Vulkan tells nothing of it.
  static Device adopt(const VulkanHandles& handles, Loc loc = Loc::here());
  /// Gives an adopted device back: waits for all work, and frees everything that weft has on it. No other thread may be
  /// using it. From then on every call on it, on its arrays, streams and graphs throws Error(device_lost), and they may
  /// be dropped at any time, after the VkDevice too. A second call does nothing.
  /// Errors: Error(unsupported) on a device that is not adopted; Error(kernel_fault) when a kernel failed, after all is
  /// done.
  void detach(Loc loc = Loc::here()) const;
  /// The names that can be opened here.
  static std::vector<std::string> list();

  const std::string& name() const;
  /// As the driver calls it.
  const std::string& adapter() const;
  const std::string& driver() const;
  bool is_software() const;
  std::uint64_t memory_bytes() const;
  /// Whether an array can stand on memory of the host: see wrap().
  bool wraps_host() const;
  /// Whether meshes may be built for the device's own ray queries: see RaySearch::device.
  bool has_ray_query() const;

  /// The stream that this thread's work goes to when it names none: that of a StreamScope, else the default stream.
  Stream stream() const;
  /// A stream of its own, until its last handle goes; what was launched there is then waited for where kernels may
  /// report, unless the queue waits for a semaphore of another's: then they are heard by the next wait that has to do
  /// with that work, or for the device. A failure that nobody has been told of by then is thrown by the next call that
  /// waits for an array which the stream worked on, or for the device; once a later call of this function takes the
  /// stream up again, by the next wait on the default stream.
  ///
  /// No device runs streams by priorities: they share one queue, where work that has started comes to its end and the
  /// rest follows in the order in which it was started. So a high priority is a place in that order, at the cost of a
  /// submission for each operation. It does not change what is computed, nor the order of work on an array.
  Stream create_stream(StreamPriority priority = StreamPriority::normal, Loc loc = Loc::here()) const;
  /// A launch that would take longer is made in several dispatches, by workgroups, each submitted by itself, so that
  /// the system does not take the device for hung (Windows does after 2 s of one submission) and others get their turn.
  /// At first it is 0.5 on integrated and discrete GPUs that have a clock and are not adopted, and 0 elsewhere:
  /// launches stay whole. A launch in more than eight parts makes the host wait for the first ones, as the device holds
  /// so many.
  ///
  /// How long a kernel takes is known from its earlier launches, some of which are measured by the device's clock; one
  /// that is not known yet, or was never launched over so many threads, starts with parts of 65536 threads and grows as
  /// their times come in. The time of a launch must follow from its number of threads: where an argument makes each
  /// thread work a hundred times longer, the first parts do, too. A workgroup is never split, and graphs are not.
  /// Errors: Error(invalid_argument) for a negative number; Error(unsupported) when the device has no clock.
  /// Cost: a launch that is known to be short costs the host up to twice as much (suite launch of the benchmarks); one
  /// of 64 is measured, which keeps it apart from its neighbours.
  void set_dispatch_budget(double seconds, Loc loc = Loc::here()) const;
  double dispatch_budget() const;
  /// Waits for all streams of the device. What was dropped before, memory, kernels and graphs, is given back then.
  void synchronize(Loc loc = Loc::here()) const;
  CompileCounts compile_counts() const;

  /// The backend behind it, for embedding and benchmarks.
  backend::Device& native() const;

  bool operator==(const Device& other) const { return state_ == other.state_; }

  explicit Device(std::shared_ptr<detail::DeviceState> state) : state_(std::move(state)) {}
  const std::shared_ptr<detail::DeviceState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::DeviceState> state_;
};

}  // namespace weft
