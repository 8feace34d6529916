// The native device around kernels that stand in: memory, streams, graphs, moments, forks, faults.
#include "../../../backends/native/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>

#include "../../../backends/host/memory.h"
#include "../../../backends/native/faults.h"
#include "../../../backends/operations.h"
#include "../../../backends/reference/reference.h"
#include "../../../frontend/support/platform.h"
#include "stand_in.h"

#ifndef _WIN32
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace weft::backend::native {
namespace {

using test::arguments;
using test::count_units;
using test::StandIn;
using test::StandInSource;
using test::x_of;

std::unique_ptr<NativeDevice> open(int threads = 2) {
  NativeDevice::Options options;
  options.info.name = "cpu";
  options.info.adapter = "stand-in";
  options.info.subgroup_size = 8;
  options.threads = threads;
  return std::make_unique<NativeDevice>(options, std::make_unique<StandInSource>());
}

class NativeDeviceTest : public testing::Test {
 protected:
  template <class T>
  std::vector<T> read(const Allocation& a) {
    std::vector<T> values(a.bytes / sizeof(T));
    stream_->download(values.data(), a.address, a.bytes, 0);
    return values;
  }
  Allocation zeros(std::size_t count) {
    const Allocation a = device_->allocate(count * 4, MemoryKind::device);
    stream_->fill(a.address, a.bytes, 0);
    return a;
  }
  static std::string error_of(ErrorKind kind, const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }

  const std::unique_ptr<NativeDevice> device_ = open();
  const std::unique_ptr<Stream> stream_ = device_->create_stream();
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- Memory

TEST_F(NativeDeviceTest, aligns_memory) {
  for (const std::size_t bytes : {0, 1, 4, 1000, 4096, 1 << 20, 2 << 20, (5 << 20) + 3}) {
    const Allocation a = device_->allocate(bytes, MemoryKind::device);
    EXPECT_EQ(a.address % 256, 0u);
    EXPECT_EQ(a.bytes, bytes);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(a.host), a.address);
    if (bytes) a.host[bytes - 1] = std::byte(1);
    device_->free(a);
  }
}

#ifdef __linux__
// Whether the system may put the memory at an address into large pages, as it says.
bool may_have_large_pages(std::uint64_t address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2)
      inside = first <= address && address < last;
    else if (inside && line.starts_with("VmFlags:"))
      return contains(line, " hg");
  }
  return false;
}

TEST_F(NativeDeviceTest, has_large_pages_from_2_mib_on) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "the system has no large pages";
  const Allocation small = device_->allocate((2 << 20) - 1, MemoryKind::device),
                   large = device_->allocate(2 << 20, MemoryKind::device);
  EXPECT_FALSE(may_have_large_pages(small.address));
  EXPECT_TRUE(may_have_large_pages(large.address));
  EXPECT_EQ(large.address % (2 << 20), 0u);
  for (const Allocation& each : {small, large}) device_->free(each);
}
#endif

TEST_F(NativeDeviceTest, takes_large_blocks_again) {
  const Allocation a = device_->allocate(8 << 20, MemoryKind::device);
  device_->free(a);
  const Allocation b = device_->allocate((8 << 20) - 1000, MemoryKind::device);
#ifdef __linux__
  EXPECT_EQ(b.address, a.address);
#endif
  const Allocation c = device_->allocate(8 << 20, MemoryKind::device),
                   d = device_->allocate(3 << 20, MemoryKind::device);
  EXPECT_TRUE(c.address >= b.address + b.bytes || c.address + c.bytes <= b.address);
  for (const Allocation& each : {b, c, d}) {
    std::memset(each.host, 1, each.bytes);
    device_->free(each);
  }
  // More than is kept.
  std::vector<Allocation> many;
  for (int k = 0; k < 20; ++k) many.push_back(device_->allocate(32 << 20, MemoryKind::device));
  for (const Allocation& each : many) device_->free(each);
  EXPECT_THROW(device_->free(many[0]), Error);
}

TEST_F(NativeDeviceTest, has_a_limit) {
  const std::string text =
      error_of(ErrorKind::out_of_memory, [&] { device_->allocate(host_memory_limit() + 1, MemoryKind::device); });
  EXPECT_TRUE(contains(text, "device \"cpu\"")) << text;
}

