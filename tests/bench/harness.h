// The frame of the benchmarks: cases by suite, timing side by side.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../../runtime/weft.h"
#include "rows.h"

namespace weft::bench {

/// How long something took.
struct Timing {
  double seconds = 0;            ///< median over the rounds
  double spread = 0;             ///< distance of the quartiles over the median: tells a quiet machine from a busy one
  double processor_seconds = 0;  ///< processor time of all threads of this process, the median; 0: not measured
};

/// Median and spread of samples in seconds.
Timing summarise(std::vector<double> samples);

/// Calls sample(which, round) for each of `candidates` in each of `rounds`, one round after another. The order is
/// reversed from one round to the next, so that a slow spell of the machine slows all candidates. A device that is not
/// the host's processor is treated differently, because it slows down by itself while a reference keeps the host busy
/// (an H200 to a quarter, for a second and more): there all rounds of one candidate come together, after wake_device().
void take_turns(std::size_t candidates, int rounds, const std::function<void(std::size_t, int)>& sample);
/// Keeps such a device busy until its clock has the speed that it has under load.
void wake_device();

/// Times candidates against each other: rounds of warm-up, then `rounds` in which each runs once (see take_turns()).
/// Work that takes less than 20 ms runs once more just before, untimed, so that no sample begins beside the idle
/// threads of another candidate, which look for work for a while.
/// \param warm_ups  less for work that takes seconds
std::vector<Timing> interleave(const std::vector<std::function<void()>>& candidates, int rounds, int warm_ups = 3);

/// Google Benchmark's figure for one iteration. `body` does the work once and returns the seconds that count, so that
/// its preparation and clean-up are left out.
Timing cost(const std::string& name, const std::function<double()>& body, int rounds);

/// An implementation to compare with. If it is not on this machine, weft is timed alone.
struct Reference {
  std::string name;
  std::optional<Timing> timing;
  std::string missing = {};  ///< why there is no timing
};

/// The frame of one case: its device, its rounds, and the rows that it reports.
class Run {
 public:
  Run(Device device, int rounds, int threads) : device_(std::move(device)), rounds_(rounds), threads_(threads) {}
  const Device& device() const { return device_; }
  int rounds() const { return rounds_; }
  /// Threads of the host for a reference that may have several: as many as a software device has.
  int threads() const { return threads_; }
  std::string threads_text() const;
  /// Whether a Profiler collects; a case then makes none of its own.
  bool profiled() const { return profiled_; }

  /// The same case on another device, for a comparison with this one. Its references are left alone.
  Run elsewhere(Device device) const;
  /// Whether references that take long may be left alone.
  bool alone() const { return alone_; }
  /// What weft took in the case's own row; nothing before that is reported.
  const std::optional<Timing>& weft() const { return weft_; }
  /// Leaves the case's rows out of the mean of the suite: they have references of another kind.
  void keep_out_of_mean() { in_mean_ = false; }

  /// Adds a line to the output of --verbose, below the row.
  void note(std::string line) { notes_.push_back(std::move(line)); }
  /// Leaves the row out: the case says nothing about this device, or in this run.
  void leave_out(std::string why) { left_out_ = std::move(why); }
  /// Reports the times of two implementations that did the same work on the device.
  /// \param beside  what the row is about if it stands beside the case's own row, in which case the mean of the suite
  ///                leaves it out: "Taichi"
  void compare(const Timing& weft, const Reference& reference, std::string unit, const std::string& beside = {});
  /// Reports a cost against the most that it may be. `on_device`: it depends on the device and its driver.
  void budget(const Timing& weft, double seconds, std::string unit, bool on_device = false);
  /// Reports bytes of the device's memory against the documented number.
  void bytes(double weft, double documented);

 private:
  friend class Harness;
  std::string device_label() const;
  Device device_;
  int rounds_, threads_;
  bool profiled_ = false, alone_ = false, in_mean_ = true;
  std::optional<Timing> weft_;
  std::vector<Row> rows_;
  std::vector<std::string> notes_;
  std::string left_out_;
};

/// Runs the cases that a program adds, in their order.
class Harness {
 public:
  /// \param body  reports one row or more, or throws when there is nothing to time: a wrong result is no benchmark
  void add(std::string suite, std::string name, std::function<void(Run&)> body);

  /// Reads the command line, runs, prints, writes the file. Returns the exit status: 1 when a case failed.
  int main(int argc, char** argv);

 private:
  struct Case {
    std::string suite, name;
    std::function<void(Run&)> body;
  };
  std::vector<Case> cases_;
};

/// The suites, by file.
void add_codegen(Harness& harness);
void add_codegen_library(Harness& harness);
void add_structs(Harness& harness);
void add_ladders(Harness& harness);
void add_compile(Harness& harness);
void add_launch(Harness& harness);
void add_runtime(Harness& harness);
void add_gradient(Harness& harness);
void add_algorithms(Harness& harness);
void add_geometry(Harness& harness);
void add_geometry_rays(Harness& harness);
void add_geometry_queries(Harness& harness);
void add_geometry_memory(Harness& harness);
void add_hash_grid(Harness& harness);
void add_volume(Harness& harness);
void add_cpu(Harness& harness);
void add_cpu_launch(Harness& harness);
// Cases of other suites, in suite cpu compared with software Vulkan as well:
void add_cpu_builds(Harness& harness);
void add_cpu_rays(Harness& harness);
void add_cpu_queries(Harness& harness);
void add_cpu_hash_grid(Harness& harness);
void add_cpu_algorithms(Harness& harness);

}  // namespace weft::bench
