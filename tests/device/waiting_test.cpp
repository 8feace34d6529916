// Threads that wait for work hold up nobody: what they wait for may need that others give the same streams more. In
// each test a stream waits for a semaphore that the main thread signals last.
#include <weft/runtime/profile.h>
#include <weft/vulkan.h>
#include <weft/weft.h>

#include <chrono>
#include <thread>

#include "device_test.h"
#include "printed.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::Lines;
using weft::test::Printed;

namespace {

class Waiting : public weft::test::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (on_reference()) GTEST_SKIP() << "no semaphores there";
  }
  /// `waits` runs in another thread until `signal` has been called; `meanwhile` runs when it has come to wait.
  static void beside(const std::function<void()>& waits, const std::function<void()>& meanwhile) {
    std::thread thread(waits);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    meanwhile();
    thread.join();
  }
};
INSTANTIATE_TEST_SUITE_P(On, Waiting, ::testing::Values("reference", "vulkan", "gpu"),
                         [](const auto& info) { return std::string(info.param); });

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto tell = kernel("tell", [](Arr<const float> x, Int name) { print(name, x[tid()]); });

TEST_P(Waiting, for_a_stream_lets_others_give_it_work) {
  const TimelineSemaphore first(device()), second(device());
  Array<float> x = zeros<float>(device(), 4);
  Stream stream = device().create_stream();
  stream.wait(first.vk(), 1);
  beside([&] { stream.synchronize(); },
         [&] {
           stream.wait(second.vk(), 1);
           first.signal(1);
           std::this_thread::sleep_for(std::chrono::milliseconds(50));
           launch(stream, add_one, 4, x);
           second.signal(1);
         });
  EXPECT_EQ(x.at(3), 1);
}

TEST_P(Waiting, for_a_device_lets_others_make_streams) {
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  const Stream stream = device().create_stream();
  stream.wait(semaphore.vk(), 1);
  launch(stream, add_one, 1, x);
  beside([&] { device().synchronize(); },
         [&] {
           const Stream other = device().create_stream();
           semaphore.signal(1);
         });
  EXPECT_EQ(x.at(0), 1);
}

TEST_P(Waiting, for_an_event_reads_what_was_told_until_then) {
  Printed printed;
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  Stream stream = device().create_stream();
  launch(stream, tell, 1, x, 1);
  const Event event = stream.record();
  stream.wait(semaphore.vk(), 1);
  launch(stream, tell, 1, x, 2);
  stream.submit();
  event.wait();  // not for what is behind the semaphore
  EXPECT_EQ(printed.lines(), (Lines{"1 0"}));
  semaphore.signal(1);
  stream.synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"2 0"}));
}

TEST_P(Waiting, for_the_end_of_a_stream_lets_others_work) {
  Printed printed;
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  Stream stream = device().create_stream();
  stream.wait(semaphore.vk(), 1);
  launch(stream, tell, 1, x, 3);
  beside([&] { stream = device().stream(); },
         [&] {
           launch(add_one, 1, x);
           semaphore.signal(1);
         });
  EXPECT_EQ(x.at(0), 1);
  EXPECT_EQ(printed.lines(), (Lines{"3 0"}));
}

TEST_P(Waiting, for_a_profiler_to_begin_lets_others_work) {
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  const Stream stream = device().create_stream();
  stream.wait(semaphore.vk(), 1);
  beside(
      [&] {
        Profiler profiler(device());
        (void)profiler.stop();
      },
      [&] {
        launch(device().stream(), add_one, 1, x);
        semaphore.signal(1);
      });
  EXPECT_EQ(x.at(0), 1);
}

TEST_P(Waiting, for_a_profiler_to_end_lets_others_work) {
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  const Stream stream = device().create_stream();
  Profiler profiler(device());
  stream.wait(semaphore.vk(), 1);
  launch(stream, add_one, 1, x);
  Profile found;
  beside([&] { found = profiler.stop(); },
         [&] {
           launch(stream, add_one, 1, x);
           stream.signal(semaphore.vk(), 2);
           semaphore.signal(1);
         });
  EXPECT_EQ(x.at(0), 2);
  ASSERT_EQ(found.kernels.size(), 1u);
  EXPECT_EQ(found.kernels[0].count, 1);
}

}  // namespace
