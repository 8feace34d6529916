// weft on the device of a renderer: adopting it, giving it back, and sharing its memory.
#include <gtest/gtest.h>
// volk is included before <weft/vulkan.h>, which agrees with it in either order.
#include <weft/runtime/graph.h>
#include <weft/runtime/profile.h>
#include <weft/vulkan.h>

#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "../device_test.h"
#include "embedded.h"
#include "renderer.h"

using namespace weft;
using namespace weft::test;

namespace {

auto add_one = kernel("add_one", [](Arr<float> x) { x[tid()] += 1; });

DEVICE_TEST(Adopting);

TEST_P(Adopting, RunsKernelsOnTheRenderersDevice) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  EXPECT_EQ(e.device.adapter(), device().adapter());
  Array<float> x = full<float>(e.device, 1000, 1);
  for (int k = 0; k < 5; ++k) launch(add_one, 1000, x);
  EXPECT_EQ(x.to_vector(), std::vector<float>(1000, 6));
  x.assign(std::vector<float>(1000, 2));
  launch(e.device.create_stream(), add_one, 1000, x);
  EXPECT_EQ(x.to_vector(), std::vector<float>(1000, 3));
  const Graph graph = capture(e.device, [&] { launch(add_one, 1000, x); });
  graph.launch();
  EXPECT_EQ(x.at(999), 4);
  EXPECT_GT(e.locks, 0);
  EXPECT_EQ(e.locks, e.unlocks);
}

TEST_P(Adopting, KernelsUseWhatTheDeviceHasAndNoMore) {
  if (on_host()) GTEST_SKIP();
  // Only the features of the floor are turned on, in the struct of a version: an operation that needs more is refused,
  // or done without it.
  VkPhysicalDeviceVulkan12Features twelve{};
  Renderer renderer({on_gpu(), [&](Renderer& r) {
                       twelve.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
                       twelve.bufferDeviceAddress = twelve.scalarBlockLayout = twelve.timelineSemaphore = VK_TRUE;
                       r.features.pNext = &twelve;
                       r.features.features.shaderInt64 = VK_TRUE;
                     }});
  const Device adopted = Device::adopt(handles_of(renderer));
  Array<float> x = zeros<float>(adopted, 1);
  launch(kernel("add", [](Arr<float> x) { atomic_add(x[0], 1.f); }), 100, x);
  EXPECT_EQ(x.at(0), 100);
  Array<double> y = zeros<double>(adopted, 1);
  const std::string refused =
      error_of([&] { launch(kernel("real64", [](Arr<double> y) { y[0] = sqrt(y[0]); }), 1, y); });
  expect_contains(refused, "float64");
}

TEST_P(Adopting, SeveralDevicesAtOnce) {
  if (on_host()) GTEST_SKIP();
  Embedded a(on_gpu()), b(on_gpu());
  EXPECT_NE(a.device.name(), b.device.name());
  Array<float> x = full<float>(a.device, 10, 1), y = full<float>(b.device, 10, 2);
  Array<float> z = full<float>(device(), 10, 3);
  for (const auto& array : {x, y, z}) launch(add_one, 10, array);
  EXPECT_EQ(x.at(0) + 10 * y.at(0) + 100 * z.at(0), 2 + 30 + 400);
  y.copy_from(x);
  EXPECT_EQ(y.at(9), 2);
  // Copies go to a device of weft's own, to the interpreter, and back; views too.
  const Device reference("reference");
  z.copy_from(y);
  Array<float> there = z.to(reference);
  launch(add_one, 10, there);
  x.slice(0, 10, 2).copy_from(there.slice(5, 10));
  EXPECT_EQ(x.to_vector(), (std::vector<float>{3, 2, 3, 2, 3, 2, 3, 2, 3, 2}));
  expect_contains(error_of([&] { launch(a.device.stream(), add_one, 10, y); }), "the stream is on device");
}

