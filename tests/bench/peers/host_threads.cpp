// How jobs begin and end: a counter that the threads wait for, and one of those that still work.
#include "host_threads.h"

#include <algorithm>

namespace weft::bench {

namespace {
constexpr int kLooks = 200'000;  // for the next job or the end of one, some hundred microseconds
}

HostThreads::HostThreads(int threads) {
  for (int k = 1; k < threads; ++k) threads_.emplace_back([this] { serve(); });
}

HostThreads::~HostThreads() {
  ends_ = true;
  ++job_;
  job_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void HostThreads::take_chunks() {
  for (std::int64_t begin = next_.fetch_add(chunk_); begin < n_; begin = next_.fetch_add(chunk_))
    (*work_)(begin, std::min(begin + chunk_, n_));
}

void HostThreads::serve() {
  for (std::uint32_t seen = 0;;) {
    for (int k = 0; k < kLooks && job_.load() == seen; ++k) {
    }
    job_.wait(seen);
    seen = job_.load();
    if (ends_) return;
    take_chunks();
    if (--at_work_ == 0) at_work_.notify_one();
  }
}

void HostThreads::run(std::int64_t n, std::int64_t chunk, const Work& work) {
  work_ = &work;
  n_ = n;
  chunk_ = chunk;
  next_ = 0;
  at_work_ = std::uint32_t(threads_.size());
  ++job_;
  job_.notify_all();
  take_chunks();
  for (int k = 0; k < kLooks && at_work_.load() != 0; ++k) {
  }
  for (std::uint32_t left = at_work_.load(); left != 0; left = at_work_.load()) at_work_.wait(left);
}

}  // namespace weft::bench
