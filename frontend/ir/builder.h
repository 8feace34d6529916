// Builds modules: folds constants, shares equal pure values, keeps the stack of open regions.
#pragma once
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "module.h"

namespace weft::ir {

/// Where a memory operation goes: base + index * stride + offset, known to be a multiple of `align`.
struct MemoryRef {
  Id base = kNone;   ///< u64
  Id index = kNone;  ///< any integer; 64-bit when a byte offset may pass 2 GiB
  std::uint32_t stride = 1;
  std::uint32_t offset = 0;
  std::uint32_t align = 1;
};

/// Appends instructions to a module.
///
/// `constant`, `arg`, `thread_id` and the like (is_global) belong to no region: they are visible everywhere. Every
/// other instruction is a member of exactly one region and its value is visible in the rest of that region and in the
/// regions inside it; a loop's condition region is also visible in its body and step (it runs before them). A control
/// instruction joins its region's list when it is closed, so that what must happen before it can still be appended to
/// that list while it is open. After break, continue or return, what is appended to the same region is dropped: it
/// cannot run.
class Builder {
 public:
  /// How many regions a kernel may have open at once while it is traced. Every pass walks them by recursion.
  static constexpr std::size_t kMaxTracedDepth = 1024;

  /// \param max_depth  how many regions may be open at once; adjoints nest some four for each that was traced
  explicit Builder(Module& module, std::size_t max_depth = 4 * kMaxTracedDepth);
  Module& module() { return module_; }

  /// A literal; `bits` is truncated to the type's width.
  Id constant(Type type, std::uint64_t bits);
  Id constant_float(Type type, double value);
  Id constant_int(Type type, std::int64_t value);
  Id arg(Type type, std::uint32_t byte_offset);
  Id thread_id() { return source(Op::thread_id, Type::u32); }
  /// Any other value that is visible everywhere: local_id, workgroup_id, subgroup_*, shared.
  Id source(Op op, Type type, std::uint64_t imm = 0, Loc loc = {});

  /// A pure operation of ops.def. `type` is the result type.
  /// Folds when every operand is a constant, simplifies by exact identities (x + 0 for integers, x * 1, select on a
  /// constant, ...), and returns an equal visible value where there is one.
  Id pure(Op op, Type type, std::initializer_list<Id> args, Loc loc = {});
  Id pure(Op op, Type type, std::span<const Id> args, Loc loc = {});

  /// A read of `width` consecutive scalars; for width > 1 each is read by result(id, k).
  Id load(Type type, int width, const MemoryRef& ref, Loc loc = {});
  /// What a ray hits: see Op::trace_ray. The parts are read by result(id, k).
  Id trace_ray(bool any, std::span<const Id> operands, Loc loc = {});
  void store(Type type, std::span<const Id> values, const MemoryRef& ref, Loc loc = {});
  /// An atomic addition whose result nobody uses: a sum that many threads make. See kGather.
  void gather(Type type, Id value, const MemoryRef& ref, Loc loc = {});
  /// One of the atomic_* operations; `values` are its operands behind base and index.
  Id atomic(Op op, Type type, std::span<const Id> values, const MemoryRef& ref, Loc loc = {});
  Id atomic(Op op, Type type, std::initializer_list<Id> values, const MemoryRef& ref, Loc loc = {}) {
    return atomic(op, type, std::span<const Id>(values.begin(), values.size()), ref, loc);
  }
  void barrier(Loc loc = {});
  void subgroup_barrier(Loc loc = {});
  void fence(Loc loc = {});
  /// One of the subgroup_* operations; `type` is the result's.
  Id subgroup(Op op, Type type, std::span<const Id> args, std::uint64_t imm, Loc loc = {});
  /// The next input of the function that is built; all come before anything else.
  Id input(Type type, Loc loc = {});
  /// Calls a function of the kernel's table; its results are read by result(id, k).
  Id call(std::uint32_t function, std::span<const Id> args, Loc loc = {});
  /// Part k of a wide load, result k of a call, or of an `if_` or `loop` in normal form.
  Id result(Id inst, std::uint32_t k, Type type);

  std::uint32_t local(Type type);
  Id local_get(std::uint32_t local, Loc loc = {});
  void local_set(std::uint32_t local, Id value, Loc loc = {});
  /// Appends the assignment at the present end of `region`, which must be open.
  void local_set_in(RegionId region, std::uint32_t local, Id value, Loc loc = {});

