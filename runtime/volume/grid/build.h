// Makes grids in the memory of the host from their leaves.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "check.h"

namespace weft::grids {

/// A leaf of a grid to be made.
struct LeafPlan {
  vec3i origin;                           ///< multiples of 8
  std::array<std::uint64_t, 8> active{};  ///< the mask: word x, bit 8 y + z
};

/// The facts of a grid to be made.
struct GridPlan {
  VolumeType type = VolumeType::float32;
  VolumeClass grid_class = VolumeClass::unknown;
  std::string name;
  mat33d matrix{};
  vec3d translation{};
  std::vector<std::byte> background;  ///< a value
};

/// The place of a voxel among the 512 of a leaf.
constexpr int place_in_leaf(int x, int y, int z) { return (x & 7) << 6 | (y & 7) << 3 | (z & 7); }

/// The leaves in which voxels lie, each once, in the order of build_grid(). With `all`, all voxels of these leaves are
/// active, else the given ones.
std::vector<LeafPlan> leaves_of(std::span<const vec3i> voxels, bool all);

/// The grid of these leaves, whose values are all the background's, with its checksums. Index grids number their
/// voxels.
/// \param leaves  in the order of leaves_of(), each once
/// Errors: NoGrid for a transform that is not finite or has no inverse, a name that is too long, or too many leaves.
std::vector<std::byte> build_grid(const GridPlan& plan, std::span<const LeafPlan> leaves);

/// Writes the transform of a grid, with its inverse and the size of voxels. Errors: NoGrid if it is not finite or has
/// no inverse.
void put_transform(std::span<std::byte> grid, const mat33d& matrix, const vec3d& translation);
/// Writes the box in world space of what is active, by the transform and by the root's box.
void put_world_box(std::span<std::byte> grid, const Levels& levels);

}  // namespace weft::grids
