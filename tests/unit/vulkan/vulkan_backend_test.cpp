// The Vulkan backend on the first adapter, under the validation layer with synchronisation validation.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "../../../backends/operations.h"
#include "../../../backends/vulkan/device.h"
#include "../../../backends/vulkan/queue/stream.h"
#include "../../../backends/vulkan/vulkan.h"
#include "../../../frontend/ir/builder.h"
#include "../../../frontend/support/error.h"
#include "../../../frontend/support/platform.h"
#include "vulkan_shaders.h"

namespace weft::backend {
namespace {

using ir::Access;
using test::shader;
using test::ShaderArgs;
using vulkan::Instance;
using vulkan::Tuning;
using vulkan::VulkanDevice;
using vulkan::VulkanStream;

std::mutex last_mutex;
std::string last_message;

class Vulkan : public testing::Test {
 protected:
  // Opens one device for the suite, because loading a driver takes longer than most tests.
  static void SetUpTestSuite() {
    if (!list_vulkan_devices().empty()) device_ = open_vulkan(0, options());
  }
  static void TearDownTestSuite() { device_.reset(); }

  void SetUp() override {
    if (!device_) GTEST_SKIP() << "no Vulkan adapter";
    messages_ = vulkan_message_count();
  }
  void TearDown() override {
    if (expect_messages_) return;
    std::lock_guard lock(last_mutex);
    EXPECT_EQ(vulkan_message_count(), messages_) << last_message;
  }

  static VulkanOptions options() {
    VulkanOptions result;
    // The layer is a development tool, so the tests run without it if it is not installed.
    static const bool validated = [] {
      try {
        return Instance::get(true) != nullptr;
      } catch (const Error&) {
        return false;
      }
    }();
    result.validation = validated;
    result.on_message = [](const std::string& text) {
      std::lock_guard lock(last_mutex);
      last_message = text;
    };
    return result;
  }

  // A device whose memory behaves differently.
  static std::unique_ptr<VulkanDevice> tuned(const Tuning& tuning) {
    auto instance = Instance::get(options().validation);
    return std::make_unique<VulkanDevice>(instance, instance->adapters().at(0), tuning);
  }

  // A device whose streams submit only on request, because a batch begins with a barrier that is not counted.
  static std::unique_ptr<VulkanDevice> in_one_batch() { return tuned({.most_when_idle = VulkanStream::kMost}); }

  static std::shared_ptr<Program> load(Device& device, const char* body, std::uint32_t args_bytes = sizeof(ShaderArgs),
                                       int indirect = -1) {
    const auto words = shader(body, indirect);
    return load_spirv(device, {"test", words, args_bytes});
  }

  static Ticket run(Stream& stream, Program& program, const ShaderArgs& args, Access x = Access::read,
                    Access y = Access::write) {
    const MemoryRange ranges[] = {{args.x, args.n * 4ull, x}, {args.y, args.n * 4ull, y}};
    return stream.launch(program, {(args.n + 63) / 64}, std::as_bytes(std::span(&args, 1)), ranges);
  }

  template <class T>
  static std::vector<T> read(Stream& stream, const Allocation& from, std::size_t n, Ticket after) {
    std::vector<T> result(n);
    stream.download(result.data(), from.address, n * sizeof(T), after);
    return result;
  }

  static std::vector<std::byte> random_bytes(std::size_t n) {
    std::vector<std::byte> result(n);
    std::mt19937 random(static_cast<unsigned>(n));
    for (auto& b : result) b = std::byte(random());
    return result;
  }

  template <class F>
  static std::string error_of(ErrorKind kind, F f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }

  static std::unique_ptr<Device> device_;
  std::uint64_t messages_ = 0;
  bool expect_messages_ = false;
};
std::unique_ptr<Device> Vulkan::device_;

TEST_F(Vulkan, DescribesItsAdapters) {
  const auto list = list_vulkan_devices();
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].name, "vulkan:" + std::to_string(i));
    EXPECT_FALSE(list[i].adapter.empty());
    EXPECT_FALSE(list[i].cache_key.empty());
    EXPECT_GT(list[i].memory_bytes, 0u);
    EXPECT_GE(list[i].max_block, 128u);
    EXPECT_GE(list[i].max_groups, 65535u);
  }
  EXPECT_EQ(device_->info().cache_key, list[0].cache_key);
  // Memory that the device may share can be of another type, which only an open device knows.
  EXPECT_LE(device_->info().host_visible, list[0].host_visible);
}

TEST_F(Vulkan, NamesTheAdaptersThatExist) {
  for (const int index : {-1, 99}) {
    const std::string what = error_of(ErrorKind::no_device, [&] { open_vulkan(index, options()); });
    EXPECT_NE(what.find("vulkan:" + std::to_string(index)), std::string::npos) << what;
    EXPECT_NE(what.find(device_->info().adapter), std::string::npos) << what;
  }
}

