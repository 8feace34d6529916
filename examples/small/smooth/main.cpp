// A mesh from file to file: each point moves towards the middle of its neighbours, ten times.
//   smooth IN.obj OUT.ply     (.obj, .ply and .stl; without arguments it makes a sphere with bumps)
#include <weft/algorithms.h>
#include <weft/geometry.h>
#include <weft/weft.h>

#include <cstdio>

using namespace weft;

// Additions are atomic, because threads of several faces add to one point at the same time.
const auto gather =
    kernel("gather", [](Arr<const vec3> points, Arr<const int> indices, Arr<vec3> sums, Arr<float> counts) {
      Int corner = tid(), next = corner / 3 * 3 + (corner + 1) % 3;
      atomic_add(sums[indices[corner]], points[indices[next]]);
      atomic_add(counts[indices[corner]], 1.f);
    });
const auto move = kernel("move", [](Arr<vec3> points, Arr<const vec3> sums, Arr<const float> counts, Float by) {
  Int i = tid();
  If (counts[i] > 0) {
    points[i] += by * (sums[i] / counts[i] - points[i]);
  }
});
const auto areas = kernel("areas", [](Arr<const vec3> points, Arr<const int> indices, Arr<float> out) {
  Int i = tid();
  Vec3 a = points[indices[3 * i]], b = points[indices[3 * i + 1]], c = points[indices[3 * i + 2]];
  out[i] = 0.5f * length(cross(b - a, c - a));
});

int main(int count, char** arguments) try {
  MeshData data = count > 1 ? load_mesh(arguments[1]) : shapes::icosphere(1, 4);
  if (count <= 1)
    for (vec3& p : data.points) p *= 1 + 0.1f * noise(5, p * 6.f);

  const Device device = Device::best();
  const Array<vec3> points(device, data.points), sums = zeros_like(points);
  const Array<int> indices(device, data.indices);
  const Array<float> counts = zeros<float>(device, points.size()), area = zeros<float>(device, indices.size() / 3);
  const auto total = [&] {
    launch(areas, area.size(), points, indices, area);
    return reduce_sum(area);  // a number of the host's, so this waits
  };
  std::printf("%zu points, %zu triangles\n", data.points.size(), data.indices.size() / 3);
  const float before = total();
  for (int k = 0; k < 10; ++k) {
    Array<vec3>(sums).zero();
    Array<float>(counts).zero();
    launch(gather, indices.size(), points, indices, sums, counts);
    launch(move, points.size(), points, sums, counts, 0.5f);
  }
  std::printf("area %.3f before, %.3f after\n", before, total());
  save_mesh(count > 2 ? arguments[2] : "smooth.ply", {points.to_vector(), data.indices});
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
