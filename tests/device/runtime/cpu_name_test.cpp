// What the name "cpu" opens, with LLVM and without.
#include <weft/weft.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "../../../backends/native/native.h"
#include "../child_program.h"
#include "../device_test.h"

#ifndef _WIN32

using namespace weft;
using weft::test::ChildProgram;
using weft::test::ChildResult;
using weft::test::expect_contains;
using weft::test::run_child;

namespace {

int name_devices(const std::vector<std::string>&) {
  const Device cpu("cpu"), again("cpu"), separate = Device::open("cpu");
  std::printf("cpu is %s, %s, %s\n", cpu.name().c_str(), again.name().c_str(), separate.name().c_str());
  const Device best = Device::best();
  std::printf("best is %s\n", best.is_software() && best.name() == cpu.name() ? "cpu" : "another");
  Array<float> x = full<float>(cpu, 100, 2);
  launch(kernel("add one", [](Arr<float> x) { x[tid()] += 1; }), 100, x);
  std::printf("x is %g\n", x.at(99));
  return 0;
}
const ChildProgram kNameDevices("name devices", name_devices);

int times(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

bool has_gpu() {
  const std::vector<std::string> names = Device::list();
  return std::ranges::any_of(names, [](const std::string& name) { return !Device(name).is_software(); });
}

TEST(CpuName, is_the_native_device_where_there_is_an_llvm) {
  if (!backend::has_native()) GTEST_SKIP() << "there is no LLVM here";
  const ChildResult run = run_child("name devices", {});
  EXPECT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "cpu is cpu, cpu, cpu\n");
  expect_contains(run.output, "x is 3\n");
  if (!has_gpu()) expect_contains(run.output, "best is cpu\n");
  EXPECT_EQ(times(run.output, "slower"), 0) << run.output;
}

TEST(CpuName, is_software_vulkan_without_llvm_and_says_so_once) {
  const ChildResult run = run_child("name devices", {}, {"WEFT_LLVM=none"});
  EXPECT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "cpu is vulkan:");
  expect_contains(run.output, "x is 3\n");
  EXPECT_EQ(times(run.output, "weft: device \"cpu\" is vulkan:"), 1) << run.output;
  EXPECT_EQ(times(run.output, "which is slower: WEFT_LLVM is 'none'\n"), 1) << run.output;
}

// A folder without drivers stands in for a machine without Vulkan.
TEST(CpuName, is_the_interpreter_without_llvm_and_vulkan) {
  const ChildResult run = run_child("name devices", {},
                                    {"WEFT_LLVM=none", "VK_DRIVER_FILES=/nowhere/driver.json",
                                     "VK_ICD_FILENAMES=/nowhere/driver.json", "WEFT_VALIDATION=0"});
  EXPECT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "cpu is reference, reference, reference\n");
  expect_contains(run.output, "x is 3\n");
  EXPECT_EQ(times(run.output, "weft: device \"cpu\" is the interpreter, which is slower: "), 1) << run.output;
}

int open_and_say(const std::vector<std::string>&) {
  try {
    std::printf("cpu is %s\n", Device("cpu").name().c_str());
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
  }
  return 0;
}
const ChildProgram kOpenAndSay("open and say", open_and_say);

TEST(CpuName, is_no_device_with_a_number_of_threads_that_cannot_be) {
  if (!backend::has_native()) GTEST_SKIP() << "there is no LLVM here";
  for (const char* threads : {"0", "1025"})
    expect_contains(run_child("open and say", {}, {std::string("WEFT_THREADS=") + threads}).output,
                    std::string("WEFT_THREADS is ") + threads + "; a launch runs on 1 to 1024 threads of the host");
  expect_contains(run_child("open and say", {}, {"WEFT_THREADS=many"}).output,
                  "WEFT_THREADS is 'many'; a non-negative number is needed");
  EXPECT_EQ(run_child("open and say", {}, {"WEFT_THREADS=7"}).output, "cpu is cpu\n");
}

#ifdef __linux__
int count_threads(const std::vector<std::string>&) {
  namespace fs = std::filesystem;
  const auto count = [] { return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()); };
  const Device cpu("cpu");
  const auto before = count();
  Array<float> x = zeros<float>(cpu, 1 << 20);
  const auto k = kernel("long enough to share", [](Arr<float> x) {
    Float sum = x[tid()];
    for (auto i : range(200)) sum += sin(Float(i) + sum);
    x[tid()] = sum;
  });
  for (int i = 0; i < 3; ++i) launch(k, 1 << 20, x);
  std::printf("%d more threads\n", int(count() - before));
  return 0;
}
const ChildProgram kCountThreads("count threads", count_threads);

TEST(CpuName, is_a_device_with_the_number_of_threads_that_was_asked_for) {
  if (!backend::has_native()) GTEST_SKIP() << "there is no LLVM here";
  for (const int threads : {1, 2, 5})
    expect_contains(run_child("count threads", {}, {"WEFT_THREADS=" + std::to_string(threads)}).output,
                    std::to_string(threads - 1) + " more threads\n");
}
#endif

// Nothing stands in for a device that was asked for by mistake.
TEST(CpuName, is_no_device_with_a_level_lanes_or_library_that_cannot_be) {
  for (const char* variable : {"WEFT_CPU_LANES=5", "WEFT_CPU_LEVEL=x86-64-v9", "WEFT_LLVM=/nowhere/libLLVM.so"}) {
    const std::string text(variable), name = text.substr(0, text.find('=')), value = text.substr(name.size() + 1);
    const ChildResult run = run_child("open and say", {}, {variable});
    expect_contains(run.output, name + " is '" + value + "'");
    EXPECT_EQ(run.output.find("cpu is"), std::string::npos) << run.output;
  }
}

}  // namespace
#endif
