// Graphs of the Vulkan backend: the commands that they record, and how often.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <array>
#include <cstring>
#include <vector>

#include "../../../backends/operations.h"
#include "../../../backends/vulkan/commands/graph.h"
#include "../../../backends/vulkan/device.h"
#include "../../../backends/vulkan/vulkan.h"

namespace weft::backend {
namespace {

using ir::Access;
using vulkan::VulkanGraph;

constexpr std::uint32_t kThreads = 4096;
constexpr std::uint64_t kBytes = kThreads * sizeof(int);

/// A test with launches of x[tid] = x[tid] * 3 + by, whose results show their order.
class VulkanGraphs : public testing::Test {
 protected:
  void SetUp() override {
    if (list_vulkan_devices().empty()) GTEST_SKIP() << "no Vulkan adapter";
    device_ = open_vulkan(0);
    const auto step = kernel("step", [](Arr<int> x, Int by) { x[tid()] = x[tid()] * 3 + by; });
    module_ = step.trace();
    program_ = device_->compile(module_, ir::hash(module_));
    for (Allocation& x : arrays_) x = device_->allocate(kBytes, MemoryKind::device);
    stream_ = device_->create_stream();
    for (const Allocation& x : arrays_) stream_->fill(x.address, kBytes, 0);
    stream_->submit();
  }
  void TearDown() override {
    if (!device_) return;
    for (const Allocation& x : arrays_) device_->free(x);
  }

  MemoryRange range(int array) const {
    return {arrays_[std::size_t(array)].address, kBytes, Access::read | Access::write};
  }
  std::vector<std::byte> arguments(int array, std::int32_t by) const {
    std::vector<std::byte> block(module_.args_bytes);
    std::memcpy(block.data(), &kThreads, 4);
    std::memcpy(block.data() + module_.params[0].offset, &arrays_[std::size_t(array)].address, 8);
    std::memcpy(block.data() + module_.params[0].offset + 8, &kThreads, 4);
    std::memcpy(block.data() + module_.params[1].offset, &by, 4);
    return block;
  }
  void launch(CaptureStream& captured, int array, std::int32_t by) const {
    const MemoryRange touched = range(array);
    captured.launch(*program_, {kThreads / module_.block, 1, 1}, arguments(array, by), {&touched, 1});
  }
  void patch(Graph& graph, std::size_t operation, int array, std::int32_t by) const {
    const MemoryRange touched = range(array);
    graph.patch(operation, arguments(array, by), {&touched, 1});
  }
  std::unique_ptr<VulkanGraph> make(CaptureStream& captured) const {
    return std::unique_ptr<VulkanGraph>(static_cast<VulkanGraph*>(device_->create_graph(captured.take()).release()));
  }
  int last_of(int array) {
    int value = 0;
    stream_->download(&value, arrays_[std::size_t(array)].address + kBytes - sizeof value, sizeof value,
                      stream_->submit());
    return value;
  }

