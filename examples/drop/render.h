// Pictures of the world: a path tracer in one kernel.
#pragma once
#include "body.h"
#include "picture.h"

struct Camera {
  weft::vec3 eye, target;
  float view = 35;  ///< angle from the top of the picture to its bottom, in degrees
};

/// Draws the floor, the sphere and the body, lit by a sun and the sky.
/// \param samples  paths per pixel; noise falls and time rises with their number
/// Errors: std::runtime_error if the body has flown apart.
Picture draw(const Body& body, const Camera& camera, int width, int height, int samples);
