// Launches on the native device: each thread of a grid runs once, alone or shared, with memory of its host thread.
#include "../../../backends/native/launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "../../../backends/host/memory.h"
#include "stand_in.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace weft::backend::native {
namespace {

using llvm::Split;
using llvm::Worker;
using test::argument;
using test::arguments;
using test::count_units;
using test::StandIn;
using test::x_of;

/// The memory of the device whose launches these are.
HostMemory& memory() {
  static HostMemory all("cpu", host_memory_limit());
  return all;
}

std::vector<std::int32_t> ones(std::size_t n, std::size_t all) {
  std::vector<std::int32_t> expected(all);
  std::fill_n(expected.begin(), n, 1);
  return expected;
}

TEST(NativeLaunch, runs_each_unit_once) {
  for (const int threads : {1, 2, 5}) {
    Launcher launcher(threads, 8, memory());
    for (const std::uint32_t count : {0u, 1u, 63u, 64u, 65u, 1000u, 4096u, 100003u}) {
      for (const auto& [split, units] : {std::pair{Split::threads, count}, std::pair{Split::groups, (count + 31) / 32},
                                         std::pair{Split::rows, (count + 6) / 7}}) {
        const auto program = StandIn{.entry = count_units, .split = split, .block = 32, .rank = 2}.program();
        for (int round = 0; round < 3; ++round) {  // the first does not know what the kernel costs
          std::vector<std::int32_t> x(units + 10);
          launcher.run(*program, {}, arguments(count, x.data(), 0, {7}));
          EXPECT_EQ(x, ones(units, x.size())) << count << " threads, " << units << " units";
        }
      }
    }
  }
}

TEST(NativeLaunch, finds_the_last_extent_of_tid) {
  const auto row_at = [](std::uint32_t rank, bool wide) {
    ir::Interface kernel;
    kernel.tid_rank = rank;
    kernel.tid_offset = 40;
    kernel.wide = wide;
    return test::StandInProgram(kernel, count_units).row_at;
  };
  EXPECT_EQ(row_at(0, false), 0u);
  EXPECT_EQ(row_at(1, false), 0u);
  EXPECT_EQ(row_at(2, false), 40u);
  EXPECT_EQ(row_at(3, false), 52u);
  EXPECT_EQ(row_at(2, true), 48u);
}

std::atomic<int> unaligned_begins = 0;
void count_and_look(const std::byte* args, const Worker* worker, std::int64_t begin, std::int64_t end) {
  if (begin % 64 != 0) ++unaligned_begins;
  count_units(args, worker, begin, end);
}

// Parts are of workgroups, whatever the units are that the kernel is split by.
TEST(NativeLaunch, runs_each_unit_in_one_of_the_parts) {
  Launcher launcher(2, 8, memory());
  const std::uint32_t count = 996, block = 10, wide = 5, all = 20;  // a part begins at a multiple of 50
  for (const auto& [split, units] :
       {std::pair{Split::threads, 996u}, std::pair{Split::groups, 100u}, std::pair{Split::rows, 143u}}) {
    const bool by_threads = split == Split::threads;
    const auto program =
        StandIn{.entry = by_threads ? count_and_look : count_units, .split = split, .block = block, .rank = 2}
            .program();
    for (const std::uint32_t rows : {1u, 3u, 20u}) {
      std::vector<std::int32_t> x(units + 10);
      for (std::uint32_t first = 0; first < all; first += rows)
        launcher.run(*program, {.x = wide, .y = std::min(rows, all - first), .part = true, .first_y = first},
                     arguments(count, x.data(), 0, {7}));
      EXPECT_EQ(x, ones(units, x.size()));
    }
  }
  EXPECT_EQ(unaligned_begins, 0);
}

void count_threads(const std::byte* args, const Worker*, std::int64_t begin, std::int64_t end) {
  for (std::int64_t k = begin; k < end; ++k) x_of(args)[k] += 1000;
}

// Vectors that lie in rows are of no use where rows are short.
TEST(NativeLaunch, takes_short_rows_together) {
  Launcher launcher(2, 8, memory());
  const auto program =
      StandIn{.entry = count_units, .split = Split::rows, .rank = 2, .by_threads = count_threads}.program();
  const auto run = [&](std::uint32_t rows, std::uint32_t row) {
    std::vector<std::int32_t> x(rows * row + 1);
    launcher.run(*program, {}, arguments(rows * row, x.data(), 0, {row}));
    return x;
  };
  EXPECT_EQ(run(100, 32), ones(100, 3201)) << "four vectors a row";
  std::vector<std::int32_t> together(3101, 1000);
  together.back() = 0;
  EXPECT_EQ(run(100, 31), together);
  EXPECT_EQ(run(1, 7), ones(1, 8)) << "no other row is there";
}

// Where the units of the launches below ran.
std::mutex seen_mutex;
std::set<std::thread::id> seen;
void see_thread() {
  const std::lock_guard lock(seen_mutex);
  seen.insert(std::this_thread::get_id());
}

// Takes n nanoseconds for each 64 threads.
void take_time(const std::byte* args, const Worker*, std::int64_t begin, std::int64_t end) {
  see_thread();
  const double ns = double(argument<std::int32_t>(args, StandIn::kN)) * double(end - begin) / 64;
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::int64_t(ns));
  while (std::chrono::steady_clock::now() < until) {
  }
  for (std::int64_t k = begin; k < end; ++k) ++x_of(args)[k];
}