  std::unique_ptr<Device> device_;
  ir::Module module_;
  std::shared_ptr<Program> program_;
  std::array<Allocation, 3> arrays_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(VulkanGraphs, AreNotRecordedAgainForOtherScalars) {
  CaptureStream captured(*device_);
  for (int k = 0; k < 3; ++k) launch(captured, 0, 1);
  captured.operations().list[1].patched = true;  // set by the capture
  const auto graph = make(captured);
  const auto other = device_->create_stream();
  std::uint32_t expected = 0;
  for (int k = 0; k < 60; ++k) {
    Stream& stream = k % 2 ? *stream_ : *other;
    patch(*graph, 1, 0, k);
    stream.replay(*graph);
    stream.submit();
    if (k % 3 == 0) stream.replay(*graph);  // once more, unchanged
    for (int again = 0; again <= (k % 3 == 0); ++again) expected = ((expected * 3 + 1) * 3 + std::uint32_t(k)) * 3 + 1;
    stream.submit();
  }
  EXPECT_EQ(std::uint32_t(last_of(0)), expected);
  EXPECT_EQ(graph->recorded(), 1u);
}

TEST_F(VulkanGraphs, AreRecordedOnceMoreForALaunchThatNobodyNamed) {
  CaptureStream captured(*device_);
  for (int k = 0; k < 3; ++k) launch(captured, 0, 1);
  const auto graph = make(captured);
  std::uint32_t expected = 0;
  for (int k = 0; k < 5; ++k) {
    patch(*graph, 2, 0, k);
    stream_->replay(*graph);
    expected = ((expected * 3 + 1) * 3 + 1) * 3 + std::uint32_t(k);
  }
  EXPECT_EQ(std::uint32_t(last_of(0)), expected);
  EXPECT_EQ(graph->recorded(), 2u);
}

TEST_F(VulkanGraphs, AreRecordedOnceMoreForOtherArraysWhicheverComeThen) {
  CaptureStream captured(*device_);
  launch(captured, 0, 1);
  launch(captured, 1, 1);
  launch(captured, 2, 1);
  captured.operations().list[1].patched = true;
  const auto graph = make(captured);
  EXPECT_EQ(graph->memory_barriers(), 0u) << "they have nothing in common";
  std::array<std::uint32_t, 3> expected{};
  const auto step = [&](int array, int by) {
    std::uint32_t& x = expected[std::size_t(array)];
    x = x * 3 + std::uint32_t(by);
  };
  for (int k = 0; k < 9; ++k) {
    patch(*graph, 1, k % 3, k);
    stream_->replay(*graph);
    step(0, 1), step(k % 3, k), step(2, 1);
  }
  for (int array = 0; array < 3; ++array) EXPECT_EQ(std::uint32_t(last_of(array)), expected[std::size_t(array)]);
  EXPECT_EQ(graph->recorded(), 2u);
  EXPECT_EQ(graph->memory_barriers(), 2u) << "before and behind the launch whose arrays may be any";
}

TEST_F(VulkanGraphs, ExchangeArgumentsOfStepsOfAChain) {
  CaptureStream captured(*device_);
  const auto block = [&](std::int32_t by) {
    std::vector<std::byte> bytes = arguments(0, by);
    const std::uint32_t n = 32;
    std::memcpy(bytes.data(), &n, 4);
    return bytes;
  };
  const MemoryRange touched = range(0);
  for (int k = 0; k < 40; ++k) captured.launch(*program_, {1, 1, 1}, block(1), {&touched, 1});
  const auto graph = make(captured);
  EXPECT_EQ(static_cast<vulkan::VulkanDevice&>(*device_).stats().chains, 1u);
  std::uint32_t expected = 0;
  for (int k = 0; k < 10; ++k) {
    graph->patch(7, block(k), {&touched, 1});
    stream_->replay(*graph);
    for (int step = 0; step < 40; ++step) expected = expected * 3 + (step == 7 ? std::uint32_t(k) : 1u);
  }
  int first = 0;
  stream_->download(&first, arrays_[0].address, 4, stream_->submit());
  EXPECT_EQ(std::uint32_t(first), expected);
  EXPECT_EQ(graph->recorded(), 1u);
}

TEST_F(VulkanGraphs, HaveBarriersAfterEachLaunchWhereThatIsAskedFor) {
  for (const bool always : {false, true}) {
    CaptureStream captured(*device_);
    captured.operations().barrier_always = always;
    for (int k = 0; k < 6; ++k) launch(captured, k % 3, 1);
    // Three launches have nothing in common, and each of three more follows one of them.
    EXPECT_EQ(make(captured)->memory_barriers(), always ? 5u : 1u);
  }
}

TEST_F(VulkanGraphs, RefuseWhatIsNoLaunchOrHasOtherArguments) {
  CaptureStream captured(*device_);
  launch(captured, 0, 1);
  captured.fill(arrays_[0].address, 4, 1);
  const auto graph = make(captured);
  EXPECT_THROW(patch(*graph, 1, 0, 1), Error);
  EXPECT_THROW(graph->patch(0, std::vector<std::byte>(5), {}), Error);
}

}  // namespace
}  // namespace weft::backend
