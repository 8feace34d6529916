// A soft body: the vertices of a mesh as masses, joined by springs.
#pragma once
#include "mesh.h"
#include "shape.h"

class Body {
 public:
  /// Joins the vertices of a mesh by springs of three kinds, all at rest in the mesh as given: its edges; struts, which
  /// cross the inside and hold the shape; links between parts of the mesh that are not connected.
  Body(const weft::Device& device, const BodyMesh& mesh);

  /// Advances by `count` steps of dt seconds. Stable for any dt up to kLongestStep; a longer one makes the springs
  /// softer. Returns at once. A tape can record it; after an even count the same two arrays hold the state.
  void advance(int count, float dt);

  /// Puts the vertices at `positions` and gives all of them the velocity that is the one element of `velocity`. On a
  /// tape both carry gradients.
  void start(const weft::Array<weft::vec3>& positions, const weft::Array<weft::vec3>& velocity);

  /// The body as it is now, for drawing: later steps do not change it.
  Shape shape() const;

  const weft::Array<weft::vec3>& positions() const { return x_; }
  std::int64_t springs() const { return other_.size() / 2; }

 private:
  /// The normal of each vertex.
  weft::Array<weft::vec3> normals() const;

  weft::Array<weft::vec3> x_, v_, x_new_, v_new_;
  weft::Array<weft::vec3i> triangles_;
  weft::Array<int> triangles_first_, triangles_list_;  // of each vertex (Adjacency)
  weft::Array<int> first_, other_;                     // the springs of each vertex: the vertex at the other end,
  weft::Array<weft::vec2> spring_;                     // rest length and share of the stiffness
};
