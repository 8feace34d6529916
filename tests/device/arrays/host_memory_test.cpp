// Memory of the host: under arrays, at any alignment; and where it runs out, because a caller asks for too much, or
// under a limit of address space, where drivers report success and map nothing.
#include <weft/runtime/dlpack.h>
#include <weft/weft.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "../../../backends/backend.h"
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

// ---- Memory that is the array's own

TEST_P(HostMemory, of_the_array_itself_is_assigned_and_read_as_it_was) {
  if (!device().wraps_host()) GTEST_SKIP() << "its memory is not the host's";
  // Long copies are made in pieces, by several threads.
  for (const std::int64_t n : {10, 3 << 20}) {
    Array<int> x = empty<int>(device(), n);
    const auto count = [&] {
      const std::span<int> elements = x.host_span();
      for (std::int64_t i = 0; i < n; ++i) elements[std::size_t(i)] = int(i);
    };
    const auto moved = [&](std::int64_t i, std::int64_t by) { return int(std::clamp<std::int64_t>(i + by, 0, n - 1)); };
    const auto expect = [&](std::int64_t by, std::int64_t begin, std::int64_t end, const char* what) {
      std::int64_t wrong = 0;
      const std::span<const int> elements = x.host_span();
      for (std::int64_t i = 0; i < n; ++i)
        wrong += elements[std::size_t(i)] != (i >= begin && i < end ? moved(i, by) : int(i));
      EXPECT_EQ(wrong, 0) << what << " of " << n;
    };
    const auto rest = std::size_t(n - 1);
    count();
    x.slice(1, n).assign(x.host_span().first(rest));
    expect(-1, 1, n, "assigned backwards");
    count();
    x.slice(0, n - 1).assign(x.host_span().last(rest));
    expect(1, 0, n - 1, "assigned forwards");
    count();
    x.slice(0, n - 1).copy_to(x.host_span().last(rest));
    expect(-1, 1, n, "read forwards");
    count();
    x.slice(1, n).copy_to(x.host_span().first(rest));
    expect(1, 0, n - 1, "read backwards");
    expect_contains(error_of([&] { (void)x.slice(1, n).copy_to_async(x.host_span().first(rest)); }),
                    "memory that partly is the array's own");
    x.slice(0, 3).copy_to_async(x.host_span().subspan(5, 3)).wait();
    EXPECT_EQ(x.at(5), 1);
  }
}

// ---- Alignment

// The bytes around an array must stay as they are.
constexpr std::size_t kMargin = 64, kElements = 37;

template <class T>
struct Wrapped {
  Wrapped(const Device& device, std::size_t off) : bytes(kMargin + off + kElements * sizeof(T) + kMargin), first(off) {
    // Vectors of bytes begin at multiples of 16 at least, and the kernels should see all alignments of a cache line.
    first += (kMargin - reinterpret_cast<std::uintptr_t>(bytes.data()) % kMargin) % kMargin;
    std::fill(bytes.begin(), bytes.end(), std::byte(0x5a));
    T value{};
    for (std::size_t k = 0; k < kElements; ++k) {
      value = T(value + T(1));
      std::memcpy(begin() + k * sizeof(T), &value, sizeof(T));
    }
    array = wrap(device, std::span<T>(reinterpret_cast<T*>(begin()), kElements));
  }
  std::byte* begin() { return bytes.data() + first; }
  bool margins_stay() const {
    for (std::size_t k = 0; k < bytes.size(); ++k)
      if ((k < first || k >= first + kElements * sizeof(T)) && bytes[k] != std::byte(0x5a)) return false;
    return true;
  }
  std::vector<std::byte> bytes;
  std::size_t first;
  Array<T> array;
};

// Sums of two arrays that begin at different places of a cache line, with all lanes of the last vector and without.
template <class T>
void add_at_every_place(const Device& device) {
  const auto add = kernel("add", [](Arr<T> y, Arr<const T> x) {
    Int i = tid();
    If (i % 5 != 3) {
      y[i] += x[i];
    }
    y[i] += x[i];
  });
  for (std::size_t off = 0; off < kMargin; off += alignof(T)) {
    Wrapped<T> x(device, off), y(device, kMargin - alignof(T) - off);
    EXPECT_EQ(x.array.host_span().data(), reinterpret_cast<T*>(x.begin())) << "it is no copy";
    launch(add, kElements, y.array, x.array);
    std::vector<T> expected;
    T value{};
    for (std::size_t k = 0; k < kElements; ++k) {
      value = T(value + T(1));
      expected.push_back(k % 5 != 3 ? T(value + value + value) : T(value + value));
    }
    ASSERT_EQ(y.array.to_vector(), expected) << "at " << off;
    ASSERT_EQ(std::memcmp(y.begin(), expected.data(), kElements * sizeof(T)), 0);
    y.array.slice(1, 30, 3).fill(value);
    for (std::size_t k = 1; k < 30; k += 3) expected[k] = value;
    ASSERT_EQ(y.array.clone().to_vector(), expected);
    y.array.copy_from(x.array);
    ASSERT_EQ(y.array.to_vector(), x.array.to_vector());
    ASSERT_TRUE(x.margins_stay() && y.margins_stay()) << "at " << off;
  }
}