TEST_P(Adopting, NamesWhatIsMissing) {
  if (on_host()) GTEST_SKIP();
  VkPhysicalDeviceVulkan12Features twelve{};
  Renderer renderer({on_gpu(), [&](Renderer& r) {
                       twelve.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
                       twelve.bufferDeviceAddress = twelve.timelineSemaphore = VK_TRUE;
                       r.features.pNext = &twelve;
                       r.features.features.shaderInt64 = VK_TRUE;
                     }});
  const VulkanHandles good = handles_of(renderer);
  expect_contains(error_of([&] { Device::adopt(good); }), "made without scalarBlockLayout");
  const auto refuse = [&](auto change, const std::string& text) {
    VulkanHandles bad = good;
    change(bad);
    expect_contains(error_of([&] { Device::adopt(bad); }), text);
  };
  refuse([](VulkanHandles& h) { h.features = nullptr; }, "made without bufferDeviceAddress");
  refuse([](VulkanHandles& h) { h.instance = nullptr; }, "VkInstance");
  refuse([](VulkanHandles& h) { h.physical_device = nullptr; }, "VkPhysicalDevice");
  refuse([](VulkanHandles& h) { h.device = nullptr; }, "VkDevice");
  refuse([](VulkanHandles& h) { h.queue = nullptr; }, "VkQueue");
  refuse([](VulkanHandles& h) { h.queue_family = 99; }, "queue family 99");
  refuse([](VulkanHandles& h) { h.api_version = VK_API_VERSION_1_1; },
         "api_version, that of the VkInstance, is 1.1, and weft needs 1.2");
  refuse([](VulkanHandles& h) { h.unlock = nullptr; }, "unlock");
  refuse([](VulkanHandles& h) { h.extensions.push_back(nullptr); }, "null");
  const char* const left_out[][2] = {{"VK_KHR_acceleration_structure", "vkCreateAccelerationStructureKHR"},
                                     {"VK_EXT_external_memory_host", "vkGetMemoryHostPointerPropertiesEXT"},
                                     {"VK_KHR_external_memory_fd", "vkGetMemoryFdKHR"},
                                     {"VK_KHR_external_semaphore_fd", "vkGetSemaphoreFdKHR"}};
  for (const auto& [name, function] : left_out)
    refuse([&](VulkanHandles& h) { h.extensions.push_back(name); },
           std::string("the extension ") + name + ", and was made without it: it has no " + function);
  Renderer other({on_gpu(), {}});
  refuse([&](VulkanHandles& h) { h.physical_device = other.physical; }, "not one of the VkInstance");
}

TEST_P(Adopting, RefusesInstancesOfVersionsBelowTheOneThatIsClaimed) {
  if (on_host()) GTEST_SKIP();
  const std::string refused = "the VkInstance was made for a version of Vulkan below 1.2";
  for (const std::uint32_t version : {VK_API_VERSION_1_0, VK_API_VERSION_1_1}) {
    std::vector<std::string> messages;  // the layer's, about features that such an instance must not use
    VkPhysicalDeviceVulkan12Features twelve{};
    Renderer renderer({on_gpu(),
                       [&](Renderer& r) {
                         twelve.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
                         twelve.bufferDeviceAddress = twelve.scalarBlockLayout = twelve.timelineSemaphore = VK_TRUE;
                         r.features.pNext = &twelve;
                         r.features.features.shaderInt64 = VK_TRUE;
                       },
                       version, &messages});
    VulkanHandles handles = handles_of(renderer);
    handles.api_version = VK_API_VERSION_1_2;
    expect_contains(error_of([&] { Device::adopt(handles); }), refused);
  }
}

TEST_P(Adopting, RequirementsJoinTheRenderersOwnFeatures) {
  if (on_host()) GTEST_SKIP();
  VkPhysicalDeviceVulkan12Features twelve{};
  VkPhysicalDeviceSynchronization2Features sync{};
  std::unique_ptr<VulkanRequirements> needs;
  Renderer renderer({on_gpu(), [&](Renderer& r) {
                       twelve.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
                       twelve.hostQueryReset = VK_TRUE;
                       sync.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES;
                       sync.synchronization2 = VK_TRUE;
                       sync.pNext = &twelve;
                       r.features.pNext = &sync;
                       needs = std::make_unique<VulkanRequirements>(r.instance, r.physical, Renderer::kVersion);
                       needs->add_features(r.features);
                       needs->add_extensions(r.extensions);
                       const std::size_t once = r.extensions.size();
                       needs->add_extensions(r.extensions);
                       EXPECT_EQ(r.extensions.size(), once);
                     }});
  EXPECT_TRUE(twelve.hostQueryReset && twelve.timelineSemaphore && twelve.bufferDeviceAddress && sync.synchronization2);
  const Device adopted = Device::adopt(handles_of(renderer));
  // The device has as many features as one of weft's own.
  Array<double> y = full<double>(adopted, 1, 2);
  launch(kernel("square", [](Arr<double> y) { y[0] *= y[0]; }), 1, y);
  EXPECT_EQ(y.at(0), 4);
  EXPECT_EQ(adopted.has_ray_query(), device().has_ray_query());
  EXPECT_EQ(adopted.wraps_host(), device().wraps_host());
  VkPhysicalDeviceFeatures2 untyped{};
  expect_contains(error_of([&] { needs->add_features(untyped); }), "sType");
  expect_contains(error_of([&] { VulkanRequirements(nullptr, renderer.physical); }), "VkInstance");
}

