// Memory and semaphores that devices share by file descriptors.
#include <gtest/gtest.h>
#include <weft/vulkan.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "../../../frontend/support/platform.h"
#include "../../../runtime/graph.h"
#include "../watched_test.h"
#include "embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

auto add_one = kernel("add_one", [](Arr<float> x) { x[tid()] += 1; });

WATCHED_TEST(Sharing);

TEST_P(Sharing, SaysWhichExtensionIsMissing) {
  if (on_host()) GTEST_SKIP();
  Renderer::Wish wish = wish_for_weft(on_gpu());
  wish.prepare = [prepare = wish.prepare](Renderer& r) {
    prepare(r);
    std::erase_if(r.extensions,
                  [](const char* name) { return std::string(name) == VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME; });
  };
  Renderer renderer(wish);
  const Device adopted = Device::adopt(handles_of(renderer));
  expect_contains(error_of([&] { shareable<float>(adopted, 3); }), VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  expect_contains(error_of([&] { import_memory<float>(adopted, 3, {}); }), VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
}

TEST_P(Sharing, MemoryGoesFromDeviceToDevice) {
  if (on_host()) {
    expect_contains(error_of([&] { shareable<float>(device(), 3); }), "shareable() on " + device().name());
    expect_contains(error_of([&] { import_memory<float>(device(), 3, {}); }), "import_memory() on " + device().name());
    return expect_contains(error_of([&] { export_memory(zeros<float>(device(), 3)); }),
                           "export_memory() on " + device().name());
  }
  Embedded e(on_gpu());
  if (!e.renderer.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) {
    expect_contains(error_of([&] { shareable<float>(device(), 3); }), "VK_KHR_external_memory_fd");
    return expect_contains(error_of([&] { import_memory<float>(device(), 3, {}); }), "VK_KHR_external_memory_fd");
  }
  Array<float, 2> x = shareable<float, 2>(e.device, {10, 33});
  x.fill(1);
  launch(add_one, 330, x.flatten());
  SharedMemory shared = export_memory(x);
  EXPECT_GE(shared.fd.get(), 0);
  EXPECT_TRUE(shared.dedicated);
  EXPECT_GE(shared.bytes, 1320u);
  x.wait();
  // A device of weft's own imports the memory, as an array of another shape.
  Array<float> y = import_memory<float>(device(), 330, std::move(shared));
  EXPECT_TRUE(shared.fd.is_empty());
  EXPECT_EQ(y.at(329), 2);
  launch(add_one, 330, y);
  y.wait();
  EXPECT_EQ(x.at(9, 32), 3);
  // The memory goes on from there; the first array may go.
  x = {};
  Array<float> z = import_memory<float>(e.device, 100, export_memory(y.slice(5, 7)));
  z.fill(8);
  z.wait();
  EXPECT_EQ(y.at(99), 8);
  EXPECT_EQ(y.at(100), 3);
}

TEST_P(Sharing, WhatIsNoMemoryIsRefused) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  if (!e.renderer.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) GTEST_SKIP();
  Array<float> x = shareable<float>(e.device, 100);
  expect_contains(error_of([&] { export_memory(zeros<float>(e.device, 3)); }), "not made to be");
  expect_contains(error_of([&] { export_memory(Array<float>()); }), "null array");
  expect_contains(error_of([&] { shareable<float>(e.device, 0); }), "no memory");
  EXPECT_THROW(shareable<float>(e.device, std::int64_t(1) << 50), Error);
  const auto refuse = [&](auto change, const std::string& text) {
    SharedMemory bad = export_memory(x);
    change(bad);
    expect_contains(error_of([&] { import_memory<float>(e.device, 100, std::move(bad)); }), text);
  };
  refuse([](SharedMemory& m) { m.fd = {}; }, "empty file descriptor");
  refuse([](SharedMemory& m) { m.device_uuid[3] ^= 1; }, "another adapter or driver");
  refuse([](SharedMemory& m) { m.driver_uuid[3] ^= 1; }, "another adapter or driver");
  refuse([](SharedMemory& m) { m.memory_type = 31; }, "memory type 31");
  refuse([](SharedMemory& m) { m.bytes = 4; }, "with 4 bytes");
  refuse([](SharedMemory& m) { m.buffer_usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT; }, "SHADER_DEVICE_ADDRESS");
  refuse([](SharedMemory& m) { m.buffer_bytes = 396; }, "400 bytes is imported from a buffer of 396");
  refuse([](SharedMemory& m) { m.bytes = m.buffer_bytes = 402; }, "words of 4");
  // These sizes are not the buffer's, or claim a buffer that is larger than the memory of the descriptor.
  refuse([](SharedMemory& m) { m.bytes += 1 << 20; }, "is not memory for");
  refuse([](SharedMemory& m) { m.bytes = m.buffer_bytes = 1 << 20; }, "is not memory for");
}

TEST_P(Sharing, ADescriptorOfSomethingElseIsRefused) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  if (!e.renderer.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) GTEST_SKIP();
  Array<float> x = shareable<float>(e.device, 100);
  SharedMemory bad = export_memory(x);
  {
    std::FILE* const file = std::tmpfile();
    ASSERT_TRUE(file);
    std::fputs("no memory", file);
    std::fflush(file);
    bad.fd = FileDescriptor(fileno(file));
    expect_contains(error_of([&] { import_memory<float>(e.device, 100, std::move(bad)); }), "is not memory for");
    bad.fd.release();  // the file closes it
    std::fclose(file);
  }
  // No descriptor that was opened later is closed in its place.
  for (int k = 0; k < 3; ++k) {
    SharedMemory large = export_memory(x);
    large.bytes = large.buffer_bytes = 1 << 20;
    expect_contains(error_of([&] { import_memory<float>(e.device, 100, std::move(large)); }), "is not memory for");
    std::FILE* const later = std::tmpfile();
    ASSERT_TRUE(later);
    large = {};
    EXPECT_GE(std::fputs("text", later), 0);
    EXPECT_EQ(std::fflush(later), 0) << "closed by another";
    std::fclose(later);
  }
}

