// What a grid of voxels is: the type of its values, what they mean, where it lies.
#pragma once
#include <cstdint>
#include <string>

#include "../../frontend/types/names.h"

namespace weft {

/// The type of a volume's values, by NanoVDB's numbers.
enum class VolumeType : std::uint32_t {
  float32 = 1,
  float64 = 2,
  int32 = 4,
  int64 = 5,
  vec3f = 6,
  vec3d = 7,
  float16 = 9,
  uint32 = 10,
  vec4f = 17,
  vec4d = 18,
  index = 19,    ///< no values: each voxel of a leaf has a number, by which programs keep values elsewhere
  on_index = 20  ///< likewise, but only active voxels have numbers
};
/// The name of a type in messages: "float32", "vec3d", ...
const char* to_string(VolumeType type);

/// What the values of a volume mean, by NanoVDB's numbers.
enum class VolumeClass : std::uint32_t {
  unknown = 0,
  level_set = 1,  ///< signed distances in a narrow band around a surface
  fog = 2,        ///< densities
  staggered = 3,  ///< vectors whose components belong to the faces of voxels
  point_index = 4,
  point_data = 5,
  topology = 6,
  voxels = 7,
  index = 8,
  tensor = 9
};

/// Facts about a volume. Index space counts voxels; world = matrix * index + translation.
struct VolumeInfo {
  std::string name;
  VolumeType type = VolumeType::float32;
  VolumeClass grid_class = VolumeClass::unknown;
  /// The number of active voxels in leaves; tiles do not count.
  std::int64_t voxels = 0;
  /// The number of leaves, of 8 x 8 x 8 voxels each.
  std::int64_t leaves = 0;
  /// What the last rebuild by a graph left out: leaves for which there was no room, and voxels too far away.
  std::int64_t left_out = 0;
  /// The least and the greatest coordinates of active voxels, as the grid states them. Without any, lower > upper.
  vec3i lower{}, upper{};
  mat33d matrix{};
  vec3d translation{};
  /// The sides of a voxel in world space.
  vec3d voxel_size{};
  /// The value where the grid has none, in the first components; 0 for index grids.
  vec4d background{};
  /// The size of the grid in memory.
  std::uint64_t bytes = 0;
};

}  // namespace weft
