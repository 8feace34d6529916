// The SPIR-V emitter: every operation, type and form is valid, and what the device lacks is refused by name.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <spirv/unified1/spirv.hpp11>

#include "../../frontend/ir/builder.h"
#include "../../frontend/passes/passes.h"
#include "../../frontend/support/error.h"
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

constexpr Type kNumbers[] = {Type::i8,  Type::i16, Type::i32, Type::i64, Type::u8, Type::u16,
                             Type::u32, Type::u64, Type::f16, Type::f32, Type::f64};
constexpr Type kIntegers[] = {Type::i8, Type::i16, Type::i32, Type::i64, Type::u8, Type::u16, Type::u32, Type::u64};
constexpr Type kReals[] = {Type::f16, Type::f32, Type::f64};

constexpr std::uint32_t kIn = 8, kOut = 16, kValues = 24;

Module kernel(std::uint32_t args_bytes = 120) {
  Module m;
  m.name = "test";
  m.loc = Loc::here();
  m.args_bytes = args_bytes;
  return m;
}

MemoryRef place(Type t, Id base, Id index, int width = 1) {
  auto size = static_cast<std::uint32_t>(ir::bytes(t));
  return {base, index, size * static_cast<std::uint32_t>(width), 0, size};
}

/// The index that most kernels use: the thread's number as a signed integer.
Id thread(Builder& b) { return b.pure(Op::bitcast, Type::i32, {b.thread_id()}); }

Id load(Builder& b, Type t, int k = 0) {
  Type memory = t == Type::b1 ? Type::u8 : t;
  MemoryRef ref = place(memory, b.arg(Type::u64, kIn), thread(b), 4);
  ref.offset = static_cast<std::uint32_t>(k * ir::bytes(memory));
  Id x = b.load(memory, 1, ref);
  return t == Type::b1 ? b.pure(Op::ne, Type::b1, {x, b.constant(memory, 0)}) : x;
}

void store(Builder& b, Id value) {
  Type t = b.module()[value].type;
  if (t == Type::b1) value = b.pure(Op::convert, t = Type::u8, {value});
  b.store(t, {&value, 1}, place(t, b.arg(Type::u64, kOut), thread(b)));
}

/// Emits and validates a module. \return  the words
std::vector<std::uint32_t> check(const Module& m, const Target& target = Target::everything()) {
  EXPECT_EQ(ir::first_violation(m), "");
  std::vector<std::uint32_t> words = spirv::emit(m, target);
  std::string complaint = spirv::validate(words);
  EXPECT_EQ(complaint, "") << ir::print(m) << spirv::disassemble(words);
  return words;
}

/// The number of times that each instruction occurs.
std::map<spv::Op, int> count_ops(const std::vector<std::uint32_t>& words) {
  std::map<spv::Op, int> count;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> spv::WordCountShift) {
    ++count[spv::Op(words[at] & spv::OpCodeMask)];
  }
  return count;
}

bool has_capability(const std::vector<std::uint32_t>& words, spv::Capability c) {
  for (std::size_t at = 5; spv::Op(words[at] & spv::OpCodeMask) == spv::Op::OpCapability; at += 2) {
    if (words[at + 1] == std::uint32_t(c)) return true;
  }
  return false;
}

/// The message with which a device refuses a kernel.
std::string refusal(const Module& m, const Target& target) {
  try {
    spirv::emit(m, target);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    EXPECT_EQ(e.kernel(), "test");
    EXPECT_TRUE(e.loc());
    return e.what();
  }
  return "";
}

Target without(const std::function<void(Target&)>& change) {
  Target t = Target::everything();
  change(t);
  return t;
}

bool in_class(Type t, ir::OperandClass c) {
  switch (c) {
    case ir::OperandClass::any: return true;
    case ir::OperandClass::numeric: return ir::is_numeric(t);
    case ir::OperandClass::integer: return ir::is_int(t);
    case ir::OperandClass::real: return ir::is_float(t);
    case ir::OperandClass::logical: return ir::is_int(t) || ir::is_bool(t);
    case ir::OperandClass::boolean: return ir::is_bool(t);
    case ir::OperandClass::special: return false;
  }
  return false;
}