TEST_F(Vulkan, WithoutADriverThereIsNoDevice) {
  if (platform::environment_flag("WEFT_VALIDATION", false)) GTEST_SKIP() << "needs an instance of its own";
  // The loader reads these variables for each instance, and this test makes one without validation.
  const char* names[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
  std::optional<std::string> old[2];
  for (int i = 0; i < 2; ++i) {
    old[i] = platform::environment(names[i]);
    platform::set_environment(names[i], "/nowhere/driver.json");
  }
  if (options().validation) {
    EXPECT_TRUE(list_vulkan_devices().empty());
    const std::string what = error_of(ErrorKind::no_device, [] { open_vulkan(0); });
    EXPECT_NE(what.find("driver"), std::string::npos) << what;
  }
  for (int i = 0; i < 2; ++i) platform::set_environment(names[i], old[i] ? old[i]->c_str() : nullptr);
  EXPECT_FALSE(list_vulkan_devices().empty());
}

TEST_F(Vulkan, RunsSpirvFromElsewhere) {
  constexpr std::uint32_t n = 10007;
  const auto stream = device_->create_stream();
  const auto saxpy = load(*device_, test::kSaxpy);
  const Allocation x = device_->allocate(n * 4, MemoryKind::device), y = device_->allocate(n * 4, MemoryKind::device);
  std::vector<float> hx(n), hy(n);
  for (std::uint32_t i = 0; i < n; ++i) hx[i] = float(i), hy[i] = 0.5f * float(i);
  stream->upload(x.address, hx.data(), n * 4);
  stream->upload(y.address, hy.data(), n * 4);
  const Ticket ticket = run(*stream, *saxpy, {x.address, y.address, n, std::bit_cast<std::uint32_t>(2.0f)});
  const auto result = read<float>(*stream, y, n, ticket);
  for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(result[i], 2.5f * float(i)) << i;
  device_->free(x);
  device_->free(y);
}

TEST_F(Vulkan, MovesBytesOfAnyNumber) {
  const auto unmapped = tuned({.map_device_memory = false});
  EXPECT_FALSE(unmapped->info().host_visible);
  for (Device* device : {device_.get(), static_cast<Device*>(unmapped.get())}) {
    const auto stream = device->create_stream();
    for (const std::size_t n : {1ul, 3ul, 255ul, 257ul, 65535ul, 65537ul, 1000003ul, (33ul << 20) + 5}) {
      SCOPED_TRACE(testing::Message() << device->info().host_visible << " " << n);
      const Allocation a = device->allocate(n + 7, MemoryKind::device), b = device->allocate(n + 7, MemoryKind::device);
      EXPECT_EQ(a.address % 256, 0u);
      EXPECT_EQ(a.host != nullptr, device->info().host_visible);
      const auto data = random_bytes(n);
      for (const bool busy : {false, true}) {
        // While the stream is busy, an upload must queue after the recorded work.
        if (busy) stream->fill(a.address, (n + 3) / 4 * 4, 0xdddddddd);
        Ticket ticket = stream->upload(a.address + 3, data.data(), n);
        ticket = stream->copy(b.address + 1, a.address + 3, n);
        EXPECT_TRUE(read<std::byte>(*stream, {b.address + 1}, n, ticket) == data);
        EXPECT_TRUE(stream->done(ticket));
      }
      device->free(a);
      device->free(b);
    }
  }
}

// The steps of a chain are copied to the device before each run; runs in flight keep theirs.
TEST_F(Vulkan, ChainsRunOnMemoryThatIsNotMapped) {
  const auto device = tuned({.map_device_memory = false});
  const auto add = kernel("add", [](Arr<int> x, Int by) { x[tid()] += by; });
  const ir::Module module = add.trace();
  const auto program = device->compile(module, ir::hash(module));
  const Allocation x = device->allocate(128, MemoryKind::device);
  const auto args = [&](std::int32_t by) {
    std::vector<std::byte> block(module.args_bytes);
    const std::uint32_t n = 32;
    std::memcpy(block.data(), &n, 4);
    std::memcpy(block.data() + module.params[0].offset, &x.address, 8);
    std::memcpy(block.data() + module.params[0].offset + 8, &n, 4);
    std::memcpy(block.data() + module.params[1].offset, &by, 4);
    return block;
  };
  CaptureStream captured(*device);
  const MemoryRange range{x.address, 128, Access::read | Access::write};
  for (int k = 0; k < 100; ++k) captured.launch(*program, {1, 1, 1}, args(1), {&range, 1});
  const auto graph = device->create_graph(captured.take());
  EXPECT_EQ(device->stats().chains, 1u);
  const auto one = device->create_stream(), two = device->create_stream();
  one->fill(x.address, 128, 0);
  one->submit();
  int expected = 0;
  for (int k = 0; k < 60; ++k) {
    Stream& stream = k % 2 ? *one : *two;
    stream.replay(*graph);
    stream.submit();
    expected += k > 20 ? 109 : 100;
    if (k >= 20 && k % 5 == 0) graph->patch(50, args(10), {&range, 1});
  }
  EXPECT_EQ(read<int>(*one, x, 32, one->submit())[31], expected);
  device->free(x);
}

TEST_F(Vulkan, EmptyOperationsDoNothing) {
  const auto stream = device_->create_stream();
  const auto step = load(*device_, test::kStep);
  const Ticket last = stream->submit();  // of an earlier stream, whose semaphore it has
  EXPECT_EQ(device_->allocate(0, MemoryKind::device).address, 0u);
  device_->free({});
  EXPECT_EQ(stream->upload(0, nullptr, 0), last);
  EXPECT_EQ(stream->copy(0, 0, 0), last);
  EXPECT_EQ(stream->fill(0, 0, 1), last);
  stream->download(nullptr, 0, 0, 0);
  EXPECT_EQ(run(*stream, *step, {}), last) << "a launch of no groups";
  EXPECT_EQ(stream->submit(), last);
  EXPECT_TRUE(stream->done(0));
  EXPECT_TRUE(stream->done(last));
  stream->wait(0);
  stream->synchronize();
}

TEST_F(Vulkan, RefusesWhatCannotBe) {
  const auto stream = device_->create_stream();
  const auto step = load(*device_, test::kStep);
  const Allocation a = device_->allocate(1024, MemoryKind::device);
  const auto wrong = [&](auto f) { return error_of(ErrorKind::invalid_argument, f); };
  wrong([&] { stream->fill(a.address + 1, 4, 0); });
  wrong([&] { stream->fill(a.address, 5, 0); });
  wrong([&] { stream->copy(a.address, a.address + 8, 16); });
  wrong([&] { stream->copy(a.address, 12345, 16); });
  wrong([&] { stream->fill(a.address, 1ull << 40, 0); });
  wrong([&] { stream->upload(8, &a, sizeof a); });
  wrong([&] { stream->wait(100); });
  wrong([&] { stream->done(100); });
  int sink = 0;
  wrong([&] { stream->download(&sink, a.address, 4, 100); });
  const ShaderArgs args{a.address, a.address, 1, 0};
  EXPECT_NE(wrong([&] {
              stream->launch(*step, {1}, std::as_bytes(std::span(&args, 1)).first(8), {});
            }).find("8 bytes of arguments given, 24 expected"),
            std::string::npos);
  wrong([&] { stream->launch(*step, {1, ~0u, 1}, std::as_bytes(std::span(&args, 1)), {}); });
  const auto other = open_vulkan(0, options());
  const auto foreign = load(*other, test::kStep);
  wrong([&] { run(*stream, *foreign, args); });
  stream->wait(stream->fill(a.address, 1024, 5));
  EXPECT_EQ(read<std::uint32_t>(*stream, a, 1, 0)[0], 5u) << "the stream goes on";
  device_->free(a);
}

TEST_F(Vulkan, RefusesDamagedSpirv) {
  const auto refuse = [&](std::vector<std::uint32_t> words) {
    return error_of(ErrorKind::invalid_argument, [&] { load_spirv(*device_, {"broken", words, 24}); });
  };
  const auto good = shader(test::kStep);
  EXPECT_NE(refuse({}).find("broken"), std::string::npos);
  refuse({1, 2, 3, 4, 5, 6});
  auto renamed = good;
  const std::uint32_t main_word = std::bit_cast<std::uint32_t>(std::array<char, 4>{'m', 'a', 'i', 'n'});
  *std::find(renamed.begin(), renamed.end(), main_word) ^= 1;
  EXPECT_NE(refuse(renamed).find("main"), std::string::npos);
  for (std::size_t length = 0; length < good.size(); ++length) refuse({good.begin(), good.begin() + length});
}

TEST_F(Vulkan, DependentLaunchesRunInOrder) {
  constexpr std::uint32_t n = 4096, kChain = 1000;
  const auto step = load(*device_, test::kStep);
  for (const bool always : {false, true}) {
    const auto stream = device_->create_stream();
    stream->barrier_always(always);
    const Allocation a = device_->allocate(n * 4, MemoryKind::device), b = device_->allocate(n * 4, MemoryKind::device);
    Ticket ticket = stream->fill(a.address, n * 4, 1), before = 0;
    std::uint32_t expected = 1;
    for (std::uint32_t i = 0; i < kChain; ++i) {
      ticket = run(*stream, *step, {i % 2 ? b.address : a.address, i % 2 ? a.address : b.address, n, i});
      EXPECT_GT(ticket, before);
      before = ticket;
      expected = 3 * expected + i;
    }
    EXPECT_EQ(read<std::uint32_t>(*stream, a, n, ticket), std::vector<std::uint32_t>(n, expected));
    device_->free(a);
    device_->free(b);
  }
}

TEST_F(Vulkan, BarriersStandOnlyWhereNeeded) {
  constexpr std::uint32_t n = 256;
  const auto device = in_one_batch();
  VulkanStream stream(*device);
  const auto step = load(*device, test::kStep), count = load(*device, test::kCount);
  const Allocation m = device->allocate(8 * n * 4, MemoryKind::device);
  const auto at = [&](int i) { return m.address + i * n * 4; };
  for (int i = 0; i < 4; ++i) run(stream, *step, {at(0), at(1 + i), n, 0});
  EXPECT_EQ(stream.memory_barriers(), 0u) << "readers of one array are independent";
  run(stream, *step, {at(6), at(0), n, 0});
  EXPECT_EQ(stream.execution_barriers(), 1u) << "writing what was read needs an order";
  EXPECT_EQ(stream.memory_barriers(), 0u);
  for (int i = 0; i < 4; ++i) run(stream, *count, {at(6), at(7), n, 1}, Access::none, Access::atomic);
  EXPECT_EQ(stream.memory_barriers(), 3u) << "different atomic operations do not commute";
  run(stream, *step, {at(7), at(5), n, 0});
  EXPECT_EQ(stream.memory_barriers(), 4u) << "reading what was added needs the sums";
  stream.synchronize();
  device->free(m);
}

TEST_F(Vulkan, ACopyBehindBarriersOfLaunchesHasOneOfItsOwn) {
  constexpr std::uint32_t n = 256;
  const auto device = in_one_batch();
  VulkanStream stream(*device);
  const auto step = load(*device, test::kStep);
  const Allocation m = device->allocate(6 * n * 4, MemoryKind::device);
  const auto at = [&](int i) { return m.address + i * n * 4; };
  stream.fill(at(0), 6 * n * 4, 1);
  stream.synchronize();
  run(stream, *step, {at(0), at(1), n, 0});
  stream.copy(at(5), at(4), n * 4);
  EXPECT_EQ(stream.memory_barriers(), 0u) << "the batch begins with a barrier of all stages";
  stream.submit();
  run(stream, *step, {at(0), at(1), n, 0});
  run(stream, *step, {at(1), at(2), n, 0});
  EXPECT_EQ(stream.memory_barriers(), 1u);
  const Ticket copied = stream.copy(at(3), at(1), n * 4);  // written before that barrier, which is of launches alone
  EXPECT_EQ(stream.memory_barriers(), 2u);
  stream.copy(at(4), at(2), n * 4);
  EXPECT_EQ(stream.memory_barriers(), 2u);
  Allocation third = m;
  third.address = at(3);
  EXPECT_EQ(read<std::uint32_t>(stream, third, n, copied), std::vector<std::uint32_t>(n, 3));
  stream.synchronize();
  device->free(m);
}

TEST_F(Vulkan, ACopyThatWritesWhatLaunchesHaveReadIsOrderedBehindThem) {
  constexpr std::uint32_t n = 256;
  const auto device = in_one_batch();
  VulkanStream stream(*device);
  const auto step = load(*device, test::kStep);
  const Allocation m = device->allocate(6 * n * 4, MemoryKind::device);
  const auto at = [&](int i) { return m.address + i * n * 4; };
  run(stream, *step, {at(0), at(1), n, 0});
  run(stream, *step, {at(2), at(0), n, 0});
  EXPECT_EQ(stream.execution_barriers(), 1u);
  EXPECT_EQ(stream.memory_barriers(), 0u);
  // That barrier has ordered launches alone, so a copy over memory that they have read needs another.
  stream.copy(at(2), at(5), n * 4);
  EXPECT_EQ(stream.execution_barriers() + stream.memory_barriers(), 2u);
  // Without hazards no barrier comes before the fill, and all missing ones come before the next launch.
  stream.track_hazards(false);
  stream.fill(at(1), n * 4, 1);
  EXPECT_EQ(stream.execution_barriers() + stream.memory_barriers(), 2u);
  stream.track_hazards(true);
  run(stream, *step, {at(3), at(4), n, 0});
  EXPECT_EQ(stream.memory_barriers(), 2u);
  stream.synchronize();
  device->free(m);
}

TEST_F(Vulkan, AtomicsOfManyLaunchesAddUp) {
  const auto stream = device_->create_stream();
  const auto count = load(*device_, test::kCount);
  const Allocation y = device_->allocate(4, MemoryKind::device);
  Ticket ticket = stream->fill(y.address, 4, 0);
  for (std::uint32_t i = 0; i < 300; ++i) {
    const ShaderArgs args{0, y.address, 1000, i};
    const MemoryRange range{y.address, 4, Access::atomic};
    ticket = stream->launch(*count, {16}, std::as_bytes(std::span(&args, 1)), {&range, 1});
  }
  EXPECT_EQ(read<std::uint32_t>(*stream, y, 1, ticket)[0], 1000u * 299 * 300 / 2);
  device_->free(y);
}

// Synchronisation validation sees buffers in transfers, not addresses in shaders: transfers show the need for tracking.
TEST_F(Vulkan, WithoutTrackingValidationComplains) {
  if (!options().validation) GTEST_SKIP() << "no validation layer";
  const Allocation m = device_->allocate(3 << 20, MemoryKind::device);
  const std::uint64_t a = m.address, b = a + (1 << 20), c = b + (1 << 20);
  const auto chain = [&](Stream& stream) {
    stream.fill(a, 1 << 20, 7);
    stream.copy(b, a, 1 << 20);
    stream.copy(c, b, 1 << 20);
    stream.fill(a, 1 << 20, 9);
    stream.copy(b, a, 1 << 20);
    stream.synchronize();
  };
  const auto stream = device_->create_stream();
  chain(*stream);
  EXPECT_EQ(vulkan_message_count(), messages_) << last_message;
  EXPECT_EQ(read<std::uint32_t>(*stream, {c}, 1, 0)[0], 7u);

  stream->track_hazards(false);
  chain(*stream);
  EXPECT_GT(vulkan_message_count(), messages_) << "these copies depend on each other";
  EXPECT_NE(last_message.find("SYNC-HAZARD"), std::string::npos) << last_message;
  messages_ = vulkan_message_count();

  stream->track_hazards(true);
  chain(*stream);
  EXPECT_EQ(read<std::uint32_t>(*stream, {b}, 1, 0)[0], 9u);
  device_->free(m);
}

TEST_F(Vulkan, LargeArgumentsGoThroughMemory) {
  constexpr std::uint32_t n = 64;
  const auto stream = device_->create_stream();
  const Allocation x = device_->allocate(n * 4, MemoryKind::device), y = device_->allocate(n * 4, MemoryKind::device);
  for (const std::uint32_t size : {132u, 200u, 4096u, 60000u, 300000u}) {
    const int at = static_cast<int>(size - sizeof(ShaderArgs)) / 8 * 8;
    const auto step = load(*device_, test::kStep, size, at);
    stream->fill(x.address, n * 4, 0);
    std::vector<std::byte> args(size);
    Ticket ticket = 0;
    std::uint32_t expected = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
      const bool odd = i % 2;
      const ShaderArgs tail{odd ? y.address : x.address, odd ? x.address : y.address, n, i + size};
      std::memcpy(args.data() + at, &tail, sizeof tail);
      const MemoryRange ranges[] = {{tail.x, n * 4, Access::read}, {tail.y, n * 4, Access::write}};
      ticket = stream->launch(*step, {1}, args, ranges);
      std::fill(args.begin(), args.end(), std::byte{0xff});  // the stream has its copy
      expected = 3 * expected + i + size;
    }
    EXPECT_EQ(read<std::uint32_t>(*stream, x, n, ticket), std::vector<std::uint32_t>(n, expected)) << size;
  }
  device_->free(x);
  device_->free(y);
}

