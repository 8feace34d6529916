// Neighbours in the plane: how many points of 20,000 lie within a radius of each. A hash grid of one layer of cells
// finds them; the host counts some of them again.
#include <weft/geometry.h>
#include <weft/weft.h>

#include <cstdio>
#include <vector>

using namespace weft;

constexpr float kRadius = 0.02f;

const auto to_space = kernel("to space", [](Arr<const vec2> points, Arr<vec3> lifted) {
  Int i = tid();
  lifted[i] = Vec3(points[i].x, points[i].y, 0);
});

const auto count_near = kernel("count near", [](Var<HashGridArrays> grid, Arr<const vec2> points, Arr<int> counts) {
  Int i = hash_grid_point_id(grid, tid());  // in the order of cells
  Vec2 p = points[i];
  Int count = 0;
  for (auto k : hash_grid_query(grid, Vec3(p.x, p.y, 0), kRadius)) {
    If (k != i && length(points[k] - p) <= kRadius) {
      count += 1;
    }
  }
  counts[i] = count;
});

int main() try {
  const Device device = Device::best();
  std::uint32_t rng = rand_init(7);
  std::vector<vec2> points(20'000);
  for (vec2& p : points) p = vec2{randf(rng), randf(rng)};

  const Array<vec2> on_device(device, points);
  const Array<vec3> lifted = zeros<vec3>(device, on_device.size());
  launch(to_space, on_device.size(), on_device, lifted);
  HashGrid grid(device, 50, 50, 1);  // cells of the radius's width over the unit square, in one layer
  grid.build(lifted, kRadius);
  const Array<int> counts = zeros<int>(device, on_device.size());
  launch(count_near, on_device.size(), grid, on_device, counts);

  const std::vector<int> found = counts.to_vector();
  long all = 0;
  for (int c : found) all += c;
  int wrong = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    int count = -1;  // does not count the point itself
    for (const vec2& q : points) count += length(q - points[i]) <= kRadius;
    wrong += count != found[i];
  }
  std::printf("%.1f neighbours on average; %d of 200 are counted otherwise on the host\n",
              double(all) / double(points.size()), wrong);
  return wrong ? 1 : 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
