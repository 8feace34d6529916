// Memory of the host that runs out: because a caller asks for too much, or under a limit of address space, where
// drivers report success and map nothing.
#include <weft/runtime/dlpack.h>
#include <weft/weft.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "../../../runtime/core/view.h"
#include "../child_program.h"
#include "../device_test.h"

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(HostMemory);

// An array with more elements than any vector can have. For such a number the C++ library throws an exception that is
// not an Error, as it does when memory is missing.
template <class T>
class Endless : public Array<T> {
 public:
  Endless(const Device& device, int log2) : Array<T>(zeros<T>(device, 4)) { this->shape_ = {std::int64_t(1) << log2}; }
};

TEST_P(HostMemory, that_no_vector_can_have_is_refused) {
  expect_contains(error_of([&] { (void)Endless<float>(device(), 62).to_vector(); }),
                  "out of memory: the host has no memory for 4611686018427387904 elements of 4 bytes");
  expect_contains(error_of([&] { (void)Endless<vec3>(device(), 60).to_vector(); }), "elements of 12 bytes");
  expect_contains(error_of([&] { (void)detail::View(Endless<double>(device(), 60)).bytes(); }),
                  "the host has no memory for");
  const Endless<float> array(device(), 61);
  expect_contains(error_of([&] { (void)to_dlpack(array, {.copy = true}); }), "the host has no memory for");
}

#ifdef __linux__

/// Limits the process to this many more bytes of addresses.
void limit_addresses(std::uint64_t more) {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  const rlim_t most = pages * std::uint64_t(sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
}

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });

int fill_addresses(const std::vector<std::string>& arguments) {
  const Device device(arguments[0]);
  Array<float> warm = zeros<float>(device, 1000);
  launch(add_one, 1000, warm);
  if (warm.at(0) != 1) return 1;
  constexpr int kElements = 1 << 20;
  limit_addresses(300u << 20);
  std::vector<Array<float>> all;
  for (int round = 0; round < 3; ++round) {
    try {
      for (;;) {
        Array<float> x = empty<float>(device, kElements);
        x.fill(2);
        launch(add_one, 1000, x);
        all.push_back(x);
      }
    } catch (const Error& e) {
      std::printf("%s\n", e.what());
      if (e.kind() != ErrorKind::out_of_memory) return 2;
    }
    if (all.size() < 4) return 3;
    for (const Array<float>& x : all)
      if (x.at(0) != 3 || x.at(kElements - 1) != 2) return 4;
    all.resize(all.size() / 2);
    device.synchronize();
  }
  return 0;
}
const test::ChildProgram kFillAddresses("fill addresses", fill_addresses);

int read_without_memory(const std::vector<std::string>& arguments) {
  const Device device(arguments[0]);
  const Array<float> x = full<float>(device, 40 << 20, 2);
  if (x.at(1) != 2) return 1;
  limit_addresses(100u << 20);
  try {
    (void)x.to_vector();
    return 2;
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    return e.kind() == ErrorKind::out_of_memory ? 0 : 3;
  }
}
const test::ChildProgram kReadWithoutMemory("read without memory", read_without_memory);

// Under AddressSanitizer, its own memory would run out first.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kLimits = false;
#else
constexpr bool kLimits = true;
#endif

TEST_P(HostMemory, that_a_driver_only_claims_to_have_is_not_handed_out) {
  if (!kLimits) GTEST_SKIP() << "under AddressSanitizer; see also VulkanLies";
  const test::ChildResult ended = test::run_child("fill addresses", {device().name()});
  EXPECT_EQ(ended.code, 0) << ended.output;
  expect_contains(ended.output, "out of memory: ");
}

TEST_P(HostMemory, that_is_missing_for_a_result_is_an_error) {
  if (!kLimits) GTEST_SKIP() << "under AddressSanitizer";
  const test::ChildResult ended = test::run_child("read without memory", {device().name()});
  EXPECT_EQ(ended.code, 0) << ended.output;
  expect_contains(ended.output, "out of memory: the host has no memory for 41943040 elements of 4 bytes");
}

#endif

}  // namespace