// Arguments are in a ring. To make room, a stream may find that all its work has run except what is being recorded.
TEST_F(Vulkan, LargeArgumentsOfWhatIsRecordedStay) {
  constexpr std::uint32_t n = 64, kSize = 60000;
  constexpr int kAt = (kSize - sizeof(ShaderArgs)) / 8 * 8, kInRing = (1 << 20) / kSize;
  const auto stream = device_->create_stream(), other = device_->create_stream();
  const auto step = load(*device_, test::kStep, kSize, kAt), spin = load(*device_, test::kSpin, kSize, kAt);
  const Allocation x = device_->allocate(n * 4, MemoryKind::device), y = device_->allocate(n * 4, MemoryKind::device);
  const auto launch = [&](Program& program, std::uint64_t from, std::uint64_t to, std::uint32_t k) {
    std::vector<std::byte> args(kSize);
    const ShaderArgs tail{from, to, n, k};
    std::memcpy(args.data() + kAt, &tail, sizeof tail);
    const MemoryRange ranges[] = {{from, n * 4, Access::read}, {to, n * 4, Access::write}};
    return stream->launch(program, {1}, args, ranges);
  };
  stream->wait(stream->fill(x.address, n * 4, 0));
  launch(*spin, y.address, y.address, 2'000'000);
  stream->submit();
  Ticket ticket = 0;
  std::uint32_t expected = 0;
  for (std::uint32_t i = 0; i < 3 * kInRing; ++i) {
    // The first launch has run, which is known only when the device is asked.
    if (int(i) == kInRing - 1) other->wait(other->fill(y.address, n * 4, 0));
    ticket = launch(*step, x.address, x.address, i);
    expected = 3 * expected + i;
  }
  EXPECT_EQ(read<std::uint32_t>(*stream, x, n, ticket), std::vector<std::uint32_t>(n, expected));
  device_->free(x);
  device_->free(y);
}

