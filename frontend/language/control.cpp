// How traced control flow opens and closes the regions of the module.
#include "control.h"

#include <fmt/format.h>

#include <exception>

#include "../support/error.h"
#include "checks.h"

namespace weft {

using ir::Op;
using ir::Type;
using tracing::Id;

namespace detail {

namespace {
ir::Builder& builder() { return tracing::Trace::current().builder(); }

bool is_known(Id id, std::int64_t value) {
  const ir::Inst& inst = builder().module()[id];
  return inst.op == Op::constant && inst.imm == (std::uint64_t(value) & ir::mask(inst.type));
}

/// Is a < b, both numbers of the host's?
bool is_known_below(Id a, Id b) {
  const ir::Inst &x = builder().module()[a], &y = builder().module()[b];
  if (x.op != Op::constant || y.op != Op::constant) return false;
  if (!is_signed(x.type)) return x.imm < y.imm;
  const int unused = 64 - ir::bits(x.type);
  return std::int64_t(x.imm << unused) < std::int64_t(y.imm << unused);
}

const char* name_of(Block::Kind kind) {
  switch (kind) {
    case Block::Kind::if_: return "If";
    case Block::Kind::else_: return "Else";
    case Block::Kind::else_if: return "ElseIf";
    case Block::Kind::while_: return "While";
  }
  return "";
}

constexpr const char* kLeft =
    "the body of {} is left by a native break, return or goto; use Break(), Return() or "
    "Continue() in kernels";
}  // namespace

Block::Block(Kind kind, Loc loc) : kind_(kind), exceptions_(std::uncaught_exceptions()), loc_(loc) {
  tracing::Trace* t = tracing::Trace::if_sound();
  if (t && (kind == Kind::else_ || kind == Kind::else_if)) t->await_else(false);
  tracing::Trace::current(loc);
}

Block::~Block() {
  tracing::Trace* t = tracing::Trace::if_sound();
  if (t && kind_ == Kind::if_) t->await_else(false);
  if (state_ != State::open || !t) return;
  if (std::uncaught_exceptions() != exceptions_) {
    t->break_off(loc_, detail::exception_leaves(fmt::format("the body of {}", name_of(kind_))));
    return;
  }
  t->defer_error(loc_, fmt::format(kLeft, name_of(kind_)));
  close();
}

void Block::open_loop() { builder().open_loop({}, loc_); }

void Block::begin(Id condition) {
  ir::Builder& b = builder();
  switch (kind_) {
    case Kind::if_: b.open_if(condition, loc_); break;
    case Kind::while_:
      b.loop_body(tracing::unless_stopped(condition, loc_));
      if (is_known(condition, 0)) b.mark_dead();
      break;
    case Kind::else_:
    case Kind::else_if:
      // `If (a) {} ElseIf (b) {} Else {}` is if a {} else { if b {} else {} }: by the time the last Else is met, the
      // first two are closed; go back into them.
      while (b.reopen_chain()) ++reopened_;
      if (!b.reopen_else())
        ir::fail(b.module(), loc_,
                 fmt::format("{} does not follow an If (a chain is written If, ElseIf, Else)", name_of(kind_)));
      if (kind_ == Kind::else_if) b.mark_chain();
      break;
  }
}

void Block::leave() {
  close();
  state_ = State::closed;
  if (kind_ == Kind::if_) tracing::Trace::current(loc_).await_else(true);
}

void Block::close() {
  ir::Builder& b = builder();
  state_ = State::closed;
  if (kind_ == Kind::while_) {
    b.close_loop();
    tracing::return_if_stopped(loc_);
    return;
  }
  b.close_if();
  for (; reopened_; --reopened_) b.close_if();
}

// ---- Counted loops

RangeLoop::RangeLoop(Id lo, Id hi, Id step, Loc loc)
    : lo_(lo),
      hi_(hi),
      step_(step),
      trace_(tracing::Trace::current(loc).serial()),
      exceptions_(std::uncaught_exceptions()),
      loc_(loc) {}

RangeLoop::~RangeLoop() {
  tracing::Trace* t = tracing::Trace::if_sound();
  if (state_ != 1 || !t) return;
  const std::string name = "for (.. : range(..))";
  if (std::uncaught_exceptions() != exceptions_) {
    t->break_off(loc_, detail::exception_leaves("the body of " + name));
    return;
  }
  t->defer_error(loc_, fmt::format(kLeft, name));
  close();
}

// A loop over range(lo, hi, 1) counts itself: lo <= i < hi cannot overflow. Any other step counts iterations, whose
// number is computed before, so that i + step past the end of the type cannot wrap around to a valid index.
Id RangeLoop::open() {
  ir::Builder& b = tracing::Trace::owner_of(trace_, loc_).builder();
  state_ = 1;
  const Type type = b.module()[lo_].type;
  if (is_known(step_, 0)) ir::fail(b.module(), loc_, "range() with a step of 0");
  counts_ = !is_known(step_, 1);
  const Id zero = b.constant(type, 0);
  const bool empty = lo_ == hi_ || (is_known_below(zero, step_) && is_known_below(hi_, lo_)) ||
                     (is_known_below(step_, zero) && is_known_below(lo_, hi_));
  if (!counts_) {
    counter_ = b.local(type);
    b.local_set(counter_, lo_, loc_);
    b.open_loop({}, loc_);
    Id i = b.local_get(counter_, loc_);
    b.loop_body(b.pure(Op::lt, Type::b1, {i, hi_}, loc_));
    if (empty) b.mark_dead();
    return i;
  }
  const Type unsigned_type = to_unsigned(type);
  auto as_unsigned = [&](Id id) { return b.pure(Op::bitcast, unsigned_type, {id}, loc_); };
  auto distance = [&](Id from, Id to) {  // to - from where it is positive, else 0
    Id ahead = b.pure(Op::lt, Type::b1, {from, to}, loc_);
    Id span = b.pure(Op::sub, unsigned_type, {as_unsigned(to), as_unsigned(from)}, loc_);
    return b.pure(Op::select, unsigned_type, {ahead, span, b.constant(unsigned_type, 0)}, loc_);
  };
  Id up = b.pure(Op::lt, Type::b1, {zero, step_}, loc_);
  Id span = distance(lo_, hi_), size = as_unsigned(step_);
  if (is_signed(type)) {
    span = b.pure(Op::select, unsigned_type, {up, span, distance(hi_, lo_)}, loc_);
    size = b.pure(Op::select, unsigned_type, {up, size, b.pure(Op::neg, unsigned_type, {size}, loc_)}, loc_);
  }
  // ceil(span / size) without overflow: (span - 1) / size + 1 where span > 0.
  Id one = b.constant(unsigned_type, 1), none = b.constant(unsigned_type, 0);
  Id some = b.pure(Op::bit_and, Type::b1,
                   {b.pure(Op::ne, Type::b1, {span, none}, loc_), b.pure(Op::ne, Type::b1, {step_, zero}, loc_)}, loc_);
  Id whole = b.pure(Op::div, unsigned_type, {b.pure(Op::sub, unsigned_type, {span, one}, loc_), size}, loc_);
  count_ = b.pure(Op::select, unsigned_type, {some, b.pure(Op::add, unsigned_type, {whole, one}, loc_), none}, loc_);

  counter_ = b.local(unsigned_type);
  b.local_set(counter_, none, loc_);
  b.open_loop({}, loc_);
  Id k = b.local_get(counter_, loc_);
  b.loop_body(b.pure(Op::lt, Type::b1, {k, count_}, loc_));
  if (empty) b.mark_dead();
  Id offset = b.pure(Op::mul, type, {b.pure(Op::bitcast, type, {k}, loc_), step_}, loc_);
  return b.pure(Op::add, type, {lo_, offset}, loc_);
}

void RangeLoop::close() {
  state_ = 2;
  ir::Builder& b = builder();
  b.loop_step();
  const Type type = b.module().locals[counter_].type;
  Id i = b.local_get(counter_, loc_);
  b.local_set(counter_, b.pure(Op::add, type, {i, b.constant(type, 1)}, loc_), loc_);
  b.close_loop();
}

}  // namespace detail

namespace {
void leave_loop(Op op, const char* what, Loc loc) {
  tracing::Trace& t = tracing::Trace::current(loc);
  if (!t.in_loop()) ir::fail(t.module(), loc, fmt::format("{} outside a traced loop", what));
  t.builder().leave(op, loc);
}
}  // namespace

void Break(Loc loc) { leave_loop(Op::break_, "Break()", loc); }
void Continue(Loc loc) { leave_loop(Op::continue_, "Continue()", loc); }
void Return(Loc loc) {
  tracing::Trace& t = tracing::Trace::current(loc);
  // In a function that is traced in place of its call as well, which has no trace of its own.
  if (!t.kernel().calls.empty())
    ir::fail(t.module(), loc,
             "Return() ends the kernel's thread and may not stand in a func: use If and Else, and return the value at "
             "the end");
  t.builder().leave(Op::return_, loc);
}

}  // namespace weft
