// Devices when their process ends with work that no thread has waited for, and devices in the child of a fork.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "../child_program.h"
#include "../device_test.h"

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>

using namespace weft;
using weft::test::ChildProgram;
using weft::test::ChildResult;
using weft::test::expect_contains;
using weft::test::run_child;

namespace {

DEVICE_TEST(ProcessEnd);
DEVICE_TEST(Forks);

// The work of a child takes a moment, and one of its threads prints a line, by which it is known to have run.
const auto count_up = kernel("count up", [](Arr<float> x, Int n) {
  Float sum = x[tid()];
  for ([[maybe_unused]] auto k : range(n)) sum = sum * 0.999f + 1.f;
  x[tid()] = sum;
  If (tid() == 0) {
    print("counted to", n);
  }
});
const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });

// The name of a device as Device() takes it.
std::string name_of(const Device& device) { return device.name(); }

// Drivers keep what they compile, and only compilation while the process ends shows what is missing by then.
const std::vector<std::string> kCold = {"MESA_SHADER_CACHE_DISABLE=true", "WEFT_CACHE=0"};

// ---- The end

// Objects that the children below fill, and that are destroyed after the drivers' static objects.
struct Globals {
  std::optional<Device> device;
  Array<float> x;
  std::function<void()> at_the_end;
  ~Globals() {
    try {
      if (at_the_end) at_the_end();
    } catch (const std::exception& e) {
      std::printf("%s\n", e.what());
    }
  }
};
Globals globals;

int leave_work(const std::vector<std::string>& arguments) {
  const std::string &name = arguments[0], &how = arguments[1];
  globals.device.emplace(name);
  globals.x = zeros<float>(*globals.device, 1000);
  launch(count_up, 1000, globals.x, 100);
  if (how == "submitted") globals.device->stream().submit();
  if (how == "on another stream") {
    static const Stream other = globals.device->create_stream();
    launch(other, count_up, 1000, globals.x, 200);
  }
  if (how == "no handle at all") {
    static Array<float>* volatile kept = nullptr;  // never destroyed
    kept = new Array<float>(globals.x);
    (void)kept;
    globals.x = {};
    globals.device.reset();
  }
  if (how == "exit()") std::exit(3);
  if (how == "exit() on a thread") {
    std::thread([] { std::exit(3); }).join();
  }
  if (how == "opened on a thread") {
    globals.device.reset();
    globals.x = {};
    std::thread([name] {
      globals.device.emplace(name);
      globals.x = zeros<float>(*globals.device, 1000);
      launch(count_up, 1000, globals.x, 100);
    }).join();
  }
  return 3;
}
const ChildProgram kLeaveWork("leave work", leave_work);

TEST_P(ProcessEnd, waits_for_work_that_nobody_waited_for) {
  for (const char* how : {"recorded", "submitted", "on another stream", "no handle at all", "exit()",
                          "exit() on a thread", "opened on a thread"}) {
    SCOPED_TRACE(how);
    const ChildResult ended = run_child("leave work", {name_of(device()), how}, kCold);
    EXPECT_EQ(ended.code, 3) << ended.output;
    expect_contains(ended.output, "counted to 100\n");
    if (how == std::string("on another stream")) expect_contains(ended.output, "counted to 200\n");
  }
}

int fail_at_the_end(const std::vector<std::string>& arguments) {
  globals.device.emplace(arguments[0]);
  globals.x = zeros<float>(*globals.device, 10);
  launch(kernel("fails", [](Arr<float> x) { assert_(x[tid()] > 0, "not above zero"); }), 10, globals.x);
  return 0;
}
const ChildProgram kFailAtTheEnd("fail at the end", fail_at_the_end);

TEST_P(ProcessEnd, tells_of_kernels_that_failed) {
  const ChildResult ended = run_child("fail at the end", {name_of(device())}, kCold);
  EXPECT_EQ(ended.code, 0) << ended.output;
  expect_contains(ended.output, "not above zero");
}

