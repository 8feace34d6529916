// A surface as it stands at one moment, ready to be drawn.
#pragma once
#include <weft/weft.h>

#include <vector>

#include "mesh.h"

/// Triangles over vertices, counter-clockwise seen from outside, and the normal of each vertex.
struct Shape {
  weft::Array<weft::vec3> positions;
  weft::Array<weft::vec3i> triangles;
  weft::Array<weft::vec3> normals;
};

/// A mesh as it is. The normal of a vertex is the mean of those of its triangles, by area.
Shape shape_of(const weft::Device& device, const BodyMesh& mesh);

/// All shapes in one picture: one shape of all their triangles.
/// Cost: all go through the host.
Shape together(const std::vector<Shape>& shapes);

/// A flat ring that lies on the floor, 1 cm above it: marks a place.
Shape floor_ring(const weft::Device& device, const weft::vec3& centre, float inner, float outer);
