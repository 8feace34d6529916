// The code of an adjoint as it is written: instructions, and which of them stand for the values of the kernel.
#pragma once
#include <vector>

#include "../ir/builder.h"
#include "analysis.h"

namespace weft::ir {

/// Numbers of the parameters that an adjoint has beside its kernel's; kNone: it has none such.
struct ExtraParams {
  std::vector<std::uint32_t> gradient, owners, sums;  ///< by parameter of the kernel
  std::uint32_t scratch = kNone, log = kNone, first_thread = kNone, lanes = kNone;
};

/// What all parts of the walk write with. `kernel` is in normal form, `out` has the interface of the adjoint.
class AdjointCode {
 public:
  AdjointCode(const Module& kernel, const Analysis& analysis, const ExtraParams& extra, Module& out)
      : from(kernel), analysis(analysis), extra(extra), out(out), builder(out), map_(kernel.insts.size(), kNone) {}
  AdjointCode(const AdjointCode&) = delete;

  /// Names the thread; stands first.
  void enter();

  /// The newest copy of a value of the kernel.
  /// Errors: Error(not_differentiable) for one that depends on subgroups.
  Id value(Id old);
  void map(Id old, Id now) { map_[old] = now; }
  /// The operands of an instruction from number `first` on.
  std::vector<Id> values(Id old, std::uint32_t first);

  Id constant(Type type, std::int64_t v) { return builder.constant_int(type, v); }
  Id u32(std::uint32_t v) { return builder.constant(Type::u32, v); }
  Id u64(std::uint64_t v) { return builder.constant(Type::u64, v); }
  Id pure(Op op, Type type, std::initializer_list<Id> args, Loc loc = {}) { return builder.pure(op, type, args, loc); }
  Id get(std::uint32_t local) { return builder.local_get(local); }
  void set(std::uint32_t local, Id v) { builder.local_set(local, v); }
  /// The numbers of a load, each for itself.
  std::vector<Id> load(Type type, std::uint32_t width, const MemoryRef& at, Loc loc);

  Id array_base(std::uint32_t param) { return builder.arg(Type::u64, out.params[param].offset); }
  /// The number `part` of what a load, store or atomic operation of the kernel accesses.
  MemoryRef place(Id memory, std::uint32_t part);
  /// An index as u64.
  Id unsigned_index(Id index);

  const Module& from;
  const Analysis& analysis;
  const ExtraParams& extra;
  Module& out;
  Builder builder;
  /// The thread of the launch; its place in the scratch, and how many places there are.
  Id thread = kNone, lane = kNone, lanes = kNone, lanes64 = kNone;

 private:
  std::vector<Id> map_;
};

}  // namespace weft::ir
