// Kernels of the native device through the cache: what is compiled, what is found, and when LLVM is needed.
#include "../../../backends/native/code/programs.h"

#include <gtest/gtest.h>
#include <weft/weft.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../../../frontend/ir/builder.h"
#include "../../../frontend/support/error.h"
#include "../environment.h"

#ifdef __linux__
#include <sys/prctl.h>
#ifndef PR_SET_MDWE  // of Linux 6.3
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN (1UL << 0)
#define PR_GET_MDWE 66
#endif
#endif

namespace weft::backend::native {
namespace {

namespace fs = std::filesystem;
using test::Variable;
using Bytes = std::vector<std::byte>;

// The kernel y[i] = x[i] + added, over two arrays of int.
ir::Module add_kernel(int added) {
  ir::Module module;
  module.name = "add";
  module.loc = {"add.cpp", 1};
  for (const auto& [name, offset] : {std::pair{"x", 8u}, std::pair{"y", 16u}}) {
    ir::Param param;
    param.name = name;
    param.kind = ir::Param::Kind::array;
    param.offset = offset;
    param.ndim = 1;
    param.bytes = 8;
    module.params.push_back(param);
  }
  module.args_bytes = 24;
  ir::Builder b(module);
  const auto at = [&](std::uint32_t offset) {
    const ir::Id index = b.pure(ir::Op::convert, ir::Type::i32, {b.thread_id()});
    return ir::MemoryRef{b.arg(ir::Type::u64, offset), index, 4, 0, 4};
  };
  const ir::Id x = b.load(ir::Type::i32, 1, at(8));
  const ir::Id y = b.pure(ir::Op::add, ir::Type::i32, {x, b.constant_int(ir::Type::i32, added)});
  b.store(ir::Type::i32, {&y, 1}, at(16), {"add.cpp", 2});
  return module;
}

// Runs it over some numbers, and expects the sums.
void expect_adds(const NativeProgram& program, int added) {
  constexpr int kThreads = 37;
  std::vector<std::int32_t> x(kThreads), y(kThreads + 16, -1);
  for (int k = 0; k < kThreads; ++k) x[std::size_t(k)] = k * k;
  struct {
    std::uint32_t threads = kThreads;
    void *x, *y;
  } args{kThreads, x.data(), y.data()};
  std::vector<std::byte> memory(program.arena_bytes + 64);
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const llvm::Worker worker{memory.data() + (64 - first % 64) % 64};
  const std::int64_t units = program.split == llvm::Split::groups ? 1 : kThreads;
  program.entry(reinterpret_cast<const std::byte*>(&args), &worker, 0, units);
  for (int k = 0; k < kThreads; ++k) EXPECT_EQ(y[std::size_t(k)], k * k + added) << k;
  for (std::size_t k = kThreads; k < y.size(); ++k) EXPECT_EQ(y[k], -1);
}

class NativePrograms : public testing::Test {
 protected:
  NativePrograms() : folder_(platform::temporary_folder()) {}
  ~NativePrograms() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  void SetUp() override {
    std::string why;
    if (!Compiler::find(&why)) GTEST_SKIP() << why;
  }

  DiskCache cache() const { return DiskCache(folder_ / "code", DiskCache::kDefaultCap, DiskCache::Holds::code); }
  std::unique_ptr<Programs> open() const {
    std::string why;
    auto programs = Programs::open(cache(), &why);
    EXPECT_NE(programs, nullptr) << why;
    return programs;
  }
  static NativeProgram compile(Programs& programs, int added) {
    const ir::Module kernel = add_kernel(added);
    NativeProgram program = programs.compile(kernel, ir::hash(kernel));
    expect_adds(program, added);
    return program;
  }
  // The key of a kernel's entry.
  static std::string key(const Programs& programs, int added) {
    return "native:" + to_hex(ir::hash(add_kernel(added))) + ":rows:" + programs.key();
  }
  static void expect_counts(const Programs& programs, std::uint64_t emitted, std::uint64_t loaded,
                            std::uint64_t rejected) {
    const CompileStats stats = programs.stats();
    EXPECT_EQ(stats.emitted, emitted);
    EXPECT_EQ(stats.loaded, loaded);
    EXPECT_EQ(stats.rejected, rejected);
  }

