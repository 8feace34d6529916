// Several streams of a device: the order of their work, events, and refusals.
#include "../../../backends/vulkan/queue/stream.h"

#include <weft/algorithms.h>
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/runtime/profile.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "../watched_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

WATCHED_TEST(Streams);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto copy = kernel("copy", [](Arr<const float> from, Arr<float> to) { to[tid()] = from[tid()]; });
/// A kernel that takes long enough for a missing wait to be noticed.
const auto slow = kernel("slow", [](Arr<float> x, Int rounds) {
  Float v = x[tid()];
  for (auto k : range(rounds)) v = v * 0.5f + Float(k % 2) * 0.5f;
  x[tid()] = select(v >= 0, 7.f, v);
});

/// Turns the dispatch budget off during its life, so that no launch is measured for it.
struct NoBudget {
  explicit NoBudget(const Device& device) : device(device), before(device.dispatch_budget()) {
    device.set_dispatch_budget(0);
  }
  NoBudget(const NoBudget&) = delete;
  ~NoBudget() { device.set_dispatch_budget(before); }
  const Device device;
  const double before;
};

// The ticket of the last work that the stream was given.
backend::Ticket last_ticket(backend::Stream& stream) {
  backend::Ticket ticket = 0;
  for (;; ++ticket) try {
      stream.done(ticket + 1);
    } catch (const Error&) {
      return ticket;
    }
}

TEST_P(Streams, are_ordered_by_the_arrays_that_they_share) {
  const int n = on_reference() ? 16 : 4096, rounds = on_reference() ? 10 : 20000;
  const Stream a = device().create_stream(), b = device().create_stream();
  for (int k = 0; k < 20; ++k) {
    Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n);
    launch(a, slow, n, x, rounds);
    launch(b, copy, n, x, y);  // reads what a writes
    launch(a, add_one, n, x);  // writes what b reads
    launch(add_one, n, y);     // the default stream, after b
    EXPECT_EQ(y.at(n - 1), 8) << k;
    EXPECT_EQ(x.at(n - 1), 8) << k;
  }
}

TEST_P(Streams, are_not_waited_for_on_the_host) {
  if (on_host()) GTEST_SKIP() << "it runs at once";
  const int n = 1 << 14;
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n);
  const Stream a = device().create_stream(), b = device().create_stream();
  launch(a, slow, n, x, 10);
  launch(b, copy, n, x, y);
  device().synchronize();  // both are compiled
  launch(a, slow, n, x, 100000);
  const Event late = a.record();
  launch(b, copy, n, x, y);
  EXPECT_FALSE(late.done()) << "the launch on b came back before a was done";
  EXPECT_EQ(y.at(0), 7);
  EXPECT_TRUE(late.done());
}

TEST_P(Streams, have_values_of_the_host_after_what_others_read) {
  const int n = on_reference() ? 16 : 4096;
  const auto sum = kernel("sum", [](Arr<const float> x, Arr<float> y) { y[tid()] += x[tid()]; });
  const Stream a = device().create_stream();
  Array<float> x = full<float>(device(), n, 1), y = zeros<float>(device(), n);
  launch(a, sum, n, x, y);
  device().synchronize();
  launch(a, slow, n, y, on_reference() ? 10 : 20000);
  launch(a, sum, n, x, y);               // after the slow one
  x.assign(std::vector<float>(n, 100));  // the default stream writes; it has nothing else to do
  EXPECT_EQ(y.at(n - 1), 8);
  EXPECT_EQ(x.at(n - 1), 100);
}

TEST_P(Streams, take_many_values_of_the_host_while_others_work) {
  if (on_host()) GTEST_SKIP() << "it runs at once";
  const int n = 1 << 14;
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), 25 << 20);  // 100 MB: more than is in flight
  const std::vector<float> values(std::size_t(y.size()), 3);
  const Stream a = device().create_stream(), b = device().create_stream();
  launch(a, slow, n, x, 10);
  y.assign(values);
  device().synchronize();
  const auto start = std::chrono::steady_clock::now();
  y.assign(values);
  const std::chrono::duration<double> alone = std::chrono::steady_clock::now() - start;
  // The launch must take several times as long, however fast the device is.
  launch(a, slow, n, x, 100000);
  const Event warm = a.record();
  const auto before = std::chrono::steady_clock::now();
  warm.wait();
  const std::chrono::duration<double> once = std::chrono::steady_clock::now() - before;
  const int rounds = int(std::min(1e8, 100000 * std::max(1.0, 20 * alone.count() / once.count())));
  launch(a, slow, n, x, rounds);
  const Event end = a.record();
  {
    const StreamScope scope(b);
    y.assign(values);
  }
  EXPECT_FALSE(end.done()) << "the host waited for it";
  EXPECT_EQ(y.at(y.size() - 1), 3);
  EXPECT_EQ(x.at(0), 7);
}