class NativeLaunchTimes : public testing::Test {
 protected:
  std::set<std::thread::id> threads_of_launch(const DeviceProgram& program, std::uint32_t count, int ns) {
    std::vector<std::int32_t> x(count + 10);
    seen.clear();
    launcher_.run(program, {}, arguments(count, x.data(), ns));
    EXPECT_EQ(x, ones(count, x.size()));
    return seen;
  }
  // Launches of some microseconds stay here, though not those after which the system ran another program for a while.
  void expect_to_stay_here(const DeviceProgram& program, std::uint32_t count, int ns) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    int in_a_row = 0;
    while (in_a_row < 20 && std::chrono::steady_clock::now() < until)
      in_a_row = threads_of_launch(program, count, ns) == here_ ? in_a_row + 1 : 0;
    EXPECT_EQ(in_a_row, 20);
  }
  // A long launch is shared, though not each time on a machine that gives the other thread no time meanwhile.
  static void expect_to_be_shared(const std::function<std::set<std::thread::id>()>& launch) {
    std::size_t threads = 1;
    for (int round = 0; round < 20 && threads == 1; ++round) threads = launch().size();
    EXPECT_EQ(threads, 2u);
  }
  Launcher launcher_{2, 8, memory()};
  const std::set<std::thread::id> here_{std::this_thread::get_id()};
};

TEST_F(NativeLaunchTimes, keep_what_is_short_on_the_calling_thread) {
  const auto program = StandIn{.entry = take_time}.program();
  expect_to_stay_here(*program, 640, 100);
  expect_to_stay_here(*program, 640, 500);
}

TEST_F(NativeLaunchTimes, share_what_is_long) {
  // 10 ms, and nothing is known.
  expect_to_be_shared([&] { return threads_of_launch(*StandIn{.entry = take_time}.program(), 64 * 1000, 10000); });
  const auto program = StandIn{.entry = take_time}.program();
  threads_of_launch(*program, 64 * 1000, 10000);
  expect_to_be_shared([&] { return threads_of_launch(*program, 64 * 1000, 10000); });
  // Few threads that nobody knows either, each of which takes long.
  expect_to_be_shared([&] { return threads_of_launch(*StandIn{.entry = take_time}.program(), 1000, 1000000); });
  // So that a few expensive units are shared, too.
  expect_to_be_shared([&] { return threads_of_launch(*program, 64 * 16, 2000000); });
}

