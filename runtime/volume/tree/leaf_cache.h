// The walk from the root of a volume to a voxel, and the block of voxels where the last one ended. Internal to volumes.
#pragma once
#include <tuple>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/struct_var.h"
#include "../volume_info.h"
#include "volume_arrays.h"

namespace weft::detail {

/// A parameter as a traced value.
template <class T>
Var<T> value(const In<T>& given) {
  if constexpr (Scalar<T>)
    return Var<T>(given.id, FromId{});
  else
    return from_ids<T>(given.id);
}

/// Finds voxels of one volume in a kernel, and keeps the block of 8 x 8 x 8 voxels in which it found the last one.
///
/// All voxels of a block lie in one leaf, or share one value of a tile or the background. A voxel is told as its
/// element: the place of its value's first scalar in the array of such scalars.
class LeafCache {
 public:
  /// \param held  whether the volume was found by its handle: it may be none, or one of another type, and then has no
  ///              elements
  LeafCache(const Var<VolumeArrays>& volume, bool held, VolumeType type, Loc loc);

  /// The element of a voxel.
  Int find(const Int& i, const Int& j, const Int& k);
  /// The elements of the voxels (i, j, k) + (a, b, c), at place 4 a + 2 b + c. Keeps the block of the first one.
  /// Cost: a walk for each block that the cube reaches: one cube of three lies in two or more. The threads of a
  /// subgroup walk to the blocks of one side together.
  void find_cube(const Int& i, const Int& j, const Int& k, Int (&elements)[8]);
  /// Whether the voxel found last is one of a leaf.
  Bool in_leaf() const { return last_.leaf != 0; }

  const Var<VolumeArrays>& volume() const { return volume_; }
  bool held() const { return held_; }
  /// Whether a volume found by its handle has values of the type.
  const Bool& usable() const { return usable_; }

 private:
  struct Block {
    Int first = 0;  ///< the element of its first voxel
    Int leaf = 0;   ///< the place of its leaf; 0: none
  };
  Block walk(const Int& x, const Int& y, const Int& z) const;
  Int element(const Block& block, const Int& i, const Int& j, const Int& k) const;

  const Var<VolumeArrays> volume_;
  const bool held_;
  const VolumeType type_;
  const ir::RegionId made_in_;
  bool fresh_ = true;  ///< while traced: nothing was found yet
  Bool usable_ = true;
  Int tiles_;
  Int x_, y_, z_;  ///< the block
  Block last_;
};

/// The numbers of the root's tiles and of leaves; 0 where a handle led to no volume.
Int tile_count(const Var<VolumeArrays>& volume);
Int leaf_count(const Var<VolumeArrays>& volume);

/// The leaf of a voxel in a volume of any type, as its place in words; 0: none.
Int find_leaf(const Var<VolumeArrays>& volume, const Int& i, const Int& j, const Int& k);

/// The largest aligned cube around a voxel that is one leaf, or has one value.
struct VolumeBlock {
  Int log;      ///< log2 of its side: 3, 7 or 12
  Int leaf;     ///< the place of the leaf in words; 0: none
  Bool active;  ///< a leaf, or an active tile
};
VolumeBlock find_block(const Var<VolumeArrays>& volume, const Vec3i& voxel);

/// The number of a voxel among those of a leaf.
inline Int place_in_leaf(const Int& i, const Int& j, const Int& k) { return ((i & 7) << 6) | ((j & 7) << 3) | (k & 7); }

/// The least corner of the leaf at a place in words.
Vec3i leaf_corner(const Var<VolumeArrays>& volume, const Int& leaf);
/// The voxel with a number among those of the leaf at a place in words; the inverse of place_in_leaf.
Vec3i voxel_in_leaf(const Var<VolumeArrays>& volume, const Int& leaf, const Int& number);

}  // namespace weft::detail