TEST_F(NativeDeviceTest, wraps_memory_of_any_alignment) {
  std::vector<std::byte> memory(1000);
  for (const std::size_t off : {0, 1, 2, 3, 4, 17}) {
    const Allocation a = device_->wrap(memory.data() + off, 100);
    EXPECT_EQ(a.host, memory.data() + off);
    EXPECT_EQ(a.address, reinterpret_cast<std::uint64_t>(memory.data() + off));
    const std::vector<std::byte> data(100, std::byte(off + 1));
    stream_->upload(a.address, data.data(), 100);
    EXPECT_EQ(memory[off + 99], std::byte(off + 1));
    EXPECT_EQ(read<std::byte>(a), data);
    EXPECT_THROW(device_->wrap(memory.data() + off + 50, 100), Error);
    device_->free(a);
  }
}

// ---- Streams

TEST_F(NativeDeviceTest, copies_and_fills_of_any_size) {
  for (const std::size_t count : {1, 1000, 131071, 131072, 1 << 20, 3333333}) {
    std::vector<std::uint32_t> data(count);
    std::iota(data.begin(), data.end(), 5u);
    const Allocation a = device_->allocate(count * 4, MemoryKind::device), b = zeros(count);
    stream_->upload(a.address, data.data(), count * 4);
    stream_->copy(b.address, a.address, count * 4);
    EXPECT_EQ(read<std::uint32_t>(b), data);
    stream_->fill(b.address, count * 4, 0x01020304);
    EXPECT_EQ(read<std::uint32_t>(b), std::vector<std::uint32_t>(count, 0x01020304));
    EXPECT_EQ(read<std::uint32_t>(a), data);
    device_->free(a);
    device_->free(b);
  }
}

TEST_F(NativeDeviceTest, copies_within_memory) {
  const std::size_t count = 1 << 20;
  std::vector<std::uint32_t> data(count);
  std::iota(data.begin(), data.end(), 0u);
  const Allocation a = device_->allocate(count * 4, MemoryKind::device);
  for (const std::ptrdiff_t by : {1, 1000, -1, -1000}) {
    stream_->upload(a.address, data.data(), count * 4);
    const std::size_t from = by < 0 ? std::size_t(-by) : 0, to = by < 0 ? 0 : std::size_t(by), n = count - 1000;
    stream_->copy(a.address + to * 4, a.address + from * 4, n * 4);
    auto expected = data;
    std::memmove(expected.data() + to, expected.data() + from, n * 4);
    EXPECT_EQ(read<std::uint32_t>(a), expected) << by;
  }
}

TEST_F(NativeDeviceTest, refuses_what_is_not_its_memory) {
  std::vector<std::byte> outside(100);
  const auto address = reinterpret_cast<std::uint64_t>(outside.data());
  EXPECT_THROW(stream_->upload(address, outside.data(), 10), Error);
  EXPECT_THROW(stream_->fill(address / 4 * 4, 8, 0), Error);
  const Allocation a = zeros(10);
  EXPECT_THROW(stream_->copy(a.address, a.address + 4, 40), Error);
  EXPECT_THROW(stream_->fill(a.address + 1, 4, 0), Error);
  EXPECT_THROW(stream_->fill(a.address, 5, 0), Error);
}

TEST_F(NativeDeviceTest, runs_a_launch_before_the_call_returns) {
  const Allocation x = zeros(100000);
  const auto program = StandIn{.entry = count_units}.program();
  const Ticket before = stream_->submit();
  const Ticket ticket = stream_->launch(*program, {}, arguments(100000, x.host), {});
  EXPECT_GT(ticket, before);
  EXPECT_TRUE(stream_->done(ticket));
  EXPECT_EQ(reinterpret_cast<std::int32_t*>(x.host)[99999], 1);
  stream_->launch(*program, {0, 1, 1}, arguments(100000, x.host), {});
  EXPECT_EQ(read<std::int32_t>(x), std::vector<std::int32_t>(100000, 1)) << "a grid without workgroups";
}

