// Suite algorithms: sort and scan against the host's and against warp-lang.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <random>

#include "../../runtime/algorithms/scan.h"
#include "../../runtime/algorithms/sort.h"
#include "../../runtime/algorithms/sort/sort_passes.h"
#include "cpu/contest_on_host.h"
#include "harness.h"
#include "peers/elsewhere.h"

namespace weft::bench {

namespace {

using U32 = std::uint32_t;
using Pair = std::pair<U32, U32>;

constexpr std::int64_t kSorted = 16'000'000, kScanned = 1 << 26;
/// Sorts that the device is given one after another before the wait: of many elements, and of few.
constexpr int kInARow = 4, kFewInARow = 16;
/// The most rounds of these cases, because each round takes seconds.
constexpr int kMostRounds = 7;

std::vector<U32> random_numbers(std::int64_t n) {
  std::mt19937 random(1);
  std::vector<U32> x(static_cast<std::size_t>(n));
  for (U32& v : x) v = U32(random());
  return x;
}

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One side of a race: work that is timed, after a preparation that is not.
struct Side {
  std::function<void()> prepare, work;
};
std::vector<Timing> race(const std::vector<Side>& sides, int rounds) {
  std::vector<std::vector<double>> samples(sides.size());
  take_turns(sides.size(), rounds + 1, [&](std::size_t which, int round) {
    sides[which].prepare();
    const double s = seconds(sides[which].work);
    if (round > 0) samples[which].push_back(s);
  });
  std::vector<Timing> timings;
  for (auto& s : samples) timings.push_back(summarise(std::move(s)));
  return timings;
}

void note_rate(Run& run, std::int64_t n, const Timing& t) {
  run.note(fmt::format("{:.1f} M elements/s", double(n) / t.seconds / 1e6));
}

/// Whether `keys` are sorted and each value says where its key stood; equal keys in their order.
bool sorted_as(const std::vector<U32>& keys0, const std::vector<U32>& keys, const std::vector<U32>& values) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (values[i] >= keys0.size() || keys0[values[i]] != keys[i]) return false;
    if (i > 0 && !(Pair(keys[i - 1], values[i - 1]) < Pair(keys[i], values[i]))) return false;
  }
  return keys.size() == keys0.size();
}

/// The arrays of one sort on the device, or of several in a row, each of its own copy of the elements. Sorts in a row
/// run one after another, even where they have no scratch memory in common.
struct DeviceSort {
  explicit DeviceSort(const Device& device, int in_a_row = 1, std::int64_t n = kSorted)
      : keys0(device, random_numbers(n)),
        values0(arange<U32>(device, U32(n))),
        scratch(empty<std::uint8_t>(device, radix_sort_scratch_bytes<U32, U32>(n))) {
    device.stream().barrier_always(in_a_row > 1);
    for (int k = 0; k < in_a_row; ++k) {
      all_keys.push_back(empty<U32>(device, n));
      all_values.push_back(empty<U32>(device, n));
    }
  }

  Side side(bool pairs, Grain grain = Grain::automatic) {
    return {[this] {
              for (Array<U32>& keys : all_keys) keys.copy_from(keys0);
              for (Array<U32>& values : all_values) values.copy_from(values0);
              keys0.device().synchronize();
            },
            [this, pairs, grain] {
              const SortOptions options{.scratch = scratch, .grain = grain};
              for (std::size_t k = 0; k < all_keys.size(); ++k)
                pairs ? radix_sort_pairs(all_keys[k], all_values[k], options) : radix_sort(all_keys[k], options);
              keys0.device().synchronize();
            }};
  }
  ~DeviceSort() { keys0.device().stream().barrier_always(false); }
  DeviceSort(const DeviceSort&) = delete;

  /// Whether each of the sorts has sorted: each value says where its key stood, equal keys in their order.
  bool sorted() const {
    const std::vector<U32> before = keys0.to_vector();
    for (std::size_t k = 0; k < all_keys.size(); ++k)
      if (!sorted_as(before, all_keys[k].to_vector(), all_values[k].to_vector())) return false;
    return true;
  }
  std::vector<U32> sorted_keys() const { return all_keys.back().to_vector(); }
  std::vector<U32> sorted_values() const { return all_values.back().to_vector(); }

  Array<U32> keys0, values0;
  std::vector<Array<U32>> all_keys, all_values;
  Array<std::uint8_t> scratch;
};

