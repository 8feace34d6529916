// Timing, and running the cases one after another.
#include "harness.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>
#include <stdexcept>

#include "../../frontend/support/platform.h"
#include "../../runtime/profile.h"

namespace weft::bench {

namespace {

/// The device, if it is not the host's processor.
std::optional<Device> g_apart;

constexpr double kShort = 0.02;  // of a sample: idle threads that look for work are a large part of it

double units_per_second(const std::string& unit) {
  if (unit == "s") return 1;
  if (unit == "ms") return 1e3;
  if (unit == "us") return 1e6;
  throw std::invalid_argument("no such unit: " + unit);
}

/// Of one run.
struct Sample {
  double seconds, processor_seconds;
};
Sample sample_of(const std::function<void()>& f) {
  const std::clock_t processor = std::clock();
  const auto start = std::chrono::steady_clock::now();
  f();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {seconds, double(std::clock() - processor) / CLOCKS_PER_SEC};
}

// Takes Google Benchmark's repetitions instead of printing them.
class Collector : public benchmark::BenchmarkReporter {
 public:
  std::vector<double> samples;
  std::string error;
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) error = run.error_message;
      if (run.run_type != Run::RT_Iteration || run.iterations == 0) continue;
      samples.push_back(run.real_accumulated_time / double(run.iterations));
    }
  }
};

// The interpreter has one thread, however many are asked for.
bool has_threads_of_host(const Device& device) { return device.is_software() && device.name() != "reference"; }

int all_threads() { return platform::processors(); }

}  // namespace

Timing summarise(std::vector<double> samples) {
  if (samples.empty()) throw std::runtime_error("nothing was measured");
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  const double median = n % 2 ? samples[n / 2] : 0.5 * (samples[n / 2 - 1] + samples[n / 2]);
  return {median, (samples[3 * (n - 1) / 4] - samples[(n - 1) / 4]) / median};
}

void wake_device() {
  if (!g_apart) return;
  static const auto work = kernel("busy", [](Arr<float> x) {
    Int i = tid();
    Float v = x[i];
    for (auto k : range(100)) v = v * 0.999f + Float(k);
    x[i] = v;
  });
  constexpr double kLong = 0.8;
  const Array<float> x = zeros<float>(*g_apart, 1 << 24);
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < kLong) {
    for (int k = 0; k < 20; ++k) launch(work, x.size(), x);
    x.wait();
  }
}

void take_turns(std::size_t candidates, int rounds, const std::function<void(std::size_t, int)>& sample) {
  if (g_apart) {
    for (std::size_t k = 0; k < candidates; ++k) {
      wake_device();
      for (int round = 0; round < rounds; ++round) sample(k, round);
    }
    return;
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t k = 0; k < candidates; ++k) sample(round % 2 ? candidates - 1 - k : k, round);
}

std::vector<Timing> interleave(const std::vector<std::function<void()>>& candidates, int rounds, int warm_ups) {
  std::vector<std::vector<double>> samples(candidates.size()), processor(candidates.size());
  take_turns(candidates.size(), warm_ups + rounds, [&](std::size_t which, int round) {
    if (round < warm_ups) return candidates[which]();
    if (!samples[which].empty() && samples[which].back() < kShort) candidates[which]();
    const Sample sample = sample_of(candidates[which]);
    samples[which].push_back(sample.seconds);
    processor[which].push_back(sample.processor_seconds);
  });
  std::vector<Timing> timings;
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    timings.push_back(summarise(std::move(samples[k])));
    timings.back().processor_seconds = summarise(std::move(processor[k])).seconds;
  }
  return timings;
}

Timing cost(const std::string& name, const std::function<double()>& body, int rounds) {
  wake_device();
  for (int i = 0; i < 3; ++i) body();
  benchmark::RegisterBenchmark(name.c_str(),
                               [&](benchmark::State& state) {
                                 for (auto _ : state) state.SetIterationTime(body());
                               })
      ->UseManualTime()
      ->MinTime(0.01)
      ->Repetitions(rounds);
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector, nullptr, ".");
  benchmark::ClearRegisteredBenchmarks();
  if (!collector.error.empty()) throw std::runtime_error(collector.error);
  return summarise(std::move(collector.samples));
}

std::string Run::threads_text() const {
  if (threads_ == all_threads()) return "all threads";
  return threads_ == 1 ? "one thread" : fmt::format("{} threads", threads_);
}

Run Run::elsewhere(Device device) const {
  Run other(std::move(device), rounds_, threads_);
  other.alone_ = true;
  return other;
}

std::string Run::device_label() const {
  if (!has_threads_of_host(device_) || threads_ == all_threads()) return device_.adapter();
  return fmt::format("{}, {}", device_.adapter(), threads_text());
}

