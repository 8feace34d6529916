// Additions to gradients of elements, in the way that each array needs, and the check that elements have one owner.
#include "array_gradients.h"

#include <unordered_set>

namespace weft::ir {

MemoryRef ArrayGradients::place(Id memory, std::uint32_t part) {
  MemoryRef ref = code_.place(memory, part);
  const std::uint32_t param = param_of(memory);
  const Id primal = code_.array_base(param), gradient = code_.array_base(code_.extra.gradient[param]);
  // A slice begins at the same distance from the start of the array and of its gradient.
  if (ref.base != primal)
    ref.base = code_.pure(Op::add, Type::u64, {gradient, code_.pure(Op::sub, Type::u64, {ref.base, primal})});
  else
    ref.base = gradient;
  return ref;
}

void ArrayGradients::add(Id memory, std::uint32_t part, Id gradient) {
  const Inst& inst = code_.from[memory];
  Builder& b = code_.builder;
  const MemoryRef ref = place(memory, part);
  const std::uint32_t param = param_of(memory);
  if (code_.extra.sums[param] != kNone) return add_exactly(memory, part, gradient);
  // On a deterministic tape a stored element must have one owner, because additions by several have no fixed order.
  if (part == 0 && code_.extra.owners[param] != kNone && deterministic_) check_owner(memory);
  if (code_.analysis.array(param).own_element) {
    // No other thread adds to this gradient.
    const Id sum[] = {code_.pure(Op::add, inst.type, {b.load(inst.type, 1, ref, inst.loc()), gradient})};
    b.store(inst.type, sum, ref, inst.loc());
  } else if (follows_thread(ref.index)) {
    b.atomic(Op::atomic_add, inst.type, {gradient}, ref, inst.loc());
  } else {
    b.gather(inst.type, gradient, ref, inst.loc());
  }
}

std::vector<Id> ArrayGradients::take(Id store) {
  const Inst& inst = code_.from[store];
  if (code_.extra.owners[param_of(store)] != kNone) check_owner(store);
  const MemoryRef ref = place(store, 0);
  const std::vector<Id> gradients = code_.load(inst.type, inst.width, ref, inst.loc());
  // The elements that the store overwrote have no part in the results, so their gradients start at zero.
  const std::vector<Id> zeros(inst.width, code_.constant(inst.type, 0));
  code_.builder.store(inst.type, zeros, ref, inst.loc());
  return gradients;
}

/// Returns whether an index is computed from the number of the thread, so that neighbours rarely access one element.
bool ArrayGradients::follows_thread(Id index) const {
  std::vector<Id> work{index};
  std::unordered_set<Id> seen;
  while (!work.empty()) {
    const Id id = work.back();
    work.pop_back();
    const Inst& inst = code_.out[id];
    if (inst.op == Op::thread_id) return true;
    if (info(inst.op).effect != Effect::pure || inst.op == Op::result || inst.op == Op::param) continue;
    for (Id arg : code_.out.args(id))
      if (seen.insert(arg).second) work.push_back(arg);
  }
  return false;
}

/// The distance, u64 in bytes, of number `part` of those that are accessed from the start of the parameter.
Id ArrayGradients::byte_in_array(Id memory, std::uint32_t part) {
  const MemoryRef ref = code_.place(memory, part);
  const auto on = [&](Op op, Id x, Id y) { return code_.pure(op, Type::u64, {x, y}); };
  Id at = on(Op::mul, code_.unsigned_index(ref.index), code_.u64(ref.stride));
  at = on(Op::add, at, code_.u64(ref.offset));
  const Id start = code_.array_base(param_of(memory));
  return ref.base == start ? at : on(Op::add, at, on(Op::sub, ref.base, start));
}

// Reports elements that several threads access. The way back takes a stored element's gradient for the thread that
// stored it; of two threads the first to come would get it. Therefore each leaves its number in `owners` for the
// element that it stored, and finds that of another thread there.
void ArrayGradients::check_owner(Id store) {
  const Inst& inst = code_.from[store];
  const std::uint32_t param = param_of(store);
  const Id own = code_.pure(Op::add, Type::u32, {code_.thread, code_.u32(1)});
  Id shared = code_.builder.constant(Type::b1, 0);
  for (std::uint32_t part = 0; part < inst.width; ++part) {
    const Id unit = code_.builder.constant(Type::u64, code_.analysis.array(param).narrow ? 1 : 2);
    const Id at = code_.pure(Op::shr, Type::u64, {byte_in_array(store, part), unit});
    const Id other = code_.builder.atomic(
        Op::atomic_cas, Type::u32, {code_.u32(0), own},
        {code_.array_base(code_.extra.owners[param]), code_.pure(Op::bitcast, Type::i64, {at}), 4, 0, 4}, inst.loc());
    const Id taken =
        code_.pure(Op::bit_and, Type::b1,
                   {code_.pure(Op::ne, Type::b1, {other, code_.u32(0)}), code_.pure(Op::ne, Type::b1, {other, own})});
    shared = code_.pure(Op::bit_or, Type::b1, {shared, taken});
  }
  code_.builder.open_if(shared, inst.loc());
  Message message;
  message.kind = Message::Kind::gradient;
  message.pieces.emplace_back().text =
      code_.from.params[param].name +
      (inst.op == Op::store
           ? " gets an element from several threads of this store: whose value is left, and so its gradient, depends "
             "on their order; to sum what they give, write atomic_add(), else let each thread store elements of its own"
           : " is stored, and an element of it is read here by several threads: the order in which they add to its "
             "gradient, which a deterministic tape needs, is not known");
  append_report(code_.builder, code_.out, std::move(message), {}, inst.loc());
  code_.builder.close_if();
}

}  // namespace weft::ir
