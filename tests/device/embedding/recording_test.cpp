// weft's work in a renderer's command buffers, and timeline semaphores between the two.
#include <gtest/gtest.h>
#include <weft/geometry.h>
#include <weft/runtime/graph.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../../../backends/vulkan/commands/recordings.h"
#include "../../../backends/vulkan/queue/stream.h"
#include "../../../runtime/core/state.h"
#include "../watched_test.h"
#include "embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

struct Holder {
  Array<float> values;
};
WEFT_STRUCT(Holder, values);

auto add_one = kernel("add_one", [](Arr<float> x) { x[tid()] += 1; });
auto add_to_held = kernel("add_to_held", [](Arr<const Holder> held) { held[0].values[tid()] += 1; });
auto add = kernel("add", [](Arr<const float> x, Arr<float> y) { y[tid()] += x[tid()]; });

// Takes the device some time: y[0] becomes x[0] + 1 at the end.
auto slow = kernel("slow", [](Arr<const float> x, Arr<float> y) {
  Float sum = 0;
  for (auto i : range(2'000'000)) sum += select(i < 0, 1.f, 0.f) + sin(sum) * 0.f;
  y[0] = x[0] + 1 + sum;
});

WATCHED_TEST(Recorded);

TEST_P(Recorded, WorkRunsWhereTheCommandBufferIsSubmitted) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = full<float>(e.device, 1000, 1), y = zeros<float>(e.device, 1000);
  const VkCommandBuffer commands = e.renderer.begin();
  Recording recording = e.device.stream().record_into(commands, [&] {
    launch(add_one, 1000, x);
    launch(add, 1000, x, y);
    y.slice(0, 10).fill(-1);
    y.slice(10, 13).assign(std::vector<float>{7, 8, 9});
    Array<float> between = y.clone();  // kept by the recording
    launch(add, 1000, between, y);
  });
  e.renderer.submit(commands);
  recording.submitted();
  EXPECT_EQ(x.at(999), 2);
  EXPECT_EQ(y.at(0), -2);
  EXPECT_EQ(y.at(12), 18);
  EXPECT_EQ(y.at(999), 4);
  EXPECT_TRUE(recording.done());
  // Work that a stream is given later comes after the recording.
  launch(add, 1000, x, y);
  EXPECT_EQ(y.at(999), 6);
}

// Two frames are in flight at all times.
TEST_P(Recorded, SubmissionsThatHaveRunAreForgotten) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = zeros<float>(e.device, 1);
  const VkSemaphore timelines[] = {e.renderer.make_timeline(), e.renderer.make_timeline()};
  for (const int semaphores : {0, 1, 2}) {
    const VkCommandBuffer commands = e.renderer.begin();
    const Recording recording = e.device.stream().record_into(commands, [&] { launch(add_one, 1, x); });
    std::size_t most = 0;
    for (std::uint64_t k = 1; k <= 50; ++k) {
      const VkSemaphore timeline = semaphores == 0 ? VK_NULL_HANDLE : timelines[k % std::uint64_t(semaphores)];
      const std::uint64_t value = 1000 * std::uint64_t(semaphores) + k;
      if (k > 2 && semaphores) e.renderer.signal(timelines[(k - 2) % std::uint64_t(semaphores)], value - 2);
      if (k == 1) e.renderer.submit(commands);
      if (timeline)
        recording.submitted(timeline, value);
      else
        recording.submitted();
      most = std::max(
          most, dynamic_cast<backend::vulkan::VulkanRecordings&>(*e.device.state()->recordings->hold()).submissions());
      if (!timeline && k % 8 == 0) e.device.stream().synchronize();
    }
    EXPECT_LE(most, std::size_t(backend::vulkan::VulkanStream::kBatches) + 2) << semaphores << " semaphores";
    EXPECT_GE(most, 1u);
    e.renderer.wait_idle();
    for (int s = 0; s < semaphores; ++s) e.renderer.signal(timelines[s], 1000 * std::uint64_t(semaphores) + 100);
  }
  EXPECT_EQ(x.at(0), 3);
}

