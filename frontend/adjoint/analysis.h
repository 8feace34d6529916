// The analysis of a kernel for its adjoint: where gradients flow, which values and stores are run again, what loops
// carry.
#pragma once
#include <optional>
#include <vector>

#include "adjoint.h"

namespace weft::ir {

/// The use that a kernel in normal form makes of one of its arrays.
struct ArrayUse {
  bool gradient = false;     ///< it has gradient storage and holds real numbers
  bool overlaps = false;     ///< another array of its group overlaps it
  bool stored = false;       ///< it is the target of a store
  bool atomic = false;       ///< it is the target of an atomic operation
  bool own_element = true;   ///< each thread loads and stores at most one element, its own
  bool stores_own = true;    ///< each thread stores at most one element, its own
  bool narrow = false;       ///< it holds float16 numbers
  std::vector<int> element;  ///< which element is the thread's own: see Analysis::own_element()
  std::uint32_t group = 0;   ///< see AdjointOptions::groups
};

/// The first accesses of a kernel to the arrays of a group, in the order of the regions; kNone without one.
struct GroupAccesses {
  Id change = kNone;  ///< the first that changes elements
  Id other = kNone;   ///< the first that changes elements by another operation than `change`, or of another type
  Id load = kNone;    ///< the first load through which a gradient flows
};

/// The entries that code makes in the undo log.
struct LogSize {
  std::uint32_t most = 0;  ///< of one thread
  bool certain = true;     ///< `most` is close to what threads need; false if branches decide what loops make
  bool even = true;        ///< all ways through the branches make equally many
  bool loops = false;      ///< a loop makes some
};

/// A loop whose trips are known without running it, because it runs as long as a counter is below (above) a bound.
struct ClosedTrips {
  std::uint32_t param = 0;  ///< the number of the counter among the carried values
  Id bound = kNone;
};

/// The way in which one loop is reversed.
struct LoopPlan {
  std::vector<std::uint32_t> state;  ///< carried values that are saved
  /// Carried integers that grow by a constant, and that constant.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> affine;
  std::optional<ClosedTrips> trips;
  bool replays_stores = false;  ///< its iterations store elements that needed loads read
  /// Returns whether each iteration can be computed by itself, because it needs only counters.
  bool is_direct() const { return state.empty() && !replays_stores; }
};

/// The accesses of a function of the kernel's table that has a gradient function, or is one.
struct CalledFunction {
  std::vector<Access> accesses;           ///< by input: through that address
  std::vector<Access> gradient_accesses;  ///< by input: those of its gradient function through that address
  std::vector<char> has_gradient;         ///< by input: the gradient function names the gradient of that array
  Access held = Access::none;             ///< those of both through addresses that they load
};

/// The memory that a memory operation accesses: an array parameter, an array that an element of another holds, reports,
/// an array of the kernel (of a workgroup or of each thread), or an array parameter as the launch has left it.
struct Root {
  enum Kind : std::uint8_t { array, held, report, shared, after };
  Kind kind = held;
  std::uint32_t param = 0;  ///< of `array` and `after`; for `shared`, the number of the kernel's array
};

/// The copies of a region's code that the adjoint may have: one whose instructions are reversed right after it, one
/// that takes the loop's state a step further, and one that only runs through.
enum CopyMask : std::uint8_t { kAdjointCopy = 1, kStepCopy = 2, kRunCopy = 4, kAllCopies = 7 };

class Analysis {
 public:
  /// \param module  in normal form, with calls only of functions that have gradient functions
  /// Errors: Error(not_differentiable).
  Analysis(const Module& module, const AdjointOptions& options);

