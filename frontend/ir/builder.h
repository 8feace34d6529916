// The builder of modules: folds constants, shares equal pure values, keeps the stack of open regions.
#pragma once
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "module.h"

namespace weft::ir {

/// The address of a memory operation: base + index * stride + offset, known to be a multiple of `align`.
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
/// other instruction is a member of exactly one region, and its value is visible in the rest of that region and in the
/// regions inside it. Values of a loop's condition region are also visible in its body and step, because it runs before
/// them. A control instruction joins its region's list when it is closed, so that instructions which must run before it
/// can still be appended to that list while it is open. Instructions appended to a region after its break, continue or
/// return are dropped, because they cannot run.
class Builder {
 public:
  /// The most regions that a kernel may have open at once while it is traced. They are limited because every pass walks
  /// them by recursion.
  static constexpr std::size_t kMaxTracedDepth = 1024;

  /// \param max_depth  the most regions that may be open at once; adjoints nest about four for each that was traced
  explicit Builder(Module& module, std::size_t max_depth = 4 * kMaxTracedDepth);
  Module& module() { return module_; }

  /// A literal. `bits` is truncated to the type's width.
  Id constant(Type type, std::uint64_t bits);
  Id constant_float(Type type, double value);
  Id constant_int(Type type, std::int64_t value);
  Id arg(Type type, std::uint32_t byte_offset);
  Id thread_id() { return source(Op::thread_id, Type::u32); }
  /// Any other value that is visible everywhere: local_id, workgroup_id, subgroup_*, shared.
  Id source(Op op, Type type, std::uint64_t imm = 0, Loc loc = {});

  /// A pure operation of ops.def with a result of this type. It is folded if every operand is a constant, and
  /// simplified by exact identities (x + 0 for integers, x * 1, select on a constant, ...). An equal visible value is
  /// returned instead if there is one.
  Id pure(Op op, Type type, std::initializer_list<Id> args, Loc loc = {});
  Id pure(Op op, Type type, std::span<const Id> args, Loc loc = {});
  /// The Inst::imm of sums, differences and products (is_contractible) that are built from now on.
  void set_rounding(std::uint64_t rounding) { rounding_ = rounding; }
  std::uint64_t rounding() const { return rounding_; }

  /// A load of `width` consecutive scalars; for width > 1 each is read by result(id, k).
  Id load(Type type, int width, const MemoryRef& ref, Loc loc = {});
  /// A search for what a ray hits: see Op::trace_ray. Its parts are read by result(id, k).
  Id trace_ray(bool any, std::span<const Id> operands, Loc loc = {});
  void store(Type type, std::span<const Id> values, const MemoryRef& ref, Loc loc = {});
  /// An atomic addition to a sum that many threads make. Its result is not used: see kGather.
  void gather(Type type, Id value, const MemoryRef& ref, Loc loc = {});
  /// One of the atomic_* operations; `values` are its operands after base and index.
  Id atomic(Op op, Type type, std::span<const Id> values, const MemoryRef& ref, Loc loc = {});
  Id atomic(Op op, Type type, std::initializer_list<Id> values, const MemoryRef& ref, Loc loc = {}) {
    return atomic(op, type, std::span<const Id>(values.begin(), values.size()), ref, loc);
  }
  void barrier(Loc loc = {});
  void subgroup_barrier(Loc loc = {});
  void fence(Loc loc = {});
  Id running_lanes(Loc loc = {});
  /// One of the subgroup_* operations; `type` is that of the result.
  Id subgroup(Op op, Type type, std::span<const Id> args, std::uint64_t imm, Loc loc = {});
  /// The next input of the function that is built. Inputs come before all other instructions.
  Id input(Type type, Loc loc = {});
  /// A call of a function of the kernel's table; its results are read by result(id, k).
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
  /// Marks the open block as one that no thread reaches, which callers know from values of the host.
  void mark_dead() { states_[region()].is_dead = true; }
  /// Returns whether no thread comes here: mark_dead() says so, a branch on a constant does not take this side, or an
  /// exit stands before.
  bool in_dead_block() const;
  /// Closes the `if_` and returns it. In normal form both of its regions must have ended with equally typed yields.
  Id close_if();
  /// Gives the `if_` that was closed last in this region an else region, and opens that. Returns false if the last
  /// instruction of the region is no `if_`, or one that has an else region.
  bool reopen_else();
  /// Forbids the `if_` that was closed last in this region to be reopened.
  void end_chain() { states_[region()].last_if = kNone; }
  /// Marks the open else region as one that holds the rest of an else-if chain.
  void mark_chain() { states_[region()].is_chain = true; }
  /// Enters the else region of the `if_` that was closed last in this region, if mark_chain() has marked that else
  /// region. Returns whether it did.
  bool reopen_chain();