int use_late(const std::vector<std::string>& arguments) {
  globals.device.emplace(arguments[0]);
  globals.x = full<float>(*globals.device, 100, 4);
  if (arguments[1] == "launches")
    globals.at_the_end = [] {
      launch(add_one, 100, globals.x);
      std::printf("then %g\n", globals.x.at(99));
    };
  if (arguments[1] == "reads") globals.at_the_end = [] { std::printf("still %g\n", globals.x.to_vector()[99]); };
  return 0;
}
const ChildProgram kUseLate("use late", use_late);

// A static object launches the kernel; it is destroyed after the driver's.
TEST_P(ProcessEnd, refuses_kernels_that_are_launched_after_it) {
  const ChildResult launches = run_child("use late", {name_of(device()), "launches"}, kCold);
  EXPECT_EQ(launches.code, 0) << launches.output;
  if (on_reference())
    EXPECT_EQ(launches.output, "then 5\n");
  else
    expect_contains(launches.output, "after main() has returned or exit() was called");
  const ChildResult reads = run_child("use late", {name_of(device()), "reads"}, kCold);
  EXPECT_EQ(reads.code, 0) << reads.output;
  EXPECT_EQ(reads.output, "still 4\n");
}

// ---- Forks

// Forks. \return  nothing in the child; in the parent, how the child has ended
std::optional<int> end_of_child() {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a signal ends a child that hangs
    return {};
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Memory that only threads of the parent knew of would count as a leak in the child.
const std::vector<std::string> kForked = {"ASAN_OPTIONS=detect_leaks=0"};

// Exits with 1 unless f() throws the error of a device that was left behind by a fork, with this file's name.
void expect_left_behind(const char* what, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    const std::string text = e.what();
    if (e.kind() == ErrorKind::device_lost && text.find("forked") != std::string::npos &&
        text.find("process_test.cpp:") != std::string::npos)
      return;
    std::printf("%s: %s\n", what, e.what());
    std::exit(1);
  } catch (const std::exception& e) {
    std::printf("%s: %s\n", what, e.what());
    std::exit(1);
  }
  std::printf("%s: no error\n", what);
  std::exit(1);
}

// The child inherits objects of all kinds, which end when it does.
int use_in_child(const std::vector<std::string>& arguments) {
  const std::string name = arguments[0];
  const Device device(name);
  Array<float> x = zeros<float>(device, 1000), y = zeros<float>(device, 1000).requires_grad();
  std::vector<float> values(1000), wrapped(1024);
  const Array<float> around = device.wraps_host() ? wrap(device, wrapped) : Array<float>();
  const Stream stream = device.create_stream();
  const Graph graph = capture(device, [&] { launch(add_one, 1000, x); });
  graph.launch();
  launch(stream, add_one, 1000, x);
  HostCopy copy = x.copy_to_async(values);
  const Event event = device.stream().record();
  launch(add_one, 1000, x);  // recorded, and not submitted
  if (const auto code = end_of_child()) {
    device.synchronize();
    return x.at(0) == 3 ? *code : 4;
  }
  if (arguments[1] == "returns") return 0;
  expect_left_behind("launch", [&] { launch(add_one, 1000, x); });
  expect_left_behind("a new kernel", [&] { launch(kernel("new", [](Arr<float> a) { a[tid()] = 2; }), 1000, x); });
  expect_left_behind("to_vector", [&] { (void)x.to_vector(); });
  expect_left_behind("at", [&] { (void)x.at(0); });
  expect_left_behind("fill", [&] { x.fill(1); });
  expect_left_behind("zeros", [&] { (void)zeros<float>(device, 10); });
  expect_left_behind("graph", [&] { graph.launch(); });
  expect_left_behind("wait", [&] { event.wait(); });
  expect_left_behind("copy", [&] { copy.wait(); });
  expect_left_behind("stream", [&] { (void)device.create_stream(); });
  expect_left_behind("synchronize", [&] { device.synchronize(); });
  expect_left_behind("free", [&] { y.free(); });
  expect_left_behind("Device", [&] { (void)Device(name); });
  expect_left_behind("open", [&] { (void)Device::open(name); });
  if (name != "cpu") expect_left_behind("best", [&] { (void)Device::best(); });
  const std::vector<std::string> others = Device::list();
  const bool has_cpu = std::ranges::count(others, "cpu") != 0;
  if (!has_cpu) expect_left_behind("cpu", [&] { (void)Device("cpu"); });
  if (std::ranges::count(others, name) != 0 || (name == "cpu" && has_cpu)) return 2;
  // What the parent had not opened works.
  for (const char* other : {"cpu", "reference"})
    if (std::ranges::count(others, other) != 0 && full<float>(Device(other), 3, 1).at(2) != 1) return 3;
  return 0;
}
const ChildProgram kUseInChild("use in child", use_in_child);

