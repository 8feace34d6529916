// The checks of debug mode, and how a thread ends.
#include "checks.h"

#include "any_floats.h"

namespace weft {

using ir::Op;
using ir::Type;

namespace tracing {

namespace {

Type type_of(Id id) { return Trace::current().module()[id].type; }

// 0 <= index < extent by one comparison of unsigned numbers.
Id in_range(ir::Builder& b, Id index, Id extent, Loc loc) {
  const Type ti = type_of(index), te = type_of(extent);
  const Type wide = ir::bits(ti) == 64 || ir::bits(te) == 64 ? Type::u64 : Type::u32;
  const auto as_wide = [&](Id id) { return type_of(id) == wide ? id : b.pure(Op::convert, wide, {id}, loc); };
  return b.pure(Op::lt, Type::b1, {as_wide(index), as_wide(extent)}, loc);
}

}  // namespace

// ---- The end of a thread

void stop_thread(Loc loc) {
  Trace& t = Trace::current(loc);
  ir::Builder& b = t.builder();
  if (t.stays_function) return;
  t.require_inline();
  if (!b.in_condition()) {
    b.leave(Op::return_, loc, 1);
    return;
  }
  if (t.stopped == ir::kNone) {
    t.stopped = b.local(Type::b1);
    t.module().locals[t.stopped].failure = true;
    b.local_set_in(0, t.stopped, b.constant(Type::b1, 0), loc);
  }
  b.local_set(t.stopped, b.constant(Type::b1, 1), loc);
}

Id unless_stopped(Id condition, Loc loc) {
  Trace& t = Trace::current(loc);
  if (t.stopped == ir::kNone) return condition;
  return binary(Op::bit_and, condition, logical_not(t.builder().local_get(t.stopped, loc), loc), loc);
}

void return_if_stopped(Loc loc) {
  Trace& t = Trace::current(loc);
  ir::Builder& b = t.builder();
  if (t.stopped == ir::kNone || b.in_condition()) return;
  b.open_if(logical_not(b.local_get(t.stopped, loc), loc), loc);
  b.open_else();
  b.leave(Op::return_, loc, 1);
  b.close_if();
  // Whoever comes here has not stopped; a later loop has a local of its own, so that its condition is not this one's.
  t.stopped = ir::kNone;
}

void fail_unless(Id good, ir::Message message, std::span<const Id> values, Loc loc) {
  ir::Builder& b = Trace::current(loc).builder();
  // The failure stands in an else, so that no Else of the user's can follow this branch.
  b.open_if(good, loc);
  b.open_else();
  report(std::move(message), values, loc);
  stop_thread(loc);
  b.close_if();
}

// ---- Guards

namespace {

// Ends `if (good) {..`: values that it computed reach the code after it through locals.
template <class F>
void close_guard(ir::RegionId outer, Id* values, int count, Loc loc, F fault) {
  ir::Builder& b = Trace::current(loc).builder();
  std::vector<std::uint32_t> locals;
  for (int k = 0; k < count; ++k) {
    const Type type = type_of(values[k]);
    locals.push_back(b.local(type));
    b.local_set_in(outer, locals.back(), b.constant(type, 0), loc);
    b.local_set(locals.back(), values[k], loc);
  }
  b.open_else();
  fault();
  stop_thread(loc);
  b.close_if();
  for (int k = 0; k < count; ++k) values[k] = b.local_get(locals[std::size_t(k)], loc);
}

// The message of a failed check: a text and scalars.
ir::Message message_of(ir::Message::Kind kind, std::string text, std::span<const Id> values) {
  ir::Message message;
  message.kind = kind;
  message.pieces.emplace_back().text = std::move(text);
  for (Id id : values) message.pieces.emplace_back().type = type_of(id);
  return message;
}

}  // namespace

Guard::Guard(const Address& at, Loc loc) : element_(at.element), loc_(loc) {
  Trace& t = Trace::current(loc);
  if (!t.debug().checks) element_ = 0;
  if (element_ == 0) return;
  ir::Builder& b = t.builder();
  const Element& e = t.elements[element_ - 1];
  Id good = in_range(b, e.index[0], e.extent[0], loc);
  for (int k = 1; k < e.ndim; ++k) good = binary(Op::bit_and, good, in_range(b, e.index[k], e.extent[k], loc), loc);
  outer_ = b.region();
  b.open_if(good, loc);
}

void Guard::close(Id* values, int count) {
  if (element_ == 0) return;
  close_guard(outer_, values, count, loc_, [&] {
    const Element& e = Trace::current(loc_).elements[element_ - 1];
    std::vector<Id> ids;
    for (int k = 0; k < e.ndim; ++k) ids.insert(ids.end(), {e.index[k], e.extent[k]});
    report(message_of(ir::Message::Kind::index, e.array, ids), ids, loc_);
  });
}

namespace {
thread_local int any_floats = 0;
}
AnyFloats::AnyFloats() { ++any_floats; }
AnyFloats::~AnyFloats() { --any_floats; }

FiniteGuard::FiniteGuard(const Address& at, Type type, std::span<const Id> values, Loc loc)
    : element_(at.element), values_(values), loc_(loc) {
  Trace& t = Trace::current(loc);
  if (!t.debug().finite || !ir::is_float(type) || any_floats) return;
  active_ = true;
  Id good = is_finite(values[0], loc);
  for (Id value : values.subspan(1)) good = binary(Op::bit_and, good, is_finite(value, loc), loc);
  outer_ = t.builder().region();
  t.builder().open_if(good, loc);
}

void FiniteGuard::close(Id* values, int count) {
  if (!active_) return;
  close_guard(outer_, values, count, loc_, [&] {
    const Element e = element_ ? Trace::current(loc_).elements[element_ - 1] : Element{};
    std::vector<Id> ids(e.index, e.index + e.ndim);
    // Of several values the first bad one.
    Id bad = values_.back();
    for (std::size_t k = values_.size() - 1; k-- > 0;)
      bad = ternary(Op::select, is_finite(values_[k], loc_), bad, values_[k], loc_);
    ids.push_back(bad);
    report(message_of(ir::Message::Kind::not_finite, e.array, ids), ids, loc_);
  });
}

Id check_range(const std::string& array, Id lo, Id hi, Id step, Id extent, Loc loc) {
  Trace& t = Trace::current(loc);
  if (!t.debug().checks) return ir::kNone;
  ir::Builder& b = t.builder();
  const auto all = [&](Id x, Id y) { return b.pure(Op::bit_and, Type::b1, {x, y}, loc); };
  const auto in_order = [&](Id x, Id y) { return b.pure(Op::le, Type::b1, {x, y}, loc); };
  const Id none = zero(type_of(lo));
  const Id inside = all(in_order(none, lo), all(in_order(lo, hi), in_order(hi, extent)));
  const Id good = all(inside, b.pure(Op::lt, Type::b1, {none, step}, loc));
  const Id values[] = {lo, hi, step, extent};
  fail_unless(good, message_of(ir::Message::Kind::range, array, values), values, loc);
  return good;
}

// ---- Division

void check_divisor(Op op, Id dividend, Id divisor, Loc loc) {
  Trace& t = Trace::current(loc);
  ir::Builder& b = t.builder();
  const Type type = type_of(divisor);
  if (!t.debug().checks || !ir::is_int(type)) return;
  const ir::Inst& inst = b.module()[divisor];
  if (inst.op == Op::constant && inst.imm != 0) return;
  const Id good = b.pure(Op::ne, Type::b1, {divisor, zero(type)}, loc);
  const Id values[] = {dividend};
  const char* const what = op == Op::div ? "division" : "remainder";
  fail_unless(good, message_of(ir::Message::Kind::division, what, values), values, loc);
}

}  // namespace tracing
}  // namespace weft
