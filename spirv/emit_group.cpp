// Atomic operations, kernel arrays, barriers and subgroup operations.
#include <limits>

#include "../frontend/support/error.h"
#include "emit.h"
#include "emitter.h"

namespace weft::spirv {

using ir::Id;
using ir::Inst;
using ir::is_float;
using ir::is_signed;
using ir::Op;
using ir::Type;

// ---- Bits of a scalar

// Narrow scalars fill a word, with zeros above. None of this computes in the narrow type, so storage capabilities
// suffice.
Word Emitter::to_bits(Type t, Word x) {
  if (t == Type::f16) {
    Word zero = down(number(Type::f32, 0));
    Word pair = make(spv::Op::OpCompositeConstruct, w_.vector_type(t, 2), {x, zero});
    return make(spv::Op::OpBitcast, Type::u32, {pair});
  }
  if (ir::bits(t) >= 32) return reinterpret(t, ir::bits(t) == 64 ? Type::u64 : Type::u32, x);
  Word wide = integer_to_integer(t, Type::u32, x);
  return is_signed(t) ? make(spv::Op::OpBitwiseAnd, Type::u32, {wide, w_.u32(Word(ir::mask(t)))}) : wide;
}

Word Emitter::from_bits(Type t, Word bits) {
  if (t == Type::f16) {
    Word pair = make(spv::Op::OpBitcast, w_.vector_type(t, 2), {bits});
    return make(spv::Op::OpCompositeExtract, t, {pair, 0});
  }
  if (ir::bits(t) >= 32) return reinterpret(ir::bits(t) == 64 ? Type::u64 : Type::u32, t, bits);
  return integer_to_integer(Type::u32, t, bits);
}

// ---- Kernel arrays: one variable each, indexed by scalars

Type Emitter::own_type(std::uint64_t array) const {
  const Type t = module_.arrays[array].type;
  return !needs_.as_bits[array] ? t : ir::bits(t) == 64 ? Type::u64 : Type::u32;
}

Word Emitter::own_pointer(std::uint64_t array, Word index) {
  const Word part = w_.type(own_type(array));
  const bool own = module_.arrays[array].is_private;
  const spv::StorageClass storage = own ? spv::StorageClass::Private : spv::StorageClass::Workgroup;
  Word& variable = shader_.arrays[array];
  if (!variable) {
    const Word length = w_.u32(module_.arrays[array].count), type = w_.id();
    w_.declarations.emit(spv::Op::OpTypeArray, {type, part, length});
    variable = w_.variable(w_.pointer_type(storage, type), storage);
    shader_.common.interface.push_back(variable);
  }
  return make(spv::Op::OpAccessChain, w_.pointer_type(storage, part), {variable, index});
}

Word Emitter::own_index(Id id) {
  const Inst& inst = module_[id];
  const Id by = module_.arg(id, 1);
  const auto part = std::uint32_t(ir::bytes(inst.type));
  Word index = integer_to_integer(module_[by].type, Type::u32, value(by));
  if (inst.stride != part) index = make(spv::Op::OpIMul, Type::u32, {index, w_.u32(inst.stride / part)});
  if (inst.offset) index = make(spv::Op::OpIAdd, Type::u32, {index, w_.u32(inst.offset / part)});
  return index;
}

Word Emitter::own_load(Id id) {
  const Inst& inst = module_[id];
  const std::uint64_t array = module_[module_.arg(id, 0)].imm;
  const Type lies = own_type(array);
  const Word first = own_index(id);
  Word words[6] = {};
  for (int k = 0; k < inst.width; ++k) {
    Word at = k ? make(spv::Op::OpIAdd, Type::u32, {first, w_.u32(Word(k))}) : first;
    Word x = make(spv::Op::OpLoad, lies, {own_pointer(array, at)});
    words[k + 2] = needs_.as_bits[array] ? from_bits(inst.type, x) : x;
  }
  if (inst.width == 1) return words[2];
  words[0] = w_.vector_type(inst.type, inst.width);
  words[1] = w_.id();
  body_.emit(spv::Op::OpCompositeConstruct, words, std::size_t(inst.width) + 2);
  return words[1];
}

void Emitter::own_store(Id id) {
  const Inst& inst = module_[id];
  const std::uint64_t array = module_[module_.arg(id, 0)].imm;
  const Word first = own_index(id);
  for (int k = 0; k < inst.width; ++k) {
    Word x = value(module_.arg(id, k + 2));
    if (needs_.as_bits[array]) x = to_bits(inst.type, x);
    Word at = k ? make(spv::Op::OpIAdd, Type::u32, {first, w_.u32(Word(k))}) : first;
    body_.emit(spv::Op::OpStore, {own_pointer(array, at), x});
  }
}

// ---- Atomic operations

// Atomic operations are relaxed: they order nothing else (docs/semantics.md).
Word Emitter::native_atomic(Id id, Word at, Word what) {
  const Inst& inst = module_[id];
  const Type t = inst.type;
  const bool shared = module_[module_.arg(id, 0)].op == Op::kernel_array;
  Word scope = w_.u32(Word(shared ? spv::Scope::Workgroup : spv::Scope::Device)), relaxed = w_.u32(0);
  if (inst.op == Op::atomic_cas) {
    Word desired = value(module_.arg(id, 3));
    return make(spv::Op::OpAtomicCompareExchange, t, {at, scope, relaxed, relaxed, desired, what});
  }
  spv::Op op;
  switch (inst.op) {
    case Op::atomic_add: op = is_float(t) ? spv::Op::OpAtomicFAddEXT : spv::Op::OpAtomicIAdd; break;
    case Op::atomic_min: op = is_signed(t) ? spv::Op::OpAtomicSMin : spv::Op::OpAtomicUMin; break;
    case Op::atomic_max: op = is_signed(t) ? spv::Op::OpAtomicSMax : spv::Op::OpAtomicUMax; break;
    case Op::atomic_and: op = spv::Op::OpAtomicAnd; break;
    case Op::atomic_or: op = spv::Op::OpAtomicOr; break;
    case Op::atomic_xor: op = spv::Op::OpAtomicXor; break;
    case Op::atomic_exchange: op = spv::Op::OpAtomicExchange; break;
    default: internal_error("not an atomic operation");
  }
  return make(op, t, {at, scope, relaxed, what});
}

Word Emitter::combined(Op op, Type t, Word before, Word what) {
  const Op step = ir::combination(op);
  if (step == Op::constant) return what;
  if (t == Type::f16) return down(binary(step, Type::f32, up(before), up(what)));
  if (ir::bits(t) >= 32) return binary(step, t, before, what);
  const Type wide = is_signed(t) ? Type::i32 : Type::u32;
  return integer_to_integer(wide, t, binary(step, wide, widen_integer(t, before), widen_integer(t, what)));
}

template <class F>
Word Emitter::exchange_loop(Type t, Word at, Word scope, F after) {
  Word relaxed = w_.u32(0);
  Word header = w_.id(), attempt = w_.id(), next = w_.id(), merge = w_.id();
  branch(header);
  open_block(header);
  body_.emit(spv::Op::OpLoopMerge, {merge, next, Word(spv::LoopControlMask::MaskNone)});
  branch(attempt);
  open_block(attempt);
  Word old = make(spv::Op::OpAtomicLoad, t, {at, scope, relaxed});
  Word seen = make(spv::Op::OpAtomicCompareExchange, t, {at, scope, relaxed, relaxed, after(old), old});
  Word done = make(spv::Op::OpIEqual, Type::b1, {seen, old});
  body_.emit(spv::Op::OpBranchConditional, {done, merge, next});
  open_block(next);
  branch(header);
  open_block(merge);
  return old;
}

// Works on the word around a narrow scalar, whose bits begin at `shift`; the neighbours' bits are put back unchanged.
Word Emitter::narrow_atomic(Id id, Word at, Word shift, Word what) {
  const Inst& inst = module_[id];
  const Type t = inst.type, u = Type::u32;
  const bool shared = module_[module_.arg(id, 0)].op == Op::kernel_array;
  const Word scope = w_.u32(Word(shared ? spv::Scope::Workgroup : spv::Scope::Device));
  const Word mask = w_.u32(Word(ir::mask(t)));
  Word expected = 0, desired = 0;
  if (inst.op == Op::atomic_cas) {
    expected = to_bits(t, what);
    desired = to_bits(t, value(module_.arg(id, 3)));
  }
  const Word others = make(spv::Op::OpNot, u, {make(spv::Op::OpShiftLeftLogical, u, {mask, shift})});
  auto own = [&](Word word) {
    return make(spv::Op::OpBitwiseAnd, u, {make(spv::Op::OpShiftRightLogical, u, {word, shift}), mask});
  };
  Word old = exchange_loop(u, at, scope, [&](Word word) {
    Word before = own(word), after;
    if (expected) {
      // If the value is not the expected one, it is put back.
      after = choose(u, make(spv::Op::OpIEqual, Type::b1, {before, expected}), desired, before);
    } else {
      after = to_bits(t, combined(inst.op, t, from_bits(t, before), what));
    }
    Word kept = make(spv::Op::OpBitwiseAnd, u, {word, others});
    return make(spv::Op::OpBitwiseOr, u, {kept, make(spv::Op::OpShiftLeftLogical, u, {after, shift})});
  });
  return from_bits(t, own(old));
}

// Combines additions to the parts of one element. All threads of the subgroup that arrive here at the same time and
// mean one element add up their values, and one of them adds the sums. They need not be the whole subgroup.
void Emitter::gather(std::span<const Id> parts) {
  const Word scope = w_.u32(Word(spv::Scope::Subgroup));
  const Word index = value(module_.arg(parts[0], 1));
  const Word one_element = make(spv::Op::OpGroupNonUniformAllEqual, Type::b1, {scope, index});
  const Word together = w_.id(), alone = w_.id(), merge = w_.id(), first = w_.id(), joined = w_.id();
  std::vector<Word> sums;
  body_.emit(spv::Op::OpSelectionMerge, {merge, Word(spv::SelectionControlMask::MaskNone)});
  body_.emit(spv::Op::OpBranchConditional, {one_element, together, alone});
  open_block(together);
  for (Id id : parts)
    sums.push_back(make(spv::Op::OpGroupNonUniformFAdd, module_[id].type,
                        {scope, Word(spv::GroupOperation::Reduce), value(module_.arg(id, 2))}));
  const Word elected = make(spv::Op::OpGroupNonUniformElect, Type::b1, {scope});
  body_.emit(spv::Op::OpSelectionMerge, {joined, Word(spv::SelectionControlMask::MaskNone)});
  body_.emit(spv::Op::OpBranchConditional, {elected, first, joined});
  open_block(first);
  for (std::size_t k = 0; k < parts.size(); ++k) atomic(parts[k], sums[k]);
  branch(joined);
  open_block(joined);
  branch(merge);
  open_block(alone);
  for (Id id : parts) atomic(id, value(module_.arg(id, 2)));
  branch(merge);
  open_block(merge);
}

Word Emitter::atomic(Id id) { return atomic(id, value(module_.arg(id, 2))); }

Word Emitter::atomic(Id id, Word what) {
  const Inst& inst = module_[id];
  const Id base = module_.arg(id, 0), by = module_.arg(id, 1);
  const Type t = inst.type;
  const bool shared = module_[base].op == Op::kernel_array;
  const std::uint64_t array = module_[base].imm;
  const bool add = inst.op == Op::atomic_add;
  bool native = !is_float(t);
  if (shared) {
    native = native || !needs_.as_bits[array];
  } else {
    native = native || (add && t == Type::f32 && target_.float32_atomic_add) ||
             (add && t == Type::f64 && target_.float64_atomic_add);
  }
  if (ir::bits(t) < 32) {
    if (shared) return narrow_atomic(id, own_pointer(array, own_index(id)), w_.u32(0), what);
    const Type u = Type::u64;
    Word steps =
        make(spv::Op::OpIMul, u, {integer_to_integer(module_[by].type, u, value(by)), w_.constant(u, inst.stride)});
    Word address = make(spv::Op::OpIAdd, u, {value(base), steps});
    if (inst.offset) address = make(spv::Op::OpIAdd, u, {address, w_.constant(u, inst.offset)});
    Word aligned = make(spv::Op::OpBitwiseAnd, u, {address, w_.constant(u, ~3ull)});
    Word low = make(spv::Op::OpBitwiseAnd, Type::u32, {make(spv::Op::OpUConvert, Type::u32, {address}), w_.u32(3)});
    Word shift = make(spv::Op::OpIMul, Type::u32, {low, w_.u32(8)});
    const PlaceTypes& types = place_types({Type::u32, 1, 0, 0});
    Word block = make(spv::Op::OpConvertUToPtr, types.to_block, {aligned});
    return narrow_atomic(id, make(spv::Op::OpAccessChain, types.to_value, {block, w_.u32(0)}), shift, what);
  }
  const Type word = ir::bits(t) == 64 ? Type::u64 : Type::u32;
  Word at = shared ? own_pointer(array, own_index(id)) : pointer(inst, base, by, native ? t : word, 1);
  if (native) return native_atomic(id, at, what);
  const Word scope = w_.u32(Word(shared ? spv::Scope::Workgroup : spv::Scope::Device)), relaxed = w_.u32(0);
  const Word bits = to_bits(t, what);
  if (inst.op == Op::atomic_exchange)
    return from_bits(t, make(spv::Op::OpAtomicExchange, word, {at, scope, relaxed, bits}));
  if (inst.op == Op::atomic_cas) {
    Word desired = to_bits(t, value(module_.arg(id, 3)));
    return from_bits(t, make(spv::Op::OpAtomicCompareExchange, word, {at, scope, relaxed, relaxed, desired, bits}));
  }
  Word old = exchange_loop(word, at, scope,
                           [&](Word before) { return to_bits(t, combined(inst.op, t, from_bits(t, before), what)); });
  return from_bits(t, old);
}

// ---- Barriers and subgroups

namespace {
constexpr Word kAllMemory = Word(spv::MemorySemanticsMask::AcquireRelease) |
                            Word(spv::MemorySemanticsMask::UniformMemory) |
                            Word(spv::MemorySemanticsMask::WorkgroupMemory);
}  // namespace

void Emitter::emit_barrier() { barrier(w_, body_); }

void barrier(Writer& w, Section& out) {
  const Word group = w.u32(Word(spv::Scope::Workgroup));
  out.emit(spv::Op::OpControlBarrier, {group, group, w.u32(kAllMemory)});
}

// llvmpipe treats it as a barrier of the workgroup, and loses work if only a part of that arrives.
void Emitter::subgroup_barrier() {
  const Word group = w_.u32(Word(spv::Scope::Subgroup)), order = w_.u32(kAllMemory);
  if (target_.lanes_in_step)
    body_.emit(spv::Op::OpMemoryBarrier, {group, order});
  else
    body_.emit(spv::Op::OpControlBarrier, {group, group, order});
}

void Emitter::emit_fence() {
  const Word order = Word(spv::MemorySemanticsMask::AcquireRelease) | Word(spv::MemorySemanticsMask::UniformMemory);
  body_.emit(spv::Op::OpMemoryBarrier, {w_.u32(Word(spv::Scope::Device)), w_.u32(order)});
}

Word Emitter::subgroup_reduction(const Inst& inst, Word x) {
  const Type t = inst.type;
  const bool real = is_float(t), sign = is_signed(t), logical = ir::is_bool(t);
  const Word scope = w_.u32(Word(spv::Scope::Subgroup));
  if (logical && Op(inst.imm) != Op::bit_xor) {
    const spv::Op vote = Op(inst.imm) == Op::bit_and ? spv::Op::OpGroupNonUniformAll : spv::Op::OpGroupNonUniformAny;
    return make(vote, t, {scope, x});
  }
  spv::Op op;
  switch (Op(inst.imm)) {
    case Op::add: op = real ? spv::Op::OpGroupNonUniformFAdd : spv::Op::OpGroupNonUniformIAdd; break;
    case Op::mul: op = real ? spv::Op::OpGroupNonUniformFMul : spv::Op::OpGroupNonUniformIMul; break;
    case Op::min:
      op = real   ? spv::Op::OpGroupNonUniformFMin
           : sign ? spv::Op::OpGroupNonUniformSMin
                  : spv::Op::OpGroupNonUniformUMin;
      break;
    case Op::max:
      op = real   ? spv::Op::OpGroupNonUniformFMax
           : sign ? spv::Op::OpGroupNonUniformSMax
                  : spv::Op::OpGroupNonUniformUMax;
      break;
    case Op::bit_and: op = spv::Op::OpGroupNonUniformBitwiseAnd; break;
    case Op::bit_or: op = spv::Op::OpGroupNonUniformBitwiseOr; break;
    case Op::bit_xor: op = logical ? spv::Op::OpGroupNonUniformLogicalXor : spv::Op::OpGroupNonUniformBitwiseXor; break;
    default: internal_error("a reduction by an operation that has none");
  }
  const spv::GroupOperation what = inst.op == Op::subgroup_reduce      ? spv::GroupOperation::Reduce
                                   : inst.op == Op::subgroup_inclusive ? spv::GroupOperation::InclusiveScan
                                                                       : spv::GroupOperation::ExclusiveScan;
  const auto over_lanes = [&](spv::Op reduction, Type type, Word y) {
    return make(reduction, type, {scope, Word(what), y});
  };
  if (!real || (op != spv::Op::OpGroupNonUniformFMin && op != spv::Op::OpGroupNonUniformFMax))
    return over_lanes(op, t, x);
  // A device may choose either a number or a NaN, so NaNs are replaced by the neutral element, and are the result only
  // if there is nothing else.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Word is_nan = make(spv::Op::OpIsNan, Type::b1, {x}), zero = w_.u32(0);
  const Word loser = number(t, Op(inst.imm) == Op::min ? infinity : -infinity);
  const Word most = over_lanes(op, t, choose(t, is_nan, loser, x));
  const Word numbers =
      over_lanes(spv::Op::OpGroupNonUniformBitwiseOr, Type::u32, choose(Type::u32, is_nan, zero, w_.u32(1)));
  Word any = make(spv::Op::OpINotEqual, Type::b1, {numbers, zero});
  if (inst.op == Op::subgroup_exclusive)  // the first thread's result is neutral
    any = make(spv::Op::OpLogicalOr, Type::b1, {any, make(spv::Op::OpIEqual, Type::b1, {lane_number(), zero})});
  return choose(t, any, most, number(t, std::numeric_limits<double>::quiet_NaN()));
}

Word Emitter::subgroup(Id id) {
  const Inst& inst = module_[id];
  if (inst.op == Op::subgroup_barrier) {
    subgroup_barrier();
    return 0;
  }
  const Word scope = w_.u32(Word(spv::Scope::Subgroup)), x = value(module_.arg(id, 0));
  const Word last = target_.subgroup_size - 1;
  switch (inst.op) {
    case Op::subgroup_reduce:
    case Op::subgroup_inclusive:
    case Op::subgroup_exclusive: return subgroup_reduction(inst, x);
    case Op::subgroup_ballot:
      // The four words of one ballot are read in succession, so the ballot is kept.
      if (ballot_of_ != module_.arg(id, 0) || ballot_block_ != block_) {
        ballot_of_ = module_.arg(id, 0);
        ballot_block_ = block_;
        ballot_ = make(spv::Op::OpGroupNonUniformBallot, w_.vector_type(Type::u32, 4), {scope, x});
      }
      return make(spv::Op::OpCompositeExtract, Type::u32, {ballot_, Word(inst.imm)});
    case Op::subgroup_broadcast:
    case Op::subgroup_shuffle: {
      const Inst& lane = module_[module_.arg(id, 1)];
      if (lane.op == Op::constant) {
        const Word from = w_.u32(Word(lane.imm) & last);
        const bool broadcast = inst.op == Op::subgroup_broadcast;
        return make(broadcast ? spv::Op::OpGroupNonUniformBroadcast : spv::Op::OpGroupNonUniformShuffle, inst.type,
                    {scope, x, from});
      }
      Word from = make(spv::Op::OpBitwiseAnd, Type::u32, {value(module_.arg(id, 1)), w_.u32(last)});
      return make(spv::Op::OpGroupNonUniformShuffle, inst.type, {scope, x, from});
    }
    default: internal_error("not an operation of subgroups");
  }
}

}  // namespace weft::spirv
