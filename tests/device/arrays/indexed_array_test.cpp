// Indexed arrays: elements that lists of indices choose, read and written by kernels and copied on the device.
#include <numeric>

#include "../../../runtime/core/state.h"
#include "../../../runtime/graph.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Indexed);

template <class T>
std::vector<T> counting(int n) {
  std::vector<T> v;
  for (int i = 0; i < n; ++i) v.push_back(T(float(i)));
  return v;
}

TEST_P(Indexed, kernels_read_and_write_through_the_lists) {
  Array<float, 2> a(device(), {4, 5}, counting<float>(20));
  Array<int> rows(device(), {3, 0, 2}), columns(device(), {4, 1});
  const auto read = kernel("read", [](IndexedArr<const float, 2> a, Arr<float, 2> out) {
    auto [i, j] = tid<2>();
    out(i, j) = a(i, j) * 10 + a[i][j] + Float(a.shape(0) * 1000 + a.shape(1) * 10000);
  });
  const auto check = [&](const IndexedArray<float, 2>& x, const std::vector<int>& r, const std::vector<int>& c) {
    EXPECT_EQ(x.shape(0), std::int64_t(r.size()));
    EXPECT_EQ(x.shape(1), std::int64_t(c.size()));
    Array<float, 2> out = zeros<float, 2>(device(), x.extent());
    launch(read, x.extent(), x, out);
    std::vector<float> expected, chosen;
    for (int i : r)
      for (int j : c) {
        chosen.push_back(float(5 * i + j));
        expected.push_back(float(11 * (5 * i + j) + 1000 * int(r.size()) + 10000 * int(c.size())));
      }
    EXPECT_EQ(out.to_vector(), expected);
    EXPECT_EQ(x.to_vector(), chosen);
  };
  check(indexed(a, rows, columns), {3, 0, 2}, {4, 1});
  check(indexed(a, rows), {3, 0, 2}, {0, 1, 2, 3, 4});
  check(indexed(a, {}, columns), {0, 1, 2, 3}, {4, 1});
  check(indexed(a, {}), {0, 1, 2, 3}, {0, 1, 2, 3, 4});
  check(indexed(a.slice(0, 4, 2), Array<int>(device(), {1, 1})), {2, 2}, {0, 1, 2, 3, 4});
  check(indexed(a, rows.slice(0, 3, 2)), {3, 2}, {0, 1, 2, 3, 4});

  launch(kernel("write",
                [](IndexedArr<float, 2> a) {
                  auto [i, j] = tid<2>();
                  a(i, j) = -1;
                  a[i][j] -= Float(i);
                }),
         {3, 2}, indexed(a, rows, columns));
  std::vector<float> expected = counting<float>(20);
  expected[19] = expected[16] = -1;
  expected[4] = expected[1] = -2;
  expected[14] = expected[11] = -3;
  EXPECT_EQ(a.to_vector(), expected);
}

TEST_P(Indexed, work_is_ordered_after_what_writes_array_and_lists) {
  Array<int> data = zeros<int>(device(), 1000), list = zeros<int>(device(), 1000), out = zeros<int>(device(), 1000);
  const int n = on_reference() ? 100 : 1000;
  const auto fill = kernel("fill", [](Arr<int> data, Arr<int> list, Int n, Int k) {
    Int i = tid();
    data[i] = i * k;
    list[i] = n - 1 - i;
  });
  const auto take = kernel("take", [](Arr<int> out, IndexedArr<const int> chosen) { out[tid()] += chosen[tid()]; });
  int factors = 0;
  for (int k = 1; k < 20; ++k) {
    launch(fill, n, data, list, n, k);
    launch(take, n, out, indexed(data, list));
    factors += k;
  }
  EXPECT_EQ(out.at(0), factors * (n - 1));
  EXPECT_EQ(out.at(n - 1), 0);
  EXPECT_EQ(out.at(n / 2), factors * (n - 1 - n / 2));
}

