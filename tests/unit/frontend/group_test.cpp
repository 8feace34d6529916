// Atomic operations, workgroups and subgroups below the language: the rules of the IR, the passes, the SPIR-V emitter,
// and the interpreter on kernels that the language refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <spirv/unified1/spirv.hpp11>

#include "../../../backends/reference/reference.h"
#include "../../../frontend/ir/builder.h"
#include "../../../frontend/passes/passes.h"
#include "../../../frontend/support/error.h"
#include "../../../spirv/emit.h"

namespace weft {
namespace {

using ir::Builder;
using ir::Id;
using ir::MemoryRef;
using ir::Module;
using ir::Op;
using ir::Type;
using spirv::Target;

constexpr Op kAtomics[] = {Op::atomic_add, Op::atomic_min, Op::atomic_max,      Op::atomic_and,
                           Op::atomic_or,  Op::atomic_xor, Op::atomic_exchange, Op::atomic_cas};
constexpr Type kNumbers[] = {Type::i8,  Type::i16, Type::i32, Type::i64, Type::u8, Type::u16,
                             Type::u32, Type::u64, Type::f16, Type::f32, Type::f64};

bool defined_on(Op atomic, Type t) {
  return ir::is_int(t) || (atomic != Op::atomic_and && atomic != Op::atomic_or && atomic != Op::atomic_xor);
}

/// A kernel with an array at byte 8 of its arguments.
struct Kernel {
  explicit Kernel(const std::function<void(Kernel&)>& body) : b(m) {
    m.name = "test";
    m.loc = {"here.cpp", 1};
    m.args_bytes = 24;
    m.block = 64;
    body(*this);
  }
  Id shared(Type t, std::uint32_t count, bool words = false) {
    m.arrays.push_back({t, count, words, {"here.cpp", 2}});
    return b.source(Op::kernel_array, Type::u64, m.arrays.size() - 1);
  }
  Id u32(std::uint32_t value) { return b.constant(Type::u32, value); }
  Id tid() { return b.thread_id(); }
  Id array() { return b.arg(Type::u64, 8); }
  static MemoryRef at(Type t, Id base, Id index) {
    const auto size = static_cast<std::uint32_t>(ir::bytes(t));
    return {base, index, size, 0, size};
  }
  Id load(Type t, Id base, Id index) { return b.load(t, 1, at(t, base, index)); }
  void store(Id value, Id base, Id index) {
    const Type t = b.module()[value].type;
    b.store(t, {&value, 1}, at(t, base, index), {"here.cpp", 42});
  }
  Id subgroup(Op op, Type type, std::initializer_list<Id> args, std::uint64_t imm = 0) {
    return b.subgroup(op, type, {args.begin(), args.size()}, imm, {"here.cpp", 7});
  }

