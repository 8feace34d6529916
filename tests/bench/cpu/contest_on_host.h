// How suite cpu compares the native device: with kernels by hand on the same memory, with software Vulkan, with Warp
// and Taichi.
#pragma once
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../peers/host_threads.h"
#include "../work/workloads.h"

namespace weft::bench {

/// One side beside weft.
struct Side {
  std::string name;
  std::function<void()> launch;  ///< returns when all is done
};

/// The same kernel in peers/cpu_kernels_*.py: its name there, and what writes its input.
struct ScriptKernel {
  std::string name;
  std::function<void(std::ofstream&)> write;
};
/// Writes a count of 4-byte numbers and the numbers.
template <class T>
void write_numbers(std::ofstream& file, const std::vector<T>& values) {
  const auto n = std::int32_t(values.size() * sizeof(T) / 4);
  file.write(reinterpret_cast<const char*>(&n), sizeof n);
  file.write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size() * sizeof(T)));
}

/// Leaves the case out unless the device runs kernels as code of the host. Returns whether it does.
bool needs_native(Run& run);

/// The first software device of Vulkan's, if there is one.
std::optional<Device> software_vulkan();

/// Checks weft's results, those by hand and those of Vulkan, times all in turn, and reports the rows of the case:
/// weft against the fastest by hand, in wall time and in processor time, against software Vulkan, Taichi, and, on one
/// thread, Warp.
/// \param vulkan  the same work there; null if there is no such device
void race_on_host(Run& run, const Workload& work, const Workload* vulkan, const std::vector<Side>& by_hand,
                  const ScriptKernel& script);

/// Reports the rows of a case, with the times of its sides: weft, software Vulkan if it is there, then those by hand.
void report_sides(Run& run, const std::vector<Timing>& timings, bool has_vulkan, const std::vector<Side>& by_hand);
/// Asks peers/cpu_kernels_taichi.py, checks that the absolute values of its results add up to `sum`, and reports its
/// row.
void report_taichi(Run& run, const Timing& weft, const ScriptKernel& script, double sum);

/// Adds a case of another suite to suite cpu: its own row, out of the suite's mean, and one against software Vulkan,
/// where `body` runs once more.
void add_beside_vulkan(Harness& harness, const std::string& name, std::function<void(Run&)> body);

}  // namespace weft::bench
