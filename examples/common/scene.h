// The obstacles of the world besides the body, on which simulation and renderer agree.
#pragma once
#include <weft/weft.h>

/// Lengths in metres, y upwards; the floor is the plane y = 0.
constexpr float kSphereRadius = 0.7f;
constexpr weft::vec3 kSphereCentre{0, kSphereRadius, 0};
constexpr float kGravity = 9.81f;