/// The pairs of a DeviceSort, sorted on the host.
struct HostSort {
  explicit HostSort(const DeviceSort& sort) {
    for (const U32 key : sort.keys0.to_vector()) pairs0.emplace_back(key, U32(pairs0.size()));
  }
  Side side() {
    return {
        [this] { pairs = pairs0; },
        [this] { std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) { return a.first < b.first; }); }};
  }
  std::vector<Pair> pairs0, pairs;
};

void sort_keys(Run& run) {
  DeviceSort sort(run.device());
  const std::vector<U32> x0 = sort.keys0.to_vector();
  std::vector<U32> x;
  const Side host{[&] { x = x0; }, [&] { std::sort(x.begin(), x.end()); }};
  const auto timings = race({sort.side(false), host}, std::min(run.rounds(), kMostRounds));
  if (sort.sorted_keys() != x) throw std::runtime_error("the keys are not those of std::sort");
  run.compare(timings[0], {"std::sort", timings[1]}, "ms");
  note_rate(run, kSorted, timings[0]);
}

void sort_pairs(Run& run) {
  DeviceSort sort(run.device());
  HostSort host(sort);
  const auto timings =
      race({sort.side(true, Grain::coarse), sort.side(true, Grain::fine), host.side(), sort.side(true)},
           std::min(run.rounds(), kMostRounds));
  sort.side(true).prepare();
  sort.side(true).work();
  const std::vector<U32> keys = sort.sorted_keys(), values = sort.sorted_values();
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (Pair(keys[i], values[i]) != host.pairs[i])
      throw std::runtime_error(fmt::format("pair {} is not that of std::stable_sort", i));
  run.compare(timings[3], {"std::stable_sort", timings[2]}, "ms");
  note_rate(run, kSorted, timings[3]);
  run.note(fmt::format("coarse {:.1f} ms, fine {:.1f} ms", timings[0].seconds * 1e3, timings[1].seconds * 1e3));
}

/// Sorts so few elements that the cost of launches counts. Several sorts run before the wait; the time is that of one.
void sort_few(Run& run, std::int64_t n) {
  DeviceSort sort(run.device(), kFewInARow, n);
  HostSort host(sort);
  auto timings = race({sort.side(true), host.side()}, run.rounds());
  if (!sort.sorted()) throw std::runtime_error("not sorted as the host does");
  timings[0].seconds /= kFewInARow;
  run.compare(timings[0], {"std::stable_sort", timings[1]}, "ms");
}

/// Times the tiles and columns that are chosen against others, so that the choice can be checked on any device.
void sort_shapes(Run& run, std::int64_t n) {
  if (run.device().is_software()) return run.leave_out("sorts of software devices have no tiles");
  using Limits = detail::SortLimits;
  const Limits chosen = detail::sort_limits();
  struct Restore {
    const Limits limits;
    ~Restore() { detail::sort_limits() = limits; }
  } const restore{chosen};
  const auto shape = [&] {
    const detail::DeviceState& device = *run.device().state();
    return std::pair(detail::lone_tile(device, sizeof(U32), n), detail::fine_shape(device, sizeof(U32), n));
  };
  const auto chosen_shape = shape();
  const bool few = chosen_shape.first.rounds > 0;
  std::vector<std::pair<std::string, Limits>> ways = {{"as chosen", chosen}};
  const auto add = [&](const char* name, auto change) {
    Limits limits = chosen;
    change(limits);
    detail::sort_limits() = limits;
    const auto [lone, columns] = shape();
    if (few ? lone.rounds > 0 && lone != chosen_shape.first : columns != chosen_shape.second)
      ways.emplace_back(name, limits);
  };
  if (few) {
    ways.emplace_back("by columns", chosen);
    ways.back().second.lone_tile = false;
  }
  add("columns of 8,192 keys or more", [](Limits& l) { l.least_column = 8192; });
  add("16 keys of a thread", [](Limits& l) { l.most_rounds = 16; });
  add("11 keys of a thread", [](Limits& l) { l.most_rounds = 11; });
  add("128 threads", [](Limits& l) { l.most_threads = l.lone_threads = 128; });
  add("256 threads", [](Limits& l) { l.most_threads = l.lone_threads = 256; });
  add("512 threads", [](Limits& l) { l.most_threads = l.lone_threads = 512; });
  add("512 threads of 11 keys", [](Limits& l) { l.most_threads = 512, l.most_rounds = 11; });
  add("1024 threads", [](Limits& l) { l.most_threads = l.lone_threads = 1024; });
  add("small tiles", [](Limits& l) { l.few_tiles = std::int64_t(1) << 40; });
  add("large tiles", [](Limits& l) { l.few_tiles = 0; });
  if (ways.size() == 1) return run.leave_out("there is one way");

  const int in_a_row = few ? kFewInARow : 1;
  DeviceSort sort(run.device(), in_a_row, n);
  std::vector<Side> sides;
  for (const auto& way : ways) {
    const Side side = sort.side(true, Grain::fine);
    sides.push_back({[side, &way] {
                       detail::sort_limits() = way.second;
                       side.prepare();
                     },
                     side.work});
  }
  auto timings = race(sides, std::min(run.rounds(), kMostRounds));
  for (Timing& t : timings) t.seconds /= in_a_row;
  for (std::size_t k = 0; k < ways.size(); ++k) {
    sides[k].prepare();
    sides[k].work();
    if (!sort.sorted()) throw std::runtime_error("not sorted as the host does: " + ways[k].first);
  }
  std::size_t best = 1;
  for (std::size_t k = 0; k < ways.size(); ++k) {
    run.note(fmt::format("{}: {:.3f} ms", ways[k].first, timings[k].seconds * 1e3));
    if (k > 0 && timings[k].seconds < timings[best].seconds) best = k;
  }
  run.compare(timings[0], {ways[best].first, timings[best]}, "ms");
}

