// The module's own functions: table of operations, printing, hashing, the verifier.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <set>

#include "../../../frontend/ir/builder.h"
#include "../../../frontend/support/error.h"

namespace weft::ir {
namespace {

constexpr Loc kLoc{"/somewhere/kernel.cpp", 12};

/// Two array arguments and a float: x at 8, y at 24, a at 40.
Module with_arguments() {
  Module m;
  m.name = "sample";
  m.args_bytes = 48;
  for (int k = 0; k < 2; ++k) {
    Param p;
    p.name = k == 0 ? "x" : "y";
    p.type_name = "Array<float32, 1>";
    p.kind = Param::Kind::array;
    p.ndim = 1;
    p.offset = 8 + 16 * static_cast<std::uint32_t>(k);
    p.bytes = 12;
    p.element_bytes = p.element_align = 4;
    m.params.push_back(p);
  }
  Param a;
  a.name = "a";
  a.type_name = "float32";
  a.offset = 40;
  a.bytes = 4;
  m.params.push_back(a);
  return m;
}

MemoryRef element(Builder& b, std::uint32_t base, std::uint32_t stride = 4, std::uint32_t align = 4) {
  return {b.arg(Type::u64, base), b.thread_id(), stride, 0, align};
}

/// y[tid] = a * x[tid] + y[tid]
Module saxpy(Loc loc = kLoc) {
  Module m = with_arguments();
  Builder b(m);
  const Id x = b.load(Type::f32, 1, element(b, 8), loc);
  const Id ax = b.pure(Op::mul, Type::f32, {b.arg(Type::f32, 40), x}, loc);
  const Id y = b.load(Type::f32, 1, element(b, 24), loc);
  const Id sum[] = {b.pure(Op::add, Type::f32, {ax, y}, loc)};
  b.store(Type::f32, sum, element(b, 24), loc);
  return m;
}

/// A loop in traced form with every exit, and a branch.
Module traced() {
  Module m = with_arguments();
  Builder b(m);
  const std::uint32_t i = b.local(Type::i32);
  b.local_set(i, b.constant_int(Type::i32, 0));
  b.open_loop();
  const Id head = b.local_get(i);
  b.loop_body(b.pure(Op::lt, Type::b1, {head, b.constant_int(Type::i32, 9)}));
  for (const auto& [op, limit] : {std::pair{Op::break_, 7}, {Op::continue_, 3}, {Op::return_, 8}}) {
    b.open_if(b.pure(Op::eq, Type::b1, {head, b.constant_int(Type::i32, limit)}));
    b.leave(op);
    b.close_if();
  }
  b.loop_step();
  b.local_set(i, b.pure(Op::add, Type::i32, {b.local_get(i), b.constant_int(Type::i32, 1)}));
  b.close_loop();
  return m;
}

/// A loop that carries a sum and a branch with a result.
Module normal() {
  Module m = with_arguments();
  Builder b(m);
  const Id zero = b.constant_int(Type::i32, 0), one = b.constant_int(Type::i32, 1);
  const Id initial[] = {zero, b.arg(Type::f32, 40)};
  b.open_loop(initial);
  const Id i = b.loop_param(0), v = b.loop_param(1);
  b.loop_body(b.pure(Op::lt, Type::b1, {i, b.constant_int(Type::i32, 5)}));
  b.open_if(b.pure(Op::eq, Type::b1, {i, one}));
  const Id twice[] = {b.pure(Op::add, Type::f32, {v, v})};
  b.yield(twice);
  b.open_else();
  const Id same[] = {v};
  b.yield(same);
  const Id branch = b.close_if();
  const Id next[] = {b.pure(Op::add, Type::i32, {i, one}), b.result(branch, 0, Type::f32)};
  b.yield(next);
  const Id loop = b.close_loop();
  const Id out[] = {b.result(loop, 1, Type::f32)};
  b.store(Type::f32, out, element(b, 8));
  return m;
}

/// A function of two results and its call.
Module calling() {
  Module m = with_arguments();
  Module f = with_arguments();
  f.function = "f";
  {
    Builder b(f);
    const Id x = b.input(Type::f32), n = b.input(Type::i32);
    const Id out[] = {b.pure(Op::neg, Type::f32, {x}), b.pure(Op::add, Type::i32, {n, n})};
    b.yield(out);
  }
  m.functions = {std::make_shared<Module>(f)};
  Builder b(m);
  const Id args[] = {b.arg(Type::f32, 40), b.constant_int(Type::i32, 3)};
  const Id out[] = {b.result(b.call(0, args, kLoc), 0, Type::f32)};
  b.store(Type::f32, out, element(b, 8));
  return m;
}

/// Changes the function of calling().
Module& function_of(Module& m) {
  auto copy = std::make_shared<Module>(*m.functions[0]);
  m.functions[0] = copy;
  return *copy;
}

Id find(const Module& m, Op op, int nth = 0) {
  for (Id id = 0; id < m.insts.size(); ++id) {
    if (m.insts[id].op == op && nth-- == 0) return id;
  }
  ADD_FAILURE() << "no " << info(op).name;
  return 0;
}

// ---- Table

TEST(Module, TableNamesEveryOperationOnce) {
  std::set<std::string> names;
  for (int k = 0; k < static_cast<int>(Op::count); ++k) names.insert(info(static_cast<Op>(k)).name);
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Op::count));
  EXPECT_STREQ(info(Op::fma).name, "fma");
  EXPECT_EQ(info(Op::fma).arity, 3);
  EXPECT_EQ(info(Op::fma).operands, OperandClass::real);
  EXPECT_EQ(info(Op::lt).result, ResultRule::boolean);
  EXPECT_EQ(info(Op::load).effect, Effect::reads);
  EXPECT_EQ(info(Op::floor).derivative, Derivative::nondifferentiable);
  EXPECT_STREQ(info(Op::result).name, "result");
}

