// Atomic operations: of the active lanes in turn, or of all at once where the address is one. In a workgroup of one
// thread, a scalar one.
//
// At once, if the lanes ask for the value before (else %all is a reduction):
//   %sums = inclusive scan of %x, in which resting lanes are neutral
//   %old = atomicrmw add ptr %p, i32 %sums[W - 1] monotonic
//   %before = %old + %sums moved up by a lane
//
// In turn:
// lane: %rest = phi i64 [ the mask's bits, before ], [ %next, end ]
//   %seen = phi <W x i32> [ 0, before ], [ %all, end ]
//   %k = cttz %rest
//   %old = atomicrmw add ptr %p[%k], i32 %x[%k] monotonic
//   %all = insertelement %seen, %old, %k
//   %next = and %rest, %rest - 1
//   br (%next != 0), lane, done
//
// In turn, where the value before is not asked for and lanes may add up first: lanes at the first one's address go
// together as long as there are several, as sorted indices have them. Others are told apart by one comparison.
// vote: %left = phi i64 [ the mask's bits, before ], [ %after, together ]
//   %first = %p[cttz %left]
//   %same = (%p == %first) as bits, and %left
//   br (%same has several), together, lane
// together: %sum = reduction of %x, in which lanes that are not %same are neutral
//   atomicrmw add ptr %first, %sum monotonic
//   %after = %left without %same
//   br (%after != 0), vote, done
//
// What the processor has no instruction for (floats) is exchanged until nobody has come between:
//   %first = load atomic ptr %p
// try: %before = phi [ %first, .. ], [ %seen, try ]
//   %after = combine %before, %x
//   { %seen, %ok } = cmpxchg ptr %p, %before, %after
//   br %ok, done, try
#include <tuple>

#include "../frontend/ir/evaluate.h"
#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::is_float;
using ir::is_signed;
using ir::Op;
using ir::Type;

void Emitter::atomic(Id id) {
  Place at = place(id);
  if (shapes_.lone) return atomic_alone(id, at);
  if (at.kind == Place::Kind::same && combines_first(id)) return atomic_of_all(id, at);
  atomic_in_turn(id, at);
}

// The operation of a workgroup's only thread.
void Emitter::atomic_alone(Id id, const Place& place) {
  const Inst& inst = kernel_[id];
  const std::string desired = inst.op == Op::atomic_cas ? scalar(kernel_.arg(id, 3)) : "";
  put_scalar(id, change(inst, place.pointer, scalar(kernel_.arg(id, 2)), desired));
}

// Operations on integers, which may be combined in any way, and sums of which the kernel says so.
bool Emitter::combines_first(Id id) const {
  const Inst& inst = kernel_[id];
  if (ir::combination(inst.op) == Op::constant) return false;
  return ir::is_int(inst.type) || (inst.imm == ir::kGather && !is_used_[id]);
}

/// What changes nothing in all lanes. Added to -0, the sum that a neutral 0 is part of would be 0.
std::string Emitter::no_change(const Inst& inst) const {
  const Op op = ir::combination(inst.op);
  const bool adds_reals = op == Op::add && ir::is_float(inst.type);
  return literal(inst.type, adds_reals ? ir::from_double(inst.type, -0.0) : neutral(op, inst.type), lanes_);
}

void Emitter::atomic_of_all(Id id, const Place& place) {
  const Inst& inst = kernel_[id];
  const Op op = ir::combination(inst.op);
  const std::string neutral_value = no_change(inst);
  std::string value = vector(kernel_.arg(id, 2));
  if (!mask_.empty()) value = choose(inst.type, mask_, value, neutral_value, lanes_);
  if (!is_used_[id]) {
    change(inst, place.pointer, reduce(op, inst.type, value), "");
    return;
  }
  const std::string of = type_name(inst.type, lanes_), sums = scan(op, inst.type, value);
  const std::string all = out_.def("extractelement {} {}, i64 {}", of, sums, lanes_ - 1);
  const std::string old = spread(inst.type, change(inst, place.pointer, all, ""));
  put_vector(id, compute(op, inst.type, inst.type, Texts{old, shifted(inst.type, sums, 1, neutral_value)}, lanes_));
}

