// Work that another thread submits to the queue.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "../../../backends/operations.h"
#include "../../../backends/vulkan/commands/graph.h"
#include "../../../backends/vulkan/device.h"
#include "../../../backends/vulkan/queue/stream.h"
#include "../../../backends/vulkan/vulkan.h"
#include "../../../frontend/support/error.h"
#include "../../../frontend/support/platform.h"

namespace weft::backend {
namespace {

using ir::Access;
using vulkan::Instance;
using vulkan::Tuning;
using vulkan::VulkanDevice;
using vulkan::VulkanStream;

constexpr std::uint32_t kThreads = 256;
constexpr std::uint64_t kBytes = kThreads * sizeof(std::uint32_t);

/// A test with launches of x[tid] = x[tid] * 3 + by, whose results show their order and any missing launch, on a device
/// that is used like a GPU.
class Submissions : public testing::Test {
 protected:
  void SetUp() override {
    if (list_vulkan_devices().empty()) GTEST_SKIP() << "no Vulkan adapter";
    if (platform::processors() < 2) GTEST_SKIP() << "there is one processor";
    open({.submits_as_on_gpus = true});
    if (!device_->submitter().uses_thread()) GTEST_SKIP() << "WEFT_SUBMIT_THREAD says so";
  }
  void TearDown() override { close(); }

  void open(const Tuning& tuning) {
    close();
    const auto instance = Instance::get(platform::environment_flag("WEFT_VALIDATION", false));
    device_ = std::make_unique<VulkanDevice>(instance, instance->adapters().at(0), tuning);
    const auto step = kernel("step", [](Arr<int> x, Int by) { x[tid()] = x[tid()] * 3 + by; });
    module_ = step.trace();
    program_ = device_->compile(module_, ir::hash(module_));
    const auto busy = kernel("busy", [](Arr<int> x, Int rounds) {
      Int v = x[tid()];
      for (auto k : range(rounds)) v = v * 5 + k;
      x[tid()] = v;
    });
    busy_module_ = busy.trace();
    busy_program_ = device_->compile(busy_module_, ir::hash(busy_module_));
    stream_ = device_->create_stream();
    x_ = device_->allocate(kBytes, MemoryKind::device);
    other_ = device_->allocate(kBytes, MemoryKind::device);
    stream_->fill(x_.address, kBytes, 0);
    stream_->synchronize();
  }
  void close() {
    if (!device_) return;
    device_->free(x_);
    device_->free(other_);
    stream_.reset();
    program_.reset();
    busy_program_.reset();
    device_.reset();
  }