// The same kernel takes longer with other arguments, and does not stay on one thread for it.
TEST_F(NativeLaunchTimes, follow_the_arguments) {
  const auto program = StandIn{.entry = take_time}.program();
  expect_to_be_shared([&] {
    expect_to_stay_here(*program, 640, 500);
    return threads_of_launch(*program, 640, 10000000);  // 100 ms
  });
  expect_to_stay_here(*program, 640, 500);
}

// The time of a launch is looked at before its end even if those before took next to no time.
TEST_F(NativeLaunchTimes, share_what_takes_much_longer_than_before) {
  const auto program = StandIn{.entry = take_time}.program();
  for (const std::uint32_t count : {64u * 100, 640u})
    expect_to_be_shared([&] {
      expect_to_stay_here(*program, count, 1);
      return threads_of_launch(*program, count, int(6.4e9 / count));  // 100 ms
    });
}

// Takes a millisecond for each row.
void take_time_by_rows(const std::byte* args, const Worker*, std::int64_t begin, std::int64_t end) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(end - begin);
  while (std::chrono::steady_clock::now() < until) {
  }
  count_units(args, nullptr, begin, end);
}

TEST_F(NativeLaunchTimes, split_few_rows) {
  const StandIn kernel{.entry = take_time_by_rows, .split = Split::rows, .rank = 2, .by_threads = count_threads};
  const std::uint32_t rows = 3, row = 6400;
  for (const int threads : {1, 2, 12}) {
    Launcher launcher(threads, 8, memory());
    const auto program = kernel.program();
    for (int round = 0; round < 3; ++round) {
      std::vector<std::int32_t> x(rows * row);
      launcher.run(*program, {}, arguments(rows * row, x.data(), 0, {row}));
      const bool shared = threads == 12 && round > 0;  // what it costs is known
      if (shared) {                                    // a part keeps the code of the parts before
        std::vector<std::int32_t> y(rows * row);
        launcher.run(*program, {.x = rows * row / 256, .part = true}, arguments(rows * row, y.data(), 0, {row}));
        EXPECT_EQ(y, ones(rows, rows * row));
      }
      EXPECT_EQ(x, shared ? std::vector<std::int32_t>(rows * row, 1000) : ones(rows, rows * row));
    }
  }
}

// Takes 100 milliseconds for 640 threads.
void take_time_by_threads(const std::byte* args, const Worker*, std::int64_t begin, std::int64_t end) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds((end - begin) * 100000000 / 640);
  while (std::chrono::steady_clock::now() < until) {
  }
  count_threads(args, nullptr, begin, end);
}

TEST_F(NativeLaunchTimes, go_back_to_rows_where_threads_take_long) {
  const StandIn kernel{.entry = take_time_by_rows, .split = Split::rows, .rank = 2, .by_threads = take_time_by_threads};
  const auto program = kernel.program();
  const std::uint32_t row = 640;
  Launcher launcher(4, 8, memory());
  for (int round = 0; round < 4; ++round) {
    std::vector<std::int32_t> x(row);
    launcher.run(*program, {}, arguments(row, x.data(), 0, {row}));
    EXPECT_EQ(x, round == 1 ? std::vector<std::int32_t>(row, 1000) : ones(1, row)) << round;
  }
}

TEST_F(NativeLaunchTimes, do_not_take_one_thread_for_a_sixty_fourth_of_a_vector) {
  const auto program = StandIn{.entry = take_time}.program();
  for (int k = 0; k < 20; ++k) threads_of_launch(*program, 1, 64);
  EXPECT_LT(program->body().cost(), 40);
}

// Each host thread writes its arena and reads it again after a while.
std::atomic<int> foreign = 0, unaligned = 0;
void use_arena(const std::byte* args, const Worker* worker, std::int64_t begin, std::int64_t end) {
  see_thread();
  if (reinterpret_cast<std::uintptr_t>(worker->arena) % 64 != 0) ++unaligned;
  const auto bytes = std::size_t(argument<std::int32_t>(args, StandIn::kN));
  for (std::int64_t k = begin; k < end; ++k) {
    std::memset(worker->arena, int(k % 100), bytes);
    for (int wait = 0; wait < 100; ++wait) std::atomic_signal_fence(std::memory_order_seq_cst);
    for (std::size_t at = 0; at < bytes; ++at)
      if (worker->arena[at] != std::byte(k % 100)) ++foreign;
    ++x_of(args)[k];
  }
}

