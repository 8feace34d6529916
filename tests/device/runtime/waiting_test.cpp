// Threads that wait for work hold up no other thread: the work may need more that others give the same streams. In each
// test a stream waits for a semaphore that the main thread signals last.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/runtime/profile.h>
#include <weft/vulkan.h>
#include <weft/weft.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "../../../backends/vulkan/device.h"
#include "../../../backends/vulkan/queue/stream.h"
#include "../../../runtime/core/state.h"
#include "../printed.h"
#include "../watched_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::Lines;
using weft::test::Printed;

namespace {

class Waiting : public weft::test::WatchedTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (on_host()) GTEST_SKIP() << "no semaphores there";
  }
  /// Runs `waits` in another thread until `signal` has been called; runs `meanwhile` when that thread is waiting.
  static void beside(const std::function<void()>& waits, const std::function<void()>& meanwhile) {
    std::thread thread(waits);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    meanwhile();
    thread.join();
  }
  /// The device of the test with only a few pages of memory.
  Device with_memory(std::uint64_t page_bytes, int pages) const {
    static std::uint64_t ids = 1ull << 42;
    const auto instance = backend::vulkan::Instance::get(false);  // with validation if the environment asks for it
    const auto& adapters = instance->adapters();
    const auto adapter = std::ranges::find(adapters, device().name(), [](const auto& a) { return a.info.name; });
    auto state = std::make_shared<detail::DeviceState>();
    state->id = ids++;
    state->device = std::make_unique<backend::vulkan::VulkanDevice>(
        instance, *adapter, backend::vulkan::Tuning{.page_bytes = page_bytes, .most_pages = pages});
    state->streams.push_back(std::make_unique<detail::StreamState>(*state, state->device->create_stream()));
    state->default_stream = state->streams.front().get();
    return Device(state);
  }
  static const backend::vulkan::VulkanStream& batches_of(Stream& stream) {
    return dynamic_cast<const backend::vulkan::VulkanStream&>(stream.native());
  }
};
ON_EVERY_DEVICE(Waiting);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto tell = kernel("tell", [](Arr<const float> x, Int name) { print(name, x[tid()]); });
const auto check = kernel("check", [](Arr<const float> x, Int name) { assert_(x[tid()] < 0, "never:", name); });

// The host itself signals, so neither launches that are measured for a budget nor those of a profiler may wait for the
// work of the queue.
TEST_P(Waiting, BehindASemaphoreNothingAsksTheQueueForTimes) {
  const Device own = Device::open(device().name());
  own.set_dispatch_budget(0.5);
  const Stream stream = own.create_stream();
  const Array<float> x = zeros<float>(own, 1000);
  for (int k = 0; k < 3; ++k) launch(stream, add_one, 1000, x);  // these are measured
  x.wait();
  Profiler profiler(own);
  launch(stream, add_one, 1000, x);
  x.wait();
  const TimelineSemaphore semaphore(own);
  stream.wait(semaphore.vk(), 1);
  for (int k = 0; k < 40; ++k) launch(stream, add_one, 1000, x);
  const Event end = stream.record();
  EXPECT_FALSE(end.wait_for(0.01));
  semaphore.signal(1);
  EXPECT_TRUE(end.wait_for(60));
  profiler.stop();
  EXPECT_EQ(x.at(999), 44);
}

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
  event.wait();  // does not wait for work after the semaphore
  EXPECT_EQ(printed.lines(), (Lines{"1 0"}));
  semaphore.signal(1);
  stream.synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"2 0"}));
}

TEST_P(Waiting, is_not_done_by_the_last_handle_of_a_stream) {
  Printed printed;
  const Device own = Device::open(device().name());
  const TimelineSemaphore semaphore(own);
  Array<float> x = zeros<float>(own, 1);
  for (int k = 0; k < 2; ++k) {
    const Stream stream = own.create_stream();
    if (k == 0) stream.wait(semaphore.vk(), 1);
    launch(stream, tell, 1, x, k);
    launch(stream, check, 1, x, k);
  }
  // The new stream is neither of the two, whose reports it would get.
  Stream other = own.create_stream();
  launch(other, add_one, 1, x);
  EXPECT_EQ(printed.lines(), Lines{});
  semaphore.signal(1);
  other.synchronize();
  const std::string message = error_of([&] { own.synchronize(); });
  expect_contains(message, "never");
  expect_contains(message, "1 more");
  EXPECT_EQ(printed.lines(), (Lines{"0 0", "1 0"}));
  own.synchronize();
}

