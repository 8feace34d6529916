// Makes graphs from captures, launches them, and sets arguments of their launches.
#include "../graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "../../frontend/kernels/names.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../array_create.h"
#include "../launch/kernel_programs.h"
#include "../work/capture.h"
#include "../work/dispatch.h"
#include "../work/observe.h"
#include "captured_memory.h"

namespace weft {

using detail::Capture;
using detail::CapturedLaunch;

namespace {

/// The reason why the kernel, given these arguments, has other code than the captured one.
std::string other_code(const ir::Interface& captured, const ir::Variant& now, std::span<const detail::HostArg> args) {
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (!args[k].array) continue;
    const bool absent = now.absent >> k & 1, was_absent = captured.params[k].kind == ir::Param::Kind::absent;
    const bool strided = now.strided >> k & 1, was_strided = captured.params[k].strided;
    const char* const differs = absent && !was_absent     ? "is left out, and was not when the node was captured"
                                : !absent && was_absent   ? "is given, and was left out when the node was captured"
                                : strided && !was_strided ? "is a view with strides, or misaligned, and was contiguous "
                                                            "when the node was captured: give it contiguous()"
                                : !strided && was_strided
                                    ? "is contiguous, and was a view with strides when the node was captured"
                                    : nullptr;
    if (differs) return fmt::format("{} {}", argument_name(args[k]), differs);
  }
  return "arguments are set for a node that was captured for a kernel of this place with other constants, or in "
         "another debug mode";
}

/// The reason why a launch keeps the arguments that it was captured with; empty if it does not.
std::string why_fixed(const CapturedLaunch& launch) {
  constexpr const char* instead =
      ", which keeps those that it was captured with: let it read from an array what changes";
  if (!launch.program) return "a launch over no threads";
  if (launch.dispatches == 0) return std::string("a launch within graph_if() or graph_while()") + instead;
  if (launch.taped) return std::string("a launch that a tape recorded, and goes back through") + instead;
  if (launch.dispatches > 1) return fmt::format("a launch that took {} dispatches", launch.dispatches);
  return {};
}

/// Refuses an array that the kernel would change although a tape in the graph needs it. The tape's way back reads the
/// memory of the captured launch: copies of what that launch changed itself, and everything else in its place.
void refuse_needed(const CapturedLaunch& launch, const ArrayBase& array, const detail::HostArg& arg,
                   const detail::KernelCore& kernel) {
  const auto is_needed = [&](const auto& s) { return std::ranges::count(launch.needed, s) > 0; };
  detail::References held;
  if (array.storage()->may_hold_arrays) array.storage()->reach(held);
  const bool changed_too = std::ranges::any_of(launch.changed, [&](const backend::MemoryRange& range) {
    return array.address() >= range.address && array.address() + array.extent_bytes() <= range.address + range.bytes;
  });
  if ((changed_too || !is_needed(array.storage())) && std::ranges::none_of(held, is_needed)) return;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{} is changed by the kernel, and a tape that was recorded in the graph still needs what it "
                          "holds: let the tape end before the launch that is set, or give it the array that it was "
                          "captured with",
                          argument_name(arg)),
              kernel.name(), kernel.loc());
}

Capture& the_capture(const char* what) {
  Capture* capture = Capture::current();
  if (!capture) invalid("{} is called outside of a capture", what);
  return *capture;
}
}  // namespace

struct Graph::State {
  std::shared_ptr<detail::DeviceState> device;
  std::unique_ptr<backend::Graph> graph;
  detail::CapturedMemory memory;
  std::vector<CapturedLaunch> launches;
  std::uint64_t capture = 0;                      ///< see GraphNode
  std::shared_ptr<detail::ReportBuffer> reports;  ///< null if no kernel prints, asserts or checks itself
  detail::StreamState* reporting_on = nullptr;    ///< the stream of the last launch that reports
  std::mutex mutex;                               ///< lets several threads launch and patch the graph
};

Graph::State& Graph::state() const {
  if (!state_) invalid("a null graph is used");
  return *state_;
}

Device Graph::device() const { return Device(state().device); }
std::int64_t Graph::size() const { return std::int64_t(state().graph->operations().list.size()); }

void Graph::launch(Loc loc) const {
  detail::called_from(loc, [&] { launch_on(nullptr); });
}

void Graph::launch(const Stream& stream, Loc loc) const {
  detail::called_from(loc, [&] { launch_on(&stream); });
}

void Graph::launch_on(const Stream* stream) const {
  State& s = state();
  detail::StreamState& on = stream ? detail::state_of(*stream) : detail::stream_of_thread(*s.device);
  if (on.device != s.device.get())
    invalid("a graph on device {} is launched on a stream of device {}", s.device->device->info().name,
            name_beside(*on.device, *s.device));
  if (Capture::current())
    unsupported("a graph is launched while {}: launch it before or after that, or give it the graph's work",
                Capture::current()->doing());
  detail::tell_recorder({.kind = detail::OperationKind::replay, .what = "a graph is launched"});
  // This object is declared before the lock, because the end of memory in it may run code of the caller's, which must
  // not run under the lock.
  detail::CapturedMemory::Reached reached;
  std::unique_lock lock(s.mutex);
  if (s.reports && s.reporting_on) s.reporting_on->settle(*s.reports);
  s.memory.order_before(on, on, reached);
  backend::Ticket ticket = 0;
  {
    const detail::StreamState::Held b = on.hold();
    if (s.reports) {
      s.reporting_on = &on;
      s.reports->restart(*b);
    }
    ticket = b->replay(*s.graph);
    if (s.reports) {
      s.reports->recorded(ticket);
      on.report_later(s.reports);
    }
  }
  s.memory.touched(on, ticket, reached);
}

