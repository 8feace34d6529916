// Exports of kernels without a device: their requirements, their JSON and back, and refusals.
#include <gtest/gtest.h>
#include <weft/geometry.h>
#include <weft/weft.h>

#include <filesystem>

#include "../../frontend/support/platform.h"
#include "../../spirv/emit.h"

namespace weft {
namespace {

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

auto saxpy() {
  return kernel("saxpy", [](Arr<const float> x, Arr<float> y, Float a) { y[tid()] += a * x[tid()]; });
}

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

TEST(KernelSpirv, DescribesArguments) {
  const Reflection r = saxpy().spirv({.names = {"x"}}).reflection;
  EXPECT_EQ(r.name, "saxpy");
  ASSERT_EQ(r.arguments.size(), 3u);
  EXPECT_EQ(r.arguments[0].name, "x");
  EXPECT_EQ(r.arguments[1].name, "argument 2");
  EXPECT_TRUE(r.arguments[0].reads && !r.arguments[0].writes);
  EXPECT_TRUE(r.arguments[1].reads && r.arguments[1].writes);
  EXPECT_EQ(r.arguments[0].offset, 8u);
  EXPECT_EQ(r.arguments[2].type, "float32");
  EXPECT_FALSE(r.arguments[2].is_array());
  EXPECT_EQ(r.block, 256u);
  EXPECT_FALSE(r.by_address);
  EXPECT_EQ(r.push_bytes(), r.args_bytes);
  EXPECT_EQ(r.features, (std::vector<std::string>{"bufferDeviceAddress", "scalarBlockLayout", "shaderInt64"}));
  EXPECT_TRUE(r.device_extensions.empty() && r.properties.empty());
}

TEST(KernelSpirv, NamesFieldsOfStructsThatHoldArrays) {
  auto count = kernel("count", [](Var<MeshArrays> mesh, Arr<int> n) { n[0] = mesh.indices.shape(0); });
  const Reflection r = count.spirv({.names = {"mesh", "n"}}).reflection;
  EXPECT_EQ(r.arguments.front().name.substr(0, 5), "mesh.");
  EXPECT_EQ(r.arguments.front().argument, 1u);
  EXPECT_EQ(r.arguments.back().name, "n");
  EXPECT_EQ(r.arguments.back().argument, 2u);
}

TEST(KernelSpirv, RequiresFeaturesWhereTheyAreUsed) {
  auto add = kernel("add", [](Arr<float> x) {
    auto s = shared<float>(4);
    atomic_add(s[0], 1.0f);
    barrier();
    atomic_add(x[0], s[0]);
  });
  const Reflection portable = add.spirv().reflection;
  EXPECT_FALSE(has(portable.features, "shaderBufferFloat32AtomicAdd"));
  EXPECT_TRUE(portable.device_extensions.empty());
  const SpirvKernel full = add.spirv({.target = spirv::Target::everything()});
  EXPECT_EQ(spirv::validate(full.words), "");
  EXPECT_TRUE(has(full.reflection.features, "shaderBufferFloat32AtomicAdd"));
  EXPECT_TRUE(has(full.reflection.features, "shaderSharedFloat32AtomicAdd"));
  EXPECT_TRUE(has(full.reflection.device_extensions, "VK_EXT_shader_atomic_float"));
  EXPECT_TRUE(has(full.reflection.properties, "shaderRoundingModeRTEFloat32"));

  auto count = kernel("count", [](Arr<std::uint64_t> x) {
    auto s = shared<std::uint64_t>(1);
    atomic_max(s[0], UInt64(tid()));
    barrier();
    x[tid()] = s[0];
  });
  const Reflection wide = count.spirv().reflection;
  EXPECT_TRUE(has(wide.features, "shaderSharedInt64Atomics"));
  EXPECT_FALSE(has(wide.features, "shaderBufferInt64Atomics"));
}

TEST(KernelSpirv, AsksForFlowOfSubgroupsOnlyWhereThreadsPart) {
  auto together = kernel("together", [](Arr<int> x) { x[tid()] = subgroup_add(x[tid()]); });
  auto apart = kernel("apart", [](Arr<int> x) {
    Int v = x[tid()];
    If (subgroup_id() == 0) {
      x[tid()] = subgroup_add(v);
    }
  });
  auto inside = func("inside", [](Int v) {
    Int sum = 0;
    If (subgroup_id() == 0) {
      sum = subgroup_add(v);
    }
    return sum;
  });
  auto calls = kernel("calls", [=](Arr<int> x) { x[tid()] = inside(x[tid()]); });
  const char* const extension = "VK_KHR_shader_subgroup_uniform_control_flow";
  const Reflection first = together.spirv().reflection, second = apart.spirv().reflection;
  EXPECT_EQ(first.subgroup_size, 32u);
  EXPECT_TRUE(has(first.features, "computeFullSubgroups"));
  EXPECT_TRUE(has(first.properties, "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT"));
  EXPECT_FALSE(has(first.device_extensions, extension));
  EXPECT_TRUE(has(second.device_extensions, extension));
  EXPECT_TRUE(has(calls.spirv().reflection.device_extensions, extension));
}

TEST(KernelSpirv, GoesThroughJsonUnchanged) {
  auto everything = kernel("everything", [](Arr<const vec3, 2> a, Arr<half> b, Mat44 m, Mat44 n, Arr<int> steps) {
    auto [i, j] = tid<2>();
    Vec3 v = a(i, j);
    for (auto k : range(steps[i])) v *= Float(k) * m(0, 0);
    b[j] = Half(v[0] + n(1, 1));
  });
  for (const bool adjoint : {false, true}) {
    const SpirvKernel made = everything.spirv({.adjoint = adjoint, .strided = {"argument 1"}});
    EXPECT_EQ(spirv::validate(made.words), "");
    EXPECT_TRUE(made.reflection.by_address);
    EXPECT_EQ(made.reflection.push_bytes(), 8u);
    EXPECT_TRUE(reflection_from_json(to_json(made.reflection)) == made.reflection);
  }
}

TEST(KernelSpirv, HasNamesInUtf8AsItsRecordIsJson) {
  const auto named = [](const char* name) { return kernel(name, [](Arr<float> x) { x[tid()] = 1; }); };
  EXPECT_NE(to_json(named("na\xc3\xafve").spirv().reflection).find("na\xc3\xafve"), std::string::npos);
  const std::string refused =
      "invalid argument: reflection: the name of kernel \"na\xefve\", or that of an argument, is not UTF-8";
  expect_contains(error_of([&] { (void)named("na\xefve").spirv(); }), refused);
  expect_contains(error_of([&] { (void)named("na\xefve").spirv({.adjoint = true}); }), refused);
  expect_contains(error_of([&] { (void)named("k").spirv({.names = {"\xff"}}); }),
                  "kernel \"k\", or that of an argument");
}

// A .spv without the .json that describes its launch is of no use.
TEST(KernelSpirv, IsWrittenAsTwoFilesOrNone) {
  const auto folder = std::filesystem::temp_directory_path() / ("weft_pair_" + std::to_string(platform::process_id()));
  SpirvKernel made = saxpy().spirv();
  std::filesystem::create_directories(folder / "k.json");
  expect_contains(error_of([&] { write_spirv(made, folder.string(), "k"); }),
                  "k.json cannot be written: Is a directory");
  EXPECT_FALSE(std::filesystem::exists(folder / "k.spv"));
  made.reflection.name = "na\xefve";
  expect_contains(error_of([&] { write_spirv(made, folder.string(), "naive"); }), "is not UTF-8");
  EXPECT_FALSE(std::filesystem::exists(folder / "naive.spv"));
  std::filesystem::remove_all(folder);
}

TEST(KernelSpirv, MayBeOptimised) {
  auto square = func("square", [](Float a) { return a * a; });
  auto calls = kernel("calls", [=](Arr<float> x) { x[tid()] = square(x[tid()]) + square(2); });
  const SpirvKernel plain = calls.spirv(), small = calls.spirv({.optimise = true});
  EXPECT_LT(small.words.size(), plain.words.size());
  EXPECT_EQ(spirv::validate(small.words), "");
  EXPECT_EQ(small.reflection.spirv_hash, detail::hash_of_words(small.words));
  EXPECT_EQ(small.reflection.arguments, plain.reflection.arguments);
}

TEST(KernelSpirv, RefusesWhatNeedsTheRuntime) {
  auto prints = kernel("prints", [](Arr<float> x) { print("x is", x[tid()]); });
  expect_contains(error_of([&] { (void)prints.spirv(); }),
                  "kernel_spirv_test.cpp:" + std::to_string(__LINE__ - 2) +
                      ": unsupported in kernel \"prints\": it cannot be exported: it prints");
  auto asserts = kernel("asserts", [](Arr<float> x) { assert_(x[tid()] > 0); });
  expect_contains(error_of([&] { (void)asserts.spirv({.adjoint = true}); }), "\"asserts\": it cannot be exported");
  auto checked = kernel("checked", [](Arr<float> x) { x[tid()] = 1; }, {.debug = true});
  expect_contains(error_of([&] { (void)checked.spirv(); }), "checks itself (debug mode)");
  auto follows =
      kernel("follows", [](Arr<std::uint64_t> mesh, Arr<int> n) { n[0] = mesh_at(mesh[0]).indices.shape(0); });
  expect_contains(error_of([&] { (void)follows.spirv(); }), "it follows handles of meshes");
  auto least = kernel("least", [](Arr<const float> x, Arr<float> m) { atomic_min(m[0], x[tid()]); });
  (void)least.spirv();
  expect_contains(error_of([&] { (void)least.spirv({.adjoint = true}); }), "after atomic minima and maxima");
  auto updates = kernel("updates", [](Arr<float> x, Int n) {
    for (auto k : range(n)) x[tid()] *= x[tid()] + Float(k);
  });
  expect_contains(error_of([&] { (void)updates.spirv({.adjoint = true}); }), "another kernel counts before it");
}

TEST(KernelSpirv, RefusesWhatTheTargetLacks) {
  auto halves = kernel("halves", [](Arr<double> x) { x[tid()] *= 0.5; });
  expect_contains(error_of([&] { (void)halves.spirv({.target = spirv::Target::floor()}); }),
                  "in kernel \"halves\": the target lacks float64 arithmetic (shaderFloat64)");
  spirv::Target device = spirv::Target::floor();
  device.of_device = true;
  expect_contains(error_of([&] { (void)halves.spirv({.target = device}); }), "the device lacks float64 arithmetic");
  EXPECT_EQ(saxpy().spirv({.target = spirv::Target::floor()}).reflection.block, 128u);
  auto wide = kernel("wide",
                     [](Arr<float> x) {
                       barrier();
                       x[tid()] = 1;
                     },
                     {.block = 256});
  expect_contains(error_of([&] { (void)wide.spirv({.target = spirv::Target::floor()}); }), "at most 128");
  expect_contains(error_of([&] { (void)spirv::Target::named("gpu"); }),
                  "they are \"portable\", \"floor\" and \"everything\"");
  EXPECT_EQ(spirv::Target::named("portable"), spirv::Target::portable());
}

TEST(KernelSpirv, RefusesNamesThatNoArgumentHas) {
  const auto k = saxpy();
  expect_contains(error_of([&] {
                    (void)k.spirv({.names = {"a", "b", "c", "d"}});
                  }),
                  "4 names are given for 3 arguments");
  expect_contains(error_of([&] { (void)k.spirv({.names = {"a", "a"}}); }), "two arguments are called \"a\"");
  expect_contains(error_of([&] { (void)k.spirv({.names = {"x"}, .strided = {"y"}}); }),
                  "strided names \"y\"; the arguments are x, argument 2, argument 3");
  expect_contains(error_of([&] { (void)k.spirv({.strided = {"argument 3"}}); }), "which is no array");
  expect_contains(error_of([&] { (void)k.spirv({.gradients = {"argument 1"}}); }), "no adjoint is asked for");
  auto copies = kernel("copies", [](Arr<const int> from, Arr<float> to) { to[tid()] = Float(from[tid()]); });
  expect_contains(error_of([&] { (void)copies.spirv({.adjoint = true, .gradients = {"argument 1"}}); }),
                  "reads and writes no real numbers");
  auto integers = kernel("integers", [](Arr<int> x) { x[tid()] += 1; });
  expect_contains(error_of([&] { (void)integers.spirv({.adjoint = true}); }), "it has no arrays of real numbers");
}

TEST(KernelSpirv, IsWrittenToTwoFiles) {
  const auto folder = std::filesystem::temp_directory_path() / ("weft_spirv_" + std::to_string(platform::process_id()));
  const SpirvKernel made = saxpy().spirv();
  write_spirv(made, folder.string(), "saxpy");
  const auto spv = platform::read_file(folder / "saxpy.spv"), json = platform::read_file(folder / "saxpy.json");
  ASSERT_TRUE(spv && json);
  EXPECT_EQ(spv->size(), made.words.size() * 4);
  EXPECT_TRUE(reflection_from_json({reinterpret_cast<const char*>(json->data()), json->size()}) == made.reflection);
  expect_contains(error_of([&] { write_spirv(made, (folder / "saxpy.spv").string(), "inside"); }), "cannot be written");
  std::filesystem::remove_all(folder);
}

TEST(KernelSpirv, JsonThatDescribesNoKernelIsRefused) {
  const std::string good = to_json(saxpy().spirv({.names = {"x", "y", "a"}}).reflection);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error_of([&] { (void)reflection_from_json(text.replace(at, from.size(), to)); });
  };
  EXPECT_EQ(error_of([] { (void)reflection_from_json("{\"format\": "); }),
            "invalid argument: reflection: the text is no JSON");
  EXPECT_EQ(error_of([] { (void)reflection_from_json("[]"); }), "invalid argument: reflection: $.format is missing");
  EXPECT_EQ(with("\"weft-kernel\"", "\"other\""), "invalid argument: reflection: $.format is not \"weft-kernel\"");
  EXPECT_EQ(with("\"version\": 1,", "\"version\": 2,"),
            "invalid argument: reflection: $.version is 2; this reader knows 1");
  EXPECT_EQ(with("\"kind\": \"kernel\"", "\"kind\": \"shader\""), "invalid argument: reflection: $.kind is \"shader\"");
  EXPECT_EQ(with("\"name\": \"saxpy\"", "\"name\": 3"), "invalid argument: reflection: $.name is no string");
  EXPECT_EQ(with("\"dimensions\": 1,", "\"dimensions\": 5,"),
            "invalid argument: reflection: $.arguments[0].array.dimensions is not 1 to 4");
  EXPECT_EQ(with("\"element_bytes\": 4", "\"element_bytes\": 0"),
            "invalid argument: reflection: $.arguments[0].array.element_bytes is 0");
  EXPECT_EQ(with("\"alignment\": 4", "\"alignment\": 6"),
            "invalid argument: reflection: $.arguments[0].array.alignment is no power of two");
  EXPECT_EQ(with("\"offset\": 8", "\"offset\": -8"),
            "invalid argument: reflection: $.arguments[0].offset is no 32-bit number");
  EXPECT_EQ(with("\"offset\": 8", "\"offset\": 24"),
            "invalid argument: reflection: $.arguments[0].array.address.offset is not 24");
  EXPECT_EQ(with("\"bytes\": 12", "\"bytes\": 8"),
            "invalid argument: reflection: $.arguments[0].array is larger than its bytes in the block");
  EXPECT_EQ(with("\"offset\": 36", "\"offset\": 30"), "invalid argument: reflection: arguments overlap in the block");
  EXPECT_EQ(with("\"offset\": 36", "\"offset\": 4294967292"),
            "invalid argument: reflection: an argument stands outside the block");
  EXPECT_EQ(with("\"read\"", "\"look\""), "invalid argument: reflection: $.arguments[0].array.access[0] is \"look\"");
  EXPECT_EQ(with("\"role\": \"argument\"", "\"role\": \"first_thread\""),
            "invalid argument: reflection: $.arguments[0].bytes is not 4");
  EXPECT_EQ(with("\"fnv1a64\": \"", "\"fnv1a64\": \"x"),
            "invalid argument: reflection: $.spirv.fnv1a64 is no hexadecimal number");
  EXPECT_EQ(with("256,", "0,"),
            "invalid argument: reflection: $.workgroup_size is no list of three sizes, of which the last two are 1");
}

}  // namespace
}  // namespace weft