TEST_F(Vulkan, FreedMemoryWaitsForItsWork) {
  constexpr std::uint32_t n = 64 << 10;
  const auto device = tuned({.page_bytes = 1 << 20});
  const auto stream = device->create_stream();
  const auto spin = load(*device, test::kSpin);
  const Allocation x = device->allocate(n * 4, MemoryKind::device);
  Allocation y = device->allocate(n * 4, MemoryKind::device);
  stream->wait(stream->fill(x.address, n * 4, 1));
  const std::uint64_t first = y.address;
  device->free(y);
  y = device->allocate(n * 4, MemoryKind::device);
  EXPECT_EQ(y.address, first) << "nothing runs: it is free at once";

  run(*stream, *spin, {x.address, y.address, n, 4000});
  device->free(y);
  const Allocation recorded = device->allocate(n * 4, MemoryKind::device);
  EXPECT_NE(recorded.address, first) << "the launch that writes it has not even started";
  device->free(recorded);
  stream->submit();
  const Allocation z = device->allocate(n * 4, MemoryKind::device);
  stream->synchronize();
  const auto result = read<std::uint32_t>(*stream, x, 2, 0);
  EXPECT_EQ(result, (std::vector<std::uint32_t>{1, 1}));
  device->free(z);
  device->free(x);
  EXPECT_EQ(device->allocate(n * 4, MemoryKind::device).address, x.address) << "all of it came back, as one piece";
}