/// Scans numbers. The time of a kernel that copies them tells what the device's memory allows.
void scan_numbers(Run& run) {
  const Device& device = run.device();
  const std::vector<U32> x0 = random_numbers(kScanned);
  std::vector<U32> expected(x0.size());
  const Array<U32> x(device, x0), y = empty<U32>(device, kScanned);
  const auto scratch = empty<std::uint8_t>(device, scan_scratch_bytes<U32>(kScanned));
  const auto copy = kernel("copy", [](Arr<const U32> x, Arr<U32> y) {
    Int i = tid();
    y[i] = x[i];
  });
  const auto nothing = [] {};
  const auto scan = [&](Grain grain) {
    return [&, grain] {
      exclusive_scan(x, y, {.scratch = scratch, .grain = grain});
      device.synchronize();
    };
  };
  const auto timings = race({{nothing,
                              [&] {
                                launch(copy, kScanned, x, y);
                                device.synchronize();
                              }},
                             {nothing, [&] { std::exclusive_scan(x0.begin(), x0.end(), expected.begin(), U32(0)); }},
                             {nothing, scan(Grain::automatic)},
                             {nothing, scan(Grain::coarse)},
                             {nothing, scan(Grain::fine)}},
                            std::min(run.rounds(), kMostRounds));
  exclusive_scan(x, y, {.scratch = scratch});
  if (y.to_vector() != expected) throw std::runtime_error("the sums are not those of std::exclusive_scan");
  run.compare(timings[2], {"std::exclusive_scan", timings[1]}, "ms");
  note_rate(run, kScanned, timings[2]);
  run.note(fmt::format("coarse {:.1f} ms, fine {:.1f} ms; a kernel that copies the elements {:.1f} ms",
                       timings[3].seconds * 1e3, timings[4].seconds * 1e3, timings[0].seconds * 1e3));
}

/// Seconds of warp-lang's sort and scan on the same cores, or nothing if it is not installed.
std::optional<std::vector<double>> warp_seconds(int rounds) {
  return ask_python("algorithms.py", fmt::format("{} {} {}", kSorted, kScanned, rounds), 2);
}

void sort_against_warp(Run& run) {
  const int rounds = std::min(run.rounds(), kMostRounds);
  const auto warp = warp_seconds(rounds);
  DeviceSort sort(run.device());
  const auto timings = race({sort.side(true)}, rounds);
  if (!std::ranges::is_sorted(sort.sorted_keys())) throw std::runtime_error("the keys are not sorted");
  run.compare(timings[0], warp_reference(warp, {0}), "ms");
}

void scan_against_warp(Run& run) {
  const int rounds = std::min(run.rounds(), kMostRounds);
  const auto warp = warp_seconds(rounds);
  const Array<int> x = full<int>(run.device(), kScanned, 3), y = empty<int>(run.device(), kScanned);
  const auto scratch = empty<std::uint8_t>(run.device(), scan_scratch_bytes<int>(kScanned));
  const auto timings = race({{[] {},
                              [&] {
                                exclusive_scan(x, y, {.scratch = scratch});
                                run.device().synchronize();
                              }}},
                            rounds);
  if (y.at(kScanned - 1) != 3 * int(kScanned - 1)) throw std::runtime_error("the last sum is wrong");
  run.compare(timings[0], warp_reference(warp, {1}), "ms");
}

