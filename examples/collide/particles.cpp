// The kernels of waves, motion and contacts.
#include "particles.h"

#include <weft/runtime/geometry/mesh_query.h>

#include <cmath>

#include "../common/falling.h"
#include "../common/scene.h"

using namespace weft;

namespace {

constexpr float kSwell = 0.07f, kWaves = 7, kTurns = 2.5f;  // metres, per metre, per second (as angles)

// The wave is a function of the place at rest, so its velocity is known as well.
auto wave_kernel =
    kernel("waves", [](Arr<const vec3> rest, Arr<const vec3> normal, Arr<vec3> x, Arr<vec3> v, Float time) {
      Int i = tid();
      Vec3 p = rest[i], n = normal[i];
      Float phase = (p.x + 0.7f * p.y - 0.4f * p.z) * kWaves - time * kTurns;
      x[i] = p + n * (kSwell * sin(phase));
      v[i] = n * (-kSwell * kTurns * cos(phase));
    });

// Moves particles, which are balls represented by their centres: a ball touches the mesh if the centre is closer than
// its radius. A ball whose centre is inside by then is put outside again, on the side of the closest point.
auto step_kernel = kernel("step", [](Var<MeshArrays> mesh, Arr<vec3> x, Arr<vec3> v, Float radius, Float dt) {
  Int i = tid();
  Vec3 velocity = v[i];
  velocity.y -= kGravity * dt;
  Vec3 place = x[i] + velocity * dt;
  MeshPointHit near = mesh_query_point(mesh, place, 10 * radius, MeshSign::normal);
  If (near.hit & (near.sign * near.distance < radius)) {
    Vec3 closest = mesh_eval_position(mesh, near.face, near.u, near.v);
    Vec3 away = place - closest;
    // On the surface itself no direction leads to it.
    Vec3 normal = select(near.distance > 1e-6f, away * (near.sign / max(near.distance, 1e-6f)),
                         mesh_eval_face_normal(mesh, near.face));
    touch(place, velocity, normal, radius - near.sign * near.distance,
          mesh_eval_velocity(mesh, near.face, near.u, near.v));
  }
  If (place.y < radius) {
    touch(place, velocity, Vec3(0, 1, 0), radius - place.y);
  }
  x[i] = place;
  v[i] = velocity;
});

auto tally_kernel = kernel("tally", [](Var<MeshArrays> mesh, Arr<const vec3> x, Arr<int> counts, Float radius) {
  Vec3 place = x[tid()];
  MeshPointHit near = mesh_query_point(mesh, place, 10 * radius, MeshSign::normal);
  Float distance = select(near.hit, near.sign * near.distance, 10 * radius);
  If (distance < 1.5f * radius) {
    atomic_add(counts[0], 1);
  }
  If (distance < -0.5f * radius) {
    atomic_add(counts[1], 1);
  }
  If (place.y < 0.5f * radius) {
    atomic_add(counts[2], 1);
  }
  If (!(isfinite(place.x) && isfinite(place.y) && isfinite(place.z))) {
    atomic_add(counts[3], 1);
  }
});

}  // namespace

Waves::Waves(const Device& device, const BodyMesh& rest)
    : rest_(shape_of(device, rest)),
      positions_(rest_.positions.clone()),
      velocities_(zeros<vec3>(device, positions_.size())),
      mesh_(positions_, rest_.triangles, {.velocities = velocities_}) {}

void Waves::move_to(float seconds) {
  launch(wave_kernel, positions_.size(), rest_.positions, rest_.normals, positions_, velocities_, seconds);
  mesh_.refit();
}

Shape Waves::shape() const { return shape_of(positions_.clone(), rest_.triangles); }

Particles::Particles(const Device& device, int count, float radius, const vec3& centre, float width)
    : radius_(radius), x_(device, layers(count, radius, centre, width)), v_(zeros<vec3>(device, count)) {}

void Particles::step(const Mesh& mesh, float dt) { launch(step_kernel, x_.size(), mesh, x_, v_, radius_, dt); }

Tally Particles::tally(const Mesh& mesh) const {
  Array<int> counts = zeros<int>(x_.device(), 4);
  launch(tally_kernel, x_.size(), mesh, x_, counts, radius_);
  const std::vector<int> c = counts.to_vector();
  return {c[0], c[1], c[2], c[3]};
}

Array<vec4> Particles::places() const { return balls_at(x_, radius_); }
