// Shapes of values: the rule of each operation, control flow, memory, and rows of traced kernels.
#include "../../../frontend/passes/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "../../../frontend/ir/builder.h"
#include "../../../frontend/passes/coordinates.h"
#include "../../../frontend/passes/passes.h"
#include "../../../runtime/weft.h"

namespace weft::ir {
namespace {

constexpr std::uint32_t kLanes = 16;

std::string text(const Shape& shape) {
  constexpr const char* kNames[] = {"uniform", "affine", "varying"};
  const std::string name = kNames[std::size_t(shape.kind)];
  return shape.kind == Shape::Kind::affine ? name + " " + std::to_string(shape.step) : name;
}

/// A kernel whose arguments are two arrays at bytes 8 and 24, and numbers at 4 and 40.
struct Kernel {
  Kernel() : b(m) {
    m.name = "shapes";
    m.loc = {"here.cpp", 1};
    m.args_bytes = 48;
    m.block = 64;
    for (std::uint32_t offset : {8u, 24u}) {
      Param p;
      p.name = "array";
      p.kind = Param::Kind::array;
      p.ndim = 1;
      p.offset = offset;
      p.bytes = 12;
      m.params.push_back(p);
    }
  }

  Id op(Op op, Type type, std::initializer_list<Id> args) { return b.pure(op, type, args); }
  Id i32(std::int64_t value) { return b.constant_int(Type::i32, value); }
  Id u32(std::int64_t value) { return b.constant_int(Type::u32, value); }
  Id tid() { return b.thread_id(); }
  Id tid_i32() { return op(Op::bitcast, Type::i32, {tid()}); }
  Id n() { return b.arg(Type::u32, 4); }
  Id local() { return b.source(Op::local_id, Type::u32); }
  Id group() { return b.source(Op::workgroup_id, Type::u32); }
  Id subgroup() { return b.source(Op::subgroup_id, Type::u32); }
  Id array(int k) { return b.arg(Type::u64, k ? 24 : 8); }
  Id load(Id base, Id index) { return b.load(Type::u32, 1, {base, index, 4, 0, 4}); }
  void store(Id base, Id index, Id value) { b.store(Type::u32, {&value, 1}, {base, index, 4, 0, 4}); }
  Id varying() { return op(Op::mul, Type::u32, {tid(), tid()}); }
  Id is_varying() { return op(Op::lt, Type::b1, {varying(), n()}); }
  Id own_array(bool is_private) {
    m.arrays.push_back({Type::u32, 64, false, {"here.cpp", 2}, is_private});
    return b.source(Op::kernel_array, Type::u64, m.arrays.size() - 1);
  }

  std::string shape(Id id) {
    EXPECT_EQ(first_violation(m), "");
    const Shapes shapes = find_shapes(m, kLanes);
    return text(shapes.of[id]) + (shapes.exact[id] ? ", exact" : "");
  }

