// Kernels that touch memory which is not there: the process ends, and says in which kernel if it is asked to.
#include <weft/weft.h>

#include <cstdio>
#include <span>

#include "../../../backends/native/native.h"
#include "../child_program.h"
#include "../device_test.h"

#ifndef _WIN32
#include <sys/mman.h>

using namespace weft;
using weft::test::ChildProgram;
using weft::test::ChildResult;
using weft::test::expect_contains;
using weft::test::run_child;

namespace {

constexpr int kLine = __LINE__ + 1;  // which messages name
const auto touch = kernel("touch", [](Arr<int> x) { x[tid()] += 1; });

// Addresses to which nothing can be written, and of which nothing can be read.
std::span<int> nothing() {
  constexpr std::size_t kBytes = 1 << 20;
  void* const pages = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) std::perror("mmap");
  return {static_cast<int*>(pages), kBytes / sizeof(int)};
}

// In the arguments, the number of threads; with "host" the host touches the memory itself, after a kernel has run.
int touch_nothing(const std::vector<std::string>& arguments) {
  const Device device("cpu");
  Array<int> good = zeros<int>(device, 1000);
  launch(touch, 1000, good);
  std::printf("good is %d\n", good.at(999));
  const std::span<int> memory = nothing();
  std::printf("memory is at 0x%llx\n",
              static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(memory.data())));
  std::fflush(stdout);
  if (arguments[0] == "host") {
    *const_cast<volatile int*>(memory.data()) = 1;
    return 0;
  }
  Array<int> x = wrap(device, memory);
  launch(touch, std::stoll(arguments[0]), x);
  return 0;
}
const ChildProgram kTouchNothing("touch nothing", touch_nothing);

class KernelFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!backend::has_native()) GTEST_SKIP() << "there is no LLVM here";
  }
};

ChildResult touches(const char* how, const char* asked) {
  const ChildResult ended = run_child("touch nothing", {how}, {asked, "WEFT_THREADS=3"});
  EXPECT_NE(ended.code, 0) << ended.output;
  expect_contains(ended.output, "good is 1\n");
  return ended;
}

TEST_F(KernelFaults, are_told_with_kernel_line_and_address) {
  for (const char* threads : {"1", "100000"}) {
    const ChildResult ended = touches(threads, "WEFT_CATCH_FAULTS=1");
    expect_contains(ended.output, "weft: kernel 'touch' (");
    expect_contains(ended.output, "kernel_fault_test.cpp:" + std::to_string(kLine) + ") touches memory at address 0x");
    expect_contains(ended.output, "which is not there; WEFT_DEBUG=1 checks every index of an array\n");
  }
  const std::string text = touches("1", "WEFT_CATCH_FAULTS=1").output;
  const std::size_t at = text.find("memory is at ");
  ASSERT_NE(at, text.npos);
  const std::string address = text.substr(at + 13, text.find('\n', at) - at - 13);
  expect_contains(text, "touches memory at address " + address + ", which");
}

TEST_F(KernelFaults, are_not_told_unless_that_is_asked_for) {
  const ChildResult ended = touches("100", "WEFT_CATCH_FAULTS=0");
  EXPECT_EQ(ended.output.find("weft: kernel"), std::string::npos) << ended.output;
}

TEST_F(KernelFaults, are_not_those_of_the_host) {
  const ChildResult ended = touches("host", "WEFT_CATCH_FAULTS=1");
  EXPECT_EQ(ended.output.find("weft: kernel"), std::string::npos) << ended.output;
}

}  // namespace
#endif
