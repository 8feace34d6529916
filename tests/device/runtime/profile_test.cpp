// Profiles: what they count, how their times relate, and what is refused.
#include <weft/runtime/graph.h>
#include <weft/runtime/profile.h>
#include <weft/weft.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "../../../frontend/support/platform.h"
#include "../../../runtime/core/state.h"
#include "../device_test.h"
#include "../forwarding_device.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Profiles);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto twice = kernel("twice", [](Arr<float> x) { x[tid()] *= 2; });

const Profile::Kernel* find(const Profile& p, const std::string& name) {
  for (const Profile::Kernel& k : p.kernels)
    if (k.name == name) return &k;
  return nullptr;
}
std::int64_t count(const Profile& p, const std::string& name) {
  const Profile::Kernel* k = find(p, name);
  return k ? k->count : 0;
}
const Profile::Scope& scope(const Profile& p, const std::string& path) {
  for (const Profile::Scope& s : p.scopes)
    if (s.path == path) return s;
  throw std::runtime_error("no scope " + path);
}

TEST_P(Profiles, count_and_time_kernels_copies_and_fills) {
  const int n = 1000;
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n);
  Profiler profiler(device());
  for (int k = 0; k < 5; ++k) launch(add_one, n, x);
  for (int k = 0; k < 3; ++k) launch(twice, n, x);
  y.copy_from(x);
  x.fill(4);
  const Profile p = profiler.stop();
  EXPECT_EQ(y.at(0), 40);
  EXPECT_EQ(count(p, "add one"), 5);
  EXPECT_EQ(count(p, "twice"), 3);
  EXPECT_EQ(count(p, "copy"), 1);
  EXPECT_EQ(count(p, "fill"), 1);
  ASSERT_EQ(p.kernels.size(), 4u);
  double share = 0, before = p.kernels[0].total;
  for (const Profile::Kernel& k : p.kernels) {
    EXPECT_EQ(k.device, device().name());
    EXPECT_GT(k.min, 0) << k.name;
    EXPECT_GE(k.mean(), k.min);
    EXPECT_GE(k.max, k.mean() * (1 - 1e-9));
    EXPECT_GE(k.total, k.max);
    EXPECT_LE(k.total, before) << "the one that took longest comes first";
    before = k.total;
    share += k.share;
  }
  EXPECT_NEAR(share, 1, 1e-6);
  ASSERT_EQ(p.operations.size(), 10u);
  double end = 0;
  for (const Profile::Operation& o : p.operations) {
    EXPECT_LT(o.begin, o.end);
    EXPECT_GE(o.begin, end - 1e-9) << "they run one after the other";
    EXPECT_GT(o.begin, o.launched - 0.05) << "clocks of host and device agree";
    EXPECT_LT(o.end, p.seconds + 0.05);
    EXPECT_EQ(o.scope, -1);
    end = o.end;
  }
  EXPECT_EQ(p.operations[0].name, "add one");
  EXPECT_EQ(p.operations[9].name, "fill");
}

TEST_P(Profiles, place_work_where_it_was_launched_however_late) {
  Array<float> x = zeros<float>(device(), 10);
  Stream other = device().create_stream();
  launch(add_one, 10, x);
  Profiler profiler(device());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  launch(add_one, 10, x);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  launch(other, add_one, 10, x);
  other.synchronize();
  const Profile p = profiler.stop();
  ASSERT_EQ(p.operations.size(), 2u);
  for (const Profile::Operation& o : p.operations) {
    EXPECT_GT(o.begin, o.launched - 0.05);
    EXPECT_GE(o.begin, o.stream == 0 ? 0.2 : 0.5);
  }
}

TEST_P(Profiles, tell_long_kernels_from_short_ones) {
  const auto rounds = kernel("rounds", [](Arr<float> x, Int rounds) {
    Float v = x[tid()];
    for (auto k : range(rounds)) v = v * 0.5f + Float(k % 2);
    x[tid()] = v;
  });
  const int n = on_reference() ? 64 : 4096, more = on_reference() ? 3000 : 20000;
  Array<float> x = zeros<float>(device(), n);
  launch(rounds, n, x, 1);
  Profiler profiler(device());
  launch(rounds, n, x, 1);
  launch(rounds, n, x, more);
  launch(rounds, n, x, 1);
  const Profile p = profiler.stop();
  ASSERT_EQ(p.operations.size(), 3u);
  const auto seconds = [&](std::size_t k) { return p.operations[k].end - p.operations[k].begin; };
  EXPECT_GT(seconds(1), 4 * std::min(seconds(0), seconds(2)));
}