TEST_P(Sharing, ABufferForRayQueriesNeedsADeviceWithThem) {
  if (on_host() || !device().has_ray_query()) GTEST_SKIP();
  VkPhysicalDeviceVulkan12Features twelve{};
  Renderer renderer({on_gpu(), [&](Renderer& r) {
                       twelve.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
                       twelve.bufferDeviceAddress = twelve.scalarBlockLayout = twelve.timelineSemaphore = VK_TRUE;
                       r.features.pNext = &twelve;
                       r.features.features.shaderInt64 = VK_TRUE;
                       if (r.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
                         r.extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
                     }});
  if (renderer.extensions.empty()) GTEST_SKIP();
  const Device plain = Device::adopt(handles_of(renderer));
  expect_contains(error_of([&] { import_memory<float>(plain, 10, export_memory(shareable<float>(device(), 10))); }),
                  "serves hardware ray queries");
  // In the other direction the importing device lacks nothing.
  Array<float> x = shareable<float>(plain, 10);
  x.fill(3);
  x.wait();
  EXPECT_EQ(import_memory<float>(device(), 10, export_memory(x)).at(9), 3);
}

TEST_P(Sharing, WhatIsSharedOutlivesADetachedDevice) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const TimelineSemaphore semaphore(e.device, 1);
  const std::string gone = "was detached";
  if (e.renderer.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) {
    Array<float> x = shareable<float>(e.device, 100);
    x.fill(4);
    SharedMemory shared = export_memory(x), late = export_memory(x);
    const Device adopted = e.device;
    adopted.detach();
    expect_contains(error_of([&] { export_memory(x); }), gone);
    expect_contains(error_of([&] { shareable<float>(adopted, 3); }), gone);
    expect_contains(error_of([&] { import_memory<float>(adopted, 100, std::move(late)); }), gone);
    e.renderer.destroy_device();
    EXPECT_EQ(import_memory<float>(device(), 100, std::move(shared)).at(99), 4);
  } else {
    e.device.detach();
  }
  expect_contains(error_of([&] { (void)semaphore.value(); }), gone);
  expect_contains(error_of([&] { semaphore.signal(2); }), gone);
  expect_contains(error_of([&] { semaphore.wait(1); }), gone);
  expect_contains(error_of([&] { (void)semaphore.share(); }), gone);
  expect_contains(error_of([&] { TimelineSemaphore(e.device, 0); }), gone);
}

