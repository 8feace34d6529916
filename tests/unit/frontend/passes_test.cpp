// The passes: every form of a kernel leaves the same memory behind, shown on fixed and on random programs.
#include "../../../frontend/passes/passes.h"

#include "pass_programs.h"

namespace weft::ir {
namespace {

TEST(Passes, ContinueSkipsAndRunsTheStep) {
  Writer w("continue");
  const std::uint32_t best = w.var(w.i32(0));
  w.range(w.i32(kPerThread), [&](Id i) {
    const Id c = w.in(i);
    w.if_(w.eq(w.b.pure(Op::rem, Type::i32, {c, w.i32(3)}), w.i32(0)), [&] { w.leave(Op::continue_); });
    w.set(best, w.b.pure(Op::max, Type::i32, {w.get(best), c}));
  });
  w.out(w.i32(0), w.get(best));
  const Words in = counting();
  const Words out = check(w.m, in);
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    std::uint32_t expected = 0;
    for (std::uint32_t k = 0; k < kPerThread; ++k) {
      const std::uint32_t c = in[t * kPerThread + k];
      if (c % 3 != 0) expected = std::max(expected, c);
    }
    EXPECT_EQ(out[t * kPerThread], expected);
  }
  // No flag is carried, because the rest of the body became the other side of the branch.
  const Module normal = promote(normalise(forward(w.m)));
  for (const Inst& inst : normal.insts) {
    if (inst.op == Op::loop) {
      EXPECT_EQ(inst.num_args, 2u) << print(normal);
    }
  }
}

TEST(Passes, BreakKeepsTheValueOfItsIteration) {
  Writer w("break");
  const std::uint32_t product = w.var(w.i32(1));
  const std::uint32_t at = w.var(w.i32(-1));
  w.range(w.i32(kPerThread), [&](Id i) {
    w.set(product, w.mul(w.get(product), w.add(w.tid(), w.i32(2))));
    w.if_(w.lt(w.i32(40), w.get(product)), [&] {
      w.set(at, i);
      w.leave(Op::break_);
    });
  });
  w.out(w.i32(0), w.get(product));
  w.out(w.i32(1), w.get(at));
  const Words out = check(w.m, counting());
  EXPECT_EQ(column(out, 0)[0], 64u);
  EXPECT_EQ(column(out, 1)[0], 5u);
  EXPECT_EQ(column(out, 0)[11], 169u);
  EXPECT_EQ(column(out, 1)[11], 1u);
}

TEST(Passes, ReturnFromNestedLoops) {
  Writer w("return");
  const std::uint32_t n = w.var(w.i32(0));
  w.range(w.i32(4), [&](Id i) {
    w.range(w.i32(4), [&](Id j) {
      w.set(n, w.add(w.get(n), w.i32(1)));
      w.if_(w.lt(j, w.i32(3)), [&] {
        w.if_(w.eq(w.add(w.mul(i, w.i32(4)), j), w.tid()), [&] {
          w.out(w.i32(0), w.mul(w.get(n), w.i32(100)));
          w.leave(Op::return_);
        });
        w.out(w.i32(2), j);
      });
      w.out(w.i32(3), i);
    });
    w.out(w.i32(4), i);
  });
  w.out(w.i32(0), w.get(n));
  const Words out = column(check(w.m, counting()), 0);
  for (std::uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(out[t], t % 4 == 3 ? 16 : (t + 1) * 100) << t;
}

TEST(Passes, EarlyReturnNeedsNoFlag) {
  Writer w("early");
  w.if_(w.lt(w.tid(), w.i32(3)), [&] { w.leave(Op::return_); });
  w.out(w.i32(0), w.i32(7));
  const Words out = column(check(w.m, counting()), 0);
  for (std::uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(out[t], t < 3 ? 0 : 7);
  EXPECT_TRUE(normalise(w.m).locals.empty());
}

TEST(Passes, ExitsInARowAreNoDeeperThanTheirChain) {
  // There are 1,000 exits, of a loop and of the thread, and values from before them that are needed after all exits.
  for (const bool looped : {false, true}) {
    Writer w("many exits");
    const auto body = [&](Id turn) {
      std::vector<Id> before;
      for (int k = 0; k < 1000; ++k) {
        before.push_back(w.in(w.i32(k % int(kPerThread))));
        w.if_(w.eq(w.add(w.mul(w.tid(), w.i32(77)), turn), w.i32(k)), [&] {
          w.out(w.i32(k % 3), before[std::size_t(k / 2)]);
          w.leave(k % 4 == 3 || !looped ? Op::return_ : k % 4 == 1 ? Op::continue_ : Op::break_);
        });
      }
      for (int k = 0; k < 1000; k += 111) w.out(w.i32(4), w.add(before[std::size_t(k)], turn));
    };
    if (looped)
      w.range(w.i32(9), body);
    else
      body(w.i32(0));
    w.out(w.i32(5), w.i32(1));
    check(w.m, counting());
    const Module normal = normalise(w.m);
    EXPECT_LE(deepest(normal), 260u);
    EXPECT_LE(deepest(promote(normal)), 260u);
  }
}

TEST(Passes, ConditionIsNotComputedAfterABreak) {
  // After the break the condition would read outside of the array.
  Writer w("guarded condition");
  const std::uint32_t i = w.var(w.i32(0));
  w.while_([&] { return w.lt(w.i32(-1), w.in(w.get(i))); },
           [&] {
             w.set(i, w.add(w.get(i), w.i32(1)));
             w.if_(w.eq(w.get(i), w.i32(kPerThread)), [&] {
               w.set(i, w.i32(1 << 20));
               w.leave(Op::break_);
             });
           });
  w.out(w.i32(0), w.get(i));
  EXPECT_EQ(column(check(w.m, counting()), 0), Words(kThreads, 1 << 20));
}

TEST(Passes, ConditionThatAssignsWhatLivesOn) {
  Writer w("assigning condition");
  const std::uint32_t i = w.var(w.i32(0));
  w.range(w.i32(3), [&](Id) {
    w.while_(
        [&] {
          w.set(i, w.add(w.get(i), w.i32(1)));
          return w.b.pure(Op::ne, Type::b1, {w.b.pure(Op::rem, Type::i32, {w.get(i), w.i32(5)}), w.i32(0)});
        },
        [&] { w.out(w.i32(1), w.get(i)); });
  });
  w.out(w.i32(0), w.get(i));
  const Words out = check(w.m, counting());
  EXPECT_EQ(column(out, 0), Words(kThreads, 15));
  EXPECT_EQ(column(out, 1), Words(kThreads, 14));
}

TEST(Passes, ShortCircuitInACondition) {
  Writer w("short circuit");
  const std::uint32_t i = w.var(w.i32(0));
  w.while_(
      [&] {
        const Id inside = w.lt(w.get(i), w.i32(kPerThread));
        w.b.open_if(inside);
        return w.b.close_short_circuit(inside, w.lt(w.in(w.get(i)), w.i32(3000)), false);
      },
      [&] { w.set(i, w.add(w.get(i), w.i32(1))); });
  w.out(w.i32(0), w.get(i));
  const Words in = counting();
  const Words out = column(check(w.m, in), 0);
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    std::uint32_t n = 0;
    while (n < kPerThread && in[t * kPerThread + n] < 3000) ++n;
    EXPECT_EQ(out[t], n);
  }
  // The result of the short circuit is assigned and read within the condition, so the loop keeps its shape.
  const Module normal = normalise(w.m);
  EXPECT_EQ(count(normal, Op::if_), 1) << print(normal);
}

TEST(Passes, AllExitsInAllNestings) {
  // Each exit is tested in each nesting of two constructs, with code after every one of them.
  for (Op exit : {Op::break_, Op::continue_, Op::return_}) {
    for (int outer = 0; outer < 4; ++outer) {
      for (int inner = 0; inner < 4; ++inner) {
        for (int innermost = 0; innermost < 3; ++innermost) {
          Writer w("nest");
          const std::uint32_t n = w.var(w.i32(0));
          const auto bump = [&](int by) { w.set(n, w.add(w.mul(w.get(n), w.i32(3)), w.i32(by))); };
          const auto odd = [&](int shift) {
            const Id bit = w.b.pure(Op::shr, Type::i32, {w.add(w.tid(), w.get(n)), w.i32(shift)});
            return w.eq(w.b.pure(Op::bit_and, Type::i32, {bit, w.i32(1)}), w.i32(1));
          };
          const std::function<void(int, const std::function<void()>&)> nest = [&](int kind,
                                                                                  const std::function<void()>& body) {
            switch (kind) {
              case 0: return w.if_(odd(0), body);
              case 1:
                return w.if_(
                    odd(1), [&] { bump(5); }, body);
              case 2: return w.range(w.i32(3), [&](Id i) { w.out(w.i32(2), i), body(), bump(7); });
              default: {
                const std::uint32_t k = w.var(w.i32(0));
                return w.while_([&] { return w.lt(w.get(k), w.i32(4)); },
                                [&] {
                                  w.set(k, w.add(w.get(k), w.i32(1)));
                                  body();
                                });
              }
            }
          };
          const auto leave = [&] {
            bump(1);
            w.leave(exit);
          };
          // A loop surrounds everything, so that break and continue always have one.
          w.range(w.i32(3), [&](Id) {
            bump(2);
            nest(outer, [&] {
              nest(inner, [&] {
                if (innermost == 0) w.if_(odd(2), leave);
                if (innermost == 1) w.if_(odd(0), leave, [&] { bump(9); });
                if (innermost == 2)
                  w.if_(odd(0), [&] {
                    bump(3);
                    w.if_(odd(1), leave);
                  });
                bump(4);
              });
              bump(6);
            });
            w.out(w.i32(1), w.get(n));
          });
          w.out(w.i32(0), w.get(n));
          SCOPED_TRACE(testing::Message() << info(exit).name << " " << outer << inner << innermost);
          check(w.m, counting());
          if (HasFailure()) return;
        }
      }
    }
  }
}

// ---- Removed and kept code

TEST(Forward, ReplacesAndRemoves) {
  Writer w("straight");
  const std::uint32_t a = w.var(w.in(w.i32(0)));
  const std::uint32_t once = w.var(w.add(w.get(a), w.i32(1)));
  const std::uint32_t unread = w.var(w.i32(4));
  w.range(w.i32(3), [&](Id i) {
    w.set(unread, w.in(i));
    w.out(i, w.get(once));
  });
  w.if_(w.lt(w.get(a), w.i32(9)), [&] { w.set(unread, w.i32(3)); });
  const Module m = forward(w.m);
  // Only the counter of the loop is left.
  EXPECT_EQ(m.locals.size(), 1u) << print(m);
  EXPECT_EQ(count(m, Op::load), 1) << print(m);
  EXPECT_EQ(count(m, Op::if_), 0) << print(m);
  EXPECT_EQ(count(m, Op::loop), 1) << print(m);
  check(w.m, counting());
}

TEST(Forward, DropsOverwrittenAssignments) {
  Writer w("overwritten");
  const std::uint32_t a = w.b.local(Type::i32);
  w.set(a, w.in(w.i32(0)));
  w.set(a, w.i32(2));
  w.range(w.i32(3), [&](Id i) {
    w.out(i, w.get(a));
    w.set(a, w.in(i));
    w.set(a, i);
  });
  const Module m = forward(w.m);
  EXPECT_EQ(count(m, Op::load), 0) << print(m);
  check(w.m, counting());
}

TEST(Forward, KeepsWhatALoopMayChange) {
  Writer w("changing");
  const std::uint32_t a = w.var(w.i32(1));
  w.range(w.i32(5), [&](Id i) {
    w.out(i, w.get(a));
    w.if_(w.eq(i, w.tid()), [&] { w.set(a, w.i32(50)); });
  });
  w.out(w.i32(6), w.get(a));
  const Words out = check(w.m, counting());
  EXPECT_EQ(out[0], 1u);
  EXPECT_EQ(out[1], 50u);
  EXPECT_EQ(out[6], 50u);
  EXPECT_EQ(out[7 * kPerThread + 6], 1u);
}

TEST(Forward, TakesBranchesOnConstants) {
  Writer w("constant branch");
  const std::uint32_t c = w.var(w.b.constant(Type::b1, 1));
  w.if_(
      w.get(c), [&] { w.out(w.i32(0), w.i32(1)); }, [&] { w.out(w.i32(0), w.i32(2)); });
  w.if_(w.b.pure(Op::bit_not, Type::b1, {w.get(c)}), [&] { w.out(w.i32(1), w.i32(1)); });
  const Module m = forward(w.m);
  EXPECT_EQ(count(m, Op::if_), 0) << print(m);
  EXPECT_EQ(count(m, Op::store), 1) << print(m);
  EXPECT_EQ(column(check(w.m, counting()), 0), Words(kThreads, 1));
}

TEST(Forward, AssignmentBeforeAnExitIsNotSeenAfterIt) {
  Writer w("exit");
  const std::uint32_t a = w.var(w.i32(5));
  w.range(w.i32(4), [&](Id i) {
    w.if_(w.eq(i, w.tid()), [&] {
      w.set(a, w.i32(9));
      w.leave(Op::break_);
    });
    w.out(w.i32(1), w.get(a));
  });
  w.out(w.i32(0), w.get(a));
  const Words out = check(w.m, counting());
  EXPECT_EQ(column(out, 0)[3], 9u);
  EXPECT_EQ(column(out, 1)[3], 5u);
  EXPECT_EQ(column(out, 0)[4], 5u);
}

TEST(Sweep, KeepsAtomicAddsWithoutReaders) {
  Module m = kernel("atomic");
  Builder b(m);
  b.atomic(Op::atomic_add, Type::i32, {b.constant_int(Type::i32, 1)},
           {b.arg(Type::u64, kOut), b.constant_int(Type::i32, 0), 4, 0, 4});
  EXPECT_EQ(count(sweep(m), Op::atomic_add), 1);
  EXPECT_EQ(check(m, counting())[0], kThreads);
}

TEST(Promote, DropsWhatNobodyReads) {
  Writer w("pruned");
  const std::uint32_t sum = w.var(w.i32(0)), unread = w.var(w.i32(1)), constant = w.var(w.i32(6));
  w.range(w.i32(4), [&](Id i) {
    w.set(sum, w.add(w.get(sum), w.mul(i, w.get(constant))));
    w.set(unread, w.mul(w.get(unread), i));
    const std::uint32_t inner = w.var(w.i32(2));
    w.if_(w.eq(i, w.i32(2)), [&] { w.set(inner, w.i32(3)); });
    w.set(constant, w.get(constant));
    w.set(sum, w.add(w.get(sum), w.get(inner)));
  });
  w.out(w.i32(0), w.get(sum));
  const Module m = promote(normalise(w.m));
  for (const Inst& inst : m.insts) {
    if (inst.op == Op::loop) {
      EXPECT_EQ(inst.num_args, 2u) << print(m);
    }
  }
  EXPECT_EQ(column(check(w.m, counting()), 0), Words(kThreads, 45));
}

TEST(Promote, ReadsOfUnassignedLocalsAreZero) {
  Writer w("unassigned");
  const std::uint32_t v = w.b.local(Type::i32);
  w.range(w.i32(3), [&](Id i) { w.set(v, w.add(w.get(v), i)); });
  w.out(w.i32(0), w.get(v));
  const Module m = promote(normalise(w.m));
  EXPECT_EQ(first_violation(m), "");
  EXPECT_EQ(column(run(m, counting()), 0), Words(kThreads, 3));
}

TEST(PromoteDeathTest, RefusesExits) {
  Writer w("exits");
  w.if_(w.lt(w.tid(), w.i32(3)), [&] { w.leave(Op::return_); });
  w.out(w.i32(0), w.i32(7));
  EXPECT_DEATH(promote(w.m), "without exits");
}

// There are a load and a store of two arrays: one guarded by a check, the other after it.
TEST(Passes, WhatACertainFailureKeepsFromRunningIsDroppedButMarked) {
  const auto accesses = [](bool good, std::uint64_t failure) {
    Module m = kernel("checked");
    for (const std::uint32_t offset : {kIn, kOut}) {
      Param p;
      p.kind = Param::Kind::array;
      p.offset = offset;
      p.bytes = 8;
      m.params.push_back(p);
    }
    Builder b(m);
    const Id index = b.thread_id();
    b.open_if(b.constant(Type::b1, good));
    const Id loaded = b.load(Type::i32, 1, {b.arg(Type::u64, kIn), index, 4, 0, 4}, {});
    const std::uint32_t local = b.local(Type::i32);
    b.local_set(local, loaded);
    b.open_else();
    b.leave(Op::return_, {}, failure);
    b.close_if();
    const Id out[] = {b.local_get(local)};
    b.store(Type::i32, out, {b.arg(Type::u64, kOut), index, 4, 0, 4}, {});
    Module clean = forward(m);
    mark_accesses(clean);
    const bool stores = std::ranges::any_of(clean.insts, [](const Inst& inst) { return inst.op == Op::store; });
    EXPECT_EQ(stores, good) << print(clean);
    return std::pair(clean.params[0].access, clean.params[1].access);
  };
  const std::pair both(Access::read, Access::write), none(Access::none, Access::none);
  EXPECT_EQ(accesses(true, 1), both);
  EXPECT_EQ(accesses(false, 1), both);
  EXPECT_EQ(accesses(false, 0), none) << "where the thread returns, all is as it should be";
}

TEST(Passes, PreserveTheKernelAndItsLines) {
  Module m = kernel("described");
  m.block = 64;
  m.tid_rank = 2;
  m.args_bytes = 32;
  Param p;
  p.name = "n";
  p.type_name = "int32";
  p.offset = 24;
  p.bytes = 4;
  p.access = Access::read;
  m.params.push_back(p);
  Builder b(m);
  const Loc loc{"user.cpp", 42};
  const std::uint32_t v = b.local(Type::i32);
  b.local_set(v, b.arg(Type::i32, 24), loc);
  b.open_loop({}, loc);
  b.loop_body(b.pure(Op::lt, Type::b1, {b.local_get(v, loc), b.constant_int(Type::i32, 9)}, loc));
  b.open_if(b.pure(Op::eq, Type::b1, {b.local_get(v, loc), b.constant_int(Type::i32, 5)}, loc), loc);
  b.leave(Op::break_, loc);
  b.close_if();
  b.local_set(v, b.pure(Op::mul, Type::i32, {b.local_get(v, loc), b.constant_int(Type::i32, 3)}, loc), loc);
  b.close_loop();
  const Id out[] = {b.local_get(v, loc)};
  b.store(Type::i32, out, {b.arg(Type::u64, kOut), b.thread_id(), 4, 0, 4}, loc);
  for (const Form& form : forms(m)) {
    const Module& n = form.module;
    EXPECT_EQ(n.name, m.name);
    EXPECT_EQ(n.loc.line, m.loc.line);
    EXPECT_EQ(n.block, 64u);
    EXPECT_EQ(n.tid_rank, 2u);
    EXPECT_EQ(n.args_bytes, 32u);
    ASSERT_EQ(n.params.size(), 1u);
    EXPECT_EQ(n.params[0].name, "n");
    EXPECT_EQ(n.params[0].access, Access::read);
    for (Op op : {Op::loop, Op::store, Op::lt, Op::eq, Op::mul}) {
      for (const Inst& inst : n.insts) {
        if (inst.op == op) {
          EXPECT_EQ(inst.line, 42) << form.name << " " << info(op).name;
        }
      }
    }
  }
}

TEST(Passes, RandomProgramsKeepTheirMeaning) {
  const Words in = counting();
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check(Generator(seed).run(), in);
    if (HasFailure()) return;
  }
}

TEST(Passes, RandomProgramsWithFunctionsKeepTheirMeaning) {
  const Words in = counting();
  std::size_t calls = 0;
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Module m = Generator(seed).run(3);
    calls += static_cast<std::size_t>(count(m, Op::call));
    check(m, in);
    if (HasFailure()) return;
  }
  EXPECT_GT(calls, 150u);
}

