// Arrays: making, filling, copying, viewing, between devices, and what they refuse.
#include <numeric>
#include <thread>

#include "../../backends/backend.h"
#include "device_test.h"

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

TEST_P(Arrays, come_from_host_ranges_and_go_back) {
  const std::vector<float> host = counting(1001);
  Array<float> a(device(), host);
  EXPECT_EQ(a.size(), 1001);
  EXPECT_EQ(a.to_vector(), host);
  EXPECT_EQ(Array<int>(device(), {3, 1, 2}).to_vector(), (std::vector<int>{3, 1, 2}));
  std::vector<float> out(1001);
  a.copy_to(out);
  EXPECT_EQ(out, host);
  a.assign(std::vector<float>(1001, 4.f));
  EXPECT_EQ(a.at(1000), 4.f);
}

TEST_P(Arrays, are_filled_whatever_the_size_of_their_elements) {
  EXPECT_EQ(full<float>(device(), 5, 2.5f).to_vector(), std::vector<float>(5, 2.5f));
  EXPECT_EQ(full<std::uint8_t>(device(), 7, std::uint8_t(9)).to_vector(), std::vector<std::uint8_t>(7, 9));
  EXPECT_EQ(full<std::int16_t>(device(), 3, std::int16_t(-2)).to_vector(), std::vector<std::int16_t>(3, -2));
  EXPECT_EQ(full<double>(device(), 3, 0.1).to_vector(), std::vector<double>(3, 0.1));
  EXPECT_EQ(full<vec3>(device(), 4, vec3{1, 2, 3}).to_vector(), std::vector<vec3>(4, vec3{1, 2, 3}));
  EXPECT_EQ((zeros<int, 3>(device(), {2, 3, 4}).to_vector()), std::vector<int>(24));
  Array<std::uint8_t> bytes = full<std::uint8_t>(device(), 10, std::uint8_t(1));
  bytes.slice(3, 6).fill(7);
  EXPECT_EQ(bytes.to_vector(), (std::vector<std::uint8_t>{1, 1, 1, 7, 7, 7, 1, 1, 1, 1}));
}

TEST_P(Arrays, views_share_elements_and_clones_do_not) {
  Array<float, 2> a(device(), {4, 3}, counting(12));
  Array<float, 2> copy = a.clone();
  a[2].fill(-1);
  a.slice(0, 3, 2, 1).slice(0, 1).fill(9);
  EXPECT_EQ(a.to_vector(), (std::vector<float>{9, 1, 9, 3, 4, 5, -1, -1, -1, 9, 10, 11}));
  EXPECT_EQ(copy.to_vector(), counting(12));
  EXPECT_EQ((a.reshape<1>({12}).at(6)), -1);
  EXPECT_EQ((copy.slice(1, 3, 1, 1).clone().to_vector()), (std::vector<float>{1, 2, 4, 5, 7, 8, 10, 11}));
}

TEST_P(Arrays, fills_of_views_stay_inside_them) {
  Array<std::uint8_t> bytes = full<std::uint8_t>(device(), 8, std::uint8_t(1));
  bytes.slice(0, 6).fill(7);
  EXPECT_EQ(bytes.to_vector(), (std::vector<std::uint8_t>{7, 7, 7, 7, 7, 7, 1, 1}));
  Array<std::int16_t> shorts = zeros<std::int16_t>(device(), 5);
  shorts.slice(0, 3).fill(4);
  EXPECT_EQ(shorts.to_vector(), (std::vector<std::int16_t>{4, 4, 4, 0, 0}));
  Array<vec3, 2> grid = zeros<vec3, 2>(device(), {3, 4});
  grid.slice(1, 4, 2, 1).slice(0, 2).fill(vec3{1, 2, 3});
  const std::vector<vec3> got = grid.to_vector();
  for (std::size_t k = 0; k < 12; ++k) EXPECT_EQ(got[k], (k % 4 % 2 == 1 && k < 8 ? vec3{1, 2, 3} : vec3{})) << k;
}

