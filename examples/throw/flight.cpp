// The flight: steps of the body on a tape, and the distance that is left.
#include "flight.h"

#include <array>

using namespace weft;

namespace {

auto centre_kernel = kernel(
    "throw_centre", [](Arr<const vec3> x, Arr<vec3> centre) { atomic_add(centre[0], x[tid()] / Float(x.shape(0))); });

auto loss_kernel = kernel("throw_loss", [](Arr<const vec3> centre, Vec3 target, Arr<float> loss) {
  Vec3 left = centre[0] - target;
  loss[0] = dot(left, left);
});

}  // namespace

Flight::Flight(const Device& device, const BodyMesh& mesh, const Throw& plan)
    : body_(device, mesh),
      plan_(plan),
      start_(device, mesh.positions),
      velocity_(zeros<vec3>(device, 1).requires_grad()),
      centre_(zeros<vec3>(device, 1)),
      loss_(zeros<float>(device, 1)) {}

Flight::Result Flight::miss(const vec3& velocity) {
  velocity_.fill(velocity);
  velocity_.zero_grad();
  Tape tape;
  tape.record([&] {
    body_.start(start_, velocity_);
    // A step of the tape is two steps of the body, so that all of them work on the same arrays (Body::advance).
    tape.checkpointed(plan_.steps / 2, plan_.slots, [&](int) { body_.advance(2, dt()); });
    centre_.zero();
    launch(centre_kernel, body_.positions().size(), body_.positions(), centre_);
    launch(loss_kernel, 1, centre_, plan_.target, loss_);
  });
  tape.backward(loss_);
  return {loss_.at(0), velocity_.grad().at(0)};
}

std::vector<Shape> Flight::shapes(const vec3& velocity, int count) {
  velocity_.fill(velocity);
  body_.start(start_, velocity_);
  std::vector<Shape> shapes = {body_.shape()};
  for (int k = 1, done = 0; k < count; ++k) {
    const int until = plan_.steps * k / (count - 1);
    body_.advance(until - done, dt());
    done = until;
    shapes.push_back(body_.shape());
  }
  return shapes;
}
