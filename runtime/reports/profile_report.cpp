// Summarises a profile, and writes it as a table and as a trace for viewers.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"
#include "profile_log.h"

namespace weft {

namespace {

// Formats four significant digits and a unit.
std::string time_text(double seconds) {
  for (const auto& [unit, name] : {std::pair(1., "s"), {1e-3, "ms"}, {1e-6, "us"}})
    if (seconds >= unit || unit == 1e-6) {
      const double x = seconds / unit;
      return fmt::format("{:.{}f} {}", x, x < 10 ? 3 : x < 100 ? 2 : x < 1000 ? 1 : 0, name);
    }
  return {};
}

// Formats a JSON string; names may contain anything.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

namespace detail {

void summarise(Profile& p) {
  using Key = std::pair<std::string_view, std::string_view>;  // device and name
  std::map<Key, std::size_t> numbers;
  std::map<std::string_view, double> totals;
  for (const Profile::Operation& o : p.operations) {
    const auto [at, is_new] = numbers.emplace(Key(o.device, o.name), p.kernels.size());
    if (is_new) p.kernels.push_back({o.name, o.device});
    Profile::Kernel& k = p.kernels[at->second];
    const double seconds = o.end - o.begin;
    k.min = is_new ? seconds : std::min(k.min, seconds);
    k.max = std::max(k.max, seconds);
    k.total += seconds;
    ++k.count;
    totals[o.device] += seconds;
  }
  for (Profile::Kernel& k : p.kernels) k.share = totals[k.device] > 0 ? k.total / totals[k.device] : 0;
  std::ranges::stable_sort(p.kernels, std::greater(), &Profile::Kernel::total);

  // Scopes form a tree, with one child per name.
  struct Node {
    Profile::Scope sum;
    std::vector<std::size_t> inside;
  };
  std::vector<Node> nodes(1);  // the root is no scope
  std::vector<std::size_t> node_of(p.timers.size());
  std::map<std::pair<std::size_t, std::string_view>, std::size_t> known;
  for (std::size_t k = 0; k < p.timers.size(); ++k) {
    const Profile::Span& span = p.timers[k];
    const std::size_t parent = span.parent < 0 ? 0 : node_of[std::size_t(span.parent)];
    const auto [at, is_new] = known.emplace(std::pair(parent, std::string_view(span.name)), nodes.size());
    if (is_new) {
      nodes[parent].inside.push_back(nodes.size());
      const Profile::Scope& around = nodes[parent].sum;
      Node node;
      node.sum.path = parent ? around.path + "/" + span.name : span.name;
      node.sum.depth = parent ? around.depth + 1 : 0;
      nodes.push_back(std::move(node));
    }
    node_of[k] = at->second;
    ++nodes[at->second].sum.count;
    nodes[at->second].sum.host += span.end - span.begin;
  }
  for (const Profile::Operation& o : p.operations)
    for (int k = o.scope; k >= 0; k = p.timers[std::size_t(k)].parent)
      nodes[node_of[std::size_t(k)]].sum.device += o.end - o.begin;
  const std::function<void(std::size_t)> add = [&](std::size_t at) {
    if (at) p.scopes.push_back(nodes[at].sum);
    for (const std::size_t k : nodes[at].inside) add(k);
  };
  add(0);
}

}  // namespace detail

std::string Profile::table() const {
  std::set<std::string_view> devices;
  std::size_t width = 20;
  for (const Kernel& k : kernels) devices.insert(k.device), width = std::max(width, k.name.size());
  for (const Scope& s : scopes) width = std::max(width, s.path.size());
  std::string text;
  const auto out = std::back_inserter(text);
  for (const std::string_view device : devices) {
    fmt::format_to(out, "{:<{}} {:>8} {:>11} {:>11} {:>11} {:>11} {:>7}\n", fmt::format("on {}", device), width,
                   "count", "total", "mean", "min", "max", "share");
    for (const Kernel& k : kernels)
      if (k.device == device)
        fmt::format_to(out, "{:<{}} {:>8} {:>11} {:>11} {:>11} {:>11} {:>6.1f}%\n", k.name, width, k.count,
                       time_text(k.total), time_text(k.mean()), time_text(k.min), time_text(k.max), 100 * k.share);
    text += '\n';
  }
  if (!scopes.empty()) {
    fmt::format_to(out, "{:<{}} {:>8} {:>11} {:>11}\n", "scope", width, "count", "host", "device");
    for (const Scope& s : scopes)
      fmt::format_to(out, "{:<{}} {:>8} {:>11} {:>11}\n", s.path, width, s.count, time_text(s.host),
                     time_text(s.device));
    text += '\n';
  }
  fmt::format_to(out, "{:<{}} {:>8} {:>11}\n", "all", width, "", time_text(seconds));
  return text;
}

std::string Profile::trace() const {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  const auto out = std::back_inserter(text);
  const char* comma = "";
  const auto name = [&](const char* what, int process, int thread, const std::string& name) {
    fmt::format_to(out, "{}{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", comma,
                   what, process, thread, quoted(name));
    comma = ",\n";
  };
  // The host is process 0; each device has a process of its own.
  name("process_name", 0, 0, "host");
  std::set<int> threads;
  for (const Span& s : timers)
    if (threads.insert(s.thread).second) name("thread_name", 0, s.thread, fmt::format("thread {}", s.thread));
  std::map<std::string_view, int> processes;
  std::set<std::pair<int, int>> streams;
  for (const Operation& o : operations) {
    const auto [at, is_new] = processes.emplace(o.device, int(processes.size()) + 1);
    if (is_new) name("process_name", at->second, 0, o.device);
    if (streams.emplace(at->second, o.stream).second)
      name("thread_name", at->second, o.stream, fmt::format("stream {}", o.stream));
  }
  // Times are in microseconds.
  for (const Span& s : timers)
    fmt::format_to(out,
                   "{}{{\"ph\":\"X\",\"name\":{},\"cat\":\"scope\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
                   std::exchange(comma, ",\n"), quoted(s.name), s.thread, s.begin * 1e6, (s.end - s.begin) * 1e6);
  for (const Operation& o : operations)
    fmt::format_to(out,
                   "{}{{\"ph\":\"X\",\"name\":{},\"cat\":\"device\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
                   "\"args\":{{\"scope\":{},\"launched\":{:.3f}}}}}",
                   std::exchange(comma, ",\n"), quoted(o.name), processes[o.device], o.stream, o.begin * 1e6,
                   (o.end - o.begin) * 1e6, o.scope < 0 ? "null" : quoted(timers[std::size_t(o.scope)].name),
                   o.launched * 1e6);
  text += "\n]}\n";
  return text;
}

void Profile::save_trace(const std::filesystem::path& path) const {
  const std::string text = trace();
  std::string why;
  if (!platform::write_file(path, std::as_bytes(std::span(text)), &why))
    invalid("the trace cannot be written to {}: {}", path.string(), why);
}

}  // namespace weft
