// The SPIR-V emitter's control flow: every nesting of branches, loops and exits, both forms, fixed and random.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "../../frontend/ir/builder.h"
#include "../../frontend/passes/passes.h"
#include "../../spirv/emit.h"

namespace weft {
namespace {

using ir::Builder;
using ir::Id;
using ir::MemoryRef;
using ir::Module;
using ir::Op;
using ir::Type;
using spirv::Target;

constexpr std::uint32_t kIn = 8, kOut = 16, kLimit = 24;

Module kernel() {
  Module m;
  m.name = "test";
  m.loc = Loc::here();
  m.args_bytes = 32;
  return m;
}

Id thread(Builder& b) { return b.pure(Op::bitcast, Type::i32, {b.thread_id()}); }
Id limit(Builder& b) { return b.arg(Type::i32, kLimit); }
Id load(Builder& b) { return b.load(Type::i32, 1, {b.arg(Type::u64, kIn), thread(b), 4, 0, 4}); }
void store(Builder& b, Id x) { b.store(Type::i32, {&x, 1}, {b.arg(Type::u64, kOut), thread(b), 4, 0, 4}); }
Id less(Builder& b, Id x, Id y) { return b.pure(Op::lt, Type::b1, {x, y}); }
Id one(Builder& b) { return b.constant_int(Type::i32, 1); }

void validates(const Module& m, const char* form) {
  ASSERT_EQ(ir::first_violation(m), "") << form << "\n" << ir::print(m);
  std::vector<std::uint32_t> words = spirv::emit(m, Target::everything());
  ASSERT_EQ(spirv::validate(words), "") << form << "\n" << ir::print(m) << spirv::disassemble(words);
}

/// Checks a module in traced form, and in the form that each pass makes of it.
void check(const Module& m) {
  validates(m, "traced");
  Module short_form = ir::forward(m);
  validates(short_form, "forwarded");
  Module normalised = ir::normalise(short_form);
  validates(normalised, "normalised");
  validates(ir::promote(normalised), "promoted");
  validates(ir::forward(ir::promote(ir::normalise(m))), "promoted and forwarded");
}

/// A loop over a local from 0 to the limit.
void count_loop(Builder& b, const auto& body, bool step = true) {
  std::uint32_t i = b.local(Type::i32);
  b.local_set(i, b.constant_int(Type::i32, 0));
  b.open_loop();
  b.loop_body(less(b, b.local_get(i), limit(b)));
  if (!step) b.local_set(i, b.pure(Op::add, Type::i32, {b.local_get(i), one(b)}));
  body(i);
  if (step) {
    b.loop_step();
    b.local_set(i, b.pure(Op::add, Type::i32, {b.local_get(i), one(b)}));
  }
  b.close_loop();
}

TEST(SpirvControl, EveryExitInEveryNesting) {
  enum Exit { none, leave_break, leave_continue, leave_return };
  constexpr Op kOps[] = {Op::break_, Op::break_, Op::continue_, Op::return_};
  for (Exit then : {none, leave_break, leave_continue, leave_return}) {
    for (Exit otherwise : {none, leave_break, leave_continue, leave_return}) {
      for (Exit after : {none, leave_break, leave_continue, leave_return}) {
        for (int depth = 0; depth < 3; ++depth) {
          for (bool step : {false, true}) {
            Module m = kernel();
            Builder b(m);
            std::uint32_t sum = b.local(Type::i32);
            b.local_set(sum, b.constant_int(Type::i32, 0));
            auto leave = [&](Exit e) {
              b.local_set(sum, b.pure(Op::add, Type::i32, {b.local_get(sum), load(b)}));
              if (e != none) b.leave(kOps[e]);
            };
            count_loop(
                b,
                [&](std::uint32_t i) {
                  // Branches surround the branch; in the deepest one the loop is doubled.
                  if (depth > 0) b.open_if(less(b, load(b), limit(b)));
                  auto inner = [&](std::uint32_t j) {
                    b.open_if(less(b, b.local_get(j), load(b)));
                    leave(then);
                    b.open_else();
                    leave(otherwise);
                    b.close_if();
                    leave(after);
                  };
                  if (depth > 1) {
                    count_loop(b, inner, step);
                  } else {
                    inner(i);
                  }
                  if (depth > 0) b.close_if();
                },
                step);
            store(b, b.local_get(sum));
            check(m);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(SpirvControl, EarlyReturn) {
  Module m = kernel();
  Builder b(m);
  b.open_if(less(b, load(b), limit(b)));
  b.leave(Op::return_);
  b.close_if();
  store(b, load(b));
  b.leave(Op::return_);
  store(b, limit(b));
  check(m);
}

TEST(SpirvControl, EmptyKernelsAndBranches) {
  Module empty = kernel();
  check(empty);
  Module m = kernel();
  Builder b(m);
  b.open_if(less(b, load(b), limit(b)));
  b.open_else();
  b.close_if();
  b.open_if(less(b, limit(b), load(b)));
  b.open_else();
  store(b, limit(b));
  b.close_if();
  count_loop(b, [](std::uint32_t) {});
  check(m);
}

TEST(SpirvControl, WhatFollowsTwoExitsIsDropped) {
  Module m = kernel();
  Builder b(m);
  b.open_if(less(b, load(b), limit(b)));
  b.leave(Op::return_);
  b.open_else();
  b.leave(Op::return_);
  b.close_if();
  // This code cannot run, with all that is in it.
  store(b, load(b));
  count_loop(b, [&](std::uint32_t) { b.leave(Op::break_); });
  check(m);
}

TEST(SpirvControl, ConditionsThatBranch) {
  Module m = kernel();
  Builder b(m);
  std::uint32_t i = b.local(Type::i32);
  b.local_set(i, b.constant_int(Type::i32, 0));
  b.open_loop();
  Id first = less(b, b.local_get(i), limit(b));
  b.open_if(first);
  Id second = less(b, load(b), limit(b));
  Id both = b.close_short_circuit(first, second, false);
  b.loop_body(both);
  b.local_set(i, b.pure(Op::add, Type::i32, {b.local_get(i), one(b)}));
  b.close_loop();
  store(b, b.local_get(i));
  check(m);
}

TEST(SpirvControl, EndlessLoopsWithAnExit) {
  for (Op exit : {Op::break_, Op::return_}) {
    Module m = kernel();
    Builder b(m);
    std::uint32_t i = b.local(Type::i32);
    b.local_set(i, b.constant_int(Type::i32, 0));
    b.open_loop();
    b.loop_body(b.constant(Type::b1, 1));
    b.local_set(i, b.pure(Op::add, Type::i32, {b.local_get(i), one(b)}));
    b.open_if(less(b, limit(b), b.local_get(i)));
    store(b, b.local_get(i));
    b.leave(exit);
    b.close_if();
    b.close_loop();
    store(b, b.local_get(i));
    check(m);
  }
}

TEST(SpirvControl, LongChainsOfElse) {
  Module m = kernel();
  Builder b(m);
  constexpr int kLinks = 100;
  for (int k = 0; k < kLinks; ++k) {
    b.open_if(less(b, load(b), b.constant_int(Type::i32, k)));
    store(b, b.constant_int(Type::i32, k));
    b.open_else();
  }
  for (int k = 0; k < kLinks; ++k) b.close_if();
  validates(m, "traced");
}

// ---- Normal form by hand

TEST(SpirvControl, ResultsOfBranches) {
  Module m = kernel();
  Builder b(m);
  Id x = load(b);
  b.open_if(less(b, x, limit(b)));
  Id doubled = b.pure(Op::add, Type::i32, {x, x});
  // A nested branch makes the region end in another block than the one in which it began.
  b.open_if(less(b, doubled, limit(b)));
  b.yield(std::initializer_list<Id>{one(b)});
  b.open_else();
  b.yield(std::initializer_list<Id>{x});
  Id inner = b.result(b.close_if(), 0, Type::i32);
  b.yield(std::initializer_list<Id>{inner, doubled, b.arg(Type::i32, kLimit)});
  b.open_else();
  b.yield(std::initializer_list<Id>{x, one(b), b.arg(Type::i32, kLimit)});
  Id branch = b.close_if();
  for (std::uint32_t k = 0; k < 3; ++k) store(b, b.result(branch, k, Type::i32));
  validates(m, "normal");
}

TEST(SpirvControl, CarriedValues) {
  Module m = kernel();
  Builder b(m);
  const Id initial[] = {b.constant_int(Type::i32, 0), load(b), b.constant_float(Type::f32, 1)};
  b.open_loop(initial);
  Id i = b.loop_param(0), x = b.loop_param(1), f = b.loop_param(2);
  b.loop_body(less(b, i, limit(b)));
  // The carried values are swapped, and one is carried through an inner loop.
  const Id start[] = {i};
  b.open_loop(start);
  Id j = b.loop_param(0);
  b.loop_body(less(b, j, x));
  b.yield(std::initializer_list<Id>{b.pure(Op::add, Type::i32, {j, one(b)})});
  Id last = b.result(b.close_loop(), 0, Type::i32);
  b.open_if(less(b, last, limit(b)));
  b.yield(std::initializer_list<Id>{x});
  b.open_else();
  b.yield(std::initializer_list<Id>{last});
  Id chosen = b.result(b.close_if(), 0, Type::i32);
  b.yield(
      std::initializer_list<Id>{b.pure(Op::add, Type::i32, {chosen, one(b)}), i, b.pure(Op::mul, Type::f32, {f, f})});
  Id loop = b.close_loop();
  store(b, b.result(loop, 0, Type::i32));
  store(b, b.result(loop, 1, Type::i32));
  store(b, b.pure(Op::convert, Type::i32, {b.result(loop, 2, Type::f32)}));
  validates(m, "normal");
}

// ---- Random programs

/// Writes programs of branches, loops, exits, assignments and accesses into a builder.
class Programs {
 public:
  Programs(Builder& b, unsigned seed) : b_(b), random_(seed) {}

  void write() {
    for (int k = 0; k < 4; ++k) {
      locals_.push_back(b_.local(k < 3 ? Type::i32 : Type::b1));
      b_.local_set(locals_.back(), k < 3 ? load(b_) : less(b_, load(b_), limit(b_)));
    }
    block(5);
    store(b_, b_.local_get(locals_[0]));
  }

 private:
  unsigned pick(unsigned n) { return unsigned(random_() % n); }
  Id number() {
    switch (pick(5)) {
      case 0: return load(b_);
      case 1: return limit(b_);
      case 2: return b_.constant_int(Type::i32, int(pick(9)) - 4);
      default: return b_.local_get(locals_[pick(3)]);
    }
  }
  Id expression() {
    constexpr Op kOps[] = {Op::add, Op::sub, Op::mul,     Op::div, Op::rem,
                           Op::min, Op::max, Op::bit_xor, Op::shl, Op::shr};
    Id x = number(), y = number();
    return b_.pure(kOps[pick(10)], Type::i32, {x, y});
  }
  Id condition() {
    if (pick(4) == 0) return b_.local_get(locals_[3]);
    Id x = number(), y = number();
    return less(b_, x, y);
  }

  void block(int depth) {
    for (unsigned n = 1 + pick(4); n > 0; --n) statement(depth);
  }

  void statement(int depth) {
    switch (pick(depth > 0 ? 9 : 4)) {
      case 0: store(b_, expression()); break;
      case 1: b_.local_set(locals_[3], condition()); break;
      case 2:
      case 3: b_.local_set(locals_[pick(3)], expression()); break;
      case 4:
        if (loops_ == 0 && pick(3)) break;
        b_.leave(loops_ == 0 ? Op::return_ : pick(5) == 0 ? Op::return_ : pick(2) ? Op::break_ : Op::continue_);
        break;
      case 5:
      case 6:
        b_.open_if(condition());
        block(depth - 1);
        if (pick(2)) {
          b_.open_else();
          block(depth - 1);
        }
        b_.close_if();
        break;
      default: loop(depth);
    }
  }

  void loop(int depth) {
    b_.open_loop();
    if (pick(4) == 0) {
      Id first = condition();
      b_.open_if(first);
      Id second = condition();
      b_.loop_body(b_.close_short_circuit(first, second, false));
    } else {
      b_.loop_body(condition());
    }
    ++loops_;
    block(depth - 1);
    --loops_;
    if (pick(2)) {
      b_.loop_step();
      b_.local_set(locals_[pick(3)], expression());
    }
    b_.close_loop();
  }

  Builder& b_;
  std::mt19937 random_;
  std::vector<std::uint32_t> locals_;
  int loops_ = 0;
};

TEST(SpirvControl, RandomPrograms) {
  const char* asked = std::getenv("WEFT_TEST_PROGRAMS");
  const unsigned programs = asked ? unsigned(std::strtoul(asked, nullptr, 10)) : 300;
  for (unsigned seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    Module m = kernel();
    Builder b(m);
    Programs(b, seed).write();
    check(m);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace weft
