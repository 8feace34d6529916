// Control flow that is guarded instead of nested: it has the same meaning, and no more depth than requested.
#include <optional>
#include <string>

#include "pass_programs.h"

namespace weft::ir {
namespace {

/// Nests `depth` branches; each thread goes as deep as its number and a word of its input lead it.
void ladder(Writer& w, int depth, int level = 0) {
  if (level == depth) return w.out(w.i32(0), w.i32(1000));
  const Id here = w.in(w.i32(level % static_cast<int>(kPerThread)));
  w.if_(
      w.lt(w.i32(level), w.mul(w.tid(), w.i32(level % 5 + 20))),
      [&] {
        w.out(w.i32(1), w.add(here, w.i32(level)));
        ladder(w, depth, level + 1);
        // A value from before the inner branch is read after it.
        w.out(w.i32(2), w.add(here, w.b.load(Type::i32, 1, w.word(kOut, w.i32(2)))));
      },
      [&] { w.out(w.i32(3), here); });
}

/// The module with a depth of at most `limit`, after checks of its form; nothing if its loops alone are deeper.
std::optional<Module> limited(const Module& m, unsigned limit) {
  std::optional<Module> flat;
  try {
    flat = limit_nesting(m, limit);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string(e.what()).find("loops are nested"), std::string::npos) << e.what();
    return {};
  }
  if (!flat) return m;
  EXPECT_EQ(first_violation(*flat), "") << print(m) << print(*flat);
  EXPECT_FALSE(has(*flat, {Op::break_, Op::continue_, Op::return_}));
  EXPECT_LE(deepest(*flat), limit) << print(*flat);
  EXPECT_FALSE(has(*flat, {Op::call}));
  return flat;
}

TEST(LimitNesting, leaves_alone_what_is_no_deeper) {
  Writer w("ladder");
  ladder(w, 20);
  EXPECT_FALSE(limit_nesting(w.m, 20));
  EXPECT_TRUE(limit_nesting(w.m, 19));
}

TEST(LimitNesting, keeps_the_meaning_of_deep_branches) {
  Writer w("ladder");
  ladder(w, 60);
  const Words in = counting(), expected = run(w.m, in);
  const Module normal = promote(normalise(w.m));
  for (const unsigned limit : {1u, 2u, 3u, 7u, 30u, 59u}) {
    EXPECT_EQ(run(limited(w.m, limit).value(), in), expected) << limit;
    EXPECT_EQ(run(limited(normal, limit).value(), in), expected) << limit;
  }
}

TEST(LimitNesting, counts_what_follows_an_exit_as_nested) {
  Writer w("exits");
  for (int k = 0; k < 40; ++k) {
    w.if_(w.eq(w.tid(), w.i32(k)), [&] {
      w.out(w.i32(0), w.i32(k + 1));
      w.leave(Op::return_);
    });
  }
  w.out(w.i32(0), w.i32(-1));
  const Words in = counting(), expected = run(w.m, in);
  EXPECT_FALSE(limit_nesting(w.m, 40));
  for (const unsigned limit : {1u, 10u, 39u}) EXPECT_EQ(run(limited(w.m, limit).value(), in), expected) << limit;
  // There is one branch for each rung, not two, because conditions need no guard.
  EXPECT_LE(count(limited(w.m, 1).value(), Op::if_), 41);
}

TEST(LimitNesting, counts_calls_with_what_they_call) {
  Writer w("calls");
  for (std::uint32_t k = 0; k < 30; ++k) {
    Writer f("calls");
    f.m.function = "f" + std::to_string(k);
    const Id x = f.b.input(Type::i32);
    const std::uint32_t y = f.var(x);
    f.if_(f.lt(f.i32(k % 3), x), [&] {
      const Id args[] = {f.add(x, f.i32(1))};
      f.set(y, k == 0 ? f.mul(x, x) : f.b.result(f.b.call(k - 1, args), 0, Type::i32));
    });
    const Id out[] = {f.get(y)};
    f.b.yield(out);
    w.m.functions.push_back(std::make_shared<Module>(f.m));
  }
  const Id x[] = {w.tid()};
  w.out(w.i32(0), w.b.result(w.b.call(29, x), 0, Type::i32));
  const Words in = counting(), expected = run(w.m, in);
  EXPECT_FALSE(limit_nesting(w.m, 30));
  EXPECT_EQ(run(limited(w.m, 8).value(), in), expected);
}

TEST(LimitNesting, refuses_loops_that_nest_deeper_by_name) {
  Writer w("loops");
  const std::function<void(int)> loops = [&](int levels) {
    if (levels == 0) return w.out(w.i32(0), w.i32(7));
    w.range(w.i32(2), [&](Id) { loops(levels - 1); });
  };
  loops(9);
  EXPECT_FALSE(limit_nesting(w.m, 9));
  const auto expect_refusal = [](const Module& module, const char* why) {
    try {
      limit_nesting(module, 8);
      FAIL() << "within eight levels: " << why;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("\"loops\""), std::string::npos) << e.what();
    }
  };
  expect_refusal(w.m, "loops are nested 9 deep; the device holds 8");
  // The condition of a branch takes a level, too, if the branch is inside as many loops as the device holds.
  Writer with_branch("loops");
  const std::function<void(int)> loops_and_branch = [&](int levels) {
    Writer& v = with_branch;
    if (levels > 0) return v.range(v.i32(2), [&](Id) { loops_and_branch(levels - 1); });
    v.if_(v.lt(v.tid(), v.i32(3)), [&] { v.out(v.i32(0), v.i32(7)); });
  };
  loops_and_branch(8);
  expect_refusal(with_branch.m,
                 "loops are nested 9 deep, the branches around and inside them included; the device holds 8");
}

TEST(LimitNesting, keeps_the_meaning_of_random_programs) {
  const Words in = counting();
  int compared = 0, changed = 0;
  for (std::uint32_t seed = 1; seed <= 250; ++seed) {
    const Module traced = Generator(seed).run(seed % 3 == 0 ? 2 : 0);
    const Words expected = run(traced, in);
    const Module inlined = inline_calls(traced);
    for (const Module& form : {traced, forward(traced), normalise(traced), promote(normalise(inlined))}) {
      for (const unsigned limit : {3u, 4u, 6u}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", limit " << limit);
        const std::optional<Module> flat = limited(form, limit);
        if (HasFailure()) return;
        if (!flat) continue;
        ++compared;
        changed += print(*flat) != print(form);
        ASSERT_EQ(run(*flat, in), expected) << print(form) << print(*flat);
      }
    }
  }
  EXPECT_GT(compared, 2000);
  EXPECT_GT(changed, 300);
}

}  // namespace
}  // namespace weft::ir