  /// Opens a loop and its condition region.
  /// \param initial  the first values of those that the loop carries, in normal form. loop_param(k) reads such a value
  ///                 in the condition and the body, the yield that ends the body replaces it, and result(loop, k) reads
  ///                 it after the loop
  void open_loop(std::span<const Id> initial = {}, Loc loc = {});
  Id loop_param(std::uint32_t k);
  /// Ends the condition region with its value, and opens the body.
  void loop_body(Id condition);
  /// Opens the step region, which runs after the body and after `continue`.
  void loop_step();
  Id close_loop();
  /// Returns whether the condition of a loop is being built, be it an outer loop's. A condition may not return.
  bool in_condition() const;

  /// Appends the exit `op`: break_, continue_ or return_.
  void leave(Op op, Loc loc = {}, std::uint64_t imm = 0);
  void yield(std::span<const Id> values);

  /// Makes the operation of `inst` on other operands: folded and shared if it is pure, else appended. Not for
  /// operations with regions, exits, and accesses to locals, because a copy may have to rename these.
  Id copy(const Inst& inst, std::span<const Id> args);

  RegionId region() const { return stack_.back(); }
  /// A number that grows with each operation after which a read of the same memory may give another value.
  std::uint64_t effects() const { return effects_; }
  /// The number of open regions; 1 in the kernel's body.
  std::size_t depth() const { return stack_.size(); }
  /// Returns whether the region is open, so that what is appended now is inside it.
  bool is_open(RegionId region) const;
  /// Returns whether the region is open and a loop inside it is open too.
  bool loop_since(RegionId region) const;
  /// Returns whether two regions are one: a flat short circuit merges its region into the one around it.
  bool is_same(RegionId a, RegionId b) const { return resolve(a) == resolve(b); }
  /// Returns whether the value is visible here.
  bool is_visible(Id id) const;

  /// Ends the region opened by open_if(condition) and computes "condition and value"; or, with `or_else`, ends one
  /// opened by open_if(not condition) and computes "condition or value". The branch stays if the region does more than
  /// a few pure operations; otherwise a bit operation takes its place.
  Id close_short_circuit(Id condition, Id value, bool or_else, Loc loc = {});

 private:
  void synchronization(Op op, Loc loc);
  /// What the builder knows of a region beside its instructions.
  struct RegionState {
    bool ended = false;            ///< a break, continue, return or yield has been appended
    bool is_condition = false;     ///< it is the condition of a loop
    bool is_chain = false;         ///< see mark_chain
    bool is_dead = false;          ///< see mark_dead
    RegionId merged_into = kNone;  ///< the region around it, into which a flat short circuit has merged it
    Id last_if = kNone;            ///< its last instruction if that is an `if_`, unless end_chain() was called
  };
  void expect_visible(std::span<const Id> args, Loc loc) const;
  Id append(const Inst& inst, std::span<const Id> args);
  /// Opens an `if_` or `loop` and its first region.
  Id open_control(const Inst& inst, std::span<const Id> args);
  /// The number of the side that a branch on a constant takes; -1 for other branches.
  int known_side(Id branch) const;
  void push(RegionId region, Id id);
  RegionId open_region(RegionId parent);
  [[noreturn]] void refuse_depth() const;
  void close_region();
  Id make(Inst inst, std::span<const Id> args);
  Id rounded(std::uint64_t rounding, Op op, Type type, std::span<const Id> args, Loc loc);
  Id simplify(Op op, Type type, std::span<const Id> args, Loc loc);
  RegionId resolve(RegionId region) const;
  Id share(const Inst& inst, std::span<const Id> args);

  Module& module_;
  std::size_t max_depth_;
  std::uint64_t effects_ = 0;
  std::uint64_t rounding_ = 0;
  std::vector<RegionId> stack_{0};
  std::vector<Id> open_;                          ///< control instructions that are open
  std::vector<RegionState> states_;               ///< by region
  std::vector<RegionId> home_;                    ///< by instruction: its region; kNone if it is visible everywhere
  std::unordered_map<std::uint64_t, Id> shared_;  ///< by hash: the latest pure value with it
  std::vector<Id> next_shared_;                   ///< by pure value: the previous one with its hash, or kNone
};

/// Appends the code that reports a message: it writes a record with these values if there is room, else it counts the
/// message as lost.
/// \param kernel  keeps the message: the builder's module, or the kernel whose function the builder builds
/// Errors: Error(invalid_kernel) for a message that is longer than the buffer of failures.
void append_report(Builder& builder, Module& kernel, Message message, std::span<const Id> values, Loc loc);

}  // namespace weft::ir