  Module m;
  Builder b;
};

void expect_shape(const char* name, const std::string& expected, const std::function<Id(Kernel&)>& make) {
  Kernel k;
  const Id id = make(k);
  EXPECT_EQ(k.shape(id), expected) << name << "\n" << print(k.m);
}
#define EXPECT_SHAPE(expected, expression) expect_shape(#expression, expected, [](Kernel& k) { return expression; })

// ---- The table

TEST(Shapes, every_operation_has_a_rule_that_agrees_with_its_row) {
  for (int i = 0; i < int(Op::count); ++i) {
    const auto op = Op(i);
    const OpInfo& row = info(op);
    const Spread by = row.spread;
    if (row.result == ResultRule::none && by != Spread::control && op != Op::call) {
      EXPECT_EQ(by, Spread::none) << row.name;
    }
    if (by == Spread::none) {
      EXPECT_EQ(row.result, ResultRule::none) << row.name;
    }
    const bool computes = row.effect == Effect::pure && row.arity > 0 && op != Op::result;
    EXPECT_EQ(by == Spread::operands, computes) << row.name;
    EXPECT_EQ(is_global(op), by >= Spread::launch && by <= Spread::number) << row.name;
    if (is_atomic(op)) {
      EXPECT_EQ(by, Spread::thread) << row.name;
    }
  }
}

// ---- Sources

TEST(Shapes, of_sources) {
  EXPECT_SHAPE("uniform", k.i32(3));
  EXPECT_SHAPE("uniform", k.n());
  EXPECT_SHAPE("affine 1, exact", k.tid());
  EXPECT_SHAPE("affine 1, exact", k.local());
  EXPECT_SHAPE("uniform", k.group());
  EXPECT_SHAPE("uniform", k.subgroup());
  EXPECT_SHAPE("uniform", k.b.source(Op::subgroup_size, Type::u32));
  EXPECT_SHAPE("affine 1, exact", k.b.source(Op::subgroup_lane, Type::u32));
  EXPECT_SHAPE("uniform", k.own_array(true));
}

TEST(Shapes, of_a_workgroup_of_one_thread_are_uniform) {
  Kernel k;
  k.m.block = 1;
  const Id numbers[] = {k.group(), k.local(), k.tid(), k.b.source(Op::subgroup_lane, Type::u32), k.varying()};
  const Id read = k.load(k.array(0), k.varying()), own = k.load(k.own_array(true), k.varying());
  for (const Id id : numbers) EXPECT_EQ(k.shape(id), "uniform") << print(k.m);
  EXPECT_EQ(k.shape(read), "uniform");
  EXPECT_EQ(k.shape(own), "uniform") << "private arrays are those of the only thread";
  Kernel without_groups;
  without_groups.m.block = 1;
  const Id thread = without_groups.tid();
  EXPECT_EQ(without_groups.shape(thread), "affine 1, exact") << "any threads may share a vector";
}

// ---- Arithmetic

TEST(Shapes, of_functions_are_as_uniform_as_their_operands) {
  EXPECT_SHAPE("uniform", k.op(Op::add, Type::u32, {k.n(), k.u32(1)}));
  EXPECT_SHAPE("uniform", k.op(Op::mul, Type::u32, {k.n(), k.group()}));
  EXPECT_SHAPE("uniform", k.op(Op::lt, Type::b1, {k.group(), k.subgroup()}));
  EXPECT_SHAPE("uniform", k.op(Op::sin, Type::f32, {k.op(Op::convert, Type::f32, {k.group()})}));
  EXPECT_SHAPE("varying", k.op(Op::convert, Type::f32, {k.tid()}));
  EXPECT_SHAPE("varying", k.op(Op::bitcast, Type::f32, {k.tid()}));
  EXPECT_SHAPE("varying", k.op(Op::lt, Type::b1, {k.tid(), k.n()}));
  EXPECT_SHAPE("varying", k.op(Op::add, Type::u32, {k.varying(), k.n()}));
  EXPECT_SHAPE("varying", k.op(Op::mul_hi, Type::u32, {k.tid(), k.n()}));
  EXPECT_SHAPE("varying", k.op(Op::bit_xor, Type::u32, {k.tid(), k.u32(1)}));
}

TEST(Shapes, of_linear_arithmetic_are_affine) {
  EXPECT_SHAPE("affine 1", k.op(Op::add, Type::u32, {k.tid(), k.n()}));
  EXPECT_SHAPE("affine -1", k.op(Op::sub, Type::u32, {k.n(), k.tid()}));
  EXPECT_SHAPE("affine 2", k.op(Op::add, Type::u32, {k.tid(), k.op(Op::add, Type::u32, {k.tid(), k.n()})}));
  EXPECT_SHAPE("uniform", k.op(Op::sub, Type::u32, {k.op(Op::add, Type::u32, {k.tid(), k.n()}), k.tid()}));
  EXPECT_SHAPE("affine 12", k.op(Op::mul, Type::u32, {k.u32(12), k.op(Op::add, Type::u32, {k.tid(), k.n()})}));
  EXPECT_SHAPE("affine -3, exact",
               k.op(Op::mul, Type::i32, {k.op(Op::bit_and, Type::i32, {k.tid_i32(), k.i32(63)}), k.i32(-3)}));
  EXPECT_SHAPE("varying", k.op(Op::mul, Type::u32, {k.tid(), k.n()}));
  EXPECT_SHAPE("affine 8", k.op(Op::shl, Type::u32, {k.tid(), k.u32(3)}));
  EXPECT_SHAPE("affine 2, exact", k.op(Op::shl, Type::u32, {k.tid(), k.u32(33)}));
  EXPECT_SHAPE("affine -1, exact", k.op(Op::neg, Type::i32, {k.tid_i32()}));
  EXPECT_SHAPE("affine -1, exact", k.op(Op::bit_not, Type::i32, {k.tid_i32()}));
  EXPECT_SHAPE("affine -1", k.op(Op::bit_not, Type::u32, {k.tid()}));
  EXPECT_SHAPE("affine 1, exact", k.op(Op::abs, Type::i32, {k.tid_i32()}));
  EXPECT_SHAPE("varying", k.op(Op::abs, Type::i32, {k.op(Op::sub, Type::i32, {k.tid_i32(), k.i32(5)})}));
  // Steps are counted modulo the type's range.
  EXPECT_SHAPE("affine -56",
               k.op(Op::mul, Type::i8, {k.op(Op::convert, Type::i8, {k.tid()}), k.b.constant_int(Type::i8, -56)}));
  EXPECT_SHAPE("affine 1",
               k.op(Op::mul, Type::u8,
                    {k.op(Op::mul, Type::u8, {k.op(Op::convert, Type::u8, {k.tid()}), k.b.constant(Type::u8, 3)}),
                     k.b.constant(Type::u8, 171)}));
  EXPECT_SHAPE("uniform", k.op(Op::convert, Type::u8, {k.op(Op::mul, Type::u32, {k.tid(), k.u32(256)})}));
}

TEST(Shapes, of_choices_need_a_uniform_condition) {
  const auto choice = [](Kernel& k, Id condition, Id a, Id b) {
    return k.op(Op::select, Type::u32, {condition, a, b});
  };
  Kernel k;
  const Id n = k.n(), more = k.op(Op::add, Type::u32, {k.tid(), n}),
           twice = k.op(Op::mul, Type::u32, {k.tid(), k.u32(2)});
  const Id by_group = k.op(Op::lt, Type::b1, {k.group(), n});
  EXPECT_EQ(k.shape(choice(k, by_group, n, k.u32(1))), "uniform");
  EXPECT_EQ(k.shape(choice(k, by_group, more, k.tid())), "affine 1");
  EXPECT_EQ(k.shape(choice(k, by_group, twice, k.tid())), "varying");
  EXPECT_EQ(k.shape(choice(k, by_group, n, k.tid())), "varying");
  EXPECT_EQ(k.shape(choice(k, k.is_varying(), n, k.u32(1))), "varying");
  EXPECT_EQ(k.shape(k.op(Op::eq, Type::b1, {more, k.tid()})), "uniform");
  EXPECT_EQ(k.shape(k.op(Op::ne, Type::b1, {twice, k.tid()})), "varying");
  EXPECT_EQ(k.shape(k.op(Op::lt, Type::b1, {more, k.tid()})), "varying") << "one may have wrapped";
  const Id five = k.op(Op::add, Type::i32, {k.tid_i32(), k.i32(-5)});
  EXPECT_EQ(k.shape(k.op(Op::min, Type::i32, {five, k.tid_i32()})), "affine 1, exact");
  EXPECT_EQ(k.shape(k.op(Op::max, Type::u32, {more, k.tid()})), "varying");
}

TEST(Shapes, of_wider_integers_need_values_that_cannot_wrap) {
  EXPECT_SHAPE("affine 1, exact", k.op(Op::convert, Type::i64, {k.tid()}));
  EXPECT_SHAPE("affine 1, exact", k.op(Op::convert, Type::i64, {k.tid_i32()}));
  EXPECT_SHAPE("affine 1, exact", k.op(Op::convert, Type::i64, {k.op(Op::sub, Type::i32, {k.tid_i32(), k.i32(3)})}));
  EXPECT_SHAPE("varying", k.op(Op::convert, Type::i64, {k.op(Op::sub, Type::u32, {k.tid(), k.u32(3)})}));
  // Launches have up to 2^31 - 1 threads.
  EXPECT_SHAPE("affine 1, exact", k.op(Op::convert, Type::i64, {k.op(Op::add, Type::i32, {k.tid_i32(), k.i32(1)})}));
  EXPECT_SHAPE("varying", k.op(Op::convert, Type::i64, {k.op(Op::add, Type::i32, {k.tid_i32(), k.i32(2)})}));
  EXPECT_SHAPE("varying", k.op(Op::convert, Type::i64, {k.op(Op::add, Type::u32, {k.tid(), k.n()})}));
  EXPECT_SHAPE("affine 5, exact",
               k.op(Op::mul, Type::i64, {k.op(Op::convert, Type::i64, {k.tid()}), k.b.constant(Type::i64, 5)}));
  const auto halves = [](Kernel& k, std::int64_t scale) {
    const Id four = k.op(Op::mul, Type::i32, {k.op(Op::bitcast, Type::i32, {k.local()}), k.i32(4)});
    const Id half = k.op(Op::shr, Type::i32, {k.op(Op::sub, Type::i32, {four, k.i32(128)}), k.i32(1)});  // -64 to 62
    return k.op(Op::mul, Type::i8, {k.op(Op::convert, Type::i8, {half}), k.b.constant_int(Type::i8, scale)});
  };
  expect_shape("halves", "affine 4, exact", [&](Kernel& k) { return halves(k, 2); });
  expect_shape("halves", "affine 6", [&](Kernel& k) { return halves(k, 3); });
  EXPECT_SHAPE("affine 1", k.op(Op::convert, Type::u8, {k.tid()}));
  EXPECT_SHAPE("varying", k.op(Op::convert, Type::i32, {k.op(Op::convert, Type::u8, {k.tid()})}));
  EXPECT_SHAPE("affine 1, exact", k.op(Op::convert, Type::i32, {k.op(Op::convert, Type::u8, {k.local()})}));
}

TEST(Shapes, of_parts_of_numbers_go_by_where_vectors_begin) {
  const auto by = [](Kernel& k, Op op, Id a, std::int64_t c) { return k.op(op, Type::u32, {a, k.u32(c)}); };
  Kernel k;
  const Id l = k.local();
  EXPECT_EQ(k.shape(by(k, Op::div, l, 16)), "uniform");
  EXPECT_EQ(k.shape(by(k, Op::shr, l, 5)), "uniform");
  EXPECT_EQ(k.shape(by(k, Op::shr, l, 3)), "varying") << "there are two in a vector";
  EXPECT_EQ(k.shape(by(k, Op::div, l, 12)), "varying");
  EXPECT_EQ(k.shape(by(k, Op::rem, l, 16)), "affine 1, exact");
  EXPECT_EQ(k.shape(by(k, Op::bit_and, l, 31)), "affine 1, exact");
  EXPECT_EQ(k.shape(by(k, Op::bit_and, l, 7)), "varying");
  EXPECT_EQ(k.shape(by(k, Op::rem, l, 17)), "varying");
  EXPECT_EQ(k.shape(by(k, Op::bit_and, l, 0xffffffe0)), "uniform");
  const Id four = by(k, Op::mul, l, 4);
  EXPECT_EQ(k.shape(by(k, Op::div, four, 2)), "affine 2, exact");
  EXPECT_EQ(k.shape(by(k, Op::shr, four, 6)), "uniform");
  EXPECT_EQ(k.shape(by(k, Op::bit_and, four, 63)), "affine 4, exact");
  EXPECT_EQ(k.shape(by(k, Op::bit_and, by(k, Op::add, l, 16), 15)), "affine 1, exact");
  EXPECT_EQ(k.shape(by(k, Op::bit_and, by(k, Op::add, l, 8), 15)), "varying") << "the vector begins in the middle";
  const Id lane = k.b.source(Op::subgroup_lane, Type::u32), first = by(k, Op::bit_and, l, 0xfffffff0);
  EXPECT_EQ(k.shape(by(k, Op::bit_and, k.op(Op::add, Type::u32, {first, lane}), 31)), "affine 1, exact");
  EXPECT_EQ(k.shape(by(k, Op::bit_and, k.op(Op::add, Type::u32, {first, by(k, Op::mul, lane, 2)}), 31)), "varying");
  EXPECT_EQ(k.shape(by(k, Op::bit_and, k.op(Op::add, Type::u32, {l, lane}), 31)), "varying");
  // Signed numbers that may be negative are divided toward zero.
  const Id difference = k.op(Op::sub, Type::i32, {k.op(Op::bitcast, Type::i32, {l}), k.i32(32)});
  EXPECT_EQ(k.shape(k.op(Op::div, Type::i32, {difference, k.i32(16)})), "varying");
  EXPECT_EQ(k.shape(k.op(Op::shr, Type::i32, {difference, k.i32(4)})), "uniform");
  EXPECT_EQ(k.shape(k.op(Op::div, Type::i32, {k.op(Op::bitcast, Type::i32, {l}), k.i32(16)})), "uniform");
}

TEST(Shapes, of_parts_of_numbers_in_workgroups_that_are_no_multiple_of_a_vector) {
  Kernel k;
  k.m.block = 24;
  EXPECT_EQ(k.shape(k.op(Op::shr, Type::u32, {k.local(), k.u32(4)})), "uniform");
  EXPECT_EQ(k.shape(k.op(Op::shr, Type::u32, {k.tid(), k.u32(4)})), "varying") << "a workgroup begins at thread 24";
  EXPECT_EQ(k.shape(k.op(Op::shr, Type::u32, {k.tid(), k.u32(3)})), "varying");
}

// ---- Subgroups

TEST(Shapes, of_operations_of_subgroups) {
  const auto made = [](Kernel& k, Op op, std::initializer_list<Id> args) {
    return k.b.subgroup(op, Type::u32, {args.begin(), args.size()}, std::uint64_t(Op::add));
  };
  Kernel k;
  const Id v = k.varying(), n = k.n(), g = k.group();
  EXPECT_EQ(k.shape(made(k, Op::subgroup_reduce, {v})), "uniform");
  EXPECT_EQ(k.shape(made(k, Op::subgroup_reduce, {g})), "uniform");
  EXPECT_EQ(k.shape(made(k, Op::subgroup_inclusive, {n})), "varying");
  EXPECT_EQ(k.shape(made(k, Op::subgroup_exclusive, {v})), "varying");
  EXPECT_EQ(k.shape(made(k, Op::subgroup_broadcast, {v, n})), "uniform");
  EXPECT_EQ(k.shape(made(k, Op::subgroup_shuffle, {v, n})), "varying");
  EXPECT_EQ(k.shape(made(k, Op::subgroup_shuffle, {n, v})), "uniform");
  const Id condition = k.is_varying();
  EXPECT_EQ(k.shape(k.b.subgroup(Op::subgroup_ballot, Type::u32, {&condition, 1}, 0)), "uniform");
}

// ---- Memory

TEST(Shapes, of_loads) {
  {
    Kernel k;
    EXPECT_EQ(k.shape(k.load(k.array(0), k.n())), "uniform");
    EXPECT_EQ(k.shape(k.load(k.array(0), k.group())), "uniform");
    EXPECT_EQ(k.shape(k.load(k.array(0), k.tid())), "varying");
    EXPECT_EQ(k.shape(k.b.result(k.b.load(Type::u32, 4, {k.array(0), k.n(), 16, 0, 16}), 2, Type::u32)), "uniform");
    EXPECT_EQ(k.shape(k.load(k.own_array(false), k.n())), "uniform");
    EXPECT_EQ(k.shape(k.load(k.own_array(true), k.n())), "varying") << "each thread has its own";
  }
  Kernel k;
  const Id value = k.n();
  EXPECT_EQ(k.shape(k.b.atomic(Op::atomic_add, Type::u32, {value}, {k.array(0), k.n(), 4, 0, 4})), "varying");
  k.store(k.array(0), k.tid(), value);
  EXPECT_EQ(k.shape(k.load(k.array(0), k.n())), "uniform") << "all lanes read at one moment";
}

std::string address(Kernel& k, Id base, Id index, std::uint32_t stride) {
  const Id load = k.b.load(Type::u32, 1, {base, index, stride, 0, 4});
  return text(address_shape(k.m, find_shapes(k.m, kLanes), load));
}

TEST(Shapes, of_addresses) {
  Kernel k;
  const Id a = k.array(0), i = k.tid();
  EXPECT_EQ(address(k, a, k.n(), 4), "uniform");
  EXPECT_EQ(address(k, a, i, 4), "affine 4");
  EXPECT_EQ(address(k, a, k.op(Op::mul, Type::u32, {i, k.u32(3)}), 8), "affine 24");
  EXPECT_EQ(address(k, a, k.op(Op::sub, Type::u32, {i, k.u32(3)}), 4), "affine 4") << "active lanes are in the array";
  EXPECT_EQ(address(k, a, k.varying(), 4), "varying");
  // Lanes that are so far apart may be in the array again.
  EXPECT_EQ(address(k, a, k.op(Op::mul, Type::u32, {i, k.u32(1 << 27)}), 4), "affine 536870912");
  EXPECT_EQ(address(k, a, k.op(Op::mul, Type::u32, {i, k.u32(1 << 28)}), 4), "varying");
  EXPECT_EQ(address(k, a, k.op(Op::convert, Type::u8, {i}), 4), "varying");
  EXPECT_EQ(address(k, a, k.op(Op::convert, Type::u8, {k.local()}), 4), "affine 4");
  // Addresses may be computed.
  const Id wide = k.op(Op::mul, Type::u64, {k.op(Op::convert, Type::u64, {i}), k.b.constant(Type::u64, 20)});
  const Id moved = k.op(Op::add, Type::u64, {a, wide});
  EXPECT_EQ(address(k, moved, k.n(), 4), "affine 20");
  EXPECT_EQ(address(k, moved, i, 4), "affine 24");
  EXPECT_EQ(address(k, moved, k.op(Op::mul, Type::i32, {k.tid_i32(), k.i32(-5)}), 4), "uniform");
}

// ---- Control flow

/// The shapes of the results of a loop with these first values.
struct Looped {
  std::vector<std::string> inside, after;
  bool divergent = false;
};
Looped looped(Kernel& k, std::vector<Id> initial, const std::function<Id(const std::vector<Id>&)>& condition,
              const std::function<std::vector<Id>(const std::vector<Id>&)>& next) {
  std::vector<Id> params, results;
  k.b.open_loop(initial);
  for (std::uint32_t n = 0; n < initial.size(); ++n) params.push_back(k.b.loop_param(n));
  k.b.loop_body(condition(params));
  k.b.yield(next(params));
  const Id loop = k.b.close_loop();
  for (std::uint32_t n = 0; n < initial.size(); ++n) results.push_back(k.b.result(loop, n, k.m[initial[n]].type));
  Looped found;
  for (Id id : params) found.inside.push_back(k.shape(id));
  for (Id id : results) found.after.push_back(k.shape(id));
  found.divergent = find_shapes(k.m, kLanes).divergent[loop];
  return found;
}
using Texts = std::vector<std::string>;

TEST(Shapes, of_what_a_uniform_loop_carries) {
  Kernel k;
  const Looped l = looped(
      k, {k.u32(0), k.tid(), k.tid(), k.n(), k.u32(0)},
      [&](auto& p) {
        return k.op(Op::lt, Type::b1, {p[0], k.group()});
      },
      [&](auto& p) -> std::vector<Id> {
        return {k.op(Op::add, Type::u32, {p[0], k.u32(1)}), k.op(Op::add, Type::u32, {p[1], k.n()}),
                k.op(Op::add, Type::u32, {p[2], k.tid()}), k.op(Op::add, Type::u32, {p[3], k.group()}),
                k.op(Op::add, Type::u32, {p[4], p[2]})};
      });
  // The third has another step in each round, the last one depends on it.
  EXPECT_EQ(l.inside, (Texts{"uniform", "affine 1", "varying", "uniform", "varying"}));
  EXPECT_EQ(l.after, (Texts{"uniform", "affine 1", "varying", "uniform", "varying"}));
  EXPECT_FALSE(l.divergent);
}

TEST(Shapes, of_what_a_divergent_loop_carries) {
  Kernel k;
  const Looped l = looped(
      k, {k.u32(0), k.tid()},
      [&](auto& p) {
        return k.op(Op::lt, Type::b1, {p[0], k.tid()});
      },
      [&](auto& p) -> std::vector<Id> {
        return {k.op(Op::add, Type::u32, {p[0], k.u32(1)}), k.op(Op::add, Type::u32, {p[1], k.n()})};
      });
  EXPECT_EQ(l.inside, (Texts{"uniform", "affine 1"})) << "lanes that run are in the same round";
  EXPECT_EQ(l.after, (Texts{"varying", "varying"}));
  EXPECT_TRUE(l.divergent);
}

// A value that becomes varying takes the others with it, around the loop as often as it takes.
TEST(Shapes, of_carried_values_are_a_fixed_point) {
  Kernel k;
  const std::vector<Id> initial = {k.u32(0), k.u32(0), k.u32(0), k.u32(0)};
  const Looped l = looped(
      k, initial,
      [&](auto& p) {
        return k.op(Op::lt, Type::b1, {p[0], k.n()});
      },
      [&](auto& p) -> std::vector<Id> {
        return {p[1], p[2], p[3], k.varying()};
      });
  EXPECT_EQ(l.inside, (Texts{"varying", "varying", "varying", "varying"}));
  EXPECT_TRUE(l.divergent) << "in the fourth round";
}

TEST(Shapes, of_a_loop_inside_another_that_diverges) {
  Kernel k;
  Id inner_param = kNone, inner_result = kNone;
  const Id zero = k.u32(0);
  looped(
      k, {zero},
      [&](auto& p) {
        return k.op(Op::lt, Type::b1, {p[0], k.tid()});
      },
      [&](auto& p) -> std::vector<Id> {
        const Id first[] = {zero};
        k.b.open_loop(first);
        inner_param = k.b.loop_param(0);
        k.b.loop_body(k.op(Op::lt, Type::b1, {inner_param, k.n()}));
        const Id next[] = {k.op(Op::add, Type::u32, {inner_param, k.u32(1)})};
        k.b.yield(next);
        inner_result = k.b.result(k.b.close_loop(), 0, Type::u32);
        return {k.op(Op::add, Type::u32, {p[0], inner_result})};
      });
  EXPECT_EQ(k.shape(inner_param), "uniform");
  EXPECT_EQ(k.shape(inner_result), "uniform");
}

std::string chosen(Kernel& k, Id condition, const std::function<Id()>& a, const std::function<Id()>& b) {
  k.b.open_if(condition);
  Id value = a();
  k.b.yield({&value, 1});
  k.b.open_else();
  value = b();
  k.b.yield({&value, 1});
  const Id branch = k.b.close_if(), result = k.b.result(branch, 0, Type::u32);
  const Shapes shapes = find_shapes(k.m, kLanes);
  EXPECT_EQ(bool(shapes.divergent[branch]), !shapes.of[condition].is_uniform());
  EXPECT_EQ(shapes.of[branch], shapes.of[condition]);
  return k.shape(result);
}

TEST(Shapes, of_results_of_branches) {
  Kernel k;
  const Id by_group = k.op(Op::lt, Type::b1, {k.group(), k.n()}), by_lane = k.is_varying();
  const auto n = [&] { return k.n(); };
  const auto one = [&] { return k.u32(1); };
  const auto tid = [&] { return k.tid(); };
  EXPECT_EQ(chosen(k, by_group, n, one), "uniform");
  EXPECT_EQ(chosen(k, by_group, tid, [&] { return k.op(Op::add, Type::u32, {k.tid(), k.n()}); }), "affine 1");
  EXPECT_EQ(chosen(k, by_group, tid, one), "varying");
  EXPECT_EQ(chosen(k, by_lane, n, one), "varying");
  EXPECT_EQ(chosen(k, by_lane, tid, tid), "varying");
}

// ---- Rows

Module normal_form(const Module& traced) { return promote(normalise(forward(inline_calls(traced)))); }
Module wide_form(const auto& kernel) {
  Variant variant;
  variant.wide = true;
  return normal_form(kernel.core().trace(variant));
}

/// The shapes of the addresses of all loads and stores, sorted: compilers evaluate operands in orders of their own.
Texts addresses(const Module& m, const Shapes& shapes) {
  Texts all;
  for (const Region& region : m.regions) {
    for (Id id : region.insts)
      if (is_memory(m[id].op)) all.push_back(text(address_shape(m, shapes, id)));
  }
  std::ranges::sort(all);
  return all;
}

const auto blur = weft::kernel("blur", [](Arr<float, 2> to, Arr<const float, 2> from) {
  auto [i, j] = tid<2>();
  to(i, j) = from(i, j) + from(i, j + 1) + from(i + 1, j) + from(j, i) + from(i, 0);
});
const auto cube = weft::kernel("cube", [](Arr<float, 3> to) {
  auto [i, j, k] = tid<3>();
  to(i, j, k) = to(i, j, k) + to(i, 0, 0);
});
const auto hyper = weft::kernel("hyper", [](Arr<float, 4> to) {
  auto [i, j, k, l] = tid<4>();
  to(i, j, k, l) = Float(1.5f);
});

TEST(ShapesOfRows, lie_along_the_last_dimension) {
  const Module m = normal_form(blur.trace());
  const Shapes shapes = find_shapes(m, 8);
  EXPECT_TRUE(shapes.rows);
  EXPECT_EQ(shapes.row.size(), 1u);
  EXPECT_EQ(shapes.column.size(), 1u);
  EXPECT_EQ(text(shapes.of[shapes.row[0]]), "uniform");
  EXPECT_EQ(text(shapes.of[shapes.column[0]]), "affine 1");
  EXPECT_EQ(addresses(m, shapes), (Texts{"affine 4", "affine 4", "affine 4", "affine 4", "uniform", "varying"}))
      << print(m);
  // Without rows nothing is known of the coordinates.
  const Shapes linear = find_shapes(m, 8, false);
  EXPECT_FALSE(linear.rows);
  EXPECT_TRUE(linear.row.empty());
  EXPECT_EQ(addresses(m, linear), Texts(6, "varying"));
}

TEST(ShapesOfRows, are_found_in_three_and_four_dimensions_and_in_wide_launches) {
  for (const Module& m : {normal_form(cube.trace()), wide_form(cube), normal_form(hyper.trace()), wide_form(hyper)}) {
    const Shapes shapes = find_shapes(m, 16);
    ASSERT_TRUE(shapes.rows) << print(m);
    const Texts of_cube = {"affine 4", "affine 4", "uniform"}, of_hyper = {"affine 4"};
    EXPECT_EQ(addresses(m, shapes), m.tid_rank == 3 ? of_cube : of_hyper) << print(m);
  }
}

TEST(ShapesOfRows, are_found_where_only_one_coordinate_is_used) {
  const auto rows = weft::kernel("rows", [](Arr<float, 2> to) {
    auto [i, j] = tid<2>();
    to(i, 0) = 1;
  });
  const auto columns = weft::kernel("columns", [](Arr<float, 2> to) {
    auto [i, j] = tid<2>();
    to(0, j) = 1;
  });
  const Module m = normal_form(rows.trace()), n = normal_form(columns.trace());
  EXPECT_EQ(addresses(m, find_shapes(m, 8)), Texts{"uniform"});
  EXPECT_EQ(addresses(n, find_shapes(n, 8)), Texts{"affine 4"});
  const auto neither = weft::kernel("neither", [](Arr<float> to) { to[tid()] = 1; });
  EXPECT_FALSE(find_shapes(normal_form(neither.trace()), 8).rows);
}

TEST(ShapesOfRows, are_all_found_where_coordinates_are_computed_twice) {
  const auto twice = weft::kernel("twice", [](Arr<float, 2> to, Int n) {
    If (n > 3) {
      auto [i, j] = tid<2>();
      to(i, j) = 1;
    }
    Else {
      auto [i, j] = tid<2>();
      to(i, j) = 2;
    }
  });
  const Module m = normal_form(twice.trace());
  const Shapes shapes = find_shapes(m, 8);
  EXPECT_EQ(shapes.row.size(), 2u) << print(m);
  EXPECT_EQ(shapes.column.size(), 2u);
  EXPECT_EQ(addresses(m, shapes), Texts(2, "affine 4"));
}

TEST(ShapesOfRows, give_way_to_workgroups) {
  const auto tiles = weft::kernel("tiles", [](Arr<float, 2> to) {
    auto s = shared<float, 2>({16, 16});
    auto [i, j] = tid<2>();
    Int l = local_id();
    s(l / 16, l % 16) = 1;
    barrier();
    to(i, j) = s(l / 16, l % 16) + s(l % 16, l / 16);
  });
  const Module m = normal_form(tiles.trace());
  const Shapes shapes = find_shapes(m, 16);
  EXPECT_FALSE(shapes.rows);
  EXPECT_TRUE(shapes.groups);
  EXPECT_EQ(addresses(m, shapes), (Texts{"affine 4", "affine 4", "affine 64", "varying"})) << print(m);
}

TEST(ShapesOfRows, coordinates_are_not_those_that_a_float_has_rounded) {
  Kernel k;
  const Id rounded = k.op(Op::convert, Type::i32, {k.op(Op::convert, Type::f32, {k.tid()})});
  EXPECT_EQ(tid_coordinate(k.m, k.tid()), 0);
  EXPECT_EQ(tid_coordinate(k.m, k.op(Op::convert, Type::i64, {k.tid_i32()})), 0);
  EXPECT_EQ(tid_coordinate(k.m, rounded), -1);
}

}  // namespace
}  // namespace weft::ir
