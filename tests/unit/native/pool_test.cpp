// The pool of host threads: every unit runs once, whoever runs it, and nobody waits for threads that sleep.
#include "../../../backends/native/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace weft::backend::native {
namespace {

using Clock = std::chrono::steady_clock;
using Counts = std::vector<std::atomic<int>>;

bool all_are(const Counts& counts, int expected) {
  return std::ranges::all_of(counts, [&](const auto& n) { return n.load() == expected; });
}

void count_units(Pool& pool, Counts& counts, std::int64_t chunk, int most) {
  std::atomic<int> wrong = 0;
  const auto units = std::int64_t(counts.size());
  pool.run(units, chunk, most, [&](int thread, std::int64_t begin, std::int64_t end) noexcept {
    if (thread < 0 || thread >= pool.threads() || begin < 0 || begin >= end || end > units) ++wrong;
    for (std::int64_t k = begin; k < end; ++k) ++counts[std::size_t(k)];
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, runs_each_unit_once) {
  for (const int threads : {1, 2, 3, 7}) {
    Pool pool(threads);
    for (const std::size_t units : {1, 2, 7, 64, 1000, 70001}) {
      for (const std::int64_t chunk : {1, 3, 64, 100000}) {
        for (const int most : {1, 2, threads, threads + 5}) {
          Counts counts(units);
          count_units(pool, counts, chunk, most);
          EXPECT_TRUE(all_are(counts, 1)) << threads << " threads, " << units << " units in chunks of " << chunk;
        }
      }
    }
  }
}

TEST(Pool, runs_nothing_for_no_units) {
  Pool pool(2);
  bool ran = false;
  for (const std::int64_t units : {0, -5})
    pool.run(units, 1, 2, [&](int, std::int64_t, std::int64_t) noexcept { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_EQ(pool.started(), 1);
}

// More chunks than a part can count become larger chunks.
TEST(Pool, takes_more_units_than_it_has_numbers_of_chunks) {
  Pool pool(2);
  std::atomic<std::int64_t> sum = 0, calls = 0, elsewhere = 0;
  const std::int64_t units = (1ll << 40) + 1;
  pool.run(units, 64, 2, [&](int, std::int64_t begin, std::int64_t end) noexcept {
    sum += end - begin;
    ++calls;
    if (begin % 64 != 0) ++elsewhere;
  });
  EXPECT_EQ(sum, units);
  EXPECT_EQ(elsewhere, 0) << "chunks begin at multiples";
  EXPECT_LE(calls, 2 * 0xffff);
  EXPECT_GT(calls, 0xffff);
}

TEST(Pool, starts_threads_when_it_needs_them) {
  Pool pool(4);
  const auto nothing = [](int, std::int64_t, std::int64_t) noexcept {};
  pool.run(100, 100, 4, nothing);
  EXPECT_EQ(pool.started(), 1);
  pool.run(100, 1, 2, nothing);
  EXPECT_EQ(pool.started(), 2);
  pool.run(3, 1, 4, nothing);
  EXPECT_EQ(pool.started(), 3);
  pool.run(100, 1, 4, nothing);
  EXPECT_EQ(pool.started(), 4);
}

// A unit that waits for another one ends only if a second thread takes part.
TEST(Pool, runs_units_at_the_same_time) {
  Pool pool(2);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> here = 0;
    std::set<int> numbers;
    std::mutex mutex;
    pool.run(2, 1, 2, [&](int thread, std::int64_t, std::int64_t) noexcept {
      ++here;
      while (here < 2) std::this_thread::yield();
      const std::lock_guard lock(mutex);
      numbers.insert(thread);
    });
    EXPECT_EQ(numbers, (std::set<int>{0, 1}));
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // its thread sleeps
  }
}

// Each thread has one chunk at a time, so that it can have memory of its own.
TEST(Pool, gives_each_thread_one_chunk_at_a_time) {
  Pool pool(4);
  std::vector<std::atomic<int>> busy(4);
  std::atomic<int> twice = 0;
  for (int round = 0; round < 100; ++round)
    pool.run(200, 1, 4, [&](int thread, std::int64_t, std::int64_t) noexcept {
      if (busy[std::size_t(thread)]++ != 0) ++twice;
      --busy[std::size_t(thread)];
    });
  EXPECT_EQ(twice, 0);
}

TEST(Pool, gives_others_what_a_slow_thread_has_not_begun) {
  Pool pool(2);
  std::atomic<int> quick = 0;
  int done_before = 0;
  const auto begin = Clock::now();
  std::vector<int> by(1000);
  pool.run(1000, 1, 2, [&](int thread, std::int64_t unit, std::int64_t) noexcept {
    by[std::size_t(unit)] = thread;
    if (unit == 0) done_before = quick;
    if (unit == 0)
      while (quick < 999 && Clock::now() - begin < std::chrono::seconds(20)) std::this_thread::yield();
    else
      ++quick;
  });
  EXPECT_EQ(quick, 999);
  // On a busy machine the thread of the slow unit may come late, when others have been run.
  if (done_before == 0)
    EXPECT_EQ(std::ranges::count(by, by[0]), 1) << "the thread of the slow unit ran others meanwhile";
}

TEST(Pool, runs_jobs_of_many_threads) {
  Pool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      std::mt19937 random(unsigned(caller) + 1);
      for (int round = 0; round < 500; ++round) {
        Counts counts(1 + random() % 300);
        count_units(pool, counts, 1 + random() % 20, 1 + int(random() % 3));
        if (!all_are(counts, 1)) ++wrong;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, runs_the_job_of_a_job_on_its_own_thread) {
  Pool pool(3);
  Counts counts(3000);
  std::atomic<int> elsewhere = 0;
  pool.run(30, 1, 3, [&](int outer, std::int64_t unit, std::int64_t) noexcept {
    const auto here = std::this_thread::get_id();
    pool.run(100, 7, 3, [&](int inner, std::int64_t begin, std::int64_t end) noexcept {
      if (inner != outer || std::this_thread::get_id() != here) ++elsewhere;
      for (std::int64_t k = begin; k < end; ++k) ++counts[std::size_t(unit * 100 + k)];
    });
  });
  EXPECT_EQ(elsewhere, 0);
  EXPECT_TRUE(all_are(counts, 1));
}

TEST(Pool, uses_another_pool_in_a_job) {
  Pool outer(2), inner(2);
  Counts counts(2000);
  outer.run(20, 1, 2, [&](int, std::int64_t unit, std::int64_t) noexcept {
    inner.run(100, 1, 2, [&](int, std::int64_t k, std::int64_t) noexcept { ++counts[std::size_t(unit * 100 + k)]; });
  });
  EXPECT_TRUE(all_are(counts, 1));
}

// Threads that sleep, that look for work and that are late from the job before are all met with pauses of many lengths.
TEST(Pool, loses_nothing_between_jobs) {
  Pool pool(4);
  std::mt19937 random(7);
  std::int64_t failed = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::int64_t units = 1 + std::int64_t(random() % 64);
    std::atomic<std::int64_t> sum = 0;
    pool.run(units, 1 + std::int64_t(random() % 4), 4, [&](int, std::int64_t begin, std::int64_t end) noexcept {
      for (std::int64_t k = begin; k < end; ++k) sum += k + 1;
    });
    failed += sum != units * (units + 1) / 2;
    if (random() % 2 == 0) continue;
    const auto until = Clock::now() + std::chrono::microseconds(random() % 80);
    while (Clock::now() < until) {
    }
  }
  EXPECT_EQ(failed, 0);
}

TEST(Pool, ends_at_any_moment) {
  for (int round = 0; round < 50; ++round) {
    Pool pool(3);
    if (round % 5 == 0) continue;
    std::atomic<int> n = 0;
    for (int k = 0; k < round % 4; ++k) pool.run(8, 1, 3, [&](int, std::int64_t, std::int64_t) noexcept { ++n; });
    EXPECT_EQ(n, 8 * (round % 4));
  }
}

#if defined(__SSE__)
TEST(Pool, has_threads_with_the_float_mode_of_kernels) {
  constexpr unsigned kUsual = 0x1f80, kOther = 0xffc0;  // the latter rounds toward zero, without subnormals
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kOther);
  {
    Pool pool(2);
    std::atomic<int> here = 0;
    std::atomic<unsigned> mode = 0;
    pool.run(2, 1, 2, [&](int thread, std::int64_t, std::int64_t) noexcept {
      ++here;
      while (here < 2) std::this_thread::yield();
      if (thread == 1) mode = _mm_getcsr();
    });
    EXPECT_EQ(mode, kUsual);
    EXPECT_EQ(_mm_getcsr(), kOther) << "the caller's mode is its own";
  }
  _mm_setcsr(before);
}
#endif

}  // namespace
}  // namespace weft::backend::native
