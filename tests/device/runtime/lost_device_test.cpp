// A device that stops answering: every later call says so, and nothing hangs or throws at the end.
#include <weft/algorithms.h>
#include <weft/geometry.h>
#include <weft/runtime/dlpack.h>
#include <weft/runtime/graph.h>
#include <weft/runtime/profile.h>
#include <weft/vulkan.h>
#include <weft/weft.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "../../../backends/vulkan/device.h"
#include "../../../backends/vulkan/queue/stream.h"
#include "../../../runtime/core/state.h"
#include "../../../runtime/exchange/dlpack_abi.h"
#include "../watched_test.h"

using namespace weft;
using weft::test::expect_contains;

namespace {

WATCHED_TEST(LostDevices);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
const auto says = kernel("says", [](Arr<float> x) { assert_(x[tid()] < 1000, "large"); });

void lose_next_submission(const Device& device) {
  dynamic_cast<backend::vulkan::VulkanDevice&>(device.native()).submitter().lose_next();
}

void expect_lost(const char* what, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << what << " did not say that the device is lost";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device_lost) << what << ": " << e.what();
    expect_contains(e.what(), "stopped answering in vkQueueSubmit");
  }
}

TEST_P(LostDevices, are_reported_by_every_later_call) {
  if (on_host()) GTEST_SKIP() << "the host cannot be lost";
  const int n = 1000;
  std::optional<Device> own = Device::open(device().name());
  std::vector<Array<float>> arrays;
  for (int k = 0; k < 3; ++k) arrays.push_back(full<float>(*own, n, float(k)));
  Array<float> x = arrays[0], y = arrays[1];
  Array<float> there = zeros<float>(device(), n);
  std::vector<float> values(n), late(n);
  Array<float> around = own->wraps_host() ? wrap(*own, values) : Array<float>();
  std::optional<Stream> stream = own->create_stream();
  (void)own->create_stream();  // idle from here on
  Array<float> unused = empty<float>(*own, n);
  launch(*stream, add_one, n, x);
  launch(says, n, x);
  GraphNode node;
  Graph graph = capture(*own, [&] {
    launch(add_one, n, y);
    node = captured_launch();
  });
  graph.launch();
  Array<float> z = full<float>(*own, n, 2).requires_grad(), loss = zeros<float>(*own, n);
  Tape tape;
  tape.record([&] { launch(square, n, z, loss); });
  const Event early = stream->record();
  own->synchronize();
  launch(*stream, add_one, n, x);
  HostCopy copy = x.copy_to_async(late);
  const std::unique_ptr<DLManagedTensor, void (*)(DLManagedTensor*)> tensor(to_dlpack_unversioned(unused),
                                                                            [](DLManagedTensor* t) { t->deleter(t); });
  own->synchronize();

  lose_next_submission(*own);
  launch(*stream, add_one, n, x);
  expect_lost("the submission itself", [&] { stream->submit(); });
  for (int round = 0; round < 2; ++round) {
    expect_lost("submit", [&] { stream->submit(); });
    expect_lost("launch", [&] { launch(*stream, add_one, n, x); });
    expect_lost("launch on the default stream", [&] { launch(add_one, n, x); });
    expect_lost("launch of a kernel that is not compiled",
                [&] { launch(kernel("new", [](Arr<float> x) { x[tid()] = 3; }), n, x); });
    expect_lost("launch of a kernel that reports", [&] { launch(says, n, x); });
    expect_lost("at", [&] { x.at(0); });
    expect_lost("to_vector", [&] { y.to_vector(); });
    expect_lost("copy_to_async", [&] { x.copy_to_async(values).wait(); });
    expect_lost("fill", [&] { x.fill(1); });
    expect_lost("assign", [&] { x.assign(values); });
    expect_lost("copy_from", [&] { x.copy_from(y); });
    expect_lost("copy to another device", [&] { there.copy_from(x); });
    expect_lost("copy from another device", [&] { x.copy_from(there); });
    expect_lost("clone", [&] { x.clone(); });
    expect_lost("wait", [&] { x.wait(); });
    expect_lost("a new array", [&] { zeros<float>(*own, n); });
    expect_lost("an array of another size", [&] { empty<float>(*own, 7 * n); });
    expect_lost("an array of no elements", [&] { empty<float>(*own, 0); });
    expect_lost("wait for an array without work", [&] { unused.wait(); });
    expect_lost("create_stream", [&] { own->create_stream(); });
    expect_lost("barrier_always", [&] { stream->barrier_always(false); });
    expect_lost("track_hazards", [&] { stream->track_hazards(true); });
    expect_lost("set_dispatch_budget", [&] { own->set_dispatch_budget(0); });
    expect_lost("capture of no work", [&] { capture(*own, [] {}); });
    expect_lost("synchronize", [&] { own->synchronize(); });
    expect_lost("synchronize a stream", [&] { stream->synchronize(); });
    expect_lost("record", [&] { stream->record(); });
    expect_lost("an event", [&] { early.wait(); });
    expect_lost("asking an event", [&] { early.done(); });
    expect_lost("waiting for an event", [&] { own->stream().wait(early); });
    expect_lost("graph", [&] { graph.launch(); });
    expect_lost("capture", [&] { capture(*own, [&] { launch(add_one, n, x); }); });
    expect_lost("tape", [&] { tape.backward({{loss, x}}); });
    expect_lost("tape over new work", [&] {
      Tape again;
      again.record([&] { launch(square, n, z, loss); });
    });
    expect_lost("graph with other arguments", [&] {
      graph.set(node, add_one, x);
      graph.launch();
    });
    expect_lost("to", [&] { x.to(device()); });
    expect_lost("assign a part", [&] { x.slice(3, 7).assign(std::vector<float>(4)); });
    expect_lost("sort", [&] { radix_sort(x); });
    expect_lost("sum", [&] { inclusive_scan(x, y); });
    expect_lost("a tensor of another library", [&] { from_dlpack<float>(*own, tensor.get()); });
    expect_lost("mesh", [&] { Mesh(*own, shapes::box()); });
    expect_lost("profiler", [&] { Profiler profiler(*own); });
    if (x.storage()->allocation.host) expect_lost("host_span", [&] { x.host_span(); });
  }
  expect_lost("a copy to the host that nobody has waited for", [&] { copy.wait(); });

  // Another device on the same adapter continues to work.
  launch(add_one, n, there);
  EXPECT_EQ(there.at(0), 1);

  // The end throws nothing and waits for nothing, in whichever order the objects go.
  stream.reset();
  own.reset();
  graph = {};
  arrays.clear();
  x = y = z = loss = around = unused = {};
}