TEST_P(Indexed, elements_of_every_size_are_gathered_and_scattered) {
  auto check = [&]<class T>(T) {
    const std::vector<T> host = counting<T>(48);
    Array<T, 4> a(device(), {2, 3, 2, 4}, host);
    Array<int> first(device(), {1, 0, 1}), third(device(), {1}), last(device(), {3, 2, 0});
    IndexedArray<T, 4> x = indexed(a, first, {}, third, last);
    std::vector<T> expected;
    for (int i : {1, 0, 1})
      for (int j = 0; j < 3; ++j)
        for (int l : {3, 2, 0}) expected.push_back(host[std::size_t(((i * 3 + j) * 2 + 1) * 4 + l)]);
    EXPECT_EQ(x.to_vector(), expected);
    // In three dimensions: row 1, with the third list last.
    IndexedArray<T, 3> y = indexed(a[1], {}, third, last);
    EXPECT_EQ(y.to_vector(), (std::vector<T>(expected.begin(), expected.begin() + 9)));
    y.copy_from(Array<T, 3>(device(), {3, 1, 3}, std::vector<T>(expected.rbegin(), expected.rbegin() + 9)));
    EXPECT_EQ(y.to_vector(), (std::vector<T>(expected.rbegin(), expected.rbegin() + 9)));
    EXPECT_EQ(a[0].to_vector(), (std::vector<T>(host.begin(), host.begin() + 24)));
    EXPECT_EQ(a.at(1, 0, 0, 0), host[24]);
    indexed(a, {}, {}, {}, last).fill(T(7.f));
    EXPECT_EQ(a.at(0, 1, 1, 2), T(7.f));
    EXPECT_EQ(a.at(0, 1, 1, 1), host[std::size_t((0 * 3 + 1) * 8 + 5)]);
  };
  check(float()), check(std::uint8_t()), check(std::int16_t()), check(double()), check(vec3());
}

