// Launches in parts under a time budget: the results are the same, and the number of dispatches is as expected.
#include <weft/runtime/graph.h>
#include <weft/runtime/profile.h>
#include <weft/weft.h>

#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "../../../runtime/core/pacer.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

/// A test with a device of its own, because the device keeps what it learned of a kernel.
class LongLaunches : public test::DeviceTest {
 protected:
  void SetUp() override {
    test::DeviceTest::SetUp();
    if (IsSkipped()) return;
    own_ = Device::open(device().name());
    at_first_ = own_->dispatch_budget();
    own_->set_dispatch_budget(0);
  }
  const Device& own() const { return *own_; }
  double at_first() const { return at_first_; }
  /// The number of dispatches of one kernel that `work` launches.
  template <class F>
  std::int64_t dispatches(const char* kernel, F work) {
    Profiler profiler(own());
    work();
    for (const Profile::Kernel& k : profiler.stop().kernels)
      if (k.name == kernel) return k.count;
    return 0;
  }

 private:
  std::optional<Device> own_;
  double at_first_ = 0;
};
INSTANTIATE_TEST_SUITE_P(On, LongLaunches, ::testing::Values("reference", "native", "vulkan", "gpu"),
                         [](const auto& info) { return std::string(info.param); });

constexpr int kThreads = (1 << 18) + 77;
constexpr double kTiny = 1e-9;

const auto mix = kernel("mix", [](Arr<unsigned> x, Arr<int> sum) {
  Int i = tid();
  UInt v = UInt(i) * 2654435761u;
  x[i] = v ^ (v >> 15u);
  atomic_add(sum[0], 1);
});

// The backend's own tests check what it asks of Vulkan.
TEST_P(LongLaunches, are_limited_at_first_where_others_may_wait_for_pictures) {
  EXPECT_EQ(at_first(), own().native().info().dispatch_budget);
  if (own().is_software()) {
    EXPECT_EQ(at_first(), 0);
  }
}

TEST_P(LongLaunches, compute_the_same_in_more_dispatches) {
  Array<unsigned> whole = zeros<unsigned>(own(), kThreads), parts = zeros<unsigned>(own(), kThreads);
  Array<int> sum = zeros<int>(own(), 1);
  EXPECT_EQ(dispatches("mix", [&] { launch(mix, kThreads, whole, sum); }), 1);
  own().set_dispatch_budget(kTiny);
  EXPECT_EQ(own().dispatch_budget(), kTiny);
  const std::int64_t first = dispatches("mix", [&] { launch(mix, kThreads, parts, sum); });
  EXPECT_GE(first, kThreads / 65536) << "nothing is known: parts of 65536 threads";
  EXPECT_EQ(parts.to_vector(), whole.to_vector());
  parts.zero();
  const std::int64_t second = dispatches("mix", [&] { launch(mix, kThreads, parts, sum); });
  EXPECT_GT(second, 500) << "a workgroup takes longer than the budget";
  EXPECT_EQ(parts.to_vector(), whole.to_vector());
  EXPECT_EQ(sum.at(0), 3 * kThreads) << "each thread ran once";
  own().set_dispatch_budget(0);
  EXPECT_EQ(dispatches("mix", [&] { launch(mix, kThreads, parts, sum); }), 1);
}

TEST_P(LongLaunches, stay_whole_within_the_budget) {
  Array<unsigned> x = zeros<unsigned>(own(), kThreads);
  Array<int> sum = zeros<int>(own(), 1);
  own().set_dispatch_budget(100);
  for (int k = 0; k < 5; ++k) {
    launch(mix, kThreads, x, sum);
    sum.wait();
  }
  EXPECT_EQ(dispatches("mix",
                       [&] {
                         for (int k = 0; k < 4; ++k) launch(mix, kThreads, x, sum);
                       }),
            4);
  EXPECT_EQ(sum.at(0), 9 * kThreads);
}

TEST_P(LongLaunches, keep_workgroups_coordinates_and_rows) {
  constexpr int kBlock = 64, kGroups = 2000, n = kBlock * kGroups;
  const auto reversed = kernel("reversed",
                               [](Arr<int> x) {
                                 auto tile = shared<int>(kBlock);
                                 Int t = local_id();
                                 tile[t] = tid();
                                 barrier();
                                 x[tid()] = tile[kBlock - 1 - t] + 1000000 * workgroup_id() + workgroup_count();
                               },
                               {.block = kBlock});
  const auto grid = kernel("grid", [](Arr<int, 2> x) {
    auto [i, j] = tid<2>();
    x(i, j) = i * 10000 + j;
  });
  Array<int> x = zeros<int>(own(), n), y = zeros<int>(own(), n);
  Array<int, 2> a = zeros<int, 2>(own(), {300, 1001}), b = zeros<int, 2>(own(), {300, 1001});
  launch(reversed, n, x);
  launch(grid, {300, 1001}, a);
  own().set_dispatch_budget(kTiny);
  for (int k = 0; k < 2; ++k) {
    y.zero();
    b.zero();
    launch(reversed, n, y);
    launch(grid, {300, 1001}, b);
    EXPECT_EQ(x.to_vector(), y.to_vector());
    EXPECT_EQ(a.to_vector(), b.to_vector());
  }
}

