// What of a kernel its adjoint needs: where gradients flow, which values and stores are run again, what loops carry.
#pragma once
#include <optional>
#include <vector>

#include "adjoint.h"

namespace weft::ir {

/// How a kernel in normal form treats one of its arrays.
struct ArrayUse {
  bool gradient = false;     ///< it has gradient storage and holds real numbers
  bool overlaps = false;     ///< with another of its group
  bool stored = false;       ///< plainly stored
  bool atomic = false;       ///< the target of an atomic operation
  bool own_element = true;   ///< each thread loads and stores one element of its own only, if any
  bool stores_own = true;    ///< the same of the stores alone
  bool narrow = false;       ///< it holds float16 numbers
  std::vector<int> element;  ///< whose element: the coordinates of the thread, in the order of the dimensions
  std::uint32_t group = 0;   ///< arrays of one group may overlap: the number of one of them
};

/// What a kernel does to the arrays of a group: instructions in the order of the regions, or kNone.
struct GroupAccesses {
  Id change = kNone;  ///< the first that changes elements
  Id other = kNone;   ///< the first that does so in another way, or to numbers of another type
  Id load = kNone;    ///< the first load through which a gradient flows
};

/// What code puts into the undo log.
struct LogSize {
  std::uint32_t most = 0;
  bool certain = true;  ///< not far more than a thread needs, as in a loop that some branch has
  bool even = true;     ///< whichever way branches go
  bool loops = false;   ///< a loop does
};

/// A loop whose trips are known without running it: as long as the counter is below (above) a bound.
struct ClosedTrips {
  std::uint32_t param = 0;  ///< number of the counter among the carried values
  Id bound = kNone;
};

/// One loop as it is reversed.
struct LoopPlan {
  std::vector<std::uint32_t> state;                             ///< carried values that are saved
  std::vector<std::pair<std::uint32_t, std::uint64_t>> affine;  ///< carried integers that grow by a constant, and that
  std::optional<ClosedTrips> trips;
  bool replays_stores = false;  ///< its iterations store what they or others load
  /// Nothing but counters is needed of an iteration: any can be computed by itself.
  bool is_direct() const { return state.empty() && !replays_stores; }
};

/// A function that has a gradient function of its own.
struct CalledFunction {
  std::vector<Access> accesses;           ///< by input: what it does through that address
  std::vector<Access> gradient_accesses;  ///< by input: what its gradient function does there
  std::vector<char> has_gradient;         ///< by input: the gradient function names the gradient of that array
  Access held = Access::none;             ///< what both do through addresses that they load
};

/// Where a memory operation goes.
struct Root {
  enum Kind : std::uint8_t { array, held, report, shared, after };
  Kind kind = held;
  std::uint32_t param = 0;  ///< of an array
};

/// Copies of a region's code in the adjoint: reversed there and then, one more step of its loop, run through.
enum CopyMask : std::uint8_t { kAdjointCopy = 1, kStepCopy = 2, kRunCopy = 4, kAllCopies = 7 };

class Analysis {
 public:
  /// \param module  in normal form, with calls only of functions that have gradient functions
  /// Errors: Error(not_differentiable).
  Analysis(const Module& module, const AdjointOptions& options);

  bool active(Id id) const { return varied_[id] && useful_[id]; }
  /// Does a gradient flow from this pure value to its operand number k?
  bool passes_gradient(Id id, int k) const;
  /// What the gradients that flow from this pure value are computed from: DerivativeUse, joined.
  std::uint8_t derivative_uses_of(Id id) const;
  /// In which copies the value is needed.
  std::uint8_t needed(Id id) const { return needed_[id]; }
  /// Must this store, or a store in this branch or loop, be done again for loads that are needed?
  bool replays(Id id) const { return replays_[id]; }
  /// Is there anything to reverse in this branch or loop?
  bool reverses(Id id) const { return reverses_[id]; }
  /// Is the branch or loop run through for its results, its trips or its stores?
  bool runs(Id id) const { return runs_[id]; }
  /// The branch or loop that the instruction stands in.
  Id owner(Id id) const { return owner_[id]; }
  /// Is `inner` inside the branch or loop?
  bool is_inside(Id inner, Id control) const;
  Root root(Id base) const;
  /// Is it an atomic_min or atomic_max of real numbers that have gradients?
  bool is_extremum(Id id) const;
  std::vector<Extremum> extrema() const;
  /// With AdjointOptions::deterministic: the arrays to whose gradients threads add in an order that is not known.
  std::vector<ExactSum> exact_sums() const;
  const ArrayUse& array(std::uint32_t param) const { return arrays_[param]; }
  const std::vector<Id>& results(Id control) const { return results_[control]; }
  const LoopPlan& plan(Id loop) const { return plans_[loop]; }
  /// Values from outside whose gradient changes inside the branch or loop.
  const std::vector<Id>& outer(Id control) const { return outer_[control]; }
  /// Groups of arrays that an instruction, or any inside it, loads from or stores to; each once.
  const std::vector<std::uint32_t>& loaded_groups(Id id) const { return loaded_groups_[id]; }
  const std::vector<std::uint32_t>& stored_groups(Id id) const { return stored_groups_[id]; }
  /// Is any array of the group plainly stored?
  bool stores_any(std::uint32_t group) const;
  /// What is added to a carried integer in each iteration; it is known to be constant.
  std::uint64_t step_of(Id loop, std::uint32_t k) const { return *constant_step(loop, k); }
  /// Of the undo log; nothing where only a run tells: by loops without constant bounds.
  std::optional<LogSize> log_entries() const;
  bool has_slots() const { return has_slots_; }
  bool has_log() const { return has_log_; }
  /// Does the gradient function of this call read or add to the gradient of an array that has one?
  bool touches_gradients(Id call) const;
  /// The coordinates of the thread, each once, that index the element of a memory operation in the order of the array's
  /// dimensions: no two threads mean one element. Empty for any other index.
  std::vector<int> own_element(Id memory) const;
  Id yield_of(RegionId region) const { return module_.regions[region].insts.back(); }
  Id yielded(RegionId region, std::uint32_t k) const { return module_.arg(yield_of(region), static_cast<int>(k)); }
  Id param(Id loop, std::uint32_t k) const { return module_.regions[module_[loop].regions[0]].insts[k]; }

 private:
  void survey(RegionId region, Id owner);
  void survey_memory(Id id);
  /// Whether an address was loaded from an array as the launch has left it.
  bool found_behind_launch(Id address) const;
  void survey_functions();
  void survey_call(Id id);
  int coordinate(Id value) const;
  bool is_rest(Id value, int k) const;
  bool is_quotient(Id value, int k) const;
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
  bool held_changes_ = false;  ///< something changes one: which, is not known, nor as numbers of which type
  std::vector<LoopPlan> plans_;
  std::vector<char> replayed_groups_;
  std::vector<std::pair<Id, std::uint8_t>> work_;
  bool has_slots_ = false, has_log_ = false;
};

}  // namespace weft::ir
