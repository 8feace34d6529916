// The passes: every form of a kernel leaves the same memory behind, shown on fixed and on random programs.
#include "../../frontend/passes/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "../../backends/reference/reference.h"
#include "../../frontend/ir/builder.h"
#include "../../frontend/support/error.h"

namespace weft::ir {
namespace {

// ---- Running a module

constexpr std::uint32_t kIn = 8, kOut = 16;  // where the argument block holds the two addresses
constexpr std::uint32_t kPerThread = 8;      // words of input and of output for each thread
constexpr std::uint32_t kThreads = 12;

Module kernel(const char* name) {
  Module m;
  m.name = name;
  m.loc = Loc::here();
  m.args_bytes = 24;
  return m;
}

using Words = std::vector<std::uint32_t>;

/// What the kernel leaves in the output, which starts as zeros.
Words run(const Module& m, const Words& in) {
  const std::unique_ptr<backend::Device> device = backend::open_reference();
  const std::size_t bytes = in.size() * 4;
  const backend::Allocation a = device->allocate(bytes, backend::MemoryKind::device);
  const backend::Allocation b = device->allocate(bytes, backend::MemoryKind::device);
  Words out(in.size(), 0);
  {
    const std::unique_ptr<backend::Stream> stream = device->create_stream();
    stream->upload(a.address, in.data(), bytes);
    stream->fill(b.address, bytes, 0);
    std::byte args[24] = {};
    const auto threads = static_cast<std::uint32_t>(in.size() / kPerThread);
    std::memcpy(args, &threads, 4);
    std::memcpy(args + kIn, &a.address, 8);
    std::memcpy(args + kOut, &b.address, 8);
    const std::shared_ptr<backend::Program> program = device->compile(m, hash(m));
    const backend::MemoryRange ranges[] = {{a.address, bytes, Access::read},
                                           {b.address, bytes, Access::read | Access::write}};
    stream->launch(*program, {1, 1, 1}, args, ranges);
    stream->download(out.data(), b.address, bytes, stream->submit());
  }
  device->free(a);
  device->free(b);
  return out;
}

bool has(const Module& m, std::initializer_list<Op> ops) {
  const std::function<bool(RegionId)> region = [&](RegionId r) {
    for (Id id : m.regions[r].insts) {
      if (std::ranges::count(ops, m[id].op)) return true;
      for (RegionId inner : m[id].regions) {
        if (inner != kNone && region(inner)) return true;
      }
    }
    return false;
  };
  return region(0);
}

bool has_step(const Module& m) {
  return std::ranges::any_of(m.insts, [](const Inst& i) { return i.op == Op::loop && i.regions[2] != kNone; });
}

int count(const Module& m, Op op) {
  int n = 0;
  for (const Region& r : m.regions) {
    for (Id id : r.insts) n += m[id].op == op;
  }
  return n;
}

struct Form {
  const char* name;
  Module module;
};

std::vector<Form> forms(const Module& traced) {
  std::vector<Form> all;
  all.push_back({"forward", forward(traced)});
  all.push_back({"normalise", normalise(traced)});
  all.push_back({"promote normalise", promote(all[1].module)});
  all.push_back({"normalise forward", normalise(all[0].module)});
  all.push_back({"forward normalise forward", forward(all[3].module)});
  all.push_back({"promote forward normalise forward", promote(all[4].module)});
  all.push_back({"forward of normal form", forward(all[2].module)});
  all.push_back({"normalise of normal form", normalise(all[5].module)});
  all.push_back({"promote of normal form", promote(all[5].module)});
  all.push_back({"sweep", sweep(traced)});
  return all;
}

/// Checks each form's rules and that it does what the traced one does; returns what that is.
Words check(const Module& traced, const Words& in) {
  EXPECT_EQ(first_violation(traced), "") << print(traced);
  if (!first_violation(traced).empty()) return {};
  const Words expected = run(traced, in);
  for (const Form& form : forms(traced)) {
    const std::string violation = first_violation(form.module);
    EXPECT_EQ(violation, "") << form.name << "\n" << print(traced) << print(form.module);
    if (!violation.empty()) return expected;
    const std::string_view name = form.name;
    if (name.find("normal") != name.npos) {
      EXPECT_FALSE(has(form.module, {Op::break_, Op::continue_, Op::return_})) << form.name << print(form.module);
      EXPECT_FALSE(has_step(form.module)) << form.name << print(form.module);
    }
    if (name.starts_with("promote") || name.ends_with("normal form")) {
      EXPECT_FALSE(has(form.module, {Op::local_get, Op::local_set})) << form.name << print(form.module);
    }
    try {
      EXPECT_EQ(run(form.module, in), expected) << form.name << "\n" << print(traced) << print(form.module);
    } catch (const Error& e) {
      ADD_FAILURE() << form.name << ": " << e.what() << "\n" << print(traced) << print(form.module);
    }
  }
  return expected;
}

Words counting(std::uint32_t threads = kThreads) {
  Words in(threads * kPerThread);
  for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = i * 2654435761u >> 20;
  return in;
}

// ---- Writing kernels by hand

/// The Builder with the words that the tests use.
struct Writer {
  explicit Writer(const char* name) : m(kernel(name)), b(m) {}