// A recording that has ended may go together with its semaphore, while another thread waits for the whole device.
TEST_P(Recorded, WhoWaitsForTheDeviceLeavesRecordingsThatHaveEnded) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Renderer& r = e.renderer;
  Array<float> x = zeros<float>(e.device, 1), y = zeros<float>(e.device, 1);
  const VkSemaphore first = r.make_timeline();
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
                                       VK_SEMAPHORE_TYPE_TIMELINE, 0};
  const VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  VkSemaphore second = VK_NULL_HANDLE;
  ASSERT_EQ(r.vk.vkCreateSemaphore(r.device, &create, nullptr, &second), VK_SUCCESS);
  const VkCommandBuffer one = r.begin(), two = r.begin();
  const Recording stays = e.device.stream().record_into(one, [&] { launch(add_one, 1, x); });
  Recording ends = e.device.stream().record_into(two, [&] { launch(add_one, 1, y); });
  r.submit(one);
  stays.submitted(first, 1);
  r.submit(two);
  ends.submitted(second, 1);
  std::thread waits([&] { e.device.synchronize(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  r.signal(second, 1);
  ends = Recording();
  r.wait_idle();
  r.vk.vkDestroySemaphore(r.device, second, nullptr);
  r.signal(first, 1);
  waits.join();
  EXPECT_EQ(x.at(0), 1);
  EXPECT_EQ(y.at(0), 1);
}

TEST_P(Recorded, ReadingWaitsForTheSubmission) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = full<float>(e.device, 1, 1), y = zeros<float>(e.device, 1), z = zeros<float>(e.device, 1);
  const VkSemaphore timeline = e.renderer.make_timeline();
  const VkCommandBuffer commands = e.renderer.begin();
  Recording recording = e.device.stream().record_into(commands, [&] { launch(slow, 1, x, y); });
  e.renderer.submit(commands, timeline, 5);
  recording.submitted(timeline, 5);
  EXPECT_EQ(y.at(0), 2);
  EXPECT_EQ(e.renderer.value_of(timeline), 5u);
  // The end of a recording that keeps memory waits as well: here it keeps all of it.
  const VkCommandBuffer other = e.renderer.begin();
  Recording last = e.device.stream().record_into(other, [&] { launch(slow, 1, y, z); });
  e.renderer.submit(other, timeline, 6);
  last.submitted(timeline, 6);
  x = y = z = {};
  last = {};
  EXPECT_EQ(e.renderer.value_of(timeline), 6u);
}

TEST_P(Recorded, RunsAfterWhatStreamsWereGivenBefore) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = full<float>(e.device, 1, 1), y = zeros<float>(e.device, 1);
  const Stream stream = e.device.create_stream();
  launch(stream, slow, 1, x, y);
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] { launch(add_one, 1, y); });
  e.renderer.submit(commands);
  recording.submitted();
  launch(stream, add_one, 1, y);
  EXPECT_EQ(y.at(0), 4);
}

TEST_P(Recorded, CommandBuffersAreSubmittedAgain) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = zeros<float>(e.device, 100);
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] { launch(add_one, 100, x); });
  e.renderer.submit(commands);
  recording.submitted();
  for (int k = 0; k < 4; ++k) {
    launch(add_one, 100, x);
    recording.prepare();
    e.renderer.submit_again(commands);
    recording.submitted();
  }
  EXPECT_EQ(x.at(99), 9);
}

// Both submissions are ended by hand, so that the order of events is this: a reader waits for the first; the second is
// announced; the first ends; the reader forgets the one that it has waited for, and no more than that.
TEST_P(Recorded, AReaderHoldsUpNobodyAndForgetsNoLaterSubmission) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const TimelineSemaphore ends(e.device);
  Array<float> x = zeros<float>(e.device, 100);
  launch(add_one, 100, x);  // a second stream takes part
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] { launch(add_one, 100, x); });
  e.renderer.submit(commands);
  recording.submitted(ends.vk(), 1);
  EXPECT_FALSE(recording.done());
  float first = 0, second = 0;
  std::thread reader([&] { first = x.at(7); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(recording.done()) << "an answer while another thread waits";
  const VkCommandBuffer others = e.renderer.begin();
  const Recording other =
      e.device.stream().record_into(others, [&] { launch(add_one, 100, zeros<float>(e.device, 100)); });
  e.renderer.submit(others);
  other.submitted();
  recording.prepare();
  e.renderer.submit_again(commands);
  recording.submitted(ends.vk(), 2);
  ends.signal(1);
  reader.join();
  EXPECT_GE(first, 2);
  std::atomic<bool> read = false;
  std::thread again([&] {
    second = x.at(7);
    read = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(read) << "the second submission has not ended";
  ends.signal(2);
  again.join();
  EXPECT_EQ(second, 3);
  e.renderer.wait_idle();
}

TEST_P(Recorded, TapesAreToldOfWhatChanges) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  Array<float> x = full<float>(e.device, 1, 3).requires_grad(), y = zeros<float>(e.device, 1);
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] { launch(add_one, 1, x); });
  e.renderer.submit(commands);
  recording.submitted();
  Tape tape;
  tape.record([&] { launch(square, 1, x, y); });
  recording.prepare();
  e.renderer.submit_again(commands);
  recording.submitted();
  EXPECT_EQ(x.at(0), 5);
  tape.backward(y);
  EXPECT_EQ(x.grad().at(0), 8);  // the gradient at x = 4
}