TEST_F(NativeDeviceTest, reads_the_grid_from_memory) {
  const Allocation x = zeros(100), words = zeros(3);
  const auto program = StandIn{.entry = count_units}.program();
  Grid grid{1, 1, 1};
  grid.at = words.address;
  stream_->launch(*program, grid, arguments(100, x.host), {});
  EXPECT_EQ(read<std::int32_t>(x), std::vector<std::int32_t>(100, 0));
  stream_->fill(words.address, 12, 1);
  stream_->launch(*program, grid, arguments(100, x.host), {});
  EXPECT_EQ(read<std::int32_t>(x), std::vector<std::int32_t>(100, 1));
}

TEST_F(NativeDeviceTest, refuses_programs_of_other_devices) {
  const auto reference = open_reference();
  ir::Module module;
  module.name = "other";
  const auto program = reference->compile(module, {});
  const std::string text =
      error_of(ErrorKind::invalid_argument, [&] { stream_->launch(*program, {}, arguments(1, nullptr), {}); });
  EXPECT_TRUE(contains(text, "another device")) << text;
}

TEST_F(NativeDeviceTest, compiles_by_its_source) {
  ir::Module module;
  module.name = "source";
  module.args_bytes = StandIn::kExtents;
  const Allocation x = zeros(10);
  stream_->launch(*device_->compile(module, {}), {}, arguments(10, x.host), {});
  EXPECT_EQ(read<std::int32_t>(x), std::vector<std::int32_t>(10, 1));
  EXPECT_EQ(device_->stats().emitted, 1u);
  module.block = 2048;
  module.fixed_block = true;
  EXPECT_TRUE(contains(error_of(ErrorKind::unsupported, [&] { device_->compile(module, {}); }), "1024"));
}

// Operations of a device run one at a time, whatever streams and threads they come from.
TEST_F(NativeDeviceTest, serves_many_threads) {
  const std::size_t count = 50000;
  const Allocation x = zeros(count);
  const auto program = StandIn{.entry = count_units}.program();
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      const auto stream = device_->create_stream();
      for (int round = 0; round < 50; ++round) {
        stream->launch(*program, {}, arguments(count, x.host), {});
        const Allocation own = device_->allocate(3 << 20, MemoryKind::device);
        stream->fill(own.address, own.bytes, 3);
        device_->free(own);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read<std::int32_t>(x), std::vector<std::int32_t>(count, 200));
}

std::atomic<int> stage = 0;
void wait_between(const std::byte* args, const llvm::Worker*, std::int64_t, std::int64_t) {
  stage = 1;
  while (stage != 2) std::this_thread::yield();
  ++*x_of(args);
}

TEST_F(NativeDeviceTest, keeps_freed_memory_for_work_that_runs) {
  stage = 0;
  const Allocation x = zeros(1 << 20);
  const auto program = StandIn{.entry = wait_between}.program();
  std::thread other([&] {
    while (stage != 1) std::this_thread::yield();
    device_->free(x);
    EXPECT_NE(device_->allocate(4 << 20, MemoryKind::device).address, x.address);
    stage = 2;
  });
  stream_->launch(*program, {}, arguments(1, x.host), {});
  other.join();
  EXPECT_THROW(device_->free(x), Error);
}

TEST_F(NativeDeviceTest, replays_graphs) {
  const Allocation x = zeros(1000), y = zeros(1000);
  const auto program = StandIn{.entry = count_units}.program();
  CaptureStream capture(*device_);
  const std::vector<std::int32_t> sevens(1000, 7);
  capture.launch(*program, {}, arguments(1000, x.host), {});
  capture.copy(y.address, x.address, 4000);
  capture.launch(*program, {}, arguments(1000, y.host), {});
  capture.upload(x.address, sevens.data(), 40);
  const auto graph = device_->create_graph(capture.take());
  const auto moments = device_->create_timestamps(2);
  stream_->measure(moments.get(), 0);
  stream_->replay(*graph);
  EXPECT_TRUE(moments->read(0).has_value());
  EXPECT_EQ(read<std::int32_t>(y), std::vector<std::int32_t>(1000, 2));
  EXPECT_EQ(read<std::int32_t>(x)[9], 7);
  EXPECT_EQ(read<std::int32_t>(x)[10], 1);
  graph->patch(2, arguments(1000, x.host), {});
  stream_->replay(*graph);
  EXPECT_EQ(read<std::int32_t>(y)[500], 2);
  EXPECT_EQ(read<std::int32_t>(x)[500], 3);
}