TEST_P(Profiles, sum_up_nested_scopes) {
  const int n = 100;
  Array<float> x = zeros<float>(device(), n);
  Profiler profiler(device());
  for (int k = 0; k < 2; ++k) {
    const Timer outer("outer");
    launch(add_one, n, x);
    for (int i = 0; i < 3; ++i) {
      const Timer inner("inner");
      launch(twice, n, x);
    }
  }
  {
    const Timer alone("inner");
    launch(twice, n, x);
  }
  launch(add_one, n, x);
  std::thread([&] {
    const Timer other("other thread");
    launch(twice, n, x);
  }).join();
  const Profile p = profiler.stop();
  ASSERT_EQ(p.scopes.size(), 4u);
  EXPECT_EQ(p.scopes[0].path, "outer");
  EXPECT_EQ(p.scopes[1].path, "outer/inner");
  EXPECT_EQ(p.scopes[1].depth, 1);
  EXPECT_EQ(p.scopes[2].path, "inner");
  EXPECT_EQ(scope(p, "outer").count, 2);
  EXPECT_EQ(scope(p, "outer/inner").count, 6);
  EXPECT_EQ(scope(p, "inner").count, 1);
  EXPECT_GE(scope(p, "outer").host, scope(p, "outer/inner").host);
  EXPECT_GT(scope(p, "outer/inner").host, 0);
  double in_outer = 0, in_inner = 0, all = 0;
  for (const Profile::Operation& o : p.operations) {
    all += o.end - o.begin;
    if (o.scope < 0) continue;
    const Profile::Span& span = p.timers[std::size_t(o.scope)];
    if (span.name == "outer") in_outer += o.end - o.begin;
    if (span.name == "inner" && span.parent >= 0) in_inner += o.end - o.begin;
  }
  EXPECT_NEAR(scope(p, "outer").device, in_outer + in_inner, 1e-9);
  EXPECT_NEAR(scope(p, "outer/inner").device, in_inner, 1e-9);
  EXPECT_LT(scope(p, "outer").device, all);
  ASSERT_EQ(p.timers.size(), 10u);
  EXPECT_NE(p.timers.back().thread, p.timers.front().thread);
  EXPECT_GT(scope(p, "other thread").device, 0);
  for (const Profile::Span& s : p.timers) {
    EXPECT_LE(s.begin, s.end);
    if (s.parent < 0) continue;
    EXPECT_GE(s.begin, p.timers[std::size_t(s.parent)].begin);
    EXPECT_LE(s.end, p.timers[std::size_t(s.parent)].end);
  }
}

TEST_P(Profiles, hear_of_streams_of_several_threads) {
  const int n = 64, rounds = 50;
  Array<float> sum = zeros<float>(device(), n);
  const Stream early = device().create_stream();
  Profiler profiler(device());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const Stream late = device().create_stream();
      Array<float> x = zeros<float>(device(), n);
      for (int k = 0; k < rounds; ++k) {
        const Timer timer("step");
        launch(late, add_one, n, x);
        launch(late, twice, n, sum);
      }
      EXPECT_EQ(x.at(n - 1), rounds);
    });
  for (int k = 0; k < rounds; ++k) launch(early, add_one, n, sum);
  for (std::thread& t : threads) t.join();
  const Profile p = profiler.stop();
  EXPECT_EQ(count(p, "add one"), 4 * rounds);
  EXPECT_EQ(count(p, "twice"), 3 * rounds);
  EXPECT_EQ(scope(p, "step").count, 3 * rounds);
  std::map<int, double> ends;
  for (const Profile::Operation& o : p.operations) {
    EXPECT_GE(o.begin, ends[o.stream] - 1e-9) << "in order on each stream";
    ends[o.stream] = o.end;
  }
  EXPECT_GE(ends.size(), 3u);
}

TEST_P(Profiles, hold_thousands_of_launches) {
  Array<float> x = zeros<float>(device(), 4);
  Profiler profiler(device());
  for (int k = 0; k < 3000; ++k) launch(add_one, 4, x);
  EXPECT_EQ(count(profiler.stop(), "add one"), 3000);
  EXPECT_EQ(x.at(0), 3000);
}