TEST_P(Sharing, ForeignSemaphoresAreRefused) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  // A semaphore of another device is refused on a device of weft's own, which can tell.
  const TimelineSemaphore theirs(e.device, 1);
  expect_contains(error_of([&] { device().stream().wait(theirs.vk(), 1); }), "no TimelineSemaphore of this Device");
  expect_contains(error_of([&] { device().stream().signal(theirs.vk(), 2); }), "no TimelineSemaphore of this Device");
  expect_contains(error_of([&] { device().stream().wait(e.renderer.make_timeline(), 1); }),
                  "no TimelineSemaphore of this Device");
}

TEST_P(Sharing, ADeviceThatWasMadeWithoutTheExtensionSaysSo) {
  if (on_host()) GTEST_SKIP();
  std::unique_ptr<VulkanRequirements> needs;
  Renderer renderer({on_gpu(), [&](Renderer& r) {
                       needs = std::make_unique<VulkanRequirements>(r.instance, r.physical, Renderer::kVersion);
                       needs->add_features(r.features);
                       std::vector<const char*> all;
                       needs->add_extensions(all);
                       for (const char* name : all)
                         if (std::string(name).find("_fd") == std::string::npos) r.extensions.push_back(name);
                     }});
  const Device adopted = Device::adopt(handles_of(renderer));
  expect_contains(error_of([&] { shareable<float>(adopted, 3); }), "VK_KHR_external_memory_fd");
  expect_contains(error_of([&] { TimelineSemaphore(adopted, 0, true); }), "VK_KHR_external_semaphore_fd");
  expect_contains(error_of([&] { TimelineSemaphore(adopted, FileDescriptor()); }), "VK_KHR_external_semaphore_fd");
}

TEST_P(Sharing, SemaphoresOfWeftsOwnOrderStreamsAndHost) {
  if (on_host())
    return expect_contains(error_of([&] { TimelineSemaphore(device(), 0); }),
                           "TimelineSemaphore on " + device().name());
  const Stream stream = device().create_stream();
  Array<float> x = zeros<float>(device(), 1);
  x.wait();
  const TimelineSemaphore semaphore(device(), 4);
  EXPECT_EQ(semaphore.value(), 4u);
  stream.wait(semaphore.vk(), 5);
  launch(stream, add_one, 1, x);
  stream.signal(semaphore.vk(), 6);
  EXPECT_EQ(semaphore.value(), 4u);
  // If a check fails, the stream must not be left waiting.
  struct Go {
    const TimelineSemaphore& semaphore;
    ~Go() {
      if (semaphore.value() < 5) semaphore.signal(5);
    }
  } go{semaphore};
  expect_contains(error_of([&] { semaphore.signal(4); }), "it has 4");
  expect_contains(error_of([&] { semaphore.signal(6); }), "it is to have 6");
  expect_contains(error_of([&] { stream.signal(semaphore.vk(), 3); }), "to have 6");
  semaphore.signal(5);
  semaphore.wait(6);
  EXPECT_EQ(x.at(0), 1);
  {
    // This semaphore is dropped while a stream has yet to signal it.
    const TimelineSemaphore dropped(device());
    launch(stream, add_one, 1, x);
    stream.signal(dropped.vk(), 1);
  }
  EXPECT_EQ(x.at(0), 2);
  expect_contains(error_of([&] { (void)semaphore.share(); }), "shar");
}

TEST_P(Sharing, ASemaphoreKeepsItsDevice) {
  if (on_host()) GTEST_SKIP();
  TimelineSemaphore semaphore(Device::open(device().name()), 1);  // a device of its own, which nothing else names
  EXPECT_EQ(semaphore.value(), 1u);
  semaphore = TimelineSemaphore(device(), 2);
  semaphore.signal(3);
  EXPECT_EQ(semaphore.value(), 3u);
}

