// Graphs: work that is captured once and then launched again and again at little cost.
#pragma once
#include <functional>
#include <memory>

#include "launch.h"

namespace weft {

class Graph;

/// A launch in a graph, whose arguments can be exchanged: see Graph::set().
class GraphNode {
 public:
  GraphNode() = default;

 private:
  friend class Graph;
  friend GraphNode captured_launch(Loc loc);
  std::size_t number = SIZE_MAX;
  std::uint64_t capture = 0;  ///< in which it was made
};

/// Operations in the order in which they were captured. A handle: copies are the same graph.
///
/// Its launches are made ready once: on Vulkan a command buffer with the barriers between them, which is submitted for
/// each launch of the graph; operations that touch nothing in common are free to overlap. It keeps all memory that it
/// works on. A graph may be launched again while it still runs, and dropped as well. What elements and handles refer to
/// is that of the moment of each launch.
class Graph {
 public:
  /// A null graph.
  Graph() = default;

  /// Runs all of it, in order with Device::stream(), or with another stream of the same device.
  /// Errors: Error(invalid_argument) for a null graph, for another device's stream, for an array that was freed, for a
  /// mesh that it uses (by handles: any that has one) and that needs its rebuild() or would be changed where the
  /// capture did not, for a HashGrid or a Bvh that it was given by value and that the device holds in another size or
  /// memory by now, and what a launch by handles refuses; Error(unsupported) while this thread captures or a tape
  /// records, and for arrays that hold each other.
  /// Cost: one submission, and a little for each piece of memory that the graph works on; it does not grow with the
  /// number of operations. A graph whose kernels print, assert or check themselves (debug mode) waits for its last
  /// launch first.
  void launch(Loc loc = Loc::here()) const;
  void launch(const Stream& stream, Loc loc = Loc::here()) const;

  /// From the next launch of the graph on the node is given these arguments; what runs already keeps the old ones.
  /// The kernel is the one that was captured, over as many threads; arrays may be others of the same kind (contiguous
  /// where the captured ones were). What the node was captured with stays with the graph: it may not be freed, and a
  /// mesh of it is to be in order at each launch.
  /// Errors: Error(invalid_argument) for a node of another graph, another kernel, arguments that need other code, a
  /// mesh that the graph has changed by then, a HashGrid or a Bvh that it has made in another size or memory by then,
  /// an array to write that a tape of the graph still needs as it is there (the one that was captured may be: the graph
  /// copies what it holds), and arguments that a launch refuses; Error(unsupported) for a launch that took several
  /// dispatches, over no threads, within graph_if() or graph_while(), or that a tape recorded, since its way back keeps
  /// what it was captured with.
  /// Cost: other scalars, and arrays that lie where the node's did, are written to memory in front of the graph's next
  /// launch. Given other arrays for the first time, the graph is recorded anew by its next launch: what launching each
  /// of its launches costs.
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
  /// Of launches, copies and fills that it consists of.
  std::int64_t size() const;

 private:
  struct State;
  friend Graph capture(const Device& device, const std::function<void()>& work, Loc loc);
  static Graph captured(const Device& device, const std::function<void()>& work);
  void launch_on(const Stream* stream) const;
  State& state() const;
  void set_parts(const GraphNode& node, detail::KernelCore& kernel, std::span<const detail::HostArg> args,
                 const detail::GivenStructures& structures) const;
  std::shared_ptr<State> state_;
};

/// Collects all work that this thread gives the device in `work`, on whichever stream: launches, copies, fills, values
/// from the host (which are the same in each launch of the graph), what algorithms, refits and builds consist of, a
/// Tape that is recorded and run back inside. Other threads' work runs as ever. Nothing runs before the graph is
/// launched. Arrays that are made meanwhile belong to the graph as long as it lives: each launch uses the same memory.
///
///   Graph step = capture(device, [&] {
///     launch(forces, n, x, f);
///     launch(move, n, x, v, f, dt);
///   });
///   for (int k = 0; k < 1000; ++k) step.launch();
///
/// Errors: what `work` throws, after which all is as if nothing had been captured; Error(invalid_argument) for reading
/// elements on the host and for waits meanwhile, for work on another device, and for a change of what a tape from
/// outside still needs; Error(unsupported) for a capture in a capture, or while a tape records. What kernels print,
/// assert or check (debug mode) is told by whatever waits for a launch of the graph. Cost: that of launching, and of
/// recording the commands once.
Graph capture(const Device& device, const std::function<void()>& work, Loc loc = Loc::here());

/// The launch that was made last in the capture of this thread. It is made by a form of its kernel of its own, which is
/// compiled when the graph is made and finds the arguments of Graph::set() in memory.
/// Errors: Error(invalid_argument) outside of a capture, and before its first launch.
GraphNode captured_launch(Loc loc = Loc::here());

/// Work that runs in a launch of the graph only if `flag` is not 0 at that moment. Called in a capture.
/// \param flag  (1)
///
/// On the device: a kernel writes how many workgroups the launches in `work` have, none where the flag is 0.
/// Errors: Error(invalid_argument) outside of a capture, for a flag of another size or device, for a HashGrid or a Bvh
/// that `work` leaves in another size or memory than before, and for a change of what a tape needs that began before;
/// Error(unsupported) for builds of structures for ray queries in `work`, and while a tape records.
void graph_if(const Array<int>& flag, const std::function<void()>& work, Loc loc = Loc::here());

/// Work that runs again and again while `flag` is not 0, at most `limit` times. Called in a capture; `work` is called
/// once. Errors: as graph_if(), and Error(invalid_argument) for a limit outside of 1 to 2^20, and for a structure that
/// was not there before, is made in a condition inside of `work`, and otherwise behind that; Error(unsupported) where
/// the graph would have more than 2^20 operations. Cost: the graph holds a gate and the operations of `work` for each
/// round that is possible, of some kilobyte each, and rounds after the last cost an empty launch for each: a limit of
/// some hundred is cheap, one of 100,000 takes seconds to record. Loops in loops multiply.
void graph_while(const Array<int>& flag, int limit, const std::function<void()>& work, Loc loc = Loc::here());

}  // namespace weft
