// The code of an adjoint while it is written: its instructions, and which of them are copies of the kernel's values.
#pragma once
#include <vector>

#include "../ir/builder.h"
#include "analysis.h"

namespace weft::ir {

/// The numbers of the parameters that an adjoint has beside its kernel's; kNone for those that it lacks.
struct ExtraParams {
  std::vector<std::uint32_t> gradient, owners, sums;  ///< by parameter of the kernel
  std::uint32_t scratch = kNone, log = kNone, first_thread = kNone, lanes = kNone;
};

/// The writer that all parts of the walk share. `kernel` is in normal form, `out` has the interface of the adjoint.
class AdjointCode {
 public:
  AdjointCode(const Module& kernel, const Analysis& analysis, const ExtraParams& extra, Module& out)
      : from(kernel), analysis(analysis), extra(extra), out(out), builder(out), map_(kernel.insts.size(), kNone) {}
  AdjointCode(const AdjointCode&) = delete;

  /// Computes the members that name the thread. Must be called before all else.
  void enter();

  /// The newest copy of a value of the kernel.
  /// Errors: Error(not_differentiable) for one that depends on subgroups.
  Id value(Id old);
  void map(Id old, Id now) { map_[old] = now; }
  /// The newest copies of an instruction's operands, from number `first` on.
  std::vector<Id> values(Id old, std::uint32_t first);

  Id constant(Type type, std::int64_t v) { return builder.constant_int(type, v); }
  Id u32(std::uint32_t v) { return builder.constant(Type::u32, v); }
  Id u64(std::uint64_t v) { return builder.constant(Type::u64, v); }
  Id pure(Op op, Type type, std::initializer_list<Id> args, Loc loc = {}) { return builder.pure(op, type, args, loc); }
  Id get(std::uint32_t local) { return builder.local_get(local); }
  void set(std::uint32_t local, Id v) { builder.local_set(local, v); }
  /// Emits a load and returns its numbers one by one.
  std::vector<Id> load(Type type, std::uint32_t width, const MemoryRef& at, Loc loc);

  Id array_base(std::uint32_t param) { return builder.arg(Type::u64, out.params[param].offset); }
  /// The place of number `part` of those that a load, store or atomic operation of the kernel accesses.
  MemoryRef place(Id memory, std::uint32_t part);
  /// Converts an index to u64.
  Id unsigned_index(Id index);

  const Module& from;
  const Analysis& analysis;
  const ExtraParams& extra;
  Module& out;
  Builder builder;
  /// The number of the thread in the launch; its place in the scratch, and the number of places, as u32 and u64.
  Id thread = kNone, lane = kNone, lanes = kNone, lanes64 = kNone;

 private:
  std::vector<Id> map_;
};

}  // namespace weft::ir