TEST_F(Vulkan, AProgramMayBeDroppedWhileItRuns) {
  constexpr std::uint32_t n = 4096;
  const auto stream = device_->create_stream();
  const Allocation x = device_->allocate(n * 4, MemoryKind::device);
  Ticket ticket = stream->fill(x.address, n * 4, 1);
  ticket = run(*stream, *load(*device_, test::kSpin), {x.address, x.address, n, 2}, Access::read, Access::write);
  stream->submit();
  EXPECT_EQ(read<std::uint32_t>(*stream, x, n, ticket), std::vector<std::uint32_t>(n, 13));
  device_->free(x);
}

TEST_F(Vulkan, MemoryInALoopIsBounded) {
  const auto device = tuned({.page_bytes = 4 << 20});
  const auto stream = device->create_stream();
  const auto step = load(*device, test::kStep);
  constexpr std::uint32_t n = 256 << 10;
  for (int i = 0; i < 400; ++i) {
    const Allocation a = device->allocate(n * 4, MemoryKind::device);
    run(*stream, *step, {a.address, a.address, 64, 0});
    device->free(a);
  }
  EXPECT_LE(device->memory().pages(), 80) << "work is submitted and its memory reused without any wait";
  stream->synchronize();
  device->free(device->allocate(1, MemoryKind::device));
  EXPECT_LE(device->memory().pages(), 3) << "and empty pages go back";
}