TEST_F(NativeDeviceTest, measures_operations) {
  const Allocation x = zeros(100);
  const auto program = StandIn{.entry = count_units}.program();
  const auto moments = device_->create_timestamps(4);
  EXPECT_FALSE(stream_->measure(moments.get(), 0));
  stream_->launch(*program, {}, arguments(100, x.host), {});
  EXPECT_FALSE(stream_->measure(moments.get(), 2));
  EXPECT_TRUE(stream_->measure(moments.get(), 2));
  stream_->fill(x.address, 400, 0);
  stream_->fill(x.address, 400, 0);
  const auto first = moments->read(0), second = moments->read(2);
  ASSERT_TRUE(first && second);
  EXPECT_LE((*first)[0], (*first)[1]);
  EXPECT_LE((*first)[1], (*second)[0]);
  EXPECT_LE((*second)[0], (*second)[1]);
}

TEST_F(NativeDeviceTest, stands_beside_others) {
  const auto other = open(3);
  const auto stream = other->create_stream();
  const auto program = StandIn{.entry = count_units}.program();
  const Allocation x = zeros(100000), y = other->allocate(400000, MemoryKind::device);
  stream->fill(y.address, 400000, 0);
  std::thread thread([&] {
    for (int k = 0; k < 50; ++k) stream->launch(*program, {}, arguments(100000, y.host), {});
  });
  for (int k = 0; k < 50; ++k) stream_->launch(*program, {}, arguments(100000, x.host), {});
  thread.join();
  EXPECT_EQ(read<std::int32_t>(x), std::vector<std::int32_t>(100000, 50));
  EXPECT_TRUE(std::ranges::all_of(std::span(reinterpret_cast<std::int32_t*>(y.host), 100000),
                                  [](std::int32_t n) { return n == 50; }));
  EXPECT_THROW(stream_->copy(y.address, x.address, 400), Error);
}

// ---- Ends

TEST_F(NativeDeviceTest, refuses_launches_of_the_thread_that_ends_the_process) {
  const Allocation x = zeros(10);
  const auto program = StandIn{.entry = count_units}.program();
  device_->process_ends();
  const std::string text =
      error_of(ErrorKind::device_lost, [&] { stream_->launch(*program, {}, arguments(10, x.host), {}); });
  EXPECT_TRUE(contains(text, "after main() has returned")) << text;
  std::thread([&] { stream_->launch(*program, {}, arguments(10, x.host), {}); }).join();
  EXPECT_EQ(read<std::int32_t>(x), std::vector<std::int32_t>(10, 1)) << "reads are not refused";
}

#ifndef _WIN32
// The number of calls that do not say that the device has stayed with the parent. Threads of the parent are gone.
int calls_that_go_on(NativeDevice& device, Stream& stream, const Allocation& x) {
  const auto program = StandIn{.entry = count_units}.program();
  std::byte some[8] = {};
  int wrong = 0;
  for (const std::function<void()>& call : std::initializer_list<std::function<void()>>{
           [&] { stream.launch(*program, {}, arguments(100000, x.host), {}); }, [&] { stream.fill(x.address, 8, 0); },
           [&] { stream.copy(x.address, x.address + 8, 8); }, [&] { stream.upload(x.address, some, 8); },
           [&] { stream.download(some, x.address, 8, 0); }, [&] { stream.synchronize(); }, [&] { stream.wait(1); },
           [&] { stream.submit(); }, [&] { (void)stream.done(1); }, [&] { device.allocate(8, MemoryKind::device); },
           [&] { device.wrap(some, 8); }, [&] { device.create_stream(); }, [&] { device.create_timestamps(2); },
           [&] { device.compile(ir::Module{}, {}); }}) {
    try {
      call();
      ++wrong;
    } catch (const Error& e) {
      wrong += e.kind() != ErrorKind::device_lost || !contains(e.what(), "forked");
    }
  }
  device.free(x);
  return wrong;
}

