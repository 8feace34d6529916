// The writer of the adjoint of a kernel in normal form: the walk over its regions, forward and back.
#pragma once
#include <unordered_map>
#include <vector>

#include "array_gradients.h"
#include "code.h"
#include "undo_log.h"
#include "value_gradients.h"

namespace weft::ir {

/// Writes an adjoint by the scheme of docs/decisions.md ("Adjoint"). A block is run forward, so that its values are at
/// hand while its instructions are reversed, from the last to the first. A branch is entered again on the way back,
/// with the condition that was computed on the way forward. A loop is run again from saved states to the iteration that
/// is next to be reversed.
///
///   v = x[i]; if (v > 0) { y[i] = v * v }
///
/// becomes: v = x[i]; c = v > 0 | if (c) { g = dy[i]; dy[i] = 0; dv += g * v + g * v } | dx[i] += dv.
class Reverser : private AdjointCode {
 public:
  /// \param out  has the interface of the adjoint and an empty body
  /// \param counting  count() will be called, not run()
  Reverser(const Module& kernel, const Analysis& analysis, const ExtraParams& extra, const AdjointOptions& options,
           Module& out, bool counting = false);

  /// Writes the adjoint.
  void run();
  /// Writes the code that counts the entries of the undo log, into the first word of the scratch.
  void count();

  std::uint32_t scratch_bytes() const { return scratch_most_; }

 private:
  // ---- Forward copies (forward_copies.cpp)
  void forward(Id id, CopyMask copy, bool direct);
  void forward_region(RegionId region, CopyMask copy);
  void forward_branch(Id id);
  void forward_loop(Id id);
  std::vector<Id> body_of(Id loop) const;

  // ---- Backward (reverser.cpp)
  void reverse_block(std::span<const Id> insts);
  void reverse(Id id);
  void reverse_pure(Id id);
  void reverse_load(Id id, std::uint32_t part, Id gradient);
  void reverse_store(Id id);
  void reverse_atomic(Id id);
  void reverse_branch(Id id);
  std::vector<char> observed_later(std::span<const Id> insts) const;

  // ---- Functions with gradient functions (calls.cpp)
  void adopt_functions();
  void reverse_call(Id id);

  // ---- Loops backward (reverse_loop.cpp)
  struct LoopGradients {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> carried;  ///< number of the carried value, its local
    ValueGradients::Spilled spilled;
    std::vector<Id> sinks;  ///< loads whose gradients are gathered in locals around the loop
  };
  void reverse_loop(Id id);
  void reverse_direct(Id id, LoopGradients& gradients, Id trips);
  void reverse_iteration(Id id, const LoopGradients& gradients);
  void map_affine(Id id, Id iteration);
  Id trips_of(Id id);
  void open_sinks(Id id, RegionId region, LoopGradients& gradients);
  void close_sinks(LoopGradients& gradients);

  // ---- Loops backward from saved states (checkpoints.cpp)
  class Checkpoints;
  void reverse_checkpointed(Id id, const LoopGradients& gradients, Id trips);

  const std::uint32_t slots_;
  ValueGradients gradients_;
  ArrayGradients array_gradients_;
  UndoLog undo_;
  std::vector<Id> trips_;  ///< by loop: its trips when it was last run through
  static std::uint64_t sink_key(Id load, std::uint32_t part) { return std::uint64_t{load} << 2 | part; }
  std::unordered_map<std::uint64_t, std::uint32_t> sinks_;  ///< by sink_key(): the local that gathers
  std::uint32_t scratch_now_ = 0, scratch_most_ = 0;
};

}  // namespace weft::ir
