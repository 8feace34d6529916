// Which instructions and how many lanes are chosen for processors that are not there.
#include "../../../backends/native/code/processor.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "../../../frontend/support/error.h"
#include "../environment.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace weft::backend::native {
namespace {

using test::Variable;

const std::string kV2 = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+sahf";
const std::string kV3 = kV2 + ",+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave";
const std::string kV4 = kV3 + ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl";

Processor choose(const std::string& features, const std::string& level = {}, std::uint32_t lanes = 0,
                 Machine machine = Machine::x86_64) {
  return choose_processor({"some", features}, {{}, level, lanes}, machine);
}

TEST(NativeProcessor, LanesAreThoseOfItsVectors) {
  struct Row {
    std::string features;
    std::uint32_t lanes;
    bool masked_memory, mask_registers, fused, half_conversions;
  };
  const Row rows[] = {{kV2, 4, false, false, false, false},
                      {kV2 + ",+avx,+f16c", 4, false, false, false, true},
                      {kV3, 8, true, false, true, true},
                      {kV4, 16, true, true, true, true},
                      {kV3 + ",+avx512f,+avx512cd", 8, true, false, true, true},
                      {kV4 + ",-avx512vl", 8, true, false, true, true},
                      {kV4 + ",-avx2", 4, false, false, true, true}};
  for (const Row& row : rows) {
    const llvm::Target target = choose(row.features).target;
    EXPECT_EQ(target.lanes, row.lanes) << row.features;
    EXPECT_EQ(target.masked_memory, row.masked_memory) << row.features;
    EXPECT_EQ(target.mask_registers, row.mask_registers) << row.features;
    EXPECT_EQ(target.fused, row.fused) << row.features;
    EXPECT_EQ(target.half_conversions, row.half_conversions) << row.features;
  }
  const llvm::Target arm = choose("+neon,+fp-armv8", {}, 0, Machine::aarch64).target;
  EXPECT_EQ(arm.lanes, 4u);
  EXPECT_TRUE(arm.fused && arm.half_conversions && !arm.masked_memory && !arm.mask_registers);
}

TEST(NativeProcessor, Float16ArithmeticIsNotTaken) {
  EXPECT_EQ(choose(kV4 + ",+avx512fp16").features, kV4 + ",+avx512fp16,-avx512fp16");
  EXPECT_EQ(choose("+neon", {}, 0, Machine::aarch64).features, "+neon");
}

TEST(NativeProcessor, LevelsAndLanesMayBeAskedFor) {
  const Processor v3 = choose(kV4, "x86-64-v3");
  EXPECT_EQ(v3.name, "x86-64-v3");
  EXPECT_EQ(v3.features, "");
  EXPECT_EQ(v3.target.lanes, 8u);
  EXPECT_TRUE(v3.target.masked_memory && !v3.target.mask_registers);
  EXPECT_EQ(choose(kV4, "x86-64-v2").target.lanes, 4u);
  const llvm::Target v2 = choose(kV4, "x86-64-v2").target;
  EXPECT_FALSE(v2.masked_memory || v2.mask_registers || v2.fused || v2.half_conversions);
  const Processor narrow = choose(kV4, "", 4);
  EXPECT_EQ(narrow.name, "some");
  EXPECT_EQ(narrow.target.lanes, 4u);
  EXPECT_TRUE(narrow.target.mask_registers);
  EXPECT_EQ(choose(kV3, "", 16).target.lanes, 16u);
}

TEST(NativeProcessor, LevelsThatItLacksAreRefused) {
  const auto message = [](const std::string& features, Machine machine, const char* level = "x86-64-v4") {
    try {
      choose(features, level, 0, machine);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), *level ? ErrorKind::invalid_argument : ErrorKind::unsupported);
      return e.message();
    }
    return std::string();
  };
  const std::string asked = "WEFT_CPU_LEVEL is 'x86-64-v4', and this processor (some) ";
  EXPECT_EQ(message(kV3, Machine::x86_64), asked + "lacks avx512f; its level is x86-64-v3");
  EXPECT_EQ(message(kV4 + ",-fma", Machine::x86_64), asked + "lacks fma; its level is x86-64-v2");
  EXPECT_EQ(message("+neon", Machine::aarch64), asked + "is of another kind, which has no levels");
  EXPECT_EQ(message(kV4, Machine::x86_64), "");
  EXPECT_EQ(message("+sse3", Machine::x86_64, ""),
            "this processor (some) is too old for machine code of weft: it lacks cx16");
}

TEST(NativeProcessor, RegisterX18IsLeftToSystemsThatHaveIt) {
  const Host host{"some", "+neon"};
  EXPECT_EQ(choose_processor(host, {}, Machine::aarch64, {.reserves_x18 = true}).features, "+neon,+reserve-x18");
  EXPECT_EQ(choose_processor(host, {}, Machine::aarch64, {.reserves_x18 = false}).features, "+neon");
  const Host other{"some", kV4};
  EXPECT_EQ(choose_processor(other, {}, Machine::x86_64, {.reserves_x18 = true}).features, kV4 + ",-avx512fp16");
}

TEST(NativeProcessor, TheEnvironmentAsks) {
  const Variable library("WEFT_LLVM", "some.so"), level("WEFT_CPU_LEVEL", "v3"), lanes("WEFT_CPU_LANES", "16");
  const Request request = Request::from_environment();
  EXPECT_EQ(request.library, "some.so");
  EXPECT_EQ(request.level, "x86-64-v3");
  EXPECT_EQ(request.lanes, 16u);
  const Variable whole("WEFT_CPU_LEVEL", "x86-64-v2"), none("WEFT_CPU_LANES", nullptr);
  EXPECT_EQ(Request::from_environment().level, "x86-64-v2");
  EXPECT_EQ(Request::from_environment().lanes, 0u);
}

// The text is the key under which one process notes for the next what LLVM said about the processor.
TEST(NativeProcessor, ItsIdentityIsThatOfEachOfTheMachinesProcessors) {
  const std::string here = platform::processor_id();
#if defined(__linux__) && defined(__x86_64__)
  EXPECT_FALSE(here.empty());
#endif
#ifdef __linux__
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int k = 0; k < CPU_SETSIZE; ++k) {
    if (!CPU_ISSET(k, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(k, &one);
    std::string there;
    std::thread([&] {
      if (sched_setaffinity(0, sizeof one, &one) == 0) there = platform::processor_id();
    }).join();
    EXPECT_EQ(there, here) << "processor " << k;
  }
#endif
}

}  // namespace
}  // namespace weft::backend::native
