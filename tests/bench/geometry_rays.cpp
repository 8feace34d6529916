// Suite geometry: rays through meshes of several sizes, against Embree.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "../../runtime/geometry/mesh.h"
#include "../../runtime/geometry/mesh_query.h"
#include "../../runtime/geometry/spatial_order.h"
#include "../common/embree_rays.h"
#include "../common/mesh_oracle.h"
#include "cpu/contest_on_host.h"
#include "geometry_shapes.h"
#include "harness.h"

namespace weft::bench {

using test::Rays;

namespace {

constexpr int kSide = 1000;
constexpr int kRays = kSide * kSide;
/// The most rounds, because each may take a second.
constexpr int kMostRounds = 21;

/// The rays of a camera in front of the torus; neighbours are side by side.
Rays primary() {
  Rays rays;
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) {
      rays.origins.push_back({0, 1.5f, 3});
      rays.directions.push_back({(float(x) + 0.5f) / kSide - 0.5f, (float(y) + 0.5f) / kSide - 0.95f, -1});
    }
  return rays;
}

/// Rays from anywhere to anywhere.
Rays incoherent() {
  Rays rays{scattered(kRays, 1), scattered(kRays, 2)};
  for (vec3& d : rays.directions) d.y *= 2.8f;
  return rays;
}

/// Compares a few rays with all triangles in float64; more would take too long.
void check(const MeshData& data, const Rays& rays, const std::vector<float>& t) {
  const test::Oracle oracle(data);
  for (std::size_t i = 0; i < t.size(); i += t.size() / 16) {
    const auto exact = oracle.ray(rays.origins[i], rays.directions[i], std::numeric_limits<double>::infinity());
    const double wanted = exact.hits.empty() ? -1 : exact.hits[0].t;
    if (!exact.unsure && std::abs(double(t[i]) - wanted) > 1e-4 * std::max(1., wanted))
      throw std::runtime_error(fmt::format("ray {}: t is {}, in float64 {}", i, t[i], wanted));
  }
}

/// \param sorted  asked in spatial_order(), whose making counts
void race_rays(Run& run, int triangles, const Rays& rays, bool sorted = false) {
  const MeshData data = torus(triangles);
  const Device& device = run.device();
  const Mesh mesh(device, data);
  const Array<vec3> origins(device, rays.origins), directions(device, rays.directions);
  Array<float> t = zeros<float>(device, kRays);
  const auto cast = kernel("cast", [](Var<MeshArrays> mesh, Arr<const vec3> o, Arr<const vec3> d, Arr<float> t) {
    Int i = tid();
    const MeshRayHit h = mesh_query_ray(mesh, o[i], d[i]);
    t[i] = select(h.hit, h.t, -1.f);
  });
  const auto cast_in_order = kernel("cast in order", [](Var<MeshArrays> mesh, Arr<const int> order, Arr<const vec3> o,
                                                        Arr<const vec3> d, Arr<float> t) {
    Int i = order[tid()];
    const MeshRayHit h = mesh_query_ray(mesh, o[i], d[i]);
    t[i] = select(h.hit, h.t, -1.f);
  });
  const Array<int> order = empty<int>(device, kRays);
  const auto scratch = empty<std::uint8_t>(device, std::int64_t(spatial_order_scratch_bytes(kRays)));
  const auto make_order = [&] { spatial_order(origins, directions, order, {.scratch = scratch}); };
  const auto ask = [&] {
    if (!sorted) return launch(cast, kRays, mesh, origins, directions, t);
    make_order();
    launch(cast_in_order, kRays, mesh, order, origins, directions, t);
  };
  ask();
  check(data, rays, t.to_vector());
  Stream stream = device.stream();
  std::vector<std::function<void()>> sides{[&] {
                                             ask();
                                             stream.synchronize();
                                           },
                                           [&] {
                                             if (!sorted) return;
                                             make_order();
                                             stream.synchronize();
                                           }};
  Reference reference{"Embree, robust, " + run.threads_text(), {}, "Embree 3 was not there (Debian: libembree-dev)"};
#ifdef WEFT_EMBREE
  const test::EmbreeRays embree(data, run.threads());
  std::vector<float> wanted(kRays);
  embree.cast(rays, wanted);
  // At most one ray of a million may differ, and float64 must say why.
  const auto differing = test::rays_that_differ(data, rays, t.to_vector(), wanted);
  for (const test::DifferingRay& d : differing) {
    run.note(d.text);
    if (!d.explained) throw std::runtime_error(d.text);
  }
  if (differing.size() > kRays / 1'000'000)
    throw std::runtime_error(fmt::format("{} or more of {} rays differ from Embree's", differing.size(), kRays));
  run.note(fmt::format("{} of {} rays differ", differing.size(), kRays));
  sides.push_back([&] { embree.cast(rays, wanted); });
#endif
  const auto timings = interleave(sides, std::min(run.rounds(), kMostRounds));
  if (sorted) run.note(fmt::format("the order takes {:.1f} ms of it", timings[1].seconds * 1e3));
  if (timings.size() > 2) reference.timing = timings[2];
  run.compare(timings[0], reference, "ms");
}

}  // namespace

void add_geometry_rays(Harness& harness) {
  for (const auto& [name, n] : kTorusSizes) {
    harness.add("geometry", fmt::format("1M primary rays, {} triangles", name),
                [n = n](Run& run) { race_rays(run, n, primary()); });
    harness.add("geometry", fmt::format("1M incoherent rays, {} triangles", name),
                [n = n](Run& run) { race_rays(run, n, incoherent()); });
    harness.add("geometry", fmt::format("1M incoherent rays, sorted, {} triangles", name),
                [n = n](Run& run) { race_rays(run, n, incoherent(), true); });
  }
}

void add_cpu_rays(Harness& harness) {
  add_beside_vulkan(harness, "1M primary rays, 160k triangles", [](Run& run) { race_rays(run, 160'000, primary()); });
  add_beside_vulkan(harness, "1M incoherent rays, 160k triangles",
                    [](Run& run) { race_rays(run, 160'000, incoherent()); });
}

}  // namespace weft::bench
