// LLVM at run time: modules written by hand run as they read, for every processor that can be asked for.
#include "../../../backends/native/code/compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "../../../backends/native/code/loader.h"
#include "../../../frontend/support/error.h"
#include "../environment.h"

namespace weft::backend::native {
namespace {

using test::Variable;

constexpr const char* kHead = "define void @weft_kernel(ptr %args, ptr %worker, i64 %begin, i64 %end) {\n";

class NativeCompiler : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    compiler_ = Compiler::find(&why);
    if (!compiler_) GTEST_SKIP() << why;
  }

  static std::shared_ptr<LoadedCode> load(const Compiler& compiler, const std::string& text) {
    return LoadedCode::load(compiler.compile(text), llvm::kEntryName);
  }
  std::shared_ptr<LoadedCode> load(const std::string& body) const { return load(*compiler_, kHead + body); }

  // Runs the body of a kernel with this block of arguments.
  template <class Args>
  void run(const std::string& body, const Args& args, std::int64_t begin = 0, std::int64_t end = 0) const {
    const auto code = load(body);
    call(*code, args, begin, end);
  }
  template <class Args>
  static void call(const LoadedCode& code, const Args& args, std::int64_t begin = 0, std::int64_t end = 0) {
    const llvm::Worker worker;
    reinterpret_cast<llvm::Entry>(code.entry())(reinterpret_cast<const std::byte*>(&args), &worker, begin, end);
  }

  Compiler* compiler_ = nullptr;
};

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    return e.message();
  }
  return "nothing is thrown";
}

TEST_F(NativeCompiler, NamesLibraryAndProcessor) {
  EXPECT_EQ(compiler_->version().find("LLVM "), 0u);
  EXPECT_GE(std::stoi(compiler_->version().substr(5)), int(kOldestLlvm));
  EXPECT_FALSE(compiler_->toolchain().identity.empty());
  EXPECT_FALSE(compiler_->toolchain().host.name.empty());
  EXPECT_TRUE(std::has_single_bit(compiler_->processor().target.lanes));
  EXPECT_EQ(Compiler::find(), compiler_) << "it is loaded once";
}

TEST_F(NativeCompiler, Arithmetic) {
  struct {
    std::int64_t sum = 0;
    double quotient = 0;
  } result;
  struct {
    void* result;
  } args{&result};
  run(R"(entry:
  %to = load ptr, ptr %args
  br label %loop
loop:
  %k = phi i64 [%begin, %entry], [%next, %loop]
  %sum = phi i64 [0, %entry], [%more, %loop]
  %square = mul i64 %k, %k
  %more = add i64 %sum, %square
  %next = add i64 %k, 1
  %again = icmp slt i64 %next, %end
  br i1 %again, label %loop, label %done
done:
  store i64 %more, ptr %to
  %place = getelementptr i8, ptr %to, i64 8
  %f = sitofp i64 %more to double
  %q = fdiv double %f, 3.0
  store double %q, ptr %place
  ret void
})",
      args, 3, 7);
  EXPECT_EQ(result.sum, 9 + 16 + 25 + 36);
  EXPECT_EQ(result.quotient, 86 / 3.0);
}

// A product and a sum stay two roundings, also where the processor has an instruction for both.
TEST_F(NativeCompiler, NothingIsContracted) {
  const float a = 1 + std::ldexp(1.f, -12), c = -(1 + std::ldexp(1.f, -11));
  std::array<float, 16> x, y{};
  x.fill(a);
  struct {
    float *x, *y;
  } args{x.data(), y.data()};
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(c);
  run("  %x = load ptr, ptr %args\n  %at = getelementptr i8, ptr %args, i64 8\n  %y = load ptr, ptr %at\n"
      "  %i = insertelement <16 x i32> undef, i32 " +
          std::to_string(bits) +
          ", i32 0\n"
          "  %is = shufflevector <16 x i32> %i, <16 x i32> undef, <16 x i32> zeroinitializer\n"
          "  %c = bitcast <16 x i32> %is to <16 x float>\n"
          "  %v = load <16 x float>, ptr %x, align 4\n  %p = fmul <16 x float> %v, %v\n"
          "  %s = fadd <16 x float> %p, %c\n  store <16 x float> %s, ptr %y, align 4\n  ret void\n}",
      args);
  const volatile float product = a * a;
  for (const float value : y) EXPECT_EQ(value, product + c);
  EXPECT_NE(std::fma(a, a, c), product + c) << "or this test shows nothing";
}