bool only_to_float32(Op op) {
  return op >= Op::exp && op <= Op::tanh;  // the rows of ops.def that GLSL.std.450 has in 32 bits at most
}

// ---- Pure operations

TEST(Spirv, EveryPureOperationOnEveryType) {
  int emitted = 0;
  for (int k = 0; k < int(Op::count); ++k) {
    const Op op = Op(k);
    const ir::OpInfo& row = ir::info(op);
    if (row.effect != ir::Effect::pure || row.operands == ir::OperandClass::special) continue;
    for (int ty = 1; ty < ir::kTypeCount; ++ty) {
      const Type t = Type(ty);
      if (!in_class(t, row.operands) || (op == Op::mul_hi && ir::bits(t) != 32)) continue;
      if (only_to_float32(op) && t == Type::f64) continue;
      const Type result = row.result == ir::ResultRule::boolean ? Type::b1 : t;
      SCOPED_TRACE(std::string(row.name) + " on " + ir::user_name(t));
      // Each operand in turn is a literal, and at last none is.
      for (int literal = 0; literal <= row.arity; ++literal) {
        for (std::uint64_t bits : {std::uint64_t(0), std::uint64_t(5), ~std::uint64_t(0)}) {
          Module m = kernel();
          Builder b(m);
          std::vector<Id> args;
          for (int a = 0; a < row.arity; ++a) args.push_back(a == literal ? b.constant(t, bits) : load(b, t, a));
          store(b, b.pure(op, result, args));
          check(m);
          ++emitted;
          if (literal == row.arity) break;
        }
      }
    }
  }
  EXPECT_GT(emitted, 500);
}

TEST(Spirv, ConversionsBetweenAllTypes) {
  for (int f = 1; f < ir::kTypeCount; ++f) {
    for (int t = 1; t < ir::kTypeCount; ++t) {
      if (f == t) continue;
      SCOPED_TRACE(std::string(ir::name(Type(f))) + " to " + ir::name(Type(t)));
      Module m = kernel();
      Builder b(m);
      store(b, b.pure(Op::convert, Type(t), {load(b, Type(f))}));
      check(m);
      // If only the storage of narrow types is missing, conversion to and from them still works.
      check(m, without([](Target& d) { d.int8 = d.int16 = d.float16 = false; }));
      if (ir::bits(Type(f)) != ir::bits(Type(t)) || f == 1 || t == 1) continue;
      store(b, b.pure(Op::bitcast, Type(t), {load(b, Type(f))}));
      check(m);
    }
  }
}

TEST(Spirv, SelectOnEveryType) {
  for (int t = 1; t < ir::kTypeCount; ++t) {
    Module m = kernel();
    Builder b(m);
    Id less = b.pure(Op::lt, Type::b1, {load(b, Type::i32, 0), load(b, Type::i32, 1)});
    store(b, b.pure(Op::select, Type(t), {less, load(b, Type(t), 2), load(b, Type(t), 3)}));
    check(m);
  }
}

TEST(Spirv, FloatArithmeticIsNeverContracted) {
  Module m = kernel();
  Builder b(m);
  for (Type t : kReals) {
    Id x = load(b, t, 0), y = load(b, t, 1), z = load(b, t, 2);
    Id sum = b.pure(Op::add, t, {b.pure(Op::mul, t, {x, y}), z});
    store(b, b.pure(Op::neg, t, {b.pure(Op::sub, t, {b.pure(Op::div, t, {sum, x}), z})}));
    store(b, b.pure(Op::rem, t, {sum, y}));
  }
  std::vector<std::uint32_t> words = check(m);
  std::map<spv::Op, int> count = count_ops(words);
  int marked = 0;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> spv::WordCountShift) {
    marked += spv::Op(words[at] & spv::OpCodeMask) == spv::Op::OpDecorate &&
              words[at + 2] == std::uint32_t(spv::Decoration::NoContraction);
  }
  EXPECT_EQ(marked, count[spv::Op::OpFAdd] + count[spv::Op::OpFSub] + count[spv::Op::OpFMul] + count[spv::Op::OpFDiv] +
                        count[spv::Op::OpFNegate]);
  EXPECT_GT(marked, 15);
}

