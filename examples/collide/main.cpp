// collide: particles fall on a mesh whose surface moves in waves; contacts are found by closest points.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "../common/ending.h"
#include "../common/render.h"
#include "particles.h"

using namespace weft;

namespace {

struct Options {
  std::string mesh, device, out = "pictures";
  int particles = 20000, frames = 120, substeps = 8, pictures = 4, samples = 16, width = 640, height = 360, rings = 500;
};

constexpr float kFrameTime = 1 / 60.f, kSize = 2.2f, kLowest = 0.25f, kRadius = 0.016f;

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app("Lets particles fall on a mesh that moves.");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
  app.add_option("--mesh", o.mesh, "OBJ, PLY or STL file of a closed surface; a torus knot without it");
  app.add_option("--device", o.device, "vulkan:0, cpu, reference; the best one present without it");
  app.add_option("--particles", o.particles, "How many fall")->check(CLI::Range(1, 10'000'000));
  app.add_option("--rings", o.rings, "Detail of the torus knot")->check(CLI::Range(20, 20000));
  app.add_option("--frames", o.frames, "Frames of 1/60 s to simulate")->check(CLI::Range(1, 100000));
  app.add_option("--substeps", o.substeps, "Steps per frame")->check(CLI::Range(1, 10000));
  app.add_option("--pictures", o.pictures, "Pictures to draw, the first at the start")->check(CLI::Range(1, 100));
  app.add_option("--samples", o.samples, "Paths per pixel")->check(CLI::Range(1, 100000));
  app.add_option("--width", o.width, "Of a picture")->check(CLI::Range(1, 4096));
  app.add_option("--height", o.height, "Of a picture")->check(CLI::Range(1, 4096));
  app.add_option("--out", o.out, "Folder for the pictures");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : 1);
  }
  return o;
}

/// \return  what is wrong with the outcome, if anything
std::string run(const Options& o) {
  using Clock = std::chrono::steady_clock;
  const Device device = o.device.empty() ? Device::best() : Device(o.device);
  fmt::print("device    {} ({})\n", device.name(), device.adapter());
  BodyMesh body = o.mesh.empty() ? torus_knot(o.rings) : read_mesh(o.mesh);
  place(body, kSize, kLowest, 0, 0);
  float top = 0;
  for (const vec3& p : body.positions) top = std::max(top, p.y);
  Waves waves(device, body);
  Particles particles(device, o.particles, kRadius, {0, top + 0.15f, 0}, 1.8f);
  fmt::print("scene     {} triangles, {} particles\n", waves.mesh().size(), o.particles);

  const Camera camera{{1.4f, 0.7f + 0.9f * top, 3.1f}, {0, 0.42f * top, 0}, 36};
  const Array<vec3> colours = full<vec3>(device, o.particles, vec3{0.1f, 0.35f, 0.6f});
  const std::filesystem::path folder = o.out;
  std::filesystem::create_directories(folder);
  std::vector<Picture> pictures;
  double simulating = 0, drawing = 0;
  const auto take_picture = [&] {
    const auto start = Clock::now();
    pictures.push_back(draw(waves.shape(), {particles.places(), colours}, {camera, o.width, o.height, o.samples}));
    drawing += std::chrono::duration<double>(Clock::now() - start).count();
  };

  take_picture();
  std::int64_t most_touching = 0;
  for (int frame = 1; frame <= o.frames; ++frame) {
    const auto start = Clock::now();
    for (int k = 0; k < o.substeps; ++k) {
      waves.move_to((float(frame - 1) + float(k + 1) / float(o.substeps)) * kFrameTime);
      particles.step(waves.mesh(), kFrameTime / float(o.substeps));
    }
    device.synchronize();
    simulating += std::chrono::duration<double>(Clock::now() - start).count();
    const int intervals = std::max(o.pictures - 1, 1);
    if (o.pictures > 1 && frame * intervals / o.frames > (frame - 1) * intervals / o.frames) {
      take_picture();
      most_touching = std::max(most_touching, particles.tally(waves.mesh()).touching);
    }
  }
  write_png(folder / "collide.png", contact_sheet(pictures));
  const Tally tally = particles.tally(waves.mesh());
  most_touching = std::max(most_touching, tally.touching);
  fmt::print("contacts  {} particles touched the mesh at once; {} are inside, {} below the floor, {} lost\n",
             most_touching, tally.inside, tally.below, tally.lost);
  fmt::print("speed     {:.1f} ms per frame of {} steps, each with a refit\n", simulating / o.frames * 1e3, o.substeps);
  fmt::print("time      {:.1f} s simulating, {:.1f} s drawing\n", simulating, drawing);
  fmt::print("pictures  {}\n", std::filesystem::absolute(folder / "collide.png").string());
  if (tally.lost > 0) return "particles were lost";
  if (tally.below > 0) return "particles fell through the floor";
  // A surface that folds over itself, or a file that is not closed, has no inside to speak of everywhere.
  if (o.mesh.empty() && tally.inside * 200 > o.particles) return "particles went through the surface";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("collide", [&] { return run(parse(argc, argv)); });
}