  Module m;
  Builder b;

  Id i32(std::int64_t v) { return b.constant_int(Type::i32, v); }
  Id add(Id x, Id y) { return b.pure(Op::add, Type::i32, {x, y}); }
  Id mul(Id x, Id y) { return b.pure(Op::mul, Type::i32, {x, y}); }
  Id lt(Id x, Id y) { return b.pure(Op::lt, Type::b1, {x, y}); }
  Id eq(Id x, Id y) { return b.pure(Op::eq, Type::b1, {x, y}); }
  Id get(std::uint32_t v) { return b.local_get(v); }
  void set(std::uint32_t v, Id x) { b.local_set(v, x); }
  std::uint32_t var(Id initial) {
    const std::uint32_t v = b.local(b.module()[initial].type);
    set(v, initial);
    return v;
  }
  Id tid() { return b.pure(Op::convert, Type::i32, {b.thread_id()}); }
  /// Word `slot` of this thread's part.
  MemoryRef word(std::uint32_t base, Id slot) {
    return {b.arg(Type::u64, base), add(mul(tid(), i32(kPerThread)), slot), 4, 0, 4};
  }
  Id in(Id slot) { return b.load(Type::i32, 1, word(kIn, slot)); }
  void out(Id slot, Id v) { b.store(Type::i32, {&v, 1}, word(kOut, slot)); }
  void if_(Id c, const std::function<void()>& then, const std::function<void()>& other = {}) {
    b.open_if(c);
    then();
    if (other) {
      b.open_else();
      other();
    }
    b.close_if();
  }
  void while_(const std::function<Id()>& condition, const std::function<void()>& body) {
    b.open_loop();
    b.loop_body(condition());
    body();
    b.close_loop();
  }
  void range(Id n, const std::function<void(Id)>& body) {
    const std::uint32_t i = var(i32(0));
    b.open_loop();
    b.loop_body(lt(get(i), n));
    body(get(i));
    b.loop_step();
    set(i, add(get(i), i32(1)));
    b.close_loop();
  }
  void leave(Op op) { b.leave(op); }
};

/// Slot `slot` of every thread.
Words column(const Words& words, std::uint32_t slot) {
  Words all;
  for (std::size_t i = slot; i < words.size(); i += kPerThread) all.push_back(words[i]);
  return all;
}

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
  // No flag is carried: the rest of the body became the other side of the branch.
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

TEST(Passes, ConditionIsNotComputedAfterABreak) {
  // Past the break the condition would read outside the array.
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
  // The answer of the short circuit is assigned and read within the condition: the loop keeps its shape.
  const Module normal = normalise(w.m);
  EXPECT_EQ(count(normal, Op::if_), 1) << print(normal);
}

TEST(Passes, AllExitsInAllNestings) {
  // Each exit under each stack of two constructs, with code after every one of them.
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
          // A loop around everything, so that break and continue always have one.
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

// ---- What is removed, and what is kept

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
  // Only the loop's counter is left.
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
  b.atomic_add(Type::i32, b.constant_int(Type::i32, 1),
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

// ---- Random programs

/// Writes structured programs that end: every loop counts to a small number in a local of its own.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed), w_("random") {}

  Module run() {
    for (int k = 0; k < 4; ++k) ints_.push_back(w_.var(w_.i32(pick(9) - 4)));
    for (int k = 0; k < 2; ++k) bools_.push_back(w_.var(w_.b.constant(Type::b1, static_cast<std::uint64_t>(pick(2)))));
    const int n = 3 + pick(5);
    for (int k = 0; k < n; ++k) statement(0);
    for (std::uint32_t k = 0; k < 4; ++k) w_.out(w_.i32(k), w_.get(ints_[k]));
    return std::move(w_.m);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  /// A value of this type that was computed before and can be seen here.
  Id seen(Type type) {
    for (int tries = 0; tries < 4 && !values_.empty(); ++tries) {
      const Id id = values_[static_cast<std::size_t>(pick(static_cast<int>(values_.size())))];
      if (w_.b.module()[id].type == type && w_.b.is_visible(id)) return id;
    }
    return kNone;
  }

  Id keep(Id id) {
    values_.push_back(id);
    return id;
  }

  Id integer(int depth = 0) {
    switch (pick(depth > 2 ? 4 : 9)) {
      case 0: return w_.i32(pick(7) - 3);
      case 1: return keep(w_.get(ints_[static_cast<std::size_t>(pick(static_cast<int>(ints_.size())))]));
      case 2:
        if (const Id id = seen(Type::i32); id != kNone) return id;
        return w_.tid();
      case 3: return keep(w_.in(slot(depth + 3)));
      case 4: return keep(w_.add(integer(depth + 1), integer(depth + 1)));
      case 5: return keep(w_.mul(integer(depth + 1), integer(depth + 1)));
      case 6: return keep(w_.b.pure(Op::bit_xor, Type::i32, {integer(depth + 1), integer(depth + 1)}));
      case 7:
        return keep(w_.b.pure(Op::select, Type::i32, {boolean(depth + 1), integer(depth + 1), integer(depth + 1)}));
      default: return keep(w_.b.load(Type::i32, 1, w_.word(kOut, slot(depth + 1))));
    }
  }

  Id boolean(int depth = 0) {
    switch (pick(depth > 2 ? 3 : 7)) {
      case 0: return keep(w_.get(bools_[static_cast<std::size_t>(pick(static_cast<int>(bools_.size())))]));
      case 1: return keep(w_.b.pure(Op::bit_not, Type::b1, {w_.get(bools_[0])}));
      case 2:
        if (const Id id = seen(Type::b1); id != kNone) return id;
        return keep(w_.eq(w_.b.pure(Op::bit_and, Type::i32, {w_.tid(), w_.i32(1 << pick(3))}), w_.i32(0)));
      case 3: return keep(w_.lt(integer(depth + 1), integer(depth + 1)));
      case 4: return keep(w_.eq(w_.b.pure(Op::bit_and, Type::i32, {integer(depth + 1), w_.i32(3)}), w_.i32(pick(4))));
      case 5: return keep(w_.b.pure(Op::bit_and, Type::b1, {boolean(depth + 1), boolean(depth + 1)}));
      default: {
        const Id left = boolean(depth + 1);
        const bool or_else = pick(2) == 1;
        w_.b.open_if(left);
        if (or_else) w_.b.open_else();
        const Id right = boolean(depth + 1);
        return keep(w_.b.close_short_circuit(left, right, or_else));
      }
    }
  }

  Id slot(int depth) { return w_.b.pure(Op::bit_and, Type::i32, {integer(depth), w_.i32(kPerThread - 1)}); }

  void block(int depth) {
    const int n = pick(4);
    for (int k = 0; k < n; ++k) statement(depth);
    // Exits stand at the end of blocks inside something, most of them under a condition.
    if (depth == 0 || pick(4) != 0) return;
    const int kind = pick(loops_ > 0 ? 5 : 1);
    w_.leave(kind == 0 ? Op::return_ : kind < 3 ? Op::break_ : Op::continue_);
  }

  void statement(int depth) {
    const std::size_t ints = ints_.size(), bools = bools_.size();
    switch (pick(depth > 3 ? 4 : 9)) {
      case 0:
      case 1: w_.set(ints_[static_cast<std::size_t>(pick(4))], integer()); break;
      case 2: w_.set(bools_[static_cast<std::size_t>(pick(2))], boolean()); break;
      case 3: w_.out(slot(1), integer()); break;
      case 4:
      case 5:
        w_.b.open_if(boolean());
        block(depth + 1);
        if (pick(2)) {
          w_.b.open_else();
          block(depth + 1);
        }
        w_.b.close_if();
        break;
      case 6: declare(depth); return;
      default: loop(depth); break;
    }
    // A local that was declared inside cannot be named outside.
    ints_.resize(ints);
    bools_.resize(bools);
  }

  void declare(int depth) {
    if (depth == 0 || pick(2)) {
      ints_.push_back(w_.var(integer()));
    } else {
      bools_.push_back(w_.var(boolean()));
    }
  }

  void loop(int depth) {
    const std::uint32_t counter = w_.var(w_.i32(0));
    const int kind = pick(3);
    const auto count = [&] { w_.set(counter, w_.add(w_.get(counter), w_.i32(1))); };
    w_.b.open_loop();
    if (kind == 0) count();
    // A condition may assign, branch, and read memory.
    if (pick(5) == 0) w_.set(ints_[static_cast<std::size_t>(pick(4))], integer(1));
    if (pick(5) == 0) {
      const int outer = loops_;
      loops_ = 0;
      w_.b.open_if(boolean(1));
      w_.set(bools_[0], boolean(1));
      w_.b.close_if();
      loops_ = outer;
    }
    Id go_on = w_.lt(w_.get(counter), w_.i32(1 + pick(4)));
    if (pick(3) == 0) go_on = w_.b.pure(Op::bit_and, Type::b1, {go_on, boolean(1)});
    w_.b.loop_body(go_on);
    const std::size_t ints = ints_.size(), bools = bools_.size();
    if (kind == 1) count();
    ++loops_;
    ints_.push_back(counter);
    block(depth + 1);
    --loops_;
    ints_.resize(ints);
    bools_.resize(bools);
    if (kind == 2 || pick(3) == 0) {
      w_.b.loop_step();
      if (kind == 2) count();
      if (pick(2)) w_.set(ints_[static_cast<std::size_t>(pick(4))], integer(1));
      if (pick(3) == 0) w_.out(slot(2), integer(1));
    }
    w_.b.close_loop();
    ints_.push_back(counter);
  }

  std::mt19937 random_;
  Writer w_;
  std::vector<std::uint32_t> ints_, bools_;  ///< the first four and two may be assigned everywhere
  std::vector<Id> values_;
  int loops_ = 0;
};

TEST(Passes, RandomProgramsKeepTheirMeaning) {
  const Words in = counting();
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check(Generator(seed).run(), in);
    if (HasFailure()) return;
  }
}

TEST(Passes, PrintAndHashOfARebuiltModuleAreStable) {
  // A second cleaning finds nothing that the first one left, in number of instructions.
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const Module once = sweep(Generator(seed).run());
    const Module twice = sweep(once);
    EXPECT_EQ(print(once), print(twice)) << seed;
    EXPECT_EQ(hash(once), hash(twice)) << seed;
  }
}

}  // namespace
}  // namespace weft::ir