// The tables of a switch and of vectors are constants of the object, the first one with addresses of code.
TEST_F(NativeCompiler, Constants) {
  std::array<std::int32_t, 8> out{};
  struct {
    std::int32_t* out;
  } args{out.data()};
  std::string body = "  %out = load ptr, ptr %args\n  switch i64 %begin, label %other [\n";
  for (int k = 0; k < 9; ++k) body += "    i64 " + std::to_string(k) + ", label %case" + std::to_string(k) + "\n";
  body += "  ]\n";
  for (int k = 0; k < 9; ++k) {
    body += "case" + std::to_string(k) + ":\n  store volatile <8 x i32> <";
    for (int j = 0; j < 8; ++j) body += (j ? ", i32 " : "i32 ") + std::to_string(100 * k + j * j);
    body += ">, ptr %out, align 4\n  br label %other\n";
  }
  const auto code = load(body + "other:\n  ret void\n}");
  for (std::int64_t k = 0; k < 10; ++k) {
    out.fill(-1);
    call(*code, args, k);
    for (int j = 0; j < 8; ++j) EXPECT_EQ(out[std::size_t(j)], k < 9 ? 100 * int(k) + j * j : -1);
  }
}

std::string lookup_table() {
  std::string text = "@table = private unnamed_addr constant [64 x i16] [";
  for (int k = 0; k < 64; ++k) text += (k ? ", i16 " : "i16 ") + std::to_string(7 * k);
  return text + "], align 2\n";
}

TEST_F(NativeCompiler, FunctionsAndTables) {
  std::int64_t out = 0;
  struct {
    std::int64_t* out;
  } args{&out};
  const auto code = load(*compiler_, lookup_table() + R"(
define internal i64 @at(i64 %k) noinline {
  %place = getelementptr [64 x i16], ptr @table, i64 0, i64 %k
  %v = load i16, ptr %place
  %w = zext i16 %v to i64
  ret i64 %w
}
define internal i64 @both(i64 %a, i64 %b) noinline {
  %x = call i64 @at(i64 %a)
  %y = call i64 @at(i64 %b)
  %s = sub i64 %x, %y
  ret i64 %s
}
)" + kHead + R"(  %v = call i64 @both(i64 %begin, i64 %end)
  %out = load ptr, ptr %args
  store i64 %v, ptr %out
  ret void
})");
  for (std::int64_t a = 0; a < 64; a += 9)
    for (std::int64_t b = 0; b < 64; b += 7) {
      call(*code, args, a, b);
      EXPECT_EQ(out, 7 * (a - b));
    }
}

// A kernel with masks of `lanes` lanes: y[lane] = x[index[lane]] + 1 where lane < begin.
std::string masked_module(int lanes) {
  const std::string n = std::to_string(lanes), v = "v" + n;
  std::string numbers;
  for (int k = 0; k < lanes; ++k) numbers += (k ? ", i64 " : "i64 ") + std::to_string(k);
  return "declare <" + n + " x i32> @llvm.masked.load." + v + "i32.p0(ptr, i32, <" + n + " x i1>, <" + n +
         " x i32>)\ndeclare void @llvm.masked.store." + v + "f32.p0(<" + n + " x float>, ptr, i32, <" + n +
         " x i1>)\ndeclare <" + n + " x float> @llvm.masked.gather." + v + "f32." + v + "p0(<" + n + " x ptr>, i32, <" +
         n + " x i1>, <" + n + " x float>)\n" + kHead + "  %one = insertelement <" + n +
         " x i64> undef, i64 %begin, i32 0\n  %all = shufflevector <" + n + " x i64> %one, <" + n + " x i64> undef, <" +
         n + " x i32> zeroinitializer\n  %mask = icmp slt <" + n + " x i64> <" + numbers +
         ">, %all\n  %x = load ptr, ptr %args\n  %at1 = getelementptr i8, ptr %args, i64 8\n  %y = load ptr, ptr %at1\n"
         "  %at2 = getelementptr i8, ptr %args, i64 16\n  %index = load ptr, ptr %at2\n  %i = call <" +
         n + " x i32> @llvm.masked.load." + v + "i32.p0(ptr %index, i32 4, <" + n + " x i1> %mask, <" + n +
         " x i32> zeroinitializer)\n  %p = getelementptr float, ptr %x, <" + n + " x i32> %i\n  %g = call <" + n +
         " x float> @llvm.masked.gather." + v + "f32." + v + "p0(<" + n + " x ptr> %p, i32 4, <" + n +
         " x i1> %mask, <" + n + " x float> zeroinitializer)\n  %f = insertelement <" + n +
         " x float> undef, float 1.0, i32 0\n  %ones = shufflevector <" + n + " x float> %f, <" + n +
         " x float> undef, <" + n + " x i32> zeroinitializer\n  %s = fadd <" + n +
         " x float> %g, %ones\n  call void @llvm.masked.store." + v + "f32.p0(<" + n +
         " x float> %s, ptr %y, i32 4, <" + n + " x i1> %mask)\n  ret void\n}\n";
}

