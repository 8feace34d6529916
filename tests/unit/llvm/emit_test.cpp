// The text that the emitter writes: which accesses, branches and loops it chooses, and what it refuses.
#include "../../../llvm/emit.h"

#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>

#include "../../../frontend/ir/builder.h"

namespace weft {
namespace {

llvm::Target lanes(std::uint32_t count) {
  llvm::Target target;
  target.lanes = count;
  return target;
}

template <class K>
llvm::Code code_of(const K& kernel, bool by_rows = true) {
  return llvm::emit(kernel.trace(), lanes(8), by_rows);
}

bool has(const llvm::Code& code, const std::string& part) { return code.text.find(part) != std::string::npos; }

int count(const llvm::Code& code, const std::string& part) {
  int found = 0;
  for (std::size_t at = code.text.find(part); at != std::string::npos; at = code.text.find(part, at + 1)) ++found;
  return found;
}

TEST(LlvmEmit, NeighboursInMemoryAreOneVector) {
  const llvm::Code code = code_of(kernel("copy", [](Arr<const float> x, Arr<float> y) {
    Int i = tid();
    y[i] = x[i + 3];
  }));
  EXPECT_TRUE(has(code, "load <8 x float>")) << code.text;
  EXPECT_TRUE(has(code, "store <8 x float>")) << code.text;
  EXPECT_TRUE(has(code, "llvm.masked.load.v8f32")) << "the last vector: " << code.text;
  EXPECT_FALSE(has(code, "gather")) << code.text;
  EXPECT_FALSE(has(code, "scatter")) << code.text;
  EXPECT_EQ(code.split, llvm::Split::threads);
  EXPECT_EQ(code.arena_bytes, 0u);
}

TEST(LlvmEmit, VectorsOfThreeLieLaneAfterLane) {
  const llvm::Code code = code_of(kernel("scale", [](Arr<vec3> x) { x[tid()] *= 2.0f; }));
  EXPECT_TRUE(has(code, "load <24 x float>")) << code.text;
  EXPECT_TRUE(has(code, "store <24 x float>")) << code.text;
  EXPECT_FALSE(has(code, "gather")) << code.text;
}

TEST(LlvmEmit, PartsOfElementsAreWholeVectors) {
  // Three of four numbers are read, two written, one after another: four vectors hold them all.
  const llvm::Code code = code_of(kernel("parts", [](Arr<vec4> x) {
    Int i = tid();
    x[i].w = x[i].x + x[i].y;
    x[i].x = x[i].w;
  }));
  EXPECT_FALSE(has(code, "gather")) << code.text;
  EXPECT_FALSE(has(code, "scatter")) << code.text;
  EXPECT_TRUE(has(code, "llvm.masked.store.v8f32")) << "the other parts stay: " << code.text;

  // Elements of many numbers would need too many shuffles.
  const llvm::Code large = code_of(kernel("large", [](Arr<float> x) { x[100 * tid()] = 1; }));
  EXPECT_TRUE(has(large, "scatter")) << large.text;
}

TEST(LlvmEmit, ElementsOfFourScalarsAreTransposed) {
  const auto k = kernel("scale", [](Arr<const mat44> m, Arr<vec4> x) { x[tid()] = m[tid()] * x[tid()]; });
  const llvm::Code pieces = code_of(k);
  EXPECT_EQ(count(pieces, "load <4 x float>"), 8 * 5) << pieces.text;
  EXPECT_EQ(count(pieces, "store <4 x float>"), 8) << pieces.text;
  llvm::Target target = lanes(16);
  target.mask_registers = true;
  const llvm::Code groups = llvm::emit(kernel("scale", [](Arr<vec4> x) { x[tid()] *= 2.0f; }).trace(), target);
  EXPECT_EQ(count(groups, " = load <16 x float>"), 4) << groups.text;
  EXPECT_EQ(count(groups, "@llvm.masked.load.v16f32.p0(ptr %"), 4) << "at the end: " << groups.text;
  EXPECT_FALSE(has(groups, "<4 x float>")) << groups.text;
}

TEST(LlvmEmit, ElementsAreKeptWhileAnotherArrayIsWritten) {
  const auto k = [](bool writes) {
    return code_of(kernel("turns", [writes](Arr<vec3> a, Arr<vec3> b) {
      Int i = tid();
      a[i] += vec3(1, 2, 3);
      if (writes) b[i] = a[i] * 2.0f;
      a[i] *= 3.0f;
    }));
  };
  EXPECT_TRUE(has(k(true), "icmp ugt i64")) << k(true).text;
  EXPECT_TRUE(has(k(true), "phi <8 x float>")) << k(true).text;
  EXPECT_FALSE(has(k(false), "icmp ugt i64")) << "nothing is between: " << k(false).text;
}

TEST(LlvmEmit, WhatIsAnywhereIsGathered) {
  const llvm::Code code = code_of(kernel("pick", [](Arr<const int> from, Arr<const float> x, Arr<float> y) {
    Int i = tid();
    y[from[i]] = x[from[i]];
  }));
  EXPECT_TRUE(has(code, "call <8 x float> @llvm.masked.gather.v8f32.v8p0")) << code.text;
  EXPECT_TRUE(has(code, "call void @llvm.masked.scatter.v8f32.v8p0")) << code.text;
}

TEST(LlvmEmit, NeighbouringWordsOfALaneAreOneLoad) {
  const auto pick = [](Arr<const int> from, Arr<const vec4> x, Arr<const vec3> y, Arr<float> z) {
    Int i = tid();
    Vec4 v = x[from[i]];
    z[i] = v.x + v.w + Vec3(y[from[i]]).z;
  };
  const llvm::Code code = code_of(kernel("pick", pick));
  EXPECT_EQ(count(code, "load <4 x float>"), 2 * 8) << "full vectors and the last one: " << code.text;
  EXPECT_EQ(count(code, "call <4 x float> @llvm.masked.load"), 2 * 8) << code.text;
  EXPECT_FALSE(has(code, "gather")) << code.text;
  EXPECT_EQ(count(code, "store volatile <4 x i64>"), 2 * 2 * 2) << "places in halves of 32 bytes: " << code.text;
  llvm::Target target = lanes(8);
  target.masked_memory = false;
  const llvm::Code without = llvm::emit(kernel("pick", pick).trace(), target);
  EXPECT_EQ(count(without, "load <3 x float>"), 2 * 8) << without.text;
}

TEST(LlvmEmit, NeighbouringWordsOfALaneAreOneStore) {
  const auto put = [](Arr<const int> to, Arr<const float> x, Arr<vec4> y, Arr<vec3> z) {
    Int i = tid();
    const Float v = x[i];
    y[to[i]] = Vec4(v, v + 1.f, v + 2.f, v + 3.f);
    z[to[i]] = Vec3(v, v + 1.f, v + 2.f);
  };
  const llvm::Code code = code_of(kernel("put", put));
  EXPECT_EQ(count(code, "store <4 x float>"), 2 * 8) << "full vectors and the last one: " << code.text;
  EXPECT_EQ(count(code, "store <3 x float>"), 2 * 8) << code.text;
  EXPECT_FALSE(has(code, "scatter")) << code.text;
  EXPECT_EQ(count(code, "alloca"), 1) << "for lanes that rest: " << code.text;
}

TEST(LlvmEmit, WhatAllLanesReadIsOneScalar) {
  const llvm::Code code = code_of(kernel("fill", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[5]; }));
  EXPECT_TRUE(has(code, "load float, ptr")) << code.text;
  EXPECT_FALSE(has(code, "gather")) << code.text;
}

TEST(LlvmEmit, AWorkgroupOfOneThreadIsScalar) {
  const llvm::Code code = code_of(kernel("counters",
                                         [](Arr<const unsigned> x, Arr<unsigned> y, Arr<unsigned> last) {
                                           auto counters = shared<unsigned>(16);
                                           auto order = private_array<unsigned>(16);
                                           Int g = workgroup_id();
                                           for (auto i : range(g * 100, (g + 1) * 100)) {
                                             Int k = Int(x[i] & 15u);
                                             order[k] = atomic_exchange(last[0], counters[k]);
                                             counters[k] += 1u;
                                           }
                                           y[g] = counters[x[g]] + order[order[0]];
                                         },
                                         {.block = 1}));
  EXPECT_TRUE(has(code, "load i32, ptr")) << code.text;
  EXPECT_TRUE(has(code, "store i32")) << code.text;
  for (const char* vectors : {"load <", "store <", "gather", "scatter", "masked"})
    EXPECT_FALSE(has(code, vectors)) << code.text;
}

TEST(LlvmEmit, WordsOfAnElementThatAllLanesWantAreReadOnce) {
  const llvm::Code code = code_of(kernel("matrices", [](Arr<const int> at, Arr<const mat44> m, Arr<vec4> x) {
    const Int i = tid();
    x[i] = m[at[i]] * Vec4(1, 2, 3, 4);
  }));
  // The vectors that fill all lanes, and the last one.
  EXPECT_EQ(count(code, "load <4 x float>"), 2 * 8 * 4) << code.text;
  EXPECT_EQ(count(code, "load float, ptr"), 2 * 16) << code.text;
  EXPECT_FALSE(has(code, "gather")) << code.text;
  const llvm::Code small = code_of(kernel("vectors", [](Arr<const int> at, Arr<const vec4> v, Arr<vec4> x) {
    const Int i = tid();
    x[i] = v[at[i]];
  }));
  EXPECT_FALSE(has(small, "load float, ptr")) << small.text;
}

// LLVM takes time by the square of the accesses in one block.
TEST(LlvmEmit, LongBlocksAreParted) {
  const auto code_for = [](int accesses) {
    return code_of(kernel("long", [accesses](Arr<float> x) {
      Int i = tid();
      for (int k = 0; k < accesses; ++k) x[i + 1000 * k] += 1.f;
    }));
  };
  const auto longest_block = [](const llvm::Code& code) {
    std::istringstream lines(code.text);
    int longest = 0, here = 0;
    for (std::string line; std::getline(lines, line); longest = std::max(longest, here))
      here = line.ends_with(':') ? 0 : here + 1;
    return longest;
  };
  const llvm::Code few = code_for(3), many = code_for(1000);
  EXPECT_FALSE(has(few, "never"));
  EXPECT_GT(count(many, "label %never"), 5);
  EXPECT_EQ(count(many, "\nnever:\n"), 1);
  EXPECT_LT(longest_block(many), 600);
}

// Masked stores are slow there, and so are truth values that cross from block to block.
TEST(LlvmEmit, WithoutMaskRegistersWholeVectorsHaveNoMasksAndTruthValuesAreWide) {
  llvm::Target avx2 = lanes(8), avx512 = lanes(8);
  avx512.mask_registers = true;
  const auto clamp = kernel("clamp", [](Arr<float> x) {
    Int i = tid();
    If (x[i] > 1.f) {
      x[i] = 1.f;
    }
  });
  EXPECT_TRUE(has(llvm::emit(clamp.trace(), avx2), "store <8 x float>"));
  EXPECT_FALSE(has(llvm::emit(clamp.trace(), avx512), "store <8 x float>"));

  const auto count_down = kernel("count down", [](Arr<float> x, Int n) {
    Float from = x[tid()];
    Int steps = 0;
    While (0.f < from && steps < n) {
      from -= 1.f;
      steps += 1;
    }
    x[tid()] = from;
  });
  EXPECT_FALSE(has(llvm::emit(count_down.trace(), avx2), "phi <8 x i1>"));
  EXPECT_TRUE(has(llvm::emit(count_down.trace(), avx512), "phi <8 x i1>"));
}

TEST(LlvmEmit, AgreedBranchesAndLoopsAreScalar) {
  const llvm::Code agreed = code_of(kernel("agreed", [](Arr<float> x, Int n) {
    Int i = tid();
    Float sum = 0;
    for (auto k : range(n)) sum += x[k];
    If (n > 3) {
      x[i] = sum;
    }
  }));
  EXPECT_FALSE(has(agreed, "bitcast <8 x i1>")) << agreed.text;
  const llvm::Code parted = code_of(kernel("parted", [](Arr<float> x, Arr<const int> n) {
    Int i = tid();
    Float sum = 0;
    for (auto k : range(n[i])) sum += x[k];
    If (sum > 3.0f) {
      x[i] = sum;
    }
  }));
  EXPECT_TRUE(has(parted, "bitcast <8 x i1>")) << parted.text;
  // The counter agrees in all lanes that still run.
  EXPECT_TRUE(std::regex_search(parted.text, std::regex("phi i32 "))) << parted.text;
  EXPECT_TRUE(has(parted, "load float, ptr")) << parted.text;
}

TEST(LlvmEmit, MasksOfLoopsAreWordsWithoutMaskRegisters) {
  const auto k = kernel("count", [](Arr<int> x) {
    Int i = tid(), n = 0;
    While (n < x[i]) n += 1;
    x[i] = n * 2;
  });
  llvm::Target target = lanes(8);
  const std::string words = llvm::emit(k.trace(), target).text;
  target.mask_registers = true;
  const std::string bits = llvm::emit(k.trace(), target).text;
  EXPECT_FALSE(std::regex_search(words, std::regex("phi <8 x i1>"))) << words;
  EXPECT_TRUE(std::regex_search(bits, std::regex("phi <8 x i1>"))) << bits;
}

TEST(LlvmEmit, RowsAreTakenUnlessTheyAreNotWanted) {
  const auto k = kernel("sum", [](Arr<const float> a, Arr<const float> b, Arr<float, 2> c) {
    auto [i, j] = tid<2>();
    c(i, j) = a[i] + b[j];
  });
  const llvm::Code rows = code_of(k), threads = code_of(k, false);
  EXPECT_EQ(rows.split, llvm::Split::rows);
  EXPECT_EQ(threads.split, llvm::Split::threads);
  EXPECT_FALSE(has(rows, "mul <8 x i64>")) << "the row is not computed from the number: " << rows.text;
  EXPECT_FALSE(has(rows, "gather")) << rows.text;
  EXPECT_TRUE(has(threads, "mul <8 x i64>")) << threads.text;
}

TEST(LlvmEmit, LargeKernelsAreWrittenOnce) {
  const auto sum_of = [](int terms) {
    return code_of(kernel("sum",
                          [terms](Arr<float> x) {
                            Int i = tid();
                            Float sum = 0;
                            for (int k = 0; k < terms; ++k) sum += x[i] * float(k + 2);
                            x[i] = sum;
                          },
                          {.contract = false}));
  };
  EXPECT_EQ(count(sum_of(10), "fmul <8 x float>"), 20);
  EXPECT_EQ(count(sum_of(100), "fmul <8 x float>"), 100);
}

TEST(LlvmEmit, PrivateArraysHaveARowOfLanes) {
  const auto k = kernel("stack", [](Arr<int> x) {
    Int i = tid();
    auto own = private_array<int>(10);
    for (auto j : range(10)) own[j] = i + j;
    x[i] = own[x[i]];
  });
  const llvm::Code code = code_of(k);
  EXPECT_EQ(code.arena_bytes, 10u * 8 * 4);
  EXPECT_TRUE(has(code, "store <8 x i32>")) << code.text;
  EXPECT_TRUE(has(code, "gather")) << code.text;
  EXPECT_EQ(llvm::emit(k.trace(), lanes(16)).arena_bytes, 10u * 16 * 4);
}

TEST(LlvmEmit, BarriersPartAWorkgroupIntoRuns) {
  const auto k = kernel("turn",
                        [](Arr<int> x) {
                          Int i = tid(), l = local_id(), before = x[i];
                          auto s = shared<int>(64);
                          s[l] = before;
                          barrier();
                          x[i] = s[63 - l] + before;
                        },
                        {.block = 64});
  const llvm::Code code = code_of(k);
  EXPECT_EQ(code.split, llvm::Split::groups);
  // Shared memory, and `before` of each thread.
  EXPECT_EQ(code.arena_bytes, 64u * 4 + 64 * 4);
  EXPECT_FALSE(has(code, "masked.load")) << "whole workgroups of whole vectors need no mask: " << code.text;
}

TEST(LlvmEmit, SumsAtOnePlaceAreMadeFirst) {
  const auto gather = [](bool asks) {
    return code_of(kernel("count", [asks](Arr<int> sum, Arr<int> x) {
      Int i = tid();
      Int before = atomic_add(sum[0], x[i]);
      if (asks) x[i] = before;
    }));
  };
  EXPECT_FALSE(has(gather(false), "llvm.cttz")) << gather(false).text;
  // Lanes that ask for the sum before get it from one operation, too.
  EXPECT_FALSE(has(gather(true), "llvm.cttz")) << gather(true).text;
}

/// What the text names beside its own functions.
TEST(LlvmEmit, NamesIntrinsicsAlone) {
  const auto k = kernel("many", [](Arr<half> a, Arr<float> b, Arr<double> c, Arr<std::int64_t> d, Arr<std::uint8_t> e) {
    Int i = tid();
    a[i] = a[i] * half(3) + Half(c[i]);
    b[i] = fma(b[i], 2.0f, Float(d[i])) % 3.0f;
    c[i] = sin(c[i]) + floor(sqrt(c[i]));
    d[i] = d[i] / 7 + d[i] % Int64(b[i]);
    e[i] = e[i] / UInt8(d[i]);
    atomic_max(b[0], b[i]);
  });
  for (const bool modern : {true, false}) {
    llvm::Target target = lanes(4);
    target.fused = target.half_conversions = modern;
    const std::string text = llvm::emit(k.trace(), target).text;
    const std::regex name("declare [^@]*@([^(]*)\\(");
    int declared = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at, ++declared)
      EXPECT_EQ((*at)[1].str().find("llvm."), 0u) << (*at)[0];
    EXPECT_GT(declared, 5);
    EXPECT_EQ(text.find("llvm.fma") != std::string::npos, modern);
    EXPECT_EQ(text.find(" half ") != std::string::npos || text.find("x half>") != std::string::npos, modern);
  }
}

TEST(LlvmEmit, RefusesHardwareRayQueriesByName) {
  ir::Module m;
  m.name = "trace";
  ir::Builder b(m);
  const ir::Id structure = b.constant(ir::Type::u64, 1), zero = b.constant_float(ir::Type::f32, 0);
  const ir::Id operands[] = {structure, structure, zero, zero, zero, zero, zero, zero, zero};
  const ir::Id hit = b.trace_ray(false, operands, {"rays.cpp", 12});
  const ir::Id values[] = {b.result(hit, 0, ir::Type::u32)};
  b.store(ir::Type::u32, values, {structure, b.thread_id(), 4, 0, 4});
  try {
    llvm::emit(m, lanes(8));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    EXPECT_EQ(e.kernel(), "trace");
    EXPECT_EQ(e.loc().line, 12);
    EXPECT_NE(e.message().find("ray queries"), std::string::npos);
  }
}

TEST(LlvmEmit, IsTheSameEachTime) {
  const auto k = kernel("k", [](Arr<float> x) { x[tid()] = exp(x[tid()]) + 1.0f; });
  EXPECT_EQ(code_of(k).text, code_of(k).text);
}

}  // namespace
}  // namespace weft
