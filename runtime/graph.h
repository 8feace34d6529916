// Graphs: work that is captured once and then launched repeatedly at little cost.
#pragma once
#include <functional>
#include <memory>

#include "launch.h"

namespace weft {

class CaptureScope;
class Graph;

/// A launch in a graph, whose arguments can be replaced: see Graph::set().
class GraphNode {
 public:
  GraphNode() = default;

 private:
  friend class Graph;
  friend GraphNode captured_launch(Loc loc);
  std::size_t number = SIZE_MAX;
  std::uint64_t capture = 0;  ///< the capture that made it
};

/// Operations in the order in which they were captured. A handle: copies are the same graph.
///
/// Preparation happens once: on Vulkan a graph is a command buffer with the barriers between its operations, submitted
/// for each launch of the graph; operations that share no memory may overlap. The graph keeps all memory that it works
/// on. It may be launched again while it still runs, and dropped as well. Handles are followed anew at each launch.
class Graph {
 public:
  /// A null graph.
  Graph() = default;

  /// Runs all operations, in order with Device::stream(), or with another stream of the same device.
  /// Errors: Error(invalid_argument) for a null graph, a stream of another device, freed arrays, elements that hold
  /// other arrays than in the capture, structures of which the device holds other data or none, and what a launch by
  /// handles refuses; Error(unsupported) inside a capture or a tape.
  /// Cost: one submission, and a little for each piece of memory that the graph works on, whatever the number of
  /// operations. A graph whose kernels print, assert or check themselves (debug mode) first waits for its last launch.
  void launch(Loc loc = Loc::here()) const;
  void launch(const Stream& stream, Loc loc = Loc::here()) const;

  /// Gives the node other arguments, from the next launch of the graph on; a launch that runs already keeps the old
  /// ones. The kernel is the captured one, over as many threads; arrays may be others of the same kind (contiguous if
  /// the captured ones were). The captured arguments stay with the graph: arrays may not be freed, and a mesh must be
  /// in order at each launch.
  /// Errors: Error(invalid_argument) for a node of another graph, another kernel, and arguments that a launch refuses
  /// or that do not fit the other work of the graph; Error(unsupported) for a launch over no threads, of several
  /// dispatches, in a condition of the graph, or on a tape. See docs/runtime.md.
  /// Cost: other scalars, and arrays at the addresses of the node's, are written to memory before the graph's next
  /// launch. The first time that other arrays are given, the next launch records the graph anew, at the cost of
  /// launching each of its launches.
  template <class... P, class... A>
  void set(const detail::Placed<GraphNode>& node, const Kernel<P...>& kernel, const A&... args) const {
    if constexpr (detail::Parameters<P...>::template take<A...>()) {
      detail::called_from(node.loc, [&] {
        detail::with_arguments<P...>(
            kernel.core(), detail::GivenStructures::For::graph,
            [&](std::span<const detail::HostArg> parts, const detail::GivenStructures& given) {
              set_parts(node.value, kernel.core(), parts, given);
            },
            detail::Argument<P>(args)...);
      });
    }
  }

  bool is_null() const { return !state_; }
  Device device() const;
  /// The number of launches, copies and fills in the graph.
  std::int64_t size() const;

 private:
  struct State;
  friend class CaptureScope;
  void launch_on(const Stream* stream) const;
  State& state() const;
  void set_parts(const GraphNode& node, detail::KernelCore& kernel, std::span<const detail::HostArg> args,
                 const detail::GivenStructures& structures) const;
  std::shared_ptr<State> state_;
};

/// Collects all work that this thread gives the device in `work`, on any stream: launches, copies, fills, values from
/// the host (which are the same in each launch of the graph), the launches of algorithms, refits and builds, and a Tape
/// that is recorded and run back inside. Nothing runs before the graph is launched. Work of other threads runs as ever.
/// Arrays that are made meanwhile belong to the graph as long as it lives: each launch uses the same memory.
///
///   Graph step = capture(device, [&] {
///     launch(forces, n, x, f);
///     launch(move, n, x, v, f, dt);
///   });
///   for (int k = 0; k < 1000; ++k) step.launch();
///
/// Whatever waits for a launch of the graph tells what its kernels print, assert or check (debug mode).
/// Errors: whatever `work` throws; Error(invalid_argument) when `work` reads elements on the host, waits, gives work to
/// another device, or changes indices of a mesh or what a tape from outside still needs; Error(unsupported) for a
/// capture in a capture, or while a tape records. See docs/runtime.md for structures, and for what elements hold.
/// Cost: that of launching the work, and of recording the commands once.
Graph capture(const Device& device, const std::function<void()>& work, Loc loc = Loc::here());

/// Captures as capture() does, from its constructor to finish(): for code that cannot be a function. It ends in the
/// thread that made it.
///
///   CaptureScope capturing(device);
///   launch(forces, n, x, f);
///   Graph step = capturing.finish();
///
/// A scope that ends without finish() drops what was captured.
/// Errors: as capture().
class CaptureScope {
 public:
  explicit CaptureScope(const Device& device, Loc loc = Loc::here());
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;
  ~CaptureScope();
  /// Ends the capture and makes the graph.
  /// Errors: as capture(); Error(invalid_argument) when the capture has ended.
  Graph finish(Loc loc = Loc::here());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The most recent launch in this thread's capture. It gets a variant of its kernel of its own, which is compiled when
/// the graph is made and reads the arguments of Graph::set() from memory.
/// Errors: Error(invalid_argument) outside a capture, and before its first launch.
GraphNode captured_launch(Loc loc = Loc::here());

/// Makes `work` conditional: in a launch of the graph it runs only if `flag` is not 0 at that moment. Call it in a
/// capture.
/// \param flag  (1)
///
/// The device decides: a kernel writes how many workgroups the launches in `work` have, none where the flag is 0.
/// Errors: Error(invalid_argument) outside a capture, for a flag of another size or device, for a HashGrid that `work`
/// builds for the first time, and for a change of what an earlier tape needs;
/// Error(unsupported) for builds of structures for ray queries in `work`, and while a tape records.
void graph_if(const Array<int>& flag, const std::function<void()>& work, Loc loc = Loc::here());

/// Repeats `work` while `flag` is not 0, at most `limit` times. Call it in a capture; `work` is called once.
/// Errors: as graph_if(); Error(invalid_argument) for a limit outside 1 to 2^20; Error(unsupported) if the graph would
/// have more than 2^20 operations.
/// Cost: for each possible round the graph holds a gate and the operations of `work`, about a kilobyte each, and each
/// round after the last costs an empty launch: a limit of some hundred is cheap, one of 100,000 takes seconds to
/// record. Nested loops multiply.
void graph_while(const Array<int>& flag, int limit, const std::function<void()>& work, Loc loc = Loc::here());

}  // namespace weft
