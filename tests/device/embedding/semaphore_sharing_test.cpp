// Semaphores that are shared by file descriptors, between devices with weft and with plain Vulkan: by the driver, or by
// the layer that stands in for it (tests/stand_in/semaphore_layer.cpp).
#include <gtest/gtest.h>
#include <weft/vulkan.h>

#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "../../../frontend/support/platform.h"
#include "../watched_test.h"
#include "embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

auto add_one = kernel("add_one", [](Arr<float> x) { x[tid()] += 1; });
// These two kernels give other numbers in another order.
auto times_three = kernel("times_three", [](Arr<std::uint32_t> x) { x[tid()] *= 3u; });
auto plus_index = kernel("plus_index", [](Arr<std::uint32_t> x) { x[tid()] += UInt(tid()) + 1u; });

WATCHED_TEST(SemaphoreSharing);

bool shares(const Renderer& r) { return r.has_extension(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME); }

// Signals at the end, so that streams are not left waiting when a check fails.
struct Release {
  const TimelineSemaphore& semaphore;
  std::uint64_t value;
  ~Release() {
    if (semaphore.value() < value) semaphore.signal(value);
  }
};

// A plain device, of which weft knows nothing.
struct Plain {
  explicit Plain(bool gpu) {
    Renderer::Wish wish;
    wish.gpu = gpu;
    wish.semaphore_fd = true;
    wish.prepare = [this](Renderer& r) {
      twelve.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
      twelve.timelineSemaphore = VK_TRUE;
      r.features.pNext = &twelve;
      if (shares(r)) r.extensions.push_back(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
    };
    renderer.emplace(wish);
  }
  VkPhysicalDeviceVulkan12Features twelve{};
  std::optional<Renderer> renderer;
};

// Without shared semaphores, all later tests would be skipped.
TEST_P(SemaphoreSharing, EveryAdapterHasSharedSemaphores) {
  if (on_host()) GTEST_SKIP();
  std::uint32_t version = 0;
  Embedded e(on_gpu(), true);
  vkEnumerateInstanceVersion(&version);
  if (!platform::environment("VK_ADD_LAYER_PATH") && !platform::environment("VK_LAYER_PATH"))
    GTEST_SKIP() << "there is no layer for this system";
  if (version < VK_MAKE_API_VERSION(0, 1, 3, 239)) GTEST_SKIP() << "the loader may be too old to find the layer";
  EXPECT_TRUE(shares(e.renderer));
}

TEST_P(SemaphoreSharing, StreamsOfTwoDevicesTakeTurns) {
  if (on_host()) GTEST_SKIP();
  Embedded a(on_gpu(), true), b(on_gpu(), true);
  if (!shares(a.renderer) || !a.renderer.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) GTEST_SKIP();
  constexpr std::uint32_t kCount = 1000, kTurns = 20;
  Array<std::uint32_t> x = shareable<std::uint32_t>(a.device, kCount);
  x.fill(1);
  x.wait();
  Array<std::uint32_t> y = import_memory<std::uint32_t>(b.device, kCount, export_memory(x));
  const TimelineSemaphore here(a.device, 10, true), there(b.device, here.share());
  EXPECT_EQ(there.value(), 10u);
  const Release at_end{here, 1000};
  // The second device is given all its turns before the first device is given any.
  for (std::uint32_t k = 0; k < kTurns; ++k) {
    b.device.stream().wait(there.vk(), 11 + 2 * k);
    launch(plus_index, kCount, y);
    b.device.stream().signal(there.vk(), 12 + 2 * k);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(there.value(), 10u);
  for (std::uint32_t k = 0; k < kTurns; ++k) {
    a.device.stream().wait(here.vk(), 10 + 2 * k);
    launch(times_three, kCount, x);
    a.device.stream().signal(here.vk(), 11 + 2 * k);
  }
  a.device.stream().wait(here.vk(), 10 + 2 * kTurns);
  const std::vector<std::uint32_t> found = x.to_vector();
  for (std::uint32_t i = 0; i < kCount; ++i) {
    std::uint32_t expected = 1;
    for (std::uint32_t k = 0; k < kTurns; ++k) expected = expected * 3 + i + 1;
    ASSERT_EQ(found[i], expected) << i;
  }
  EXPECT_EQ(here.value(), 10 + 2 * kTurns);
  EXPECT_EQ(there.value(), 10 + 2 * kTurns);
}

TEST_P(SemaphoreSharing, HostsWaitSignalAndReadOnBothSides) {
  if (on_host()) GTEST_SKIP();
  Embedded a(on_gpu(), true), b(on_gpu(), true);
  if (!shares(a.renderer)) GTEST_SKIP();
  const TimelineSemaphore here(a.device, 2, true), there(b.device, here.share());
  EXPECT_EQ(there.value(), 2u);
  there.wait(1);
  there.signal(3);
  here.wait(3);
  EXPECT_EQ(here.value(), 3u);
  here.signal(5);
  there.wait(4);
  EXPECT_EQ(there.value(), 5u);
  {
    std::thread waits([&] { there.wait(7); });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    a.device.stream().signal(here.vk(), 7);
    waits.join();
  }
  Array<float> x = zeros<float>(b.device, 1);
  b.device.stream().wait(there.vk(), 8);
  launch(add_one, 1, x);
  b.device.stream().signal(there.vk(), 9);
  EXPECT_EQ(here.value(), 7u);
  here.signal(8);
  here.wait(9);
  EXPECT_EQ(x.at(0), 1);
  // The device from which the semaphore comes imports it, and then has it twice.
  const TimelineSemaphore again(a.device, there.share());
  again.signal(12);
  there.wait(12);
  EXPECT_EQ(here.value(), 12u);
}

TEST_P(SemaphoreSharing, ValuesThatDoNotGrowAreRefused) {
  if (on_host()) GTEST_SKIP();
  Embedded a(on_gpu(), true), b(on_gpu(), true);
  if (!shares(a.renderer)) GTEST_SKIP();
  const TimelineSemaphore here(a.device, 0, true), there(b.device, here.share());
  here.signal(6);
  expect_contains(error_of([&] { there.signal(5); }), "it has 6");
  expect_contains(error_of([&] { there.signal(6); }), "it has 6");
  expect_contains(error_of([&] { b.device.stream().signal(there.vk(), 4); }), "it has 6");
  there.signal(7);
  expect_contains(error_of([&] { here.signal(7); }), "it has 7");
  a.device.stream().signal(here.vk(), 9);
  there.wait(9);
  expect_contains(error_of([&] { there.signal(8); }), "it has 9");
  // The device knows which values its streams have yet to signal.
  const Release at_end{here, 100};
  b.device.stream().wait(there.vk(), 20);
  b.device.stream().signal(there.vk(), 30);
  expect_contains(error_of([&] { there.signal(30); }), "it is to have 30");
  here.signal(20);
  here.wait(30);
  // The refused calls have changed nothing.
  there.signal(31);
  EXPECT_EQ(here.value(), 31u);
}

TEST_P(SemaphoreSharing, DescriptorsOfSomethingElseAreRefused) {
  if (on_host()) GTEST_SKIP();
  Embedded a(on_gpu(), true), b(on_gpu(), true);
  if (!shares(a.renderer)) GTEST_SKIP();
  const TimelineSemaphore here(a.device, 1, true);
  expect_contains(error_of([&] { TimelineSemaphore(b.device, FileDescriptor()); }), "empty");
  expect_contains(error_of([&] { (void)TimelineSemaphore(a.device).share(); }), "not made to be");
  std::FILE* const file = std::tmpfile();
  ASSERT_TRUE(file);
  std::fputs("no semaphore", file);
  std::fflush(file);
  FileDescriptor fd(fileno(file));
  expect_contains(error_of([&] { TimelineSemaphore(b.device, std::move(fd)); }), "is not a timeline semaphore");
  EXPECT_EQ(fd.get(), fileno(file));
  fd.release();  // the file closes it
  EXPECT_GE(std::fputs("still open", file), 0);
  EXPECT_EQ(std::fflush(file), 0) << "closed by another";
  std::fclose(file);
  if (!on_gpu()) {
    // This descriptor stands for something else that is shared, which stays usable.
    Array<float> x = shareable<float>(a.device, 10);
    x.fill(5);
    x.wait();
    SharedMemory memory = export_memory(x);
    expect_contains(error_of([&] { TimelineSemaphore(b.device, std::move(memory.fd)); }),
                    "is not a timeline semaphore");
    EXPECT_EQ(import_memory<float>(b.device, 10, std::move(memory)).at(9), 5);
  }
  // A descriptor is good for one import; another import needs another one.
  FileDescriptor once = here.share(), another = here.share();
  EXPECT_NE(once.get(), another.get());
  const TimelineSemaphore there(b.device, std::move(once));
  EXPECT_TRUE(once.is_empty());
  expect_contains(error_of([&] { TimelineSemaphore(b.device, std::move(once)); }), "empty");
  const TimelineSemaphore beside(b.device, std::move(another));
  beside.signal(4);
  EXPECT_EQ(there.value(), 4u);
}

TEST_P(SemaphoreSharing, WhatIsSharedOutlivesWhoMadeIt) {
  if (on_host()) GTEST_SKIP();
  std::optional<Embedded> a(std::in_place, on_gpu(), true);
  Embedded b(on_gpu(), true), c(on_gpu(), true);
  if (!shares(b.renderer)) GTEST_SKIP();
  Array<float> x = zeros<float>(b.device, 1);
  std::optional<TimelineSemaphore> here(std::in_place, a->device, 1, true);
  const TimelineSemaphore there(b.device, here->share());
  FileDescriptor later = here->share();
  b.device.stream().wait(there.vk(), 5);
  launch(add_one, 1, x);
  b.device.stream().signal(there.vk(), 6);
  const Release at_end{there, 5};
  here->signal(3);
  // The semaphore goes first, though its stream has yet to signal it; then its device.
  a->device.stream().signal(here->vk(), 4);
  here.reset();
  a.reset();
  there.wait(4);
  const TimelineSemaphore third(c.device, std::move(later));
  EXPECT_EQ(third.value(), 4u);
  c.device.stream().signal(third.vk(), 5);
  third.wait(6);
  EXPECT_EQ(x.at(0), 1);
  EXPECT_EQ(there.value(), 6u);
}

TEST_P(SemaphoreSharing, ADescriptorKeepsWhatItStandsFor) {
  if (on_host()) GTEST_SKIP();
  Embedded a(on_gpu(), true), b(on_gpu(), true);
  if (!shares(b.renderer)) GTEST_SKIP();
  FileDescriptor fd;
  {
    const TimelineSemaphore here(a.device, 1, true);
    a.device.stream().signal(here.vk(), 8);
    fd = here.share();
  }
  a.device.synchronize();
  std::optional<TimelineSemaphore> there(std::in_place, b.device, std::move(fd));
  EXPECT_EQ(there->value(), 8u);
  there->signal(9);
  fd = there->share();
  there.reset();
  b.device.synchronize();
  EXPECT_EQ(TimelineSemaphore(a.device, std::move(fd)).value(), 9u);
}

TEST_P(SemaphoreSharing, ADetachedDeviceTakesAndGivesNone) {
  if (on_host()) GTEST_SKIP();
  Embedded a(on_gpu(), true), b(on_gpu(), true);
  if (!shares(b.renderer)) GTEST_SKIP();
  const std::string gone = "was detached";
  const TimelineSemaphore here(a.device, 1, true), there(b.device, here.share());
  FileDescriptor fd = here.share(), late = there.share();
  here.signal(2);
  a.device.stream().signal(here.vk(), 3);
  a.device.detach();
  expect_contains(error_of([&] { (void)here.share(); }), gone);
  expect_contains(error_of([&] { TimelineSemaphore(a.device, 0, true); }), gone);
  expect_contains(error_of([&] { TimelineSemaphore(a.device, std::move(late)); }), gone);
  EXPECT_FALSE(late.is_empty());
  a.renderer.destroy_device();
  EXPECT_EQ(there.value(), 3u);
  const TimelineSemaphore again(b.device, std::move(fd));
  again.signal(4);
  EXPECT_EQ(there.value(), 4u);
}

TEST_P(SemaphoreSharing, APlainRendererGivesItsSemaphore) {
  if (on_host()) GTEST_SKIP();
  Plain plain(on_gpu());
  Embedded e(on_gpu(), true);
  Renderer& r = *plain.renderer;
  if (!shares(r)) GTEST_SKIP();
  const VkSemaphore theirs = r.make_timeline(4, true);
  const TimelineSemaphore ours(e.device, FileDescriptor(r.fd_of(theirs)));
  EXPECT_EQ(ours.value(), 4u);
  Array<float> x = zeros<float>(e.device, 1);
  const Release at_end{ours, 5};
  e.device.stream().wait(ours.vk(), 5);
  launch(add_one, 1, x);
  e.device.stream().signal(ours.vk(), 6);
  EXPECT_EQ(r.value_of(theirs), 4u);
  r.submit(r.begin(), theirs, 5);
  r.wait_for(theirs, 6);
  EXPECT_EQ(x.at(0), 1);
  r.signal(theirs, 7);
  ours.wait(7);
  ours.signal(8);
  EXPECT_EQ(r.value_of(theirs), 8u);
}

TEST_P(SemaphoreSharing, APlainRendererTakesASemaphore) {
  if (on_host()) GTEST_SKIP();
  Plain plain(on_gpu());
  Embedded e(on_gpu(), true);
  Renderer& r = *plain.renderer;
  if (!shares(r)) GTEST_SKIP();
  const TimelineSemaphore ours(e.device, 3, true);
  const VkSemaphore theirs = r.import_timeline(ours.share().release());
  EXPECT_EQ(r.value_of(theirs), 3u);
  // The plain device's queue waits for weft's stream, which waits for the host.
  const Release at_end{ours, 10};
  r.submit_between(r.begin(), theirs, 5, 6);
  e.device.stream().wait(ours.vk(), 4);
  e.device.stream().signal(ours.vk(), 5);
  EXPECT_EQ(ours.value(), 3u);
  r.signal(theirs, 4);
  ours.wait(6);
  EXPECT_EQ(r.value_of(theirs), 6u);
}

TEST_P(SemaphoreSharing, ARecordingEndsWithASharedSemaphore) {
  if (on_host()) GTEST_SKIP();
  Embedded a(on_gpu(), true), b(on_gpu(), true);
  if (!shares(b.renderer)) GTEST_SKIP();
  const TimelineSemaphore here(a.device, 0, true), there(b.device, here.share());
  Array<float> x = zeros<float>(b.device, 1);
  const VkCommandBuffer commands = b.renderer.begin();
  const Recording recording = b.device.stream().record_into(commands, [&] { launch(add_one, 1, x); });
  const Release at_end{here, 3};
  b.renderer.submit_between(commands, there.vk(), 1, 2);
  recording.submitted(there.vk(), 2);
  EXPECT_FALSE(recording.done());
  here.signal(1);
  recording.wait();
  EXPECT_EQ(here.value(), 2u);
  EXPECT_EQ(x.at(0), 1);
  b.renderer.wait_idle();  // the validation layer cannot tell from a shared semaphore that commands have run
}

// Devices that weft makes itself have the layer when the environment names it, so this runs in a process of its own.
// There the layer may be above the validation layer, which waits long if it does not know of signals by other threads;
// so validation is off.
TEST_P(SemaphoreSharing, WeftsOwnDevicesShareSemaphores) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu(), true);
  if (!shares(e.renderer)) GTEST_SKIP();
  const auto validation = platform::environment("WEFT_VALIDATION");
  platform::set_environment("WEFT_VALIDATION", "0");
  platform::set_environment("VK_INSTANCE_LAYERS", "VK_LAYER_WEFT_semaphore_fd");
  const auto result = platform::run_program(
      {program_path(), "--gtest_filter=On/Sharing.SemaphoresGoFromDeviceToDevice/" + GetParam(), "--gtest_brief=1"});
  platform::set_environment("VK_INSTANCE_LAYERS", nullptr);
  platform::set_environment("WEFT_VALIDATION", validation ? validation->c_str() : nullptr);
  EXPECT_EQ(result, 0);
}

}  // namespace