TEST_F(Vulkan, SaysHowMuchMemoryThereIs) {
  const DeviceInfo& info = device_->info();
  std::string what = error_of(ErrorKind::out_of_memory, [&] { device_->allocate(1ull << 50, MemoryKind::device); });
  EXPECT_NE(what.find("1125899906842624"), std::string::npos) << what;
  EXPECT_NE(what.find(std::to_string(std::min(info.max_allocation, info.memory_bytes))), std::string::npos) << what;
  error_of(ErrorKind::out_of_memory, [&] { device_->allocate(~0ull, MemoryKind::upload); });

  // Software devices overcommit memory: the limit is the size of the heap, not the first page that is touched.
  if (!info.software) return;
  const std::uint64_t part = std::min(info.max_allocation, info.memory_bytes / 2);
  std::vector<Allocation> all;
  what = error_of(ErrorKind::out_of_memory, [&] {
    for (std::uint64_t sum = 0; sum <= info.memory_bytes; sum += part)
      all.push_back(device_->allocate(part, MemoryKind::device));
  });
  EXPECT_NE(what.find(std::to_string(part)), std::string::npos) << what;
  for (const Allocation& a : all) device_->free(a);
  device_->free(device_->allocate(part, MemoryKind::device));
}

TEST_F(Vulkan, TwoDevicesOnOneAdapter) {
  constexpr std::uint32_t n = 1000;
  const auto other = open_vulkan(0, options());
  EXPECT_EQ(other->info().name, device_->info().name);
  std::vector<std::thread> threads;
  for (Device* device : {device_.get(), other.get()})
    for (std::uint32_t k = 1; k <= 2; ++k)
      threads.emplace_back([=] {
        const auto stream = device->create_stream();
        const auto step = load(*device, test::kStep);
        for (int round = 0; round < 20; ++round) {
          const Allocation x = device->allocate(n * 4, MemoryKind::device);
          Ticket ticket = stream->fill(x.address, n * 4, 0);
          std::uint32_t expected = 0;
          for (int i = 0; i < 10; ++i) {
            ticket = run(*stream, *step, {x.address, x.address, n, k}, Access::read, Access::write);
            expected = 3 * expected + k;
          }
          EXPECT_EQ(read<std::uint32_t>(*stream, x, n, ticket), std::vector<std::uint32_t>(n, expected));
          device->free(x);
        }
      });
  for (auto& thread : threads) thread.join();
}