TEST(NativeLaunch, lends_memory_to_each_host_thread) {
  for (const int threads : {3, 8}) {
    Launcher launcher(threads, 8, memory());
    seen.clear();
    for (const std::uint32_t bytes : {64u, 1000u, 100u, 20000u}) {
      const auto program =
          StandIn{.entry = use_arena, .split = Split::groups, .block = 1, .arena_bytes = bytes}.program();
      std::vector<std::int32_t> x(2010);
      launcher.run(*program, {}, arguments(2000, x.data(), std::int32_t(bytes)));
      EXPECT_EQ(x, ones(2000, x.size()));
    }
    EXPECT_EQ(foreign, 0);
    EXPECT_EQ(unaligned, 0);
    EXPECT_GT(seen.size(), 1u);
  }
}

// A small launch wants two threads, but any that are awake from a large one may take part.
TEST(NativeLaunch, has_memory_for_threads_that_are_still_awake) {
  Launcher launcher(8, 8, memory());
  for (int round = 0; round < 20; ++round) {
    const auto large = StandIn{.entry = take_time}.program();
    std::vector<std::int32_t> x(64 * 400 + 10);
    launcher.run(*large, {}, arguments(64 * 400, x.data(), 10000));
    const auto bytes = std::uint32_t(64 + 4096 * round);  // more than each had before
    const auto small = StandIn{.entry = use_arena, .split = Split::groups, .block = 1, .arena_bytes = bytes}.program();
    std::vector<std::int32_t> y(60);
    for (int again = 0; again < 3; ++again) launcher.run(*small, {}, arguments(50, y.data(), std::int32_t(bytes)));
    EXPECT_EQ(y[49], 3);
  }
  EXPECT_EQ(foreign, 0);
}

// Memory for one host thread is there, and for all of them it is not.
TEST(NativeLaunch, misses_memory_before_any_thread_has_run) {
  Launcher launcher(8, 8, memory());
  const auto program = StandIn{.entry = count_units, .arena_bytes = host_memory_limit() / 8 + 1}.program();
  std::vector<std::int32_t> x(100000);
  EXPECT_THROW(launcher.run(*program, {}, arguments(100000, x.data())), Error);
  EXPECT_EQ(x, std::vector<std::int32_t>(100000));
}

// A host grants more than it has, and ends the process that uses it.
TEST(NativeLaunch, takes_memory_for_private_arrays_from_what_arrays_have_left) {
  constexpr std::uint64_t kHalf = 1 << 20;
  HostMemory small("cpu", 2 * kHalf);
  Launcher launcher(2, 8, small);
  const auto program = StandIn{.entry = count_units, .arena_bytes = kHalf / 2}.program();
  std::vector<std::int32_t> x(100);
  const Allocation most = small.allocate(kHalf + 1);
  EXPECT_THROW(launcher.run(*program, {}, arguments(100, x.data())), Error);
  EXPECT_EQ(x, std::vector<std::int32_t>(100));
  small.free(most);
  launcher.run(*program, {}, arguments(100, x.data()));
  EXPECT_EQ(x, ones(100, 100));
  EXPECT_THROW(small.allocate(kHalf + 1), Error);
  small.free(small.allocate(kHalf));
}