TEST_P(Profiles, take_a_graph_for_one_operation_where_that_is_asked_for) {
  const int n = 100;
  Array<float> x = zeros<float>(device(), n);
  Profiler profiler(device(), {.whole_graphs = true});
  const Graph graph = capture(device(), [&] {
    launch(add_one, n, x);
    launch(twice, n, x);
    launch(add_one, n, x);
  });
  for (int k = 0; k < 4; ++k) graph.launch();
  launch(add_one, n, x);
  const Profile p = profiler.stop();
  EXPECT_EQ(x.at(0), 46);
  EXPECT_EQ(count(p, "graph of 3 operations"), 4);
  EXPECT_GT(find(p, "graph of 3 operations")->min, 0);
  EXPECT_EQ(count(p, "add one"), 1);
  EXPECT_EQ(count(p, "twice"), 0);
}

TEST_P(Profiles, hear_nothing_before_and_after) {
  const int n = 10;
  Array<float> x = zeros<float>(device(), n);
  auto open = std::make_unique<Timer>("before");
  launch(add_one, n, x);
  Profiler profiler(device());
  open.reset();
  launch(twice, n, x);
  open = std::make_unique<Timer>("open at the end");
  const Profile p = profiler.stop();
  open.reset();
  launch(add_one, n, x);
  EXPECT_EQ(x.at(0), 3);
  ASSERT_EQ(p.operations.size(), 1u);
  EXPECT_EQ(p.operations[0].name, "twice");
  ASSERT_EQ(p.timers.size(), 1u);
  EXPECT_EQ(p.timers[0].end, p.seconds);
  const Profile empty = Profiler(device()).stop();
  EXPECT_TRUE(empty.operations.empty() && empty.timers.empty() && empty.kernels.empty() && empty.scopes.empty());
  EXPECT_EQ(&device().stream().native(), &device().stream().native().own());
}

TEST_P(Profiles, let_kernels_report_and_differentiate) {
  const int n = 8;
  const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) {
    assert_(x[tid()] < 5, "too large");
    y[tid()] = x[tid()] * x[tid()];
  });
  Array<float> x = full<float>(device(), n, 3).requires_grad(), y = zeros<float>(device(), n).requires_grad();
  Profiler profiler(device());
  Tape tape;
  tape.record([&] { launch(square, n, x, y); });
  tape.backward({{y, ones<float>(device(), n)}});
  EXPECT_EQ(x.grad().at(0), 6);
  x.fill(7);
  launch(square, n, x, y);
  expect_contains(error_of([&] { y.at(0); }), "too large");
  const Profile p = profiler.stop();
  EXPECT_EQ(count(p, "square"), 2);
  EXPECT_EQ(count(p, "square (adjoint)"), 1);
}

TEST_P(Profiles, cover_several_devices) {
  const Device other = Device::open(device().name());
  const int n = 16;
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(other, n);
  Profiler profiler({device(), other, device()});
  for (int k = 0; k < 3; ++k) launch(add_one, n, x);
  launch(add_one, n, y);
  const Profile p = profiler.stop();
  ASSERT_EQ(p.kernels.size(), 2u);
  for (const Profile::Kernel& k : p.kernels) {
    EXPECT_EQ(k.count, k.device == device().name() ? 3 : 1) << k.device;
    EXPECT_NEAR(k.share, 1, 1e-9);
  }
  expect_contains(p.table(), "on " + device().name() + " (2)");
}

TEST_P(Profiles, print_as_a_table) {
  Array<float> x = zeros<float>(device(), 10);
  Profiler profiler(device());
  {
    const Timer timer("a step");
    launch(add_one, 10, x);
    launch(add_one, 10, x);
  }
  const std::string table = profiler.stop().table();
  for (const char* part : {"count", "total", "mean", "min", "max", "share", "add one", "100.0%", "a step", "host"})
    expect_contains(table, part);
}