TEST_P(Recorded, FramesReplaceTheirRecordings) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = zeros<float>(e.device, 100);
  const VkSemaphore timeline = e.renderer.make_timeline();
  Recording frames[3];
  for (std::uint64_t k = 0; k < 30; ++k) {
    const VkCommandBuffer commands = e.renderer.begin();
    frames[k % 3] = e.device.stream().record_into(commands, [&] {
      Array<float> made = full<float>(e.device, 100, 1);
      launch(add, 100, made, x);
    });
    e.renderer.submit(commands, timeline, k + 1);
    frames[k % 3].submitted(timeline, k + 1);
  }
  EXPECT_EQ(x.at(0), 30);
}

// Recordings can do what graphs can: arguments that do not fit push constants, algorithms that allocate, conditions.
TEST_P(Recorded, TakesAllThatGraphsTake) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  std::vector<Array<float>> x;
  for (int k = 0; k < 12; ++k) x.push_back(full<float>(e.device, 8, float(k)));
  auto many = kernel("many", [](Arr<float> a, Arr<float> b, Arr<float> c, Arr<float> d, Arr<float> e, Arr<float> f,
                                Arr<float> g, Arr<float> h, Arr<float> i, Arr<float> j, Arr<float> k, Arr<float> l) {
    Int t = tid();
    l[t] += a[t] + b[t] + c[t] + d[t] + e[t] + f[t] + g[t] + h[t] + i[t] + j[t] + k[t];
  });
  Array<int> flag = full<int>(e.device, 1, 1), left = full<int>(e.device, 1, 3);
  auto down = kernel("down", [](Arr<int> left, Arr<int> flag) {
    left[0] -= 1;
    flag[0] = select(left[0] > 0, 1, 0);
  });
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] {
    launch(many, 8, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11]);
    graph_while(flag, 10, [&] {
      launch(add_one, 8, x[0]);
      launch(down, 1, left, flag);
    });
  });
  e.renderer.submit(commands);
  recording.submitted();
  EXPECT_EQ(x[11].at(7), 66);
  EXPECT_EQ(x[0].at(7), 3);
}

TEST_P(Recorded, RefusesWhatCannotBeRecorded) {
  const auto nothing = [] {};
  if (on_host())
    return expect_contains(error_of([&] { (void)device().stream().record_into(nullptr, nothing); }),
                           "record_into() on " + device().name());
  expect_contains(error_of([&] { (void)device().stream().record_into(nullptr, nothing); }), "not adopted");
  Embedded e(on_gpu());
  Stream stream = e.device.stream();
  Array<float> x = full<float>(e.device, 10, 1), other = full<float>(device(), 10, 1);
  const Graph graph = capture(e.device, [&] { launch(add_one, 10, x); });
  const VkCommandBuffer commands = e.renderer.begin();
  const VkSemaphore timeline = e.renderer.make_timeline();
  const auto refuse = [&](const std::function<void()>& work, const std::string& text) {
    expect_contains(error_of([&] { (void)stream.record_into(commands, work); }), text);
  };
  const Event before = stream.record();
  const std::string recording = "while work is recorded into a command buffer";
  expect_contains(error_of([&] { (void)stream.record_into(nullptr, nothing); }), "null VkCommandBuffer");
  refuse([&] { x.to_vector(); }, recording);
  refuse([&] { e.device.synchronize(); }, recording);
  refuse([&] { stream.wait(before); }, recording);
  refuse([&] { stream.signal(timeline, 1); }, recording);
  refuse([&] { graph.launch(); }, recording);
  refuse([&] { launch(add_one, 10, other); }, "work is given to device");
  refuse([&] { (void)stream.record_into(commands, nothing); }, recording);
  refuse([&] { throw Error(ErrorKind::io, "the caller's own"); }, "the caller's own");
  // The command buffer is as it was before.
  e.renderer.submit(commands);
  EXPECT_EQ(x.at(0), 1);
}

