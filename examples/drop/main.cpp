// drop: a soft body of springs falls on a sphere and a floor; pictures of it become PNG files.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "../common/body.h"
#include "../common/ending.h"
#include "../common/mesh.h"
#include "../common/picture.h"
#include "../common/render.h"
#include "../common/scene.h"

namespace {

struct Options {
  std::string mesh, device, out = "pictures";
  int frames = 120, substeps = 32, pictures = 4, samples = 16, width = 640, height = 360;
};

constexpr std::int64_t kMostPixels = 300'000'000;  // of all pictures together: the sheet shows them side by side
constexpr float kFrameTime = 1 / 60.f;
constexpr float kBodySize = 2.2f;
constexpr float kStartHeight = 1.6f;  // of the body's lowest point

/// "640x360" to two numbers.
void parse_size(const std::string& text, Options& options) {
  int end = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &options.width, &options.height, &end) != 2 ||
      std::size_t(end) != text.size() || options.width < 1 || options.height < 1 || options.width > 8192 ||
      options.height > 8192)
    throw CLI::ValidationError("--size", "\"" + text + "\" is not WIDTHxHEIGHT with numbers from 1 to 8192");
}

Options parse(int argc, char** argv) {
  Options o;
  std::string size = fmt::format("{}x{}", o.width, o.height);
  CLI::App app("Drops a soft body on a sphere and draws it.");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--mesh", o.mesh, "OBJ, PLY or STL file to drop; a torus knot without it");
  app.add_option("--device", o.device, "vulkan:0, cpu, reference; the best one present without it");
  app.add_option("--frames", o.frames, "Frames of 1/60 s to simulate")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--substeps", o.substeps, "Steps per frame")->capture_default_str()->check(CLI::Range(1, 10000));
  app.add_option("--pictures", o.pictures, "Pictures to draw, the first at the start")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--samples", o.samples, "Paths per pixel")->capture_default_str()->check(CLI::Range(1, 100000));
  app.add_option("--size", size, "WIDTHxHEIGHT of a picture")->capture_default_str();
  app.add_option("--out", o.out, "Folder for the pictures")->capture_default_str();
  try {
    app.parse(argc, argv);
    parse_size(size, o);
    if (std::int64_t(o.width) * o.height * o.pictures > kMostPixels)
      throw CLI::ValidationError("--pictures", "so many pictures of this size do not fit on one sheet");
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : 1);
  }
  return o;
}

void show_progress(int done, int all) {
  constexpr int kWidth = 40;
  const int filled = kWidth * done / all;
  if (filled == kWidth * (done - 1) / all && done > 0) return;
  fmt::print("\r[{:#<{}}{:.<{}}] frame {} of {}", "", filled, "", kWidth - filled, done, all);
  if (done == all) fmt::print("\n");
  std::fflush(stdout);
}

void run(const Options& o) {
  using Clock = std::chrono::steady_clock;
  const weft::Device device = o.device.empty() ? weft::Device::best() : weft::Device(o.device);
  fmt::print("device    {} ({})\n", device.name(), device.adapter());

  BodyMesh mesh = o.mesh.empty() ? torus_knot() : read_mesh(o.mesh);
  place(mesh, kBodySize, kStartHeight, 0.08f, 0.03f);
  Body body(device, mesh);
  fmt::print("body      {}: {} vertices, {} triangles, {} springs\n", o.mesh.empty() ? "torus knot" : o.mesh,
             mesh.positions.size(), mesh.triangles.size(), body.springs());

  const std::filesystem::path folder = o.out;
  std::filesystem::create_directories(folder);
  // From the floor to the top of the body, however tall it is.
  float top = 0;
  for (const weft::vec3& p : mesh.positions) top = std::max(top, p.y);
  const Camera camera{{1.0f * top, 0.8f * top, 1.65f * top}, {0, 0.44f * top, 0}, 36};
  const Balls ball = sphere_of_scene(device);
  std::vector<Picture> pictures;
  double simulating = 0, drawing = 0;
  auto take_picture = [&](int frame) {
    const auto start = Clock::now();
    pictures.push_back(draw(body.shape(), ball, {camera, o.width, o.height, o.samples}));
    write_png(folder / fmt::format("frame_{:04}.png", frame), pictures.back());
    drawing += std::chrono::duration<double>(Clock::now() - start).count();
  };

  take_picture(0);
  for (int frame = 1; frame <= o.frames; ++frame) {
    const auto start = Clock::now();
    body.advance(o.substeps, kFrameTime / float(o.substeps));
    body.positions().wait();
    simulating += std::chrono::duration<double>(Clock::now() - start).count();
    // Pictures are spread evenly over the frames: with 4 pictures after 0, 1/3, 2/3 and all of them.
    const int intervals = std::max(o.pictures - 1, 1);
    if (o.pictures > 1 && frame * intervals / o.frames > (frame - 1) * intervals / o.frames) take_picture(frame);
    show_progress(frame, o.frames);
  }
  write_png(folder / "drop.png", contact_sheet(pictures));

  fmt::print("speed     {:.0f} steps per second, {:.1f} million springs per second\n",
             o.frames * o.substeps / simulating,
             double(o.frames) * o.substeps * double(body.springs()) / simulating * 1e-6);
  fmt::print("time      {:.1f} s simulating, {:.1f} s drawing\n", simulating, drawing);
  fmt::print("pictures  {}: drop.png shows all {}\n", std::filesystem::absolute(folder).string(), pictures.size());
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("drop", [&] {
    run(parse(argc, argv));
    return std::string();
  });
}
