// The data of a profiler, and the stream that provides it. Internal to the runtime.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../../backends/backend.h"
#include "../core/state.h"
#include "../profile.h"

namespace weft::detail {

/// Scopes of all threads and operations of some devices, from start to stop. Thread-safe.
class ProfileLog : public std::enable_shared_from_this<ProfileLog> {
 public:
  /// Facts about an operation that are known when it is recorded.
  struct Recorded {
    const std::string* name = nullptr;  ///< in names_
    std::uint32_t scope = 0;            ///< 0: none
    double at = 0;                      ///< seconds on the host
  };
  static constexpr std::uint32_t kNone = 0;
  /// The relation of a device's clock to the host's.
  struct Clocks {
    double at = 0;      ///< seconds on the host
    double offset = 0;  ///< to add to the device's seconds
  };

  explicit ProfileLog(const ProfilerOptions& options);
  const std::uint64_t id;  ///< unique among logs
  const ProfilerOptions options;

  /// Begins to listen to the devices' streams. Waits for their work. Errors: Error(unsupported) when a device has no
  /// clock.
  void start(const std::vector<std::shared_ptr<DeviceState>>& devices);
  /// Begins to listen to a stream of one of the devices. The stream must not be locked.
  void join(StreamState& stream);
  /// Waits for recorded work, and stops listening. Errors: Error(device_lost), after everything has ended.
  void stop();
  /// Call after stop().
  Profile result();

  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  std::uint32_t begin_scope(std::string_view name, std::uint32_t parent);
  void end_scope(std::uint32_t scope);
  Recorded recorded(std::string_view name);
  /// Notes that an operation ran, in seconds on the host's clock.
  void ran(const Recorded& operation, std::uint32_t track, double begin, double end);

  /// The log that is collecting, or null. Cost if there is none: a load.
  static std::shared_ptr<ProfileLog> current();
  /// Makes this log the current one. Errors: Error(invalid_argument) if there is one already.
  void make_current();
  void leave_current();

 private:
  using Clock = std::chrono::steady_clock;
  struct Track {
    std::string device;
    int stream = 0;  ///< number on the device
    StreamState* state = nullptr;
  };
  struct Measured {
    std::shared_ptr<DeviceState> device;
    Clocks before;
  };
  Clocks compare(DeviceState& device) const;
  /// Returns the one copy of a name. Call with the lock held.
  const std::string* kept_name(std::string_view name) {
    const auto known = names_.find(name);  // emplace() would make a string first
    return &*(known != names_.end() ? known : names_.emplace(name).first);
  }
  int thread_number();

  const Clock::time_point start_ = Clock::now();
  std::vector<Measured> devices_;
  std::mutex mutex_;  ///< guards the members below
  std::set<std::string, std::less<>> names_;
  std::vector<std::thread::id> threads_;  ///< threads that opened scopes
  std::vector<Track> tracks_;
  struct Scope {
    const std::string* name;
    std::uint32_t parent;
    int thread;
    double begin, end;  ///< `end` is below 0 while the scope is open
  };
  std::vector<Scope> scopes_;  ///< element k is scope k + 1
  struct Ran {
    Recorded recorded;
    std::uint32_t track;
    double begin, end;
  };
  std::vector<Ran> ran_;
  bool stopped_ = false;
  double seconds_ = 0;  ///< set by stop()
};

/// Derives kernels and scopes from the rest.
void summarise(Profile& profile);

/// This thread's open scope in the log, kNone if its open scope is another log's.
std::uint32_t open_scope(const ProfileLog& log);
void set_open_scope(const ProfileLog& log, std::uint32_t scope);
/// Reopens `parent` if `scope` of this log is open: a Timer may end after its profiler, while another collects.
void close_scope(const ProfileLog& log, std::uint32_t scope, std::uint32_t parent);

/// Passes its operations on to another stream, and measures them. Guarded by that stream's lock.
class ProfiledStream final : public backend::Stream {
 public:
  ProfiledStream(backend::Stream& own, StreamClock& clock, std::shared_ptr<ProfileLog> log, std::uint32_t track)
      : own_(own), clock_(clock), log_(std::move(log)), track_(track) {}

  /// Logs the measurements on the host's clock. Call when all measured work has run.
  void tell(const ProfileLog::Clocks& before, const ProfileLog::Clocks& after);

  backend::Ticket launch(backend::Program& program, backend::Grid grid, std::span<const std::byte> args,
                         std::span<const backend::MemoryRange> ranges) override;
  backend::Ticket copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) override;
  backend::Ticket fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) override;
  backend::Ticket upload(std::uint64_t to, const void* from, std::size_t bytes) override {
    return own_.upload(to, from, bytes);
  }
  void download(void* to, std::uint64_t from, std::size_t bytes, backend::Ticket after) override {
    own_.download(to, from, bytes, after);
  }
  backend::Ticket build(backend::RayStructure& structure, const backend::RayTriangles& triangles) override;
  /// Measures the graph as a whole, or as launches, copies, fills and builds of the stream.
  backend::Ticket replay(backend::Graph& graph) override;
  bool measure(backend::Timestamps* into, std::uint32_t first) override { return own_.measure(into, first); }
  void start_at_once(bool on) override { own_.start_at_once(on); }
  backend::Stream& own() override { return own_.own(); }
  backend::Ticket submit() override { return own_.submit(); }
  void start(backend::Ticket ticket) override { own_.start(ticket); }
  bool done(backend::Ticket ticket) override { return own_.done(ticket); }
  void wait(backend::Ticket ticket) override { own_.wait(ticket); }
  std::function<void()> waiting(backend::Ticket ticket) override { return own_.waiting(ticket); }
  void synchronize() override { own_.synchronize(); }
  void track_hazards(bool on) override { own_.track_hazards(on); }
  void barrier_always(bool on) override { own_.barrier_always(on); }

 private:
  template <class F>
  backend::Ticket measured(std::string_view name, F record);

  backend::Stream& own_;
  StreamClock& clock_;
  const std::shared_ptr<ProfileLog> log_;
  const std::uint32_t track_;
  struct Times {
    ProfileLog::Recorded recorded;
    std::int64_t begin, end;
  };
  std::shared_ptr<std::vector<Times>> times_ = std::make_shared<std::vector<Times>>();
};

}  // namespace weft::detail