TEST_P(Recorded, ALaunchThatIsRefusedForARecordingChangesNoMesh) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const MeshData data = shapes::icosphere(1, 1);
  Array<int> indices(e.device, data.indices);
  Mesh mesh(Array<vec3>(e.device, data.points), indices);
  Array<int> counts = zeros<int>(e.device, 10);
  const auto change = kernel("change", [](Arr<int> indices, Arr<int> counts) {
    indices[tid()] += 0;
    counts[tid()] += 1;
  });
  const auto count = kernel("count", [](Arr<int> counts) { counts[tid()] += 1; });
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] { launch(count, 10, counts); });
  expect_contains(error_of([&] { launch(change, 10, indices, counts); }), "not submitted");
  mesh.refit();
  e.renderer.submit(commands);
  recording.submitted();
  EXPECT_EQ(counts.at(3), 1);
}

TEST_P(Recorded, NothingComesBetweenARecordingAndItsSubmission) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = full<float>(e.device, 10, 1), y = full<float>(e.device, 10, 1);
  const VkCommandBuffer commands = e.renderer.begin();
  Recording recording = e.device.stream().record_into(commands, [&] { launch(add, 10, x, y); });
  const std::string text = "not submitted";
  const std::string launching = error_of([&] { launch(add_one, 10, y); });
  for (const std::string& part :
       {text, std::string("argument 1"), std::string("add_one"), std::string("recording_test")})
    expect_contains(launching, part);
  const Array<Holder> holder(e.device, {Holder{y}});
  const std::string through_elements = error_of([&] { launch(add_to_held, 10, holder); });
  for (const std::string& part : {text, std::string("what elements of its arguments hold"), std::string("add_to_held"),
                                  std::string("recording_test")})
    expect_contains(through_elements, part);
  expect_contains(error_of([&] { y.to_vector(); }), text);
  expect_contains(error_of([&] { x.fill(3); }), text);
  expect_contains(error_of([&] { (void)recording.done(); }), text);
  EXPECT_EQ(x.at(0), 1);  // the recording only reads x, so x may be read
  // A recording that is dropped without a submission never runs.
  recording = {};
  launch(add_one, 10, y);
  EXPECT_EQ(y.at(0), 2);
  expect_contains(error_of([&] { recording.submitted(); }), "null Recording");
  Recording again = e.device.stream().record_into(e.renderer.begin(), [&] { launch(add, 10, x, y); });
  expect_contains(error_of([&] { again.submitted(VkSemaphore{}, 1); }), "null semaphore");
  expect_contains(error_of([&] { again.submitted(e.renderer.make_timeline(), 0); }),
                  "gets 0, which it has from the start");
}

TEST_P(Recorded, DetachEndsRecordings) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = full<float>(e.device, 1, 1), y = zeros<float>(e.device, 1);
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] { launch(slow, 1, x, y); });
  const Recording unused = e.device.stream().record_into(e.renderer.begin(), [&] { launch(add_one, 1, x); });
  const VkSemaphore timeline = e.renderer.make_timeline();
  e.renderer.submit(commands, timeline, 1);
  recording.submitted(timeline, 1);
  e.device.detach();
  EXPECT_EQ(e.renderer.value_of(timeline), 1u);
  expect_contains(error_of([&] { recording.submitted(); }), "was detached");
  expect_contains(error_of([&] { (void)recording.done(); }), "was detached");
}

TEST_P(Recorded, NothingIsRecordedOnADetachedDevice) {
  if (on_host()) GTEST_SKIP();
  for (const bool launches : {false, true}) {
    Embedded e(on_gpu());
    Array<float> x = full<float>(e.device, 1, 1);
    const Stream stream = e.device.stream();
    const VkCommandBuffer commands = e.renderer.begin();
    e.device.detach();  // before anything was recorded
    for (int k = 0; k < 2; ++k)
      expect_contains(error_of([&] {
                        (void)stream.record_into(commands, [&] {
                          if (launches) launch(add_one, 1, x);
                        });
                      }),
                      "was detached");
  }
}

