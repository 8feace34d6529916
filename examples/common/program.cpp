// The command line, the frames of a film, the exit status and the last message.
#include "program.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>

namespace {
constexpr std::int64_t kMostPixels = 300'000'000;  // of all pictures together, as the sheet shows them side by side
}

void add_options(CLI::App& app, ProgramOptions& o) {
  app.add_option("--device", o.device, "vulkan:0, cpu, reference; the best one present without it");
  app.add_option("--out", o.out, "Folder for pictures");
}

void add_options(CLI::App& app, DrawingOptions& o) {
  add_options(app, static_cast<ProgramOptions&>(o));
  app.add_option("--samples", o.samples, "Paths of light through each pixel")->check(CLI::Range(1, 100000));
  app.add_option("--width", o.width, "Of a picture")->check(CLI::Range(1, 8192));
  app.add_option("--height", o.height, "Of a picture")->check(CLI::Range(1, 8192));
}

void add_options(CLI::App& app, FilmOptions& o) {
  add_options(app, static_cast<DrawingOptions&>(o));
  app.add_option("--frames", o.frames, "Frames of 1/60 s to simulate")->check(CLI::Range(1, 100000));
  app.add_option("--substeps", o.substeps, "Steps per frame")->check(CLI::Range(1, 10000));
  app.add_option("--pictures", o.pictures, "Pictures to draw, the first at the start")->check(CLI::Range(1, 10000));
}

void check_options(const FilmOptions& o) {
  if (std::int64_t(o.width) * o.height * o.pictures > kMostPixels)
    throw CLI::ValidationError("--pictures", "so many pictures of this size do not fit on one sheet");
}

int run_program(const Program& program, int argc, char** argv) {
  std::string wrong;
  try {
    CLI::App app(program.about, program.name);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
    program.add_options(app);
    try {
      app.parse(argc, argv);
      if (program.check_options) program.check_options();
    } catch (const CLI::ParseError& e) {
      return app.exit(e) == 0 ? 0 : 1;
    }
    wrong = program.run();
    if (wrong.empty()) return 0;
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  std::fflush(stdout);
  fmt::print(stderr, "{}: {}\n", program.name, wrong);
  return 1;
}

std::filesystem::path folder_of(const ProgramOptions& options) {
  const std::filesystem::path folder = options.out;
  std::filesystem::create_directories(folder);
  return folder;
}

void show_progress(const char* what, int done, int all) {
  constexpr int kWidth = 40;
  const int filled = int(std::int64_t(kWidth) * done / all);
  fmt::print("\r[{:#<{}}{:.<{}}] {} {} of {}", "", filled, "", kWidth - filled, what, done, all);
  if (done == all) fmt::print("\n");
  std::fflush(stdout);
}

Film::Film(const FilmOptions& options, const char* name, std::function<Picture()> draw)
    : options_(options), name_(name), draw_(std::move(draw)), folder_(folder_of(options)) {}

void Film::take_picture(int frame) {
  const Stopwatch watch;
  pictures_.push_back(draw_());
  write_png(folder_ / fmt::format("frame_{:04}.png", frame), pictures_.back());
  drawing_ += watch.seconds();
}

std::string Film::run(const std::function<std::string(int frame)>& advance) {
  take_picture(0);
  const std::int64_t intervals = std::max(options_.pictures - 1, 1), all = options_.frames;
  for (int frame = 1; frame <= all; ++frame) {
    const Stopwatch watch;
    const std::string wrong = advance(frame);
    simulating_ += watch.seconds();
    if (!wrong.empty()) return wrong;
    // Pictures are evenly spread: 4 of them show 0, 1/3, 2/3 and all of the frames.
    if (options_.pictures > 1 && frame * intervals / all > (frame - 1) * intervals / all) take_picture(frame);
  }
  return {};
}

void Film::finish() {
  write_png(folder_ / (name_ + ".png"), contact_sheet(pictures_));
  fmt::print("time      {:.1f} s simulating, {:.1f} s drawing\n", simulating_, drawing_);
  fmt::print("pictures  {}: {}.png shows all {}\n", std::filesystem::absolute(folder_).string(), name_,
             pictures_.size());
}
