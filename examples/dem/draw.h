// Pictures of grains on the floor.
#pragma once
#include <weft/runtime/geometry/bvh.h>
#include <weft/weft.h>

#include "../common/picture.h"
#include "../common/render.h"

/// Draws spheres, coloured by their number in as many layers as a block of them has, lit by a sun and the sky.
/// \param samples  rays through each pixel
Picture draw_grains(const weft::Array<weft::vec3>& centres, float radius, const Camera& camera, int width, int height,
                    int samples);
