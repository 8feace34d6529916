// Profiles: how long scopes of the host take, and how long devices spend on each kernel.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device.h"

namespace weft {

namespace detail {
class ProfileLog;
}

/// The measurements of a Profiler. Times are in seconds; moments count from the profiler's beginning, on one axis for
/// the host and all devices.
struct Profile {
  /// All dispatches of one kernel on one device, or of its adjoint ("name (adjoint)"); or the device's copies ("copy"),
  /// fills ("fill") or builds of structures for ray queries ("build"), launched alone or in a graph; or launches of
  /// graphs that are measured as a whole ("graph of N operations").
  struct Kernel {
    std::string name, device;
    std::int64_t count = 0;
    double total = 0, min = 0, max = 0;
    double share = 0;  ///< of everything that was measured on the device; 1: all of it
    double mean() const { return total / double(count); }
  };
  /// All Timers of one name within scopes of the same names.
  struct Scope {
    std::string path;  ///< names from the outermost scope on: "step/forces"
    int depth = 0;     ///< 0: outermost
    std::int64_t count = 0;
    double host = 0;    ///< from beginning to end
    double device = 0;  ///< of the work that was launched in it, including other scopes inside it
  };
  /// One operation of a device.
  struct Operation {
    std::string name, device;
    int stream = 0;       ///< number on the device
    int scope = -1;       ///< the scope that launched it, an index of `timers`; -1: none
    double launched = 0;  ///< on the host
    double begin = 0, end = 0;
  };
  /// One Timer.
  struct Span {
    std::string name;
    int parent = -1;  ///< the scope around it, an index of `timers`; -1: none
    int thread = 0;   ///< the number of the host thread
    double begin = 0, end = 0;
  };

  std::vector<Kernel> kernels;        ///< the one that took longest first
  std::vector<Scope> scopes;          ///< each before those inside it, in the order in which they began
  std::vector<Operation> operations;  ///< stream by stream, in order
  std::vector<Span> timers;           ///< in the order in which they began
  double seconds = 0;                 ///< from the profiler's beginning to its end

  /// The kernels and the scopes as a text in columns.
  std::string table() const;
  /// The whole profile in the Trace Event Format, for chrome://tracing and ui.perfetto.dev, with a track for each host
  /// thread and each stream.
  /// Source: "Trace Event Format", the Chromium project, 2016.
  std::string trace() const;
  /// Writes trace() to a file, and makes folders that do not exist.
  /// Errors: Error(invalid_argument) when the file cannot be written.
  void save_trace(const std::filesystem::path& path) const;
};

/// The options of a Profiler.
struct ProfilerOptions {
  /// Measures each launch of a graph as one operation, submitted as it was recorded: the true time of the launch, but
  /// not its share by kernel.
  bool whole_graphs = false;
};

/// Measures all work of some devices, on all streams, and all Timers, from its construction to stop().
///
///   Profiler profiler(device);
///   for (int k = 0; k < 100; ++k) { Timer timer("step"); ... }
///   std::puts(profiler.stop().table().c_str());
///
/// Times are those of the device's own clock. Each measured operation runs by itself, between two barriers: overlap,
/// and launch latency that other work would hide, do not show. The operations of graphs run one by one too, with the
/// arguments that they have by then, so a graph takes longer on the host, and its operations add up to more than
/// ProfilerOptions::whole_graphs measures. Launches within graph_if() and graph_while() that do not run are not shown.
/// Transfers from and to the host are not operations of the device; a Timer around them shows their time. Where trace()
/// relates host and device, moments are right to within the time of an empty submission.
///
/// The profiler's beginning and its end wait for the earlier work of the devices, to compare clocks. Work that was
/// recorded for a renderer's command buffers is not measured.
///
/// A process has one Profiler at a time.
/// Cost: without one, nothing for a launch and a load for a Timer; with one, two time stamps, two barriers and about
/// 100 bytes for each operation, and for an operation of a graph the cost of a launch.
class Profiler {
 public:
  /// Errors: Error(invalid_argument) while another Profiler collects; Error(unsupported) when a device has no clock.
  explicit Profiler(const Device& device, const ProfilerOptions& options = {})
      : Profiler(std::vector<Device>{device}, options) {}
  explicit Profiler(const std::vector<Device>& devices, const ProfilerOptions& options = {});
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  /// Discards the measurements, unless stop() was called.
  ~Profiler();

  /// Waits for the work, and ends the profile. Open Timers end now.
  /// Errors: Error(invalid_argument) for a second call; Error(device_lost), after which nothing collects any more.
  Profile stop();

 private:
  std::shared_ptr<detail::ProfileLog> log_;
};

/// A scope with a name: measures its own time on the host, and that of the work that this thread launches meanwhile.
/// Scopes may nest. A scope ends on the thread on which it began. Does nothing while no Profiler collects.
class Timer {
 public:
  explicit Timer(std::string_view name);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

 private:
  std::shared_ptr<detail::ProfileLog> log_;
  std::uint32_t scope_ = 0, parent_ = 0;
};

}  // namespace weft
