// nvdb: balls fall on the surface of a volume, flow along it and bounce; contacts are samples of the level set.
#include <fmt/core.h>
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/volume/volume_from.h>

#include <algorithm>
#include <cmath>

#include "../common/falling.h"
#include "../common/mesh.h"
#include "../common/placed_volume.h"
#include "../common/program.h"
#include "../common/render.h"
#include "../common/scene.h"

using namespace weft;

namespace {

struct Options : FilmOptions {
  std::string volume, name;
  int balls = 20000, voxels = 200, rings = 500;
};

constexpr float kFrameTime = 1 / 60.f, kSize = 2.2f, kLowest = 0.25f, kRadius = 0.016f;

// Moves balls, each of which touches the surface if its centre is closer than its radius. Far from the surface the
// level set is cut off and has no slope: there a ball falls freely.
auto step_kernel = kernel("fall on a volume",
                          [](Var<VolumeArrays> volume, Arr<vec3> x, Arr<vec3> v, Float scale, Vec3 offset, Float dt) {
                            Int i = tid();
                            Vec3 velocity = v[i];
                            velocity.y -= kGravity * dt;
                            Vec3 place = x[i] + velocity * dt;
                            VolumeAccessor<float> surface(volume);
                            SceneDistance near = distance_at(surface, volume, place, scale, offset);
                            If ((near.distance < kRadius) & (dot(near.normal, near.normal) > 0.5f)) {
                              touch(place, velocity, near.normal, kRadius - near.distance);
                            }
                            If (place.y < kRadius) {
                              touch(place, velocity, Vec3(0, 1, 0), kRadius - place.y);
                            }
                            x[i] = place;
                            v[i] = velocity;
                          });

struct Tally {
  std::int64_t touching = 0;  ///< balls within a radius and a half of the surface
  std::int64_t inside = 0;    ///< further inside than half a radius
  std::int64_t below = 0;     ///< below the floor
  std::int64_t lost = 0;      ///< not finite
};

auto tally_kernel =
    kernel("tally", [](Var<VolumeArrays> volume, Arr<const vec3> x, Arr<int> counts, Float scale, Vec3 offset) {
      Vec3 place = x[tid()];
      VolumeAccessor<float> surface(volume);
      Float distance = distance_at(surface, volume, place, scale, offset).distance;
      const Bool kinds[] = {distance < 1.5f * kRadius, distance < -0.5f * kRadius, place.y < 0.5f * kRadius,
                            !(isfinite(place.x) && isfinite(place.y) && isfinite(place.z))};
      for (int k = 0; k < 4; ++k) {
        If (kinds[k]) {
          atomic_add(counts[k], 1);
        }
      }
    });

Tally tally(const Volume& volume, const Array<vec3>& x, const Placement& placement) {
  const Array<int> counts = zeros<int>(x.device(), 4);
  launch(tally_kernel, x.size(), volume, x, counts, placement.scale, placement.offset);
  const std::vector<int> c = counts.to_vector();
  return {c[0], c[1], c[2], c[3]};
}

/// Makes the level set of a torus knot, and saves it.
/// \return  the file
std::string make_file(const Device& device, const Options& o) {
  BodyMesh body = torus_knot(o.rings);
  place(body, kSize, kLowest, 0, 0);
  const Mesh mesh(Array<vec3>(device, body.positions), Array<vec3i>(device, body.triangles));
  const Stopwatch watch;
  const Volume volume =
      volume_from_mesh(mesh, MeshSign::normal, {.voxel_size = kSize / float(o.voxels), .name = "knot"});
  const std::string file = (folder_of(o) / "knot.nvdb").string();
  fmt::print("made      {}: a level set of {} triangles in {:.0f} ms\n", file, mesh.size(), watch.seconds() * 1e3);
  volume.save(file, VolumeCodec::zip);
  return file;
}

/// \return  a description of what is wrong with the outcome, if anything
std::string run(const Options& o) {
  const Device device = device_of(o);
  const std::string file = o.volume.empty() ? make_file(device, o) : o.volume;
  const Stopwatch loading;
  const Volume volume = read_volume(device, file, o.name);
  const VolumeInfo& info = volume.info();
  fmt::print("volume    \"{}\": {} voxels in {} leaves, {:.1f} MB, loaded in {:.0f} ms\n", info.name, info.voxels,
             info.leaves, double(info.bytes) * 1e-6, loading.seconds() * 1e3);

  const Placement placement = place_volumes({volume}, kSize, kLowest);
  VolumeSurface surface = to_mesh(volume);
  if (surface.indices.size() == 0) return fmt::format("{}: the volume has no surface at the value 0", file);
  static const auto into_scene = kernel("into the scene", [](Arr<vec3> points, Float scale, Vec3 offset) {
    points[tid()] = points[tid()] * scale + offset;
  });
  launch(into_scene, surface.points.size(), surface.points, placement.scale, placement.offset);
  const Shape shape = shape_of(surface);

  const SceneBox box = box_of(volume, placement);
  Array<vec3> x(device, layers(o.balls, kRadius, {0, box.upper.y + 0.15f, 0}, 1.8f));
  Array<vec3> v = zeros<vec3>(device, o.balls);
  fmt::print("scene     {} triangles of the surface, {} balls\n", shape.triangles.size(), o.balls);

  const Camera camera{{1.4f, 0.7f + 0.9f * box.upper.y, 3.1f}, {0, 0.42f * box.upper.y, 0}, 36};
  const Array<vec3> colours = full<vec3>(device, o.balls, vec3{0.1f, 0.35f, 0.6f});
  std::int64_t most_touching = 0;
  Film film(o, "nvdb", [&] {
    most_touching = std::max(most_touching, tally(volume, x, placement).touching);
    return draw(shape, {balls_at(x, kRadius), colours}, {camera, o.width, o.height, o.samples});
  });
  film.run([&](int) {
    for (int k = 0; k < o.substeps; ++k)
      launch(step_kernel, o.balls, volume, x, v, placement.scale, placement.offset, kFrameTime / float(o.substeps));
    device.synchronize();
    return std::string();
  });
  const Tally end = tally(volume, x, placement);
  fmt::print("contacts  {} balls touched the surface at once; {} are inside, {} below the floor, {} lost\n",
             most_touching, end.inside, end.below, end.lost);
  fmt::print("speed     {:.1f} ms per frame of {} steps\n", film.seconds_simulating() / o.frames * 1e3, o.substeps);
  film.finish();
  if (end.lost > 0) return "balls were lost";
  if (end.below > 0) return "balls fell through the floor";
  if (o.volume.empty() && end.inside * 200 > o.balls) return "balls went through the surface";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  o.substeps = 16;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--volume", o.volume, ".nvdb file of a level set; that of a torus knot, which is saved, without it");
    app.add_option("--name", o.name, "The grid of the file; the first one without it");
    app.add_option("--balls", o.balls, "How many fall")->check(CLI::Range(1, 10'000'000));
    app.add_option("--voxels", o.voxels, "Along the longest side of the torus knot")->check(CLI::Range(16, 1500));
    app.add_option("--rings", o.rings, "Detail of the torus knot")->check(CLI::Range(20, 20000));
  };
  return run_program(
      {"nvdb", "Lets balls fall on the surface of a volume.", add, [&] { check_options(o); }, [&] { return run(o); }},
      argc, argv);
}