TEST_P(LostDevices, are_noticed_by_whoever_waits) {
  if (on_host()) GTEST_SKIP() << "the host cannot be lost";
  const Device own = Device::open(device().name());
  Array<float> x = zeros<float>(own, 10), y = zeros<float>(own, 10);
  x.wait();
  lose_next_submission(own);
  launch(add_one, 10, x);
  expect_lost("at", [&] { x.at(0); });
  expect_lost("an array of no open work", [&] { y.at(0); });
}

TEST_P(LostDevices, end_with_work_that_was_never_submitted) {
  if (on_host()) GTEST_SKIP() << "the host cannot be lost";
  std::optional<Device> own = Device::open(device().name());
  std::optional<Profiler> profiler;
  {
    const Stream stream = own->create_stream();
    Array<float> x = zeros<float>(*own, 10);
    x.wait();
    profiler.emplace(*own);
    launch(stream, add_one, 10, x);
    lose_next_submission(*own);
  }  // the stream submits what it holds
  expect_lost("stop", [&] { profiler->stop(); });
  own.reset();
  Profiler another(device());
  another.stop();
}

// A process of its own exits in the middle, because the device only claims to be lost, and would go on waiting.
TEST_P(LostDevices, end_streams_whose_work_waits_for_others) {
  if (on_host()) GTEST_SKIP() << "the host cannot be lost";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto lose_and_leave = [&] {
    const test::Watchdog watchdog(std::chrono::seconds(50));
    const Device own = Device::open(device().name());
    const TimelineSemaphore semaphore(own);
    const Array<float> x = zeros<float>(own, 10);
    x.wait();
    std::unique_ptr<backend::Stream> stream = own.native().create_stream();
    dynamic_cast<backend::vulkan::VulkanStream&>(*stream).await(semaphore.vk(), 1);
    stream->fill(x.address(), 40, 0);
    stream->submit();
    lose_next_submission(own);
    stream->fill(x.address(), 40, 0);
    expect_lost("the submission", [&] {
      stream->submit();
      auto& submitter = dynamic_cast<backend::vulkan::VulkanDevice&>(own.native()).submitter();
      submitter.finish(submitter.last_place());
      own.native().check_alive();
    });
    if (HasFailure()) std::_Exit(2);
    stream.reset();
    std::_Exit(0);
  };
  EXPECT_EXIT(lose_and_leave(), testing::ExitedWithCode(0), "");
}

}  // namespace