TEST(Spirv, LiteralDivisorsNeedNoGuard) {
  for (Type t : kIntegers) {
    for (Op op : {Op::div, Op::rem}) {
      Module plain = kernel(), guarded = kernel();
      Builder p(plain), g(guarded);
      store(p, p.pure(op, t, {load(p, t), p.constant(t, 7)}));
      store(g, g.pure(op, t, {load(g, t), load(g, t, 1)}));
      EXPECT_EQ(count_ops(check(plain))[spv::Op::OpSelect], 0);
      EXPECT_EQ(count_ops(check(guarded))[spv::Op::OpSelect], 1);
    }
    Module m = kernel();
    Builder b(m);
    store(b, b.pure(Op::shl, t, {load(b, t), b.constant(t, 3)}));
    EXPECT_EQ(count_ops(check(m))[spv::Op::OpBitwiseAnd], 0);
  }
}

// ---- Loops

/// Counts from `first` by `step` while the count is below `limit`; a value below 0 stands for one that is loaded.
Module loop_kernel(std::int64_t first, std::int64_t step, std::int64_t limit, bool load_in_condition = false) {
  Module m = kernel();
  Builder b(m);
  const auto number = [&](std::int64_t n) { return n < 0 ? load(b, Type::i32) : b.constant_int(Type::i32, n); };
  const Id initial[] = {number(first), load(b, Type::i32, 1)};
  const Id by = number(step), bound = load_in_condition ? ir::kNone : number(limit);
  b.open_loop(initial);
  const Id i = b.loop_param(0), sum = b.loop_param(1);
  const Id rest = b.pure(Op::sub, Type::i32, {sum, i});
  b.loop_body(b.pure(Op::lt, Type::b1, {i, load_in_condition ? number(limit) : bound}));
  // The body uses a value that the condition has computed.
  const Id next[] = {b.pure(Op::add, Type::i32, {i, by}), b.pure(Op::add, Type::i32, {sum, rest})};
  b.yield(next);
  const Id loop = b.close_loop();
  store(b, b.pure(Op::add, Type::i32, {b.result(loop, 0, Type::i32), b.result(loop, 1, Type::i32)}));
  return m;
}

TEST(Spirv, LoopsAskAtTheirEndWhetherTheyGoOn) {
  const auto guards = [](const Module& m) {
    std::map<spv::Op, int> found = count_ops(check(m));
    EXPECT_EQ(found[spv::Op::OpLoopMerge], 1);
    EXPECT_EQ(found[spv::Op::OpBranchConditional], 1 + found[spv::Op::OpSelectionMerge]);
    const int guards = found[spv::Op::OpSelectionMerge] - 1;  // without that for threads past the end
    EXPECT_EQ(found[spv::Op::OpISub], 1 + guards) << "once for each time that the condition is asked";
    // There is one for each carried value; with a guard also for the condition's value that the body uses, and for each
    // result after the guard.
    EXPECT_EQ(found[spv::Op::OpPhi], guards ? 2 + 1 + 2 : 2);
    return guards;
  };
  EXPECT_EQ(guards(loop_kernel(0, 1, -1)), 1);
  EXPECT_EQ(guards(loop_kernel(-1, 1, 9)), 1);
  EXPECT_EQ(guards(loop_kernel(0, -1, 9)), 1);
  // Drivers unroll loops that count between constants, and values from memory are read once a round.
  EXPECT_EQ(guards(loop_kernel(0, 1, 9)), 0);
  EXPECT_EQ(guards(loop_kernel(0, 1, -1, true)), 0);
}

