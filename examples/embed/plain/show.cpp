// Shows frame after frame, then checks the last one.
#include "show.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "drops.h"
#include "window.h"

namespace {

constexpr float kFrameTime = 1 / 60.f, kRadius = 0.013f;
constexpr PointCamera kCamera{0.9f, 5, 3.2f};
constexpr int kFramesOfAPicture = 120;

/// The pixels that drops should cover at a time: 1 where a drop is, 2 where one is near.
std::vector<int> expected_cover(const ShowOptions& o, double time) {
  std::vector<int> cover(std::size_t(o.width) * std::size_t(o.height));
  for (int k = 0; k < o.drops; ++k) {
    const Point p = drop_at(k, time);
    const double scale = kCamera.zoom * o.height / 2.0 / (kCamera.distance - p.place[2]);
    const double x = o.width / 2.0 + p.place[0] * scale;
    const double y = o.height / 2.0 - (p.place[1] - kCamera.height) * scale;
    const double r = kRadius * scale;
    for (int row = std::max(0, int(y - r - 2)); row < std::min(o.height, int(y + r + 3)); ++row)
      for (int column = std::max(0, int(x - r - 2)); column < std::min(o.width, int(x + r + 3)); ++column) {
        const double away = std::hypot(column + 0.5 - x, row + 0.5 - y);
        int& at = cover[std::size_t(row) * std::size_t(o.width) + std::size_t(column)];
        if (away < r - 0.5)
          at = 1;
        else if (away < r + 1.5 && at == 0)
          at = 2;
      }
  }
  return cover;
}

/// \return  a description of what is wrong with the picture, if anything
std::string look_at(const Picture& picture, const std::vector<int>& cover) {
  std::int64_t drops = 0, missing = 0, empty = 0, strange = 0, not_blue = 0;
  for (std::size_t k = 0; k < cover.size(); ++k) {
    const std::uint32_t p = picture.pixels[k];
    const unsigned red = p & 255, green = p >> 8 & 255, blue = p >> 16 & 255;
    const bool lit = blue > 40;
    if (cover[k] == 1) {
      ++drops;
      missing += !lit;
      not_blue += !(blue >= green && green >= red);
    } else if (cover[k] == 0) {
      ++empty;
      strange += lit;
    }
  }
  fmt::print("look      {} pixels of drops, {} of them dark; {} without, {} of them lit\n", drops, missing, empty,
             strange);
  if (drops == 0) return "no drop is in the picture";
  if (missing * 200 > drops) return "drops are missing in the picture";
  if (strange * 1000 > empty) return "there are drops in the picture where none should be";
  if (not_blue * 200 > drops) return "drops have the wrong colour";
  return {};
}

/// \return  the largest distance of a point from its exact place, in metres
double error_of(const std::vector<Point>& points, double time) {
  double most = 0;
  for (int k = 0; k < int(points.size()); ++k) {
    // A drop that starts again in this very step may be at either end.
    if (std::fmod(throw_of(k).start + time, double(kLife)) < 1e-3) continue;
    const Point expected = drop_at(k, time), &p = points[std::size_t(k)];
    const double away = std::hypot(double(p.place[0]) - expected.place[0], double(p.place[1]) - expected.place[1],
                                   double(p.place[2]) - expected.place[2]);
    if (!(away <= most)) most = away;
  }
  return most;
}

}  // namespace

void add_options(CLI::App& app, ShowOptions& o) {
  app.add_option("--device", o.device, "software or gpu, both of Vulkan; a GPU where there is one without it");
  app.add_option("--out", o.out, "Folder for the picture of the last frame");
  app.add_option("--drops", o.drops, "Drops in the air")->check(CLI::Range(1, 10'000'000));
  app.add_option("--frames", o.frames, "Frames of 1/60 s; 0: 120, or with a window until it is closed")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--substeps", o.substeps, "Steps per frame; with 0 nothing moves, which the look at the end finds")
      ->check(CLI::Range(0, 1000));
  app.add_option("--width", o.width, "Of the picture")->check(CLI::Range(1, 8192));
  app.add_option("--height", o.height, "Of the picture")->check(CLI::Range(1, 8192));
  app.add_flag("--window", o.window, "Shows the frames, until the window is closed");
  app.add_flag("--validate", o.validate, "Under the validation layer, whose messages are errors");
}

std::string show(const ShowOptions& o, const char* name, const Guest& guest) {
  std::optional<Window> window;
  RendererSetup setup;
  setup.device = o.device;
  setup.width = o.width;
  setup.height = o.height;
  setup.num_points = std::uint32_t(o.drops);
  setup.radius = kRadius;
  setup.camera = kCamera;
  setup.validate = o.validate;
  setup.guest = guest.ask;
  if (o.window) {
    window.emplace(o.width, o.height, name);
    setup.surface_extensions = window->extensions();
    setup.make_surface = [&](VkInstance instance) { return window->make_surface(instance); };
  }
  const std::filesystem::path file = folder_of(o) / (std::string(name) + ".png");
  Renderer renderer(setup);
  fmt::print("device    {}\n", renderer.device_name());
  const std::unique_ptr<Simulation> simulation = guest.begin(renderer, o.drops);

  const Stopwatch watch;
  const int last = o.frames > 0 ? o.frames : o.window ? std::numeric_limits<int>::max() : kFramesOfAPicture;
  int frames = 0;
  do {
    const int slot = renderer.begin_frame();
    renderer.end_frame([&](VkCommandBuffer commands) {
      simulation->record(slot, commands, o.substeps, kFrameTime / float(std::max(o.substeps, 1)));
    });
    simulation->submitted(slot);
  } while (++frames < last && (!window || window->is_open()));
  renderer.wait_idle();
  fmt::print("speed     {:.2f} ms a frame of {} steps of {} drops, drawing included\n", watch.seconds() / frames * 1e3,
             o.substeps, o.drops);

  const Picture picture{o.width, o.height, renderer.picture()};
  write_png(file, picture);
  fmt::print("picture   {}\n", std::filesystem::absolute(file).string());
  const double time = frames * double(kFrameTime), away = error_of(simulation->points(), time);
  fmt::print("drops     at most {:.2g} m from where they should be\n", away);
  simulation->end();
  const std::string wrong = look_at(picture, expected_cover(o, time));
  if (renderer.messages() > 0) return fmt::format("the validation layer had {} messages", renderer.messages());
  if (!wrong.empty()) return wrong;
  return away < 2e-3 ? std::string() : "drops are not where they should be";
}
