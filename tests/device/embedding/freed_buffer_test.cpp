// A renderer takes a wrapped buffer away while arrays, graphs and recordings still name it.
#include <gtest/gtest.h>
#include <weft/runtime/graph.h>
#include <weft/vulkan.h>

#include <optional>

#include "../watched_test.h"
#include "embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });

struct Held {
  Array<float> values;
};
WEFT_STRUCT(Held, values);

WATCHED_TEST(FreedBuffers);

TEST_P(FreedBuffers, GoBackToTheRendererWhateverStillNamesThem) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const Renderer::Buffer buffer = e.renderer.make_buffer(400);
  const VulkanBuffer whole{buffer.buffer, 0, 400, 0, buffer.usage};
  auto owner = std::make_shared<int>(1);
  Array<float> x = wrap_buffer<float>(e.device, 100, whole, owner);
  x.fill(0);
  const Graph graph = capture(e.device, [&] { launch(add_one, 100, x); });
  graph.launch();
  EXPECT_EQ(owner.use_count(), 2);
  x.free();
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(reinterpret_cast<float*>(buffer.host)[99], 1) << "work is waited for";
  expect_contains(error_of([&] { launch(add_one, 100, x); }), "is an array that was freed");
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on an array that was freed since it was made");
  expect_contains(error_of([&] { (void)x.vk(); }), "freed");
  expect_contains(error_of([&] { (void)export_memory(x); }), "freed");
  // A swapchain that gets another size does the same: another array stands on the same place.
  Array<float> again = wrap_buffer<float>(e.device, 100, whole);
  launch(add_one, 100, again);
  EXPECT_EQ(again.at(0), 2);
}

TEST_P(FreedBuffers, StayWhereACommandBufferMayUseThem) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = zeros<float>(e.device, 100);
  VkCommandBuffer commands = e.renderer.begin();
  std::optional<Recording> recording = e.device.stream().record_into(commands, [&] { launch(add_one, 100, x); });
  expect_contains(error_of([&] { x.free(); }), "others still work on");
  e.renderer.submit(commands);
  recording->submitted();
  EXPECT_EQ(x.at(7), 1);
  expect_contains(error_of([&] { x.free(); }), "others still work on: a Recording; let it end first");
  recording.reset();
  x.free();
  expect_contains(error_of([&] {
                    commands = e.renderer.begin();
                    (void)e.device.stream().record_into(commands, [&] { launch(add_one, 100, x); });
                  }),
                  "is an array that was freed");
}

// A recording keeps the arrays to which elements lead.
TEST_P(FreedBuffers, StayWhereACommandBufferReachesThem) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> a = full<float>(e.device, 4, 1), to = zeros<float>(e.device, 4);
  const Array<Held> held(e.device, {Held{a}});
  const VkCommandBuffer commands = e.renderer.begin();
  std::optional<Recording> recording = e.device.stream().record_into(commands, [&] {
    launch(kernel("add what is held",
                  [](Arr<const Held> from, Arr<float> to) {
                    Int i = tid();
                    to[i] += from[0].values[i];
                  }),
           4, held, to);
  });
  e.renderer.submit(commands);
  recording->submitted();
  expect_contains(error_of([&] { a.free(); }), "others still work on");
  recording->prepare();
  e.renderer.submit_again(commands);
  recording->submitted();
  EXPECT_EQ(to.at(3), 2);
  expect_contains(error_of([&] { a.free(); }), "others still work on");
  recording.reset();
  a.free();
}

}  // namespace
