// Kernels in a renderer's command buffers that print, assert, check themselves and look for several writers.
#include <weft/runtime/graph.h>

#include "../../../backends/vulkan/device.h"
#include "../../../runtime/core/state.h"
#include "../printed.h"
#include "../watched_test.h"
#include "embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

const auto add_one = kernel("add one", [](Arr<int> x) { x[tid()] += 1; });
const auto tell = kernel("tell", [](Arr<const int> x, Int name) { print(name, tid(), x[tid()]); });
const auto careful = kernel("careful", [](Arr<int> x) {
  assert_(x[tid()] < 2, "too many:", x[tid()]);
  x[tid()] += 1;
});

class RecordedReports : public WatchedTest {
  void SetUp() override {
    WatchedTest::SetUp();
    if (!IsSkipped() && on_host()) GTEST_SKIP() << "no command buffers there";
  }
};
ON_EVERY_DEVICE(RecordedReports);

// A renderer, and the recording of work into its command buffers.
struct Frames {
  explicit Frames(bool gpu) : e(gpu) {}
  Recording record(const std::function<void()>& work) {
    commands = e.renderer.begin();
    return e.device.stream().record_into(commands, work);
  }
  Recording submit(const std::function<void()>& work) {
    Recording recording = record(work);
    e.renderer.submit(commands);
    recording.submitted();
    return recording;
  }
  Embedded e;
  VkCommandBuffer commands = VK_NULL_HANDLE;
};

// Adopts the renderer's device as one whose memory the host does not see.
Device unmapped(Renderer& renderer) {
  static std::uint64_t ids = 1ull << 41;
  auto state = std::make_shared<detail::DeviceState>();
  state->id = ids++;
  state->device = backend::vulkan::adopt(handles_of(renderer), {.map_device_memory = false});
  state->streams.push_back(std::make_unique<detail::StreamState>(*state, state->device->create_stream()));
  state->default_stream = state->streams.front().get();
  return Device(state);
}

TEST_P(RecordedReports, AreShownByTheWaitForTheRecording) {
  Printed printed;
  Frames f(on_gpu());
  Array<int> x = zeros<int>(f.e.device, 2);
  const Recording recording = f.submit([&] {
    launch(tell, 2, x, 1);
    launch(add_one, 2, x);
    launch(tell, 2, x, 2);
  });
  recording.wait();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0", "1 1 0", "2 0 1", "2 1 1"}));
  recording.wait();
  f.e.device.synchronize();
  EXPECT_EQ(printed.lines(), Lines{}) << "lines are shown once";
}

TEST_P(RecordedReports, AreShownByWhateverWaitsForTheArraysOrTheDevice) {
  Printed printed;
  Frames f(on_gpu());
  Array<int> x = zeros<int>(f.e.device, 4);
  const Recording first = f.submit([&] {
    launch(tell, 1, x, 1);
    launch(careful, 4, x);
  });
  EXPECT_EQ(x.at(3), 1);
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0"}));
  const Recording second = f.submit([&] { launch(careful, 4, x); });
  f.e.device.synchronize();
  const Recording third = f.submit([&] {
    launch(tell, 1, x, 3);
    launch(careful, 4, x);
  });
  const std::string message = error_of([&] { (void)x.at(0); });
  expect_contains(message, "careful");
  expect_contains(message, "thread 0: an assertion failed: too many: 2");
  expect_contains(message, "3 more");
  EXPECT_EQ(printed.lines(), (Lines{"3 0 2"}));
  EXPECT_EQ(x.at(0), 2) << "failures are thrown once, and what follows them is not done";
}

TEST_P(RecordedReports, OfFramesAreShownWhereTheseAreReplaced) {
  Printed printed;
  Frames f(on_gpu());
  Array<int> x = zeros<int>(f.e.device, 1);
  const VkSemaphore timeline = f.e.renderer.make_timeline();
  Lines shown, expected;
  {
    Recording frames[3];
    for (int k = 0; k < 9; ++k) {
      f.e.renderer.wait_for(timeline, std::uint64_t(std::max(k - 2, 0)));
      frames[k % 3] = f.record([&] {
        launch(tell, 1, x, k);
        launch(add_one, 1, x);
      });
      for (std::string& line : printed.lines()) shown.push_back(std::move(line));
      EXPECT_GE(shown.size(), std::size_t(std::max(k - 2, 0))) << "what was replaced has been shown, at the latest";
      f.e.renderer.submit(f.commands, timeline, std::uint64_t(k + 1));
      frames[k % 3].submitted(timeline, std::uint64_t(k + 1));
      expected.push_back(std::to_string(k) + " 0 " + std::to_string(k));
    }
  }
  for (std::string& line : printed.lines()) shown.push_back(std::move(line));
  EXPECT_EQ(shown, expected);
}