TEST_P(Forks, leave_devices_to_the_parent) {
  if (on_reference()) GTEST_SKIP() << "it is memory alone: see below";
  for (const char* how : {"returns", "uses"}) {
    SCOPED_TRACE(how);
    const ChildResult ended = run_child("use in child", {name_of(device()), how}, kForked);
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
}

int use_reference_in_child(const std::vector<std::string>&) {
  const Device device("reference");
  Array<float> x = zeros<float>(device, 100);
  launch(add_one, 100, x);
  if (const auto code = end_of_child()) return *code;
  launch(add_one, 100, x);
  return x.at(7) == 2 ? 0 : 1;
}
const ChildProgram kUseReferenceInChild("use reference in child", use_reference_in_child);

TEST_P(Forks, take_the_interpreter_with_them) {
  if (!on_reference()) GTEST_SKIP() << "it has threads: see above";
  const ChildResult ended = run_child("use reference in child", {}, kForked);
  EXPECT_EQ(ended.code, 0) << ended.output;
}

// Forks while other threads of the parent are in the middle of calls.
int fork_among_threads(const std::vector<std::string>& arguments) {
  const Device device(arguments[0]);
  Array<float> x = zeros<float>(device, 1000);
  launch(add_one, 1000, x);
  std::atomic<bool> over = false;
  std::thread others[2];
  for (std::thread& other : others)
    other = std::thread([&] {
      while (!over) {
        launch(add_one, 1000, x);
        (void)x.at(0);
      }
    });
  int code = 0;
  for (int k = 0; k < 10 && code == 0; ++k) {
    const auto ended = end_of_child();
    if (!ended) {
      expect_left_behind("launch", [&] { launch(add_one, 1000, x); });
      expect_left_behind("at", [&] { (void)x.at(0); });
      std::_Exit(0);  // a child without the other threads cannot wait for them
    }
    code = *ended;
  }
  over = true;
  for (std::thread& other : others) other.join();
  return code;
}
const ChildProgram kForkAmongThreads("fork among threads", fork_among_threads);

TEST_P(Forks, leave_devices_that_other_threads_use) {
  if (on_reference()) GTEST_SKIP() << "it is memory alone";
  const ChildResult ended = run_child("fork among threads", {name_of(device())}, kForked);
  EXPECT_EQ(ended.code, 0) << ended.output;
}

int open_in_child(const std::vector<std::string>& arguments) {
  const std::string name = arguments[0];
  const auto works = [&] {
    const Device device(name);
    Array<float> x = zeros<float>(device, 100);
    launch(add_one, 100, x);
    return x.at(7) == 1;
  };
  if (arguments[1] == "after those of the parent are closed" && !works()) return 2;
  if (const auto code = end_of_child()) return *code;
  return works() ? 0 : 1;
}
const ChildProgram kOpenInChild("open in child", open_in_child);

TEST_P(Forks, may_open_devices_where_the_parent_has_none) {
  for (const char* when : {"before any", "after those of the parent are closed"}) {
    SCOPED_TRACE(when);
    const ChildResult ended = run_child("open in child", {name_of(device()), when}, kForked);
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
}

}  // namespace
#endif
