// A surface at one moment, ready to be drawn.
#pragma once
#include <weft/runtime/volume/volume_surface.h>
#include <weft/weft.h>

#include <vector>

#include "mesh.h"

/// Triangles over vertices, counter-clockwise seen from outside, and the normal of each vertex.
struct Shape {
  weft::Array<weft::vec3> positions;
  weft::Array<weft::vec3i> triangles;
  weft::Array<weft::vec3> normals;
};

/// The shape of a mesh. The normal of a vertex is the mean of those of its triangles, weighted by area.
Shape shape_of(const weft::Device& device, const BodyMesh& mesh);

/// The same of arrays on a device, by a kernel.
Shape shape_of(const weft::Array<weft::vec3>& positions, const weft::Array<weft::vec3i>& triangles);
/// The same of the surface of a volume, or of a block of values.
Shape shape_of(const weft::VolumeSurface& surface);

/// Joins shapes into one, so that one picture shows them all.
/// Cost: all shapes go through the host.
Shape together(const std::vector<Shape>& shapes);

/// A flat ring, 1 cm above the floor, that marks a place.
Shape floor_ring(const weft::Device& device, const weft::vec3& centre, float inner, float outer);
