// The exactness of distances, signs and winding numbers that docs/geometry.md states, against float64.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <random>

#include "../../common/mesh_oracle.h"
#include "../device_test.h"
#include "../full_sizes.h"
#include "mesh_asked.h"

using namespace weft;
using weft::test::ask_points;
using weft::test::cast_rays;
using weft::test::full_sizes;
using weft::test::Oracle;
using weft::test::random_points;

namespace {

class MeshExactness : public test::GeometryTest {
 protected:
  /// A figure of the page, which a run at full sizes prints.
  void show(const std::string& what, double value) const {
    if (full_sizes()) std::printf("%-60s %.2g\n", what.c_str(), value);
  }
  int points() const { return brief() ? 40 : full_sizes() ? 10'000 : 600; }
};
ON_EVERY_DEVICE(MeshExactness);

constexpr float kNoLimit = std::numeric_limits<float>::infinity();
constexpr double kRounding = 0x1p-24;  // of a number: the most that it may be

struct NamedData {
  const char* name;
  MeshData data;
};
std::vector<NamedData> closed_meshes(bool brief) {
  return {{"torus", brief ? shapes::torus(1, 0.35f, 10, 6) : shapes::torus(1, 0.35f, 48, 24)},
          {"knot", brief ? shapes::torus_knot(2, 3, 0.2f, 40, 4) : shapes::torus_knot(2, 3, 0.2f, 120, 8)},
          {"box", shapes::box({1, 2, 1.5f}, 2)}};
}

MeshData moved(MeshData data, float by) {
  for (vec3& p : data.points) p += vec3{by, -by, 0.7f * by};
  return data;
}

/// Points at about this distance from the surface, on either side.
std::vector<vec3> near_surface(const MeshData& data, int n, double away, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> part(0, 1);
  const Oracle oracle(data);
  std::vector<vec3> found;
  for (int i = 0; i < n; ++i) {
    const int face = int(part(engine) * double(data.indices.size() / 3));
    double u = part(engine), v = part(engine);
    if (u + v > 1) u = 1 - u, v = 1 - v;
    const auto normal = oracle.normal(face);
    const double side = i % 2 ? away : -away;
    vec3 at;
    for (int k = 0; k < 3; ++k) {
      const auto corner = [&](int c) {
        return double(data.points[std::size_t(data.indices[std::size_t(3 * face + c)])][k]);
      };
      at[k] = float(u * corner(0) + v * corner(1) + (1 - u - v) * corner(2) + side * normal[std::size_t(k)]);
    }
    found.push_back(at);
  }
  return found;
}

/// The largest difference between a coordinate of the point and of a corner of the face.
double reach(const MeshData& data, int face, const vec3& point) {
  double most = 0;
  for (int c = 0; c < 3; ++c)
    for (int k = 0; k < 3; ++k) {
      const vec3& corner = data.points[std::size_t(data.indices[std::size_t(3 * face + c)])];
      most = std::max(most, std::abs(double(corner[k]) - double(point[k])));
    }
  return most;
}

std::string name_of(const NamedData& mesh, float away) {
  return std::string(mesh.name) + (away > 0 ? " moved by " + std::to_string(int(away)) : "");
}

TEST_P(MeshExactness, of_distances_goes_by_the_reach_wherever_the_mesh_is) {
  for (const float away : {0.f, 10.f, 1000.f})
    for (const NamedData& mesh : closed_meshes(brief())) {
      const MeshData data = moved(mesh.data, away);
      const Oracle oracle(data);
      std::vector<vec3> asked = moved({random_points(points(), 3, 1), {}}, away).points;
      for (const double height : {1e-1, 1e-3, 1e-5, 0.})
        for (const vec3& p : near_surface(data, points() / 4, height, 2)) asked.push_back(p);
      const auto got = ask_points(device(), Mesh(device(), data), asked, kNoLimit, MeshSign::none);
      double worst = 0;
      for (std::size_t i = 0; i < asked.size(); ++i) {
        const double error = std::abs(double(got[i].distance) - oracle.distance(asked[i]));
        worst = std::max(worst, error / reach(data, got[i].face, asked[i]));
      }
      show("distance, of the reach: " + name_of(mesh, away), worst);
      EXPECT_LT(worst, 16 * kRounding) << name_of(mesh, away);
    }
}

TEST_P(MeshExactness, of_hits_goes_by_the_reach_wherever_the_mesh_is) {
  for (const float away : {0.f, 10.f, 1000.f})
    for (const NamedData& mesh : closed_meshes(brief())) {
      const MeshData data = moved(mesh.data, away);
      const Oracle oracle(data);
      const std::vector<vec3> origins = moved({random_points(points(), 2, 3), {}}, away).points;
      const std::vector<vec3> directions = random_points(points(), 1, 4);
      const auto got = cast_rays(device(), Mesh(device(), data), origins, directions, 10);
      double worst = 0;
      for (std::size_t i = 0; i < origins.size(); ++i) {
        const Oracle::Hits all = oracle.ray(origins[i], directions[i], 10);
        if (all.unsure || all.hits.empty() || got[i].face != all.hits[0].face) continue;
        // The error is measured across the plane: along a ray that meets it at a flat angle, the same error is longer.
        const double across =
            std::abs(double(got[i].t) - all.hits[0].t) * double(length(directions[i])) * all.hits[0].slope;
        worst = std::max(worst, across / reach(data, got[i].face, origins[i]));
      }
      show("hit, across the plane, of the reach: " + name_of(mesh, away), worst);
      EXPECT_GT(worst, 0);
      EXPECT_LT(worst, 16 * kRounding) << name_of(mesh, away);
    }
}

TEST_P(MeshExactness, of_signs_goes_by_how_far_the_surface_is) {
  const std::pair<MeshSign, const char*> signs[] = {
      {MeshSign::majority, "majority"}, {MeshSign::normal, "normal"}, {MeshSign::winding, "winding"}};
  for (const float away : {0.f, 1000.f})
    for (const NamedData& mesh : closed_meshes(brief())) {
      const MeshData data = moved(mesh.data, away);
      const Oracle oracle(data);
      const Mesh on_device(device(), data, {.winding_number = true});
      std::vector<vec3> asked;
      for (const double height : {1e-2, 1e-4, 1e-5, 1e-6, 3e-7, 1e-7, 3e-8})
        for (const vec3& p : near_surface(data, points() / 4, height, 5)) asked.push_back(p);
      std::vector<double> windings, distances;
      for (const vec3& p : asked) windings.push_back(oracle.winding(p)), distances.push_back(oracle.distance(p));
      for (const auto& [sign, name] : signs) {
        const auto got = ask_points(device(), on_device, asked, kNoLimit, sign);
        double furthest = 0;  // of the points with a wrong sign: distance over reach
        for (std::size_t i = 0; i < asked.size(); ++i)
          if (got[i].sign != (windings[i] > 0.5 ? -1 : 1))
            furthest = std::max(furthest, distances[i] / reach(data, got[i].face, asked[i]));
        show(std::string("wrong sign by ") + name + ", of the reach: " + name_of(mesh, away), furthest);
        EXPECT_LT(furthest, 16 * kRounding) << name << ", " << name_of(mesh, away);
      }
    }
}

// This is the page's second table: meshes that overlap themselves, and faces that look inwards.
TEST_P(MeshExactness, signs_answer_different_questions_where_meshes_overlap_or_look_inwards) {
  MeshData two = shapes::box({2, 2, 2});
  const int first = int(two.points.size());
  const MeshData other = shapes::box({2, 2, 2});
  for (const vec3& p : other.points) two.points.push_back(p + vec3{1.2f, 0.1f, 0.05f});
  for (int k : other.indices) two.indices.push_back(first + k);
  // The first point is in both boxes; the second is in the first box alone, and closest to a face of the other.
  const std::vector<vec3> asked{{0.6f, 0.03f, 0.02f}, {0.15f, 0.03f, 0.02f}};
  const auto signs_of = [&](const MeshData& data, MeshSign sign) {
    const auto got = ask_points(device(), Mesh(device(), data, {.winding_number = true}), asked, kNoLimit, sign);
    return std::vector<float>{got[0].sign, got[1].sign};
  };
  EXPECT_EQ(signs_of(two, MeshSign::majority), (std::vector<float>{1, -1}));
  EXPECT_EQ(signs_of(two, MeshSign::normal), (std::vector<float>{-1, 1}));
  EXPECT_EQ(signs_of(two, MeshSign::winding), (std::vector<float>{-1, -1}));

  MeshData inwards = other;
  for (std::size_t k = 0; k < inwards.indices.size(); k += 3) std::swap(inwards.indices[k], inwards.indices[k + 1]);
  EXPECT_EQ(signs_of(inwards, MeshSign::majority), (std::vector<float>{-1, -1}));
  EXPECT_EQ(signs_of(inwards, MeshSign::normal), (std::vector<float>{1, 1}));
  EXPECT_EQ(signs_of(inwards, MeshSign::winding), (std::vector<float>{1, 1}));
}

TEST_P(MeshExactness, of_winding_numbers_goes_by_the_accuracy_asked_for) {
  for (const NamedData& mesh : closed_meshes(brief())) {
    for (const bool holes : {false, true}) {
      MeshData data{mesh.data.points, {}};
      for (std::size_t k = 0; k < mesh.data.indices.size(); ++k)
        if (!holes || (k / 3 * 7919u) % 10 != 0) data.indices.push_back(mesh.data.indices[k]);
      const Oracle oracle(data);
      std::vector<vec3> asked = random_points(points() / 2, 1.5f, 6);
      for (const vec3& p : near_surface(data, points() / 2, 1e-2, 7)) asked.push_back(p);
      std::vector<double> exact;
      for (const vec3& p : asked) exact.push_back(oracle.winding(p));
      const Mesh on_device(device(), data, {.winding_number = true});
      const Array<vec3> at(device(), asked);
      constexpr std::pair<float, double> kBounds[] = {{1, 0.3}, {2, 5e-3}, {3, 1e-3}, {4, 3e-4}, {1e6f, 5e-5}};
      for (const auto& [accuracy, bound] : kBounds) {
        Array<float> numbers = zeros<float>(device(), at.size());
        const float asked_for = accuracy;
        launch(kernel("wind",
                      [=](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> out) {
                        Int i = tid();
                        out[i] = mesh_winding_number(mesh, p[i], asked_for);
                      }),
               at.size(), on_device, at, numbers);
        const auto got = numbers.to_vector();
        double worst = 0;
        for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - exact[i]));
        show("winding number, accuracy " + std::to_string(int(accuracy)) + ": " + mesh.name +
                 (holes ? " with holes" : ""),
             worst);
        EXPECT_LT(worst, bound) << mesh.name << ", accuracy " << accuracy;
      }
    }
  }
}

}  // namespace