  bool active(Id id) const { return varied_[id] && useful_[id]; }
  /// Returns whether a gradient flows from this value to its operand number k.
  bool passes_gradient(Id id, int k) const;
  /// The values that the gradients of a pure value's operands are computed from, as DerivativeUse bits.
  std::uint8_t derivative_uses_of(Id id) const;
  /// The copies that need the value, as CopyMask bits.
  std::uint8_t needed(Id id) const { return needed_[id]; }
  /// Returns whether this store, or a store in this branch or loop, must be made again for loads that are needed.
  bool replays(Id id) const { return replays_[id]; }
  /// Returns whether this instruction, or one inside this branch or loop, has something to reverse.
  bool reverses(Id id) const { return reverses_[id]; }
  /// Returns whether the branch or loop is run through for its results, its trips or its stores.
  bool runs(Id id) const { return runs_[id]; }
  /// The branch or loop that directly contains the instruction; kNone in the body.
  Id owner(Id id) const { return owner_[id]; }
  /// Returns whether `inner` is inside the branch or loop.
  bool is_inside(Id inner, Id control) const;
  Root root(Id base) const;
  /// Returns whether the instruction is an atomic_min or atomic_max of real numbers that have gradients.
  bool is_extremum(Id id) const;
  std::vector<Extremum> extrema() const;
  /// The arrays to whose gradients threads add in an unknown order; none without AdjointOptions::deterministic.
  /// Errors: Error(not_differentiable) if such an addition cannot be exact.
  std::vector<ExactSum> exact_sums() const;
  const ArrayUse& array(std::uint32_t param) const { return arrays_[param]; }
  const std::vector<Id>& results(Id control) const { return results_[control]; }
  const LoopPlan& plan(Id loop) const { return plans_[loop]; }
  /// The values from outside the branch or loop whose gradients change inside it.
  const std::vector<Id>& outer(Id control) const { return outer_[control]; }
  /// The groups of arrays that an instruction, or any inside it, loads from or stores to.
  const std::vector<std::uint32_t>& loaded_groups(Id id) const { return loaded_groups_[id]; }
  const std::vector<std::uint32_t>& stored_groups(Id id) const { return stored_groups_[id]; }
  /// Returns whether any array of the group is the target of a store.
  bool stores_any(std::uint32_t group) const;
  /// The constant that each iteration adds to carried integer k. Callers know that there is one.
  std::uint64_t step_of(Id loop, std::uint32_t k) const { return *constant_step(loop, k); }
  /// The size of the undo log; nothing if only a run can tell, because of loops without constant bounds.
  std::optional<LogSize> log_entries() const;
  bool has_slots() const { return has_slots_; }
  bool has_log() const { return has_log_; }
  /// Returns whether the gradient function of this call names the gradient of an array that has one.
  bool touches_gradients(Id call) const;
  /// The coordinates of the thread that index the element of a memory operation, in the order of the array's
  /// dimensions. Each occurs once, so no two threads access one element. Empty for any other index.
  std::vector<int> own_element(Id memory) const;
  Id yield_of(RegionId region) const { return module_.regions[region].insts.back(); }
  Id yielded(RegionId region, std::uint32_t k) const { return module_.arg(yield_of(region), static_cast<int>(k)); }
  Id param(Id loop, std::uint32_t k) const { return module_.regions[module_[loop].regions[0]].insts[k]; }

 private:
  void survey(RegionId region, Id owner);
  void survey_memory(Id id);
  /// Returns whether an address was loaded from an array as the launch has left it.
  bool is_found_after_launch(Id address) const;
  void survey_functions();
  void survey_call(Id id);
  bool add_coordinates(const Param& array, Id index, std::vector<int>& to) const;
  void check_runs_again(Id call) const;
  bool is_varied_call(Id id) const;
  bool is_useful_call(Id id) const;
  void group_arrays();
  [[noreturn]] void refuse(Id id, const std::string& what) const;
  bool flow_varied(RegionId region);
  bool flow_useful(RegionId region);
  bool set(std::vector<char>& flags, Id id, bool value);
  bool find_reverses(RegionId region);
  bool is_like(Id a, Id b) const;
  std::vector<GroupAccesses> group_accesses() const;
  void check(RegionId region, const std::vector<GroupAccesses>& groups);
  void check_memory(Id id, const std::vector<GroupAccesses>& groups);
  void find_outer();
  void find_plans();
  std::optional<ClosedTrips> find_trips(Id loop) const;
  std::optional<std::uint64_t> constant_step(Id loop, std::uint32_t k) const;

  void need_for_reverse();
  void mark(Id id, std::uint8_t copies);
  void operand(Id user, Id value, std::uint8_t copies);
  void follow(Id id, std::uint8_t copies);
  void need_memory(Id id);
  void run(Id control);
  void replay(std::uint32_t group);

  bool is_varying_load(Id id) const;
  bool is_gradient_store(Id id) const;
  std::optional<std::uint32_t> constant_trips(Id loop, const ClosedTrips& closed) const;
  std::optional<LogSize> stores_in(RegionId region, bool nested) const;
  std::uint32_t group_of(Id memory) const;

  const Module& module_;
  const AdjointOptions& options_;
  std::vector<CalledFunction> functions_;
  std::vector<Id> owner_;
  std::vector<Id> order_;  ///< all instructions, in the order of the regions
  std::vector<ArrayUse> arrays_;
  std::vector<char> varied_, useful_, replays_, reverses_, runs_;
  std::vector<std::uint8_t> needed_;
  std::vector<std::vector<Id>> results_, outer_;
  std::vector<std::vector<std::uint32_t>> loaded_groups_;  ///< by instruction
  std::vector<char> held_reads_;                           ///< by instruction: it reads an array that an element holds
  std::vector<std::vector<std::uint32_t>> stored_groups_;  ///< by instruction
  bool held_changes_ = false;  ///< something changes an array that an element holds, unknown which and of which type
  std::vector<LoopPlan> plans_;
  std::vector<char> replayed_groups_;
  std::vector<std::pair<Id, std::uint8_t>> work_;
  bool has_slots_ = false, has_log_ = false;
};

}  // namespace weft::ir