TEST_P(Waiting, for_what_a_dropped_stream_reports_ends_when_it_is_taken_up_again) {
  Printed printed;
  const Device own = Device::open(device().name());
  const TimelineSemaphore semaphore(own);
  Array<float> x = zeros<float>(own, 1);
  {
    const Stream stream = own.create_stream();
    stream.wait(semaphore.vk(), 1);
    launch(stream, tell, 1, x, 1);
    launch(stream, check, 1, x, 1);
    launch(stream, add_one, 1, x);
  }
  semaphore.signal(1);
  semaphore.wait(1);
  launch(add_one, 1, x);
  own.stream().record().wait();  // after the other's work, whose reports it does not get
  EXPECT_EQ(printed.lines(), Lines{});
  Stream again = own.create_stream();
  EXPECT_EQ(printed.lines(), (Lines{"1 0"}));
  again.synchronize();
  expect_contains(error_of([&] { own.stream().synchronize(); }), "never: 1");
}

// Graphs and launches report to buffers of their own.
TEST_P(Waiting, is_not_done_between_graphs_and_launches_that_report) {
  Printed printed;
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  const auto told = [&](int name) {
    return capture(device(), [&] {
      launch(tell, 1, x, name);
      launch(add_one, 1, x);
    });
  };
  const Graph two = told(2), three = told(3);
  Stream stream = device().create_stream();
  stream.wait(semaphore.vk(), 1);
  launch(stream, tell, 1, x, 1);
  two.launch(stream);
  three.launch(stream);
  launch(stream, tell, 1, x, 4);
  semaphore.signal(1);
  stream.synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"1 0", "2 0", "3 1", "4 2"}));
  two.launch(stream);
  launch(stream, tell, 1, x, 1);
  stream.synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"2 2", "1 3"}));
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

// ---- Work that a stream is given after a wait: the host goes on, however much it is

TEST_P(Waiting, takes_as_many_submissions_as_come) {
  constexpr int most = backend::vulkan::VulkanStream::kBatches;
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 4), y = zeros<float>(device(), 4);
  x.wait();
  Stream stream = device().create_stream(StreamPriority::high);
  stream.wait(semaphore.vk(), 1);
  for (int k = 0; k < 100; ++k) launch(stream, add_one, 4, x);
  EXPECT_GE(batches_of(stream).batches(), 100u);
  semaphore.signal(1);
  EXPECT_EQ(x.at(3), 100);
  stream.synchronize();
  EXPECT_LE(batches_of(stream).batches(), std::size_t(most)) << "they are not kept";
  // Without such a wait the host does not get far ahead of the device.
  for (int k = 0; k < 100; ++k) {
    launch(stream, add_one, 4, y);
    ASSERT_LE(batches_of(stream).batches(), std::size_t(most));
  }
  EXPECT_EQ(y.at(3), 100);
}

// Both streams share a queue.
TEST_P(Waiting, of_one_stream_lets_others_take_as_many) {
  if (!device().native().info().host_visible) GTEST_SKIP() << "what is read is copied, behind all that waits";
  const TimelineSemaphore first(device()), second(device());
  Array<float> x = zeros<float>(device(), 4), y = zeros<float>(device(), 4);
  const Stream waits = device().create_stream(), stream = device().create_stream(StreamPriority::high);
  waits.wait(first.vk(), 1);
  for (int k = 0; k < 50; ++k) launch(stream, add_one, 4, x);
  waits.wait(second.vk(), 1);
  for (int k = 0; k < 50; ++k) launch(stream, add_one, 4, y);
  first.signal(1);
  EXPECT_EQ(x.at(3), 50);
  for (int k = 0; k < 50; ++k) launch(stream, add_one, 4, y);
  second.signal(1);
  EXPECT_EQ(y.at(3), 100);
}

