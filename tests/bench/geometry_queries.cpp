// Suite geometry: closest points and overlaps of boxes on meshes of several sizes, against warp-lang.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <optional>

#include "../../runtime/geometry/mesh.h"
#include "../../runtime/geometry/mesh_query.h"
#include "../../runtime/geometry/spatial_order.h"
#include "../common/mesh_oracle.h"
#include "cpu/contest_on_host.h"
#include "geometry_shapes.h"
#include "harness.h"
#include "peers/elsewhere.h"

namespace weft::bench {

namespace {

constexpr int kQueries = 200'000;
constexpr int kMostRounds = 21;
/// One query in so many is compared with all triangles on the host.
constexpr std::size_t kCheckedEvery = kQueries / 16;

template <class T>
void put(std::ofstream& to, const std::vector<T>& values) {
  const auto n = std::int32_t(values.size());
  to.write(reinterpret_cast<const char*>(&n), sizeof n);
  to.write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size() * sizeof(T)));
}

/// The figures of warp-lang's CPU device for the same queries: seconds, and the sum of the results.
enum Figure : std::size_t { kSeconds, kSum, kFigures };
std::optional<std::vector<double>> measure_warp(const char* kind, const MeshData& data,
                                                const std::vector<std::vector<vec3>>& asked, int rounds) {
  return ask_python("mesh_queries.py", fmt::format("{} {}", kind, rounds), kFigures, [&](std::ofstream& file) {
    put(file, data.points), put(file, data.indices);
    for (const std::vector<vec3>& a : asked) put(file, a);
  });
}

template <class T>
double sum_of(const Array<T>& values) {
  double sum = 0;
  for (const T v : values.to_vector()) sum += v;
  return sum;
}

/// Times `ask`, after a first run that has shown its results to be right.
void report(Run& run, const std::optional<std::vector<double>>& warp, int rounds, const std::function<void()>& ask) {
  Stream stream = run.device().stream();
  const auto timings = interleave({[&] {
                                    ask();
                                    stream.synchronize();
                                  }},
                                  rounds, 2);
  run.compare(timings[0], warp_reference(warp, {kSeconds}), "ms");
}