TEST(Passes, InliningRefusesToGrowWithoutBound) {
  Writer w("doubling");
  for (std::uint32_t k = 0; k < 40; ++k) {
    Module f = kernel("doubling");
    f.function = "twice";
    Builder b(f);
    const Id x = b.input(Type::i32);
    Id y[] = {b.pure(Op::add, Type::i32, {x, b.thread_id()})};
    if (k > 0) {
      for (int call = 0; call < 2; ++call) y[0] = b.result(b.call(k - 1, y), 0, Type::i32);
    }
    b.yield(y);
    w.m.functions.push_back(std::make_shared<Module>(f));
  }
  const Id x[] = {w.tid()};
  w.out(w.i32(0), w.b.result(w.b.call(39, x), 0, Type::i32));
  EXPECT_EQ(first_violation(w.m).find("operands"), std::string::npos);
  EXPECT_THROW(inline_calls(w.m), Error);
}

TEST(Passes, FunctionsThatNothingCallsAreRemoved) {
  Writer w("unused");
  for (int k = 0; k < 3; ++k) {
    Module f = kernel("unused");
    f.function = std::string(1, static_cast<char>('a' + k));
    Builder b(f);
    const Id x = b.input(Type::i32);
    Id y[] = {b.pure(Op::mul, Type::i32, {x, b.constant_int(Type::i32, k + 2)})};
    if (k == 2) y[0] = b.result(b.call(1, y), 0, Type::i32);
    b.yield(y);
    w.m.functions.push_back(std::make_shared<Module>(f));
  }
  const Id x[] = {w.tid()};
  w.b.result(w.b.call(0, x), 0, Type::i32);  // pure and unread
  w.out(w.i32(0), w.b.result(w.b.call(2, x), 0, Type::i32));
  const Module m = forward(w.m);
  ASSERT_EQ(m.functions.size(), 2u) << print(m);
  EXPECT_EQ(m.functions[0]->function, "b");
  EXPECT_EQ(column(check(w.m, counting()), 0)[5], 5u * 4 * 3);
}

TEST(Passes, PrintAndHashOfARebuiltModuleAreStable) {
  // A second sweep finds nothing that the first one has left.
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const Module once = sweep(Generator(seed).run());
    const Module twice = sweep(once);
    EXPECT_EQ(print(once), print(twice)) << seed;
    EXPECT_EQ(hash(once), hash(twice)) << seed;
  }
}

}  // namespace
}  // namespace weft::ir