void Emitter::atomic_in_turn(Id id, Place& place) {
  const Inst& inst = kernel_[id];
  const Type t = inst.type;
  const bool is_used = is_used_[id], compares = inst.op == Op::atomic_cas;
  const std::string value = vector(kernel_.arg(id, 2)), desired = compares ? vector(kernel_.arg(id, 3)) : "";
  if (place.kind != Place::Kind::same) pointers(place);
  const std::string lane = out_.fresh("lane"), done = out_.fresh("done");
  std::string bits = mask_word(), before = out_.block();
  if (place.kind == Place::Kind::apart && !is_used && combines_first(id))
    std::tie(bits, before) = atomic_of_some(inst, place.pointers, value, bits, lane, done);
  else
    out_.jump(lane);
  out_.label(lane);
  const Text::Hole rest = out_.hole();
  Text::Hole seen;
  if (is_used) seen = out_.hole();
  out_.declare("@llvm.cttz.i64", "declare i64 @llvm.cttz.i64(i64, i1)");
  const std::string k = out_.def("call i64 @llvm.cttz.i64(i64 {}, i1 false)", rest.name);
  auto lane_of = [&](const std::string& type, const std::string& from) {
    return out_.def("extractelement {} {}, i64 {}", vector_of(type, lanes_), from, k);
  };
  const std::string pointer = place.kind == Place::Kind::same ? place.pointer : lane_of("ptr", place.pointers);
  const std::string old =
      change(inst, pointer, lane_of(type_name(t), value), compares ? lane_of(type_name(t), desired) : "");
  std::string all;
  const std::string of = type_name(t, lanes_);
  if (is_used) all = out_.def("insertelement {} {}, {} {}, i64 {}", of, seen.name, type_name(t), old, k);
  const std::string less = out_.def("sub i64 {}, 1", rest.name);
  const std::string next = out_.def("and i64 {}, {}", rest.name, less);
  const std::string more = out_.def("icmp ne i64 {}, 0", next), end = out_.block();
  out_.jump_if(more, lane, done);
  out_.label(done);
  out_.fill(rest, fmt::format("phi i64 [ {}, %{} ], [ {}, %{} ]", bits, before, next, end));
  if (!is_used) return;
  out_.fill(seen, fmt::format("phi {} [ zeroinitializer, %{} ], [ {}, %{} ]", of, before, all, end));
  put_vector(id, all);
}

// Lanes at one address, as long as the first one has others beside it. Goes on at `lane` from the block that is
// returned after the bits of the lanes that are left, or at `done`.
std::pair<std::string, std::string> Emitter::atomic_of_some(const Inst& inst, const std::string& pointers,
                                                            const std::string& value, const std::string& bits,
                                                            const std::string& lane, const std::string& done) {
  const Op op = ir::combination(inst.op);
  const std::string many = vector_of("ptr", lanes_), word = fmt::format("i{}", lanes_);
  out_.declare("@llvm.cttz.i64", "declare i64 @llvm.cttz.i64(i64, i1)");
  const std::string before = out_.block(), vote = out_.fresh("vote"), together = out_.fresh("together");
  out_.jump(vote);
  out_.label(vote);
  const Text::Hole left = out_.hole();
  const std::string k = out_.def("call i64 @llvm.cttz.i64(i64 {}, i1 false)", left.name);
  const std::string first = out_.def("extractelement {} {}, i64 {}", many, pointers, k);
  const std::string equal = out_.def("icmp eq {} {}, {}", many, pointers, spread("ptr", first));
  std::string same = mask_bits(equal);
  if (lanes_ < 64) same = out_.def("zext {} {} to i64", word, same);
  same = out_.def("and i64 {}, {}", same, left.name);
  const std::string others = out_.def("and i64 {}, {}", same, out_.def("sub i64 {}, 1", same));
  out_.jump_if(out_.def("icmp ne i64 {}, 0", others), together, lane);
  out_.label(together);
  const std::string narrow = lanes_ < 64 ? out_.def("trunc i64 {} to {}", same, word) : same;
  const std::string mask = out_.def("bitcast {} {} to {}", word, narrow, type_name(Type::b1, lanes_));
  const std::string values = choose(inst.type, mask, value, no_change(inst), lanes_);
  change(inst, first, reduce(op, inst.type, values), "");
  const std::string after = out_.def("xor i64 {}, {}", left.name, same);
  const std::string end = out_.block();
  out_.jump_if(out_.def("icmp ne i64 {}, 0", after), vote, done);
  out_.fill(left, fmt::format("phi i64 [ {}, %{} ], [ {}, %{} ]", bits, before, after, end));
  return {left.name, vote};
}

