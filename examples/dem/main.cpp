// dem: a block of cohesive grains is thrown on a floor and becomes a heap; pictures of it become PNG files.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "../common/ending.h"
#include "draw.h"
#include "grains.h"

namespace {

struct Options {
  std::string device, out = "pictures";
  int grains = 100000, frames = 100, substeps = 64, pictures = 4, samples = 8, width = 640, height = 360;
  float above = 0.5f, rest = 0;
};

constexpr float kFrameTime = 1 / 60.f;
constexpr int kMostGrains = 10'000'000;

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app("Throws a block of cohesive grains on a floor and draws the heap that they become.");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
  app.add_option("--device", o.device, "vulkan:0, cpu, reference; the best one present without it");
  app.add_option("--grains", o.grains, "How many")->check(CLI::Range(1, kMostGrains));
  app.add_option("--frames", o.frames, "Frames of 1/60 s to simulate")->check(CLI::Range(1, 100000));
  app.add_option("--substeps", o.substeps, "Steps per frame")->check(CLI::Range(1, 10000));
  app.add_option("--above", o.above, "Metres from the floor to the block")->check(CLI::Range(0.f, 100.f));
  app.add_option("--rest", o.rest, "Fail if the mean speed at the end is above this (m/s); 0: whatever it is")
      ->check(CLI::Range(0.f, 100.f));
  app.add_option("--pictures", o.pictures, "Pictures to draw, the first at the start")->check(CLI::Range(1, 1000));
  app.add_option("--samples", o.samples, "Rays through each pixel")->check(CLI::Range(1, 100000));
  app.add_option("--width", o.width, "Of a picture")->check(CLI::Range(1, 8192));
  app.add_option("--height", o.height, "Of a picture")->check(CLI::Range(1, 8192));
  app.add_option("--out", o.out, "Folder for the pictures");
  try {
    app.parse(argc, argv);
    if (std::int64_t(o.width) * o.height * o.pictures > 300'000'000)
      throw CLI::ValidationError("--pictures", "so many pictures of this size do not fit on one sheet");
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : 1);
  }
  return o;
}

/// What must hold for grains whatever they do. \return  what does not, or nothing
class Laws {
 public:
  Laws(const Totals& start, int grains) : start_(start), mass_(double(kGrainMass) * grains) {}

  std::string broken(const Totals& now, double time) {
    if (!now.finite) return fmt::format("after {:.2f} s a grain is nowhere: positions are not finite", time);
    // Contacts take energy, the floor too; steps of time bring a little in.
    if (now.energy > start_.energy + 0.01 * std::abs(start_.energy))
      return fmt::format(
          "after {:.2f} s there is more energy than at the start, {:.4g} J after {:.4g} J: too few steps", time,
          now.energy, start_.energy);
    if (now.lowest < 0) return fmt::format("after {:.2f} s a grain is in the floor, {:.3f} m deep", time, -now.lowest);
    // Until the floor is touched, all forces but the weight come in pairs.
    falling_ &= now.lowest > double(1.1f * kGrainRadius);
    const double fall[3] = {0, -mass_ * double(kGravity) * time, 0};
    for (int k = 0; k < 3 && falling_; ++k)
      if (std::abs(now.momentum[k] - start_.momentum[k] - fall[k]) > 1e-4 * mass_)
        return fmt::format("after {:.2f} s of fall the momentum is {:.5g} kg m/s along axis {}, not {:.5g}", time,
                           now.momentum[k], k, start_.momentum[k] + fall[k]);
    return {};
  }

 private:
  const Totals start_;
  const double mass_;
  bool falling_ = true;
};

std::string run(const Options& o) {
  using Clock = std::chrono::steady_clock;
  const weft::Device device = o.device.empty() ? weft::Device::best() : weft::Device(o.device);
  fmt::print("device    {} ({})\n", device.name(), device.adapter());
  const std::filesystem::path folder = o.out;
  std::filesystem::create_directories(folder);

  Grains grains(device, o.grains, o.above);
  const Totals start = grains.totals();
  Laws laws(start, o.grains);
  // The whole way of the heap, from where the block hangs.
  const float size = float(std::cbrt(double(o.grains))) * 2.2f * kGrainRadius;
  const Camera camera{{1.15f * size, 1.1f * size, 2.5f * size}, {0.45f * size, 0.3f * size, 0}, 33};
  std::vector<Picture> pictures;
  double simulating = 0, drawing = 0;
  const auto take_picture = [&](int frame) {
    const auto from = Clock::now();
    pictures.push_back(draw_grains(grains.positions(), kGrainRadius, camera, o.width, o.height, o.samples));
    write_png(folder / fmt::format("frame_{:04}.png", frame), pictures.back());
    drawing += std::chrono::duration<double>(Clock::now() - from).count();
  };

  take_picture(0);
  Totals now = start;
  for (int frame = 1; frame <= o.frames; ++frame) {
    const auto from = Clock::now();
    grains.advance(o.substeps, kFrameTime / float(o.substeps));
    grains.positions().wait();
    simulating += std::chrono::duration<double>(Clock::now() - from).count();
    const int intervals = std::max(o.pictures - 1, 1);
    if (o.pictures > 1 && frame * intervals / o.frames > (frame - 1) * intervals / o.frames) take_picture(frame);
    now = grains.totals();
    if (const std::string wrong = laws.broken(now, frame * double(kFrameTime)); !wrong.empty()) return wrong;
    if (frame % 10 == 0 || frame == o.frames)
      fmt::print("frame {:4}  energy {:9.4g} J, mean speed {:6.3f} m/s, centre at {:6.3f} m\n", frame, now.energy,
                 now.speed, now.height);
  }
  write_png(folder / "dem.png", contact_sheet(pictures));

  fmt::print("speed     {:.1f} ms per frame of {} steps, {:.1f} million grains moved per second\n",
             simulating / o.frames * 1e3, o.substeps, double(o.frames) * o.substeps * o.grains / simulating * 1e-6);
  fmt::print("time      {:.1f} s simulating, {:.1f} s drawing\n", simulating, drawing);
  fmt::print("pictures  {}: dem.png shows all {}\n", std::filesystem::absolute(folder).string(), pictures.size());
  if (o.rest > 0 && now.speed > double(o.rest))
    return fmt::format("the grains have not come to rest: {:.3f} m/s in the mean", now.speed);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("dem", [&] { return run(parse(argc, argv)); });
}
