// marching_cubes: drops that drift and merge, as a field of values; each picture shows its surface by marching cubes.
#include <fmt/core.h>
#include <weft/runtime/volume/volume_surface.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../common/program.h"
#include "../common/render.h"

using namespace weft;

namespace {

struct Options : FilmOptions {
  int drops = 24, grid = 128;
};

constexpr float kFrameTime = 1 / 60.f;
constexpr float kSide = 2.4f;    // of the block of values
constexpr float kReach = 0.42f;  // of a drop: farther away it adds nothing to the field
constexpr float kLevel = 0.25f;  // of the surface
constexpr float kRoom = 0.7f;    // drops stay within this distance of the middle
constexpr vec3 kMiddle{0, 1.3f, 0};

// Moves drops along a field without divergence that changes with time, so that they meet and part; those that come too
// far out are drawn back.
auto drift_kernel = kernel("drift", [](Arr<vec3> drops, Float time, Float dt) {
  Int i = tid();
  Vec3 p = drops[i], out = p - kMiddle;
  Vec3 flow = curlnoise(7, Vec4(p.x * 1.1f, p.y * 1.1f, p.z * 1.1f, time * 0.3f));
  Float distance = length(out);
  Vec3 back = out * (max(distance - kRoom, 0.f) / max(distance, 1e-6f));
  drops[i] = p + (flow * 0.5f - back * 6.f) * dt;
});

// Strategy: one thread for each value sums over all drops, of which there are few. A drop adds (1 - (d / reach)^2)^2
// at distance d, which falls to 0 smoothly, so that two drops that come close become one. The value is the level less
// the sum: negative inside, as in a level set, so that triangles turn outward.
auto field_kernel = kernel("field", [](Arr<const vec3> drops, Arr<float, 3> values, Vec3 lower, Float side) {
  auto [i, j, k] = tid<3>();
  Vec3 p = lower + Vec3(Float(i), Float(j), Float(k)) * side;
  Float sum = 0.f;
  for (auto n : range(drops.shape(0))) {
    Vec3 from = p - drops[n];
    Float near = max(1 - dot(from, from) * (1 / (kReach * kReach)), 0.f);
    sum += near * near;
  }
  values(i, j, k) = kLevel - sum;
});

/// How many sides of triangles have no neighbour that runs along them the other way.
std::size_t open_sides(const std::vector<int>& indices) {
  std::vector<std::pair<int, int>> sides, turned;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const int from = indices[k], to = indices[k % 3 == 2 ? k - 2 : k + 1];
    sides.emplace_back(from, to);
    turned.emplace_back(to, from);
  }
  std::sort(sides.begin(), sides.end());
  std::sort(turned.begin(), turned.end());
  std::vector<std::pair<int, int>> open;
  std::set_difference(sides.begin(), sides.end(), turned.begin(), turned.end(), std::back_inserter(open));
  return open.size();
}

std::string run(const Options& o) {
  const Device device = device_of(o);
  std::vector<vec3> start;
  for (int k = 0; k < o.drops; ++k) {
    // A spiral of even steps on a ball (the golden angle), in two shells.
    const float up = 1 - (2 * float(k) + 1) / float(o.drops), turn = 2.39996f * float(k);
    const float out = std::sqrt(1 - up * up) * (k % 2 ? 0.35f : 0.6f);
    start.push_back(kMiddle + vec3{out * std::cos(turn), up * (k % 2 ? 0.35f : 0.6f), out * std::sin(turn)});
  }
  Array<vec3> drops(device, start);
  Array<float, 3> values = empty<float, 3>(device, {o.grid, o.grid, o.grid});
  const float side = kSide / float(o.grid - 1);
  const vec3 lower = kMiddle - vec3(kSide / 2);
  fmt::print("scene     {} drops in {} x {} x {} values\n", o.drops, o.grid, o.grid, o.grid);

  std::int64_t triangles = 0;
  std::size_t open = 0;
  double surfacing = 0;
  int surfaces = 0;
  const Camera camera{{1.9f, 2.1f, 4.1f}, {0, 1.1f, 0}, 36};
  Film film(o, "marching_cubes", [&] {
    launch(field_kernel, {o.grid, o.grid, o.grid}, drops, values, lower, side);
    device.synchronize();
    const Stopwatch watch;
    const VolumeSurface surface = to_mesh(values, 0, mat33::identity() * side, lower);
    surfacing += watch.seconds();
    ++surfaces;
    triangles = surface.indices.size() / 3;
    open += open_sides(surface.indices.to_vector());
    return draw(shape_of(surface), {}, {camera, o.width, o.height, o.samples});
  });
  film.run([&](int frame) {
    for (int k = 0; k < o.substeps; ++k)
      launch(drift_kernel, o.drops, drops, (float(frame - 1) + float(k) / float(o.substeps)) * kFrameTime,
             kFrameTime / float(o.substeps));
    device.synchronize();
    return std::string();
  });
  fmt::print("surface   {} triangles at the end; {:.1f} ms for each of {}\n", triangles, surfacing / surfaces * 1e3,
             surfaces);
  film.finish();
  if (triangles == 0) return "there is no surface";
  if (open > 0) return fmt::format("{} sides of triangles are open", open);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  o.frames = 180, o.substeps = 4;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--drops", o.drops, "How many drift")->check(CLI::Range(1, 10000));
    app.add_option("--grid", o.grid, "Values along each side of the block")->check(CLI::Range(8, 1000));
  };
  return run_program({"marching_cubes", "Draws drops that merge, by the surface of a field.", add,
                      [&] { check_options(o); }, [&] { return run(o); }},
                     argc, argv);
}
