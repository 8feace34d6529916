// Volumes in the scene: files have their own units and origin.
#pragma once
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_query.h>
#include <weft/weft.h>

#include <limits>
#include <string>
#include <vector>

/// Where the world space of volumes lies in the scene: scene = world * scale + offset.
struct Placement {
  float scale = 1;
  weft::vec3 offset;
};

/// A box in the scene; empty before the first point is added.
struct SceneBox {
  weft::vec3 lower{std::numeric_limits<float>::max()}, upper{std::numeric_limits<float>::lowest()};
  void add(const weft::vec3& point);
};

/// Reads a grid of a file, of float32 values. An empty name takes the first grid.
/// Errors: std::runtime_error for another type of values or a grid without active voxels; weft::Error(io).
weft::Volume read_volume(const weft::Device& device, const std::string& path, const std::string& name);

/// The placement in which the active voxels of all volumes lie in a box whose longest side is `size`, with its lowest
/// point at height `lowest` and its centre above the origin.
Placement place_volumes(const std::vector<weft::Volume>& volumes, float size, float lowest);
/// The box around the active voxels of a volume.
SceneBox box_of(const weft::Volume& volume, const Placement& placement);
/// The corners of a box.
std::vector<weft::vec3> corners_of(const SceneBox& box);

/// In a kernel: a level set's distance at a point of the scene, and the direction in which it grows, of length 1, or 0
/// where the volume does not tell, as outside of its band.
struct SceneDistance {
  weft::Float distance;
  weft::Vec3 normal;
};
SceneDistance distance_at(weft::VolumeAccessor<float>& surface, const weft::Var<weft::VolumeArrays>& volume,
                          const weft::Vec3& point, const weft::Float& scale, const weft::Vec3& offset);
