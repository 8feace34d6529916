// Arrays: making, filling, copying, viewing, between devices, and what they refuse.
#include <numeric>
#include <thread>

#include "../../../backends/backend.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Arrays);

std::vector<float> counting(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 0.f);
  return v;
}

TEST_P(Arrays, copy_between_devices) {
  Device other(on_reference() ? "cpu" : "reference");
  Device twin = Device::open(device().name());
  EXPECT_FALSE(twin == device());
  Array<vec3> a = full<vec3>(device(), 100, vec3{1, 2, 3});
  for (const Device& target : {other, twin}) {
    Array<vec3> b = a.to(target);
    EXPECT_TRUE(b.device() == target);
    launch(kernel("twice",
                  [](Arr<vec3> b) {
                    Int i = tid();
                    b[i] = b[i] * 2;
                  }),
           100, b);
    Array<vec3> back = zeros_like(a);
    copy(back, b);
    EXPECT_EQ(back.to_vector(), std::vector<vec3>(100, vec3{2, 4, 6}));
  }
  EXPECT_TRUE(a.to(device()).address() == a.address());
}

TEST_P(Arrays, of_each_device_have_kernels_compiled_once) {
  const auto half = kernel("half", [](Arr<float> x) { x[tid()] *= 0.5f; });
  const auto made = [](const Device& d) { return d.compile_counts().compiled + d.compile_counts().loaded; };
  const Device first = Device::open(device().name()), reference = Device::open("reference");
  {
    const Device second = Device::open(device().name());
    for (int k = 0; k < 3; ++k)
      for (const Device& d : {first, second, reference}) {
        Array<float> x = full<float>(d, 16, 4);
        launch(half, 16, x);
        launch(d.create_stream(), half, 16, x);
        EXPECT_EQ(x.at(15), 1);
        EXPECT_EQ(made(d), 1u);
      }
  }
  // One device ends; the others keep their programs.
  Array<float> x = full<float>(first, 16, 4);
  launch(half, 16, x);
  EXPECT_EQ(x.at(15), 2);
  EXPECT_EQ(made(first), 1u);
}

TEST_P(Arrays, share_memory_with_the_host_where_the_device_does) {
  Array<float> a = full<float>(device(), 10, 1.f);
  if (!device().native().info().host_visible) {
    expect_contains(error_of([&] { a.host_span(); }), "is not the host's");
    return;
  }
  Array<float> every_second = a.slice(0, 10, 2);
  expect_contains(error_of([&] { every_second.host_span(); }), "not contiguous");
  std::span<float> span = a.host_span();
  ASSERT_EQ(span.size(), 10u);
  span[3] = 5;
  launch(kernel("double_all", [](Arr<float> a) { a[tid()] *= 2; }), 10, a);
  EXPECT_EQ(a.host_span()[3], 10);
  EXPECT_EQ(a.host_span()[4], 2);
}

