// The gradients of a kernel's values while its adjoint is written.
#pragma once
#include <utility>

#include "code.h"

namespace weft::ir {

/// Gradients of values are instructions as long as the walk stays in the region where the value lives; those that
/// change inside a branch or loop are kept in a mutable local around it.
class ValueGradients {
 public:
  /// Values and the locals in which their gradients are kept.
  using Spilled = std::vector<std::pair<Id, std::uint32_t>>;

  explicit ValueGradients(AdjointCode& code)
      : code_(code),
        gradient_(code.from.insts.size(), kNone),
        spill_(code.from.insts.size(), kNone),
        pending_(code.from.insts.size()) {}

  void add(Id old, Id gradient);
  /// What has gathered, which is none any more; kNone for nothing.
  Id take(Id old) { return std::exchange(gradient_[old], kNone); }

  /// Around a branch or loop: the gradients of these values, where they are not in locals already.
  Spilled spill(std::span<const Id> values);
  void unspill(const Spilled& spilled);

  /// Of result number k of a branch, loop or call.
  void add_to_result(Id source, std::uint32_t k, Id gradient);
  /// By result, as far as there are any; kNone for nothing.
  std::vector<Id> take_results(Id source) { return std::exchange(pending_[source], {}); }

 private:
  Id sum(Id a, Id b, Type type) { return a == kNone ? b : code_.pure(Op::add, type, {a, b}); }

  AdjointCode& code_;
  std::vector<Id> gradient_;              ///< by value: what has gathered in the present region; kNone: nothing
  std::vector<std::uint32_t> spill_;      ///< by value: the local that gathers it; kNone: none
  std::vector<std::vector<Id>> pending_;  ///< by branch, loop or call: gradients of its results
};

}  // namespace weft::ir