TEST_P(RecordedReports, OfAnEndedRecordingAreThrownByTheNextWait) {
  Frames f(on_gpu());
  Array<int> x = full<int>(f.e.device, 4, 7);
  {
    const Recording recording = f.submit([&] { launch(careful, 4, x); });
  }
  expect_contains(error_of([&] { f.e.device.synchronize(); }), "too many: 7");
  f.e.device.synchronize();
}

TEST_P(RecordedReports, AreTakenBeforeTheCommandsRunAgain) {
  Printed printed;
  Frames f(on_gpu());
  Array<int> x = zeros<int>(f.e.device, 1);
  const Recording recording = f.submit([&] {
    launch(tell, 1, x, 1);
    launch(careful, 1, x);
  });
  const VkCommandBuffer commands = f.commands;
  recording.prepare();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0"}));
  f.e.renderer.submit_again(commands);
  recording.submitted();
  recording.prepare();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 1"}));
  f.e.renderer.submit_again(commands);
  recording.submitted();
  expect_contains(error_of([&] { recording.prepare(); }), "too many: 2");
  EXPECT_EQ(printed.lines(), (Lines{"1 0 2"}));
}

TEST_P(RecordedReports, OfOneRecordingDoNotWaitForAnother) {
  Printed printed;
  Frames f(on_gpu());
  const TimelineSemaphore ends(f.e.device);
  Array<int> x = zeros<int>(f.e.device, 1), y = zeros<int>(f.e.device, 1);
  const Recording late = f.record([&] { launch(tell, 1, x, 1); });
  f.e.renderer.submit(f.commands);
  late.submitted(ends.vk(), 1);  // the renderer would signal this by a later submission
  const Recording other = f.submit([&] { launch(tell, 1, y, 2); });
  other.wait();
  EXPECT_EQ(printed.lines(), (Lines{"2 0 0"}));
  ends.signal(1);
  late.wait();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0"}));
}

// Reports are read without the queue, which may be waiting for a semaphore that is signalled last.
TEST_P(RecordedReports, AreReadWithoutTheQueue) {
  Printed printed;
  Renderer renderer(wish_for_weft(on_gpu()));
  const Device device = unmapped(renderer);
  const VkSemaphore frame = renderer.make_timeline(), later = renderer.make_timeline();
  Array<int> x = full<int>(device, 4, 7);
  device.synchronize();
  {
    const VkCommandBuffer commands = renderer.begin();
    const Recording recording = device.stream().record_into(commands, [&] {
      launch(tell, 4, x, 1);
      launch(careful, 4, x);
    });
    renderer.submit(commands, frame, 1);
    recording.submitted(frame, 1);
    device.stream().wait(later, 1);
    launch(add_one, 4, x);
    expect_contains(error_of([&] { recording.wait(); }), "too many: 7 (3 more");
    EXPECT_EQ(printed.lines(), (Lines{"1 0 7", "1 1 7", "1 2 7", "1 3 7"}));
  }
  const VkCommandBuffer commands = renderer.begin();
  renderer.signal(later, 1);
  const Recording fails = device.stream().record_into(commands, [&] { launch(careful, 1, x); });
  renderer.submit(commands, frame, 2);
  fails.submitted(frame, 2);
  expect_contains(error_of([&] { fails.wait(); }), "too many: 8");
  device.detach();
}

TEST_P(RecordedReports, AreKeptWhereAWaitIsRefused) {
  Printed printed;
  Frames f(on_gpu());
  Array<int> x = full<int>(f.e.device, 4, 7);
  launch(tell, 1, x, 1);
  launch(careful, 4, x);
  const Recording recording = f.record([&] { launch(add_one, 4, x); });
  // The wait already knows of the failure when it comes to the recording, which refuses it.
  expect_contains(error_of([&] { (void)x.at(0); }), "not submitted");
  EXPECT_EQ(printed.lines(), (Lines{"1 0 7"}));
  f.e.renderer.submit(f.commands);
  recording.submitted();
  expect_contains(error_of([&] { (void)x.at(0); }), "too many: 7");
  EXPECT_EQ(x.at(0), 8);
  EXPECT_EQ(printed.lines(), Lines{});
}