// docs/embedding.md shows how features are left out: validation would report those without their extensions.
TEST_P(Adopting, RayQueriesCanBeLeftOut) {
  if (on_host()) GTEST_SKIP();
  std::unique_ptr<VulkanRequirements> needs;
  Renderer renderer(
      {on_gpu(), [&](Renderer& r) {
         needs = std::make_unique<VulkanRequirements>(r.instance, r.physical, Renderer::kVersion);
         needs->add_features(r.features);
         needs->add_extensions(r.extensions);
         for (auto* s = static_cast<VkBaseOutStructure*>(r.features.pNext); s; s = s->pNext) {
           if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_FEATURES_KHR)
             reinterpret_cast<VkPhysicalDeviceAccelerationStructureFeaturesKHR*>(s)->accelerationStructure = VK_FALSE;
           if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_QUERY_FEATURES_KHR)
             reinterpret_cast<VkPhysicalDeviceRayQueryFeaturesKHR*>(s)->rayQuery = VK_FALSE;
         }
         std::erase_if(r.extensions, [](const char* name) {
           return std::string_view(name) == VK_KHR_RAY_QUERY_EXTENSION_NAME ||
                  std::string_view(name) == VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME ||
                  std::string_view(name) == VK_KHR_DEFERRED_HOST_OPERATIONS_EXTENSION_NAME;
         });
       }});
  const Device adopted = Device::adopt(handles_of(renderer));
  EXPECT_FALSE(adopted.has_ray_query());
  Array<float> x = full<float>(adopted, 100, 1);
  launch(add_one, 100, x);
  EXPECT_EQ(x.at(99), 2);
}

TEST_P(Adopting, DetachedDevicesRefuseEveryCall) {
  if (on_host()) GTEST_SKIP();
  std::optional<Embedded> e(std::in_place, on_gpu());
  Device adopted = e->device;
  Array<float> x = full<float>(adopted, 100, 1), y = zeros<float>(adopted, 100);
  const Graph graph = capture(adopted, [&] { launch(add_one, 100, x); });
  graph.launch();
  // The launches of this graph are one shader, which nothing else keeps.
  const Graph chain = capture(adopted, [&] {
    for (int k = 0; k < 40; ++k) launch(add_one, 100, x);
  });
  chain.launch();
  const Stream stream = adopted.create_stream();
  launch(stream, add_one, 100, y);
  const Event event = stream.record();
  std::vector<float> out(100);
  HostCopy copy = x.copy_to_async(out);
  (void)adopted.create_stream();  // idle from here on
  Array<float> unused = empty<float>(adopted, 100);
  Recording recording = stream.record_into(e->renderer.begin(), [] {});
  const Renderer::Buffer buffer = e->renderer.make_buffer(64);
  Array<float> wrapped = wrap_buffer<float>(adopted, 16, {buffer.buffer, 0, 64, 0, buffer.usage});
  wrapped.fill(7);
  adopted.detach();
  adopted.detach();
  // All work was done, and the renderer's own buffer holds what weft left in it.
  EXPECT_EQ(*reinterpret_cast<float*>(buffer.host), 7);
  e->renderer.destroy_device();
  const std::string gone = "was detached";
  expect_contains(error_of([&] { launch(add_one, 100, x); }), gone);
  expect_contains(error_of([&] { launch(stream, add_one, 100, y); }), gone);
  expect_contains(error_of([&] { x.to_vector(); }), gone);
  expect_contains(error_of([&] { x.assign(out); }), gone);
  expect_contains(error_of([&] { x.fill(3); }), gone);
  expect_contains(error_of([&] { wrapped.fill(3); }), gone);
  expect_contains(error_of([&] { x.host_span(); }), gone);
  expect_contains(error_of([&] { x.vk(); }), gone);
  expect_contains(error_of([&] { zeros<float>(adopted, 3); }), gone);
  expect_contains(error_of([&] { graph.launch(); }), gone);
  expect_contains(error_of([&] { chain.launch(); }), gone);
  expect_contains(error_of([&] { event.wait(); }), gone);
  expect_contains(error_of([&] { (void)stream.record(); }), gone);
  expect_contains(error_of([&] { copy.wait(); }), gone);
  expect_contains(error_of([&] { adopted.synchronize(); }), gone);
  for (int k = 0; k < 2; ++k) expect_contains(error_of([&] { adopted.create_stream(); }), gone);
  expect_contains(error_of([&] { (void)event.done(); }), gone);
  expect_contains(error_of([&] { unused.wait(); }), gone);
  expect_contains(error_of([&] { zeros<float>(adopted, 0); }), gone);
  expect_contains(error_of([&] { wrap_buffer<float>(adopted, 0, {}); }), gone);
  expect_contains(error_of([&] { capture(adopted, [] {}); }), gone);
  expect_contains(error_of([&] { recording.prepare(); }), gone);
  expect_contains(error_of([&] { adopted.set_dispatch_budget(0); }), gone);
  auto other = kernel("other", [](Arr<float> x) { x[tid()] -= 1; });
  expect_contains(error_of([&] { launch(other, 100, x); }), gone);
  // All that is left is dropped after the device and the instance.
  e.reset();
}