TEST(Module, ArrayOfFindsTheParameter) {
  const Module m = saxpy();
  const Id load = find(m, Op::load);
  ASSERT_NE(m.array_of(m.arg(load, 0)), nullptr);
  EXPECT_EQ(m.array_of(m.arg(load, 0))->name, "x");
  EXPECT_EQ(m.array_of(m.arg(find(m, Op::store), 0))->name, "y");
  EXPECT_EQ(m.array_of(load), nullptr);
  EXPECT_EQ(m.array_of(find(m, Op::thread_id)), nullptr);
  EXPECT_EQ(m.array_of(kNone), nullptr);
}

TEST(Module, FailNamesKernelAndPlace) {
  Module m = saxpy();
  m.loc = {"kernel.cpp", 3};
  try {
    fail(m, kLoc, "no such thing");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_kernel);
    EXPECT_EQ(e.kernel(), "sample");
    EXPECT_EQ(e.loc().line, 12);
    EXPECT_EQ(e.message(), "no such thing");
  }
  try {
    fail(m, {}, "nowhere");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.loc().line, 3);
  }
}

// ---- Printing

/// How a constant prints as an operand.
std::string literal(Type type, std::uint64_t bits) {
  Module m;
  const std::uint32_t local = Builder(m).local(type);
  Module built;
  Builder b(built);
  b.local(type);
  b.local_set(local, b.constant(type, bits));
  const std::string text = print(built);
  const std::size_t from = text.find(" = ") + 3;
  return text.substr(from, text.find('\n', from) - from);
}

std::uint64_t of(float v) {
  std::uint32_t u;
  std::memcpy(&u, &v, 4);
  return u;
}

std::uint64_t of(double v) {
  std::uint64_t u;
  std::memcpy(&u, &v, 8);
  return u;
}