void Graph::set_parts(const GraphNode& node, detail::KernelCore& kernel, std::span<const detail::HostArg> args,
                      const detail::GivenStructures& structures) const {
  State& s = state();
  detail::CapturedMemory::Given given;  // in the end what was given before, which is destroyed without the lock
  std::lock_guard lock(s.mutex);
  if (node.number == SIZE_MAX) invalid("arguments are set for a node that captured_launch() has not given");
  if (node.capture != s.capture)
    throw Error(ErrorKind::invalid_argument, "arguments are set for a node of another graph", kernel.name(),
                kernel.loc());
  const CapturedLaunch& known = s.launches[node.number];
  if (const std::string why = why_fixed(known); !why.empty())
    throw Error(ErrorKind::unsupported, "arguments are set for " + why, kernel.name(), kernel.loc());
  try {
    s.memory.check_given(structures.uses());
  } catch (const Error& e) {
    throw Error(e.kind(), e.message(), kernel.name(), kernel.loc());
  }
  std::int64_t count = 1;
  for (int k = 0; k < known.threads.rank; ++k) count *= known.threads[k];
  ir::Variant variant = detail::variant_of(kernel, args, *s.device);
  variant.wide = count > s.device->max_threads;
  const detail::LoadedProgram& program = detail::program_for(kernel, *s.device, variant);
  if (program.program != known.program) {
    const ir::Interface& captured = *known.call;
    const bool same = captured.name == kernel.name() && captured.loc.line == kernel.loc().line &&
                      std::string_view(captured.loc.file) == kernel.loc().file;
    const std::string& role = known.program->role;
    if (!same || !role.empty())
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("arguments are set for a node that was captured for {}kernel \"{}\" ({}:{})",
                              role.empty() ? "" : fmt::format("the {} of ", role), captured.name, captured.loc.file,
                              captured.loc.line),
                  kernel.name(), kernel.loc());
    throw Error(ErrorKind::invalid_argument, other_code(captured, variant, args), kernel.name(), kernel.loc());
  }
  detail::refuse_empty_arrays(kernel, *program.call, args);
  detail::PackedLaunch packed = detail::pack(*program.call, args, known.threads, count);
  if (const std::uint32_t at = program.call->report_offset)
    std::memcpy(packed.block.data() + at, known.report.data(), known.report.size());
  std::vector<backend::MemoryRange> ranges;
  for (const auto& [array, parameter, access] : packed.arrays) {
    ranges.push_back({array->address(), array->extent_bytes(), access});
    const bool changes = any(access, ir::kChanges);
    if (changes) refuse_needed(known, *array, args[parameter], kernel);
    given.memory.push_back({.storage = array->storage(),
                            .writes = changes,
                            .changes = changes,
                            .kernel = program.call,
                            .parameter = parameter});
    if (changes) given.changed.emplace_back(*array);
  }
  for (const detail::StructureUse& use : structures.uses())
    given.uses.push_back({use, node.number, false, program.call});
  detail::follow_elements(*s.device, given.memory, false);
  s.graph->patch(known.operation, packed.block, ranges);
  given = s.memory.give(node.number, std::move(given));
}

Graph capture(const Device& device, const std::function<void()>& work, Loc loc) {
  return detail::called_from(loc, [&] {
    detail::refuse_empty(work, "capture()");
    CaptureScope capturing(device, loc);
    detail::call_back(work);
    return capturing.finish(loc);
  });
}

struct CaptureScope::State {
  std::shared_ptr<detail::DeviceState> device;
  Capture collecting;

  explicit State(std::shared_ptr<detail::DeviceState> state) : device(std::move(state)), collecting(*device) {}
};

CaptureScope::CaptureScope(const Device& device, Loc loc) {
  detail::called_from(loc, [&] { state_ = std::make_unique<State>(device.state()); });
}

CaptureScope::~CaptureScope() = default;

Graph CaptureScope::finish(Loc loc) {
  return detail::called_from(loc, [&] {
    if (!state_) invalid("finish() of a capture that has ended");
    auto made = std::make_shared<Graph::State>();
    made->device = state_->device;
    Capture& collecting = state_->collecting;
    made->memory = detail::CapturedMemory(collecting, "a graph", "capture");
    made->reports = collecting.take_reports();
    made->launches = std::move(collecting.launches);
    made->capture = collecting.serial;
    made->graph = made->device->device->create_graph(collecting.take());
    state_.reset();
    Graph graph;
    graph.state_ = std::move(made);
    return graph;
  });
}

GraphNode captured_launch(Loc loc) {
  Capture& capture = detail::called_from(loc, []() -> Capture& {
    Capture& now = the_capture("captured_launch()");
    if (now.launches.empty()) invalid("captured_launch() is called before the first launch of a capture");
    return now;
  });
  capture.will_be_set();  // callers ask for a node to set its arguments
  GraphNode node;
  node.number = capture.launches.size() - 1;
  node.capture = capture.serial;
  return node;
}

}  // namespace weft
