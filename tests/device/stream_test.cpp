// Several streams of a device: the order of their work, events, and what is refused.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <thread>

#include "device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Streams);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto copy = kernel("copy", [](Arr<const float> from, Arr<float> to) { to[tid()] = from[tid()]; });
/// Takes long enough that whoever does not wait for it is seen.
const auto slow = kernel("slow", [](Arr<float> x, Int rounds) {
  Float v = x[tid()];
  for (auto k : range(rounds)) v = v * 0.5f + Float(k % 2) * 0.5f;
  x[tid()] = select(v >= 0, 7.f, v);
});

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
  if (on_reference()) GTEST_SKIP() << "it runs at once";
  const int n = 1 << 14;
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n);
  const Stream a = device().create_stream(), b = device().create_stream();
  launch(a, slow, n, x, 10);
  a.record().wait();  // compiled
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
  launch(a, sum, n, x, y);               // when the slow one is done
  x.assign(std::vector<float>(n, 100));  // by the default stream, which has nothing to do
  EXPECT_EQ(y.at(n - 1), 8);
  EXPECT_EQ(x.at(n - 1), 100);
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

TEST_P(Streams, refuse_events_of_other_devices) {
  const Device other = Device::open("reference");
  const Event event = other.stream().record();
  expect_contains(error_of([&] { device().stream().wait(event); }), "an event of device reference");
  expect_contains(error_of([&] { capture(device(), [&] { device().stream().record(); }); }),
                  "while a graph is captured");
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
        launch(own, add_one, n, sum);  // of all threads
      }
      EXPECT_EQ(x.at(n - 1), rounds);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sum.at(0), 4 * rounds);
}

}  // namespace