TEST(Print, Literals) {
  EXPECT_EQ(literal(Type::b1, 1), "true");
  EXPECT_EQ(literal(Type::b1, 0), "false");
  EXPECT_EQ(literal(Type::i32, 0xffffffff), "-1i32");
  EXPECT_EQ(literal(Type::u32, 0xffffffff), "4294967295u32");
  EXPECT_EQ(literal(Type::i8, 0x80), "-128i8");
  EXPECT_EQ(literal(Type::u8, 0x80), "128u8");
  EXPECT_EQ(literal(Type::i64, 1ull << 63), "-9223372036854775808i64");
  EXPECT_EQ(literal(Type::u64, ~0ull), "18446744073709551615u64");
  EXPECT_EQ(literal(Type::f32, of(0.1f)), "0.1f32");
  EXPECT_EQ(literal(Type::f32, of(-0.f)), "-0f32");
  EXPECT_EQ(literal(Type::f32, of(16777216.f)), "16777216f32");
  EXPECT_EQ(literal(Type::f32, of(std::numeric_limits<float>::infinity())), "inf_f32");
  EXPECT_EQ(literal(Type::f64, of(-std::numeric_limits<double>::infinity())), "-inf_f64");
  EXPECT_EQ(literal(Type::f32, 0x7fc00000), "nan_f32(0x7fc00000)");
  EXPECT_EQ(literal(Type::f64, of(0.1)), "0.1f64");
  EXPECT_EQ(literal(Type::f64, of(1.0 / 3)), "0.3333333333333333f64");
  EXPECT_EQ(literal(Type::f16, 0x3c00), "1f16");
  EXPECT_EQ(literal(Type::f16, 0x2e66), "0.1f16");
  EXPECT_EQ(literal(Type::f16, 0x7bff), "65504f16");
  EXPECT_EQ(literal(Type::f16, 0x0001), "6e-08f16");
}

TEST(Print, LinesOnlyWhenAsked) {
  const Module m = saxpy();
  EXPECT_EQ(print(m).find("kernel.cpp"), std::string::npos);
  EXPECT_NE(print(m, true).find("; kernel.cpp:12\n"), std::string::npos);
  EXPECT_EQ(print(m, true).find("somewhere"), std::string::npos);
}

TEST(Print, MalformedModulesPrintToo) {
  Module m = traced();
  m.insts[find(m, Op::lt)].num_args = 900;
  m.operands[m.insts[find(m, Op::eq)].first_arg] = 100000;
  m.insts[find(m, Op::loop)].regions[1] = 77;
  m.insts[find(m, Op::local_set)].imm = 12;
  m.regions[0].insts.push_back(5000);
  const std::string text = print(m);
  EXPECT_NE(text.find("no such region"), std::string::npos);
  EXPECT_NE(text.find("no such instruction"), std::string::npos);
  EXPECT_NE(text.find("no such local"), std::string::npos);
  EXPECT_NE(text.find("no such operand"), std::string::npos);
}

// ---- Hashing

TEST(Hash, IgnoresNamesLinesAndDeadInstructions) {
  const detail::Hash128 h = hash(saxpy());
  EXPECT_EQ(hash(saxpy({"other.cpp", 99})), h);
  Module m = saxpy();
  m.name = "another";
  m.loc = {"x", 1};
  m.params[0].name = "renamed";
  EXPECT_EQ(hash(m), h);
  Inst dead;
  dead.op = Op::constant;
  dead.type = Type::f64;
  m.insts.push_back(dead);
  m.regions.emplace_back();
  m.locals.push_back({Type::i32});
  EXPECT_EQ(hash(m), h);
}

TEST(Hash, IgnoresNumbersOfValuesAndLocals) {
  const auto build = [](bool swapped) {
    Module m = with_arguments();
    Builder b(m);
    if (swapped) b.constant_int(Type::i32, 4), b.arg(Type::u64, 24), b.local(Type::f32);
    const std::uint32_t local = b.local(Type::f32);
    b.local_set(local, b.arg(Type::f32, 40));
    const Id out[] = {b.local_get(local)};
    b.store(Type::f32, out, element(b, 24));
    return m;
  };
  EXPECT_EQ(hash(build(false)), hash(build(true)));
  EXPECT_EQ(print(build(false)), print(build(true)));
}