// ---- Arguments

TEST(Spirv, ArgumentsOfEveryTypeInPushConstantsAndInMemory) {
  for (std::uint32_t bytes : {120u, 512u}) {
    for (int t = 1; t < ir::kTypeCount; ++t) {
      Module m = kernel(bytes);
      Builder b(m);
      auto size = static_cast<std::uint32_t>(ir::bytes(Type(t)));
      for (std::uint32_t k = 0; k < 5; ++k) store(b, b.arg(Type(t), kValues + k * size));
      check(m);
    }
  }
}

TEST(Spirv, OverlappingArgumentsShareOneMember) {
  Module m = kernel();
  Builder b(m);
  for (Type t : {Type::u32, Type::f32, Type::i32, Type::f64, Type::i64, Type::u8, Type::f16, Type::b1}) {
    store(b, b.arg(t, kValues));
    if (ir::bytes(t) <= 4) store(b, b.arg(t, kValues + 4));
  }
  store(b, b.arg(Type::i8, 3));
  std::map<spv::Op, int> count = count_ops(check(m));
  // There is the block, and one for each place to which a type is stored.
  EXPECT_LE(count[spv::Op::OpTypeStruct], 10);
}

TEST(Spirv, UnusedArgumentsAskForNothing) {
  Module m = kernel();
  Builder b(m);
  b.arg(Type::f64, kValues);
  b.arg(Type::u64, kIn);
  EXPECT_EQ(spirv::validate(spirv::emit(m, Target{})), "");
}

TEST(Spirv, ReadsAnArgumentOnce) {
  Module m = kernel();
  Builder b(m);
  for (int k = 0; k < 3; ++k) store(b, load(b, Type::f32, k));
  std::map<spv::Op, int> count = count_ops(check(m));
  // Three built-ins, the number of threads, two addresses and three elements are loaded.
  EXPECT_EQ(count[spv::Op::OpLoad], 9);
}

// ---- Memory

TEST(Spirv, EveryFormOfAccess) {
  for (Type t : kNumbers) {
    auto size = static_cast<std::uint32_t>(ir::bytes(t));
    for (int width = 1; width <= 4; ++width) {
      for (std::uint32_t stride : {1u, size, size * 3, size * 4, 4096u}) {
        Module m = kernel();
        Builder b(m);
        std::vector<Id> indices{b.thread_id(), b.constant(Type::i32, 0), b.constant_int(Type::i32, -3),
                                b.constant(Type::u64, 1ull << 40)};
        for (Type i : kIntegers) indices.push_back(load(b, i, 1));
        Id given = b.arg(Type::u64, kIn);
        Id computed = b.pure(Op::add, Type::u64, {given, load(b, Type::u64)});
        for (Id index : indices) {
          for (Id base : {given, computed}) {
            for (std::uint32_t offset : {0u, size * 2, size * 100}) {
              MemoryRef ref{base, index, stride, offset, size};
              Id x = b.load(t, width, ref);
              std::vector<Id> values;
              for (int k = 0; k < width; ++k) {
                values.push_back(width == 1 ? x : b.result(x, std::uint32_t(k), t));
              }
              b.store(t, values, ref);
            }
          }
        }
        check(m);
      }
    }
  }
}

TEST(Spirv, AddressesOfArraysBecomePointersOnce) {
  Module m = kernel();
  Builder b(m);
  Id i = thread(b);
  for (int k = 0; k < 8; ++k) {
    Id x = b.load(Type::f32, 1,
                  place(Type::f32, b.arg(Type::u64, kIn), b.pure(Op::add, Type::i32, {i, load(b, Type::i32)})));
    b.store(Type::f32, {&x, 1}, place(Type::f32, b.arg(Type::u64, kOut), i));
  }
  EXPECT_EQ(count_ops(check(m))[spv::Op::OpConvertUToPtr], 3);  // floats read, integers read, floats written
}