void check_masks(const LoadedCode& code, int lanes) {
  std::vector<float> x(64), y(std::size_t(lanes) + 4);
  std::iota(x.begin(), x.end(), 100.f);
  for (int active = 0; active <= lanes; ++active) {
    // Inactive lanes have indices that lead nowhere.
    std::vector<std::int32_t> index(std::size_t(lanes), 0x7fffffff);
    for (int k = 0; k < active; ++k) index[std::size_t(k)] = (k * 29) % 64;
    std::fill(y.begin(), y.end(), -1.f);
    struct {
      void *x, *y, *index;
    } args{x.data(), y.data(), index.data()};
    const llvm::Worker worker;
    reinterpret_cast<llvm::Entry>(code.entry())(reinterpret_cast<const std::byte*>(&args), &worker, active, 0);
    for (int k = 0; k < int(y.size()); ++k)
      EXPECT_EQ(y[std::size_t(k)], k < active ? 101.f + float((k * 29) % 64) : -1.f) << lanes << " lanes, " << active;
  }
}

TEST_F(NativeCompiler, MasksOnEveryProcessorThatCanBeAskedFor) {
  for (const char* level : {"", "x86-64-v2", "x86-64-v3", "x86-64-v4"})
    for (const std::uint32_t lanes : {0, 4, 8, 16}) {
      Request request{platform::environment("WEFT_LLVM").value_or(""), level, lanes};
      const Compiler* compiler = nullptr;
      try {
        compiler = Compiler::find(request);
      } catch (const Error& e) {
        EXPECT_NE(e.message().find(fmt::format("WEFT_CPU_LEVEL is '{}'", level)), std::string::npos) << e.message();
        continue;
      }
      ASSERT_NE(compiler, nullptr);
      const int n = int(compiler->processor().target.lanes);
      if (lanes) {
        EXPECT_EQ(n, int(lanes));
      }
      check_masks(*load(*compiler, masked_module(n)), n);
    }
}

TEST_F(NativeCompiler, ThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 5; ++k) {
        const int lanes = 4 << ((t + k) % 3);
        check_masks(*load(*compiler_, masked_module(lanes)), lanes);
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST_F(NativeCompiler, TextThatIsNoModuleEndsTheProgram) {
  EXPECT_DEATH(compiler_->compile(std::string(kHead) + "  ret i32 1\n}"),
               "internal error.*LLVM.*refuses the code of a kernel.*2:");
  EXPECT_DEATH(compiler_->compile("define void @weft_kernel(i64 %a) {\n  %c = add i64 %b, 1\n  ret void\n}"),
               "refuses the code of a kernel.*%b");
  // Parsed, but not valid: the terminator is in the middle.
  EXPECT_DEATH(compiler_->compile(std::string(kHead) + "a:\n  br label %b\nb:\n  %v = add i64 %w, 1\n  br label %c\n"
                                                       "c:\n  %w = add i64 %v, 1\n  ret void\n}"),
               "refuses the code of a kernel.*dominate");
}

// LLVM reports these while it makes code, after the module was verified.
TEST_F(NativeCompiler, WhatLlvmCannotCompileIsAnError) {
  if (kHostMachine != Machine::x86_64) GTEST_SKIP() << "the module is for x86-64";
  const std::string message = message_of([&] {
    compiler_->compile(
        "define float @weft_kernel(float %x) \"target-features\"=\"-sse,-sse2\" {\n"
        "  %y = fadd float %x, %x\n  ret float %y\n}");
  });
  EXPECT_NE(message.find("cannot compile the kernel: "), std::string::npos) << message;
  EXPECT_NE(message.find("SSE"), std::string::npos) << message;
}

// Of so much text LLVM does less, as its time would grow with the square.
TEST_F(NativeCompiler, VeryLongCodeIsRight) {
  constexpr std::uint32_t kSteps = 20000;
  std::string body = "  %x = load ptr, ptr %args\n  %v0 = load i32, ptr %x\n";
  std::uint32_t x = 7, expected = x;
  for (std::uint32_t k = 1; k <= kSteps; ++k) {
    body += fmt::format("  %m{0} = mul i32 %v{1}, 5\n  %v{0} = xor i32 %m{0}, {0}\n", k, k - 1);
    expected = (expected * 5) ^ k;
  }
  body += fmt::format("  store i32 %v{}, ptr %x\n  ret void\n}}\n", kSteps);
  std::uint32_t* const args[] = {&x};
  run(body, args);
  EXPECT_EQ(x, expected);
}

// A host thread's stack would end in the middle of a launch.
TEST_F(NativeCompiler, CodeThatNeedsTooMuchStackIsRefused) {
  const auto message = [&](int bytes) {
    const std::string body = fmt::format(
        "  %a = alloca [{} x i8]\n  %x = load ptr, ptr %args\n  store ptr %a, ptr %x\n  ret void\n}}\n", bytes);
    return message_of([&] { compiler_->compile(kHead + body); });
  };
  EXPECT_EQ(message(4'000'000), "nothing is thrown");
  EXPECT_NE(message(4'300'000).find("on the stack of a host thread (4194304 bytes)"), std::string::npos);
}

TEST_F(NativeCompiler, CodeThatNeedsAnotherLibraryIsNotLoaded) {
  const std::string text = std::string("declare double @sin(double)\n") + kHead +
                           "  %x = sitofp i64 %begin to double\n  %y = call double @sin(double %x)\n"
                           "  %to = load ptr, ptr %args\n  store double %y, ptr %to\n  ret void\n}";
  try {
    load(*compiler_, text);
    FAIL() << "it is loaded";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::io);
    EXPECT_EQ(e.message(), "object code: it needs 'sin', which it does not have");
  }
}