TEST_P(Recorded, StreamsWaitForSemaphores) {
  const VkSemaphore none{};
  if (on_host()) {
    expect_contains(error_of([&] { device().stream().wait(none, 1); }), "wait() on " + device().name());
    expect_contains(error_of([&] { device().stream().signal(none, 1); }), "signal() on " + device().name());
    return;
  }
  expect_contains(error_of([&] { device().stream().wait(none, 1); }), "null semaphore");
  Embedded e(on_gpu());
  const Stream stream = e.device.stream();
  Array<float> x = zeros<float>(e.device, 1);
  const VkSemaphore go = e.renderer.make_timeline(), done = e.renderer.make_timeline();
  launch(add_one, 1, x);
  stream.wait(go, 3);
  launch(add_one, 1, x);
  stream.signal(done, 7);
  const Event event = stream.record();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(event.done());
  EXPECT_EQ(e.renderer.value_of(done), 0u);
  e.renderer.signal(go, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(event.done());
  e.renderer.signal(go, 3);
  e.renderer.wait_for(done, 7);
  EXPECT_EQ(x.at(0), 2);
  // The semaphore has this value already.
  stream.wait(go, 1);
  launch(add_one, 1, x);
  EXPECT_EQ(x.at(0), 3);
  expect_contains(error_of([&] { stream.wait(none, 1); }), "null semaphore");
  expect_contains(error_of([&] { stream.signal(none, 1); }), "null semaphore");
}

TEST_P(Recorded, ValuesOfASemaphoreDoNotGoBackwards) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const Stream stream = e.device.stream();
  const VkSemaphore semaphore = e.renderer.make_timeline(10), go = e.renderer.make_timeline();
  expect_contains(error_of([&] { stream.signal(semaphore, 9); }), "signalled with 9, and it has 10");
  expect_contains(error_of([&] { stream.signal(semaphore, 10); }), "it has 10");
  // The value has not been reached, and is known all the same.
  stream.wait(go, 1);
  stream.signal(semaphore, 20);
  expect_contains(error_of([&] { stream.signal(semaphore, 15); }), "it is to have 20");
  stream.signal(semaphore, 21);
  e.renderer.signal(go, 1);
  e.renderer.wait_for(semaphore, 21);
  stream.signal(semaphore, 22);
  e.device.synchronize();
  EXPECT_EQ(e.renderer.value_of(semaphore), 22u);
}

TEST_P(Recorded, ValuesThatASubmissionIsToldDoNotGoBackwards) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = zeros<float>(e.device, 1), y = zeros<float>(e.device, 1);
  const VkSemaphore semaphore = e.renderer.make_timeline();
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording r = e.device.stream().record_into(commands, [&] {
    launch(slow, 1, x, y);
    launch(add, 1, y, x);
  });
  e.renderer.submit(commands, semaphore, 5);
  r.submitted(semaphore, 5);
  EXPECT_EQ(x.at(0), 1);
  // The queue has the work, whatever value it is said to signal, so the work is waited for.
  r.prepare();
  e.renderer.submit_again(commands);
  const std::string error = error_of([&] { r.submitted(semaphore, 3); });
  expect_contains(error, "has the value 3");
  expect_contains(error, "a submission before it when that has 5");
  EXPECT_EQ(x.at(0), 3) << "1, and y, which is x + 1";
  // 5 is the value of the frame before.
  r.prepare();
  e.renderer.submit_again(commands);
  expect_contains(error_of([&] { r.submitted(semaphore, 5); }), "has the value 5");
  EXPECT_EQ(x.at(0), 7);
  // Values of other semaphores are not compared, nor those of two command buffers that one submission signals for.
  const VkSemaphore other = e.renderer.make_timeline();
  const VkCommandBuffer first = e.renderer.begin(), second = e.renderer.begin();
  const Recording a = e.device.stream().record_into(first, [&] { launch(add_one, 1, x); });
  const Recording b = e.device.stream().record_into(second, [&] { launch(add_one, 1, x); });
  e.renderer.submit(first);
  e.renderer.submit(second, other, 1);
  a.submitted(other, 1);
  b.submitted(other, 1);
  EXPECT_EQ(x.at(0), 9);
  const VkCommandBuffer third = e.renderer.begin();
  const Recording c = e.device.stream().record_into(third, [&] { launch(add_one, 1, x); });
  e.renderer.submit(third);
  expect_contains(error_of([&] { c.submitted(other, 1); }), "has the value 1");
  EXPECT_EQ(x.at(0), 10);
}

}  // namespace