TEST(Spirv, AlignmentIsWhatIsKnown) {
  Module m = kernel();
  Builder b(m);
  MemoryRef ref{b.arg(Type::u64, kIn), thread(b), 16, 0, 16};
  Id x = b.load(Type::f32, 4, ref);
  store(b, b.result(x, 3, Type::f32));
  std::string text = spirv::disassemble(check(m));
  EXPECT_NE(text.find("Aligned 16"), std::string::npos) << text;
}

TEST(Spirv, PairsAreWordsWhereThatIsFasterAndTheirPlaceIsKnown) {
  const Target words = without([](Target& t) { t.pairs_in_words = true; });
  for (Type t : {Type::i32, Type::u32, Type::f32, Type::f64, Type::u16})
    for (int width = 1; width <= 4; ++width)
      for (std::uint32_t align : {4u, 8u, 16u}) {
        if (align < std::uint32_t(ir::bytes(t))) continue;
        Module m = kernel();
        Builder b(m);
        for (Id index : {thread(b), b.constant(Type::i32, 2), b.thread_id()})
          for (std::uint32_t offset : {0u, 16u, 160u}) {
            Id x = b.load(t, width, {b.arg(Type::u64, kIn), index, 48, offset, align});
            std::vector<Id> values;
            for (int k = 0; k < width; ++k) values.push_back(width == 1 ? x : b.result(x, std::uint32_t(k), t));
            b.store(t, values, {b.arg(Type::u64, kOut), index, 48, offset, align});
          }
        const bool in_words = ir::bits(t) == 32 && width % 2 == 0 && align >= 8;
        EXPECT_EQ(count_ops(check(m, words))[spv::Op::OpBitcast] - count_ops(check(m))[spv::Op::OpBitcast],
                  in_words ? 18 : 0)
            << ir::name(t) << " x " << width << " at " << align;
      }
}

TEST(Spirv, AtomicAdd) {
  for (Type t : {Type::i32, Type::u32, Type::f32}) {
    for (bool native : {true, false}) {
      Module m = kernel();
      Builder b(m);
      MemoryRef ref = place(t, b.arg(Type::u64, kOut), load(b, Type::i32));
      // The addition occurs twice, once inside a loop: the compare-exchange loop must nest.
      store(b, b.atomic(Op::atomic_add, t, {load(b, t)}, ref));
      b.open_loop();
      b.loop_body(b.pure(Op::lt, Type::b1, {load(b, Type::i32), b.arg(Type::i32, kValues)}));
      b.open_if(b.pure(Op::lt, Type::b1, {load(b, Type::i32), b.arg(Type::i32, kValues)}));
      store(b, b.atomic(Op::atomic_add, t, {b.constant_int(t, 1)}, ref));
      b.leave(Op::break_);
      b.close_if();
      b.close_loop();
      std::vector<std::uint32_t> words = check(m, without([&](Target& d) { d.float32_atomic_add = native; }));
      std::map<spv::Op, int> count = count_ops(words);
      EXPECT_EQ(count[spv::Op::OpAtomicIAdd], t == Type::f32 ? 0 : 2);
      EXPECT_EQ(count[spv::Op::OpAtomicFAddEXT], t == Type::f32 && native ? 2 : 0);
      EXPECT_EQ(count[spv::Op::OpAtomicCompareExchange], t == Type::f32 && !native ? 2 : 0);
      EXPECT_EQ(has_capability(words, spv::Capability::AtomicFloat32AddEXT), t == Type::f32 && native);
    }
  }
}

// ---- Refusals, capabilities