TEST_P(Streams, wait_for_events_of_others) {
  const int n = on_reference() ? 16 : 4096;
  const Stream a = device().create_stream(), b = device().create_stream();
  Array<float> x = zeros<float>(device(), n);
  launch(a, slow, n, x, on_reference() ? 10 : 20000);
  const Event event = a.record();
  b.wait(event);
  launch(b, add_one, n, x);
  const Event end = b.record();
  end.wait();
  EXPECT_TRUE(event.done()) << "b waited for it";
  EXPECT_TRUE(end.done());
  EXPECT_EQ(x.at(0), 8);
  EXPECT_TRUE(Event().done());
  Event().wait();
  b.wait(Event());
}

TEST_P(Streams, wait_no_longer_than_they_are_told_to) {
  const int n = on_reference() ? 16 : 4096;
  Array<float> x = zeros<float>(device(), n);
  Stream stream = device().create_stream();
  for (int k = 0; k < 4; ++k) launch(stream, slow, n, x, on_host() ? 10 : 100000);
  const Event end = stream.record();
  if (!on_host()) {
    EXPECT_FALSE(end.wait_for(0));
    EXPECT_FALSE(end.wait_for(1e-5));
    EXPECT_FALSE(end.done());
  }
  EXPECT_TRUE(end.wait_for(INFINITY));
  EXPECT_TRUE(end.done());
  EXPECT_TRUE(Event().wait_for(0));
  for (const double seconds : {-1.0, double(NAN)})
    expect_contains(error_of([&] { (void)end.wait_for(seconds); }),
                    "a wait of " + std::string(seconds < 0 ? "-1" : "nan"));
  // Reports of kernels come with the wait that finds the kernels done, and with no other.
  const auto claim = kernel("claim", [](Arr<const float> x) { assert_(x[tid()] > 1e9f, "small"); });
  launch(stream, claim, n, x);
  const Event failed = stream.record();
  expect_contains(error_of([&] { (void)failed.wait_for(60); }), "small");
}

// Tells which of several streams was given work.
class Given {
 public:
  explicit Given(std::vector<Stream> streams) : streams_(std::move(streams)) {
    for (Stream& s : streams_) before_.push_back(s.native().submit());
  }
  // The number of the stream that was given work since the last call; -1: none, -2: several.
  int to() {
    int found = -1;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const backend::Ticket now = streams_[i].native().submit();
      if (now != before_[i]) found = found == -1 ? int(i) : -2;
      before_[i] = now;
    }
    return found;
  }

 private:
  std::vector<Stream> streams_;
  std::vector<backend::Ticket> before_;
};

TEST_P(Streams, of_a_scope_get_the_work_that_names_none) {
  const int n = 8;
  const Stream usual = device().stream(), a = device().create_stream(), b = device().create_stream();
  const Stream busy = device().create_stream();
  const int many = on_reference() ? 8 : 1 << 14;
  Given given({usual, a, b});
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n), z = zeros<float>(device(), many);
  const Array<vec3> boxes = full<vec3>(device(), 3, vec3{1, 2, 3});
  const Graph step = capture(device(), [&] { launch(add_one, n, x); });
  std::vector<float> values(n);
  const auto does = [](const Stream& s, const Device& d) {
    return &detail::state_of(s) == &detail::state_of(d.stream());
  };
  const std::vector<std::pair<const char*, std::function<void()>>> works{
      {"a launch", [&] { launch(add_one, n, x); }},
      {"a fill", [&] { x.fill(3); }},
      {"a copy", [&] { y.copy_from(x); }},
      {"values of the host",
       [&] {
         launch(busy, slow, many, z,
                on_host()                ? 10
                : device().is_software() ? 20000
                                         : 2000000);  // if it were idle, the host might write at once, without a stream
         z.assign(std::vector<float>(many, 5));
       }},
      {"a copy to the host", [&] { x.copy_to_async(std::span<float>(values)).wait(); }},
      {"an algorithm", [&] { inclusive_scan(x, y); }},
      {"a graph", [&] { step.launch(); }},
      {"a hierarchy", [&] { Bvh(device(), boxes, boxes); }},
      {"a new array", [&] { full<float>(device(), n, 2); }},
  };
  for (const auto& [name, work] : works) {
    SCOPED_TRACE(name);
    given.to();
    work();
    EXPECT_EQ(given.to(), 0);
    const StreamScope outer(a);
    EXPECT_TRUE(does(a, device()));
    work();
    EXPECT_EQ(given.to(), 1);
    {
      const StreamScope inner(b);
      work();
      EXPECT_EQ(given.to(), 2);
    }
    work();
    EXPECT_EQ(given.to(), 1);
  }
  const StreamScope scope(a);
  launch(b, add_one, n, x);
  EXPECT_EQ(given.to(), 2) << "a launch that names its stream";
  std::thread([&] { launch(add_one, n, x); }).join();
  EXPECT_EQ(given.to(), 0) << "a launch of another thread";
}

