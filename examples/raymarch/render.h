// Pictures of volumes: a surface and fog in sun and sky, by paths of light.
#pragma once
#include <weft/runtime/volume/volume.h>

#include "../common/camera.h"
#include "../common/picture.h"
#include "../common/placed_volume.h"

/// What a picture shows. A null volume is left out; one of the two is there.
struct VolumeScene {
  weft::Volume surface;  ///< a level set of float32 values
  weft::Volume fog;      ///< densities of float32 values, at least 0
  Placement placement;
  float thickness = 1;  ///< how much of the light a density of 1 scatters away on a metre of the scene: 1 - 1 / e
};

/// What was seen through pixels, at the first of their paths.
struct Seen {
  int surface = 0, fog = 0;
};

/// Draws the scene on a floor at height 0.
/// \param samples  paths through each pixel
Picture draw(const VolumeScene& scene, const Camera& camera, int width, int height, int samples, Seen& seen);
