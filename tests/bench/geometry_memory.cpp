// Suite geometry: memory of the device that hierarchies, meshes and hash grids take, against what their headers say.
#include <fmt/format.h>

#include <functional>

#include "../../runtime/core/state.h"
#include "../../runtime/geometry/hash_grid.h"
#include "../../runtime/geometry/mesh.h"
#include "geometry_shapes.h"
#include "harness.h"

namespace weft::bench {

namespace {

constexpr int kTriangles = 160'000;

/// The bytes that `work` allocates, whether it keeps them or not.
double allocated(const Device& device, const std::function<void()>& work) {
  const std::uint64_t before = device.state()->allocated;
  work();
  return double(device.state()->allocated - before);
}

/// Bytes for each primitive: those that stay, which a second build finds, and those that a build needs meanwhile.
struct Bytes {
  double kept = 0, meanwhile = 0;
};

Bytes of_bvh(const Device& device, BvhOptions options, bool grouped = false) {
  const std::vector<vec3> points = scattered(kTriangles, 1);
  const Array<vec3> lowers(device, points), uppers(device, points);
  if (grouped) options.groups = zeros<int>(device, kTriangles);
  Bvh bvh;
  const double first = allocated(device, [&] { bvh = Bvh(device, lowers, uppers, options); });
  const double second = allocated(device, [&] { bvh.rebuild(); });
  return {(first - second) / kTriangles, second / kTriangles};
}

Bytes of_mesh(const Device& device, const MeshOptions& options) {
  const MeshData data = torus(kTriangles);
  const Array<vec3> points(device, data.points);
  const Array<int> indices(device, data.indices);
  Mesh mesh;
  const double first = allocated(device, [&] { mesh = Mesh(points, indices, options); });
  const double second = allocated(device, [&] { mesh.rebuild(); });
  return {(first - second) / kTriangles, second / kTriangles};
}

double of_grid(const Device& device, const HashGridOptions& options, bool grouped = false) {
  const Array<vec3> points(device, scattered(kTriangles, 1));
  const Array<int> groups = grouped ? zeros<int>(device, kTriangles) : Array<int>();
  return allocated(device, [&] { HashGrid(device, 8, 8, 8, options).build(points, 0.1f, groups); }) / kTriangles;
}

}  // namespace

void add_geometry_memory(Harness& harness) {
  const auto add = [&](const char* name, double documented, double (*bytes)(const Device&)) {
    harness.add("geometry", fmt::format("memory, {}", name),
                [=](Run& run) { run.bytes(bytes(run.device()), documented); });
  };
  add("Bvh", 76, [](const Device& d) { return of_bvh(d, {}).kept; });
  add("Bvh, building LBVH", 96.5, [](const Device& d) { return of_bvh(d, {.builder = BvhBuilder::lbvh}).meanwhile; });
  add("Bvh, building H-PLOC", 133, [](const Device& d) { return of_bvh(d, {}).meanwhile; });
  add("Bvh, building H-PLOC, leaves of 4", 133, [](const Device& d) { return of_bvh(d, {.leaf_size = 4}).meanwhile; });
  add("Bvh, groups", 84, [](const Device& d) { return of_bvh(d, {}, true).kept; });
  add("Bvh, building H-PLOC, groups", 137, [](const Device& d) { return of_bvh(d, {}, true).meanwhile; });
  add("Bvh, building LBVH, 60 bits", 100.5,
      [](const Device& d) { return of_bvh(d, {.builder = BvhBuilder::lbvh, .curve_bits = 60}).meanwhile; });
  add("Mesh", 148, [](const Device& d) { return of_mesh(d, {}).kept; });
  add("Mesh, winding numbers", 312, [](const Device& d) { return of_mesh(d, {.winding_number = true}).kept; });
  add("HashGrid", 12, [](const Device& d) { return of_grid(d, {}); });
  add("HashGrid, deterministic", 19, [](const Device& d) { return of_grid(d, {.deterministic = true}); });
  add("HashGrid, groups", 31, [](const Device& d) { return of_grid(d, {}, true); });
  add("HashGrid, kept positions", 24, [](const Device& d) { return of_grid(d, {.keep_positions = true}); });
}

}  // namespace weft::bench