// The change of one scalar; returns the value before.
std::string Emitter::change(const Inst& inst, const std::string& pointer, const std::string& value,
                            const std::string& desired) {
  const Type t = inst.type, bits = ir::bits(t) == 64   ? Type::u64
                                   : ir::bits(t) == 32 ? Type::u32
                                   : ir::bits(t) == 16 ? Type::u16
                                                       : Type::u8;
  const int align = ir::bytes(t);
  const std::string of = type_name(bits);
  if (inst.op == Op::atomic_cas) {
    const std::string pair = out_.def("cmpxchg ptr {}, {} {}, {} {} monotonic monotonic, align {}", pointer, of,
                                      reinterpret(t, bits, value, 1), of, reinterpret(t, bits, desired, 1), align);
    return reinterpret(bits, t, out_.def("extractvalue {{ {}, i1 }} {}, 0", of, pair), 1);
  }
  if (is_float(t) && inst.op != Op::atomic_exchange) return exchange_loop(inst, pointer, value);
  const char* name = inst.op == Op::atomic_add        ? "add"
                     : inst.op == Op::atomic_min      ? (is_signed(t) ? "min" : "umin")
                     : inst.op == Op::atomic_max      ? (is_signed(t) ? "max" : "umax")
                     : inst.op == Op::atomic_and      ? "and"
                     : inst.op == Op::atomic_or       ? "or"
                     : inst.op == Op::atomic_xor      ? "xor"
                     : inst.op == Op::atomic_exchange ? "xchg"
                                                      : nullptr;
  if (!name) internal_error("llvm: an atomic operation that the emitter lacks", inst.loc());
  const std::string old = out_.def("atomicrmw {} ptr {}, {} {} monotonic, align {}", name, pointer, of,
                                   reinterpret(t, bits, value, 1), align);
  return reinterpret(bits, t, old, 1);
}

std::string Emitter::exchange_loop(const Inst& inst, const std::string& pointer, const std::string& value) {
  const Type t = inst.type, bits = ir::bits(t) == 64 ? Type::u64 : ir::bits(t) == 32 ? Type::u32 : Type::u16;
  const std::string of = type_name(bits);
  const int align = ir::bytes(t);
  const std::string first = out_.def("load atomic {}, ptr {} monotonic, align {}", of, pointer, align);
  const std::string start = out_.block(), again = out_.fresh("try"), done = out_.fresh("exchanged");
  out_.jump(again);
  out_.label(again);
  const Text::Hole before = out_.hole();
  const std::string old = reinterpret(bits, t, before.name, 1);
  const std::string after = compute(ir::combination(inst.op), t, t, Texts{old, value}, 1);
  const std::string pair = out_.def("cmpxchg weak ptr {}, {} {}, {} {} monotonic monotonic, align {}", pointer, of,
                                    before.name, of, reinterpret(t, bits, after, 1), align);
  const std::string seen = out_.def("extractvalue {{ {}, i1 }} {}, 0", of, pair);
  const std::string ok = out_.def("extractvalue {{ {}, i1 }} {}, 1", of, pair), end = out_.block();
  out_.jump_if(ok, done, again);
  out_.label(done);
  out_.fill(before, fmt::format("phi {} [ {}, %{} ], [ {}, %{} ]", of, first, start, seen, end));
  return old;
}

}  // namespace weft::llvm