  void open_if(Id condition, Loc loc = {});
  void open_else();
  /// No thread comes to the open block: the caller knows that of the values of the host's it was made with.
  void mark_dead() { states_[region()].is_dead = true; }
  /// Does no thread come here: by mark_dead(), on the side of a branch on a constant that is not taken, after an exit?
  bool in_dead_block() const;
  /// Returns the instruction. In normal form both regions must have ended with equally typed yields.
  Id close_if();
  /// Reopens the `if_` that was closed last in this region, in its else region, which must be empty.
  /// Returns false when the last instruction of the region is no such `if_`.
  bool reopen_else();
  /// No reopening of the `if_` that was closed last in this region.
  void end_chain() { states_[region()].last_if = kNone; }
  /// Marks the open else region as holding the rest of an else-if chain.
  void mark_chain() { states_[region()].is_chain = true; }
  /// Enters the else region of the `if_` that was closed last in this region when that region is marked as a chain.
  bool reopen_chain();

  /// Opens the condition region. `initial`: values carried by the loop (normal form); read by loop_param(k) in the
  /// condition and the body, replaced by the yield that ends the body, and by result(loop, k) afterwards.
  void open_loop(std::span<const Id> initial = {}, Loc loc = {});
  Id loop_param(std::uint32_t k);
  /// Ends the condition region with its value and opens the body.
  void loop_body(Id condition);
  /// Opens the step region, which runs after the body and after `continue`.
  void loop_step();
  Id close_loop();
  /// Is the condition of a loop being built, of an outer one too? Nothing may return from there.
  bool in_condition() const;

  /// break_, continue_ or return_.
  void leave(Op op, Loc loc = {}, std::uint64_t imm = 0);
  void yield(std::span<const Id> values);

  /// The same operation on other operands: folded and shared if it is pure, else appended. Not for operations with
  /// regions, nor for exits and locals, which a copy may have to rename.
  Id copy(const Inst& inst, std::span<const Id> args);

  RegionId region() const { return stack_.back(); }
  /// Grows with each operation after which a read of the same memory may give another value.
  std::uint64_t effects() const { return effects_; }
  /// Depth of the stack of open regions; 1 in the kernel's body.
  std::size_t depth() const { return stack_.size(); }
  /// Is the region open: does what happens now happen inside it?
  bool is_open(RegionId region) const;
  /// Is the region open, and has a loop been opened inside it that is still open?
  bool loop_since(RegionId region) const;
  /// Are these one region (a flat short circuit merges its region into the one around it)?
  bool is_same(RegionId a, RegionId b) const { return resolve(a) == resolve(b); }
  /// Is the value visible here?
  bool is_visible(Id id) const;

  /// Ends the region opened by open_if(condition) and computes "condition and value", or, where the region was opened
  /// by open_if(not condition), "condition or value": a branch when the region does more than a few pure operations,
  /// a plain bit operation otherwise.
  Id close_short_circuit(Id condition, Id value, bool or_else, Loc loc = {});

 private:
  void synchronization(Op op, Loc loc);
  /// What is known of a region beside its instructions.
  struct RegionState {
    bool ended = false;            ///< a break, continue or return has been appended
    bool is_condition = false;     ///< it is the condition of a loop
    bool is_chain = false;         ///< see mark_chain
    bool is_dead = false;          ///< see mark_dead
    RegionId merged_into = kNone;  ///< the region around it, by a flat short circuit
    Id last_if = kNone;            ///< its last instruction when that is an `if_`
  };
  void expect_visible(std::span<const Id> args, Loc loc) const;
  Id append(const Inst& inst, std::span<const Id> args);
  /// Opens an `if_` or `loop` and its first region.
  Id open_control(const Inst& inst, std::span<const Id> args);
  /// Of a branch on a constant, the number of the side that is taken; else -1.
  int known_side(Id branch) const;
  void push(RegionId region, Id id);
  RegionId open_region(RegionId parent);
  [[noreturn]] void refuse_depth() const;
  void close_region();
  Id make(Inst inst, std::span<const Id> args);
  Id simplify(Op op, Type type, std::span<const Id> args, Loc loc);
  RegionId resolve(RegionId region) const;
  Id share(const Inst& inst, std::span<const Id> args);

  Module& module_;
  std::size_t max_depth_;
  std::uint64_t effects_ = 0;
  std::vector<RegionId> stack_{0};
  std::vector<Id> open_;                          ///< control instructions that are open
  std::vector<RegionState> states_;               ///< by region
  std::vector<RegionId> home_;                    ///< by instruction: its region; kNone for those visible everywhere
  std::unordered_map<std::uint64_t, Id> shared_;  ///< by hash: the latest pure value of it
  std::vector<Id> next_shared_;                   ///< by pure value: the one of its hash before it, or kNone
};

/// Appends what reports a message: a record with these values, if there is room, or a count of what was lost.
/// \param kernel  keeps the message; that of the builder, or the kernel whose function the builder builds
/// Errors: Error(invalid_kernel) for a message that is longer than the buffer of failures.
void append_report(Builder& builder, Module& kernel, Message message, std::span<const Id> values, Loc loc);

}  // namespace weft::ir
