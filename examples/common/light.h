// The light of the world, and how a picture shows it: what the path tracers agree on.
#pragma once
#include <weft/weft.h>

/// The direction to the sun, its light, and its radius as seen from here, in radians: how soft shadows are.
inline const weft::vec3 kSun = normalize(weft::vec3{-0.55f, 0.75f, 0.42f});
constexpr weft::vec3 kSunLight{3.4f, 2.95f, 2.4f};
constexpr float kSunSize = 0.035f;
/// A distance beyond everything.
constexpr float kFar = 1e6f;
/// A ray starts this far off the surface that it leaves.
constexpr float kOffset = 1e-3f;

/// The light that comes from the sky, out of a direction of length 1.
weft::Vec3 sky(const weft::Vec3& direction);
/// The colour of the floor at a point: squares of half a metre.
weft::Vec3 floor_colour(const weft::Vec3& point);
/// How much of the light gets through the haze over a distance: the far floor fades into the sky, so that its squares
/// do not flicker there.
weft::Float clear_air(const weft::Float& distance);
/// A direction around an axis: at angle `turn` (in turns), and with `sine` as the sine of its angle to the axis.
weft::Vec3 around(const weft::Vec3& axis, const weft::Float& turn, const weft::Float& sine);
/// The pixel of a Picture for an amount of light: 8 bits for each colour, by a curve like that of film.
weft::UInt film_pixel(const weft::Vec3& light);
