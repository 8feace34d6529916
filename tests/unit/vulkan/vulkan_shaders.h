// Small compute shaders as SPIR-V text, for tests of the Vulkan backend without the emitter.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <vector>

namespace weft::test {

/// The arguments of all these shaders. Thread i < n does `body`.
struct ShaderArgs {
  std::uint64_t x = 0, y = 0;
  std::uint32_t n = 0, k = 0;
};

inline std::vector<std::uint32_t> assemble(const std::string& text) {
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  std::string complaint;
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t& position, const char* message) {
    complaint += "line " + std::to_string(position.index) + ": " + message + "\n";
  });
  std::vector<std::uint32_t> words;
  EXPECT_TRUE(tools.Assemble(text, &words)) << complaint << text;
  EXPECT_TRUE(tools.Validate(words)) << complaint << text;
  return words;
}

/// A shader of 64 threads per group. `body` may use %i (u32), %px and %py (pointers to x[i] and y[i]), %y0 (to y[0])
/// and %k. With `indirect`, the push constants are the address of the arguments, which begin `indirect` bytes later.
inline std::vector<std::uint32_t> shader(const std::string& body, int indirect = -1) {
  const bool direct = indirect < 0;
  std::string text = R"(
    OpCapability Shader
    OpCapability Int64
    OpCapability PhysicalStorageBufferAddresses
    OpMemoryModel PhysicalStorageBuffer64 GLSL450
    OpEntryPoint GLCompute %main "main" %gid %push
    OpExecutionMode %main LocalSize 64 1 1
    OpDecorate %gid BuiltIn GlobalInvocationId
    OpDecorate %args_t Block
    OpMemberDecorate %args_t 0 Offset 0
  )";
  if (direct)
    text += R"(
    OpMemberDecorate %args_t 1 Offset 8
    OpMemberDecorate %args_t 2 Offset 16
    OpMemberDecorate %args_t 3 Offset 20
    )";
  text += R"(
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %bool = OpTypeBool
    %u32 = OpTypeInt 32 0
    %u64 = OpTypeInt 64 0
    %f32 = OpTypeFloat 32
    %v3 = OpTypeVector %u32 3
    %in_v3 = OpTypePointer Input %v3
    %pu = OpTypePointer PhysicalStorageBuffer %u32
    %pl = OpTypePointer PhysicalStorageBuffer %u64
    %gid = OpVariable %in_v3 Input
    %c0 = OpConstant %u32 0
    %c1 = OpConstant %u32 1
    %c2 = OpConstant %u32 2
    %c3 = OpConstant %u32 3
    %l4 = OpConstant %u64 4
  )";
  text += direct ? "%args_t = OpTypeStruct %u64 %u64 %u32 %u32\n" : "%args_t = OpTypeStruct %u64\n";
  text += R"(
    %push_args = OpTypePointer PushConstant %args_t
    %push_u64 = OpTypePointer PushConstant %u64
    %push_u32 = OpTypePointer PushConstant %u32
    %push = OpVariable %push_args PushConstant
  )";
  if (!direct)
    for (const int member : {0, 8, 16, 20})
      text += "%o" + std::to_string(member) + " = OpConstant %u64 " + std::to_string(indirect + member) + "\n";
  text += R"(
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %id = OpLoad %v3 %gid
    %i = OpCompositeExtract %u32 %id 0
    %pa0 = OpAccessChain %push_u64 %push %c0
    %a0 = OpLoad %u64 %pa0
  )";
  if (direct) {
    text += R"(
    %x = OpCopyObject %u64 %a0
    %pa1 = OpAccessChain %push_u64 %push %c1
    %y = OpLoad %u64 %pa1
    %pa2 = OpAccessChain %push_u32 %push %c2
    %n = OpLoad %u32 %pa2
    %pa3 = OpAccessChain %push_u32 %push %c3
    %k = OpLoad %u32 %pa3
    )";
  } else {
    const char* members[][4] = {{"x", "o0", "%pl", "%u64"},
                                {"y", "o8", "%pl", "%u64"},
                                {"n", "o16", "%pu", "%u32"},
                                {"k", "o20", "%pu", "%u32"}};
    for (const auto& [name, at, pointer, type] : members) {
      const std::string m = name;
      text += "%at_" + m + " = OpIAdd %u64 %a0 %" + at + "\n%pt_" + m + " = OpConvertUToPtr " + pointer + " %at_" + m +
              "\n%" + m + " = OpLoad " + type + " %pt_" + m + " Aligned 4\n";
    }
  }
  text += R"(
    %inside = OpULessThan %bool %i %n
    OpSelectionMerge %end None
    OpBranchConditional %inside %do %end
    %do = OpLabel
    %il = OpUConvert %u64 %i
    %ib = OpIMul %u64 %il %l4
    %xi = OpIAdd %u64 %x %ib
    %yi = OpIAdd %u64 %y %ib
    %px = OpConvertUToPtr %pu %xi
    %py = OpConvertUToPtr %pu %yi
    %y0 = OpConvertUToPtr %pu %y
  )";
  return assemble(text + body + R"(
    OpBranch %end
    %end = OpLabel
    OpReturn
    OpFunctionEnd
  )");
}

/// y[i] += k * x[i], all float.
inline const char* kSaxpy = R"(
  %a = OpBitcast %f32 %k
  %xu = OpLoad %u32 %px Aligned 4
  %yu = OpLoad %u32 %py Aligned 4
  %xf = OpBitcast %f32 %xu
  %yf = OpBitcast %f32 %yu
  %ax = OpFMul %f32 %a %xf
  %sum = OpFAdd %f32 %ax %yf
  %out = OpBitcast %u32 %sum
  OpStore %py %out Aligned 4
)";

/// y[i] = 3 * x[i] + k
inline const char* kStep = R"(
  %xu = OpLoad %u32 %px Aligned 4
  %three = OpIMul %u32 %xu %c3
  %out = OpIAdd %u32 %three %k
  OpStore %py %out Aligned 4
)";

/// y[0] += k, atomically.
inline const char* kCount = R"(
  %old = OpAtomicIAdd %u32 %y0 %c1 %c0 %k
)";

/// y[i] = x[i] after k rounds of t = 3 t + 1.
inline const char* kSpin = R"(
  %t0 = OpLoad %u32 %px Aligned 4
  OpBranch %head
  %head = OpLabel
  %t = OpPhi %u32 %t0 %do %t1 %next
  %r = OpPhi %u32 %c0 %do %r1 %next
  %more = OpULessThan %bool %r %k
  OpLoopMerge %after %next None
  OpBranchConditional %more %loop %after
  %loop = OpLabel
  OpBranch %next
  %next = OpLabel
  %t3 = OpIMul %u32 %t %c3
  %t1 = OpIAdd %u32 %t3 %c1
  %r1 = OpIAdd %u32 %r %c1
  OpBranch %head
  %after = OpLabel
  OpStore %py %t Aligned 4
)";

}  // namespace weft::test
