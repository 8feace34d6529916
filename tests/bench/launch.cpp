// Suite launch: the cost of a launch for the host.
#include <optional>

#include "../../frontend/support/platform.h"
#include "../../runtime/profile.h"
#include "../../runtime/tape.h"
#include "four_arrays.h"
#include "harness.h"

namespace weft::bench {

namespace {

constexpr double kBudget = 1e-6, kTapeBudget = 5e-6, kProfilerBudget = 10e-6;

// A timed launch must neither wait for the device nor share the processor with it. So a launch has 32 threads of four
// additions, the stream is idle when the clock starts, and the clock stops before the wait: 512 launches are at most
// nine batches in flight, and a stream makes the host wait only when twelve are in flight. The time is all of the
// host's part, or this thread's part if another one submits: checks, argument block, hazards (each launch writes what
// the one before wrote, so each records a barrier), recording, and handing batches to the driver. It is processor time
// of the launching thread: on a software device the work runs on other threads, which would take the cores from it.
constexpr int kLaunches = 512;

enum class Around { nothing, tape, dispatch_budget, profiler };

/// Times launches of one kernel; their preparation and clean-up are not timed.
void time_launches(Run& run, Around around, double budget) {
  const Device& device = run.device();
  struct DispatchBudget {
    const Device& device;
    const double before;
    DispatchBudget(const Device& device, double seconds) : device(device), before(device.dispatch_budget()) {
      if (seconds > 0) device.set_dispatch_budget(seconds);
    }
    DispatchBudget(const DispatchBudget&) = delete;
    ~DispatchBudget() { device.set_dispatch_budget(before); }
  };
  // Launches take far less than this budget, and gather in batches as ever.
  const DispatchBudget dispatch_budget(device, around == Around::dispatch_budget ? 1 : 0);
  FourArrays work(device);
  work.a.requires_grad();
  work.launch_one();
  work.check();

  Stream stream = device.stream();
  const Timing all = cost(
      "launch",
      [&] {
        std::optional<Profiler> profiler;
        if (around == Around::profiler) profiler.emplace(device);
        stream.synchronize();
        Tape tape;
        const auto launches = [&] {
          for (int i = 0; i < kLaunches; ++i) work.launch_one();
          stream.submit();  // weft keeps launches for a while: the driver's part of the last ones counts as well
        };
        const double start = platform::thread_seconds();
        around == Around::tape ? tape.record(launches) : launches();
        return platform::thread_seconds() - start;
      },
      run.rounds());
  run.budget({all.seconds / kLaunches, all.spread}, budget, "us", true);
}

void four_arrays(Run& run) { time_launches(run, Around::nothing, kBudget); }
void on_a_tape(Run& run) { time_launches(run, Around::tape, kTapeBudget); }
void within_a_dispatch_budget(Run& run) { time_launches(run, Around::dispatch_budget, kBudget); }
void under_a_profiler(Run& run) {
  if (run.profiled()) return run.leave_out("it makes a profiler of its own");
  time_launches(run, Around::profiler, kProfilerBudget);
}

}  // namespace

void add_launch(Harness& harness) {
  harness.add("launch", "launch with 4 arrays and 2 scalars", four_arrays);
  harness.add("launch", "launch with 4 arrays and 2 scalars on a tape", on_a_tape);
  harness.add("launch", "launch with 4 arrays and 2 scalars in a dispatch budget", within_a_dispatch_budget);
  harness.add("launch", "launch with 4 arrays and 2 scalars under a profiler", under_a_profiler);
}

}  // namespace weft::bench
