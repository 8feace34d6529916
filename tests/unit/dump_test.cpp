// Kernel::dump: each form of a few kernels, read back by the tools that know the form.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <spirv-tools/libspirv.hpp>

#include "../../spirv/emit.h"
#include "../bench/peers/glsl.h"

namespace weft {
namespace {

auto spring_chain() {
  auto spring = func("spring", [](Vec3 a, Vec3 b, Float k) {
    Vec3 d = b - a;
    Float l = length(d);
    return d * (k * (l - 1) / l);
  });
  return kernel("spring_chain", [=](Arr<const vec3> x, Arr<vec3> f) {
    Int i = tid() + 1;
    f[i] = spring(x[i], x[i - 1], 20) + spring(x[i], x[i + 1], 20);
  });
}

auto escape_time() {
  return kernel("escape_time", [](Arr<int, 2> out, Arr<float> sum, Int limit) {
    auto [row, column] = tid<2>();
    Float cx = Float(column) / 100 - 2, cy = Float(row) / 100 - 1, x = 0, y = 0;
    for (auto n : range(limit)) {
      If (x * x + y * y > 4) {
        Break();
      }
      Float next = x * x - y * y + cx;
      y = 2 * x * y + cy;
      x = next;
      out(row, column) = n;
    }
    atomic_add(sum[0], x);
  });
}

/// A kernel with narrow and wide types, a matrix, and more arguments than push constants hold.
auto all_types() {
  return kernel("all_types", [](Arr<std::int8_t> a, Arr<half> b, Arr<double> c, Arr<std::int64_t> d, Arr<bool> e,
                                Arr<mat33> m, Double z, Mat44 big, Mat33 other) {
    Int i = tid();
    a[i] += 1;
    b[i] = b[i] * b[i];
    c[i] = sqrt(c[i]) + z;
    d[i] = d[i] / 3;
    e[i] = !e[i];
    m[i](1, 2) = big(0, 3) + other(2, 2);
  });
}

template <class K>
void check_forms(const K& kernel) {
  SCOPED_TRACE(kernel.name());
  const std::string text = kernel.dump("ir");
  EXPECT_EQ(text, ir::print(kernel.trace(), true));
  EXPECT_NE(text.find("kernel \"" + kernel.name() + "\""), text.npos);
  EXPECT_NE(text.find("; dump_test.cpp:"), text.npos);

  // The disassembly is complete, so it assembles to valid SPIR-V again.
  const std::string assembly = kernel.dump("spirv");
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  std::vector<std::uint32_t> words;
  ASSERT_TRUE(tools.Assemble(assembly, &words)) << assembly;
  EXPECT_EQ(spirv::validate(words), "");

  const std::string glsl = kernel.dump("glsl");
  EXPECT_EQ(glsl.find("#version 460"), 0u) << glsl;
  try {
    EXPECT_EQ(spirv::validate(bench::compile_glsl(kernel.name(), glsl)), "") << glsl;
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << glsl;
  }

  const std::string llvm = kernel.dump("llvm");
  EXPECT_NE(llvm.find("define void @weft_kernel("), llvm.npos) << llvm;
  EXPECT_NE(llvm.find("<8 x float>"), llvm.npos) << llvm;
}

TEST(Dump, OfEachForm) {
  check_forms(spring_chain());
  check_forms(escape_time());
  check_forms(all_types());
}

TEST(Dump, NamesFunctions) {
  const auto k = spring_chain();
  EXPECT_NE(k.dump("ir").find("func0 \"spring\""), std::string::npos);
  EXPECT_NE(k.dump("spirv").find("OpFunctionCall"), std::string::npos);
  EXPECT_NE(k.dump("glsl").find(" spring("), std::string::npos);
}

TEST(Dump, RefusesOtherForms) {
  const auto k = spring_chain();
  try {
    k.dump("ptx");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(e.kernel(), "spring_chain");
    EXPECT_NE(e.message().find("\"ptx\""), std::string::npos);
    EXPECT_NE(e.message().find("\"ir\", \"spirv\", \"glsl\" and \"llvm\""), std::string::npos);
  }
}

}  // namespace
}  // namespace weft
