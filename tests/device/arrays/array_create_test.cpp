// Making arrays: filled with one value, counting, from other groupings of their scalars, around memory of the host.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <numeric>
#include <optional>

#include "../../../runtime/core/state.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Creation);

std::vector<float> counting(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 0.f);
  return v;
}

TEST_P(Creation, come_from_host_ranges_and_go_back) {
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

TEST_P(Creation, are_filled_whatever_the_size_of_their_elements) {
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

TEST_P(Creation, take_sizes_and_indices_that_become_integers_by_themselves) {
  enum { kHeight = 2, kWidth = 3 };
  constexpr std::integral_constant<int, 2> two;
  const Array<float, 2> a = full<float, 2>(device(), {kHeight, kWidth}, 5);
  EXPECT_EQ(a.extent()[1], kWidth);
  EXPECT_EQ(a[kHeight - 1].size(), 3);
  EXPECT_EQ(a.at(1, two), 5);
  EXPECT_EQ(zeros<float>(device(), kWidth).size(), 3);
  EXPECT_EQ(zeros<float>(device(), two).size(), 2);
  const auto k = kernel("ones", [](Arr<float, 2> x) {
    auto [i, j] = tid<2>();
    x(i, j) = 1;
  });
  launch(k, {kHeight, kWidth}, a);
  EXPECT_EQ(a[two - 1].to_vector(), std::vector<float>(3, 1.f));
  EXPECT_EQ((a.reshape<2>({kWidth, kHeight}).extent()[0]), 3);
}

TEST_P(Creation, empty_ones_are_allowed_and_hold_nothing) {
  Array<float> a = zeros<float>(device(), 0);
  EXPECT_EQ(a.size(), 0);
  EXPECT_TRUE(a.to_vector().empty());
  a.fill(3);
  EXPECT_TRUE(a.clone().to_vector().empty());
  EXPECT_TRUE(Array<int>(device(), std::vector<int>{}).to_vector().empty());
}

TEST_P(Creation, of_more_memory_than_there_is_are_refused_with_the_figures) {
  const std::int64_t terabytes = std::int64_t(1) << 42;
  try {
    empty<float>(device(), terabytes);
    ADD_FAILURE() << "16 TiB were allocated";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    expect_contains(e.what(), std::to_string(terabytes * 4));
  }
  expect_contains(error_of([&] {
                    (empty<vec4, 4>(device(), {1 << 30, 1 << 30, 1 << 30, 1 << 30}));
                  }),
                  ": out of memory: ");
  Array<float> a = zeros<float>(device(), 10);  // the device continues to work
  EXPECT_EQ(a.at(9), 0);
}

TEST_P(Creation, ones_are_ones_in_every_scalar) {
  EXPECT_EQ(ones<float>(device(), 5).to_vector(), std::vector<float>(5, 1));
  EXPECT_EQ((ones<half, 2>(device(), {2, 2}).to_vector()), std::vector<half>(4, half(1)));
  EXPECT_EQ(ones<vec3>(device(), 2).to_vector(), std::vector<vec3>(2, vec3{1, 1, 1}));
  EXPECT_EQ(ones<std::uint8_t>(device(), 3).to_vector(), std::vector<std::uint8_t>(3, 1));
  EXPECT_EQ(ones<bool>(device(), 3).to_vector(), std::vector<bool>(3, true));
  EXPECT_EQ(ones<mat22>(device(), 1).flatten().scalars().to_vector(), std::vector<float>(4, 1));
}

TEST_P(Creation, likenesses_have_shape_and_type_of_another) {
  Array<int, 2> a = full<int, 2>(device(), {3, 5}, 7);
  Array<int, 2> view = a.slice(0, 5, 2, 1);
  for (const Array<int, 2>& like : {zeros_like(view), ones_like(view), full_like(view, 9), empty_like(view)}) {
    EXPECT_EQ(like.shape(0), 3);
    EXPECT_EQ(like.shape(1), 3);
    EXPECT_TRUE(like.is_contiguous());
    EXPECT_TRUE(like.device() == device());
  }
  EXPECT_EQ(full_like(view, 9).to_vector(), std::vector<int>(9, 9));
  EXPECT_EQ(ones_like(view).to_vector(), std::vector<int>(9, 1));
  EXPECT_EQ(zeros_like(view).to_vector(), std::vector<int>(9, 0));
}

TEST_P(Creation, arange_counts_in_every_type) {
  EXPECT_EQ(arange(device(), 5).to_vector(), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(arange(device(), 2, 11, 3).to_vector(), (std::vector<int>{2, 5, 8}));
  EXPECT_EQ(arange(device(), 2, 12, 3).to_vector(), (std::vector<int>{2, 5, 8, 11}));
  EXPECT_EQ(arange(device(), 5, 0, -2).to_vector(), (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(arange<std::int8_t>(device(), 100, 127, 20).to_vector(), (std::vector<std::int8_t>{100, 120}));
  EXPECT_EQ(arange<std::int8_t>(device(), -128, 127, 100).to_vector(), (std::vector<std::int8_t>{-128, -28, 72}));
  EXPECT_EQ(arange<std::uint64_t>(device(), ~0ull - 2, ~0ull).to_vector(),
            (std::vector<std::uint64_t>{~0ull - 2, ~0ull - 1}));
  EXPECT_EQ(arange<std::int64_t>(device(), INT64_MIN, INT64_MAX, INT64_MAX).to_vector(),
            (std::vector<std::int64_t>{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_EQ(arange<std::int16_t>(device(), 3, 3).size(), 0);
  EXPECT_EQ(arange(device(), 3, -3).size(), 0);
  EXPECT_EQ(arange(device(), 0.f, 1.f, 0.25f).to_vector(), (std::vector<float>{0, 0.25f, 0.5f, 0.75f}));
  EXPECT_EQ(arange<double>(device(), 1, -1, -0.5).to_vector(), (std::vector<double>{1, 0.5, 0, -0.5}));
  EXPECT_EQ(arange<float>(device(), 2.5f).to_vector(), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(arange(device(), half(3)).to_vector(), (std::vector<half>{half(0), half(1), half(2)}));
  const std::vector<float> many = arange<float>(device(), 0, 3000000, 2).to_vector();  // in several uploads
  ASSERT_EQ(many.size(), 1500000u);
  for (std::size_t i = 0; i < many.size(); i += 7) ASSERT_EQ(many[i], float(2 * i));
  expect_contains(error_of([&] { arange(device(), 0, 5, 0); }), "step of 0");
  expect_contains(error_of([&] { arange(device(), 0.f, 5.f, 0.f); }), "by 0");
  expect_contains(error_of([&] { arange(device(), 0.f, NAN, 1.f); }), "nan");
  expect_contains(error_of([&] { arange<double>(device(), 0., 1e300, 1.); }), "too many");
}

TEST_P(Creation, scalars_of_the_host_become_elements) {
  const std::vector<float> six = counting(6);
  EXPECT_EQ(from_flat<vec3>(device(), six).to_vector(), (std::vector<vec3>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(from_flat<float>(device(), six).to_vector(), six);
  Array<vec2, 2> grid = from_flat<vec2, 2>(device(), {3, 2}, counting(12));
  EXPECT_EQ(grid.at(2, 1), (vec2{10, 11}));
  EXPECT_EQ(grid.flatten().scalars().to_vector(), counting(12));
  const int raw[] = {1, 2, 3, 4};
  EXPECT_EQ(from_flat<vec2i>(device(), raw).to_vector(), (std::vector<vec2i>{{1, 2}, {3, 4}}));
  expect_contains(error_of([&] { from_flat<vec3>(device(), counting(7)); }), "7 scalars");
  expect_contains(error_of([&] { from_flat<vec3>(device(), counting(7)); }), "1 are left over");
  expect_contains(error_of([&] { (from_flat<vec2, 2>(device(), {3, 3}, counting(12))); }), "12 elements are given");
}

TEST_P(Creation, arrays_stand_on_memory_of_the_host) {
  std::vector<float> host = counting(5000);
  if (!device().wraps_host()) {
    expect_contains(error_of([&] { wrap(device(), host); }), "without a copy");
    return;
  }
  const auto twice = kernel("twice", [](Arr<float> a) { a[tid()] *= 2; });
  {
    Array<float> a = wrap(device(), host);
    EXPECT_EQ(a.size(), 5000);
    launch(twice, 5000, a);
    a.wait();
    for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(host[i], 2 * float(i));
    // The memory is reached through the array, and through host_span(), which is the host's own.
    EXPECT_EQ(a.host_span().data(), host.data());
    a.host_span()[7] = -1;
    launch(twice, 5000, a);
    EXPECT_EQ(a.at(7), -2);
    a.slice(10, 20).fill(3);
    EXPECT_EQ(a.clone().at(19), 3);
    Array<float> other = full<float>(device(), 5000, 5.f);
    a.slice(100, 200).copy_from(other.slice(0, 100));
    a.wait();
    EXPECT_EQ(host[19], 3);
    EXPECT_EQ(host[150], 5);
    a.assign(counting(5000));
    launch(twice, 5000, a);
  }  // the end of the array waits
  for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(host[i], 2 * float(i));
  std::span<float> part(host.data() + 1000, 40);
  Array<float> tail = wrap(device(), part);
  launch(twice, 40, tail);
  EXPECT_EQ(tail.at(-1), 4 * 1039.f);
  EXPECT_EQ(host[999], 2 * 999.f);
  EXPECT_EQ(host[1040], 2 * 1040.f);
}

TEST_P(Creation, wrapped_memory_may_belong_to_the_array) {
  if (!device().wraps_host()) GTEST_SKIP() << "refused: see above";
  std::vector<vec3> host(100, vec3{1, 2, 3});
  Array<vec3> a = wrap(device(), std::move(host));
  Array<vec3> row = a.slice(50);
  a = {};
  launch(kernel("add", [](Arr<vec3> a) { a[tid()] += vec3{1, 1, 1}; }), 50, row);
  EXPECT_EQ(row.to_vector(), std::vector<vec3>(50, vec3{2, 3, 4}));
  EXPECT_EQ((wrap(device(), std::vector<float>{}).size()), 0);
}

TEST_P(Creation, memory_is_wrapped_once_and_in_words) {
  if (!device().wraps_host()) GTEST_SKIP() << "refused: see above";
  std::vector<int> host(100);
  std::optional<Array<int>> a = wrap(device(), host);
  expect_contains(error_of([&] { wrap(device(), host); }), "stands on already");
  expect_contains(error_of([&] { wrap(device(), std::span(host).subspan(50, 10)); }), "stands on already");
  Device twin = Device::open(device().name());
  EXPECT_EQ(wrap(twin, host).size(), 100);  // another device knows nothing of this one
  a.reset();
  EXPECT_EQ(wrap(device(), std::span(host).subspan(50, 10)).size(), 10);
  std::vector<std::uint8_t> bytes(64);
  if (device().native().info().wraps_bytes) return;  // see below
  expect_contains(error_of([&] { wrap(device(), std::span(bytes).subspan(1, 8)); }), "multiples of 4");
  expect_contains(error_of([&] { wrap(device(), std::span(bytes).subspan(4, 7)); }), "multiples of 4");
}

TEST_P(Creation, memory_of_any_alignment_is_wrapped_where_that_is_possible) {
  if (!device().native().info().wraps_bytes) GTEST_SKIP() << "refused: see above";
  for (const std::size_t first : {0, 1, 2, 3, 4, 7}) {
    for (const std::size_t count : {1, 2, 3, 4, 5, 31}) {
      std::vector<std::uint8_t> bytes(64, 9), expected(64, 9);
      const auto all_are = [&](std::uint8_t value) {
        std::fill_n(expected.begin() + std::ptrdiff_t(first), count, value);
        return bytes == expected;
      };
      Array<std::uint8_t> a = wrap(device(), std::span(bytes).subspan(first, count));
      a.fill(3);
      a.wait();
      EXPECT_TRUE(all_are(3)) << first << ", " << count;
      launch(kernel("add five", [](Arr<std::uint8_t> a) { a[tid()] += std::uint8_t(5); }), std::int64_t(count), a);
      EXPECT_EQ(a.clone().to_vector(), std::vector<std::uint8_t>(count, 8));
      EXPECT_TRUE(all_are(8));
      a.assign(std::vector<std::uint8_t>(count, 4));
      a.wait();
      EXPECT_TRUE(all_are(4));
      a.copy_from(full<std::uint8_t>(device(), std::int64_t(count), 6));
      a.wait();
      EXPECT_TRUE(all_are(6));
    }
  }
}

// The device is shown whole pages of the host, in which there may be more than one array.
TEST_P(Creation, wrapped_arrays_may_lie_in_the_same_page) {
  if (!device().wraps_host()) GTEST_SKIP() << "refused: see above";
  std::vector<int> host(4096);
  const std::span<int> all(host);
  Array<int> later = wrap(device(), all.subspan(600, 2000));
  std::optional<Array<int>> sooner = wrap(device(), all.subspan(500, 100));
  std::optional<Array<int>> behind = wrap(device(), all.subspan(2600, 500));
  const auto check = [&](int value) {
    later.fill(value);
    EXPECT_EQ(later.clone().to_vector(), std::vector<int>(2000, value));
    EXPECT_EQ(host[599], sooner ? 7 : -7);
    EXPECT_EQ(host[2600], behind ? 8 : -8);
    EXPECT_EQ(host[600], value);
    EXPECT_EQ(host[2599], value);
  };
  sooner->fill(7);
  behind->fill(8);
  device().synchronize();
  check(1);
  // A graph that fills the end of an array that stays names no memory of the array after it, which goes meanwhile.
  const Graph end = capture(device(), [&] { later.slice(1990, 2000).fill(5); });
  later.slice(1990, 2000).fill(6);
  behind.reset();
  host[2600] = -8;
  check(2);
  sooner.reset();
  host[599] = -7;
  check(3);
  end.launch();
  EXPECT_EQ(later.at(1989), 3);
  EXPECT_EQ(later.slice(1990, 2000).to_vector(), std::vector<int>(10, 5));
}

TEST_P(Creation, memory_of_a_device_is_not_wrapped_on_it) {
  if (!device().wraps_host()) GTEST_SKIP() << "refused: see above";
  Array<int> x = full<int>(device(), 100, 3);
  if (!device().native().info().host_visible) GTEST_SKIP() << "the host cannot name it";
  expect_contains(error_of([&] { wrap(device(), x.host_span()); }), "memory of");
  expect_contains(error_of([&] { wrap(device(), x.host_span().subspan(50)); }), "memory of");
  x.fill(4);
  EXPECT_EQ(x.to_vector(), std::vector<int>(100, 4));
  EXPECT_EQ(zeros<int>(device(), 10).to_vector(), std::vector<int>(10, 0));
}

TEST_P(Creation, memory_that_is_shown_to_a_device_with_its_own_comes_back_right) {
  // Many arrays come and go: pages are taken and given back while work is under way.
  if (!device().wraps_host()) GTEST_SKIP() << "refused: see above";
  const auto add = kernel("add", [](Arr<int> out, Arr<const int> in) { out[tid()] += in[tid()]; });
  Array<int> out = zeros<int>(device(), 64);
  for (int k = 0; k < 30; ++k) launch(add, 64, out, wrap(device(), std::vector<int>(64, k)));
  EXPECT_EQ(out.to_vector(), std::vector<int>(64, 435));
}

}  // namespace