TEST_P(Adopting, IsMeasuredAndMayGoMeanwhile) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> x = zeros<float>(e.device, 100000);
  e.device.set_dispatch_budget(1e-9);
  {
    Profiler profiler({e.device, device()});
    launch(add_one, 100000, x);
    const Profile p = profiler.stop();
    ASSERT_EQ(p.kernels.size(), 1u);
    EXPECT_EQ(p.kernels[0].device, e.device.name());
    EXPECT_GE(p.kernels[0].count, 2) << "in parts";
    EXPECT_GT(p.kernels[0].min, 0);
  }
  {
    // Submissions of others are not measured, and do no harm.
    const VkCommandBuffer commands = e.renderer.begin();
    const Recording recording = e.device.stream().record_into(commands, [&] { launch(add_one, 10, x); });
    Profiler profiler(e.device);
    e.renderer.submit(commands);
    recording.submitted();
    launch(add_one, 10, x);
    EXPECT_EQ(x.at(5), 3);
    EXPECT_EQ(profiler.stop().kernels.size(), 1u);
  }
  Profiler profiler(e.device);
  launch(add_one, 100000, x);
  EXPECT_EQ(x.at(99999), 2);
  launch(add_one, 100000, x);
  e.device.detach();
  e.renderer.destroy_device();
  expect_contains(error_of([&] { profiler.stop(); }), "was detached");
  expect_contains(error_of([&] { e.device.set_dispatch_budget(1); }), "was detached");
  Profiler(device()).stop();
}

TEST_P(Adopting, GoesBeforeTheDeviceWithoutDetaching) {
  if (on_host()) GTEST_SKIP();
  Renderer renderer(wish_for_weft(on_gpu()));
  for (int k = 0; k < 3; ++k) {
    const Device adopted = Device::adopt(handles_of(renderer));
    Array<float> x = zeros<float>(adopted, 10);
    launch(add_one, 10, x);
    // Nothing waits but the end of the device. The validation layer would report whatever is left when the renderer's
    // device is destroyed.
  }
}

TEST_P(Adopting, OnlyAdoptedDevicesCanBeDetached) {
  expect_contains(error_of([&] { device().detach(); }), on_host() ? "not a Vulkan device" : "not adopted");
}

TEST_P(Adopting, ArraysTellWhereTheyLie) {
  Array<float> x = full<float>(device(), 1000, 1);
  if (on_host()) return expect_contains(error_of([&] { x.vk(); }), "vk() on " + device().name());
  const VulkanBuffer all = x.vk(), part = x.slice(10, 20).vk();
  EXPECT_NE(all.buffer, VkBuffer{});
  EXPECT_EQ(all.bytes, 4000u);
  EXPECT_EQ(all.address, x.address());
  EXPECT_EQ(part.buffer, all.buffer);
  EXPECT_EQ(part.offset, all.offset + 40);
  EXPECT_EQ(part.bytes, 40u);
  EXPECT_EQ(part.address, all.address + 40);
  for (const VkBufferUsageFlags use : {VK_BUFFER_USAGE_VERTEX_BUFFER_BIT, VK_BUFFER_USAGE_INDEX_BUFFER_BIT,
                                       VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT})
    EXPECT_TRUE(all.usage & use);
  expect_contains(error_of([&] { Array<float>().vk(); }), "null");
  expect_contains(error_of([&] { x.slice(3, 3).vk(); }), "empty");
}

