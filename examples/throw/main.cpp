// throw: finds by gradient descent how a soft body must be thrown to land on a target; draws first and last flight.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "../common/program.h"
#include "../common/render.h"
#include "flight.h"

using weft::vec3;

namespace {

struct Options : DrawingOptions {
  int rings = 150, iterations = 12, steps = 1200, slots = 12;
};

constexpr float kFall = 100;  // the loss must be divided by this
constexpr float kBodySize = 1.2f, kStartHeight = 0.5f, kStartX = -3.2f, kStartZ = 1.9f;
constexpr vec3 kTarget{2.6f, 0.18f, 1.7f};     // the body's centre is about so high when it lies on the floor
constexpr vec3 kFirstVelocity{2.6f, 5, 0.7f};  // much too short, and to the wrong side
constexpr float kLargestChange = 1.5f;         // m/s
constexpr int kMoments = 7;                    // drawn of a flight

/// Draws the body at several moments of its flight, and the target, in one picture.
Picture draw_flight(Flight& flight, const vec3& velocity, const Options& o) {
  std::vector<Shape> shapes = flight.shapes(velocity, kMoments);
  const weft::Device device = shapes.front().positions.device();
  shapes.push_back(floor_ring(device, kTarget, 0.55f, 0.7f));
  shapes.push_back(floor_ring(device, kTarget, 0.15f, 0.3f));
  const Camera camera{{0.6f, 3.6f, 8.2f}, {-0.2f, 0.75f, 0}, 34};
  return draw(together(shapes), sphere_of_scene(device), {camera, o.width, o.height, o.samples});
}

/// \return  a description of what is wrong with the outcome, if anything
std::string run(const Options& o) {
  const weft::Device device = device_of(o);
  BodyMesh mesh = torus_knot(o.rings);
  place(mesh, kBodySize, kStartHeight, kStartX, kStartZ);
  Throw plan{kTarget};
  plan.steps = o.steps;
  plan.slots = o.slots;
  Flight flight(device, mesh, plan);
  fmt::print("body      {} vertices, {} springs; flight of {} steps\n", mesh.positions.size(), flight.body().springs(),
             o.steps);
  const std::filesystem::path folder = folder_of(o);

  // If the body stayed in the air, its centre would move by velocity * seconds, and the loss would be a parabola of
  // curvature 2 * seconds^2, whose lowest point this rate meets in one step.
  const float rate = 0.5f / (plan.seconds * plan.seconds);
  const Stopwatch watch;
  vec3 velocity = kFirstVelocity, best_velocity = velocity;
  float first = 0, best = 0;
  for (int k = 0; k < o.iterations; ++k) {
    const Flight::Result r = flight.miss(velocity);
    fmt::print("throw {:3}: velocity {:6.3f} {:6.3f} {:6.3f}  loss {:.3e}\n", k, velocity.x, velocity.y, velocity.z,
               r.loss);
    std::fflush(stdout);
    if (k == 0) first = r.loss;
    if (k == 0 || r.loss < best) {
      best = r.loss;
      best_velocity = velocity;
    }
    // A body that tumbles over the floor has neighbouring flights that end far apart, with equally steep gradients.
    const vec3 change = r.gradient * -rate;
    velocity += change * std::min(1.f, kLargestChange / std::max(length(change), 1e-9f));
  }
  fmt::print("speed     {:.2f} s per throw and its gradient\n", watch.seconds() / o.iterations);

  const Stopwatch drawing;
  const Picture picture =
      contact_sheet({draw_flight(flight, kFirstVelocity, o), draw_flight(flight, best_velocity, o)});
  write_png(folder / "throw.png", picture);
  fmt::print("picture   {}: first and best throw, drawn in {:.1f} s\n",
             std::filesystem::absolute(folder / "throw.png").string(), drawing.seconds());
  fmt::print("loss      {:.3e} to {:.3e}: {:.0f} times less\n", first, best, first / best);
  return best * kFall <= first ? std::string() : fmt::format("the loss did not fall by {} times", kFall);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--rings", o.rings, "Detail of the body: 500 is the one of drop")->check(CLI::Range(20, 2000));
    app.add_option("--iterations", o.iterations, "Throws, each better than the last")->check(CLI::Range(2, 1000));
    app.add_option("--steps", o.steps, "Steps of a flight, an even number")->check(CLI::Range(300, 100000));
    app.add_option("--slots", o.slots, "States of the body that are kept for the way back")
        ->check(CLI::Range(1, 10000));
  };
  const auto check = [&] {
    if (o.steps % 2 != 0) throw CLI::ValidationError("--steps", fmt::format("{} is not even", o.steps));
  };
  return run_program({"throw", "Throws a soft body so that it lands on a target: gradient descent through the flight.",
                      add, check, [&] { return run(o); }},
                     argc, argv);
}