TEST(Spirv, WhatTheDeviceLacksIsRefusedByName) {
  struct Case {
    Type type;
    std::function<void(Target&)> lack;
    const char* says;
  };
  const Case cases[] = {
      {Type::f64, [](Target& t) { t.float64 = false; }, "float64 arithmetic (shaderFloat64)"},
      {Type::f16, [](Target& t) { t.float16 = false; }, "float16 arithmetic (shaderFloat16)"},
      {Type::i8, [](Target& t) { t.int8 = false; }, "int8 arithmetic (shaderInt8)"},
      {Type::u16, [](Target& t) { t.int16 = false; }, "uint16 arithmetic (shaderInt16)"},
      {Type::i64, [](Target& t) { t.int64 = false; }, "int64 arithmetic (shaderInt64)"},
      {Type::i8, [](Target& t) { t.storage8 = false; }, "8-bit storage (storageBuffer8BitAccess)"},
      {Type::f16, [](Target& t) { t.storage16 = false; }, "16-bit storage (storageBuffer16BitAccess)"},
  };
  for (const Case& c : cases) {
    Module m = kernel();
    Builder b(m);
    Id x = load(b, c.type);
    store(b, b.pure(Op::add, c.type, {x, x}, Loc{"here.cpp", 17}));
    std::string text = refusal(m, without(c.lack));
    EXPECT_NE(text.find(c.says), std::string::npos) << text;
    EXPECT_NE(text.find("kernel \"test\""), std::string::npos) << text;
  }
  // The line is that of the operation.
  Module m = kernel();
  Builder b(m);
  Id x = b.arg(Type::f64, kValues);
  b.pure(Op::add, Type::f64, {x, x}, Loc{"here.cpp", 17});
  std::string text = refusal(m, without([](Target& t) { t.float64 = false; }));
  EXPECT_EQ(text.find("here.cpp:17: "), 0u) << text;
}

TEST(Spirv, FunctionsOfFloat64AreFunctionsOfTheModule) {
  for (Op op : {Op::exp, Op::exp2, Op::log, Op::log2, Op::sin, Op::cos, Op::tan, Op::asin, Op::acos, Op::atan, Op::sinh,
                Op::cosh, Op::tanh, Op::pow, Op::atan2}) {
    Module m = kernel();
    Builder b(m);
    Id x = load(b, Type::f64), y = load(b, Type::f64, 1);
    auto call = [&](Id a) {
      return ir::info(op).arity == 1 ? b.pure(op, Type::f64, {a}) : b.pure(op, Type::f64, {a, y});
    };
    store(b, call(call(x)));  // used twice, held once
    const std::vector<std::uint32_t> words = emit(m, Target::everything());
    EXPECT_EQ(spirv::validate(words), "") << ir::info(op).name;
    const std::string text = spirv::disassemble(words);
    std::size_t functions = 0;
    for (std::size_t at = 0; (at = text.find("= OpFunction ", at)) != std::string::npos; ++at) ++functions;
    EXPECT_EQ(functions, 2u) << ir::info(op).name;
  }
}

TEST(Spirv, WhatVulkanLacksIsRefusedByName) {
  Module m = kernel();
  Builder b(m);
  MemoryRef ref{b.arg(Type::u64, kIn), thread(b), 1, 0, 2};
  store(b, b.load(Type::f32, 1, ref, Loc{"here.cpp", 9}));
  std::string text = refusal(m, Target::everything());
  EXPECT_NE(text.find("float32 aligned to 2 bytes"), std::string::npos) << text;
}

TEST(Spirv, BooleansInMemoryNeedOnlyStorage) {
  Module m = kernel();
  Builder b(m);
  store(b, b.pure(Op::bit_not, Type::b1, {load(b, Type::b1)}));
  std::vector<std::uint32_t> words = check(m, without([](Target& t) { t.int8 = false; }));
  EXPECT_FALSE(has_capability(words, spv::Capability::Int8));
  EXPECT_TRUE(has_capability(words, spv::Capability::StorageBuffer8BitAccess));
}