// Memory below the stack's end is not used, and there are no tables for exceptions.
TEST_F(NativeCompiler, CodeIsPlain) {
  const std::vector<std::byte> object = compiler_->compile(masked_module(8));
  const std::string_view bytes(reinterpret_cast<const char*>(object.data()), object.size());
  EXPECT_EQ(bytes.find(".eh_frame"), bytes.npos);
  EXPECT_EQ(bytes.find("_GLOBAL_OFFSET_TABLE_"), bytes.npos);
}

std::string why_not(const char* name, const char* value) {
  const Variable variable(name, value);
  try {
    Compiler::find();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    return e.message();
  }
  return "nothing is thrown";
}

std::string not_taken(const std::string& library, const std::string& why) {
  return "WEFT_LLVM is '" + library + "', and that library cannot be taken: " + why +
         ". The path or name of a library of LLVM from version 15 on is needed, or none";
}

TEST(NativeLibrary, TheOneThatIsNamedIsTaken) {
  for (int round = 0; round < 2; ++round)
    for (const char* name : {"/nowhere/libLLVM.so", "libLLVM-nowhere.so"})
      EXPECT_EQ(why_not("WEFT_LLVM", name), not_taken(name, "it is not there"));
  if (platform::find_library("libm.so.6")) {
    EXPECT_EQ(why_not("WEFT_LLVM", "libm.so.6"), not_taken("libm.so.6", "it is no library of LLVM"));
  }
#ifdef WEFT_LLVM_OLD
  EXPECT_EQ(why_not("WEFT_LLVM", WEFT_LLVM_OLD), not_taken(WEFT_LLVM_OLD, "it is too old: version 15 is needed"));
  EXPECT_EQ(why_not("WEFT_LLVM", WEFT_LLVM_PART), not_taken(WEFT_LLVM_PART, "it lacks LLVMGetHostCPUFeatures"));
#endif
  const std::string text = (std::filesystem::path(WEFT_BINARY_DIR) / "build.ninja").string();
  // A file that is there comes with the system's own reason.
  EXPECT_NE(why_not("WEFT_LLVM", text.c_str()).find(text + ": "), std::string::npos);
  EXPECT_EQ(why_not("WEFT_LLVM", text.c_str()).find("it is not there"), std::string::npos);
  {
    const Variable none("WEFT_LLVM", "none");
    std::string why;
    EXPECT_EQ(Compiler::find(&why), nullptr);
    EXPECT_EQ(why, "WEFT_LLVM is 'none'");
  }
  const Compiler* const usual = Compiler::find();
  if (!usual || usual->toolchain().path.empty()) GTEST_SKIP() << "there is no other to name";
  const Variable variable("WEFT_LLVM", usual->toolchain().path.c_str());
  const Compiler* const named = Compiler::find();
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(named->toolchain(), usual->toolchain());
}

TEST(NativeLibrary, WrongVariablesAreNamed) {
  EXPECT_EQ(why_not("WEFT_CPU_LANES", "5"), "WEFT_CPU_LANES is '5'; 4, 8 or 16 is needed");
  EXPECT_EQ(why_not("WEFT_CPU_LANES", "many"), "WEFT_CPU_LANES is 'many'; a non-negative number is needed");
  EXPECT_EQ(why_not("WEFT_CPU_LEVEL", "v5"), "WEFT_CPU_LEVEL is 'v5'; x86-64-v2, x86-64-v3 or x86-64-v4 is needed");
}

}  // namespace
}  // namespace weft::backend::native