TEST_P(Adopting, TheRendererCopiesFromAnArray) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Renderer& r = e.renderer;
  Array<float> x = full<float>(e.device, 100, 1);
  launch(add_one, 100, x);
  e.device.stream().submit();
  // The renderer sees the work that weft submitted before, in the order of the queue, without a barrier of its own.
  const Renderer::Buffer to = r.make_buffer(400);
  const VkCommandBuffer commands = r.begin();
  const VulkanBuffer from = x.vk();
  const VkBufferCopy region{from.offset, 0, from.bytes};
  r.vk.vkCmdCopyBuffer(commands, from.buffer, to.buffer, 1, &region);
  r.submit(commands);
  // The renderer's copy needs no barrier against later work either.
  launch(add_one, 100, x);
  e.device.synchronize();
  r.wait_idle();
  EXPECT_EQ(reinterpret_cast<float*>(to.host)[99], 2);
}

// A copy from another device overwrites x as assign() does: the renderer reads the elements from before its submission.
TEST_P(Adopting, CopiesFromOtherDevicesComeAfterWhatTheRendererHasSubmitted) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Renderer& r = e.renderer;
  const Device reference("reference");
  for (const int n : {100, 100'000}) {
    Array<float> x = full<float>(e.device, n, 1), other = full<float>(reference, n, 2);
    e.device.synchronize();
    const VulkanBuffer from = x.vk();
    const Renderer::Buffer to = r.make_buffer(from.bytes);
    const VkCommandBuffer commands = r.begin();
    const VkBufferCopy region{from.offset, 0, from.bytes};
    r.vk.vkCmdCopyBuffer(commands, from.buffer, to.buffer, 1, &region);
    const VkSemaphore gate = r.make_timeline();
    e.device.stream().wait(gate, 1);
    r.submit(commands);
    x.copy_from(other);
    r.signal(gate, 1);
    EXPECT_EQ(x.at(n - 1), 2);
    EXPECT_EQ(x.at(0), 2);
    r.wait_idle();
    EXPECT_EQ(reinterpret_cast<float*>(to.host)[n - 1], 1);
  }
}

TEST_P(Adopting, ReadingComesAfterTheSemaphoreThatAStreamWaitsFor) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Renderer& r = e.renderer;
  const Renderer::Buffer own = r.make_buffer(400);
  Array<float> of_weft = zeros<float>(e.device, 100);
  Array<float> of_renderer = wrap_buffer<float>(e.device, 100, VulkanBuffer{own.buffer, 0, 400, 0, own.usage});
  const Array<float> unseen = zeros<float>(e.device, 100);
  const auto last_read_by = [&](Array<float>& x, const std::function<float()>& read) {
    x.fill(1);
    x.wait();
    const VulkanBuffer where = x.vk();
    const VkSemaphore turn = r.make_timeline();
    const VkCommandBuffer commands = r.begin();
    r.vk.vkCmdFillBuffer(commands, where.buffer, where.offset, where.bytes, 0x40e00000);  // 7.f
    r.submit_between(commands, turn, 1, 2);
    e.device.stream().wait(turn, 2);
    // The host reads memory that nobody else knows meanwhile, if it does so without the queue.
    if (!on_gpu()) {
      EXPECT_EQ(unseen.at(3), 0);
    }
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      r.signal(turn, 1);
    });
    const float last = read();
    later.join();
    return last;
  };
  for (Array<float>* x : {&of_weft, &of_renderer}) {
    EXPECT_EQ(last_read_by(*x, [&] { return x->at(99); }), 7);
    EXPECT_EQ(last_read_by(*x, [&] { return x->to_vector().back(); }), 7);
  }
  if (!on_gpu()) {
    EXPECT_EQ(last_read_by(of_weft, [&] { return of_weft.host_span()[99]; }), 7);
  }
}

