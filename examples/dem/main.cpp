// dem: a block of cohesive grains is thrown on a floor and becomes a heap; pictures of it become PNG files.
#include <fmt/core.h>

#include <cmath>

#include "../common/program.h"
#include "draw.h"
#include "grains.h"

namespace {

struct Options : FilmOptions {
  int grains = 100000;
  float above = 0.5f, rest = 0;
};

constexpr float kFrameTime = 1 / 60.f;
constexpr int kMostGrains = 10'000'000;

/// The laws that grains obey whatever they do. \return  the law that is broken, or nothing
class Laws {
 public:
  Laws(const Totals& start, int grains) : start_(start), mass_(double(kGrainMass) * grains) {}

  std::string broken(const Totals& now, double time) {
    if (!now.finite) return fmt::format("after {:.2f} s a grain is nowhere: positions are not finite", time);
    // Contacts take energy, even those with the floor; finite time steps bring a little in.
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
  const weft::Device device = device_of(o);

  Grains grains(device, o.grains, o.above);
  const Totals start = grains.totals();
  Laws laws(start, o.grains);
  // The picture shows the whole way of the heap, from where the block hangs.
  const float size = float(std::cbrt(double(o.grains))) * 2.2f * kGrainRadius;
  const Camera camera{{1.15f * size, 1.1f * size, 2.5f * size}, {0.45f * size, 0.3f * size, 0}, 33};
  Film film(o, "dem",
            [&] { return draw_grains(grains.positions(), kGrainRadius, camera, o.width, o.height, o.samples); });
  Totals now = start;
  const std::string wrong = film.run([&](int frame) {
    grains.advance(o.substeps, kFrameTime / float(o.substeps));
    now = grains.totals();  // waits
    if (frame % 10 == 0 || frame == o.frames)
      fmt::print("frame {:4}  energy {:9.4g} J, mean speed {:6.3f} m/s, centre at {:6.3f} m\n", frame, now.energy,
                 now.speed, now.height);
    return laws.broken(now, frame * double(kFrameTime));
  });
  if (!wrong.empty()) return wrong;
  fmt::print("speed     {:.1f} ms per frame of {} steps, {:.1f} million grains moved per second\n",
             film.seconds_simulating() / o.frames * 1e3, o.substeps,
             double(o.frames) * o.substeps * o.grains / film.seconds_simulating() * 1e-6);
  film.finish();
  if (o.rest > 0 && now.speed > double(o.rest))
    return fmt::format("the grains have not come to rest: {:.3f} m/s in the mean", now.speed);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  o.frames = 100, o.substeps = 64, o.samples = 8;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--grains", o.grains, "How many")->check(CLI::Range(1, kMostGrains));
    app.add_option("--above", o.above, "Metres from the floor to the block")->check(CLI::Range(0.f, 100.f));
    app.add_option("--rest", o.rest, "Fail if the mean speed at the end is above this (m/s); 0: whatever it is")
        ->check(CLI::Range(0.f, 100.f));
  };
  return run_program({"dem", "Throws a block of cohesive grains on a floor and draws the heap that they become.", add,
                      [&] { check_options(o); }, [&] { return run(o); }},
                     argc, argv);
}
