// Cameras: where a picture is seen from.
#pragma once
#include <weft/weft.h>

struct Camera {
  weft::vec3 eye, target;
  float view = 35;  ///< angle from the top of the picture to its bottom, in degrees
};

/// The directions of the rays through a picture: forward + across * right - down * up, where across and down go from -1
/// at the left and the top to 1.
struct CameraFrame {
  weft::vec3 forward, right, up;
};

CameraFrame frame_of(const Camera& camera, int width, int height);

/// Moves the eye back, straight away from the target, until all points are in a picture of this size with a little
/// margin.
void show_all(Camera& camera, const std::vector<weft::vec3>& points, int width, int height);