TEST_P(Arrays, copies_between_overlapping_views_read_before_they_write) {
  Array<float> line(device(), counting(10));
  line.slice(2, 10).copy_from(line.slice(0, 8));
  EXPECT_EQ(line.to_vector(), (std::vector<float>{0, 1, 0, 1, 2, 3, 4, 5, 6, 7}));
  Array<float, 2> grid(device(), {3, 4}, counting(12));
  grid.slice(1, 4, 1, 1).copy_from(grid.slice(0, 3, 1, 1));
  EXPECT_EQ(grid.to_vector(), (std::vector<float>{0, 0, 1, 2, 4, 4, 5, 6, 8, 8, 9, 10}));
  grid.slice(0, 4, 2, 1).copy_from(grid.slice(1, 4, 2, 1));
  EXPECT_EQ(grid.to_vector(), (std::vector<float>{0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10}));
}

TEST_P(Arrays, strided_views_of_every_element_size_copy) {
  auto check = [&]<class T>(T) {
    std::vector<T> host(48);
    for (int i = 0; i < 48; ++i) host[std::size_t(i)] = T(float(i));
    Array<T, 4> a(device(), {2, 3, 2, 4}, host);
    Array<T, 4> v = a.slice(0, 4, 3, 3).slice(1, 3, 1, 1);
    std::vector<T> expected;
    for (int i = 0; i < 2; ++i)
      for (int j = 1; j < 3; ++j)
        for (int k = 0; k < 2; ++k)
          for (int l = 0; l < 4; l += 3) expected.push_back(host[std::size_t(((i * 3 + j) * 2 + k) * 4 + l)]);
    EXPECT_EQ(v.to_vector(), expected);
    v.assign(std::vector<T>(expected.rbegin(), expected.rend()));
    EXPECT_EQ(v.to_vector(), std::vector<T>(expected.rbegin(), expected.rend()));
    EXPECT_EQ(a.to_vector()[1], host[1]);
  };
  check(float()), check(std::uint8_t()), check(std::int16_t()), check(double()), check(vec3());
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

TEST_P(Arrays, share_memory_with_the_host_where_the_device_does) {
  Array<float> a = full<float>(device(), 10, 1.f);
  if (!device().native().info().host_visible) {
    expect_contains(error_of([&] { a.host_span(); }), "is not the host's");
    return;
  }
  expect_contains(error_of([&] { a.slice(0, 10, 2).host_span(); }), "not contiguous");
  std::span<float> span = a.host_span();
  ASSERT_EQ(span.size(), 10u);
  span[3] = 5;
  launch(kernel("double_all", [](Arr<float> a) { a[tid()] *= 2; }), 10, a);
  EXPECT_EQ(a.host_span()[3], 10);
  EXPECT_EQ(a.host_span()[4], 2);
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

TEST_P(Arrays, empty_ones_are_allowed_and_hold_nothing) {
  Array<float> a = zeros<float>(device(), 0);
  EXPECT_EQ(a.size(), 0);
  EXPECT_TRUE(a.to_vector().empty());
  a.fill(3);
  EXPECT_TRUE(a.clone().to_vector().empty());
  EXPECT_TRUE(Array<int>(device(), std::vector<int>{}).to_vector().empty());
}

TEST_P(Arrays, refuse_what_cannot_be) {
  expect_contains(error_of([&] { zeros<float>(device(), -3); }), "size -3 of dimension 0 is negative");
  expect_contains(error_of([&] { (zeros<float, 2>(device(), {4})); }), "2 dimension(s)");
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
  EXPECT_EQ(error_of([&] { (zeros<float, 3>(device(), {0, std::int64_t(1) << 62, 8})); }).find("out of memory"), 0u);
  expect_contains(error_of([&] { (a.reshape<2>({3, 4})); }), "cannot take the shape");
  expect_contains(error_of([&] { (Array<float, 2>(device(), {2, 2}, std::vector<float>(5))); }), "5 elements");
}

TEST_P(Arrays, of_more_memory_than_there_is_are_refused_with_the_figures) {
  const std::int64_t terabytes = std::int64_t(1) << 42;
  try {
    empty<float>(device(), terabytes);
    ADD_FAILURE() << "16 TiB were allocated";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    expect_contains(e.what(), std::to_string(terabytes * 4));
  }
  EXPECT_EQ(error_of([&] {
              (empty<vec4, 4>(device(), {1 << 30, 1 << 30, 1 << 30, 1 << 30}));
            }).find("out of memory"),
            0u);
  Array<float> a = zeros<float>(device(), 10);  // the device goes on working
  EXPECT_EQ(a.at(9), 0);
}

}  // namespace