TEST(NativeLaunch, gives_back_memory_that_is_not_needed_any_more) {
  const auto large = StandIn{.entry = count_units, .arena_bytes = 1 << 20}.program(),
             small = StandIn{.entry = count_units, .arena_bytes = 1 << 10}.program(),
             none = StandIn{.entry = count_units}.program();
  const auto launch = [](Arenas& arenas, const DeviceProgram& program, std::uint32_t times) {
    for (std::uint32_t k = 0; k < times; ++k) {
      arenas.prepare(program, program.body());
      ASSERT_GE(arenas.bytes(), program.body().arena_bytes);
      for (int thread = 0; thread < 3; ++thread)  // sanitizers tell what is not there
        if (program.body().arena_bytes) arenas.worker(thread).arena[program.body().arena_bytes - 1] = std::byte(1);
    }
  };
  for (const auto& later : {small, none}) {
    Arenas arenas(3, memory());
    launch(arenas, *large, 1);
    launch(arenas, *later, Arenas::kPeriod / 2);
    EXPECT_GE(arenas.bytes(), 1u << 20) << "a kernel that runs now and then keeps its memory";
    launch(arenas, *large, 1);
    launch(arenas, *later, 2 * Arenas::kPeriod);
    EXPECT_LT(arenas.bytes(), 1u << 14);
    launch(arenas, *large, 2 * Arenas::kPeriod);
    EXPECT_GE(arenas.bytes(), 1u << 20);
  }
}

TEST(NativeLaunch, says_what_memory_is_missing) {
  Launcher launcher(2, 8, memory());
  for (const std::uint64_t bytes : {std::uint64_t(1) << 40, ~std::uint64_t(0)}) {
    const auto program = StandIn{.entry = use_arena, .arena_bytes = bytes}.program();
    try {
      launcher.run(*program, {}, arguments(1, nullptr));
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
      EXPECT_EQ(e.kernel(), "stand-in");
      EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos) << e.what();
    }
  }
}

TEST(NativeLaunch, refuses_a_block_that_is_too_short) {
  Launcher launcher(1, 8, memory());
  const auto program = StandIn{.entry = count_units}.program();
  const auto block = arguments(1, nullptr);
  EXPECT_THROW(launcher.run(*program, {}, std::span(block).first(19)), Error);
}

std::atomic<int> misplaced = 0;
void look_at_args(const std::byte* args, const Worker*, std::int64_t begin, std::int64_t end) {
  if (reinterpret_cast<std::uintptr_t>(args) % 16 != 0) ++misplaced;
  count_units(args, nullptr, begin, end);
}

TEST(NativeLaunch, aligns_arguments) {
  Launcher launcher(2, 8, memory());
  const auto program = StandIn{.entry = look_at_args}.program();
  for (std::size_t off = 0; off < 17; ++off) {
    std::vector<std::int32_t> x(110);
    const auto block = arguments(100, x.data());
    std::vector<std::byte> moved(block.size() + off);
    std::ranges::copy(block, moved.begin() + std::ptrdiff_t(off));
    launcher.run(*program, {}, std::span(moved).subspan(off));
    EXPECT_EQ(x, ones(100, x.size()));
  }
  EXPECT_EQ(misplaced, 0);
}

#if defined(__SSE__)
std::atomic<int> other_mode = 0;
void look_at_mode(const std::byte* args, const Worker* worker, std::int64_t begin, std::int64_t end) {
  constexpr unsigned kFlags = 0x3f;  // of what has happened
  if ((_mm_getcsr() & ~kFlags) != 0x1f80) ++other_mode;
  take_time(args, worker, begin, end);
  volatile float zero = 0;
  volatile float infinite = 1 / zero;  // sets a flag, which the caller is not to see
  (void)infinite;
}

TEST(NativeLaunch, has_a_float_mode_of_its_own) {
  Launcher launcher(2, 8, memory());
  const auto program = StandIn{.entry = look_at_mode}.program();
  const unsigned before = _mm_getcsr();
  for (const std::uint32_t count : {10u, 64000u}) {
    _mm_setcsr(0xffc0);  // rounds toward zero, without subnormals
    std::vector<std::int32_t> x(count);
    launcher.run(*program, {}, arguments(count, x.data(), 1000));
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after, 0xffc0u);
  }
  EXPECT_EQ(other_mode, 0);
}
#endif

}  // namespace
}  // namespace weft::backend::native