TEST_P(Waiting, holds_up_no_launch_by_handles_after_a_structure_has_ended) {
  const auto count = kernel(
      "count by handle", [](Arr<const std::uint64_t> ids, Arr<int> out) { out[0] = mesh_at(ids[0]).points.shape(0); });
  const std::vector<vec3> corners = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
  const auto make = [&] { return Mesh(Array<vec3>(device(), corners), Array<int>(device(), {0, 1, 2})); };
  const Mesh stays = make();
  std::optional<Mesh> ends = make();
  (void)ends->id();
  Array<std::uint64_t> ids(device(), {stays.id()});
  Array<int> out = zeros<int>(device(), 1);
  const TimelineSemaphore semaphore(device());
  const Stream stream = device().create_stream();
  device().synchronize();
  stream.wait(semaphore.vk(), 1);
  {
    const StreamScope scope(stream);
    ends.reset();
  }
  launch(count, 1, ids, out);
  semaphore.signal(1);
  EXPECT_EQ(out.at(0), 3);
}

TEST_P(Waiting, takes_arguments_that_fill_its_upload_memory) {
  using Many = vec<128, float>;
  const auto add_all = kernel("add all", [](Arr<float> x, Var<Many> v) {
    for (auto k : range(128)) x[0] += v[k];
  });
  constexpr int most = 2 * int(backend::vulkan::VulkanStream::kRingBytes / sizeof(Many));
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  Stream stream = device().create_stream();
  stream.wait(semaphore.vk(), 1);
  for (int k = 0; k < most; ++k) launch(stream, add_all, 1, x, Many(float(k % 2)));
  semaphore.signal(1);
  EXPECT_EQ(x.at(0), most / 2 * 128);
  launch(stream, add_all, 1, x, Many(1));
  EXPECT_EQ(x.at(0), (most / 2 + 1) * 128);
}

TEST_P(Waiting, takes_elements_from_the_host) {
  constexpr std::size_t small = backend::vulkan::VulkanStream::kRingBytes / 16 / sizeof(int);
  constexpr std::size_t large = 3 * backend::vulkan::VulkanStream::kStagingBytes / sizeof(int);
  const TimelineSemaphore semaphore(device());
  Array<int> x = zeros<int>(device(), small), y = zeros<int>(device(), large);
  std::vector<int> values(large);
  const Stream stream = device().stream();
  device().synchronize();
  stream.wait(semaphore.vk(), 1);
  for (int k = 0; k < 40; ++k) x.assign(std::vector<int>(small, k));
  for (std::size_t i = 0; i < large; ++i) values[i] = int(i);
  y.assign(values);
  semaphore.signal(1);
  EXPECT_EQ(x.to_vector(), std::vector<int>(small, 39));
  EXPECT_EQ(y.to_vector(), values);
}

TEST_P(Waiting, takes_launches_that_are_measured) {
  constexpr int launches = 2500;
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 4);
  const Stream stream = device().create_stream();
  Profiler profiler(device());
  stream.wait(semaphore.vk(), 1);
  for (int k = 0; k < launches; ++k) launch(stream, add_one, 4, x);
  semaphore.signal(1);
  const Profile profile = profiler.stop();
  EXPECT_EQ(x.at(3), launches);
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].count, launches);
}

// The whole queue waits, whichever stream was told to.
TEST_P(Waiting, of_one_stream_holds_up_nothing_that_others_were_given_before) {
  Printed printed;
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1), y = zeros<float>(device(), 1);
  x.wait();
  y.wait();
  Stream stream = device().create_stream();
  const Stream other = device().create_stream();
  launch(add_one, 1, y);  // not submitted
  launch(stream, add_one, 1, x);
  launch(stream, tell, 1, x, 1);
  const Event event = stream.record();
  other.wait(semaphore.vk(), 1);
  launch(stream, tell, 1, x, 2);
  event.wait();
  EXPECT_EQ(printed.lines(), (Lines{"1 1"}));
  if (device().native().info().host_visible) {  // otherwise the element is copied, after all that waits
    EXPECT_EQ(x.at(0), 1);
    EXPECT_EQ(y.at(0), 1);
  }
  semaphore.signal(1);
  stream.synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"2 1"}));
}