void Run::compare(const Timing& weft, const Reference& reference, std::string unit, const std::string& beside) {
  const double scale = units_per_second(unit);
  if (beside.empty()) weft_ = weft;
  Row& row = rows_.emplace_back();
  row.name = beside.empty() ? "" : ", " + beside;
  row.beside = !beside.empty();
  row.device = device_label();
  row.weft = weft.seconds * scale;
  row.reference_name = reference.name;
  row.unit = std::move(unit);
  row.spread = weft.spread;
  if (reference.timing) {
    row.reference = reference.timing->seconds * scale;
    row.spread = std::max(weft.spread, reference.timing->spread);
  } else {
    note(fmt::format("{}: not measured, {}", reference.name, reference.missing));
  }
}

void Run::budget(const Timing& weft, double seconds, std::string unit, bool on_device) {
  compare(weft, {kBudget, Timing{seconds, 0}}, std::move(unit));
  if (!on_device) rows_.back().device = kHost;
}

void Run::bytes(double weft, double documented) {
  if (weft > 1.02 * documented)
    throw std::runtime_error(fmt::format("{:.1f} bytes are taken, and {} are documented", weft, documented));
  Row& row = rows_.emplace_back();
  row.device = device_label();
  row.weft = weft;
  row.reference = documented;
  row.reference_name = kDocumented;
  row.unit = "B";
}

void Harness::add(std::string suite, std::string name, std::function<void(Run&)> body) {
  cases_.push_back({std::move(suite), std::move(name), std::move(body)});
}

int Harness::main(int argc, char** argv) {
  std::set<std::string> known;
  for (const Case& c : cases_) known.insert(c.suite);

  CLI::App app("Benchmarks of weft, each against a reference that is measured in the same run.");
  std::vector<std::string> suites;
  std::string only, device_name, out = "build/bench/summary.csv";
  int rounds = 21, threads = int(platform::environment_number("LP_NUM_THREADS", std::uint64_t(all_threads())));
  bool verbose = false, profile = false;
  app.add_option("--suite", suites, "Run this suite alone (may be repeated)")->check(CLI::IsMember(known));
  app.add_option("--case", only, "Run only cases whose name contains this; the file is left alone");
  app.add_option("--out", out, "File that takes the rows; those of other suites in it stay")->capture_default_str();
  app.add_option("--device", device_name, "vulkan:0, cpu, ...; the best one when not given");
  app.add_option("--rounds", rounds, "Measurements of each side")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--threads", threads, "Threads of a software device, and of references that may have several")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--verbose", verbose, "Print what else was measured, too");
  app.add_flag(
      "--profile", profile,
      "Print where the device's time goes in each case, one kernel at a time, instead of rows; the file is left "
      "alone");
  CLI11_PARSE(app, argc, argv);
  const std::set<std::string> wanted = suites.empty() ? known : std::set<std::string>(suites.begin(), suites.end());

  // Software devices read these variables when they are first used.
  if (threads != all_threads())
    for (const char* variable : {"LP_NUM_THREADS", "WEFT_THREADS"})
      platform::set_environment(variable, std::to_string(threads).c_str());
  int failures = 0;
  try {
    const Device device = device_name.empty() ? Device::best() : Device(device_name);
    fmt::print("device: {}, {}; host: {} CPUs; {} rounds, {}\n\n", device.adapter(), device.driver(),
               platform::processors(), rounds, Run(device, rounds, threads).threads_text());
    if (!device.is_software() && !profile) g_apart = device;  // else wake_device() would be most of a profile
    const struct Forget {
      ~Forget() { g_apart.reset(); }
    } forget;
    fmt::print("{}", table_head());
    std::vector<Row> rows;
    for (std::size_t k = 0; k < cases_.size(); ++k) {
      const Case& c = cases_[k];
      if (!wanted.count(c.suite) || c.name.find(only) == std::string::npos) continue;
      try {
        Run run(device, rounds, threads);
        run.profiled_ = profile;
        std::optional<Profiler> profiler;
        if (profile) profiler.emplace(device);
        c.body(run);
        if (profiler && run.left_out_.empty()) {
          fmt::print("\n{}: {}\n{}\n", c.suite, c.name, profiler->stop().table());
          continue;
        }
        if (!run.left_out_.empty()) {
          fmt::print("{:<10} {:<56} left out: {}\n", c.suite, c.name, run.left_out_);
          continue;
        }
        for (Row& row : run.rows_) {
          row.suite = c.suite;
          row.name = c.name + row.name;
          row.beside = row.beside || !run.in_mean_;
          fmt::print("{}", table_line(row));
          rows.push_back(std::move(row));
        }
        for (const std::string& line : run.notes_)
          if (verbose) fmt::print("{:<10} {}\n", "", line);
        std::fflush(stdout);
      } catch (const std::exception& e) {
        fmt::print("{:<10} {:<56} failed: {}\n", c.suite, c.name, e.what());
        ++failures;
      }
      if (k + 1 == cases_.size() || cases_[k + 1].suite != c.suite) fmt::print("{}", table_mean(c.suite, rows));
    }
    if (only.empty() && !profile) {
      write_rows(out, rows, wanted, Run(device, rounds, threads).device_label());
      fmt::print("\nwritten to {}\n", out);
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft_bench: {}\n", e.what());
    return 1;
  }
  return failures ? 1 : 0;
}

}  // namespace weft::bench
