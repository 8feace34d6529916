// What Linux's control groups, by which containers are limited, leave the process of the machine, and its memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "platform.h"
#include "platform_windows.h"

#ifndef _WIN32
#include <unistd.h>
#endif

namespace weft::platform {

namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
  const auto bytes = read_file(file, 1 << 16);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : std::string();
}

// The quota in such text as "150000 100000", which is that of 1.5 processors; "max" and -1 stand for none.
std::optional<double> quota_in(const std::string& text) {
  std::istringstream in(text);
  double time = 0, period = 0;
  if (!(in >> time >> period) || time <= 0 || period <= 0) return std::nullopt;
  return time / period;
}

// A number of bytes; "max" stands for none.
std::optional<double> bytes_in(const std::string& text) {
  std::istringstream in(text);
  double bytes = 0;
  if (!(in >> bytes) || bytes <= 0) return std::nullopt;
  return bytes;
}

std::optional<double> lesser(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// A kind of limit: how version 1 of control groups calls it, and what a group's folder says in either version.
struct Kind {
  std::string name;
  std::optional<double> (*now)(const fs::path& folder);
  std::optional<double> (*version1)(const fs::path& folder);
};

// The least limit of a group and of the groups that it is in. Where a container has a root of its own, only that is
// found, under the mount itself.
template <class F>
std::optional<double> least_around(const fs::path& mount, const fs::path& group, const F& limit) {
  std::optional<double> least;
  for (fs::path inner = group.relative_path();; inner = inner.parent_path()) {
    least = lesser(least, limit(mount / inner));
    if (inner.empty()) return least;
  }
}

// A line is "0::/group" for version 2 of control groups, and "4:cpu,cpuacct:/group" for version 1.
std::optional<double> least(const fs::path& root, const Kind& kind) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::istringstream lines(text_of(root / "proc/self/cgroup"));
  std::optional<double> result;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string kinds = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (kinds.empty())
      result = lesser(result, least_around(mounts, group, kind.now));
    else if ((',' + kinds + ',').find(',' + kind.name + ',') != std::string::npos)
      result = lesser(result, least_around(mounts / kind.name, group, kind.version1));
  }
  return result;
}

std::optional<double> machine_memory() {
#ifdef _WIN32
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  if (!GlobalMemoryStatusEx(&status)) return std::nullopt;
  return double(status.ullTotalPhys);
#else
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::nullopt;
  return double(pages) * double(page);
#endif
}

}  // namespace

std::optional<double> processor_quota(const fs::path& root) {
  return least(root,
               {"cpu", [](const fs::path& folder) { return quota_in(text_of(folder / "cpu.max")); },
                [](const fs::path& folder) {
                  return quota_in(text_of(folder / "cpu.cfs_quota_us") + ' ' + text_of(folder / "cpu.cfs_period_us"));
                }});
}

std::optional<std::uint64_t> memory_bytes(const fs::path& root) {
  const auto bytes =
      lesser(machine_memory(),
             least(root, {"memory", [](const fs::path& folder) { return bytes_in(text_of(folder / "memory.max")); },
                          [](const fs::path& folder) { return bytes_in(text_of(folder / "memory.limit_in_bytes")); }}));
  return bytes ? std::optional(std::uint64_t(*bytes)) : std::nullopt;
}

}  // namespace weft::platform
