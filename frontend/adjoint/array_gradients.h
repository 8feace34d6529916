// The gradients of a kernel's arrays while its adjoint is written.
#pragma once
#include "code.h"

namespace weft::ir {

/// Adds to the gradients of elements, and takes those of elements that the kernel stored.
class ArrayGradients {
 public:
  /// \param deterministic  see AdjointOptions
  ArrayGradients(AdjointCode& code, bool deterministic) : code_(code), deterministic_(deterministic) {}

  /// Where the gradient lies of the number `part` of what the kernel accesses.
  MemoryRef place(Id memory, std::uint32_t part);
  /// Adds to it.
  void add(Id memory, std::uint32_t part, Id gradient);
  /// The gradients of what a store wrote, by number; they are zero from then on.
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