TEST_P(HostMemory, of_any_alignment_is_used_as_it_lies) {
  if (!device().native().info().wraps_bytes) GTEST_SKIP() << "it begins at multiples of four bytes";
  add_at_every_place<std::uint8_t>(device());
  add_at_every_place<std::int16_t>(device());
  add_at_every_place<float>(device());
  add_at_every_place<double>(device());
  add_at_every_place<vec3>(device());
  add_at_every_place<vec4>(device());
}

TEST_P(HostMemory, of_any_alignment_takes_atomic_operations) {
  if (!device().wraps_host()) GTEST_SKIP() << "cannot use memory of the host";
  const auto count = kernel("count", [](Arr<float> sums, Arr<int> counts) {
    Int i = tid();
    atomic_add(sums[i % 3], 0.5f);
    atomic_add(counts[i % 7], 1);
  });
  for (std::size_t off = 0; off < kMargin; off += 4) {
    Wrapped<float> sums(device(), off);
    Wrapped<int> counts(device(), off);
    launch(count, 420, sums.array, counts.array);
    for (int k = 0; k < 3; ++k) ASSERT_EQ(sums.array.at(k), float(k + 1) + 70);
    for (int k = 0; k < 7; ++k) ASSERT_EQ(counts.array.at(k), k + 1 + 60);
  }
}

TEST_P(HostMemory, that_is_not_aligned_to_its_elements_is_refused) {
  if (!device().wraps_host()) GTEST_SKIP() << "cannot use memory of the host";
  alignas(64) std::byte memory[256] = {};
  const auto refused = [&]<class T>(std::size_t off, T) {
    expect_contains(error_of([&] { (void)wrap(device(), std::span<T>(reinterpret_cast<T*>(memory + off), 8)); }),
                    "elements of its type lie at multiples of " + std::to_string(alignof(T)) + " bytes");
  };
  for (const std::size_t off : {1, 2, 3, 5}) refused(off, float{});
  refused(2, vec3{});
  refused(4, double{});
  refused(1, half{});
}

// ---- Limits

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
  constexpr int kMany = 1 << 20;
  limit_addresses(300u << 20);
  std::vector<Array<float>> all;
  for (int round = 0; round < 3; ++round) {
    try {
      for (;;) {
        Array<float> x = empty<float>(device, kMany);
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
      if (x.at(0) != 3 || x.at(kMany - 1) != 2) return 4;
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

// Each thread keeps numbers in arrays of its own, which for a vector of threads take more than the limit.
const auto keep_much = kernel("keep much", [](Arr<int> x) {
  constexpr int kArrays = 128, kLength = 16384;  // 8 MiB for each thread
  Int i = tid(), place = i * 37;
  std::vector<Private<int>> all;
  for (int k = 0; k < kArrays; ++k) {
    all.push_back(private_array<int>(kLength));
    all.back()[place] = i + k;
  }
  Int sum = 0;
  for (int k = 0; k < kArrays; ++k) sum += all[std::size_t(k)][place];
  x[i] = sum;
});

int launch_without_memory(const std::vector<std::string>& arguments) {
  {
    // Compiles the kernel before there is a limit.
    const Device other = Device::open(arguments[0]);
    Array<int> x = zeros<int>(other, 8);
    launch(keep_much, 8, x);
    if (x.at(3) != 128 * 3 + 128 * 127 / 2) return 1;
  }
  const Device device = Device::open(arguments[0]);
  Array<int> x = zeros<int>(device, 8);
  Array<float> y = zeros<float>(device, 8);
  limit_addresses(25u << 20);  // less than a vector of four threads takes
  try {
    launch(keep_much, 8, x);
    return 2;
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    if (e.kind() != ErrorKind::out_of_memory) return 3;
  }
  launch(add_one, 8, y);
  return x.at(3) == 0 && y.at(3) == 1 ? 0 : 4;
}
const test::ChildProgram kLaunchWithoutMemory("launch without memory", launch_without_memory);

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

TEST_P(HostMemory, that_is_missing_for_private_arrays_is_an_error) {
  if (!kLimits) GTEST_SKIP() << "under AddressSanitizer";
  if (!on_host() || on_reference()) GTEST_SKIP() << "a driver's own affair, or none of the device's memory";
  const test::ChildResult ended = test::run_child("launch without memory", {device().name()});
  EXPECT_EQ(ended.code, 0) << ended.output;
  expect_contains(ended.output, "out of memory in kernel \"keep much\"");
  expect_contains(ended.output, "host_memory_test.cpp:");
  expect_contains(ended.output, "private and shared arrays take ");
}

TEST_P(HostMemory, that_is_missing_for_a_result_is_an_error) {
  if (!kLimits) GTEST_SKIP() << "under AddressSanitizer";
  const test::ChildResult ended = test::run_child("read without memory", {device().name()});
  EXPECT_EQ(ended.code, 0) << ended.output;
  expect_contains(ended.output, "out of memory: the host has no memory for 41943040 elements of 4 bytes");
}

#endif

}  // namespace
