// collide: particles fall on a mesh whose surface moves in waves; contacts are found by closest points.
#include <fmt/core.h>

#include "../common/program.h"
#include "../common/render.h"
#include "particles.h"

using namespace weft;

namespace {

struct Options : FilmOptions {
  std::string mesh;
  int particles = 20000, rings = 500;
};

constexpr float kFrameTime = 1 / 60.f, kSize = 2.2f, kLowest = 0.25f, kRadius = 0.016f;

/// \return  a description of what is wrong with the outcome, if anything
std::string run(const Options& o) {
  const Device device = device_of(o);
  BodyMesh body = o.mesh.empty() ? torus_knot(o.rings) : read_mesh(o.mesh);
  place(body, kSize, kLowest, 0, 0);
  float top = 0;
  for (const vec3& p : body.positions) top = std::max(top, p.y);
  Waves waves(device, body);
  Particles particles(device, o.particles, kRadius, {0, top + 0.15f, 0}, 1.8f);
  fmt::print("scene     {} triangles, {} particles\n", waves.mesh().size(), o.particles);

  const Camera camera{{1.4f, 0.7f + 0.9f * top, 3.1f}, {0, 0.42f * top, 0}, 36};
  const Array<vec3> colours = full<vec3>(device, o.particles, vec3{0.1f, 0.35f, 0.6f});
  std::int64_t most_touching = 0;
  Film film(o, "collide", [&] {
    most_touching = std::max(most_touching, particles.tally(waves.mesh()).touching);
    return draw(waves.shape(), {particles.places(), colours}, {camera, o.width, o.height, o.samples});
  });
  film.run([&](int frame) {
    for (int k = 0; k < o.substeps; ++k) {
      waves.move_to((float(frame - 1) + float(k + 1) / float(o.substeps)) * kFrameTime);
      particles.step(waves.mesh(), kFrameTime / float(o.substeps));
    }
    device.synchronize();
    return std::string();
  });
  const Tally tally = particles.tally(waves.mesh());
  fmt::print("contacts  {} particles touched the mesh at once; {} are inside, {} below the floor, {} lost\n",
             most_touching, tally.inside, tally.below, tally.lost);
  fmt::print("speed     {:.1f} ms per frame of {} steps, each with a refit\n",
             film.seconds_simulating() / o.frames * 1e3, o.substeps);
  film.finish();
  if (tally.lost > 0) return "particles were lost";
  if (tally.below > 0) return "particles fell through the floor";
  // A surface that folds over itself, or a file that is not closed, has parts without an inside.
  if (o.mesh.empty() && tally.inside * 200 > o.particles) return "particles went through the surface";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  o.substeps = 8;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--mesh", o.mesh, "OBJ, PLY or STL file of a closed surface; a torus knot without it");
    app.add_option("--particles", o.particles, "How many fall")->check(CLI::Range(1, 10'000'000));
    app.add_option("--rings", o.rings, "Detail of the torus knot")->check(CLI::Range(20, 20000));
  };
  return run_program(
      {"collide", "Lets particles fall on a mesh that moves.", add, [&] { check_options(o); }, [&] { return run(o); }},
      argc, argv);
}