  const fs::path folder_;
};

TEST_F(NativePrograms, AreCompiledOnceAndThenFound) {
  const auto first = open();
  const NativeProgram made = compile(*first, 5);
  expect_counts(*first, 1, 0, 0);
  compile(*first, 6);
  compile(*first, 5);
  expect_counts(*first, 2, 1, 0);
  const auto second = open();
  const NativeProgram found = compile(*second, 5);
  expect_counts(*second, 0, 1, 0);
  EXPECT_EQ(found.split, made.split);
  EXPECT_EQ(found.arena_bytes, made.arena_bytes);
  EXPECT_EQ(second->llvm(), first->llvm());
  EXPECT_EQ(second->key(), first->key());
}

TEST_F(NativePrograms, VectorsAcrossRowsAreOtherCode) {
  const auto programs = open();
  const ir::Module kernel = add_kernel(5);
  for (const bool by_rows : {true, false, true, false})
    expect_adds(programs->compile(kernel, ir::hash(kernel), by_rows), 5);
  expect_counts(*programs, 2, 2, 0);
}

TEST_F(NativePrograms, OtherLanesAreOtherCode) {
  std::string keys[2];
  for (const char* lanes : {"4", "8"}) {
    const Variable variable("WEFT_CPU_LANES", lanes);
    const auto programs = open();
    EXPECT_EQ(programs->processor().target.lanes, std::uint32_t(*lanes - '0'));
    compile(*programs, 5);
    expect_counts(*programs, 1, 0, 0);
    keys[*lanes == '8'] = programs->key();
  }
  EXPECT_NE(keys[0], keys[1]);
}

// An entry of other features is not found, and is not believed where it stands in the place of another.
TEST_F(NativePrograms, OtherInstructionsAreOtherCode) {
  if (kHostMachine != Machine::x86_64) GTEST_SKIP() << "there is one level alone";
  const Variable lanes("WEFT_CPU_LANES", "8");
  fs::path files[2];
  for (const char* level : {"x86-64-v2", ""}) {
    const Variable variable("WEFT_CPU_LEVEL", *level ? level : nullptr);
    const auto programs = open();
    compile(*programs, 5);
    expect_counts(*programs, 1, 0, 0);
    files[*level == 0] = cache().path_of(key(*programs, 5));
  }
  ASSERT_NE(files[0], files[1]);
  fs::copy_file(files[0], files[1], fs::copy_options::overwrite_existing);
  const Variable variable("WEFT_CPU_LEVEL", nullptr);
  const auto programs = open();
  compile(*programs, 5);
  expect_counts(*programs, 1, 0, 1);
}

// The note of another process and the kernel's entry are all that is read: the library is none.
TEST_F(NativePrograms, ACachedKernelNeedsNoLlvm) {
  if (platform::processor_id().empty()) GTEST_SKIP() << "the system does not tell processors apart";
  const Variable variable("WEFT_LLVM", nullptr);
  Compiler* const compiler = Compiler::find();
  if (!compiler) GTEST_SKIP() << "only WEFT_LLVM has an LLVM";
  DiskCache files = cache();
  const std::string note = "native-toolchain:" + platform::processor_id();
  Toolchain toolchain = compiler->toolchain();
  toolchain.version = "LLVM 99.9";
  toolchain.path = WEFT_BINARY_DIR "/build.ninja";
  toolchain.identity = file_identity(toolchain.path);
  files.put(note, pack(toolchain));
  const auto programs = open();
  EXPECT_EQ(programs->llvm(), "LLVM 99.9");
  {
    const llvm::Code code = llvm::emit(add_kernel(5), programs->processor().target);
    const Bytes object = compiler->compile(code.text);
    files.put(key(*programs, 5), pack(StoredProgram{code.split, code.arena_bytes, object, {}}));
  }
  compile(*programs, 5);
  expect_counts(*programs, 0, 1, 0);
  EXPECT_EQ(unpack_toolchain(files.get(note).value()), toolchain);
  // A kernel that is not cached loads the library that is there, which is noted.
  compile(*programs, 6);
  expect_counts(*programs, 1, 1, 0);
  EXPECT_EQ(unpack_toolchain(files.get(note).value()), compiler->toolchain());
  EXPECT_EQ(open()->llvm(), compiler->version());
}

TEST_F(NativePrograms, ANoteIsNotBelievedOnceTheLibraryHasChanged) {
  if (platform::processor_id().empty()) GTEST_SKIP() << "the system does not tell processors apart";
  const Variable variable("WEFT_LLVM", nullptr);
  const Compiler* const compiler = Compiler::find();
  if (!compiler) GTEST_SKIP() << "only WEFT_LLVM has an LLVM";
  DiskCache files = cache();
  Toolchain toolchain = compiler->toolchain();
  toolchain.version = "LLVM 99.9";
  toolchain.identity += "0";
  files.put("native-toolchain:" + platform::processor_id(), pack(toolchain));
  EXPECT_EQ(open()->llvm(), compiler->version());
  // One that is gone could compile nothing. What is there is taken, or, if nothing is, another device.
  toolchain.path = "/nowhere/libLLVM.so.99.9";
  files.put("native-toolchain:" + platform::processor_id(), pack(toolchain));
  EXPECT_EQ(open()->llvm(), compiler->version());
  // A relative path would be whatever the current folder holds.
  toolchain.path = std::filesystem::relative(compiler->toolchain().path).string();
  toolchain.identity = file_identity(toolchain.path);
  ASSERT_FALSE(toolchain.identity.empty());
  files.put("native-toolchain:" + platform::processor_id(), pack(toolchain));
  EXPECT_EQ(open()->llvm(), compiler->version());
}

#ifdef PR_SET_MDWE
// As services are run with MemoryDenyWriteExecute=yes.
TEST(NativeProgramsDeathTest, AreNoneWhereTheSystemRunsNoCodeThatAProcessHasWritten) {
  if (prctl(PR_GET_MDWE, 0, 0, 0, 0) != 0) GTEST_SKIP() << "the system has no such rule, or has it already";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto open = [] {
    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0) std::_Exit(2);
    std::string why;
    const bool found = Programs::open(&why) != nullptr;
    const weft::Device cpu("cpu");
    std::fprintf(stderr, "%s; %s", why.c_str(), cpu.name().c_str());
    std::_Exit(found || cpu.name() == "cpu" ? 1 : 0);
  };
  EXPECT_EXIT(open(), testing::ExitedWithCode(0), "runs no code that a process has written");
}
#endif

TEST_F(NativePrograms, ALibraryThatIsNamedIsLoadedAtOnce) {
  compile(*open(), 5);
  const Variable variable("WEFT_LLVM", "/nowhere/libLLVM.so");
  std::string why;
  EXPECT_THROW(Programs::open(cache(), &why), Error);
  const Variable none("WEFT_LLVM", "none");
  EXPECT_EQ(Programs::open(cache(), &why), nullptr);
  EXPECT_EQ(why, "WEFT_LLVM is 'none'");
}

TEST_F(NativePrograms, EntriesThatAreNoProgramAreMadeAnew) {
  const std::string file_key = key(*open(), 5);
  compile(*open(), 5);
  const Bytes good = cache().get(file_key).value();
  ASSERT_TRUE(unpack(good));
  std::vector<Bytes> damaged(4, good);
  damaged[0].clear();
  damaged[1].resize(good.size() - 1);
  damaged[2][16] = std::byte(3);  // no such split
  damaged[3][32] = std::byte(0);  // no ELF object
  for (const Bytes& bytes : damaged) {
    cache().put(file_key, bytes);
    const auto programs = open();
    compile(*programs, 5);
    EXPECT_EQ(programs->stats().emitted, 1u);
    EXPECT_GE(programs->stats().rejected, 1u);
    EXPECT_EQ(cache().get(file_key), good);
  }
}

// Real functions are compiled once for all kernels, and kept beside each.
TEST_F(NativePrograms, KernelsShareTheirRealFunctions) {
  const auto sine = [](int added) {
    return kernel("sine",
                  [added](Arr<const float> x, Arr<float> y) {
                    Int i = tid();
                    y[i] = sin(x[i]) + float(added);
                  })
        .trace();
  };
  const auto value_at_one = [](const NativeProgram& program) {
    std::vector<float> x(64, 1.f), y(64, 0.f);
    struct {
      std::uint32_t threads = 64, unused = 0;
      std::uint64_t x, x_size = 64, y, y_size = 64;
    } args{64, 0, reinterpret_cast<std::uint64_t>(x.data()), 64, reinterpret_cast<std::uint64_t>(y.data()), 64};
    const llvm::Worker worker;
    program.entry(reinterpret_cast<const std::byte*>(&args), &worker, 0, 64);
    return y[63];
  };
  const auto compiled = [&](Programs& programs, int added) {
    const ir::Module module = sine(added);
    return value_at_one(programs.compile(module, ir::hash(module)));
  };
  const auto first = open();
  const llvm::Code code = llvm::emit(sine(1), first->processor().target);
  ASSERT_EQ(code.functions.size(), 1u);
  EXPECT_EQ(code.own.find("define internal"), std::string::npos) << code.own;
  const std::string function_key = "native-function:" + code.functions[0].name + ":" + first->key();
  EXPECT_FLOAT_EQ(compiled(*first, 1), std::sin(1.f) + 1);
  const Bytes object = cache().get(function_key).value();
  EXPECT_FLOAT_EQ(compiled(*open(), 2), std::sin(1.f) + 2) << "with the function of the first one";
  // One that is damaged is made anew.
  cache().put(function_key, Bytes(object.size()));
  const auto second = open();
  EXPECT_FLOAT_EQ(compiled(*second, 3), std::sin(1.f) + 3);
  EXPECT_EQ(second->stats().rejected, 1u);
  EXPECT_EQ(cache().get(function_key), object);
  // An entry that was cut short is no program.
  const std::string file_key = "native:" + to_hex(ir::hash(sine(1))) + ":rows:" + first->key();
  const Bytes whole = cache().get(file_key).value();
  ASSERT_TRUE(unpack(whole));
  ASSERT_EQ(unpack(whole)->functions.size(), 1u);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(unpack(std::span(whole).first(length))) << length;
  EXPECT_FLOAT_EQ(compiled(*open(), 1), std::sin(1.f) + 1) << "from the cache";
}

TEST_F(NativePrograms, WithoutACacheEachIsCompiled) {
  std::string why;
  const auto programs = Programs::open(DiskCache({}), &why);
  ASSERT_NE(programs, nullptr) << why;
  compile(*programs, 5);
  compile(*programs, 5);
  expect_counts(*programs, 2, 0, 0);
}

TEST_F(NativePrograms, ThreadsMayShareThem) {
  const auto programs = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 6; ++k) compile(*programs, (t + k) % 5);
    });
  for (auto& thread : threads) thread.join();
  const CompileStats stats = programs->stats();
  EXPECT_EQ(stats.emitted + stats.loaded, 24u);
  EXPECT_GE(stats.emitted, 5u);
  EXPECT_EQ(stats.rejected, 0u);
}

#ifndef _WIN32
TEST_F(NativePrograms, EntriesThatOthersMayWriteAreMadeAnew) {
  const auto first = open();
  compile(*first, 5);
  const fs::path file = cache().path_of(key(*first, 5));
  fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
  const auto programs = open();
  compile(*programs, 5);
  expect_counts(*programs, 1, 0, 1);
  compile(*programs, 5);
  expect_counts(*programs, 1, 1, 1);
}
#endif

TEST(NativeNotes, OfToolchainsAreReadBackOrRefused) {
  const Toolchain toolchain{"LLVM 19.1.7", "1:2", "/lib/libLLVM.so.19.1", {"znver4", "+avx2,-sse4a"}};
  const Bytes bytes = pack(toolchain);
  EXPECT_EQ(unpack_toolchain(bytes), toolchain);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_EQ(unpack_toolchain(std::span(bytes).first(n)), std::nullopt) << n;
  Bytes longer = bytes;
  longer.push_back(std::byte('x'));
  EXPECT_EQ(unpack_toolchain(longer), std::nullopt);
}

}  // namespace
}  // namespace weft::backend::native
