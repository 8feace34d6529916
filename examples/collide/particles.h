// Particles that fall on a moving mesh.
#pragma once
#include <weft/runtime/geometry/mesh.h>

#include "../common/shape.h"

/// A mesh with waves that run along its surface.
class Waves {
 public:
  Waves(const weft::Device& device, const BodyMesh& rest);

  /// Moves the surface to its place at a time, in seconds, and refits the mesh.
  void move_to(float seconds);
  const weft::Mesh& mesh() const { return mesh_; }
  /// The surface as it is now.
  Shape shape() const;

 private:
  Shape rest_;
  weft::Array<weft::vec3> positions_, velocities_;
  weft::Mesh mesh_;
};

struct Tally {
  std::int64_t touching = 0;  ///< particles within a radius and a half of the mesh
  std::int64_t inside = 0;    ///< further inside than half a radius
  std::int64_t below = 0;     ///< below the floor
  std::int64_t lost = 0;      ///< not finite
};

class Particles {
 public:
  /// Puts `count` particles, at rest, in a block of layers above the place `centre`.
  Particles(const weft::Device& device, int count, float radius, const weft::vec3& centre, float width);

  /// Advances by one step of `dt` seconds: gravity, then contacts with the mesh and the floor.
  void step(const weft::Mesh& mesh, float dt);
  Tally tally(const weft::Mesh& mesh) const;
  /// The centre and radius of each particle.
  weft::Array<weft::vec4> places() const;

 private:
  float radius_;
  weft::Array<weft::vec3> x_, v_;
};