TEST_P(Adopting, ArraysStandOnTheRenderersBuffers) {
  const VulkanBuffer none{};
  if (on_host())
    return expect_contains(error_of([&] { wrap_buffer<float>(device(), 0, none); }), "not a Vulkan device");
  expect_contains(error_of([&] { wrap_buffer<float>(device(), 0, none); }), "not adopted");
  Embedded e(on_gpu());
  const Renderer::Buffer buffer = e.renderer.make_buffer(1024);
  const VulkanBuffer piece{buffer.buffer, 256, 400, 0, buffer.usage};
  auto* floats = reinterpret_cast<float*>(buffer.host + 256);
  for (int k = 0; k < 100; ++k) floats[k] = float(k);
  {
    Array<float> x = wrap_buffer<float>(e.device, 100, piece);
    launch(add_one, 100, x);
    EXPECT_EQ(x.at(5), 6);
    const VulkanBuffer where = x.vk();
    EXPECT_EQ(where.buffer, buffer.buffer);
    EXPECT_EQ(where.offset, 256u);
    EXPECT_EQ(where.usage, buffer.usage);
    x.slice(0, 50).fill(-1);
    Array<vec3> points = wrap_buffer<vec3>(e.device, 4, {buffer.buffer, 700, 48, 0, buffer.usage});
    points.assign(std::vector<vec3>(4, vec3{1, 2, 3}));
    EXPECT_EQ(points.at(3).z, 3);
    expect_contains(error_of([&] {
                      wrap_buffer<float>(e.device, 10, {buffer.buffer, 300, 40, 0, buffer.usage});
                    }),
                    "is memory of adopted");
    expect_contains(error_of([&] { x.host_span(); }), "not the host's");
    launch(add_one, 100, x);
  }
  // The end of the arrays has waited for the work.
  EXPECT_EQ(floats[49], 0);
  EXPECT_EQ(floats[50], 52);
  EXPECT_EQ(reinterpret_cast<float*>(buffer.host + 700)[11], 3);
  // The buffer is free again.
  EXPECT_EQ(wrap_buffer<float>(e.device, 10, {buffer.buffer, 300, 40, 0, buffer.usage}).at(0), 0);
}

TEST_P(Adopting, BadBuffersAreRefused) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const Renderer::Buffer buffer = e.renderer.make_buffer(64);
  const VulkanBuffer good{buffer.buffer, 0, 64, 0, buffer.usage};
  const auto refuse = [&](auto change, const std::string& text) {
    VulkanBuffer bad = good;
    change(bad);
    expect_contains(error_of([&] { wrap_buffer<float>(e.device, 16, bad); }), text);
  };
  refuse([](VulkanBuffer& b) { b.buffer = VkBuffer{}; }, "null VkBuffer");
  refuse([](VulkanBuffer& b) { b.bytes = 60; }, "60 bytes");
  refuse([](VulkanBuffer& b) { b.bytes = VK_WHOLE_SIZE; }, "with VK_WHOLE_SIZE");
  refuse([](VulkanBuffer& b) { b.offset = 2; }, "multiples of 4");
  refuse([](VulkanBuffer& b) { b.offset = 1 << 20; },
         "64 bytes at offset 1048576 of a VkBuffer are wrapped, which has");
  refuse([](VulkanBuffer& b) { b.usage &= ~std::uint32_t(VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT); },
         "SHADER_DEVICE_ADDRESS");
  refuse([](VulkanBuffer& b) { b.usage &= ~std::uint32_t(VK_BUFFER_USAGE_TRANSFER_DST_BIT); }, "TRANSFER_DST");
}

TEST_P(Adopting, SubmitsWithinTheOwnersLock) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  // The renderer submits from a thread of its own all the while; the validation layer reports simultaneous use.
  std::thread renders([&] {
    for (int k = 0; k < 200; ++k) e.renderer.submit(e.renderer.begin());
  });
  std::thread computes([&] {
    Array<float> y = zeros<float>(e.device, 64);
    const Stream stream = e.device.create_stream();
    for (int k = 0; k < 100; ++k) {
      launch(stream, add_one, 64, y);
      EXPECT_EQ(y.at(0), float(k + 1));
    }
  });
  Array<float> x = zeros<float>(e.device, 64);
  for (int k = 0; k < 100; ++k) {
    launch(add_one, 64, x);
    EXPECT_EQ(x.at(63), float(k + 1));
  }
  renders.join();
  computes.join();
}

}  // namespace