TEST_F(Vulkan, StreamsSeeWhatOthersHaveFinished) {
  constexpr std::uint32_t n = 10000;
  const auto a = device_->create_stream(), b = device_->create_stream();
  const auto step = load(*device_, test::kStep);
  const Allocation x = device_->allocate(n * 4, MemoryKind::device), y = device_->allocate(n * 4, MemoryKind::device);
  a->wait(a->fill(x.address, n * 4, 5));
  b->wait(run(*b, *step, {x.address, y.address, n, 1}));
  EXPECT_EQ(read<std::uint32_t>(*a, y, n, 0), std::vector<std::uint32_t>(n, 16));
  device_->free(x);
  device_->free(y);
}

TEST_F(Vulkan, RecordedWorkRunsWhenItsStreamEnds) {
  const Allocation x = device_->allocate(64, MemoryKind::device);
  device_->create_stream()->fill(x.address, 64, 77);
  EXPECT_EQ(read<std::uint32_t>(*device_->create_stream(), x, 1, 0)[0], 77u);
  device_->free(x);
}

TEST_F(Vulkan, ALostDeviceSaysSoForever) {
  const auto device = tuned({});
  const auto stream = device->create_stream();
  const auto step = load(*device, test::kStep);
  const Allocation x = device->allocate(64, MemoryKind::device);
  const Ticket ticket = stream->fill(x.address, 64, 1);
  EXPECT_THROW(device->check(VK_ERROR_DEVICE_LOST, "vkWaitSemaphores"), Error);
  const auto lost = [&](auto f) {
    EXPECT_NE(error_of(ErrorKind::device_lost, f).find("vkWaitSemaphores"), std::string::npos);
  };
  lost([&] { stream->wait(ticket); });
  lost([&] { stream->done(ticket); });
  lost([&] { stream->submit(); });
  lost([&] { stream->fill(x.address, 64, 1); });
  lost([&] { stream->upload(x.address, &ticket, 8); });
  lost([&] { run(*stream, *step, {x.address, x.address, 1, 0}); });
  std::uint64_t sink;
  lost([&] { stream->download(&sink, x.address, 8, ticket); });
  lost([&] { device->allocate(64, MemoryKind::device); });
  lost([&] { device->create_stream(); });
  lost([&] { load(*device, test::kStep); });
  device->free(x);
}

// A kernel that the emitter must translate: y[i] = i + k for each thread.
ir::Module iota(std::uint32_t k) {
  ir::Module m;
  m.name = "iota";
  m.tid_rank = 1;
  m.block = 64;
  m.args_bytes = 16;
  ir::Param y;
  y.name = "y";
  y.kind = ir::Param::Kind::value;
  y.offset = 8;
  y.bytes = 8;
  m.params.push_back(y);
  ir::Builder b(m);
  const ir::Id i = b.thread_id();
  const ir::Id base = b.arg(ir::Type::u64, 8);
  const ir::Id value = b.pure(ir::Op::add, ir::Type::u32, {i, b.constant(ir::Type::u32, k)});
  b.store(ir::Type::u32, std::span(&value, 1), {base, i, 4, 0, 4});
  return m;
}

TEST_F(Vulkan, TranslatesOnceAndKeepsItOnDisk) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("weft-vulkan-test-" + std::to_string(platform::process_id()));
  const auto old = platform::environment("WEFT_CACHE_DIR"), old_switch = platform::environment("WEFT_CACHE");
  platform::set_environment("WEFT_CACHE_DIR", folder.string().c_str());
  platform::set_environment("WEFT_CACHE", nullptr);
  const ir::Module module = iota(5);
  const detail::Hash128 hash = ir::hash(module);
  const auto check = [&](std::uint64_t emitted, std::uint64_t loaded, std::uint64_t rejected) {
    const auto device = open_vulkan(0, options());
    const auto program = device->compile(module, hash);
    EXPECT_EQ(device->stats().emitted, emitted);
    EXPECT_EQ(device->stats().loaded, loaded);
    EXPECT_EQ(device->stats().rejected, rejected);
    const auto stream = device->create_stream();
    const Allocation y = device->allocate(400, MemoryKind::device);
    struct {
      std::uint32_t n = 100, pad = 0;
      std::uint64_t y;
    } args{100, 0, y.address};
    const MemoryRange range{y.address, 400, Access::write};
    const Ticket ticket = stream->launch(*program, {2}, std::as_bytes(std::span(&args, 1)), {&range, 1});
    const auto result = read<std::uint32_t>(*stream, y, 100, ticket);
    for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(result[i], i + 5);
    device->free(y);
  };
  check(1, 0, 0);
  check(0, 1, 0);
  const auto files = platform::list_files(folder);
  EXPECT_GE(files.size(), 1u) << "the words, and the driver's cache where it has anything to keep";
  for (const auto& file : files) {
    auto content = platform::read_file(file.path).value();
    content[content.size() / 2] ^= std::byte{16};
    ASSERT_TRUE(platform::write_file(file.path, content));
  }
  check(1, 0, files.size());
  check(0, 1, 0);
  // These entries are sound, but neither the driver nor the loader of modules may see their content.
  DiskCache cache(folder);
  cache.put(vulkan::pipeline_key(device_->info()), random_bytes(1000));
  check(0, 1, 0);
  const auto& target = static_cast<VulkanDevice&>(*device_).adapter().target;
  cache.put(vulkan::spirv_key(hash, device_->info().cache_key, target, false), random_bytes(1000));
  check(1, 0, 0);
  platform::set_environment("WEFT_CACHE_DIR", old ? old->c_str() : nullptr);
  platform::set_environment("WEFT_CACHE", old_switch ? old_switch->c_str() : nullptr);
  std::filesystem::remove_all(folder);
}