  static std::vector<std::byte> arguments(const ir::Module& module, const Allocation& x, std::uint32_t by) {
    std::vector<std::byte> block(module.args_bytes);
    std::memcpy(block.data(), &kThreads, 4);
    std::memcpy(block.data() + module.params[0].offset, &x.address, 8);
    std::memcpy(block.data() + module.params[0].offset + 8, &kThreads, 4);
    std::memcpy(block.data() + module.params[1].offset, &by, 4);
    return block;
  }
  std::vector<std::byte> arguments(std::uint32_t by) const { return arguments(module_, x_, by); }
  Ticket step(Stream& stream, std::uint32_t by) {
    const MemoryRange touched{x_.address, kBytes, Access::read | Access::write};
    expected_ = expected_ * 3 + by;
    return stream.launch(*program_, {kThreads / module_.block, 1, 1}, arguments(by), {&touched, 1});
  }
  /// Keeps the device busy for a while: for tens of milliseconds if it is a software device.
  Ticket keep_busy(Stream& stream) {
    const MemoryRange touched{other_.address, kBytes, Access::read | Access::write};
    Ticket last = 0;
    for (int k = 0; k < 4; ++k)
      last = stream.launch(*busy_program_, {kThreads / busy_module_.block, 1, 1},
                           arguments(busy_module_, other_, 60'000), {&touched, 1});
    return last;
  }
  Ticket steps(Stream& stream, int count) {
    Ticket last = 0;
    for (int k = 0; k < count; ++k) last = step(stream, std::uint32_t(k + 1));
    return last;
  }
  std::vector<std::uint32_t> read(Stream& stream, Ticket after) const {
    std::vector<std::uint32_t> values(kThreads);
    stream.download(values.data(), x_.address, kBytes, after);
    return values;
  }
  void expect_all(Stream& stream, Ticket after) const {
    ASSERT_EQ(read(stream, after), std::vector<std::uint32_t>(kThreads, expected_));
  }
  // Waits until the thread has made `count` submissions, which it does without anybody waiting for the work.
  bool thread_makes(std::uint64_t count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (device_->submitter().made_by_thread() < count) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  std::unique_ptr<VulkanDevice> device_;
  ir::Module module_, busy_module_;
  std::shared_ptr<Program> program_, busy_program_;
  std::unique_ptr<Stream> stream_;
  Allocation x_, other_;
  std::uint32_t expected_ = 0;
};

TEST_F(Submissions, OfManyOperationsAreMadeByAnotherThread) {
  const std::uint64_t before = device_->submitter().made_by_thread();
  const Ticket last =
      steps(*stream_, 8 * VulkanStream::kFew);  // some batches are of more than a few, however the work is divided
  stream_->submit();
  EXPECT_TRUE(thread_makes(before + 1));
  expect_all(*stream_, last);
}

TEST_F(Submissions, OfFewOperationsForAnIdleDeviceAreMadeAtOnce) {
  for (int k = 0; k < 20; ++k) {
    const Ticket last = steps(*stream_, 4);
    stream_->submit();
    expect_all(*stream_, last);
  }
  EXPECT_EQ(device_->submitter().made_by_thread(), 0u);
}

// A wait does not rely on the thread, which may not come.
TEST_F(Submissions, AreMadeByWhoWaitsForThem) {
  device_->submitter().hold_thread(true);
  const std::uint64_t before = device_->submitter().made_by_thread();
  const Ticket early = steps(*stream_, 150), last = steps(*stream_, 150);
  EXPECT_FALSE(stream_->done(early)) << "it is in the list";
  stream_->wait(early);
  expect_all(*stream_, last);
  EXPECT_EQ(device_->submitter().made_by_thread(), before);
  // The thread makes the rest when it comes.
  const Ticket more = steps(*stream_, 300);
  stream_->submit();
  device_->submitter().hold_thread(false);
  EXPECT_TRUE(thread_makes(before + 1));
  expect_all(*stream_, more);
}

// The device is not idle then, and batches of few operations would cost more than they bring.
TEST_F(Submissions, StayLargeWhereTheHostWaitsForOlderOnes) {
  Ticket before = 0;
  std::uint64_t fewest = ~0ull;
  for (int k = 0; k < 8; ++k) {
    const std::uint64_t place = device_->submitter().last_place();
    keep_busy(*stream_);
    const Ticket last = steps(*stream_, 60);
    stream_->submit();
    fewest = std::min(fewest, device_->submitter().last_place() - place);
    stream_->wait(before);
    before = last;
  }
  EXPECT_EQ(fewest, 1u) << "of all, as a machine that does much else may be late for some";
  expect_all(*stream_, before);
}

TEST_F(Submissions, KeepTheirOrderAmongStreams) {
  const auto other = device_->create_stream();
  Ticket last = 0;
  for (int k = 0; k < 60; ++k) {
    Stream& stream = k % 2 ? *other : *stream_;
    last = steps(stream, 1 + k * 7 % 200);
    stream.start(last);  // work of the other stream comes after it
  }
  expect_all(*other, last);
}

// Compares with a model on the host: launches, fills, copies, uploads, downloads and graphs on three streams, each of
// which is given work that comes after that of the one before.
TEST_F(Submissions, GiveWhatTheirOperationsGiveInOrder) {
  std::mt19937 random(11);
  const auto at_most = [&](std::uint32_t n) { return random() % n; };
  const std::unique_ptr<Stream> others[] = {device_->create_stream(), device_->create_stream()};
  Stream* const streams[] = {stream_.get(), others[0].get(), others[1].get()};
  CaptureStream captured(*device_);
  for (int k = 0; k < 10; ++k) step(captured, 5);
  expected_ = 0;
  captured.operations().list[4].patched = true;
  const auto graph = device_->create_graph(captured.take());
  Allocation copy = device_->allocate(kBytes, MemoryKind::device);
  std::uint32_t copied = 0;
  std::array<std::uint32_t, 10> by;
  by.fill(5);
  stream_->fill(copy.address, kBytes, 0);
  Ticket last = stream_->submit();
  Stream* before = stream_.get();
  for (int k = 0; k < 400; ++k) {
    if (at_most(8) == 0) {
      expect_all(*before, last);
      if (HasFatalFailure()) break;
    }
    Stream& stream = *streams[at_most(3)];
    if (&stream != before) before->start(last);
    before = &stream;
    switch (at_most(9)) {
      case 0:
        expected_ = at_most(1000);
        last = stream.fill(x_.address, kBytes, expected_);
        break;
      case 1:
        last = stream.copy(copy.address, x_.address, kBytes);
        copied = expected_;
        break;
      case 2:
        last = stream.copy(x_.address, copy.address, kBytes);
        expected_ = copied;
        break;
      case 3: {
        expected_ = at_most(1000);
        const std::vector<std::uint32_t> values(kThreads, expected_);
        last = stream.upload(x_.address, values.data(), kBytes);
        break;
      }
      case 4:
        if (at_most(3) == 0) {
          // One launch may change as captured; for others the graph is recorded anew while the old one may still wait.
          const std::size_t which = at_most(3) ? 4 : at_most(10);
          const MemoryRange touched{x_.address, kBytes, Access::read | Access::write};
          by[which] = at_most(100);
          graph->patch(which, arguments(by[which]), {&touched, 1});
        }
        last = stream.replay(*graph);
        for (const std::uint32_t k : by) expected_ = expected_ * 3 + k;
        break;
      case 6: {  // a graph that is destroyed while it waits
        CaptureStream twice(*device_);
        steps(twice, 2);
        last = stream.replay(*device_->create_graph(twice.take()));
        break;
      }
      case 5: {  // memory that is freed while its use waits for its turn
        const Allocation between = device_->allocate(kBytes, MemoryKind::device);
        stream.copy(between.address, x_.address, kBytes);
        stream.fill(x_.address, kBytes, 7);
        last = stream.copy(x_.address, between.address, kBytes);
        device_->free(between);
        break;
      }
      default: last = steps(stream, 1 + int(at_most(300))); break;
    }
    if (at_most(10) == 0) stream.submit();
    if (at_most(20) == 0) stream.wait(last);
  }
  expect_all(*before, last);
  EXPECT_GT(device_->submitter().made_by_thread(), 0u);
  device_->free(copy);
}

TEST_F(Submissions, ReachTheQueueWhenTheirStreamEnds) {
  const Ticket last = steps(*stream_, 500);
  EXPECT_GT(last, 0u);
  stream_.reset();
  const auto next = device_->create_stream();
  expect_all(*next, next->submit());
}

TEST_F(Submissions, ComeFromSeveralThreads) {
  constexpr int kThreadsOfHost = 4, kRounds = 12;
  std::vector<std::thread> threads;
  std::array<std::vector<std::uint32_t>, kThreadsOfHost> results;
  for (int t = 0; t < kThreadsOfHost; ++t)
    threads.emplace_back([&, t] {
      const auto stream = device_->create_stream();
      const Allocation x = device_->allocate(kBytes, MemoryKind::device);
      const MemoryRange touched{x.address, kBytes, Access::read | Access::write};
      Ticket last = stream->fill(x.address, kBytes, 0);
      for (int k = 0; k < kRounds; ++k) {
        for (int n = 0; n < 150; ++n)
          last = stream->launch(*program_, {kThreads / module_.block, 1, 1},
                                arguments(module_, x, std::uint32_t(n + t)), {&touched, 1});
        if (k % 4 == t) stream->wait(last);
        if (k % 5 == t) stream->submit();
      }
      results[std::size_t(t)].resize(kThreads);
      stream->download(results[std::size_t(t)].data(), x.address, kBytes, last);
      device_->free(x);
    });
  for (std::thread& t : threads) t.join();
  for (int t = 0; t < kThreadsOfHost; ++t) {
    std::uint32_t expected = 0;
    for (int k = 0; k < kRounds; ++k)
      for (int n = 0; n < 150; ++n) expected = expected * 3 + std::uint32_t(n + t);
    EXPECT_EQ(results[std::size_t(t)], std::vector<std::uint32_t>(kThreads, expected)) << t;
  }
}

// The queue waits for a semaphore, with work before and after it that the thread submits.
TEST_F(Submissions, StandBeforeAndBehindSemaphores) {
  auto& vulkan = static_cast<VulkanStream&>(*stream_);
  const vulkan::Point waits = device_->semaphores().take(), signals = device_->semaphores().take();
  const std::uint64_t value = signals.value + 1;
  steps(vulkan, 200);
  vulkan.await(waits.semaphore, waits.value + 1);
  const Ticket last = steps(vulkan, 500);
  vulkan.signal(signals.semaphore, value);
  const Ticket behind = steps(vulkan, 300);
  vulkan.submit();
  EXPECT_FALSE(device_->wait_for(signals.semaphore, value, 20'000'000));
  EXPECT_FALSE(vulkan.done(last));
  device_->signals().signal(waits.semaphore, waits.value + 1);
  EXPECT_TRUE(device_->wait_for(signals.semaphore, value));
  vulkan.wait(last);
  expect_all(vulkan, behind);
  device_->semaphores().give({waits.semaphore, waits.value + 1});
  device_->semaphores().give({signals.semaphore, value});
}

// A batch that was handed over may fail later, and then no wait waits for it.
TEST_F(Submissions, ThatFailLoseTheDevice) {
  open({.most_when_idle = VulkanStream::kMost, .submits_as_on_gpus = true});  // no batch is of a few operations
  const Ticket last = steps(*stream_, VulkanStream::kMost);
  const auto lost = [](auto call) {
    try {
      call();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::device_lost) << e.what();
      EXPECT_NE(std::string(e.what()).find("vkQueueSubmit"), std::string::npos) << e.what();
      return true;
    }
    return false;
  };
  stream_->wait(last);
  const std::uint64_t before = device_->submitter().made_by_thread();
  device_->submitter().lose_next();
  const auto start = std::chrono::steady_clock::now();
  lost([&] { steps(*stream_, VulkanStream::kMost); });  // if the thread is quick, the last of them throws
  EXPECT_TRUE(thread_makes(before + 1));
  const auto end = start + std::chrono::seconds(20);
  while (!device_->lost() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(lost([&] { stream_->submit(); }));
  EXPECT_TRUE(lost([&] { stream_->wait(last); }));
  EXPECT_TRUE(lost([&] { stream_->synchronize(); }));
  stream_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "somebody waited for what is lost";
}

// A batch fails while the host waits for an earlier one, and then the host waits for it: here for room for uploads.
TEST_F(Submissions, ThatFailMeanwhileEndTheWaitForThem) {
  open({.most_when_idle = VulkanStream::kMost, .submits_as_on_gpus = true});
  const std::vector<std::byte> data(VulkanStream::kRingBytes / 32);
  const Allocation to = device_->allocate(data.size(), MemoryKind::device);
  keep_busy(*stream_);
  stream_->submit();
  device_->submitter().lose_next();
  step(*stream_, 1);  // an open batch keeps uploads from being written in place at once
  EXPECT_THROW(
      {
        for (int k = 0; k < 40; ++k) stream_->upload(to.address, data.data(), data.size());
      },
      Error);
  device_->free(to);
}

// The host waits for a batch before it has failed, and whichever thread finds the failure ends the wait.
TEST_F(Submissions, ThatFailEndTheWaitForThem) {
  open({.most_when_idle = VulkanStream::kMost, .submits_as_on_gpus = true});
  device_->submitter().lose_next();
  EXPECT_THROW(
      {
        for (int k = 0; k < 40; ++k) steps(*stream_, 100);
        stream_->synchronize();
      },
      Error);
}

TEST_F(Submissions, ByOneThreadAreMadeAtOnce) {
  device_->submitter().use_thread(false);
  expect_all(*stream_, steps(*stream_, 1000));
  EXPECT_EQ(device_->submitter().made_by_thread(), 0u);
}

}  // namespace
}  // namespace weft::backend