TEST_P(Streams, of_scopes_that_end_out_of_order_are_forgotten) {
  const Stream a = device().create_stream(), b = device().create_stream();
  Array<float> x = zeros<float>(device(), 4);
  Given given({device().stream(), a, b});
  std::optional<StreamScope> first(a), second(b);
  first.reset();
  launch(add_one, 4, x);
  EXPECT_EQ(given.to(), 2);
  second.reset();
  launch(add_one, 4, x);
  EXPECT_EQ(given.to(), 0);
}

TEST_P(Streams, that_were_moved_from_are_the_same_streams) {
  Stream a = device().create_stream();
  const Stream taken = std::move(a);
  Device here = device();
  const Device there = std::move(here);
  auto kernel = add_one;
  const auto kept = std::move(kernel);
  Array<float> x = zeros<float>(device(), 4);
  Given given({device().stream(), taken});
  launch(a, kernel, 4, x);
  EXPECT_EQ(given.to(), 1);
  const StreamScope scope(a);
  launch(kept, 4, x);
  EXPECT_EQ(given.to(), 1);
  a.synchronize();
  EXPECT_EQ(here.name(), there.name());
  EXPECT_EQ(zeros<float>(here, 4).to_vector(), std::vector<float>(4, 0));
  EXPECT_EQ(x.to_vector(), std::vector<float>(4, 2));
}

TEST_P(Streams, of_scopes_are_told_apart_by_their_devices) {
  const Device other("reference");
  const Stream a = device().create_stream(), b = other.create_stream();
  Given given({device().stream(), a, b});
  const StreamScope on_device(a), on_other(b);
  Array<float> x = zeros<float>(device(), 4);
  EXPECT_EQ(given.to(), on_reference() ? 2 : 1);
  Array<float> y = zeros<float>(other, 4);
  EXPECT_EQ(given.to(), 2);
}

// The way back runs on the scope's stream, even if the tape recorded on another; the arrays keep the order.
TEST_P(Streams, of_a_scope_get_the_way_back_of_a_tape) {
  const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  Array<float> x(device(), {1, 2, 3}), y = zeros<float>(device(), 3);
  x.requires_grad();
  Tape tape;
  tape.record([&] { launch(square, 3, x, y); });
  const Stream a = device().create_stream();
  Given given({device().stream(), a});
  {
    const StreamScope scope(a);
    tape.backward({{y, full<float>(device(), 3, 1)}});
    EXPECT_EQ(given.to(), 1);
  }
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{2, 4, 6}));
}

TEST_P(Streams, refuse_events_of_other_devices) {
  const Device other = Device::open("reference");
  const Event event = other.stream().record();
  expect_contains(error_of([&] { device().stream().wait(event); }), "an event of device reference");
  const Device namesake = Device::open(device().name());
  expect_contains(error_of([&] { device().stream().wait(namesake.stream().record()); }),
                  "an event of device " + device().name() + " (2)");
  expect_contains(error_of([&] { capture(device(), [&] { (void)other.stream().record(); }); }),
                  "a graph is captured on device " + device().name());
}

TEST_P(Streams, may_be_used_by_a_thread_each) {
  const int n = 64, rounds = on_reference() ? 20 : 300;
  Array<float> sum = zeros<float>(device(), n);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const Stream own = device().create_stream();
      Array<float> x = zeros<float>(device(), n);
      for (int k = 0; k < rounds; ++k) {
        launch(own, add_one, n, x);
        launch(own, add_one, n, sum);  // shared by all threads
      }
      EXPECT_EQ(x.at(n - 1), rounds);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sum.at(0), 4 * rounds);
}

