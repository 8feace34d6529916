// Suite geometry: hash grids of a million points, built and queried, against warp-lang.
#include "../../runtime/geometry/hash_grid.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <random>
#include <stdexcept>

#include "../../runtime/geometry/hash_grid_query.h"
#include "cpu/contest_on_host.h"
#include "harness.h"
#include "peers/elsewhere.h"

namespace weft::bench {

namespace {

constexpr int kPoints = 1'000'000, kDim = 128;
/// The radius of the queries and the width of the cells: some 30 neighbours each.
constexpr float kRadius = 0.0193f;

std::vector<vec3> scattered() {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> place(0, 1);
  std::vector<vec3> points;
  for (int i = 0; i < kPoints; ++i) {
    const float x = place(engine), y = place(engine), z = place(engine);
    points.push_back({x, y, z});
  }
  return points;
}

/// The figures of warp-lang's CPU device for the same points: seconds, and the number of neighbours in all.
enum Figure : std::size_t { kBuild, kQuery, kNeighbours, kFigures };
std::optional<std::vector<double>> measure_warp(const std::vector<vec3>& points, int rounds) {
  return ask_python("hash_grid.py", fmt::format("{} {} {}", rounds, kDim, kRadius), kFigures, [&](std::ofstream& file) {
    file.write(reinterpret_cast<const char*>(points.data()), std::streamsize(points.size() * sizeof(vec3)));
  });
}

void build_grid(Run& run, const HashGridOptions& options) {
  const std::vector<vec3> points = scattered();
  const int rounds = std::min(run.rounds(), 15);
  const auto warp = run.alone() ? std::nullopt : measure_warp(points, rounds);
  const Array<vec3> p(run.device(), points);
  HashGrid grid(run.device(), kDim, kDim, kDim, options);
  const auto timings = interleave({[&] {
                                    grid.build(p, kRadius);
                                    run.device().synchronize();
                                  }},
                                  rounds);
  if (grid.ignored() != 0) throw std::runtime_error("the grid ignores points");
  run.compare(timings[0], warp_reference(warp, {kBuild}), "ms");
  run.note(fmt::format("{:.1f} million points/s", kPoints / timings[0].seconds / 1e6));
}

/// Neighbours of each point within the radius, and a sum over them, thread by thread in the order of cells.
const auto& neighbours_kernel() {
  static const auto k = kernel("neighbours", [](Var<HashGridArrays> grid, Arr<const vec3> points, Float radius,
                                                Arr<int> counts, Arr<float> sums) {
    Int t = hash_grid_point_id(grid, tid()), n = 0;
    Vec3 p = points[t];
    Float sum = 0;
    for (auto i : hash_grid_query(grid, p, radius)) {
      Float d = length(p - points[i]);
      If (d <= radius) {
        n += 1;
        sum += 1.f - d / radius;
      }
    }
    counts[t] = n;
    sums[t] = sum;
  });
  return k;
}
/// The same kernel as above, on the positions that the grid keeps.
const auto& placed_kernel() {
  static const auto k =
      kernel("neighbours by place", [](Var<HashGridArrays> grid, Float radius, Arr<int> counts, Arr<float> sums) {
        Int t = tid(), n = 0;
        Vec3 p = grid.positions[t];
        Float sum = 0;
        auto query = hash_grid_query(grid, p, radius);
        for (auto i : query) {
          Float d = length(p - grid.positions[query.place()]);
          If ((d <= radius) & (i >= 0)) {
            n += 1;
            sum += 1.f - d / radius;
          }
        }
        counts[t] = n;
        sums[t] = sum;
      });
  return k;
}

void query_grid(Run& run, bool placed) {
  const std::vector<vec3> points = scattered();
  const int rounds = std::min(run.rounds(), 7);
  const auto warp = run.alone() ? std::nullopt : measure_warp(points, rounds);
  const Array<vec3> p(run.device(), points);
  HashGrid grid(run.device(), kDim, kDim, kDim, {.keep_positions = placed});
  grid.build(p, kRadius);
  const Array<int> counts = zeros<int>(run.device(), kPoints);
  const Array<float> sums = zeros<float>(run.device(), kPoints);
  const auto timings = interleave({[&] {
                                    if (placed)
                                      launch(placed_kernel(), kPoints, grid, kRadius, counts, sums);
                                    else
                                      launch(neighbours_kernel(), kPoints, grid, p, kRadius, counts, sums);
                                    run.device().synchronize();
                                  }},
                                  rounds);
  // With positions in the grid, the counts are in the order of cells.
  const Array<int> ids = arange(run.device(), kPoints);
  if (placed)
    launch(kernel("point ids",
                  [](Var<HashGridArrays> grid, Arr<int> ids) { ids[tid()] = hash_grid_point_id(grid, tid()); }),
           kPoints, grid, ids);
  const std::vector<int> neighbours = counts.to_vector(), point_of = ids.to_vector();
  for (std::size_t k = 0; k < points.size(); k += points.size() / 16) {
    const auto i = std::size_t(point_of[k]);
    // A neighbour at the radius itself may be found or not.
    int least = 0, most = 0;
    for (const vec3& p : points) {
      const double d = length(points[i] - p);
      least += d < kRadius * (1 - 1e-6), most += d < kRadius * (1 + 1e-6);
    }
    if (neighbours[k] < least || neighbours[k] > most)
      throw std::runtime_error(fmt::format("point {}: {} neighbours, by the host {}", i, neighbours[k], least));
  }
  double found = 0;
  for (const int n : neighbours) found += n;
  // Distances are rounded in two ways; a few pairs lie at the radius itself.
  if (warp && std::abs(found - (*warp)[kNeighbours]) > 1e-5 * (*warp)[kNeighbours])
    throw std::runtime_error(fmt::format("{} neighbours, and Warp finds {}", found, (*warp)[kNeighbours]));
  run.compare(timings[0], warp_reference(warp, {kQuery}), "ms");
  run.note(fmt::format("{:.2f} million queries/s, {:.1f} neighbours each", kPoints / timings[0].seconds / 1e6,
                       found / kPoints));
}

}  // namespace

void add_hash_grid(Harness& harness) {
  harness.add("geometry", "hash grid build 1M", [](Run& run) { build_grid(run, {}); });
  harness.add("geometry", "hash grid build 1M, deterministic",
              [](Run& run) { build_grid(run, {.deterministic = true}); });
  harness.add("geometry", "hash grid query 1M", [](Run& run) { query_grid(run, false); });
  harness.add("geometry", "hash grid query 1M, kept positions", [](Run& run) { query_grid(run, true); });
}

void add_cpu_hash_grid(Harness& harness) {
  add_beside_vulkan(harness, "hash grid build 1M", [](Run& run) { build_grid(run, {}); });
  add_beside_vulkan(harness, "hash grid query 1M", [](Run& run) { query_grid(run, false); });
}

}  // namespace weft::bench
