// Devices and streams: where kernels run, and in what order.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

namespace backend {
class Device;
class Stream;
}  // namespace backend

namespace detail {
struct DeviceState;
struct StreamState;
}  // namespace detail

/// A moment in the work of a stream: all that it had been given when the event was recorded. A handle.
class Event {
 public:
  /// Of no work: it is over.
  Event() = default;
  /// Whether all of it has run. Does not wait.
  bool done() const;
  /// Waits on the host. Errors: Error(kernel_fault) when a kernel failed by then; Error(device_lost).
  void wait() const;

 private:
  friend class Stream;
  std::shared_ptr<detail::StreamState> stream_;
  std::uint64_t ticket_ = 0;
};

/// A queue of work on one device, which behaves as if everything ran in order. A handle: copies are the same stream.
/// Streams may be used by several threads; each call has the stream to itself. Work on an array runs after what other
/// streams have been given to do with it before; nobody waits for that on the host.
class Stream {
 public:
  /// The moment at which all that the stream has been given so far has run. Starts it.
  Event record() const;
  /// What the stream is given from now on runs after the event, which may be of another stream of the same device: for
  /// what arrays do not show. The host does not wait.
  /// Errors: Error(invalid_argument) for an event of another device: wait for that on the host.
  void wait(const Event& event) const;

  /// Starts what has been recorded. Almost never needed: waiting starts what it waits for.
  void submit();
  /// Waits for everything. Almost never needed: reading an array waits for exactly its producers.
  void synchronize();

  /// With false no barriers stand between launches. For tests that show what they are for; results may be wrong.
  void track_hazards(bool on);
  /// A barrier after every launch: tells a missing dependency from another mistake.
  void barrier_always(bool on);

  /// For backends' tests and benchmarks.
  backend::Stream& native();

 private:
  friend class Device;
  friend struct detail::DeviceState;
  explicit Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::StreamState> state_;
  friend detail::StreamState& state_of(const Stream& stream);
};
detail::StreamState& state_of(const Stream& stream);

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
  /// Errors: Error(no_device) that says what is missing: the loader, a driver, an adapter of that number, a feature.
  explicit Device(std::string_view name);

  /// WEFT_DEVICE where that is set, else the first adapter that is a GPU, else the first of any kind.
  static Device best();
  /// A device of its own, even where one of that name is open: a second one on the same adapter.
  static Device open(std::string_view name);
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

  /// The stream that launches use when none is given.
  Stream stream() const;
  /// A stream of its own, until its last handle goes; what was launched there is then waited for where kernels may
  /// report. A failure that nobody has been told of by then is thrown by the next call that waits for an array which
  /// the stream worked on, or for the device; once a later call of this function takes the stream up again, by the next
  /// wait on the default stream.
  Stream create_stream() const;
  /// Waits for all streams of the device.
  void synchronize() const;
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
