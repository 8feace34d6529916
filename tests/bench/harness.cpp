// Timing, the table and build/bench/summary.csv.
#include "harness.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "../../frontend/support/platform.h"
#include "../../runtime/profile.h"

namespace weft::bench {

namespace {

constexpr double kShort = 0.02;  // of a sample: idle threads that look for work are a large part of it
constexpr const char* kHeader = "suite,case,device,weft,reference,reference_name,ratio,unit";
constexpr const char* kHost = "host";  // the device of what no device takes part in
constexpr const char* kBudget = "budget";
constexpr const char* kDocumented = "documented";

double units_per_second(const std::string& unit) {
  if (unit == "s") return 1;
  if (unit == "ms") return 1e3;
  if (unit == "us") return 1e6;
  throw std::invalid_argument("no such unit: " + unit);
}

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  return fields;
}

std::string csv_line(const Row& row) {
  return fmt::format("{},{},{},{:.6g},{:.6g},{},{:.4f},{}", csv_field(row.suite), csv_field(row.name),
                     csv_field(row.device), row.weft, row.reference, csv_field(row.reference_name), row.ratio(),
                     row.unit);
}

// The interpreter has one thread, whatever is asked for.
bool has_threads_of_host(const Device& device) { return device.is_software() && device.name() != "reference"; }

int all_threads() { return int(std::max(1u, std::thread::hardware_concurrency())); }

// Replaces what the file says of the suites that ran on this device; the rest of it stays.
void write_csv(const std::filesystem::path& path, const std::vector<Row>& rows, const std::set<std::string>& suites,
               const std::string& device) {
  std::vector<std::string> kept;
  std::ifstream old(path);
  for (std::string line; std::getline(old, line);) {
    const std::vector<std::string> fields = csv_fields(line);
    if (fields.size() < 3 || line == kHeader) continue;
    if (suites.count(fields[0]) && (fields[2] == device || fields[2] == kHost)) continue;
    kept.push_back(line);
  }
  old.close();
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path);
  out << kHeader << '\n';
  for (const std::string& line : kept) out << line << '\n';
  for (const Row& row : rows) out << csv_line(row) << '\n';
  if (!out.flush()) throw std::runtime_error(fmt::format("cannot write {}", path.string()));
}

void print_row(const Row& row) {
  fmt::print("{:<8} {:<34} {:>10.4g} {:>10.4g} {:<3} {:>7.3f} {:>6.1f}%  {}\n", row.suite, row.name, row.weft,
             row.reference, row.unit, row.ratio(), 100 * row.spread, row.reference_name);
  std::fflush(stdout);
}

// Over the rows of a suite that compare with another implementation.
void print_mean(const std::string& suite, const std::vector<Row>& rows) {
  double sum = 0;
  int n = 0;
  for (const Row& row : rows)
    if (row.suite == suite && row.reference_name != kBudget && row.reference_name != kDocumented)
      sum += std::log(row.ratio()), ++n;
  if (n > 1)
    fmt::print("{:<8} {:<34} {:>10} {:>10} {:<3} {:>7.3f}\n", suite, "geometric mean", "", "", "", std::exp(sum / n));
}

}  // namespace

Timing summarise(std::vector<double> samples) {
  if (samples.empty()) throw std::runtime_error("nothing was measured");
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  const double median = n % 2 ? samples[n / 2] : 0.5 * (samples[n / 2 - 1] + samples[n / 2]);
  return {median, (samples[3 * (n - 1) / 4] - samples[(n - 1) / 4]) / median};
}

std::vector<Timing> interleave(const std::vector<std::function<void()>>& candidates, int rounds, int warm_ups) {
  const std::size_t n = candidates.size();
  for (int round = 0; round < warm_ups; ++round)
    for (const auto& candidate : candidates) candidate();
  std::vector<std::vector<double>> samples(n);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t which = round % 2 ? n - 1 - k : k;
      if (!samples[which].empty() && samples[which].back() < kShort) candidates[which]();
      samples[which].push_back(seconds_of(candidates[which]));
    }
  std::vector<Timing> timings;
  for (auto& s : samples) timings.push_back(summarise(std::move(s)));
  return timings;
}

Timing cost(const std::string& name, const std::function<double()>& body, int rounds) {
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

std::string Run::device_label() const {
  if (!has_threads_of_host(device_) || threads_ == all_threads()) return device_.adapter();
  return fmt::format("{}, {}", device_.adapter(), threads_text());
}

void Run::compare(const Timing& weft, const Timing& reference, std::string reference_name, std::string unit) {
  const double scale = units_per_second(unit);
  row_.device = device_label();
  row_.weft = weft.seconds * scale;
  row_.reference = reference.seconds * scale;
  row_.reference_name = std::move(reference_name);
  row_.unit = std::move(unit);
  row_.spread = std::max(weft.spread, reference.spread);
}

void Run::budget(const Timing& weft, double seconds, std::string unit, bool on_device) {
  compare(weft, {seconds, 0}, kBudget, std::move(unit));
  if (!on_device) row_.device = kHost;
}

void Run::bytes(double weft, double documented) {
  if (weft > 1.02 * documented)
    throw std::runtime_error(fmt::format("{:.1f} bytes are taken, and {} are documented", weft, documented));
  row_.device = device_label();
  row_.weft = weft;
  row_.reference = documented;
  row_.reference_name = kDocumented;
  row_.unit = "B";
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

  // Mesa's software device asks for it when it is first used.
  if (threads != all_threads()) platform::set_environment("LP_NUM_THREADS", std::to_string(threads).c_str());
  int failures = 0;
  try {
    const Device device = device_name.empty() ? Device::best() : Device(device_name);
    fmt::print("device: {}, {}; host: {} CPUs; {} rounds, {}\n\n", device.adapter(), device.driver(),
               std::thread::hardware_concurrency(), rounds, Run(device, rounds, threads).threads_text());
    fmt::print("{:<8} {:<34} {:>10} {:>10} {:<3} {:>7} {:>7}  {}\n", "suite", "case", "weft", "reference", "", "ratio",
               "spread", "reference");
    std::vector<Row> rows;
    for (std::size_t k = 0; k < cases_.size(); ++k) {
      const Case& c = cases_[k];
      if (!wanted.count(c.suite) || c.name.find(only) == std::string::npos) continue;
      try {
        Run run(device, rounds, threads);
        run.row_.suite = c.suite;
        run.row_.name = c.name;
        run.profiled_ = profile;
        std::optional<Profiler> profiler;
        if (profile) profiler.emplace(device);
        c.body(run);
        if (profiler && run.left_out_.empty()) {
          fmt::print("\n{}: {}\n{}\n", c.suite, c.name, profiler->stop().table());
          continue;
        }
        if (!run.left_out_.empty()) {
          fmt::print("{:<8} {:<34} left out: {}\n", c.suite, c.name, run.left_out_);
          continue;
        }
        print_row(run.row_);
        for (const std::string& line : run.notes_)
          if (verbose) fmt::print("{:<8} {}\n", "", line);
        rows.push_back(std::move(run.row_));
      } catch (const std::exception& e) {
        fmt::print("{:<8} {:<34} failed: {}\n", c.suite, c.name, e.what());
        ++failures;
      }
      if (k + 1 == cases_.size() || cases_[k + 1].suite != c.suite) print_mean(c.suite, rows);
    }
    if (only.empty() && !profile) {
      write_csv(out, rows, wanted, Run(device, rounds, threads).device_label());
      fmt::print("\nwritten to {}\n", out);
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft_bench: {}\n", e.what());
    return 1;
  }
  return failures ? 1 : 0;
}

}  // namespace weft::bench
