// Tools of all passes: copying a module instruction by instruction through a Builder, and uses of locals.
#pragma once
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "../ir/builder.h"

namespace weft::ir {

/// Builds a new module from an old one; values are translated by `map_`.
class Rewriter {
 protected:
  /// The new module has the inputs of the old one and calls the same functions.
  explicit Rewriter(const Module& from);

  /// The new value for an old one; creates constants, arguments and the thread's number at their first use.
  Id value(Id old);
  void map(Id old, Id made) { map_[old] = made; }
  /// The new values for all operands of an old instruction. Valid until the next call.
  std::span<const Id> values(Id old);
  /// Copies an instruction that has no regions, is no exit and uses no local. A `result` is looked up among the values
  /// given to inline_results().
  void copy(Id old);
  /// Sets the results of `old`, a branch or loop that has not been rebuilt, to these new values.
  void inline_results(Id old, std::vector<Id> results);
  /// Opens the loop's condition region with these carried values and maps the first of its parameters.
  void open_loop(Id old, std::span<const Id> initial);

  /// The region taken by a branch whose condition is known, 0 or 1; -1 if it is not known.
  int taken(Id branch);
  /// Whether the branch's region ends with results.
  bool has_results(Id branch) const;

  const Module& from_;
  Module out_;
  Builder builder_;

 private:
  std::vector<Id> map_;
  std::vector<Id> scratch_;
  std::unordered_map<Id, std::vector<Id>> inlined_;
};

/// A rewriter that may close a block with values that are used after it: it keeps them in locals.
class KeepingRewriter : protected Rewriter {
 protected:
  explicit KeepingRewriter(const Module& from);

  /// Counts one use of an old value, and makes it visible here. Each operand of each old instruction is used once.
  Id use(Id old);
  void use_all(Id inst);
  std::vector<Id> used(Id inst);
  /// Keeps the old values that have uses to come, because their block is about to close.
  void keep(std::span<const Id> defined);
  /// Takes a result of the old branch from this local from now on.
  void keep_result(Id result, std::uint32_t local) { kept_in_[result] = local; }
  bool is_kept(Id old) const { return kept_in_[old] != kNone; }

 private:
  /// Stands for a local: the value is computed again at each use.
  static constexpr std::uint32_t kAgain = kNone - 1;

  void find_addresses();
  void keep(Id old);
  Id value_here(Id old);

  std::vector<std::uint32_t> uses_left_;  ///< by old instruction: uses that have not been rebuilt
  std::vector<std::uint32_t> kept_in_;    ///< by old instruction: the local that holds its value, kAgain or kNone
  /// By old instruction: it is a pure part of an address. Through a local nobody could tell the address's array.
  std::vector<char> is_address_;
};

/// Runs a pass on the functions of a kernel, called before calling ones, then on its body. While the pass runs on a
/// function, that module's own table holds the functions before it.
Module for_each_body(const Module& kernel, const std::function<Module(const Module&)>& pass);

/// Removes functions that nothing calls or takes derivatives from.
void drop_unused_functions(Module& kernel);

/// forward() of one body.
Module forward_body(const Module& module);

/// sweep() of one body: the last step of the other passes.
/// \param dropped  by instruction: assignments to remove even if the local is read; may be empty
Module sweep_body(const Module& module, const std::vector<char>& dropped = {});

/// Finds where a module's locals are read and assigned, in the order of the walk through its regions.
class LocalUses {
 public:
  explicit LocalUses(const Module& module);

  /// Locals assigned in a region and the regions inside it; with repetitions.
  std::span<const std::uint32_t> sets(RegionId region) const;
  /// Locals assigned in all regions of a branch or loop.
  std::span<const std::uint32_t> sets(const Inst& inst) const;

  /// Whether the loop's condition region assigns to a local that may be read after the loop or in a later iteration.
  bool escapes_condition(Id loop) const;

 private:
  struct Use {
    std::uint32_t position;  ///< in the walk
    RegionId region;
    bool set;
  };
  struct Range {
    std::uint32_t first = 0, last = 0;          ///< range of positions
    std::uint32_t set_first = 0, set_last = 0;  ///< range in all_sets_
  };
  void walk(RegionId region);
  bool escapes(std::uint32_t local, const Inst& loop) const;

  const Module& module_;
  std::vector<Range> ranges_;            ///< by region
  std::vector<std::uint32_t> all_sets_;  ///< locals in order of assignment
  std::vector<std::vector<Use>> uses_;   ///< by local
  std::uint32_t position_ = 0;
};

}  // namespace weft::ir
