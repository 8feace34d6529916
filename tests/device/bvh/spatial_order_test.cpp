// The order of queries along a space-filling curve.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/runtime/geometry/spatial_order.h>
#include <weft/runtime/graph.h>

#include <algorithm>
#include <limits>
#include <random>

#include "../../../runtime/core/state.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(SpatialOrder);

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

std::vector<vec3> scattered(std::int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> place(-1, 1);
  std::vector<vec3> points;
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = place(engine), y = place(engine), z = place(engine);
    points.push_back({x, y, z});
  }
  return points;
}

bool is_permutation(std::vector<int> order, std::int64_t n) {
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < n; ++i)
    if (order[std::size_t(i)] != i) return false;
  return std::int64_t(order.size()) == n;
}

/// The sum of the distances from each point to the next.
double way(const std::vector<vec3>& points, const std::vector<int>& order) {
  double sum = 0;
  for (std::size_t k = 1; k < order.size(); ++k)
    sum += length(points[std::size_t(order[k])] - points[std::size_t(order[k - 1])]);
  return sum;
}

TEST_P(SpatialOrder, is_a_permutation) {
  for (const std::int64_t n : {1, 2, 31, 257, on_reference() ? 1000 : 100'003}) {
    const std::vector<vec3> points = scattered(n, 1), directions = scattered(n, 2);
    const Array<vec3> p(device(), points), d(device(), directions);
    EXPECT_TRUE(is_permutation(spatial_order(p).to_vector(), n)) << n;
    EXPECT_TRUE(is_permutation(spatial_order(p, d).to_vector(), n)) << n;
  }
}

TEST_P(SpatialOrder, of_nothing_is_nothing) {
  const Array<vec3> none(device(), std::vector<vec3>());
  EXPECT_EQ(spatial_order(none).size(), 0);
  EXPECT_EQ(spatial_order(none, none).size(), 0);
}

// The places of a lattice of 4^3, in the order of nested halving: bits of x, y, z in turns.
TEST_P(SpatialOrder, follows_the_curve) {
  std::vector<std::pair<unsigned, vec3>> places;
  for (unsigned x = 0; x < 4; ++x)
    for (unsigned y = 0; y < 4; ++y)
      for (unsigned z = 0; z < 4; ++z) {
        unsigned key = 0;
        for (int bit : {1, 0}) key = key << 3 | (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | (z >> bit & 1);
        places.push_back({key, vec3{float(x) - 7, 3 * float(y), 1e-3f * float(z)}});
      }
  std::shuffle(places.begin(), places.end(), std::mt19937(3));
  std::vector<vec3> points;
  for (const auto& [key, place] : places) points.push_back(place);
  const std::vector<int> order = spatial_order(Array<vec3>(device(), points)).to_vector();
  for (std::size_t k = 0; k < order.size(); ++k) EXPECT_EQ(places[std::size_t(order[k])].first, k);
}

TEST_P(SpatialOrder, leads_from_neighbour_to_neighbour) {
  const std::int64_t n = on_reference() ? 1000 : 50'000;
  const std::vector<vec3> points = scattered(n, 4);
  std::vector<int> as_given(points.size());
  for (std::int64_t i = 0; i < n; ++i) as_given[std::size_t(i)] = int(i);
  const double by_curve = way(points, spatial_order(Array<vec3>(device(), points)).to_vector());
  EXPECT_LT(by_curve, way(points, as_given) / (on_reference() ? 4 : 15));
}

TEST_P(SpatialOrder, is_the_same_on_every_device) {
  const Device reference = Device::open("reference");
  std::vector<vec3> points = scattered(600, 5), directions = scattered(600, 6);
  points[17] = {kNaN, 0, 0}, directions[18] = vec3{}, directions[19] = {0, -kInfinity, 0};
  EXPECT_EQ(spatial_order(Array<vec3>(device(), points)).to_vector(),
            spatial_order(Array<vec3>(reference, points)).to_vector());
  EXPECT_EQ(spatial_order(Array<vec3>(device(), points), Array<vec3>(device(), directions)).to_vector(),
            spatial_order(Array<vec3>(reference, points), Array<vec3>(reference, directions)).to_vector());
}

TEST_P(SpatialOrder, what_is_nowhere_comes_last_in_its_order) {
  // (9, 9, 9) is in the last cell, and so before the points that are in none.
  const std::vector<vec3> points = {{kNaN, 0, 0}, {9, 9, 9},          {0, kInfinity, 0},
                                    {1, 1, 1},    {0, 0, -kInfinity}, {5, 5, 5}};
  EXPECT_EQ(spatial_order(Array<vec3>(device(), points)).to_vector(), (std::vector<int>{3, 5, 1, 0, 2, 4}));
  const std::vector<vec3> nowhere(3, vec3{kNaN, kNaN, kNaN});
  EXPECT_EQ(spatial_order(Array<vec3>(device(), nowhere)).to_vector(), (std::vector<int>{0, 1, 2}));

  const std::vector<vec3> origins = {{0, 0, 0}, {0, 0, 0}, {kNaN, 0, 0}, {4, 4, 4}, {1, 1, 1}};
  const std::vector<vec3> directions = {{0, 0, 0}, {1, kNaN, 0}, {1, 0, 0}, {1, 1, 1}, {1, 1, 1}};
  EXPECT_EQ(spatial_order(Array<vec3>(device(), origins), Array<vec3>(device(), directions)).to_vector(),
            (std::vector<int>{4, 3, 0, 1, 2}));
}

TEST_P(SpatialOrder, points_in_one_place_keep_their_order) {
  const Array<vec3> same = full<vec3>(device(), 300, vec3{1, 2, 3});
  const std::vector<int> order = spatial_order(same).to_vector();
  for (int i = 0; i < 300; ++i) EXPECT_EQ(order[std::size_t(i)], i);
}

TEST_P(SpatialOrder, rays_are_parted_by_octants_then_by_origins) {
  const std::vector<vec3> corners = {{0, 0, 0}, {8, 8, 8}};
  std::vector<vec3> origins, directions;
  for (const float sign : {1.f, -1.f})
    for (const vec3 o : {corners[1], corners[0]}) {
      origins.push_back(o), directions.push_back(vec3{0.1f, 0.7f, 0.3f} * sign);
      origins.push_back(o), directions.push_back(vec3{0.7f, 0.1f, 0.3f} * sign);
    }
  EXPECT_EQ(spatial_order(Array<vec3>(device(), origins), Array<vec3>(device(), directions)).to_vector(),
            (std::vector<int>{7, 6, 5, 4, 2, 3, 0, 1}));
}

TEST_P(SpatialOrder, queries_by_it_find_the_same) {
  const int n = on_reference() ? 200 : 5000;
  const Mesh mesh(device(), shapes::torus());
  const Array<vec3> points(device(), scattered(n, 7)), directions(device(), scattered(n, 8));
  const auto ask = kernel("ask", [](Var<MeshArrays> mesh, Arr<const int> order, Arr<const vec3> p, Arr<const vec3> d,
                                    Arr<float> distance, Arr<float> t) {
    Int i = order[tid()];
    distance[i] = mesh_query_point(mesh, p[i]).distance;
    t[i] = mesh_query_ray(mesh, p[i], d[i]).t;
  });
  const auto answers = [&](const Array<int>& order) {
    const Array<float> distance = full<float>(device(), n, -1), t = full<float>(device(), n, -1);
    launch(ask, n, mesh, order, points, directions, distance, t);
    return std::pair(distance.to_vector(), t.to_vector());
  };
  const auto plain = answers(arange(device(), n));
  EXPECT_EQ(answers(spatial_order(points)), plain);
  EXPECT_EQ(answers(spatial_order(points, directions)), plain);
}

TEST_P(SpatialOrder, given_memory_nothing_is_allocated_and_graphs_capture_it) {
  const std::int64_t n = 3000;
  const Array<vec3> points(device(), scattered(n, 9)), directions(device(), scattered(n, 10));
  Array<int> order = zeros<int>(device(), n), of_rays = zeros<int>(device(), n);
  const auto scratch = empty<std::uint8_t>(device(), std::int64_t(spatial_order_scratch_bytes(n)));
  const std::vector<int> expected = spatial_order(points).to_vector(),
                         expected_rays = spatial_order(points, directions).to_vector();
  const auto all = [&] {
    spatial_order(points, order, {.scratch = scratch});
    spatial_order(points, directions, of_rays, {.scratch = scratch});
  };
  all();
  const std::uint64_t before = device().state()->allocated;
  all();
  EXPECT_EQ(device().state()->allocated, before);
  order.fill(0), of_rays.fill(0);
  Graph graph = capture(device(), all);
  graph.launch();
  EXPECT_EQ(order.to_vector(), expected);
  EXPECT_EQ(of_rays.to_vector(), expected_rays);
  for (const Grain grain : {Grain::coarse, Grain::fine})
    EXPECT_EQ(spatial_order(points, {.grain = grain}).to_vector(), expected);
}

TEST_P(SpatialOrder, mistakes_are_refused_by_name) {
  const Array<vec3> points = zeros<vec3>(device(), 10), none;
  const Array<int> order = zeros<int>(device(), 10);
  const Device other = Device::open("reference");
  expect_contains(error_of([&] { spatial_order(none); }), "spatial_order: the array of points is a null array");
  expect_contains(error_of([&] { spatial_order(none, points); }), "spatial_order: the array of");
  expect_contains(error_of([&] { spatial_order(points, none); }), "the array of directions is a null array");
  expect_contains(error_of([&] { spatial_order(points, Array<int>()); }), "the order is a null array");
  expect_contains(error_of([&] { spatial_order(points, zeros<vec3>(device(), 9)); }),
                  "the array of directions has 9 elements, not 10");
  expect_contains(error_of([&] { spatial_order(points, order.slice(0, 9)); }), "the order has 9 elements, not 10");
  expect_contains(error_of([&] { spatial_order(points.slice(0, 10, 2)); }), "the array of points is a strided view");
  expect_contains(error_of([&] { spatial_order(points, zeros<int>(other, 10)); }), "the order is on device");
  const auto small = empty<std::uint8_t>(device(), std::int64_t(spatial_order_scratch_bytes(10)) - 1);
  expect_contains(error_of([&] { spatial_order(points, order, {.scratch = small}); }), "the scratch memory has");
  struct Ints : Array<int> {
    explicit Ints(const Array<vec3>& a) {
      storage_ = a.storage(), address_ = a.address(), shape_ = {a.size()}, stride_ = {4};
    }
  };
  expect_contains(error_of([&] { spatial_order(points, Ints(points)); }),
                  "the array of points and the order share memory");
  expect_contains(error_of([&] { spatial_order_scratch_bytes(-1); }), "spatial_order: -1 elements");
}

TEST_P(SpatialOrder, a_tape_lets_points_with_gradients_through) {
  const Array<vec3> points = Array<vec3>(device(), scattered(100, 11)).requires_grad();
  Array<float> sum = zeros<float>(device(), 1);
  const auto norms = kernel("norms", [](Arr<const int> order, Arr<const vec3> p, Arr<float> sum) {
    Int i = order[tid()];
    atomic_add(sum[0], dot(p[i], p[i]));
  });
  Tape tape;
  tape.record([&] { launch(norms, 100, spatial_order(points), points, sum); });
  tape.backward(sum);
  const std::vector<vec3> g = points.grad().to_vector(), p = points.to_vector();
  for (std::size_t i = 0; i < 100; ++i) EXPECT_NEAR(g[i].x, 2 * p[i].x, 1e-5);
}

}  // namespace