// A stream's work may be known to have ended a moment before the semaphore has its value.
TEST_P(Sharing, ValuesAreKnownUntilASemaphoreHasThem) {
  if (on_host()) GTEST_SKIP() << "no semaphores there";
  const Device own = Device::open(device().name());
  const Stream stream = own.stream();
  const auto slow = kernel("slow", [](Arr<float> x) {
    Float a = x[tid()];
    for (auto k : range(10)) a = sin(a) + Float(k);
    x[tid()] = a;
  });
  const Array<float> x = zeros<float>(own, 100'000);
  for (int k = 0; k < 300; ++k) {
    const TimelineSemaphore semaphore(own), of_host(own);
    launch(stream, slow, x.size(), x);
    stream.signal(semaphore.vk(), 9);
    own.synchronize();
    expect_contains(error_of([&] { stream.signal(semaphore.vk(), 8); }), "the values of a timeline grow");
    launch(stream, slow, x.size(), x);
    stream.signal(of_host.vk(), 8);
    own.synchronize();
    of_host.signal(9);
    semaphore.wait(9);
    EXPECT_EQ(of_host.value(), 9u);
  }
}

TEST_P(Sharing, SemaphoresAreNoPartOfAGraph) {
  if (on_host()) GTEST_SKIP() << "no semaphores there";
  const TimelineSemaphore semaphore(device());
  const Stream stream = device().stream();
  Array<float> x = zeros<float>(device(), 10);
  const Graph graph = capture(device(), [&] {
    x.fill(1);
    expect_contains(error_of([&] { stream.signal(semaphore.vk(), 1); }),
                    "a stream is to signal a semaphore while a graph is captured: semaphores are no part of that");
    expect_contains(error_of([&] { stream.wait(semaphore.vk(), 0); }), "a stream is to wait for a semaphore while");
    expect_contains(error_of([&] { semaphore.signal(1); }), "the host is to signal a semaphore while");
  });
  graph.launch();
  stream.signal(semaphore.vk(), 1);
  semaphore.wait(1);
  EXPECT_EQ(x.at(9), 1);
}

// The device knows the values that its streams will give: the host signals below the next, or above it once reached.
TEST_P(Sharing, TheHostSignalsBelowWhatStreamsAreTo) {
  if (on_host()) GTEST_SKIP() << "no semaphores there";
  const TimelineSemaphore starts(device()), done(device());
  const Stream stream = device().create_stream();
  stream.wait(starts.vk(), 1);
  stream.signal(done.vk(), 10);
  expect_contains(error_of([&] { done.signal(11); }), "is to have 10");
  done.signal(5);
  EXPECT_EQ(done.value(), 5u);
  starts.signal(1);
  done.wait(10);
  done.signal(11);
  EXPECT_EQ(done.value(), 11u);
}

// The semaphore may have its value a moment before the stream's work is known to have ended.
TEST_P(Sharing, TheHostSignalsOnceItHasWaited) {
  if (on_host()) GTEST_SKIP() << "no semaphores there";
  const TimelineSemaphore semaphore(device());
  const Stream stream = device().create_stream();
  for (std::uint64_t value = 1; value < 4000; value += 2) {
    stream.signal(semaphore.vk(), value);
    semaphore.wait(value);
    semaphore.signal(value + 1);
  }
  EXPECT_EQ(semaphore.value(), 4000u);
}

// If two threads signal, the one with the lower value may come too late: it gets an error, and no value goes backwards.
TEST_P(Sharing, ThreadsThatSignalAreOrdered) {
  if (on_host()) GTEST_SKIP();
  const TimelineSemaphore semaphore(device());
  std::atomic<std::uint64_t> next = 1;
  std::atomic<int> late = 0;
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k)
    threads.emplace_back([&] {
      for (std::uint64_t value = next++; value <= 3000; value = next++) try {
          semaphore.signal(value);
        } catch (const Error&) {
          ++late;
        }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(semaphore.value(), 3000u);
  EXPECT_LT(late, 3000);
}

TEST_P(Sharing, SemaphoresGoFromDeviceToDevice) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  if (!e.renderer.has_extension(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME)) {
    EXPECT_FALSE(platform::environment("VK_INSTANCE_LAYERS")) << "see semaphore_sharing_test.cpp";
    expect_contains(error_of([&] { TimelineSemaphore(device(), 0, true); }), "VK_KHR_external_semaphore_fd");
    return expect_contains(error_of([&] { TimelineSemaphore(device(), FileDescriptor()); }),
                           "VK_KHR_external_semaphore_fd");
  }
  const TimelineSemaphore here(e.device, 2, true), there(device(), here.share());
  EXPECT_EQ(there.value(), 2u);
  const Stream stream = device().create_stream();
  stream.wait(there.vk(), 3);
  stream.signal(there.vk(), 4);
  EXPECT_EQ(here.value(), 2u);
  e.device.stream().signal(here.vk(), 3);
  here.wait(4);
  // A semaphore of weft's own device can be imported, too.
  const TimelineSemaphore back(e.device, TimelineSemaphore(device(), 5, true).share());
  EXPECT_EQ(back.value(), 5u);
  expect_contains(error_of([&] { TimelineSemaphore(device(), FileDescriptor()); }), "empty");
}

}  // namespace
