// A soft body: the vertices of a mesh as masses, joined by springs.
#pragma once
#include "mesh.h"

class Body {
 public:
  /// Joins the vertices of a mesh by springs of three kinds, all at rest as the mesh stands: its edges; struts, which
  /// cross the inside and hold the shape; links between parts of the mesh that do not hang together.
  Body(const weft::Device& device, const Mesh& mesh);

  /// Advances by `count` steps of dt seconds. Stable for any dt up to kLongestStep; a longer one makes the springs
  /// softer. Returns at once.
  void advance(int count, float dt);

  /// The normal of each vertex, for drawing.
  weft::Array<weft::vec3> normals() const;

  const weft::Array<weft::vec3>& positions() const { return x_; }
  const weft::Array<weft::vec3i>& triangles() const { return triangles_; }
  std::int64_t springs() const { return other_.size() / 2; }

 private:
  weft::Array<weft::vec3> x_, v_, x_new_, v_new_;
  weft::Array<weft::vec3i> triangles_;
  weft::Array<int> triangles_first_, triangles_list_;  // of each vertex (Adjacency)
  weft::Array<int> first_, other_;                     // the springs of each vertex: the vertex at the other end,
  weft::Array<weft::vec2> spring_;                     // rest length and share of the stiffness
};