  Module m;
  Builder b;
};

std::size_t count(const Module& m, Op op) {
  std::size_t n = 0;
  for (const ir::Region& region : m.regions)
    n += static_cast<std::size_t>(
        std::count_if(region.insts.begin(), region.insts.end(), [&](Id id) { return m[id].op == op; }));
  return n;
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

// ---- The IR's rules

TEST(GroupIr, BrokenRulesAreFound) {
  struct Broken {
    std::function<void(Kernel&)> body;
    const char* says;
  };
  const Broken broken[] = {
      {[](Kernel& k) {
         k.m.arrays.push_back({Type::f32, 0, false, {}});
       },
       "has no type or no elements"},
      {[](Kernel& k) {
         k.m.arrays.push_back({Type::f32, 4, true, {}});
       },
       "words in words"},
      {[](Kernel& k) { k.load(Type::i32, k.shared(Type::f32, 4), k.tid()); }, "an array of f32 as i32"},
      {[](Kernel& k) {
         Id base = k.shared(Type::f32, 4);
         k.b.load(Type::f32, 1, {base, k.tid(), 2, 0, 2});
       },
       "parts of scalars"},
      {[](Kernel& k) {
         k.b.atomic(Op::atomic_add, Type::u8, {k.b.constant(Type::u8, 1)},
                    Kernel::at(Type::u8, k.shared(Type::u8, 4), k.tid()));
       },
       "take those that lie in words"},
      {[](Kernel& k) {
         k.b.pure(Op::add, Type::u64, {k.shared(Type::f32, 4), k.array()});
       },
       "named by memory operations only"},
      {[](Kernel& k) { k.b.source(Op::kernel_array, Type::u64, 3); }, "no array 3 of the kernel"},
      {[](Kernel& k) { k.b.source(Op::local_id, Type::i32); }, "number is u32"},
      {[](Kernel& k) { k.subgroup(Op::subgroup_reduce, Type::u32, {k.tid()}, std::uint64_t(Op::sub)); },
       "no operation that reductions know"},
      {[](Kernel& k) {
         k.subgroup(Op::subgroup_reduce, Type::f32, {k.b.constant_float(Type::f32, 1)}, std::uint64_t(Op::bit_or));
       },
       "not defined on f32"},
      {[](Kernel& k) {
         k.subgroup(Op::subgroup_shuffle, Type::u32, {k.tid(), k.b.constant(Type::i32, 1)});
       },
       "the lane is i32"},
      {[](Kernel& k) {
         k.subgroup(Op::subgroup_broadcast, Type::f32, {k.tid(), k.tid()});
       },
       "its result is u32"},
      {[](Kernel& k) { k.subgroup(Op::subgroup_ballot, Type::u32, {k.tid()}); }, "it counts u32"},
      {[](Kernel& k) { k.subgroup(Op::subgroup_ballot, Type::u32, {k.b.constant(Type::b1, 1)}, 4); }, "four words"},
  };
  for (const Broken& b : broken) expect_contains(ir::first_violation(Kernel(b.body).m), b.says);
}

void everything(Kernel& k) {
  Id s = k.shared(Type::f32, 8), base = k.array();
  k.store(k.b.constant_float(Type::f32, 1), s, k.b.source(Op::local_id, Type::u32));
  k.b.barrier();
  Id x = k.load(Type::f32, s, k.u32(3));
  Id sum = k.subgroup(Op::subgroup_reduce, Type::f32, {x}, std::uint64_t(Op::add));
  k.store(sum, base, k.tid());
}

TEST(GroupIr, PrintsWhatIsShared) {
  const std::string text = ir::print(Kernel(everything).m);
  expect_contains(text, "  shared0: 8 f32\n");
  expect_contains(text, "store f32 shared0[local_id] stride 4 align 4 = 1f32");
  expect_contains(text, "\n  barrier\n");
  expect_contains(text, "subgroup_reduce.add f32 %0");
}

TEST(GroupIr, HashSeesSharedArraysAndCombinations) {
  const Module m = Kernel(everything).m;
  EXPECT_EQ(ir::hash(m), ir::hash(Kernel(everything).m));
  Module longer = m;
  longer.arrays[0].count = 9;
  EXPECT_NE(ir::hash(longer), ir::hash(m));
  Module other = m;
  for (ir::Inst& inst : other.insts)
    if (inst.op == Op::subgroup_reduce) inst.imm = std::uint64_t(Op::mul);
  EXPECT_NE(ir::hash(other), ir::hash(m));
}

TEST(GroupIr, PassesKeepWhatThreadsDoTogether) {
  const Module m =
      Kernel([](Kernel& k) {
        everything(k);
        const std::uint32_t flag = k.b.local(Type::i32);
        k.b.local_set(flag, k.b.constant(Type::i32, 0));
        k.b.open_loop();
        k.b.loop_body(k.b.pure(Op::lt, Type::b1, {k.b.local_get(flag), k.b.constant(Type::i32, 3)}));
        k.b.barrier();
        for (Op op : kAtomics) {
          const Id one = k.u32(1);
          if (op == Op::atomic_cas)
            k.b.atomic(op, Type::u32, {one, k.u32(2)}, Kernel::at(Type::u32, k.array(), k.tid()));
          else
            k.b.atomic(op, Type::u32, {one}, Kernel::at(Type::u32, k.array(), k.tid()));
        }
        // Nothing needs this result.
        k.subgroup(Op::subgroup_inclusive, Type::u32, {k.tid()}, std::uint64_t(Op::add));
        k.b.local_set(flag, k.b.pure(Op::add, Type::i32, {k.b.local_get(flag), k.b.constant(Type::i32, 1)}));
        k.b.close_loop();
      }).m;
  const Module clean = ir::forward(m), normal = ir::promote(ir::normalise(clean));
  for (const Module* made : {&clean, &normal}) {
    EXPECT_EQ(ir::first_violation(*made), "");
    EXPECT_EQ(count(*made, Op::barrier), 2u);
    EXPECT_EQ(count(*made, Op::subgroup_inclusive), 0u);
    EXPECT_EQ(count(*made, Op::subgroup_reduce), 1u);
    for (Op op : kAtomics) EXPECT_EQ(count(*made, op), 1u);
    EXPECT_EQ(made->arrays.size(), 1u);
    ir::check_uniform(*made);
  }
}

TEST(GroupIr, CarriedValuesAndResultsAreFollowed) {
  auto loop = [](bool differs) {
    return Kernel([=](Kernel& k) {
             const Id start = differs ? k.tid() : k.u32(5);
             k.b.open_loop({&start, 1});
             k.b.loop_body(k.b.pure(Op::lt, Type::b1, {k.b.loop_param(0), k.u32(9)}));
             k.b.barrier({"here.cpp", 9});
             const Id next = k.b.pure(Op::add, Type::u32, {k.b.loop_param(0), k.u32(1)});
             k.b.yield({&next, 1});
             k.b.close_loop();
           })
        .m;
  };
  ir::check_uniform(loop(false));
  expect_contains(error_of([&] { ir::check_uniform(loop(true)); }), "here.cpp:9: ");
}

// ---- SPIR-V

std::map<spv::Op, int> check(const Module& m, const Target& target = Target::everything()) {
  EXPECT_EQ(ir::first_violation(m), "");
  const std::vector<std::uint32_t> words = spirv::emit(m, target);
  EXPECT_EQ(spirv::validate(words), "") << ir::print(m) << spirv::disassemble(words);
  std::map<spv::Op, int> found;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> spv::WordCountShift)
    ++found[spv::Op(words[at] & spv::OpCodeMask)];
  return found;
}

Module atomic_kernel(Op op, Type t, bool in_shared) {
  return Kernel([=](Kernel& k) {
           const Id base = in_shared ? k.shared(t, 16, ir::bits(t) < 32) : k.array();
           const MemoryRef at = Kernel::at(t, base, k.b.pure(Op::convert, Type::i32, {k.tid()}));
           Id before = op == Op::atomic_cas
                           ? k.b.atomic(op, t, {k.load(t, k.array(), k.tid()), k.load(t, k.array(), k.u32(0))}, at)
                           : k.b.atomic(op, t, {k.load(t, k.array(), k.tid())}, at);
           k.store(before, k.array(), k.tid());
         })
      .m;
}

TEST(GroupSpirv, EveryAtomicOperationValidatesWithAndWithoutNativeForms) {
  for (Op op : kAtomics)
    for (Type t : kNumbers)
      for (bool in_shared : {false, true}) {
        if (!defined_on(op, t)) continue;
        SCOPED_TRACE(std::string(ir::info(op).name) + " " + ir::name(t) + (in_shared ? " shared" : ""));
        const Module m = atomic_kernel(op, t, in_shared);
        const auto native = check(m);
        Target plain = Target::everything();
        plain.float32_atomic_add = plain.float64_atomic_add = false;
        plain.float32_shared_atomic_add = plain.float64_shared_atomic_add = false;
        plain.int8 = plain.int16 = false;
        const auto loops = check(m, plain);
        auto times = [](const std::map<spv::Op, int>& found, spv::Op which) {
          const auto it = found.find(which);
          return it == found.end() ? 0 : it->second;
        };
        const bool looped = ir::bits(t) < 32 || (ir::is_float(t) && op != Op::atomic_exchange && op != Op::atomic_cas);
        const bool adds = op == Op::atomic_add && ir::is_float(t) && ir::bits(t) >= 32;
        EXPECT_EQ(times(loops, spv::Op::OpLoopMerge), looped ? 1 : 0);
        EXPECT_EQ(times(native, spv::Op::OpLoopMerge), looped && !adds ? 1 : 0);
        EXPECT_EQ(times(native, spv::Op::OpAtomicFAddEXT), adds ? 1 : 0);
      }
}

TEST(GroupSpirv, WideAtomicOperationsAreRefusedByName) {
  Target t = Target::everything();
  t.int64_atomics = t.int64_shared_atomics = t.float64_atomic_add = false;
  for (Type wide : {Type::i64, Type::f64}) {
    expect_contains(error_of([&] { spirv::emit(atomic_kernel(Op::atomic_add, wide, false), t); }),
                    "64-bit atomic operations (shaderBufferInt64Atomics)");
    expect_contains(error_of([&] { spirv::emit(atomic_kernel(Op::atomic_max, wide, true), t); }),
                    "on shared memory (shaderSharedInt64Atomics)");
  }
}

TEST(GroupSpirv, BarriersAndSharedMemoryValidateOnEveryType) {
  for (Type t : kNumbers) {
    const Module m = Kernel([&](Kernel& k) {
                       Id s = k.shared(t, 96), wide = k.load(t, k.array(), k.tid());
                       const Id four[] = {wide, wide, wide, wide};
                       MemoryRef at = Kernel::at(t, s, k.b.source(Op::local_id, Type::u32));
                       at.stride *= 6;
                       at.offset = at.stride / 3;
                       k.b.store(t, four, at);
                       k.b.barrier();
                       Id back = k.b.load(t, 4, at);
                       k.store(k.b.result(back, 2, t), k.array(), k.tid());
                     }).m;
    const auto found = check(m);
    EXPECT_EQ(found.at(spv::Op::OpControlBarrier), 1);
  }
}

TEST(GroupSpirv, SubgroupOperationsValidateAndAreRefusedByName) {
  for (Op combine : {Op::add, Op::mul, Op::min, Op::max, Op::bit_and, Op::bit_or, Op::bit_xor})
    for (Type t : kNumbers) {
      if (ir::is_float(t) && (combine == Op::bit_and || combine == Op::bit_or || combine == Op::bit_xor)) continue;
      const Module m = Kernel([&](Kernel& k) {
                         const Id x = k.load(t, k.array(), k.tid());
                         Id sum = x;
                         for (Op op : {Op::subgroup_reduce, Op::subgroup_inclusive, Op::subgroup_exclusive})
                           sum = k.subgroup(op, t, {sum}, std::uint64_t(combine));
                         sum = k.subgroup(Op::subgroup_broadcast, t, {sum, k.u32(5)});
                         sum = k.subgroup(Op::subgroup_shuffle, t, {sum, k.b.source(Op::subgroup_lane, Type::u32)});
                         k.store(sum, k.array(), k.tid());
                       }).m;
      check(m);
      Target narrow = Target::everything();
      narrow.subgroup_narrow_wide = false;
      if (ir::bits(t) != 32 && t != Type::f64)
        expect_contains(error_of([&] { spirv::emit(m, narrow); }), "(shaderSubgroupExtendedTypes)");
      else
        check(m, narrow);
    }
  auto refused = [](Op op, void (*lack)(Target&), const char* says) {
    const Module m = Kernel([&](Kernel& k) {
                       const Id b = k.b.pure(Op::lt, Type::b1, {k.tid(), k.u32(9)});
                       Id got = op == Op::subgroup_ballot   ? k.subgroup(op, Type::u32, {b}, 3)
                                : op == Op::subgroup_reduce ? k.subgroup(op, Type::b1, {b}, std::uint64_t(Op::bit_or))
                                : op == Op::subgroup_shuffle
                                    ? k.subgroup(op, Type::u32, {k.tid(), k.tid()})
                                    : k.subgroup(op, Type::u32, {k.tid()}, std::uint64_t(Op::add));
                       if (k.m[got].type == Type::b1) got = k.b.pure(Op::convert, Type::u32, {got});
                       k.store(got, k.array(), k.tid());
                     }).m;
    check(m);
    Target t = Target::everything();
    lack(t);
    const std::string text = error_of([&] { spirv::emit(m, t); });
    expect_contains(text, says);
    expect_contains(text, "here.cpp:7: ");
  };
  refused(
      Op::subgroup_ballot, [](Target& t) { t.subgroup_ballot = false; }, "VK_SUBGROUP_FEATURE_BALLOT_BIT");
  refused(
      Op::subgroup_reduce, [](Target& t) { t.subgroup_vote = false; }, "VK_SUBGROUP_FEATURE_VOTE_BIT");
  refused(
      Op::subgroup_inclusive, [](Target& t) { t.subgroup_arithmetic = false; }, "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT");
  refused(
      Op::subgroup_shuffle, [](Target& t) { t.subgroup_shuffle = false; }, "VK_SUBGROUP_FEATURE_SHUFFLE_BIT");
  refused(
      Op::subgroup_shuffle, [](Target& t) { t.subgroup_size = 0; }, "whole subgroups (computeFullSubgroups)");
}

TEST(GroupSpirv, SubgroupOperationsOfSomeSubgroupsNeedThatTheirThreadsMeetAgain) {
  const auto under = [](Op source) {
    return Kernel([&](Kernel& k) {
             const Id who = source == Op::arg ? k.b.arg(Type::u32, 0) : k.b.source(source, Type::u32);
             // Threads that diverge for other work hold up nothing.
             k.b.open_if(k.b.pure(Op::lt, Type::b1, {k.tid(), k.u32(3)}));
             k.store(k.u32(1), k.array(), k.tid());
             k.b.close_if();
             k.b.open_if(k.b.pure(Op::lt, Type::b1, {who, k.u32(1)}));
             k.store(k.subgroup(Op::subgroup_inclusive, Type::u32, {k.tid()}, std::uint64_t(Op::add)), k.array(),
                     k.tid());
             k.b.close_if();
           })
        .m;
  };
  Target parted = Target::everything();
  parted.subgroup_uniform_flow = parted.subgroups_meet_again = false;
  check(under(Op::arg), parted);
  const Module one = under(Op::subgroup_id);
  check(one);
  Target vector = parted;
  vector.subgroups_meet_again = true;
  check(one, vector);
  const std::string text = error_of([&] { spirv::emit(one, parted); });
  expect_contains(text, "here.cpp:7: ");
  expect_contains(text, "the target lacks operations of subgroups under conditions that differ in the workgroup");
  expect_contains(text, "(shaderSubgroupUniformControlFlow)");
}

TEST(GroupSpirv, FourWordsOfABallotAreOneBallot) {
  const Module m = Kernel([](Kernel& k) {
                     const Id b = k.b.pure(Op::lt, Type::b1, {k.tid(), k.u32(9)});
                     for (std::uint32_t w = 0; w < 4; ++w)
                       k.store(k.subgroup(Op::subgroup_ballot, Type::u32, {b}, w), k.array(), k.u32(w));
                   }).m;
  EXPECT_EQ(check(m).at(spv::Op::OpGroupNonUniformBallot), 1);
}

TEST(GroupSpirv, SubgroupsMeetAtBarriersOfTheirOwn) {
  const Module m = Kernel([](Kernel& k) {
                     k.b.subgroup_barrier({"here.cpp", 7});
                     k.store(k.u32(1), k.array(), k.tid());
                   }).m;
  EXPECT_EQ(check(m).at(spv::Op::OpControlBarrier), 1);
  EXPECT_TRUE(ir::group_use(m).subgroups);
  Target in_step = Target::everything();
  in_step.lanes_in_step = true;
  EXPECT_EQ(check(m, in_step).at(spv::Op::OpMemoryBarrier), 1);
  Target narrow = Target::everything();
  narrow.subgroup_size = 0;
  expect_contains(error_of([&] { spirv::emit(m, narrow); }), "here.cpp:7: ");
}

TEST(GroupSpirv, WorkgroupsBeyondTheDeviceAreRefused) {
  Kernel k(everything);
  k.m.block = 4096;
  expect_contains(error_of([&] { spirv::emit(k.m, Target::everything()); }),
                  "the kernel's workgroups have 4096 threads");
}

// ---- The interpreter

std::string run(const Module& m, std::uint32_t threads) {
  EXPECT_EQ(ir::first_violation(m), "");
  const auto device = backend::open_reference();
  const auto stream = device->create_stream();
  const backend::Allocation memory = device->allocate(4096, backend::MemoryKind::device);
  std::byte args[24] = {};
  std::memcpy(args, &threads, 4);
  std::memcpy(args + 8, &memory.address, 8);
  return error_of([&] { stream->launch(*device->compile(m, {}), {}, args, {}); });
}

TEST(GroupReference, ThreadsThatDoNotMeetAreNamed) {
  const Module ends = Kernel([](Kernel& k) {
                        k.b.open_if(k.b.pure(Op::lt, Type::b1, {k.tid(), k.u32(60)}));
                        k.b.barrier({"here.cpp", 33});
                        k.b.close_if();
                      }).m;
  const std::string text = run(ends, 64);
  expect_contains(text, "thread 0 waits here for thread 60, which has ended");
  expect_contains(text, "here.cpp:33: ");
  expect_contains(text, "kernel \"test\"");
  const Module parts =
      Kernel([](Kernel& k) {
        k.b.open_if(k.b.pure(Op::lt, Type::b1, {k.tid(), k.u32(9)}));
        k.store(k.subgroup(Op::subgroup_reduce, Type::u32, {k.tid()}, std::uint64_t(Op::add)), k.array(), k.tid());
        k.b.open_else();
        k.b.barrier({"here.cpp", 44});
        k.b.close_if();
      }).m;
  expect_contains(run(parts, 64), "thread 0 waits here for thread 9, which waits elsewhere");
}

TEST(GroupReference, PartsOfWorkgroupsAreRefused) {
  expect_contains(run(Kernel(everything).m, 65), "65 threads are no whole number of workgroups of 64");
}

}  // namespace
}  // namespace weft