TEST_P(LongLaunches, may_have_more_workgroups_than_fit_a_dimension) {
  if (on_reference()) GTEST_SKIP() << "five million threads take the interpreter a while";
  constexpr int n = 64 * 65535 + 64 * 5000 + 3;
  const auto number = kernel("number", [](Arr<int> x) { x[tid()] = tid() + 1; }, {.block = 64});
  Array<int> x = zeros<int>(own(), n);
  own().set_dispatch_budget(1e-3);
  for (int k = 0; k < 2; ++k) {
    x.zero();
    const auto made = dispatches("number", [&] { launch(number, n, x); });
    if (!on_gpu()) {  // a GPU may take as many at once
      EXPECT_GT(made, 1);
    }
    const std::vector<int> values = x.to_vector();
    for (int i = 0; i < n; ++i) ASSERT_EQ(values[std::size_t(i)], i + 1);
  }
}

TEST_P(LongLaunches, report_and_differentiate_in_parts) {
  const auto checked = kernel("checked", [](Arr<const float> x, Arr<float> y) {
    Int i = tid();
    assert_(i != 150001, "this one");
    y[i] = x[i] * x[i];
  });
  const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) {
    Int i = tid();
    y[i] = x[i] * x[i];
  });
  Array<float> x = full<float>(own(), kThreads, 3).requires_grad();
  Array<float> y = zeros<float>(own(), kThreads).requires_grad();
  own().set_dispatch_budget(kTiny);
  for (int k = 0; k < 2; ++k) {
    launch(checked, kThreads, x, y);
    expect_contains(error_of([&] { y.at(0); }), "thread 150001");
    Tape tape;
    tape.record([&] { launch(square, kThreads, x, y); });
    x.zero_grad();
    tape.backward({{y, ones<float>(own(), kThreads)}});
    EXPECT_EQ(x.grad().to_vector(), std::vector<float>(kThreads, 6));
  }
}

TEST_P(LongLaunches, are_learned_by_several_threads) {
  own().set_dispatch_budget(1e-4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const Stream stream = own().create_stream();
      Array<unsigned> x = zeros<unsigned>(own(), 100000);
      Array<int> sum = zeros<int>(own(), 1);
      for (int k = 0; k < 4; ++k) launch(stream, mix, 100000, x, sum);
      EXPECT_EQ(sum.at(0), 400000);
    });
  for (std::thread& t : threads) t.join();
}

TEST_P(LongLaunches, leave_graphs_whole) {
  Array<unsigned> x = zeros<unsigned>(own(), kThreads);
  Array<int> sum = zeros<int>(own(), 1);
  own().set_dispatch_budget(kTiny);
  const Graph graph = capture(own(), [&] { launch(mix, kThreads, x, sum); });
  EXPECT_EQ(graph.size(), 1);
  graph.launch();
  EXPECT_EQ(sum.at(0), kThreads);
}

TEST_P(LongLaunches, refuse_budgets_that_are_none) {
  expect_contains(error_of([&] { own().set_dispatch_budget(-1); }), "a dispatch budget of -1 seconds");
  expect_contains(error_of([&] { own().set_dispatch_budget(std::numeric_limits<double>::quiet_NaN()); }),
                  "nan seconds");
}

TEST(Pace, grows_with_what_is_known) {
  detail::Pace pace;
  EXPECT_EQ(pace.groups_within(1, 64), 1024u) << "65536 threads";
  EXPECT_TRUE(pace.wants(1));
  pace.measured(1024, 1e-3);
  EXPECT_EQ(pace.groups_within(4e-3, 64), 4096u) << "four times the time, four times the workgroups";
  EXPECT_EQ(pace.groups_within(1, 64), 8192u) << "eight times as many as were measured at most";
  EXPECT_EQ(pace.groups_within(1e-9, 64), 1u);
  EXPECT_NEAR(pace.estimate(512), 5e-4, 1e-9);
  EXPECT_TRUE(pace.wants(8192));
  int wanted = 0;
  for (int k = 0; k < 640; ++k) wanted += pace.wants(1024);
  EXPECT_EQ(wanted, 10) << "now and then";
}

TEST(Pace, believes_long_times_at_once_and_small_launches_little) {
  detail::Pace pace;
  pace.measured(1 << 20, 1);
  const std::uint32_t before = pace.groups_within(1, 64);
  pace.measured(1, 1e-4);
  EXPECT_EQ(pace.groups_within(1, 64), before) << "one workgroup does not fill the device";
  pace.measured(1, 2);
  EXPECT_EQ(pace.groups_within(1, 64), 1u) << "it took longer than all of them before";
  pace.measured(1 << 20, 1);
  EXPECT_GT(pace.groups_within(3, 64), 1u);
}

}  // namespace