TEST(Hash, SeesEverythingThatDecidesBehaviour) {
  std::set<std::string> seen;
  const auto fresh = [&](const Module& m, const char* what) {
    EXPECT_TRUE(seen.insert(to_hex(hash(m))).second) << what;
  };
  fresh(saxpy(), "saxpy");
  fresh(traced(), "traced");
  fresh(normal(), "normal");
  fresh(calling(), "calling");
  Module other = calling();
  Module& function = function_of(other);
  function.insts[find(function, Op::neg)].op = Op::abs;
  fresh(other, "body of a function");
  const auto changed = [&](const char* what, auto change) {
    for (Module m : {saxpy(), traced(), normal()}) {
      const std::string before = to_hex(hash(m));
      change(m);
      if (to_hex(hash(m)) != before)
        fresh(m, what);
      else
        ADD_FAILURE() << what;
    }
  };
  changed("args_bytes", [](Module& m) { m.args_bytes = 64; });
  changed("tid_rank", [](Module& m) { m.tid_rank = 1; });
  changed("block", [](Module& m) { m.block = 64; });
  changed("wide", [](Module& m) { m.wide = true; });
  changed("type name", [](Module& m) { m.params[0].type_name = "Array<int32, 1>"; });
  changed("kind", [](Module& m) { m.params[0].kind = Param::Kind::value; });
  changed("dimensions", [](Module& m) { m.params[0].ndim = 2; });
  changed("strided", [](Module& m) { m.params[0].strided = true; });
  changed("offset", [](Module& m) { m.params[2].offset = 44; });
  changed("bytes", [](Module& m) { m.params[0].bytes = 16; });
  changed("access", [](Module& m) { m.params[0].access = Access::atomic; });
  changed("parameters", [](Module& m) { m.params.pop_back(); });

  const auto on = [&](const char* what, Module m, Op op, auto change) {
    change(m, m.insts[find(m, op)]);
    fresh(m, what);
  };
  on("operation", saxpy(), Op::add, [](Module&, Inst& i) { i.op = Op::sub; });
  on("type", saxpy(), Op::load, [](Module&, Inst& i) { i.type = Type::i32; });
  on("width", saxpy(), Op::load, [](Module&, Inst& i) { i.width = 2; });
  on("align", saxpy(), Op::load, [](Module&, Inst& i) { i.align = 2; });
  on("stride", saxpy(), Op::load, [](Module&, Inst& i) { i.stride = 8; });
  on("memory offset", saxpy(), Op::load, [](Module&, Inst& i) { i.offset = 4; });
  on("immediate", saxpy(), Op::arg, [](Module&, Inst& i) { i.imm = 24; });
  on("operands", saxpy(), Op::add,
     [](Module& m, Inst& i) { std::swap(m.operands[i.first_arg], m.operands[i.first_arg + 1]); });
  on("exit", traced(), Op::break_, [](Module&, Inst& i) { i.op = Op::continue_; });
  on("constant", traced(), Op::constant, [](Module&, Inst& i) { i.imm = 1; });
  on("side of a branch", traced(), Op::if_, [](Module&, Inst& i) { std::swap(i.regions[0], i.regions[1]); });
  on("type of a local", traced(), Op::local_get, [](Module& m, Inst&) { m.locals[0].type = Type::u32; });
  on("place", traced(), Op::local_set,
     [](Module& m, Inst&) { std::swap(m.regions[0].insts[0], m.regions[0].insts[1]); });
  on("result", normal(), Op::store, [](Module& m, Inst& i) { m.insts[m.operands[i.first_arg + 2]].imm = 0; });
}

TEST(Hash, PrintsAs32Digits) {
  EXPECT_EQ(to_hex(detail::Hash128{0x1, 0xab}), "00000000000000ab0000000000000001");
  EXPECT_EQ(to_hex(hash(saxpy())).size(), 32u);
}

