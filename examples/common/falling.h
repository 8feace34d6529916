// Small balls that fall on surfaces: where they start, and what a contact does to them.
#pragma once
#include <weft/weft.h>

#include <vector>

/// The centres of `count` balls in a block of square layers, the lowest of them around `centre`.
/// \param width  of the block
std::vector<weft::vec3> layers(int count, float radius, const weft::vec3& centre, float width);

/// Balls as the renderer takes them: centre and radius.
weft::Array<weft::vec4> balls_at(const weft::Array<weft::vec3>& centres, float radius);

/// In a kernel: puts a ball that reaches `depth` into a surface on the surface, and bounces it off, with friction.
/// \param normal   of the surface, with length 1, toward the ball's side
/// \param surface  the velocity of the surface
void touch(weft::Vec3& place, weft::Vec3& velocity, const weft::Vec3& normal, const weft::Float& depth,
           const weft::Vec3& surface = weft::Vec3(0.f));
