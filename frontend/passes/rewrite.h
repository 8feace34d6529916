// What the passes share: copying a module instruction by instruction through a Builder, and where locals are used.
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

  /// The new value for an old one; makes constants, arguments and the thread's number when they are met first.
  Id value(Id old);
  void map(Id old, Id made) { map_[old] = made; }
  /// The new values for all operands of an old instruction. Valid until the next call.
  std::span<const Id> values(Id old);
  /// Copies an instruction that has no regions, is no exit and uses no local. `result` is looked up among the values
  /// that inline_results() was told.
  void copy(Id old);
  /// The branch or loop `old` has not been rebuilt: its results are these values, already new.
  void inline_results(Id old, std::vector<Id> results);
  /// Opens the loop's condition region with these carried values and maps the first of its parameters.
  void open_loop(Id old, std::span<const Id> initial);

  /// The region taken by a branch whose condition is known: 0 or 1; -1 when it is not known.
  int taken(Id branch);
  /// Does the branch's region end with results?
  bool has_results(Id branch) const;

  const Module& from_;
  Module out_;
  Builder builder_;

 private:
  std::vector<Id> map_;
  std::vector<Id> scratch_;
  std::unordered_map<Id, std::vector<Id>> inlined_;
};

/// A rewriter that may close a block in which values stand that are used after it: those are kept in locals.
class KeepingRewriter : protected Rewriter {
 protected:
  explicit KeepingRewriter(const Module& from);

  /// Counts one use of an old value, and makes it visible here. Each operand of each old instruction is used once.
  Id use(Id old);
  void use_all(Id inst);
  std::vector<Id> used(Id inst);
  /// Of these old values, those that have uses to come are kept: the block in which they stand is about to close.
  void keep(std::span<const Id> defined);
  /// Results of the old branch are in this local from now on.
  void keep_result(Id result, std::uint32_t local) { kept_in_[result] = local; }
  bool is_kept(Id old) const { return kept_in_[old] != kNone; }

 private:
  /// In place of a local: the value is computed again where it is used.
  static constexpr std::uint32_t kAgain = kNone - 1;

  void find_addresses();
  void keep(Id old);
  Id value_here(Id old);

  std::vector<std::uint32_t> uses_left_;  ///< by old instruction: uses that have not been rebuilt
  std::vector<std::uint32_t> kept_in_;    ///< by old instruction: the local that holds its value, kAgain or kNone
  /// By old instruction: a pure part of where some access to memory goes. In a local nobody would see of which array.
  std::vector<char> is_address_;
};

/// Runs a pass on the functions of a kernel, the called before the calling ones, then on its body. While it runs on a
/// function, that module's own table holds the functions before it.
Module for_each_body(const Module& kernel, const std::function<Module(const Module&)>& pass);

/// Removes functions that nothing calls any more, nor takes derivatives from.
void drop_unused_functions(Module& kernel);

/// What forward() does to one body.
Module forward_body(const Module& module);

/// What sweep() does to one body: the last step of the other passes. `dropped`: by instruction,
/// assignments to locals that are to be removed whoever reads the local; may be empty.
Module sweep_body(const Module& module, const std::vector<char>& dropped = {});

/// Where a module's locals are read and assigned, in the order of the walk through its regions.
class LocalUses {
 public:
  explicit LocalUses(const Module& module);

  /// Locals assigned in a region and the regions inside it; with repetitions.
  std::span<const std::uint32_t> sets(RegionId region) const;
  /// Locals assigned in all regions of a branch or loop.
  std::span<const std::uint32_t> sets(const Inst& inst) const;

  /// Does the loop's condition region assign to a local that may be read after the loop or in a later iteration?
  bool escapes_condition(Id loop) const;

 private:
  struct Use {
    std::uint32_t position;  ///< in the walk
    RegionId region;
    bool set;
  };
  struct Range {
    std::uint32_t first = 0, last = 0;          ///< of positions
    std::uint32_t set_first = 0, set_last = 0;  ///< of all_sets_
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