TEST_P(Streams, of_threads_that_write_one_array_are_all_waited_for) {
  const int n = 16, rounds = 40;
  for (int k = 0; k < 20; ++k) {
    // The streams stay until the end, so that only the wait for the array submits their work.
    const Stream streams[] = {device().create_stream(), device().create_stream(), device().create_stream()};
    Array<float> sum = zeros<float>(device(), n);
    std::atomic<int> ready = 0;
    std::vector<std::thread> threads;
    for (const Stream& own : streams)
      threads.emplace_back([&] {
        for (++ready; ready < 3;) std::this_thread::yield();
        for (int i = 0; i < rounds; ++i) launch(own, add_one, n, sum);
      });
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(sum.at(n - 1), 3 * rounds) << "attempt " << k;
  }
}

TEST_P(Streams, of_high_priority_start_their_work_at_once) {
  if (on_host()) GTEST_SKIP() << "it runs at once";
  const int n = 64;
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n);
  Stream normal = device().create_stream(), high = device().create_stream(StreamPriority::high);
  launch(normal, add_one, n, x);
  launch(high, add_one, n, y);
  device().synchronize();  // both are compiled
  launch(normal, add_one, n, x);
  launch(high, add_one, n, y);
  // last_ticket() and done() start nothing.
  backend::Stream &gathers = normal.native(), &starts = high.native();
  const backend::Ticket waits = last_ticket(gathers), runs = last_ticket(starts);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!starts.done(runs) && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_TRUE(starts.done(runs));
  EXPECT_FALSE(gathers.done(waits)) << "nobody has asked for it yet";
  EXPECT_EQ(x.at(0), 2);
  EXPECT_EQ(y.at(0), 2);
  // A stream that is handed out again has the priority that is requested then.
  high = device().stream();
  Stream again = device().create_stream();
  launch(again, add_one, n, x);
  EXPECT_FALSE(again.native().done(last_ticket(again.native())));
  EXPECT_EQ(x.at(0), 3);
}

TEST_P(Streams, put_barriers_where_they_are_told_to) {
  if (on_host()) GTEST_SKIP() << "it has no barriers";
  const int n = 64;
  const NoBudget no_budget(device());  // it measures some launches, which then stand between barriers of their own
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n);
  Stream stream = device().create_stream();
  auto& vulkan = dynamic_cast<backend::vulkan::VulkanStream&>(stream.native());
  const auto barriers = [&](auto... arrays) {
    stream.synchronize();
    launch(stream, add_one, n, x);  // the first launch of a batch is not counted
    const std::uint64_t before = vulkan.memory_barriers();
    (launch(stream, add_one, n, arrays), ...);
    return vulkan.memory_barriers() - before;
  };
  EXPECT_EQ(barriers(y), 0u) << "they have nothing in common";
  EXPECT_EQ(barriers(x, x, x), 3u);
  stream.barrier_always(true);
  EXPECT_EQ(barriers(y), 1u);
  stream.barrier_always(false);
  stream.synchronize();
  stream.track_hazards(false);
  EXPECT_EQ(barriers(x, x, x), 0u) << "results may be wrong";
  stream.synchronize();
  stream.track_hazards(true);
  x.fill(5);
  EXPECT_EQ(barriers(x, x), 2u);
  EXPECT_EQ(x.at(n - 1), 8);
  // A stream that is handed out again behaves like a new one.
  stream.track_hazards(false);
  const backend::Stream* const own = &stream.native();
  stream = device().stream();
  stream = device().create_stream();
  ASSERT_EQ(&stream.native(), own);
  EXPECT_EQ(barriers(x, x), 2u);
}

// The thread that gives a batch to the queue also does the driver's part of its launches, even if some are measured.
TEST_P(Streams, keep_launches_that_are_measured) {
  if (on_host()) GTEST_SKIP() << "it runs launches at once";
  const int n = 64;
  Array<float> x = zeros<float>(device(), n);
  Stream stream = device().create_stream();
  const auto& vulkan = dynamic_cast<const backend::vulkan::VulkanStream&>(stream.native());
  const NoBudget no_budget(device());  // with it, batches may go earlier
  launch(stream, add_one, n, x);
  stream.synchronize();
  Profiler profiler(device());
  stream.synchronize();
  for (int k = 0; k < 3; ++k) launch(stream, add_one, n, x);
  EXPECT_EQ(vulkan.kept(), 9u) << "each with the moments before and after it";
  const Profile profile = profiler.stop();
  EXPECT_EQ(x.at(n - 1), 4);
  std::int64_t measured = 0;
  double before = 0;
  for (const Profile::Operation& operation : profile.operations)
    if (operation.name == "add one") {
      ++measured;
      EXPECT_GE(operation.begin, before) << "they run one after the other";
      EXPECT_GE(operation.end, operation.begin);
      before = operation.end;
    }
  EXPECT_EQ(measured, 3);
}

}  // namespace