TEST(Spirv, AsksOnlyForWhatIsUsed) {
  Module m = kernel();
  Builder b(m);
  store(b, b.pure(Op::sqrt, Type::f32, {load(b, Type::f32)}));
  std::vector<std::uint32_t> words = check(m);
  for (spv::Capability c : {spv::Capability::Int8, spv::Capability::Int16, spv::Capability::Float16,
                            spv::Capability::Float64, spv::Capability::StorageBuffer8BitAccess,
                            spv::Capability::StorageBuffer16BitAccess, spv::Capability::AtomicFloat32AddEXT}) {
    EXPECT_FALSE(has_capability(words, c)) << int(c);
  }
  EXPECT_TRUE(has_capability(words, spv::Capability::RoundingModeRTE));
  EXPECT_TRUE(has_capability(words, spv::Capability::SignedZeroInfNanPreserve));
  Target floor;
  floor.int64 = true;
  words = check(m, floor);
  EXPECT_FALSE(has_capability(words, spv::Capability::RoundingModeRTE));
  EXPECT_FALSE(has_capability(words, spv::Capability::SignedZeroInfNanPreserve));
}

// ---- The module as a whole

TEST(Spirv, WorkgroupSizeIsCutToTheDevice) {
  Module m = kernel();
  m.block = 512;
  EXPECT_EQ(spirv::workgroup_size(m, Target::everything()), 512u);
  EXPECT_EQ(spirv::workgroup_size(m, Target{}), 128u);
  std::string text = spirv::disassemble(check(m, Target{}));
  EXPECT_NE(text.find("LocalSize 128 1 1"), std::string::npos) << text;
}

TEST(Spirv, EqualModulesGiveEqualWords) {
  auto build = [] {
    Module m = kernel();
    Builder b(m);
    for (Type t : kNumbers) store(b, b.pure(Op::div, t, {load(b, t), load(b, t, 1)}));
    return spirv::emit(m, Target::everything());
  };
  std::vector<std::uint32_t> first = build();
  for (int k = 0; k < 5; ++k) EXPECT_EQ(build(), first);
}

TEST(Spirv, KernelNames) {
  for (std::string name : {std::string(), std::string("abc"), std::string("abcd"), std::string("größe"),
                           std::string("a\0b", 3), std::string(500000, 'x')}) {
    Module m = kernel();
    m.name = name;
    EXPECT_EQ(spirv::validate(spirv::emit(m, Target::everything())), "");
  }
}

TEST(Spirv, ToolsRefuseWhatIsNoModule) {
  const std::vector<std::uint32_t> broken[] = {{}, {1, 2, 3}, {0x07230203, 0x00010500, 0, 10, 0, 0xffffffff}};
  for (const std::vector<std::uint32_t>& words : broken) {
    EXPECT_NE(spirv::validate(words), "");
    EXPECT_THROW(spirv::optimise(words), Error);
  }
  EXPECT_THROW(spirv::disassemble({1, 2, 3}), Error);
}

TEST(Spirv, OptimisedModulesStayValid) {
  Module m = kernel();
  Builder b(m);
  std::uint32_t sum = b.local(Type::f32), i = b.local(Type::i32);
  b.local_set(sum, b.constant_float(Type::f32, 0));
  b.local_set(i, b.constant_int(Type::i32, 0));
  b.open_loop();
  b.loop_body(b.pure(Op::lt, Type::b1, {b.local_get(i), b.arg(Type::i32, kValues)}));
  Id x = b.load(Type::f32, 1, place(Type::f32, b.arg(Type::u64, kIn), b.local_get(i)));
  b.local_set(sum, b.pure(Op::add, Type::f32, {b.local_get(sum), x}));
  b.loop_step();
  b.local_set(i, b.pure(Op::add, Type::i32, {b.local_get(i), b.constant_int(Type::i32, 1)}));
  b.close_loop();
  store(b, b.local_get(sum));
  std::vector<std::uint32_t> before = check(m), after = spirv::optimise(before);
  EXPECT_EQ(spirv::validate(after), "");
  EXPECT_EQ(count_ops(before)[spv::Op::OpVariable], 6);
  EXPECT_EQ(count_ops(after)[spv::Op::OpVariable], 4);  // the locals are gone
}

}  // namespace
}  // namespace weft
