// The kernels of waves, motion and contacts.
#include "particles.h"

#include <weft/runtime/geometry/mesh_query.h>

#include <cmath>

#include "../common/scene.h"

using namespace weft;

namespace {

constexpr float kSwell = 0.07f, kWaves = 7, kTurns = 2.5f;  // metres, per metre, per second (as angles)
constexpr float kBounce = 0.3f, kFriction = 0.25f;

// The wave is a function of the place at rest, so its velocity is known as well.
auto wave_kernel =
    kernel("waves", [](Arr<const vec3> rest, Arr<const vec3> normal, Arr<vec3> x, Arr<vec3> v, Float time) {
      Int i = tid();
      Vec3 p = rest[i], n = normal[i];
      Float phase = (p.x + 0.7f * p.y - 0.4f * p.z) * kWaves - time * kTurns;
      x[i] = p + n * (kSwell * sin(phase));
      v[i] = n * (-kSwell * kTurns * cos(phase));
    });

// Sums the triangles' normals by area; drawing does not depend on the length of a sum.
auto normal_kernel = kernel("surface normals", [](Arr<const vec3> x, Arr<const vec3i> triangles, Arr<vec3> normal) {
  Vec3i t = triangles[tid()];
  Vec3 a = x[t.x];
  Vec3 area = cross(x[t.y] - a, x[t.z] - a);
  for (int k = 0; k < 3; ++k) atomic_add(normal[t[k]], area);
});

// Moves particles, which are balls represented by their centres: a ball touches the mesh if the centre is closer than
// its radius. A ball whose centre is inside by then is put outside again, on the side of the closest point.
auto step_kernel = kernel("step", [](Var<MeshArrays> mesh, Arr<vec3> x, Arr<vec3> v, Float radius, Float dt) {
  Int i = tid();
  Vec3 velocity = v[i];
  velocity.y -= kGravity * dt;
  Vec3 place = x[i] + velocity * dt;
  const auto touch = [&](const Vec3& normal, const Float& depth, const Vec3& surface_velocity) {
    place += normal * depth;
    Vec3 slide = velocity - surface_velocity;
    Float into = dot(slide, normal);
    If (into < 0) {
      Vec3 along = slide - normal * into;
      Float speed = length(along);
      Float kept = max(1 - kFriction * -into * (1 + kBounce) / max(speed, 1e-6f), 0.f);
      velocity = surface_velocity + along * kept - normal * (into * kBounce);
    }
  };
  MeshPointHit near = mesh_query_point(mesh, place, 10 * radius, MeshSign::normal);
  If (near.hit & (near.sign * near.distance < radius)) {
    Vec3 closest = mesh_eval_position(mesh, near.face, near.u, near.v);
    Vec3 away = place - closest;
    // On the surface itself no direction leads to it.
    Vec3 normal = select(near.distance > 1e-6f, away * (near.sign / max(near.distance, 1e-6f)),
                         mesh_eval_face_normal(mesh, near.face));
    touch(normal, radius - near.sign * near.distance, mesh_eval_velocity(mesh, near.face, near.u, near.v));
  }
  If (place.y < radius) {
    touch(Vec3(0, 1, 0), radius - place.y, Vec3(0, 0, 0));
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

Shape Waves::shape() const {
  const Array<vec3> normals = zeros<vec3>(positions_.device(), positions_.size());
  launch(normal_kernel, rest_.triangles.size(), positions_, rest_.triangles, normals);
  return {positions_.clone(), rest_.triangles, normals};
}

Particles::Particles(const Device& device, int count, float radius, const vec3& centre, float width)
    : radius_(radius), v_(zeros<vec3>(device, count)) {
  const int row = std::max(1, int(width / (2.5f * radius)));
  std::vector<vec3> places;
  for (int k = 0; k < count; ++k) {
    const int i = k % row, j = k / row % row, layer = k / (row * row);
    // Every layer is shifted, so that the particles of a column do not all go the same way.
    const float shift = 0.37f * float(layer % 5);
    places.push_back({centre.x + ((float(i) + shift) / float(row) - 0.5f) * width,
                      centre.y + 2.5f * radius * float(layer),
                      centre.z + ((float(j) + 0.6f * shift) / float(row) - 0.5f) * width});
  }
  x_ = Array<vec3>(device, places);
}

void Particles::step(const Mesh& mesh, float dt) { launch(step_kernel, x_.size(), mesh, x_, v_, radius_, dt); }

Tally Particles::tally(const Mesh& mesh) const {
  Array<int> counts = zeros<int>(x_.device(), 4);
  launch(tally_kernel, x_.size(), mesh, x_, counts, radius_);
  const std::vector<int> c = counts.to_vector();
  return {c[0], c[1], c[2], c[3]};
}

Array<vec4> Particles::places() const {
  std::vector<vec4> places;
  for (const vec3& p : x_.to_vector()) places.push_back(vec4(p.x, p.y, p.z, radius_));
  return Array<vec4>(x_.device(), places);
}
