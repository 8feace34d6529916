// How jobs are shared out, and how threads of the pool wait for them.
#include "pool.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "../../frontend/support/platform.h"

namespace weft::backend::native {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostChunks = 0xffff;  ///< of one part

// The pool whose job the calling thread is working on, and its number there.
thread_local const Pool* working_for = nullptr;
thread_local int working_as = 0;

// Looks for some microseconds whether a condition holds. Waking a thread that sleeps takes 10 to 50 us.
template <class F>
bool holds_soon(const F& condition, std::chrono::microseconds most) {
  constexpr int kLooks = 32;
  Clock::time_point end{};
  for (int k = 1;; ++k) {
    if (condition()) return true;
    platform::pause();
    if (k % kLooks != 0) continue;
    const Clock::time_point now = Clock::now();
    if (k == kLooks) end = now + most;
    if (now >= end) return false;
  }
}

constexpr std::uint64_t pack(std::uint32_t job, std::uint64_t first, std::uint64_t end) {
  return std::uint64_t(job) << 32 | end << 16 | first;
}

}  // namespace

Pool::Pool(int threads) : threads_(std::max(1, threads)), parts_(std::make_unique<Part[]>(std::size_t(threads_))) {
  helpers_.reserve(std::size_t(threads_ - 1));  // a thread that runs must find a place
}

Pool::~Pool() {
  stop_.store(true);
  job_.fetch_add(1);
  job_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Pool::run(std::int64_t units, std::int64_t chunk, int most, Work work, void* what) {
  if (units <= 0) return;
  const bool nested = working_for == this;
  most = std::min(most, threads_);
  if (nested || most <= 1 || units <= chunk) return work(what, nested ? working_as : 0, 0, units);
  const std::lock_guard turn(turn_);
  publish(units, chunk, most, work, what);
  call_threads(std::min<int>(most, int(std::min<std::uint32_t>(chunks_.load(std::memory_order_relaxed), 1 << 16))) - 1);
  const Pool* const outer = std::exchange(working_for, this);
  const int outer_number = std::exchange(working_as, 0);
  take_part(0, job_.load(std::memory_order_relaxed));
  working_for = outer;
  working_as = outer_number;
  wait_for_begun();
}

// Cuts the job into parts and lets threads see it.
void Pool::publish(std::int64_t units, std::int64_t chunk, int parts, Work work, void* what) {
  // Chunks are too many for the numbers of a part: each becomes several.
  const std::int64_t most = std::int64_t(kMostChunks) * parts;
  chunk *= ((units - 1) / chunk) / most + 1;
  const auto chunks = std::uint32_t((units - 1) / chunk + 1);
  const std::uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  work_.store(work, std::memory_order_relaxed);
  what_.store(what, std::memory_order_relaxed);
  units_.store(units, std::memory_order_relaxed);
  chunk_.store(chunk, std::memory_order_relaxed);
  chunks_.store(chunks, std::memory_order_relaxed);
  num_parts_.store(parts, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  // Part k has the chunks from k * chunks / parts on, counted from there.
  for (std::uint64_t k = 0, begin = 0; k < std::uint64_t(parts); ++k) {
    const std::uint64_t end = (k + 1) * chunks / std::uint64_t(parts);
    parts_[k].left.store(pack(job, 0, end - begin), std::memory_order_release);
    begin = end;
  }
  job_.store(job);
}

// Wakes as many sleeping threads as the job wants beside those that are awake, and starts those that are missing. The
// calling thread wakes two, and each of these two more.
void Pool::call_threads(int wanted) {
  int started = started_.load(std::memory_order_relaxed);
  const int wake = std::min(started, wanted) - awake_.load();
  to_wake_.store(wake, std::memory_order_relaxed);
  if (wake > 0) ring();
  for (; started < wanted; ++started) {
    awake_.fetch_add(1);
    try {
      helpers_.push_back(platform::helper_thread("weft-worker", [this, started] { live(started + 1); }));
    } catch (const std::exception&) {
      awake_.fetch_sub(1);
      return;  // the system has no more threads, or no memory for one; those that there are do the work
    }
    started_.store(started + 1, std::memory_order_relaxed);
  }
}

void Pool::ring() {
  for (int k = 0; k < 2 && to_wake_.fetch_sub(1, std::memory_order_relaxed) > 0; ++k) job_.notify_one();
}

void Pool::live(int thread) {
  const platform::FloatMode mode;
  working_for = this;
  working_as = thread;
  std::uint32_t seen = 0;
  for (;;) {
    seen = next_job(seen);
    if (stop_.load()) return;
    take_part(thread, seen);
  }
}

std::uint32_t Pool::next_job(std::uint32_t seen) {
  const auto come = [&] { return job_.load(std::memory_order_acquire) != seen; };
  if (!holds_soon(come, std::chrono::microseconds(30))) {
    awake_.fetch_sub(1);
    job_.wait(seen);
    awake_.fetch_add(1);
    ring();
  }
  return job_.load(std::memory_order_acquire);
}

// Takes a chunk of a part; kMostChunks if none is left of that job.
std::uint32_t Pool::take(Part& part, std::uint32_t job, Side side) {
  std::uint64_t left = part.left.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t first = left & 0xffff, end = left >> 16 & 0xffff;
    if (left >> 32 != job || first == end) return kMostChunks;
    const bool front = side == Side::front;
    const std::uint64_t after = front ? pack(job, first + 1, end) : pack(job, first, end - 1);
    if (part.left.compare_exchange_weak(left, after, std::memory_order_acq_rel, std::memory_order_acquire))
      return std::uint32_t(front ? first : end - 1);
  }
}

void Pool::take_part(int thread, std::uint32_t job) {
  const Work work = work_.load(std::memory_order_relaxed);
  void* const what = what_.load(std::memory_order_relaxed);
  const std::int64_t units = units_.load(std::memory_order_relaxed), chunk = chunk_.load(std::memory_order_relaxed);
  const std::uint64_t chunks = chunks_.load(std::memory_order_relaxed);
  const int parts = num_parts_.load(std::memory_order_relaxed);
  std::uint32_t done = 0;
  for (int k = 0; k < parts; ++k) {
    const int number = (thread + k) % parts;
    const std::uint64_t begin = std::uint64_t(number) * chunks / std::uint64_t(parts);
    const Side side = number == thread ? Side::front : Side::back;
    for (;;) {
      const std::uint32_t taken = take(parts_[std::size_t(number)], job, side);
      if (taken == kMostChunks) break;
      const std::int64_t first = std::int64_t(begin + taken) * chunk;
      work(what, thread, first, std::min(first + chunk, units));
      ++done;
    }
  }
  // The job cannot end before its chunks are counted, so that `chunks` belongs to it if there are any.
  if (done != 0 && finished_.fetch_add(done, std::memory_order_acq_rel) + done == chunks) finished_.notify_one();
}

// Waits for the chunks that other threads have begun; none is left that was not.
void Pool::wait_for_begun() {
  const std::uint32_t chunks = chunks_.load(std::memory_order_relaxed);
  const auto all = [&] { return finished_.load(std::memory_order_acquire) == chunks; };
  if (holds_soon(all, std::chrono::microseconds(100))) return;
  for (std::uint32_t now = finished_.load(std::memory_order_acquire); now != chunks;
       now = finished_.load(std::memory_order_acquire))
    finished_.wait(now);
}

}  // namespace weft::backend::native