/// The figures of cub.cu, in the order in which it writes them.
enum class Cub { keys, pairs, keys_in_a_row, pairs_in_a_row, scan };

/// Times weft against CUB on NVIDIA's devices, where both work on the same memory. weft uses any backend.
void against_cub(Run& run, Cub which, std::int64_t sorted = kSorted, int sorts = kInARow) {
  if (run.device().adapter().find("NVIDIA") == std::string::npos) return run.leave_out("the device is not NVIDIA's");
  const int rounds = std::min(run.rounds(), kMostRounds);
  const auto cub = ask_cub(fmt::format("{} {} {} {}", sorted, sorts, kScanned, rounds), 5);
  Reference reference{"CUB", {}, "there is no nvcc, or no device for CUDA"};
  if (cub) reference.timing = Timing{(*cub)[std::size_t(which)], 0};
  if (which == Cub::scan) {
    const std::vector<U32> x0 = random_numbers(kScanned);
    const Array<U32> x(run.device(), x0), y = empty<U32>(run.device(), kScanned);
    const auto scratch = empty<std::uint8_t>(run.device(), scan_scratch_bytes<U32>(kScanned));
    const auto timings = race({{[] {},
                                [&] {
                                  exclusive_scan(x, y, {.scratch = scratch});
                                  run.device().synchronize();
                                }}},
                              rounds);
    std::vector<U32> expected(x0.size());
    std::exclusive_scan(x0.begin(), x0.end(), expected.begin(), U32(0));
    if (y.to_vector() != expected) throw std::runtime_error("the sums are not those of std::exclusive_scan");
    return run.compare(timings[0], reference, "ms");
  }
  const bool in_a_row = which == Cub::keys_in_a_row || which == Cub::pairs_in_a_row;
  DeviceSort sort(run.device(), in_a_row ? sorts : 1, sorted);
  auto timings = race({sort.side(which == Cub::pairs || which == Cub::pairs_in_a_row)}, rounds);
  for (const Array<U32>& keys : sort.all_keys)
    if (!std::ranges::is_sorted(keys.to_vector())) throw std::runtime_error("the keys are not sorted");
  timings[0].seconds /= double(sort.all_keys.size());
  run.compare(timings[0], reference, "ms");
}

}  // namespace

void add_algorithms(Harness& harness) {
  harness.add("algorithms", "sort 16M keys", sort_keys);
  harness.add("algorithms", "sort 16M pairs", sort_pairs);
  harness.add("algorithms", "sort 16M keys, CUB", [](Run& run) { against_cub(run, Cub::keys); });
  harness.add("algorithms", "sort 16M pairs, CUB", [](Run& run) { against_cub(run, Cub::pairs); });
  harness.add("algorithms", "sort 16M keys, four in a row, CUB",
              [](Run& run) { against_cub(run, Cub::keys_in_a_row); });
  harness.add("algorithms", "sort 16M pairs, four in a row, CUB",
              [](Run& run) { against_cub(run, Cub::pairs_in_a_row); });
  harness.add("algorithms", "sort 8k pairs, sixteen in a row", [](Run& run) { sort_few(run, 8'000); });
  harness.add("algorithms", "sort 8k pairs, sixteen in a row, CUB",
              [](Run& run) { against_cub(run, Cub::pairs_in_a_row, 8'000, kFewInARow); });
  harness.add("algorithms", "sort 16M pairs, warp", sort_against_warp);
  harness.add("algorithms", "scan 64M", scan_numbers);
  harness.add("algorithms", "scan 64M, CUB", [](Run& run) { against_cub(run, Cub::scan); });
  harness.add("algorithms", "scan 64M, warp", scan_against_warp);
  for (const int thousands : {1, 8, 1'000, 2'000, 4'000, 16'000, 32'000}) {
    const std::string size = thousands < 1000 ? fmt::format("{}k", thousands) : fmt::format("{}M", thousands / 1000);
    harness.add("algorithms", fmt::format("sort {} pairs, other tiles", size),
                [thousands](Run& run) { sort_shapes(run, thousands * 1'000ll); });
  }
}

void add_cpu_algorithms(Harness& harness) {
  add_beside_vulkan(harness, "sort 16M keys", sort_keys);
  add_beside_vulkan(harness, "sort 16M pairs", sort_pairs);
  add_beside_vulkan(harness, "sort 16M pairs, warp", sort_against_warp);
  add_beside_vulkan(harness, "scan 64M", scan_numbers);
  add_beside_vulkan(harness, "scan 64M, warp", scan_against_warp);
}

}  // namespace weft::bench