TEST_F(NativeDeviceTest, stays_with_the_parent_of_a_fork) {
  const Allocation x = zeros(100000);
  const auto program = StandIn{.entry = count_units}.program();
  stream_->launch(*program, {}, arguments(100000, x.host), {});
  std::atomic<bool> over = false;
  // It holds the device's locks now and then, but none of the allocator, which sanitizers would lock for ever.
  std::thread other([&, args = arguments(100000, x.host), stream = device_->create_stream()] {
    while (!over) stream->launch(*program, {}, args, {});
  });
  for (int k = 0; k < 10; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a signal ends a child that hangs
      int code = device_->leave_behind() ? calls_that_go_on(*device_, *stream_, x) : 100;
      if (!left_behind_by_fork()) code += 50;
      _exit(code);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  over = true;
  other.join();
  EXPECT_FALSE(left_behind_by_fork());
  stream_->launch(*program, {}, arguments(100000, x.host), {});
}

void touch_nothing(const std::byte* args, const llvm::Worker*, std::int64_t begin, std::int64_t end) {
  const auto at = test::argument<std::uint64_t>(args, StandIn::kX);
  for (std::int64_t k = begin; k < end; ++k) *reinterpret_cast<volatile std::int32_t*>(at + 4 * std::uint64_t(k)) = 1;
}

void launch_into_nothing(std::uint32_t count) {
  name_faults();
  const auto device = open();
  const auto stream = device->create_stream();
  const auto program = StandIn{.entry = touch_nothing}.program();
  const Allocation x = device->allocate(64 << 20, MemoryKind::device);
  // Half of it is memory, so that the second host thread dies, or the first.
  stream->launch(*program, {}, arguments(count, x.host + (32 << 20)), {});
  stream->launch(*program, {}, arguments(count, reinterpret_cast<void*>(0x12340000)), {});
}

using NativeDeviceDeathTest = NativeDeviceTest;
TEST_F(NativeDeviceDeathTest, names_the_kernel_that_touches_nothing) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(launch_into_nothing(10),
               "weft: kernel 'stand-in' \\(stand_in.cpp:12\\) touches memory at address 0x12340000");
  EXPECT_DEATH(launch_into_nothing(1 << 20),
               "weft: kernel 'stand-in' .stand_in.cpp:12. touches memory at address 0x12[3-7]")
      << "the thread that begins in the middle may be the first";
}

// A runtime that was there before meets faults of its own all the time, and goes on after them.
std::atomic<int> faults_of_others = 0;
std::byte* page_of_others = nullptr;
constexpr std::size_t kPageOfOthers = 4096;
void mend_fault(int, siginfo_t* info, void*) {
  if (info->si_addr != page_of_others || mprotect(page_of_others, kPageOfOthers, PROT_READ | PROT_WRITE) != 0) _exit(3);
  ++faults_of_others;
}

TEST_F(NativeDeviceDeathTest, leaves_faults_that_are_no_kernels_to_the_handler_before) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto meet = [] {
    struct sigaction action {};
    action.sa_sigaction = mend_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    name_faults();
    page_of_others =
        static_cast<std::byte*>(mmap(nullptr, kPageOfOthers, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int k = 0; k < 3; ++k) {
      mprotect(page_of_others, kPageOfOthers, PROT_NONE);
      *const_cast<volatile std::byte*>(page_of_others) = std::byte(k);
    }
  };
  EXPECT_EXIT(
      {
        meet();
        std::fprintf(stderr, "%d faults went by", faults_of_others.load());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "3 faults went by");
  // The next fault of a kernel is still named.
  EXPECT_DEATH(
      {
        meet();
        launch_into_nothing(10);
      },
      "weft: kernel 'stand-in' .stand_in.cpp:12. touches memory at address 0x12340000");
}

void die_by_a_signal(const std::byte*, const llvm::Worker*, std::int64_t, std::int64_t) { kill(getpid(), SIGSEGV); }

// A signal that somebody sends is no fault of the kernel that runs, and ends the process all the same.
TEST_F(NativeDeviceDeathTest, blames_no_kernel_for_a_signal_that_is_sent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    dup2(ends[1], 2);
    name_faults();
    HostMemory memory("cpu", host_memory_limit());
    Launcher launcher(1, 8, memory);
    launcher.run(*StandIn{.entry = die_by_a_signal}.program(), {}, arguments(1, nullptr));
    for (;;) ::pause();  // until the signal comes
  }
  ::close(ends[1]);
  std::string text;
  char part[256];
  for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;) text.append(part, std::size_t(n));
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(contains(text, "touches memory")) << text;
  EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : contains(text, "AddressSanitizer")) << text;
}
#endif

}  // namespace
}  // namespace weft::backend::native
