// The generated meshes: closed ones are watertight, face outwards, and have the volume of the shape.
#include <gtest/gtest.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/weft.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <tuple>

using namespace weft;

namespace {

constexpr double kPi = std::numbers::pi;

double volume(const MeshData& m) {
  double sum = 0;
  for (std::size_t t = 0; t < m.indices.size(); t += 3) {
    vec3d p[3];
    for (std::size_t k = 0; k < 3; ++k) p[k] = vec3d(m.points.at(std::size_t(m.indices[t + k])));
    sum += dot(p[0], cross(p[1], p[2])) / 6;
  }
  return sum;
}

/// Euler's number; fails the test unless every edge belongs to two triangles, in opposite directions.
int euler_of_closed(const MeshData& m, const char* what) {
  std::map<std::pair<int, int>, int> edges;
  std::set<int> used;
  for (std::size_t t = 0; t < m.indices.size(); t += 3)
    for (std::size_t k = 0; k < 3; ++k) {
      const int a = m.indices[t + k], b = m.indices[t + (k + 1) % 3];
      EXPECT_NE(a, b) << what;
      ++edges[{a, b}];
      used.insert(a);
    }
  int wrong = 0;
  for (const auto& [edge, count] : edges) {
    const auto back = edges.find({edge.second, edge.first});
    wrong += count != 1 || back == edges.end();
  }
  EXPECT_EQ(wrong, 0) << what << ": edges that are not shared by two triangles in opposite directions";
  EXPECT_EQ(used.size(), m.points.size()) << what << ": points without a triangle";
  std::set<std::tuple<float, float, float>> places;
  for (const vec3& p : m.points) places.insert({p.x, p.y, p.z});
  EXPECT_EQ(places.size(), m.points.size()) << what << ": equal points";
  return int(m.points.size()) - int(edges.size() / 2) + int(m.indices.size() / 3);
}

void expect_solid(const MeshData& m, const char* what, double expected_volume, double tolerance, int euler = 2) {
  EXPECT_EQ(euler_of_closed(m, what), euler) << what;
  EXPECT_NEAR(volume(m), expected_volume, tolerance * expected_volume) << what;
}

TEST(MeshShapes, of_solids_are_closed_and_look_outwards) {
  expect_solid(shapes::box({1, 2, 3}), "box", 6, 1e-6);
  expect_solid(shapes::box({1, 2, 3}, 7), "divided box", 6, 1e-6);
  expect_solid(shapes::icosphere(2, 0), "icosahedron", 8 * 2.53615, 1e-4);
  expect_solid(shapes::icosphere(2, 4), "icosphere", 32 * kPi / 3, 3e-3);
  expect_solid(shapes::uv_sphere(1, 60, 30), "uv sphere", 4 * kPi / 3, 1e-2);
  expect_solid(shapes::uv_sphere(1, 3, 2), "least uv sphere", std::sqrt(3.) / 2, 1e-6);
  expect_solid(shapes::torus(2, 0.5f, 100, 50), "torus", kPi * kPi, 1e-2, 0);
  expect_solid(shapes::torus(2, 0.5f, 3, 3), "least torus", 1.9, 0.2, 0);
  expect_solid(shapes::cylinder(0.5f, 2, 200), "cylinder", kPi / 2, 1e-3);
  expect_solid(shapes::cone(0.5f, 2, 200), "cone", kPi / 6, 1e-3);
  expect_solid(shapes::capsule(0.5f, 2, 60, 15), "capsule", kPi / 2 + kPi / 6, 1e-2);
  expect_solid(shapes::capsule(0.5f, 2, 3, 1), "least capsule", std::sqrt(27.) / 16 * (2 + 1. / 3), 1e-5);
  // A tube's volume is its cross section times the length of its middle line (Pappus).
  for (auto [p, q] : {std::pair(2, 3), std::pair(3, 2), std::pair(-2, 3), std::pair(1, -1)}) {
    double length = 0;
    constexpr int steps = 10000;
    for (int i = 0; i < steps; ++i) {
      const double b = q * 2 * kPi * i / steps, along = p * (1 + 0.5 * std::cos(b)), across = q * 0.5;
      length += std::sqrt(along * along + across * across) * 2 * kPi / steps;
    }
    expect_solid(shapes::torus_knot(p, q, 0.1f, 500, 32), "torus knot", kPi * 0.01 * length, 1e-2, 0);
  }
}

TEST(MeshShapes, have_round_points_on_the_surface) {
  for (const MeshData& m : {shapes::icosphere(3, 3), shapes::uv_sphere(3)})
    for (const vec3& p : m.points) EXPECT_NEAR(length(p), 3, 1e-6);
  for (const vec3& p : shapes::torus(2, 0.5f).points) EXPECT_NEAR(std::hypot(std::hypot(p.x, p.z) - 2, p.y), 0.5, 1e-6);
}

TEST(MeshShapes, of_sheets_and_soups_are_open) {
  const MeshData sheet = shapes::grid(2, 4, 3, 5);
  EXPECT_EQ(sheet.points.size(), 4u * 6u);
  EXPECT_EQ(sheet.indices.size(), 3u * 2 * 3 * 5);
  EXPECT_EQ(sheet.points[1], (vec3{-1.f / 3, 0.f, -2.f}));
  double area = 0;
  for (std::size_t t = 0; t < sheet.indices.size(); t += 3) {
    auto p = [&](std::size_t k) { return sheet.points[std::size_t(sheet.indices[t + k])]; };
    const vec3 normal = cross(p(1) - p(0), p(2) - p(0));
    EXPECT_GT(normal.y, 0) << "upwards";
    area += double(normal.y) / 2;
  }
  EXPECT_NEAR(area, 8, 1e-5);

  const MeshData soup = shapes::random_soup(1000, 0.25f, 7);
  EXPECT_EQ(soup.points.size(), 3000u);
  EXPECT_EQ(soup.indices.size(), 3000u);
  for (std::size_t i = 0; i < soup.points.size(); ++i)
    for (int k = 0; k < 3; ++k) {
      EXPECT_LE(std::abs(soup.points[i][k]), 1.25f);
      EXPECT_LE(std::abs(soup.points[i][k] - soup.points[i / 3 * 3][k]), 0.5f);
    }
  EXPECT_EQ(shapes::random_soup(1000, 0.25f, 7).points, soup.points);
  EXPECT_NE(shapes::random_soup(1000, 0.25f, 8).points, soup.points);
  // The first numbers are the same on every machine.
  EXPECT_EQ(shapes::random_soup(1, 0).points[0], (vec3{0x1.8882a0p-1f, -0x1.18761ap-3f, -0x1.e4ee8cp-1f}));
  EXPECT_TRUE(shapes::random_soup(0).indices.empty());
}

template <class F>
void expect_refused(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "accepted, though " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(MeshShapes, refuse_what_is_no_shape) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  expect_refused([] { shapes::box({1, 0, 1}); }, "shapes::box: a side is 0");
  expect_refused([] { shapes::box({1, 1, 1}, 0); }, "segments is 0; at least 1");
  expect_refused([] { shapes::box({1, 1, 1}, 100000); }, "more than 32-bit indices reach");
  expect_refused([] { shapes::icosphere(-1); }, "the radius is -1");
  expect_refused([] { shapes::icosphere(nan); }, "the radius is nan");
  expect_refused([] { shapes::icosphere(1, -1); }, "subdivisions is -1");
  expect_refused([] { shapes::icosphere(1, 20); }, "more than 32-bit indices reach");
  expect_refused([] { shapes::uv_sphere(infinity); }, "the radius is inf");
  expect_refused([] { shapes::uv_sphere(1, 2); }, "slices is 2; at least 3");
  expect_refused([] { shapes::uv_sphere(1, 8, 1); }, "stacks is 1; at least 2");
  expect_refused([] { shapes::torus(1, 1); }, "fills a ring");
  expect_refused([] { shapes::torus(1, 0.5f, 2); }, "around is 2");
  expect_refused([] { shapes::torus(1, 0.5f, 8, 2); }, "across is 2");
  expect_refused([] { shapes::torus_knot(2, 4); }, "no knot winds 2 and 4 times");
  expect_refused([] { shapes::torus_knot(0, 1); }, "no knot winds 0 and 1 times");
  expect_refused([] { shapes::torus_knot(2, 3, 0); }, "the tube's radius is 0");
  expect_refused([] { shapes::torus_knot(2, 3, 0.1f, 30); }, "around is 30; at least 40");
  expect_refused([] { shapes::grid(0, 1); }, "a side is 0");
  expect_refused([] { shapes::grid(1, 1, 0, 1); }, "segments along x is 0");
  expect_refused([] { shapes::cylinder(1, -1); }, "the height is -1");
  expect_refused([] { shapes::cone(1, 1, 2); }, "slices is 2");
  expect_refused([] { shapes::capsule(1, 1, 8, 0); }, "stacks is 0");
  expect_refused([] { shapes::random_soup(-1); }, "the number of triangles is -1");
  expect_refused([] { shapes::random_soup(1, nan); }, "the size is nan");
}

}  // namespace