TEST_P(Indexed, are_copied_part_by_part_where_threads_are_few) {
  detail::DeviceState& state = *device().state();
  const std::int64_t before = state.max_threads;
  state.max_threads = 50;
  Array<vec3, 2> a = zeros<vec3, 2>(device(), {20, 9});
  std::vector<int> rows(31), columns{8, 8, 0};
  for (int i = 0; i < 31; ++i) rows[std::size_t(i)] = i * 7 % 20;
  launch(kernel("number",
                [](Arr<vec3, 2> a) {
                  auto [i, j] = tid<2>();
                  a(i, j) = Vec3(Float(i), Float(j), Float(0));
                }),
         {20, 9}, a);
  const std::vector<vec3> got =
      indexed(a, Array<int>(device(), rows), Array<int>(device(), columns)).clone().to_vector();
  const std::vector<vec3> strided = a.slice(1, 20, 2).slice(0, 9, 3, 1).to_vector();
  Array<float, 2> block = zeros<float, 2>(device(), {30, 30});
  block.slice(1, 30, 3).fill(2);
  state.max_threads = before;
  for (std::size_t i = 0; i < 31; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_EQ(got[i * 3 + j], (vec3{float(rows[i]), float(columns[j]), 0})) << i << " " << j;
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(strided[i * 3 + j], (vec3{float(2 * i + 1), float(3 * j), 0}));
  const std::vector<float> filled = block.to_vector();
  for (std::size_t i = 0; i < 900; ++i) ASSERT_EQ(filled[i], i / 30 % 3 == 1 ? 2 : 0) << i;
}

TEST_P(Indexed, an_index_outside_is_an_error_in_the_callers_dimensions) {
  const auto list = [&](std::vector<int> indices) { return Array<int>(device(), indices); };
  const auto expect_outside = [&](auto f, const char* what) {
    const std::string error = error_of([&] {
      f();
      device().synchronize();
    });
    expect_contains(error, what);
    expect_contains(error, "(launched at ");
    expect_contains(error, "indexed_array_test.cpp:");
  };
  Array<float> line(device(), counting<float>(5));
  expect_outside(
      [&] {
        indexed(line, list({0, 7})).to_vector();
      },
      "index 7 is outside dimension 0 of an indexed array, which has 5 elements");
  expect_outside([&] { indexed(line, list({-1, 0})).clone(); }, "index -1 is outside dimension 0");
  expect_outside([&] { indexed(line, list({2147483647})).fill(3); }, "index 2147483647 is outside dimension 0");
  Array<double, 2> plane = zeros<double, 2>(device(), {3, 4});
  expect_outside(
      [&] {
        indexed(plane, {}, list({0, 4})).copy_from(full<double, 2>(device(), {3, 2}, 1.0));
      },
      "index 4 is outside dimension 1 of an indexed array, which has 4 elements");
  Array<std::uint8_t, 3> odd = zeros<std::uint8_t, 3>(device(), {2, 3, 5});
  expect_outside([&] { indexed(odd, {}, list({-2147483647 - 1})).to_vector(); }, "is outside dimension 1");
  Array<vec3, 4> block = zeros<vec3, 4>(device(), {2, 2, 2, 2});
  expect_outside([&] { indexed(block, list({2}), {}, {}, list({0})).to_vector(); }, "index 2 is outside dimension 0");
  // Elements inside are copied all the same.
  EXPECT_EQ(plane.slice(0, 1, 1, 1).to_vector(), std::vector<double>(3, 1));
  EXPECT_EQ(line.to_vector(), counting<float>(5));
}

TEST_P(Indexed, an_index_outside_is_an_error_of_the_graph_that_copies) {
  Array<int> data(device(), {1, 2, 3}), list(device(), {0, 2}), out = zeros<int>(device(), 2);
  out.copy_from(indexed(data, list).clone());
  Graph graph = capture(device(), [&] { out.copy_from(indexed(data, list).clone()); });
  graph.launch();
  EXPECT_EQ(out.to_vector(), (std::vector<int>{1, 3}));
  list.assign(std::vector<int>{1, 3});
  expect_contains(error_of([&] {
                    graph.launch();
                    device().synchronize();
                  }),
                  "index 3 is outside dimension 0");
}

template <template <class> class F = Host>
struct Holder {
  F<int> id;
  F<Array<float>> values;
};

TEST_P(Indexed, structs_that_are_gathered_keep_the_arrays_that_they_hold) {
  const auto chosen = [&] {  // the array itself, and all handles of what it holds, end here
    std::vector<Holder<>> host;
    for (int k = 0; k < 5; ++k) host.push_back({k, full<float>(device(), 100, float(k))});
    Array<Holder<>> all(device(), host);
    return indexed(all, Array<int>(device(), {4, 1})).clone();
  }();
  for (int k = 0; k < 5; ++k) full<float>(device(), 100, -1.f);  // takes the memory that became free
  Array<float> sums = zeros<float>(device(), 2);
  launch(kernel("sums",
                [](Arr<const Holder<>> a, Arr<float> sums) {
                  Int i = tid();
                  for (auto k : range(100)) sums[i] += a[i].values[k];
                }),
         2, chosen, sums);
  EXPECT_EQ(sums.to_vector(), (std::vector<float>{400, 100}));
  EXPECT_EQ(chosen.at(-1).id, 1);
  EXPECT_EQ(chosen.at(0).values.at(99), 4);
}

TEST_P(Indexed, mistakes_are_refused_by_name) {
  Array<float, 2> a = zeros<float, 2>(device(), {4, 5});
  Array<int> list(device(), {1, 2});
  expect_contains(error_of([&] { indexed(Array<float>(), list); }), "indices into a null array");
  expect_contains(error_of([&] { indexed(a, list, list, list); }), "dimension 2 of an array of 2");
  Device other(on_reference() ? "cpu" : "reference");
  expect_contains(error_of([&] { indexed(a, {}, list.to(other)); }), "indices of dimension 1 are on device");
  const auto read = kernel("read", [](Arr<float> out, IndexedArr<const float, 2> a) { out[0] = a(0, 0); });
  Array<float> out = zeros<float>(device(), 1);
  expect_contains(error_of([&] { launch(read, 1, out, IndexedArray<float, 2>()); }), "argument 2 is a null array");
  expect_contains(error_of([&] { launch(read, 1, out, indexed(a, {}, zeros<int>(device(), 0))); }),
                  "argument 2, indices of dimension 1 is an empty array");
  expect_contains(error_of([&] { indexed(a, list).copy_from(a); }), "dimension 0 of the source has 4");
}

TEST(Reference, finds_indices_of_lists_that_lie_outside) {
  Device reference("reference");
  Array<float> a = zeros<float>(reference, 4), out = zeros<float>(reference, 4);
  Array<int> list(reference, {0, 4});
  const std::string text = error_of([&] {
    launch(kernel("outside", [](Arr<float> out, IndexedArr<const float> a) { out[tid()] = a[tid()]; }), 2, out,
           indexed(a, list));
  });
  expect_contains(text, "kernel \"outside\"");
  expect_contains(text, "thread 1 reads");
  expect_contains(text, "index 4 of argument 2");
}

}  // namespace