// ---- The verifier

TEST(Verify, AcceptsWhatTheBuilderMakes) {
  EXPECT_EQ(first_violation(Module{}), "");
  EXPECT_EQ(first_violation(saxpy()), "");
  EXPECT_EQ(first_violation(traced()), "");
  EXPECT_EQ(first_violation(normal()), "");
  EXPECT_EQ(first_violation(calling()), "");
  verify(normal());
}

/// Appends an instruction to the end of a region, with no check at all.
Id force(Module& m, RegionId region, Op op, Type type, std::vector<Id> args, std::uint64_t imm = 0) {
  Inst inst;
  inst.op = op;
  inst.type = type;
  inst.imm = imm;
  inst.first_arg = static_cast<std::uint32_t>(m.operands.size());
  inst.num_args = static_cast<std::uint32_t>(args.size());
  m.operands.insert(m.operands.end(), args.begin(), args.end());
  m.insts.push_back(inst);
  m.regions[region].insts.push_back(static_cast<Id>(m.insts.size() - 1));
  return static_cast<Id>(m.insts.size() - 1);
}

struct Broken {
  const char* what;
  Module (*base)();
  std::function<void(Module&)> change;
  const char* message;
};

Module plain() { return saxpy(); }

void set_operand(Module& m, Op op, int k, Id value) {
  m.operands[m.insts[find(m, op)].first_arg + static_cast<std::uint32_t>(k)] = value;
}