/// \param sorted  asked in spatial_order(), whose making counts
void closest_points(Run& run, int triangles, bool sorted) {
  const MeshData data = torus(triangles);
  const std::vector<vec3> points = scattered(kQueries, 3);
  // A round on a large mesh takes several seconds.
  const int rounds = std::min(run.rounds(), triangles > 500'000 ? 5 : kMostRounds);
  const auto warp = run.alone() ? std::nullopt : measure_warp("points", data, {points}, rounds);

  const Mesh mesh(run.device(), data);
  const Array<vec3> asked(run.device(), points);
  Array<float> distance = zeros<float>(run.device(), kQueries);
  static const auto closest = kernel("closest", [](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> distance) {
    Int i = tid();
    distance[i] = mesh_query_point(mesh, p[i]).distance;
  });
  static const auto closest_in_order = kernel(
      "closest in order", [](Var<MeshArrays> mesh, Arr<const int> order, Arr<const vec3> p, Arr<float> distance) {
        Int i = order[tid()];
        distance[i] = mesh_query_point(mesh, p[i]).distance;
      });
  const Array<int> order = empty<int>(run.device(), kQueries);
  const auto scratch = empty<std::uint8_t>(run.device(), std::int64_t(spatial_order_scratch_bytes(kQueries)));
  const auto ask = [&] {
    if (!sorted) return launch(closest, kQueries, mesh, asked, distance);
    spatial_order(asked, order, {.scratch = scratch});
    launch(closest_in_order, kQueries, mesh, order, asked, distance);
  };
  ask();
  const test::Oracle oracle(data);
  const std::vector<float> found = distance.to_vector();
  for (std::size_t i = 0; i < found.size(); i += kCheckedEvery)
    if (const double wanted = oracle.distance(points[i]); std::abs(found[i] - wanted) > 1e-5 * std::max(1., wanted))
      throw std::runtime_error(fmt::format("point {}: the distance is {}, in float64 {}", i, found[i], wanted));
  const double own = sum_of(distance);
  if (warp && std::abs(own - (*warp)[kSum]) > 1e-4 * (*warp)[kSum])
    throw std::runtime_error(fmt::format("the distances add up to {}, and warp-lang's to {}", own, (*warp)[kSum]));
  report(run, warp, rounds, ask);
}

/// The number of triangles whose boxes share a point with the box.
int touching_triangles(const MeshData& data, const vec3& lower, const vec3& upper) {
  int n = 0;
  for (std::size_t k = 0; k < data.indices.size(); k += 3) {
    const vec3 &a = data.points[std::size_t(data.indices[k])], &b = data.points[std::size_t(data.indices[k + 1])],
               &c = data.points[std::size_t(data.indices[k + 2])];
    const vec3 lo = min(min(a, b), c), hi = max(max(a, b), c);
    n += lo.x <= upper.x && lower.x <= hi.x && lo.y <= upper.y && lower.y <= hi.y && lo.z <= upper.z && lower.z <= hi.z;
  }
  return n;
}

/// Cubes around points of the mesh, in no order, so large that the surface in each has the area of 16 triangles.
void overlapping_boxes(Run& run, int triangles) {
  const MeshData data = torus(triangles);
  constexpr double area = 4 * std::numbers::pi * std::numbers::pi * 0.35;
  const float half = float(std::sqrt(16 * area / triangles) / 2);
  std::mt19937 engine(4);
  std::uniform_int_distribution<std::size_t> any(0, data.points.size() - 1);
  std::vector<vec3> lowers, uppers;
  for (int i = 0; i < kQueries; ++i) {
    const vec3 center = data.points[any(engine)];
    lowers.push_back(center - vec3(half));
    uppers.push_back(center + vec3(half));
  }
  const int rounds = std::min(run.rounds(), kMostRounds);
  const auto warp = run.alone() ? std::nullopt : measure_warp("boxes", data, {lowers, uppers}, rounds);

  const Mesh mesh(run.device(), data);
  const Array<vec3> lower(run.device(), lowers), upper(run.device(), uppers);
  Array<int> counts = zeros<int>(run.device(), kQueries);
  static const auto touching =
      kernel("touching", [](Var<MeshArrays> mesh, Arr<const vec3> lower, Arr<const vec3> upper, Arr<int> counts) {
        Int i = tid(), n = 0;
        for (auto face : mesh_query_aabb(mesh, lower[i], upper[i])) n += select(face >= 0, 1, 0);
        counts[i] = n;
      });
  const auto ask = [&] { launch(touching, kQueries, mesh, lower, upper, counts); };
  ask();
  const std::vector<int> found = counts.to_vector();
  for (std::size_t i = 0; i < found.size(); i += kCheckedEvery)
    if (const int wanted = touching_triangles(data, lowers[i], uppers[i]); found[i] != wanted)
      throw std::runtime_error(fmt::format("box {}: {} triangles touch it, by the host {}", i, found[i], wanted));
  const double own = sum_of(counts);
  if (warp && own != (*warp)[kSum])
    throw std::runtime_error(fmt::format("{} boxes touch, and in warp-lang {}", own, (*warp)[kSum]));
  run.note(fmt::format("{:.1f} triangles in each box", own / kQueries));
  report(run, warp, rounds, ask);
}

}  // namespace

void add_geometry_queries(Harness& harness) {
  for (const auto& [name, n] : kTorusSizes) {
    harness.add("geometry", fmt::format("200k closest points, {} triangles", name),
                [n = n](Run& run) { closest_points(run, n, false); });
    harness.add("geometry", fmt::format("200k closest points, sorted, {} triangles", name),
                [n = n](Run& run) { closest_points(run, n, true); });
    harness.add("geometry", fmt::format("200k overlapping boxes, {} triangles", name),
                [n = n](Run& run) { overlapping_boxes(run, n); });
  }
}

void add_cpu_queries(Harness& harness) {
  add_beside_vulkan(harness, "200k closest points, 160k triangles",
                    [](Run& run) { closest_points(run, 160'000, false); });
  add_beside_vulkan(harness, "200k overlapping boxes, 160k triangles",
                    [](Run& run) { overlapping_boxes(run, 160'000); });
}

}  // namespace weft::bench