TEST_P(Profiles, become_traces_that_viewers_read) {
  const auto odd = kernel("a \"kernel\"\\\n\t\xff", [](Arr<float> x) { x[tid()] += 1; });
  Array<float> x = zeros<float>(device(), 10);
  Profiler profiler(device());
  {
    const Timer timer("scope \"one\"");
    launch(odd, 10, x);
    launch(add_one, 10, x);
  }
  const Profile p = profiler.stop();
  const auto path = std::filesystem::temp_directory_path() /
                    ("weft-trace-" + std::to_string(platform::process_id()) + GetParam() + ".json");
  p.save_trace(path);
  const auto json = nlohmann::json::parse(std::ifstream(path));
  int scopes = 0, operations = 0, names = 0;
  for (const auto& event : json.at("traceEvents")) {
    const std::string kind = event.at("ph");
    if (kind == "M") {
      ++names;
      EXPECT_TRUE(event.at("args").at("name").is_string());
      continue;
    }
    ASSERT_EQ(kind, "X");
    EXPECT_TRUE(event.at("ts").is_number());
    EXPECT_GE(event.at("dur").get<double>(), 0);
    if (event.at("pid") == 0) {
      ++scopes;
      EXPECT_EQ(event.at("name"), "scope \"one\"");
    } else {
      ++operations;
      EXPECT_EQ(event.at("args").at("scope"), "scope \"one\"");
    }
  }
  EXPECT_EQ(scopes, 1);
  EXPECT_EQ(operations, 2);
  EXPECT_EQ(names, 4) << "host, thread, device, stream";
  expect_contains(error_of([&] { p.save_trace(path / "folder" / "trace.json"); }), "cannot be written");
  std::filesystem::remove(path);
}

TEST_P(Profiles, refuse_what_makes_no_sense) {
  Profiler first(device());
  expect_contains(error_of([&] { Profiler second(device()); }), "another one collects");
  expect_contains(error_of([&] { capture(device(), [&] { first.stop(); }); }), "while a graph is captured");
  first.stop();
  expect_contains(error_of([&] { first.stop(); }), "stopped twice");
  expect_contains(error_of([&] { capture(device(), [&] { Profiler p(device()); }); }), "while a graph is captured");
  { const Profiler dropped(device()); }
  Profiler again(device());
}

TEST_P(Profiles, a_timer_that_outlives_its_profiler_leaves_the_next_one_alone) {
  Array<float> x = zeros<float>(device(), 10);
  Profiler first(device());
  std::optional<Timer> late(std::in_place, "late");
  (void)first.stop();
  Profiler second(device());
  const Timer timer("new");
  late.reset();
  x.fill(1);
  const Profile p = second.stop();
  ASSERT_EQ(p.operations.size(), 1u);
  ASSERT_EQ(p.operations[0].scope, 0);
  EXPECT_EQ(p.timers[0].name, "new");
}

// A device that runs out of clocks.
class FewClocks final : public test::ForwardingDevice {
 public:
  explicit FewClocks(const int& left) : left_(left) {}
  std::unique_ptr<backend::Timestamps> create_timestamps(std::uint32_t places) override {
    if (made_ >= left_) throw Error(ErrorKind::out_of_memory, "no clock is left");
    ++made_;
    return ForwardingDevice::create_timestamps(places);
  }

 private:
  const int& left_;
  int made_ = 0;
};

TEST(Profilers, let_go_of_streams_that_they_cannot_listen_to) {
  int clocks = 0;
  auto state = std::make_shared<detail::DeviceState>();
  state->id = ~0ull;
  state->device = std::make_unique<FewClocks>(clocks);
  for (int k = 0; k < 2; ++k)
    state->streams.push_back(std::make_unique<detail::StreamState>(*state, state->device->create_stream()));
  state->default_stream = state->streams[0].get();
  const Device device(state);
  Array<float> x = zeros<float>(device, 4);

  clocks = 2;  // one to compare with the host's, one for the first of two streams
  expect_contains(error_of([&] { Profiler profiler(device); }), "no clock is left");
  launch(add_one, 4, x);
  EXPECT_EQ(x.at(3), 1);

  clocks = 4;  // for a comparison and the second stream, and none for a third
  Profiler profiler(device);
  expect_contains(error_of([&] { (void)device.create_stream(); }), "no clock is left");
  launch(twice, 4, x);
  clocks = 6;
  const Stream stream = device.create_stream();
  launch(stream, add_one, 4, x);
  const Profile profile = profiler.stop();
  EXPECT_EQ(x.at(3), 3);
  EXPECT_EQ(profile.operations.size(), 2u);
  EXPECT_EQ(count(profile, "twice"), 1);
  EXPECT_EQ(count(profile, "add one"), 1);
}

}  // namespace