TEST_P(Waiting, a_graph_that_reports_comes_behind_it_when_its_own_launch_before_has_run) {
  Printed printed;
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  Stream stream = device().create_stream();
  const Graph graph = capture(device(), [&] { launch(tell, 1, x, 1); });
  graph.launch(stream);
  stream.wait(semaphore.vk(), 1);
  graph.launch(stream);  // waits for the first launch, and for nothing after the semaphore
  semaphore.signal(1);
  stream.synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"1 0", "1 0"}));
}

TEST_P(Waiting, a_graph_that_was_read_goes_to_another_stream_than_one_that_waits) {
  Printed printed;
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  Stream stream = device().create_stream(), other = device().create_stream();
  const Graph graph = capture(device(), [&] { launch(tell, 1, x, 1); });
  graph.launch(stream);
  stream.synchronize();
  stream.wait(semaphore.vk(), 1);
  graph.launch(other);
  semaphore.signal(1);
  other.synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"1 0", "1 0"}));
}

TEST_P(Waiting, what_shows_the_lines_of_a_stream_that_is_handed_out_again_may_make_streams) {
  const TimelineSemaphore semaphore(device());
  Array<float> x = zeros<float>(device(), 1);
  x.wait();
  {
    const Stream stream = device().create_stream();
    stream.wait(semaphore.vk(), 1);
    launch(stream, tell, 1, x, 1);
  }
  semaphore.signal(1);
  static int lines;
  static const Device* on;
  lines = 0;
  on = &device();
  const PrintSink before = set_print_sink({[](void*, std::string_view) {
                                             ++lines;
                                             (void)on->create_stream();
                                           },
                                           nullptr});
  std::vector<Stream> others;  // streams that have nothing to show are handed out first
  for (int k = 0; k < 100 && lines == 0; ++k) {
    others.push_back(device().create_stream());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  set_print_sink(before);
  EXPECT_EQ(lines, 1);
}

// Memory that is freed becomes free after the semaphore, for which the host must not wait.
TEST_P(Waiting, does_not_wait_for_memory_that_is_held_up) {
  constexpr int page = 1 << 20, pages = 12;
  const Device own = with_memory(page, pages);
  const TimelineSemaphore semaphore(own);
  const Stream stream = own.create_stream();
  // Without a semaphore the host waits.
  for (int k = 0; k < 3 * pages; ++k) full<int>(own, page / 4, 1);
  own.synchronize();
  Array<float> x = zeros<float>(own, 1);
  stream.wait(semaphore.vk(), 1);
  try {
    for (int k = 0; k < 3 * pages; ++k) full<int>(own, page / 4, 1);
    FAIL() << "there is more memory than there is";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory) << e.what();
  }
  launch(add_one, 1, x);
  semaphore.signal(1);
  for (int k = 0; k < 3 * pages; ++k) full<int>(own, page / 4, 1);
  EXPECT_EQ(x.at(0), 1);
}

TEST_P(Waiting, takes_the_parts_of_long_launches) {
  const Device own = Device::open(device().name());
  const TimelineSemaphore semaphore(own);
  const int n = 1 << 20;
  Array<float> x = zeros<float>(own, n);
  launch(add_one, n, x);
  EXPECT_EQ(x.at(n - 1), 1);
  own.set_dispatch_budget(1e-6);
  own.stream().wait(semaphore.vk(), 1);
  for (int k = 0; k < 3; ++k) launch(add_one, n, x);
  semaphore.signal(1);
  EXPECT_EQ(x.at(0), 4);
  EXPECT_EQ(x.at(n - 1), 4);
}

}  // namespace
