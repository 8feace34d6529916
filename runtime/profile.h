// Where the time goes: scopes of the host, and what devices spend on each kernel.
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

/// What a Profiler has measured. Times are in seconds; moments count from the profiler's beginning, on one axis for the
/// host and all devices.
struct Profile {
  /// All dispatches of one kernel on one device, or of its adjoint ("name (adjoint)"); or the device's copies ("copy"),
  /// fills ("fill") or builds of structures for ray queries ("build"), launched alone or in a graph; or launches of
  /// graphs that are measured as a whole ("graph of N operations").
  struct Kernel {
    std::string name, device;
    std::int64_t count = 0;
    double total = 0, min = 0, max = 0;
    double share = 0;  ///< of all that was measured on the device; 1: everything
    double mean() const { return total / double(count); }
  };
  /// All Timers of one name within scopes of the same names.
  struct Scope {
    std::string path;  ///< names from the outermost scope on: "step/forces"
    int depth = 0;     ///< 0: outermost
    std::int64_t count = 0;
    double host = 0;    ///< from beginning to end
    double device = 0;  ///< of the work that was launched in it, within other scopes inside it too
  };
  /// One operation of a device.
  struct Operation {
    std::string name, device;
    int stream = 0;       ///< number on the device
    int scope = -1;       ///< in which it was launched: of `timers`; -1: none
    double launched = 0;  ///< on the host
    double begin = 0, end = 0;
  };
  /// One Timer.
  struct Span {
    std::string name;
    int parent = -1;  ///< of `timers`; -1: none
    int thread = 0;   ///< number of the host's thread
    double begin = 0, end = 0;
  };

  std::vector<Kernel> kernels;        ///< the one that took longest first
  std::vector<Scope> scopes;          ///< each before those inside it, in the order in which they began
  std::vector<Operation> operations;  ///< stream by stream, in order
  std::vector<Span> timers;           ///< in the order in which they began
  double seconds = 0;                 ///< from the profiler's beginning to its end

  /// The kernels and the scopes as text, in columns.
  std::string table() const;
  /// All of it in the Trace Event Format, for chrome://tracing and ui.perfetto.dev: a track for each thread of the host
  /// and for each stream. Source: "Trace Event Format", the Chromium project, 2016.
  std::string trace() const;
  /// Writes trace() to a file; folders are made that are not there. Errors: Error(invalid_argument) when it cannot be
  /// written.
  void save_trace(const std::filesystem::path& path) const;
};

/// How a Profiler measures.
struct ProfilerOptions {
  /// Each launch of a graph is one operation, submitted as it was recorded: what it takes in truth, and not what of
  /// that is spent on which kernel.
  bool whole_graphs = false;
};

/// Measures all work of some devices, on all streams, and all Timers, from here to stop().
///
///   Profiler profiler(device);
///   for (int k = 0; k < 100; ++k) { Timer timer("step"); ... }
///   std::puts(profiler.stop().table().c_str());
///
/// Times are those of the device's own clock. Each operation that is measured runs by itself, between two barriers:
/// what overlaps otherwise, and the starts and ends of launches that hide behind each other, is not seen. So do those
/// of graphs, one by one, with the arguments that they have by then: a graph takes longer on the host meanwhile, and
/// the sum of its operations is more than what ProfilerOptions::whole_graphs measures. Launches within graph_if() and
/// graph_while() that do not run are not seen. Transfers from and to the host are not operations of the device; a Timer
/// around them shows what they take. Where host and device have to agree, in trace(), moments are right to within the
/// time of an empty submission.
///
/// Its beginning and its end wait for what the devices were given before, to compare clocks. What was recorded for a
/// renderer's command buffers is not measured.
///
/// One at a time in a process. Cost: while none collects, nothing for a launch and a load for a Timer; else, for each
/// operation, two time stamps, two barriers and some 100 bytes, and for one of a graph what a launch costs.
class Profiler {
 public:
  /// Errors: Error(invalid_argument) while another one collects; Error(unsupported) when a device has no clock.
  explicit Profiler(const Device& device, const ProfilerOptions& options = {})
      : Profiler(std::vector<Device>{device}, options) {}
  explicit Profiler(const std::vector<Device>& devices, const ProfilerOptions& options = {});
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  /// Forgets what was measured, unless stop() was called.
  ~Profiler();

  /// Waits for the work, and ends the profile. Timers that are open end now.
  /// Errors: Error(invalid_argument) for a second call; Error(device_lost), after which nothing collects any more.
  Profile stop();

 private:
  std::shared_ptr<detail::ProfileLog> log_;
};

/// A scope with a name, as long as it lives: its time on the host, and that of the work which this thread launches
/// meanwhile. Scopes may nest. Ends on the thread on which it began. Does nothing while no Profiler collects.
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