TEST_P(RecordedReports, OfFailuresDoNotKeepCommandsFromBeingPrepared) {
  Frames f(on_gpu());
  const auto twice = kernel("twice", [](Arr<int> x) {
    x[tid()] *= 2;
    assert_(x[tid()] != 2, "it was one");
  });
  Array<int> x = full<int>(f.e.device, 1, 1);
  const Recording recording = f.submit([&] { launch(twice, 1, x); });
  const Stream other = f.e.device.create_stream();
  launch(other, add_one, 1, x);
  expect_contains(error_of([&] { recording.prepare(); }), "it was one");
  f.e.renderer.submit_again(f.commands);
  recording.submitted();
  EXPECT_EQ(x.at(0), 6) << "what was launched before the submission comes before";
}

TEST_P(RecordedReports, OfLoopsAndConditionsComeInOrder) {
  Printed printed;
  Frames f(on_gpu());
  Array<int> x = zeros<int>(f.e.device, 1), left(f.e.device, {3});
  const auto count = kernel("count", [](Arr<int> left) { left[0] -= 1; });
  const Recording recording = f.submit([&] {
    graph_while(left, 5, [&] {
      launch(tell, 1, x, 1);
      launch(add_one, 1, x);
      launch(count, 1, left);
    });
    launch(tell, 1, x, 2);
  });
  recording.wait();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0", "1 0 1", "1 0 2", "2 0 3"}));
}

TEST_P(RecordedReports, TellOfIndicesInDebugMode) {
  Frames f(on_gpu());
  const auto copy = kernel("copy beyond", [](Arr<const int> x, Arr<int> to) { to[tid()] = x[tid()]; }, {.debug = true});
  Array<int> x = zeros<int>(f.e.device, 4), to = zeros<int>(f.e.device, 2);
  const Recording recording = f.submit([&] { launch(copy, 4, x, to); });
  expect_contains(error_of([&] { recording.wait(); }), "index 2 is outside dimension 0");
}

// The adjoint checks whether several threads stored to one element.
TEST_P(RecordedReports, TellOfSeveralWritersThatHaveNoGradient) {
  Frames f(on_gpu());
  const auto last = kernel("last", [](Arr<const float> x, Arr<float> y) { y[0] = x[tid()] * 3; });
  Array<float> x = full<float>(f.e.device, 4, 1).requires_grad(), y = zeros<float>(f.e.device, 1);
  const auto step = [&](int n) {
    return [&, n] {
      Tape tape;
      tape.record([&] { launch(last, n, x, y); });
      tape.backward(y);
    };
  };
  const Recording one = f.submit(step(1));
  one.wait();
  EXPECT_EQ(x.grad().at(0), 3);
  const Recording several = f.submit(step(4));
  const std::string message = error_of([&] { several.wait(); });
  expect_contains(message, "last");
  expect_contains(message, "not differentiable");
}

TEST_P(RecordedReports, ComeOutWhereTheDeviceIsDetached) {
  Printed printed;
  Frames f(on_gpu());
  Array<int> x = full<int>(f.e.device, 1, 5);
  const Recording recording = f.submit([&] { launch(tell, 1, x, 1); });
  const Recording never = f.record([&] { launch(tell, 1, x, 2); });
  f.e.device.detach();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 5"}));
  expect_contains(error_of([&] { recording.wait(); }), "was detached");
}

TEST_P(RecordedReports, AreNotWaitedForBeforeTheSubmission) {
  Printed printed;
  Frames f(on_gpu());
  Array<int> x = zeros<int>(f.e.device, 1);
  {
    const Recording recording = f.record([&] { launch(tell, 1, x, 1); });
    expect_contains(error_of([&] { recording.wait(); }), "not submitted");
  }
  f.e.device.synchronize();
  EXPECT_EQ(printed.lines(), Lines{});
  expect_contains(error_of([&] { Recording().wait(); }), "null Recording");
}

}  // namespace
