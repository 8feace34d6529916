// The gradients of a kernel's arrays, while its adjoint is written.
#pragma once
#include "code.h"

namespace weft::ir {

/// Emits code that adds to the gradients of elements, and that takes the gradients of elements which the kernel stored.
class ArrayGradients {
 public:
  /// \param deterministic  see AdjointOptions
  ArrayGradients(AdjointCode& code, bool deterministic) : code_(code), deterministic_(deterministic) {}

  /// The place of the gradient that belongs to number `part` of those that a memory operation of the kernel accesses.
  MemoryRef place(Id memory, std::uint32_t part);
  /// Adds to the gradient at place(memory, part).
  void add(Id memory, std::uint32_t part, Id gradient);
  /// Takes the gradients of the numbers that a store wrote; they are zero from then on.
  std::vector<Id> take(Id store);

 private:
  void add_exactly(Id memory, std::uint32_t part, Id gradient);
  void check_owner(Id memory);
  bool follows_thread(Id index) const;
  Id byte_in_array(Id memory, std::uint32_t part);
  std::uint32_t param_of(Id memory) const { return code_.analysis.root(code_.from.arg(memory, 0)).param; }

  AdjointCode& code_;
  const bool deterministic_;
};

}  // namespace weft::ir
