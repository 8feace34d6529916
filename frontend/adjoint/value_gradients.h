// The gradients of a kernel's values, while its adjoint is written.
#pragma once
#include <utility>

#include "code.h"

namespace weft::ir {

/// Gathers the gradients of values. A gradient is an instruction as long as the walk stays in the value's region. One
/// that changes inside a branch or loop is kept in a mutable local around it.
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
  /// Takes the gradient that a value has gathered, and leaves none; kNone without one.
  Id take(Id old) { return std::exchange(gradient_[old], kNone); }

  /// Moves the gradients of these values to locals, unless they are in some already. Called before a branch or loop;
  /// unspill() is called after it.
  Spilled spill(std::span<const Id> values);
  void unspill(const Spilled& spilled);

  /// Adds to the gradient of result number k of a branch, loop or call.
  void add_to_result(Id source, std::uint32_t k, Id gradient);
  /// Takes the gradients of results, by number, up to the last one that has any; kNone for those without.
  std::vector<Id> take_results(Id source) { return std::exchange(pending_[source], {}); }

 private:
  Id sum(Id a, Id b, Type type) { return a == kNone ? b : code_.pure(Op::add, type, {a, b}); }

  AdjointCode& code_;
  std::vector<Id> gradient_;              ///< by value: its gradient so far, in the present region; kNone: none
  std::vector<std::uint32_t> spill_;      ///< by value: the local that holds its gradient; kNone: none
  std::vector<std::vector<Id>> pending_;  ///< by branch, loop or call: gradients of its results
};

}  // namespace weft::ir
