// Pictures of the world: a path tracer in one kernel.
#pragma once
#include "picture.h"
#include "shape.h"

struct Camera {
  weft::vec3 eye, target;
  float view = 35;  ///< angle from the top of the picture to its bottom, in degrees
};

/// Draws the floor, the sphere and a shape, lit by a sun and the sky.
/// \param samples  paths per pixel; noise falls and time rises with their number
/// Errors: std::runtime_error if a position is not finite.
Picture draw(const Shape& shape, const Camera& camera, int width, int height, int samples);
