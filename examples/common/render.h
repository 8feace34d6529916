// Pictures of the world: a path tracer in one kernel.
#pragma once
#include <weft/runtime/geometry/mesh_query.h>

#include <functional>

#include "camera.h"
#include "picture.h"
#include "shape.h"

/// Balls that stand in the world.
struct Balls {
  weft::Array<weft::vec4> places;   ///< centre and radius
  weft::Array<weft::vec3> colours;  ///< from 0 to 1
  float mirror = 0.02f;             ///< part of the light that is mirrored, seen straight on
};

/// The options of a picture.
struct View {
  Camera camera;
  int width = 640, height = 360;
  int samples = 16;  ///< paths per pixel; noise falls and time rises with their number
  weft::RaySearch search = weft::RaySearch::walk;
  std::function<void(int done, int all)> progress = {};  ///< if not empty, told of rows as they are drawn
};

/// Draws the floor at height 0, a shape and balls, lit by a sun and the sky. Null arrays leave the shape or the balls
/// out.
/// Errors: weft::Error(invalid_argument) if a position is not finite.
Picture draw(const Shape& shape, const Balls& balls, const View& view);

/// The ball of scene.h.
Balls sphere_of_scene(const weft::Device& device);
