// Files of volumes, and their boxes and distances in the scene.
#include "placed_volume.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

using namespace weft;

Volume read_volume(const Device& device, const std::string& path, const std::string& name) {
  const Volume volume = Volume::load(device, path, {.name = name});
  const VolumeInfo& info = volume.info();
  if (info.type != VolumeType::float32)
    throw std::runtime_error(
        fmt::format("{}: the grid \"{}\" has values of type {}, not float32", path, info.name, to_string(info.type)));
  if (info.lower.x > info.upper.x)
    throw std::runtime_error(fmt::format("{}: the grid \"{}\" has no active voxels", path, info.name));
  return volume;
}

void SceneBox::add(const vec3& point) {
  for (int k = 0; k < 3; ++k) {
    lower[k] = std::min(lower[k], point[k]);
    upper[k] = std::max(upper[k], point[k]);
  }
}

SceneBox box_of(const Volume& volume, const Placement& placement) {
  const VolumeInfo& info = volume.info();
  SceneBox box;
  for (int corner = 0; corner < 8; ++corner) {
    vec3d index;
    for (int k = 0; k < 3; ++k) index[k] = corner >> k & 1 ? info.upper[k] : info.lower[k];
    box.add(vec3(info.matrix * index + info.translation) * placement.scale + placement.offset);
  }
  return box;
}

Placement place_volumes(const std::vector<Volume>& volumes, float size, float lowest) {
  SceneBox all;
  for (const Volume& v : volumes)
    for (const vec3& p : corners_of(box_of(v, {}))) all.add(p);
  const vec3 sides = all.upper - all.lower;
  const float scale = size / std::max({sides.x, sides.y, sides.z, std::numeric_limits<float>::min()});
  const vec3 middle = (all.lower + all.upper) * 0.5f;
  return {scale, vec3{-middle.x * scale, lowest - all.lower.y * scale, -middle.z * scale}};
}

std::vector<vec3> corners_of(const SceneBox& box) {
  std::vector<vec3> corners;
  for (int corner = 0; corner < 8; ++corner) {
    vec3 p = box.lower;
    for (int k = 0; k < 3; ++k)
      if (corner >> k & 1) p[k] = box.upper[k];
    corners.push_back(p);
  }
  return corners;
}

SceneDistance distance_at(VolumeAccessor<float>& surface, const Var<VolumeArrays>& volume, const Vec3& point,
                          const Float& scale, const Vec3& offset) {
  VolumeSlope<float> slope = surface.sample_slope(volume_world_to_index(volume, (point - offset) / scale));
  // The slope by world space is the transposed inverse of the matrix, applied to that by index space.
  Vec3 up;
  for (int k = 0; k < 3; ++k) {
    vec3 axis;
    axis[k] = 1;
    up[k] = dot(slope.gradient, volume_world_to_index_dir(volume, Vec3(axis)));
  }
  Float steep = length(up);
  return {slope.value * scale, select(steep > 1e-6f, up / max(steep, 1e-6f), Vec3(0.f))};
}
