// The order of a contest on the host, and its rows.
#include "contest_on_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "../peers/elsewhere.h"

namespace weft::bench {

namespace {

constexpr double kSampleSeconds = 0.02;  // the least of a sample
constexpr int kMostLaunches = 64;
constexpr double kFarBehind = 1.5;  // of the fastest by hand: such a side is not timed further
constexpr const char* kVulkan = "software Vulkan";

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Makes samples of several launches of what is short.
std::vector<Timing> time_launches(const std::vector<Side>& sides, int rounds) {
  std::vector<std::function<void()>> candidates;
  std::vector<int> launches;
  for (const Side& side : sides) {
    side.launch();
    const double one = seconds_of(side.launch);
    launches.push_back(std::clamp(int(std::ceil(kSampleSeconds / one)), 1, kMostLaunches));
    candidates.emplace_back([&side, n = launches.back()] {
      for (int k = 0; k < n; ++k) side.launch();
    });
  }
  std::vector<Timing> timings = interleave(candidates, rounds, 1);
  for (std::size_t k = 0; k < timings.size(); ++k) {
    timings[k].seconds /= launches[k];
    timings[k].processor_seconds /= launches[k];
  }
  return timings;
}

/// Leaves out what is far behind the fastest.
std::vector<Side> serious(Run& run, const std::vector<Side>& by_hand) {
  std::vector<double> seconds;
  for (const Side& side : by_hand) {
    side.launch();
    seconds.push_back(std::min(seconds_of(side.launch), seconds_of(side.launch)));
  }
  const double best = *std::ranges::min_element(seconds);
  std::vector<Side> kept;
  for (std::size_t k = 0; k < by_hand.size(); ++k)
    if (seconds[k] <= kFarBehind * best)
      kept.push_back(by_hand[k]);
    else
      run.note(fmt::format("{:<20} {:10.4g} ms, far behind", by_hand[k].name, seconds[k] * 1e3));
  return kept;
}

/// The side that is weft's on a device.
Side weft_side(const char* name, const Workload& work, Stream& stream) {
  return {name, [&work, &stream] {
            work.contest.weft();
            stream.synchronize();
          }};
}

void compare_with_vulkan(Run& run, const Timing& weft, const std::optional<Timing>& vulkan) {
  run.compare(weft, {kVulkan, vulkan, "there is none"}, "ms", kVulkan);
}

/// Seconds of a script's kernel, whose results must add up to `sum`.
std::optional<std::vector<double>> ask_script(Run& run, const char* file, const ScriptKernel& script, double sum) {
  constexpr double kTolerance = 1e-3;
  const auto figures =
      ask_python(file, fmt::format("{} {} {}", script.name, run.rounds(), run.threads()), 2, script.write);
  if (figures && !(std::abs((*figures)[1] - sum) <= kTolerance * sum))
    throw std::runtime_error(fmt::format("{}: the results add up to {}, and weft's to {}", file, (*figures)[1], sum));
  return figures;
}

double sum_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += std::abs(double(v));
  return sum;
}

}  // namespace

bool needs_native(Run& run) {
  if (run.device().name() == "cpu") return true;
  run.leave_out("it is about the device \"cpu\" where LLVM is found");
  return false;
}

std::optional<Device> software_vulkan() {
  static const std::string name = [] {
    for (const std::string& each : Device::list())
      if (each.starts_with("vulkan:") && Device(each).is_software()) return each;
    return std::string();
  }();
  if (name.empty()) return {};
  return Device(name);
}

void race_on_host(Run& run, const Workload& work, const Workload* vulkan, const std::vector<Side>& by_hand,
                  const ScriptKernel& script) {
  const Contest& contest = work.contest;
  Stream stream = run.device().stream();
  const std::vector<float> ours = result_of(contest, stream, contest.weft);
  check_with_host(contest, "weft", ours);
  for (const Side& side : by_hand)
    check(contest, side.name, result_of(contest, stream, side.launch), [&](std::size_t i) { return ours[i]; });

  std::vector<Side> sides{weft_side("weft", work, stream)};
  std::optional<Stream> there;
  if (vulkan) {
    there = software_vulkan()->stream();
    check_with_host(vulkan->contest, kVulkan, result_of(vulkan->contest, *there, vulkan->contest.weft));
    sides.push_back(weft_side(kVulkan, *vulkan, *there));
  }
  const std::vector<Side> best = serious(run, by_hand);
  sides.insert(sides.end(), best.begin(), best.end());
  const std::vector<Timing> timings = time_launches(sides, run.rounds());
  report_sides(run, timings, vulkan != nullptr, best);
  report_taichi(run, timings[0], script, sum_of(ours));
  // Warp's kernels run on one thread.
  if (run.threads() == 1)
    run.compare(timings[0], warp_reference(ask_script(run, "cpu_kernels_warp.py", script, sum_of(ours)), {0}), "ms",
                "Warp");
}

void report_sides(Run& run, const std::vector<Timing>& timings, bool has_vulkan, const std::vector<Side>& by_hand) {
  const Timing& weft = timings[0];
  const std::size_t first = has_vulkan ? 2 : 1;
  std::size_t best = first;
  for (std::size_t k = first; k < timings.size(); ++k) {
    run.note(fmt::format("{:<20} {:10.4g} ms  {:.3f}", by_hand[k - first].name, timings[k].seconds * 1e3,
                         weft.seconds / timings[k].seconds));
    if (timings[k].seconds < timings[best].seconds) best = k;
  }
  const std::string& name = by_hand[best - first].name;
  run.compare(weft, {name, timings[best]}, "ms");
  run.compare({weft.processor_seconds, weft.spread}, {name, Timing{timings[best].processor_seconds, 0}}, "ms",
              "processor time");
  compare_with_vulkan(run, weft, has_vulkan ? std::optional(timings[1]) : std::nullopt);
}

void add_beside_vulkan(Harness& harness, const std::string& name, std::function<void(Run&)> body) {
  harness.add("cpu", name, [body = std::move(body)](Run& run) {
    if (!needs_native(run)) return;
    run.keep_out_of_mean();
    body(run);
    if (!run.weft()) return;
    std::optional<Timing> vulkan;
    if (const std::optional<Device> device = software_vulkan()) {
      Run there = run.elsewhere(*device);
      body(there);
      vulkan = there.weft();
    }
    compare_with_vulkan(run, *run.weft(), vulkan);
  });
}

void report_taichi(Run& run, const Timing& weft, const ScriptKernel& script, double sum) {
  const auto figures = ask_script(run, "cpu_kernels_taichi.py", script, sum);
  run.compare(weft, taichi_reference(figures, run.threads_text()), "ms", "Taichi");
}

}  // namespace weft::bench
