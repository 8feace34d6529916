// fluid_checkpoint: finds the density from which a swirling fluid becomes the word "weft", by gradients through time.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "../common/program.h"
#include "adam.h"
#include "fluid.h"
#include "letters.h"

using namespace weft;

namespace {

struct Options : ProgramOptions {
  FluidPlan plan;
  int iterations = 120;
  float rate = 0.3f;
};

constexpr float kFall = 100;  // the loss must be divided by this

auto loss_kernel = kernel("fluid_loss", [](Arr<const float, 2> density, Arr<const float, 2> target, Arr<float> loss) {
  auto [row, column] = tid<2>();
  Float off = density(row, column) - target(row, column);
  Float cells = Float(density.shape(0) * density.shape(1));
  atomic_add(loss[0], off * off / cells);
});

/// The colour of a density: dark blue for 0, over orange to white for 1 and more.
std::uint32_t colour(float density) {
  constexpr vec3 kColours[] = {{12, 16, 40}, {235, 110, 40}, {255, 245, 225}};
  const float place = std::clamp(density, 0.f, 1.f) * 1.999f;
  const auto k = std::size_t(place);
  const vec3 c = kColours[k] + (kColours[k + 1] - kColours[k]) * (place - float(k));
  return std::uint32_t(c.x) | std::uint32_t(c.y) << 8 | std::uint32_t(c.z) << 16 | 0xff000000u;
}

/// Draws each cell as a square of pixels.
Picture draw(const std::vector<float>& density, int size) {
  const int scale = std::max(256 / size, 1);
  Picture p{size * scale, size * scale, {}};
  for (int y = 0; y < p.height; ++y)
    for (int x = 0; x < p.width; ++x)
      p.pixels.push_back(colour(density[std::size_t(y / scale) * std::size_t(size) + std::size_t(x / scale)]));
  return p;
}

/// \return  a description of what is wrong with the outcome, if anything
std::string run(const Options& o) {
  const Device device = device_of(o);
  const int n = o.plan.size;
  fmt::print("fluid     {} x {} cells, {} steps, {} of their states kept\n", n, n, o.plan.steps, o.plan.slots);
  const std::filesystem::path folder = folder_of(o);

  const std::vector<float> picture = letters(n);
  const Array<float, 2> target(device, {n, n}, picture);
  Array<float> loss = zeros<float>(device, 1);
  Fluid fluid(device, o.plan);
  // The first guess is the picture itself, which the fluid smears.
  fluid.start().copy_from(target);
  std::vector<Picture> pictures = {draw(picture, n), draw(fluid.run(nullptr).to_vector(), n)};

  Adam adam(fluid.start());
  const Stopwatch watch;
  float first = 0, best = 0;
  Array<float, 2> best_start;
  for (int k = 0; k < o.iterations; ++k) {
    Tape tape;
    tape.record([&] {
      const Array<float, 2>& end = fluid.run(&tape);
      loss.zero();
      launch(loss_kernel, {n, n}, end, target, loss);
    });
    fluid.start().zero_grad();
    tape.backward(loss);
    const float now = loss.at(0);
    fmt::print("run {:4}: loss {:.3e}\n", k, now);
    std::fflush(stdout);
    if (k == 0) first = now;
    if (k == 0 || now < best) {
      best = now;
      best_start = fluid.start().clone();
    }
    // Large changes find the way, small ones settle.
    adam.step(o.rate * (1 - float(k) / float(o.iterations)));
  }
  fmt::print("speed     {:.3f} s per run and its gradient\n", watch.seconds() / o.iterations);

  fluid.start().copy_from(best_start);
  pictures.push_back(draw(best_start.to_vector(), n));
  pictures.push_back(draw(fluid.run(nullptr).to_vector(), n));
  write_png(folder / "fluid_checkpoint.png", contact_sheet(pictures));
  fmt::print("picture   {}: the target, what became of it as a start; the start found, what became of it\n",
             std::filesystem::absolute(folder / "fluid_checkpoint.png").string());
  fmt::print("loss      {:.3e} to {:.3e}: {:.0f} times less\n", first, best, first / best);
  return best * kFall <= first ? std::string() : fmt::format("the loss did not fall by {} times", kFall);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--size", o.plan.size, "Cells along a side")->check(CLI::Range(16, 4096));
    app.add_option("--steps", o.plan.steps, "Steps of a run")->check(CLI::Range(1, 100000));
    app.add_option("--sweeps", o.plan.sweeps, "Sweeps for the pressure in each step, an even number")
        ->check(CLI::Range(2, 10000));
    app.add_option("--slots", o.plan.slots, "States of the fluid that are kept for the way back")
        ->check(CLI::Range(1, 10000));
    app.add_option("--iterations", o.iterations, "Runs, each better than the last")->check(CLI::Range(2, 100000));
    app.add_option("--rate", o.rate, "Change of a cell's density in the first iteration; falls to 0")
        ->check(CLI::Range(1e-6f, 10.f));
  };
  const auto check = [&] {
    if (o.plan.sweeps % 2 != 0) throw CLI::ValidationError("--sweeps", fmt::format("{} is not even", o.plan.sweeps));
  };
  return run_program({"fluid_checkpoint", "Finds the density from which a swirling fluid becomes a given picture.", add,
                      check, [&] { return run(o); }},
                     argc, argv);
}