const Broken kBroken[] = {
    {"type mismatch", plain, [](Module& m) { set_operand(m, Op::add, 1, find(m, Op::thread_id)); }, "operand 0 is"},
    {"class", plain,
     [](Module& m) {
       force(m, 0, Op::bit_and, Type::f32, {find(m, Op::mul), find(m, Op::mul)});
     },
     "does not take operands of type f32"},
    {"real only", plain, [](Module& m) { force(m, 0, Op::sqrt, Type::u32, {find(m, Op::thread_id)}); },
     "does not take operands of type u32"},
    {"count", plain, [](Module& m) { m.insts[find(m, Op::add)].num_args = 1; }, "1 operands, not 2"},
    {"result type", plain, [](Module& m) { m.insts[find(m, Op::mul)].type = Type::f64; }, "its result is f32"},
    {"comparison's type", traced, [](Module& m) { m.insts[find(m, Op::lt)].type = Type::i32; }, "its result is b1"},
    {"no type", plain, [](Module& m) { m.insts[find(m, Op::mul)].type = Type::none; }, "has no type"},
    {"type of what has none", traced, [](Module& m) { m.insts[find(m, Op::if_)].type = Type::i32; }, "has a type"},
    {"mul_hi", plain,
     [](Module& m) {
       force(m, 0, Op::mul_hi, Type::u64, {find(m, Op::arg), find(m, Op::arg)});
     },
     "32-bit integers"},
    {"select's condition", plain,
     [](Module& m) {
       force(m, 0, Op::select, Type::f32, {find(m, Op::mul), find(m, Op::mul), find(m, Op::mul)});
     },
     "its condition is f32"},
    {"select's sides", traced,
     [](Module& m) {
       const Id c = force(m, 0, Op::local_get, Type::i32, {});
       const Id t = force(m, 0, Op::eq, Type::b1, {c, c});
       force(m, 0, Op::select, Type::i32, {t, c, t});
     },
     "chooses between"},
    {"bitcast's width", plain, [](Module& m) { force(m, 0, Op::bitcast, Type::u64, {find(m, Op::mul)}); },
     "differ in width"},
    {"boolean bitcast", traced,
     [](Module& m) {
       const Id c = force(m, 0, Op::local_get, Type::i32, {});
       force(m, 0, Op::bitcast, Type::b1, {force(m, 0, Op::eq, Type::b1, {c, c})});
     },
     "are boolean"},
    {"base", plain, [](Module& m) { set_operand(m, Op::load, 0, find(m, Op::thread_id)); }, "base address is u32"},
    {"index", plain, [](Module& m) { set_operand(m, Op::load, 1, find(m, Op::arg, 1)); }, "the index is f32"},
    {"width", plain, [](Module& m) { m.insts[find(m, Op::load)].width = 5; }, "5 scalars wide"},
    {"alignment", plain, [](Module& m) { m.insts[find(m, Op::load)].align = 3; }, "its alignment is 3"},
    {"alignment of 32", plain, [](Module& m) { m.insts[find(m, Op::load)].align = 32; }, "its alignment is 32"},
    {"stride", plain, [](Module& m) { m.insts[find(m, Op::load)].stride = 6; }, "a stride of 6 bytes"},
    {"no stride", plain, [](Module& m) { m.insts[find(m, Op::load)].stride = 0; }, "its stride is 0"},
    {"offset", plain, [](Module& m) { m.insts[find(m, Op::load)].offset = 2; }, "an offset of 2 bytes"},
    {"booleans in memory", plain, [](Module& m) { m.insts[find(m, Op::load)].type = Type::b1; },
     "booleans are bytes in memory"},
    {"stored type", plain, [](Module& m) { m.insts[find(m, Op::store)].type = Type::i32; }, "value 0 is f32, not i32"},
    {"stored width", plain, [](Module& m) { m.insts[find(m, Op::store)].width = 2; }, "stores 1 values, 2 wide"},
    {"wide value as scalar", plain, [](Module& m) { m.insts[find(m, Op::load)].width = 2; }, "is no scalar value"},
    {"memory operand elsewhere", plain, [](Module& m) { m.insts[find(m, Op::add)].stride = 4; }, "a memory operand"},
    {"region elsewhere", plain, [](Module& m) { m.insts[find(m, Op::add)].regions[0] = 0; }, "it has a region"},
    {"operand that is no value", plain, [](Module& m) { set_operand(m, Op::add, 0, find(m, Op::store)); },
     "is not visible here"},
    {"operand that does not exist", plain, [](Module& m) { set_operand(m, Op::add, 0, 4000); }, "does not exist"},
    {"use before definition", plain, [](Module& m) { std::swap(m.regions[0].insts[0], m.regions[0].insts[1]); },
     "is not visible here"},
    {"two regions", traced, [](Module& m) { m.regions[0].insts.push_back(find(m, Op::lt)); }, "member of two regions"},
    {"constant in a region", plain, [](Module& m) { m.regions[0].insts.push_back(find(m, Op::arg)); },
     "visible everywhere"},
    {"value of an inner region", traced, [](Module& m) { force(m, 0, Op::neg, Type::i32, {find(m, Op::add)}); },
     "is not visible here"},
    {"body's value in the step", traced,
     [](Module& m) {
       const Inst& loop = m.insts[find(m, Op::loop)];
       const Id c = force(m, loop.regions[1], Op::local_get, Type::i32, {});
       force(m, loop.regions[2], Op::neg, Type::i32, {c});
     },
     "is not visible here"},
    {"constant's bits", traced, [](Module& m) { m.insts[find(m, Op::constant)].imm = 1ull << 40; }, "above the width"},
    {"argument's place", plain, [](Module& m) { m.insts[find(m, Op::arg)].imm = 48; }, "outside the argument block"},
    {"argument's alignment", plain, [](Module& m) { m.insts[find(m, Op::arg)].imm = 12; }, "is not aligned for u64"},
    {"thread's type", plain, [](Module& m) { m.insts[find(m, Op::thread_id)].type = Type::i32; }, "is u32"},
    {"local's number", traced, [](Module& m) { m.insts[find(m, Op::local_get)].imm = 3; }, "there is no local 3"},
    {"local's type", traced, [](Module& m) { m.locals[0].type = Type::u32; }, "local 0 is u32, not i32"},
    {"condition", traced, [](Module& m) { set_operand(m, Op::if_, 0, find(m, Op::constant)); }, "its condition is i32"},
    {"loop's condition", traced, [](Module& m) { set_operand(m, Op::yield, 0, find(m, Op::constant)); },
     "yields one boolean"},
    {"condition without yield", traced,
     [](Module& m) { m.regions[m.insts[find(m, Op::loop)].regions[0]].insts.pop_back(); }, "values that it owes"},
    {"yield of nothing to owe", plain, [](Module& m) { force(m, 0, Op::yield, Type::none, {find(m, Op::mul)}); },
     "this region has no results"},
    {"break outside", plain, [](Module& m) { force(m, 0, Op::break_, Type::none, {}); }, "in no loop's body"},
    {"break in the step", traced,
     [](Module& m) { force(m, m.insts[find(m, Op::loop)].regions[2], Op::break_, Type::none, {}); },
     "in no loop's body"},
    {"return in the step", traced,
     [](Module& m) { force(m, m.insts[find(m, Op::loop)].regions[2], Op::return_, Type::none, {}); },
     "condition or step region"},
    {"something after an exit", traced,
     [](Module& m) { force(m, m.insts[find(m, Op::if_)].regions[0], Op::local_get, Type::i32, {}); },
     "something follows it"},
    {"break out of a loop with values", normal,
     [](Module& m) {
       auto& body = m.regions[m.insts[find(m, Op::loop)].regions[1]].insts;
       body.pop_back();
       force(m, m.insts[find(m, Op::loop)].regions[1], Op::break_, Type::none, {});
     },
     "it leaves what has results"},
    {"step of a loop with values", normal,
     [](Module& m) {
       m.regions.push_back({{}, 0});
       m.insts[find(m, Op::loop)].regions[2] = static_cast<RegionId>(m.regions.size() - 1);
     },
     "carries values and has a step region"},
    {"number of carried values", normal,
     [](Module& m) { m.insts[m.regions[m.insts[find(m, Op::loop)].regions[1]].insts.back()].num_args = 1; },
     "its body yields 1"},
    {"type of a carried value", normal,
     [](Module& m) {
       const Id yield = m.regions[m.insts[find(m, Op::loop)].regions[1]].insts.back();
       m.operands[m.insts[yield].first_arg] = m.operands[m.insts[yield].first_arg + 1];
     },
     "carried value 0 changes its type"},
    {"parameter's number", normal, [](Module& m) { m.insts[find(m, Op::param)].imm = 1; }, "numbered in order"},
    {"parameter's type", normal, [](Module& m) { m.insts[find(m, Op::param)].type = Type::u32; }, "its type differs"},
    {"parameter elsewhere", plain, [](Module& m) { force(m, 0, Op::param, Type::i32, {}); }, "parameters stand first"},
    {"missing parameter", normal,
     [](Module& m) {
       auto& head = m.regions[m.insts[find(m, Op::loop)].regions[0]].insts;
       head.erase(head.begin() + 1);
     },
     "parameter is missing"},
    {"result's number", normal, [](Module& m) { m.insts[find(m, Op::result)].imm = 1; }, "there is no result 1"},
    {"result's type", normal, [](Module& m) { m.insts[find(m, Op::result, 1)].type = Type::f64; }, "result 1 is f32"},
    {"result of a scalar", plain, [](Module& m) { force(m, 0, Op::result, Type::f32, {find(m, Op::load)}); },
     "is no operation with several results"},
    {"one yield of two", normal, [](Module& m) { m.regions[m.insts[find(m, Op::if_)].regions[1]].insts.pop_back(); },
     "values that it owes"},
    {"no else for results", normal, [](Module& m) { m.insts[find(m, Op::if_)].regions[1] = kNone; }, "no else region"},
    {"yields of two types", normal,
     [](Module& m) {
       const Id yield = m.regions[m.insts[find(m, Op::if_)].regions[1]].insts.back();
       m.operands[m.insts[yield].first_arg] = find(m, Op::constant);
     },
     "values of different types"},
    {"region twice", traced,
     [](Module& m) { m.insts[find(m, Op::if_)].regions[1] = m.insts[find(m, Op::if_)].regions[0]; }, "two owners"},
    {"region's parent", traced, [](Module& m) { m.regions[m.insts[find(m, Op::loop)].regions[1]].parent = kNone; },
     "names another parent"},
    {"no region", traced, [](Module& m) { m.insts[find(m, Op::loop)].regions[1] = 99; }, "no such region"},
    {"no operation", plain, [](Module& m) { m.insts[0].op = Op::count; }, "is no operation"},
    {"operands outside", plain, [](Module& m) { m.insts[find(m, Op::add)].first_arg = 1u << 31; },
     "outside the module"},
    {"parameter of the kernel outside", plain, [](Module& m) { m.params[1].bytes = 400; }, "parameter y lies outside"},
    {"no such function", calling, [](Module& m) { m.insts[find(m, Op::call)].imm = 1; }, "no function before it"},
    {"recursion", calling,
     [](Module& m) {
       Module& f = function_of(m);
       f.regions[0].insts.pop_back();
       force(f, 0, Op::call, Type::none, {f.regions[0].insts[0], f.regions[0].insts[1]});
     },
     "func 0: instruction 5 (call): it calls no function before it"},
    {"number of inputs", calling, [](Module& m) { m.insts[find(m, Op::call)].num_args = 1; },
     "1 operands for 2 inputs"},
    {"type of an input", calling, [](Module& m) { set_operand(m, Op::call, 1, find(m, Op::arg)); },
     "operand 1 is f32, not i32"},
    {"result of a call", calling, [](Module& m) { m.insts[find(m, Op::result)].imm = 2; }, "there is no result 2"},
    {"type of a call's result", calling, [](Module& m) { m.insts[find(m, Op::result)].imm = 1; }, "result 1 is i32"},
    {"a call as a value", calling, [](Module& m) { set_operand(m, Op::store, 2, find(m, Op::call)); },
     "is no scalar value"},
    {"missing input", calling, [](Module& m) { function_of(m).num_inputs = 3; }, "an input is missing"},
    {"order of inputs", calling, [](Module& m) { function_of(m).insts[0].imm = 1; }, "inputs are numbered in order"},
    {"return in a function", calling,
     [](Module& m) {
       Module& f = function_of(m);
       f.regions[0].insts.pop_back();
       force(f, 0, Op::return_, Type::none, {});
     },
     "func 0: instruction 5 (return_): it leaves"},
    {"functions of a function", calling, [](Module& m) { function_of(m).functions = calling().functions; },
     "has functions of its own"},
    {"results of a kernel", calling, [](Module& m) { force(m, 0, Op::yield, Type::none, {find(m, Op::result)}); },
     "this region has no results"},
    {"inputs of a kernel", plain, [](Module& m) { m.num_inputs = 1; }, "a kernel has inputs"},
    {"atomic of another type", plain,
     [](Module& m) {
       const Id c = force(m, 0, Op::convert, Type::f16, {find(m, Op::mul)});
       const Id change = force(m, 0, Op::atomic_xor, Type::f16, {find(m, Op::arg), find(m, Op::thread_id), c});
       m.insts[change].stride = m.insts[change].align = 2;
     },
     "not defined on f16"},
};

TEST(Verify, FindsEveryBrokenRule) {
  for (const Broken& broken : kBroken) {
    Module m = broken.base();
    broken.change(m);
    EXPECT_NE(first_violation(m).find(broken.message), std::string::npos)
        << broken.what << ": " << first_violation(m) << "\n"
        << print(m);
  }
}

TEST(VerifyDeathTest, VerifyNamesKernelAndRule) {
  Module m = saxpy();
  m.insts[find(m, Op::load)].stride = 6;
  EXPECT_DEATH(verify(m), "kernel \"sample\".*load, /somewhere/kernel.cpp:12.*a stride of 6 bytes");
}

}  // namespace
}  // namespace weft::ir