TEST_P(Arrays, parts_are_copied_by_number) {
  Array<float> line(device(), counting(10));
  Array<float, 2> grid = zeros<float, 2>(device(), {3, 4});
  copy(grid, line, 2, 5);  // from element 5 to the end
  EXPECT_EQ(grid.to_vector(), (std::vector<float>{0, 0, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0}));
  copy(grid, line, 10, 0, 2);
  copy(grid[0], line, 0, 3, 1);
  EXPECT_EQ(grid.to_vector(), (std::vector<float>{3, 0, 5, 6, 7, 8, 9, 0, 0, 0, 0, 1}));
  copy(line, line, 1, 0, 9);  // overlapping
  EXPECT_EQ(line.to_vector(), (std::vector<float>{0, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
  copy(line, grid, 0, 0, 0);
  EXPECT_EQ(line.at(0), 0);
  Device other(on_reference() ? "cpu" : "reference");
  Array<float> away = zeros<float>(other, 4);
  copy(away, line, 1, 8, 2);
  EXPECT_EQ(away.to_vector(), (std::vector<float>{0, 7, 8, 0}));
  expect_contains(error_of([&] { copy(grid, line, 3, 0, 10); }), "10 elements at number 3 of a target with 12");
  expect_contains(error_of([&] { copy(grid, line, 0, 5, 6); }), "6 elements at number 5 of a source with 10");
  expect_contains(error_of([&] { copy(grid, line, 0, 11); }), "number 11 of a source");
  expect_contains(error_of([&] { copy(grid, line, 0, -1); }), "number -1 of a source");
  expect_contains(error_of([&] { copy(grid, line, -1); }), "number -1 of a target");
  expect_contains(error_of([&] { copy(line.slice(0, 10, 2), line, 0, 0, 2); }), "target is a view that is not");
  expect_contains(error_of([&] { copy(Array<float>(), line, 0, 0, 2); }), "target of a copy is a null array");
}

TEST_P(Arrays, are_copied_to_the_host_without_waiting) {
  const int n = on_reference() ? 1000 : 200000;
  const auto count_up = kernel("count_up", [](Arr<int> a) { a[tid()] += 1; });
  Array<int> a = zeros<int>(device(), n);
  std::vector<std::vector<int>> frames(5, std::vector<int>(std::size_t(n), -1));
  std::vector<HostCopy> copies;
  for (auto& frame : frames) {
    launch(count_up, n, a);
    copies.push_back(a.copy_to_async(frame));  // the elements at this moment, whatever comes after
  }
  launch(count_up, n, a);
  EXPECT_EQ(frames[4][0], -1);  // wait() alone writes there
  for (std::size_t k = 0; k < 5; ++k) {
    copies[k].wait();
    EXPECT_TRUE(copies[k].done());
    EXPECT_EQ(frames[k], std::vector<int>(std::size_t(n), int(k) + 1));
  }
  copies[0].wait();
  EXPECT_EQ(a.at(n - 1), 6);
  // The end of a HostCopy waits; so does the assignment of another. Views are packed.
  std::vector<int> some(std::size_t(n / 2)), two(2);
  {
    HostCopy copy = a.slice(0, n, 2).copy_to_async(some);
    copy = a.slice(0, 2).copy_to_async(two);
    EXPECT_EQ(some, std::vector<int>(std::size_t(n / 2), 6));
  }
  EXPECT_EQ(two, (std::vector<int>{6, 6}));
  EXPECT_TRUE(HostCopy().done());
  expect_contains(error_of([&] { auto c = a.copy_to_async(two); }), "2 elements are given where the array has");
  expect_contains(error_of([&] { auto c = Array<int>().copy_to_async({}); }), "null array");
}

TEST_P(Arrays, large_copies_to_the_host_come_in_parts) {
  const std::int64_t n = (80 << 20) / 4;  // beyond one part of staging memory
  Array<int> a = full<int>(device(), n, 3);
  a.slice(n - 1, n).fill(9);
  std::vector<int> out(static_cast<std::size_t>(n));
  HostCopy copy = a.copy_to_async(out);
  a.fill(0);
  copy.wait();
  EXPECT_EQ(out.front(), 3);
  EXPECT_EQ(out[std::size_t(n) - 2], 3);
  EXPECT_EQ(out.back(), 9);
  // Copies between devices come in parts, too.
  Device twin = Device::open(device().name());
  a.slice(5, 6).fill(8);
  Array<int> b = a.to(twin);
  EXPECT_EQ(b.at(5), 8);
  EXPECT_EQ(b.at(-1), 0);
}

TEST_P(Arrays, of_several_devices_work_side_by_side) {
  const auto add = kernel("add", [](Arr<float, 2> a, Float s) {
    auto [i, j] = tid<2>();
    a(i, j) += s;
  });
  std::vector<Device> devices{Device("reference"), Device("vulkan:0"), device()};
  EXPECT_EQ(devices[0].name(), "reference");
  EXPECT_EQ(devices[1].name(), "vulkan:0");
  const auto is_software = [](const std::string& name) { return Device(name).is_software() && name != "reference"; };
  if (std::ranges::any_of(Device::list(), is_software)) {
    devices.emplace_back("cpu");
    EXPECT_TRUE(devices.back().name() == "cpu" || devices.back().name().starts_with("vulkan:"));
  }
  Array<float, 2> a(device(), {4, 6}, counting(24));
  float sum = 0;
  for (const Device& from : devices)
    for (const Device& to : devices) {
      Array<float, 2> there = a.to(from), view = zeros<float, 2>(to, {8, 6}).slice(1, 8, 2);
      launch(add, {4, 6}, there, 1.f);
      copy(view, there);  // into every second row
      launch(add, {4, 6}, view, 1.f);
      copy(a.transpose(), view.transpose());
      sum += 2;
      // a.to() with its own device gives the array itself.
      EXPECT_EQ(there.address() == a.address(), from == device());
    }
  const std::vector<float> got = a.to_vector();
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(got[i], float(i) + sum);
}

TEST_P(Arrays, streams_wait_for_each_other) {
  Stream first = device().create_stream(), second = device().create_stream();
  Array<float> a = zeros<float>(device(), 1 << 16);
  const auto add = kernel("add_one", [](Arr<float> a) { a[tid()] += 1; });
  const int n = on_reference() ? 64 : 1 << 16;
  for (int k = 0; k < 10; ++k) {
    launch(first, add, n, a);
    launch(second, add, n, a);
    launch(add, n, a);
  }
  EXPECT_EQ(a.at(0), 30);
  EXPECT_EQ(a.at(n - 1), 30);
}

TEST_P(Arrays, may_be_used_from_several_threads) {
  const auto axpy = kernel("axpy", [](Arr<float> y, Arr<const float> x, Float a) { y[tid()] += a * x[tid()]; });
  const int n = on_reference() ? 100 : 10000;
  Array<float> x = full<float>(device(), n, 1.f);
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Stream stream = device().create_stream();
      Array<float> y = zeros<float>(device(), n);
      for (int k = 0; k < 50; ++k) launch(stream, axpy, n, y, x, float(t));
      sums[std::size_t(t)] = y.at(n - 1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sums, (std::vector<float>{0, 50, 100, 150}));
}

TEST_P(Arrays, freed_while_in_use_are_kept_until_the_device_is_done) {
  Array<float> out = zeros<float>(device(), 5000);
  const auto add = kernel("add", [](Arr<float> out, Arr<const float> in) { out[tid()] += in[tid()]; });
  const int n = on_reference() ? 50 : 5000;
  for (int k = 0; k < 50; ++k) launch(add, n, out, full<float>(device(), 5000, float(k)));
  EXPECT_EQ(out.at(0), 1225);
  EXPECT_EQ(out.at(n - 1), 1225);
}

TEST_P(Arrays, that_were_moved_from_are_refused_and_views_outlive_them) {
  const auto add = kernel("add_one", [](Arr<float> a) { a[tid()] += 1; });
  Array<float> a = full<float>(device(), 10, 1), view = a.slice(2, 6);
  const Array<float> b = std::move(a);
  EXPECT_TRUE(a.is_null());  // the moved-from array is a null array, and says so
  expect_contains(error_of([&] { launch(add, 10, a); }), "argument 1 is a null array");
  expect_contains(error_of([&] { a.at(0); }), "null array");
  expect_contains(error_of([&] { a.slice(0, 1); }), "null");
  launch(add, 4, view);
  EXPECT_EQ(b.at(2), 2);
  // New arrays do not get the memory that a view still sees.
  Array<float> last = full<float>(device(), 100, 3).slice(50, 54);
  std::vector<Array<float>> others;
  for (int k = 0; k < 32; ++k) others.push_back(full<float>(device(), 100, -1));
  launch(add, 4, last);
  EXPECT_EQ(last.to_vector(), std::vector<float>(4, 4));
  for (const auto& other : others) EXPECT_EQ(other.at(51), -1);
}

TEST_P(Arrays, refuse_what_cannot_be) {
  expect_contains(error_of([&] { zeros<float>(device(), -3); }), "size -3 of dimension 0 is negative");
  expect_contains(error_of([&] { (zeros<float, 2>(device(), Extent{4})); }), "2 dimension(s)");
  expect_contains(error_of([&] { Array<float>().to_vector(); }), "null array");
  expect_contains(error_of([&] { Array<float>().fill(1); }), "null array");
  expect_contains(error_of([&] { Array<float>().device(); }), "null");
  Array<float> a = zeros<float>(device(), 10);
  expect_contains(error_of([&] { a.assign(std::vector<float>(9)); }), "9 elements are given where the array has 10");
  expect_contains(error_of([&] { a.slice(3, 11); }), "slice [3, 11)");
  expect_contains(error_of([&] { a.at(10); }), "index 10 of an array of 10 elements");
  expect_contains(error_of([&] { a.slice(5, 4); }), "slice");
  expect_contains(error_of([&] { a.slice(0, 4, 0); }), "step 0");
  expect_contains(error_of([&] { a.copy_from(zeros<float>(device(), 11)); }), "from shape (11) to shape (10)");
  expect_contains(error_of([&] { (a.reshape<2>({(std::int64_t(1) << 62) + 1, 4})); }), "cannot take the shape");
  expect_contains(error_of([&] { (zeros<float, 3>(device(), {0, std::int64_t(1) << 62, 8})); }), ": out of memory: ");
  expect_contains(error_of([&] { (a.reshape<2>({3, 4})); }), "cannot take the shape");
  expect_contains(error_of([&] { (Array<float, 2>(device(), {2, 2}, std::vector<float>(5))); }), "5 elements");
}

}  // namespace