TEST_F(Vulkan, ForeignPipelineCachesStayAwayFromTheDriver) {
  const auto& properties = static_cast<VulkanDevice&>(*device_).adapter().properties;
  VkPipelineCacheHeaderVersionOne header{};
  header.headerSize = sizeof header;
  header.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
  header.vendorID = properties.vendorID;
  header.deviceID = properties.deviceID;
  std::memcpy(header.pipelineCacheUUID, properties.pipelineCacheUUID, VK_UUID_SIZE);
  const auto bytes = std::as_bytes(std::span(&header, 1));
  EXPECT_TRUE(vulkan::pipeline_cache_fits(bytes, properties));
  EXPECT_FALSE(vulkan::pipeline_cache_fits(bytes.first(31), properties));
  EXPECT_FALSE(vulkan::pipeline_cache_fits({}, properties));
  header.pipelineCacheUUID[3] ^= 1;
  EXPECT_FALSE(vulkan::pipeline_cache_fits(bytes, properties));
  header.pipelineCacheUUID[3] ^= 1;
  header.deviceID ^= 1;
  EXPECT_FALSE(vulkan::pipeline_cache_fits(bytes, properties));
}

TEST(VulkanAdapters, ThatASystemMayResetHaveADispatchBudget) {
  const auto budget = [](VkPhysicalDeviceType type) { return vulkan::dispatch_budget_of(type, 64); };
  EXPECT_EQ(budget(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU), 0.5);
  EXPECT_EQ(budget(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU), 0.5);
  EXPECT_EQ(budget(VK_PHYSICAL_DEVICE_TYPE_CPU), 0);
  EXPECT_EQ(budget(VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU), 0) << "the system that watches it is another";
  EXPECT_EQ(vulkan::dispatch_budget_of(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 0), 0) << "nothing can be measured";
}

TEST_F(Vulkan, TheKeyOfATranslationHoldsAllThatDecidesIt) {
  const detail::Hash128 hash{1, 2};
  const spirv::Target none;
  const std::string key = vulkan::spirv_key(hash, "device", none, false);
  using T = spirv::Target;
  for (bool T::*flag : {&T::int8,
                        &T::int16,
                        &T::int64,
                        &T::float16,
                        &T::float64,
                        &T::storage8,
                        &T::storage16,
                        &T::push8,
                        &T::push16,
                        &T::float32_atomic_add,
                        &T::float64_atomic_add,
                        &T::float32_shared_atomic_add,
                        &T::float64_shared_atomic_add,
                        &T::int64_atomics,
                        &T::int64_shared_atomics,
                        &T::subgroup_vote,
                        &T::subgroup_arithmetic,
                        &T::subgroup_ballot,
                        &T::subgroup_shuffle,
                        &T::subgroup_narrow_wide,
                        &T::subgroup_uniform_flow,
                        &T::subgroups_meet_again,
                        &T::lanes_in_step,
                        &T::round_even16,
                        &T::round_even32,
                        &T::round_even64,
                        &T::keep_nan16,
                        &T::keep_nan32,
                        &T::keep_nan64,
                        &T::memory_model,
                        &T::ray_query,
                        &T::pointer_steps,
                        &T::pairs_in_words}) {
    spirv::Target other;
    other.*flag = !(other.*flag);
    EXPECT_NE(vulkan::spirv_key(hash, "device", other, false), key);
  }
  for (std::uint32_t T::*number : {&T::subgroup_size, &T::max_block}) {
    spirv::Target other;
    other.*number += 32;
    EXPECT_NE(vulkan::spirv_key(hash, "device", other, false), key);
  }
  EXPECT_NE(vulkan::spirv_key(hash, "device", none, true), key);
  EXPECT_NE(vulkan::spirv_key(hash, "other", none, false), key);
  EXPECT_NE(vulkan::spirv_key({1, 3}, "device", none, false), key);
}

}  // namespace
}  // namespace weft::backend
