// raymarch: a level set and fog, drawn by paths of light through them to a PNG file.
#include <fmt/core.h>
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/volume/volume_from.h>

#include <vector>

#include "../common/mesh.h"
#include "../common/program.h"
#include "render.h"

using namespace weft;

namespace {

struct Options : DrawingOptions {
  std::string surface, surface_name, fog, fog_name;
  float thickness = 6;
  int voxels = 200;
};

constexpr float kSize = 2.2f;
constexpr vec3 kFogCentre{0.25f, 0.25f, 0.1f}, kFogRadii{2.2f, 0.75f, 1.7f};

// A bank of fog: five octaves of noise, which thin out toward the surface of an ellipsoid.
auto fog_kernel = kernel("fog", [](Arr<float, 3> density, Vec3 lower, Float side) {
  auto [i, j, k] = tid<3>();
  Vec3 p = lower + Vec3(Float(i), Float(j), Float(k)) * side;
  Vec3 q = (p - kFogCentre) / kFogRadii;
  Float sum = 0.f;
  float frequency = 1.3f, strength = 1;
  for (int octave = 0; octave < 5; ++octave, frequency *= 2.1f, strength *= 0.55f)
    sum += noise(3 + octave, p * frequency) * strength;
  density(i, j, k) = clamp((1 - dot(q, q)) * 1.1f + sum * 0.9f - 0.3f, 0.f, 1.f);
});

Volume make_fog(const Device& device, float side) {
  const vec3 lower{kFogCentre.x - kFogRadii.x, 0, kFogCentre.z - kFogRadii.z};
  const vec3 sides = kFogCentre + kFogRadii - lower;
  const int n[3] = {int(sides.x / side) + 1, int(sides.y / side) + 1, int(sides.z / side) + 1};
  const Array<float, 3> density = empty<float, 3>(device, {n[0], n[1], n[2]});
  launch(fog_kernel, {n[0], n[1], n[2]}, density, lower, side);
  return Volume::from_dense<float>(density, {0, 0, 0}, 0.f,
                                   {.name = "fog",
                                    .grid_class = VolumeClass::fog,
                                    .matrix = mat33d::identity() * double(side),
                                    .translation = vec3d(lower)});
}

Volume make_surface(const Device& device, float side) {
  BodyMesh body = torus_knot();
  place(body, kSize, 0.02f, 0, 0);
  const Mesh mesh(Array<vec3>(device, body.positions), Array<vec3i>(device, body.triangles));
  return volume_from_mesh(mesh, MeshSign::normal, {.voxel_size = side, .name = "knot"});
}

void report(const char* what, const Volume& volume) {
  if (volume.is_null()) return;
  const VolumeInfo& info = volume.info();
  fmt::print("{:<9} \"{}\": {} voxels in {} leaves, {:.1f} MB\n", what, info.name, info.voxels, info.leaves,
             double(info.bytes) * 1e-6);
}

/// The volumes of the options' files, where they lie in a scene of the usual size; without a file those that are made.
VolumeScene scene_of(const Device& device, const Options& o) {
  VolumeScene scene;
  scene.thickness = o.thickness;
  if (o.surface.empty() && o.fog.empty()) {
    scene.surface = make_surface(device, kSize / float(o.voxels));
    scene.fog = make_fog(device, 2 * kSize / float(o.voxels));
    return scene;
  }
  std::vector<Volume> volumes;
  if (!o.surface.empty()) volumes.push_back(scene.surface = read_volume(device, o.surface, o.surface_name));
  if (!o.fog.empty()) volumes.push_back(scene.fog = read_volume(device, o.fog, o.fog_name));
  scene.placement = place_volumes(volumes, kSize, 0.02f);
  return scene;
}

/// \return  a description of what is wrong with the outcome, if anything
std::string run(const Options& o) {
  const Device device = device_of(o);
  const VolumeScene scene = scene_of(device, o);
  report("surface", scene.surface);
  report("fog", scene.fog);

  const SceneBox box = box_of(scene.surface.is_null() ? scene.fog : scene.surface, scene.placement);
  Camera camera{{1.3f, 0.5f + 0.55f * box.upper.y, 2.6f}, {0, 0.42f * box.upper.y, 0}, 36};
  show_all(camera, corners_of(box), o.width, o.height);

  const Stopwatch watch;
  Seen seen;
  const Picture picture = draw(scene, camera, o.width, o.height, o.samples, seen);
  const double seconds = watch.seconds(), paths = double(o.width) * o.height * o.samples;
  fmt::print("paths     {:.2f} million a second; {:.1f} % of the pixels show the surface, {:.1f} % fog\n",
             paths / seconds * 1e-6, 100. * seen.surface / (double(o.width) * o.height),
             100. * seen.fog / (double(o.width) * o.height));
  const std::filesystem::path file = folder_of(o) / "raymarch.png";
  write_png(file, picture);
  fmt::print("picture   {}: drawn in {:.1f} s\n", std::filesystem::absolute(file).string(), seconds);
  if (!scene.surface.is_null() && seen.surface == 0) return "no ray met the surface";
  if (!scene.fog.is_null() && seen.fog == 0) return "no ray met the fog";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  o.width = 960, o.height = 540, o.samples = 64;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--surface", o.surface, ".nvdb file of a level set; a torus knot without any file");
    app.add_option("--surface-name", o.surface_name, "The grid of that file; the first one without it");
    app.add_option("--fog", o.fog, ".nvdb file of densities; a bank of fog without any file");
    app.add_option("--fog-name", o.fog_name, "The grid of that file; the first one without it");
    app.add_option("--thickness", o.thickness, "Of fog of density 1: how often light is scattered on a metre")
        ->check(CLI::Range(1e-3, 1e4));
    app.add_option("--voxels", o.voxels, "Along the longest side of the torus knot")->check(CLI::Range(16, 1000));
  };
  return run_program({"raymarch", "Draws a level set and fog.", add, {}, [&] { return run(o); }}, argc, argv);
}
