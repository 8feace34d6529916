// Writes the adjoint of a kernel in normal form: the walk over its regions, forward and back.
#pragma once
#include <unordered_map>
#include <vector>

#include "../ir/builder.h"
#include "analysis.h"

namespace weft::ir {

/// Numbers of the parameters that an adjoint has beside its kernel's; kNone: it has none such.
struct ExtraParams {
  std::vector<std::uint32_t> gradient, owners, sums;  ///< by parameter of the kernel
  std::uint32_t scratch = kNone, log = kNone, first_thread = kNone, lanes = kNone;
};

/// The scheme is that of docs/differentiability.md. A block is run forward; its values then are at hand while its
/// instructions are gone through backwards. A branch is entered again on the way back, with the condition that was
/// computed on the way there. A loop is run again from saved states to the iteration that is next to be reversed.
///
///   v = x[i]; if (v > 0) { y[i] = v * v }
///
/// becomes: v = x[i]; c = v > 0 | if (c) { g = dy[i]; dy[i] = 0; dv += g * v + g * v } | dx[i] += dv.
///
/// Gradients of values are instructions as long as the walk stays in the region where the value lives; those that
/// change inside a branch or loop are kept in a mutable local around it.
class Reverser {
 public:
  /// \param out  has the interface of the adjoint and an empty body
  Reverser(const Module& kernel, const Analysis& analysis, const ExtraParams& extra, const AdjointOptions& options,
           Module& out);

  void run();
  /// Instead: counts the entries of the undo log, into the first word of the scratch.
  void count();

  std::uint32_t scratch_bytes() const { return scratch_most_; }

 private:
  // ---- Values (reverser.cpp)
  Id value(Id old);
  Id constant(Type type, std::int64_t v) { return builder_.constant_int(type, v); }
  Id u32(std::uint32_t v) { return builder_.constant(Type::u32, v); }
  Id pure(Op op, Type type, std::initializer_list<Id> args, Loc loc = {}) { return builder_.pure(op, type, args, loc); }
  Id get(std::uint32_t local) { return builder_.local_get(local); }
  void set(std::uint32_t local, Id v) { builder_.local_set(local, v); }
  Id array_base(std::uint32_t param) { return builder_.arg(Type::u64, out_.params[param].offset); }
  void enter();

  // ---- Forward copies (forward_copies.cpp)
  void forward(Id id, CopyMask copy, bool direct);
  void forward_region(RegionId region, CopyMask copy);
  void forward_branch(Id id);
  void forward_loop(Id id);
  void forward_store(Id id, bool direct);
  std::vector<Id> body_of(Id loop) const;

  // ---- The undo log (undo_log.cpp)
  void push_store(Id id);
  void rollback(Id height);
  std::uint8_t log_kind(Type type);

  // ---- Backward (reverser.cpp)
  void reverse_block(std::span<const Id> insts);
  void reverse(Id id);
  void reverse_pure(Id id);
  void reverse_load(Id id, std::uint32_t part, Id gradient);
  void reverse_store(Id id);
  void reverse_atomic(Id id);
  void reverse_branch(Id id);

  // ---- Functions with gradient functions (calls.cpp)
  void adopt_functions();
  std::vector<Id> call_args(Id call);
  void reverse_call(Id id);
  bool observed_later(std::span<const Id> insts, std::size_t at) const;

  // ---- Loops backward (reverse_loop.cpp)
  struct LoopGradients {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> carried;  ///< number of the carried value, its local
    std::vector<std::pair<Id, std::uint32_t>> spilled;
    std::vector<Id> sinks;  ///< loads whose gradients are gathered around the loop
  };
  struct Slots;
  class Window;
  void reverse_loop(Id id);
  void reverse_direct(Id id, LoopGradients& gradients, Id trips);
  void reverse_checkpointed(Id id, LoopGradients& gradients, Id trips);
  void reverse_iteration(Id id, const LoopGradients& gradients);
  void map_affine(Id id, Id iteration);
  Id trips_of(Id id);
  Id split(Id gap, Id free);
  void open_sinks(Id id, LoopGradients& gradients);
  void close_sinks(LoopGradients& gradients);

  // ---- Gradients
  void add_gradient(Id old, Id gradient);
  Id take_gradient(Id old);
  std::vector<std::pair<Id, std::uint32_t>> spill(std::span<const Id> values);
  void unspill(const std::vector<std::pair<Id, std::uint32_t>>& spilled);
  MemoryRef gradient_ref(Id memory, std::uint32_t part);
  MemoryRef primal_ref(Id memory, std::uint32_t part);
  void accumulate(Id memory, std::uint32_t part, Id gradient);
  void add_exactly(Id memory, std::uint32_t part, Id gradient);
  Id byte_in_array(Id memory, std::uint32_t part);
  void check_owner(Id memory);
  bool follows_thread(Id index) const;

  const Module& from_;
  const Analysis& analysis_;
  const ExtraParams& extra_;
  const std::uint32_t slots_;
  Module& out_;
  Builder builder_;
  bool counting_ = false;
  const bool deterministic_;

  std::vector<Id> map_;                   ///< by old value: its newest copy
  std::vector<Id> gradient_;              ///< by old value: what has gathered in the present region; kNone: nothing
  std::vector<std::uint32_t> spill_;      ///< by old value: the local that gathers it; kNone: none
  std::vector<std::vector<Id>> pending_;  ///< by branch, loop or call: gradients of its results
  std::vector<Id> trips_;                 ///< by loop: as it was last run through
  std::vector<Id> heights_;               ///< by branch or loop: of the log before it ran; kNone: it did not
  std::vector<std::vector<Id>> old_;      ///< by store: what was there
  std::unordered_map<std::uint64_t, std::uint32_t> sinks_;  ///< by load and part: the local that gathers

  Id thread_ = kNone, lane_ = kNone, lanes_ = kNone, lanes64_ = kNone;
  std::uint32_t log_height_ = kNone;  ///< local
  std::uint32_t scratch_now_ = 0, scratch_most_ = 0;
  std::vector<Type> log_kinds_;
};

}  // namespace weft::ir
