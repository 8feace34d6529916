// Handles, transforms, and numbers of voxels.
#include "../../../frontend/language/detach.h"
#include "../../geometry/structures/read_handle.h"
#include "../grid/layout.h"
#include "../volume_query.h"
#include "leaf_cache.h"

namespace weft {

using detail::value;

Var<VolumeArrays> volume_at(In<std::uint64_t> id, Loc loc) {
  return detail::structure_at<VolumeArrays>(
      id, {detail::kVolumeTag, "a volume", "names no volume, or one that is no more"}, loc);
}

namespace detail {
namespace {

/// A number of the transform, which is a constant where the volume was found by its handle.
Float number(const VolumeInKernel& volume, int k) {
  const Float x = volume.arrays.transform[k];
  return volume.held ? Float(detach(x)) : x;
}

/// The product of a matrix of the transform, which begins at `first`, and a vector, summed from left to right.
Vec3 matrix_times(const VolumeInKernel& volume, int first, const Vec3& v) {
  Vec3 r;
  for (int k = 0; k < 3; ++k) {
    const int row = first + 3 * k;
    r[k] = v.x * number(volume, row) + v.y * number(volume, row + 1) + v.z * number(volume, row + 2);
  }
  return r;
}

constexpr int kInverse = 9, kTranslation = 18;

Vec3 translation(const VolumeInKernel& volume) {
  return Vec3(number(volume, kTranslation), number(volume, kTranslation + 1), number(volume, kTranslation + 2));
}

/// Calls f, which reads the volume's arrays; a handle that leads to no volume gives zeros.
template <class F>
Vec3 guarded(const VolumeInKernel& volume, F f) {
  if (!volume.held) return f();
  Vec3 r(0.f, 0.f, 0.f);
  If (volume.arrays.tag != 0u) {
    r = f();
  }
  return r;
}

}  // namespace
}  // namespace detail

Vec3 volume_index_to_world(const VolumeInKernel& volume, In<vec3> point, Loc loc) {
  tracing::CallPlace place(loc);
  const Vec3 p = value(point);
  return detail::guarded(volume,
                         [&] { return Vec3(detail::matrix_times(volume, 0, p) + detail::translation(volume)); });
}
Vec3 volume_world_to_index(const VolumeInKernel& volume, In<vec3> point, Loc loc) {
  tracing::CallPlace place(loc);
  const Vec3 p = value(point);
  return detail::guarded(
      volume, [&] { return detail::matrix_times(volume, detail::kInverse, Vec3(p - detail::translation(volume))); });
}
Vec3 volume_index_to_world_dir(const VolumeInKernel& volume, In<vec3> direction, Loc loc) {
  tracing::CallPlace place(loc);
  const Vec3 d = value(direction);
  return detail::guarded(volume, [&] { return detail::matrix_times(volume, 0, d); });
}
Vec3 volume_world_to_index_dir(const VolumeInKernel& volume, In<vec3> direction, Loc loc) {
  tracing::CallPlace place(loc);
  const Vec3 d = value(direction);
  return detail::guarded(volume, [&] { return detail::matrix_times(volume, detail::kInverse, d); });
}

Int volume_voxel_count(const VolumeInKernel& volume, Loc loc) {
  tracing::CallPlace place(loc);
  Int count = 0;
  If (volume.arrays.tag != 0u) {
    count = volume.arrays.voxels_before[detail::leaf_count(volume.arrays)];
  }
  return count;
}

Vec3i volume_voxel(const VolumeInKernel& volume, In<int> number, Loc loc) {
  tracing::CallPlace place(loc);
  constexpr int none = 0x7fffffff;
  const Var<VolumeArrays>& v = volume.arrays;
  const Int n = value(number);
  Vec3i found(none, none, none);
  If ((n >= 0) & (n < volume_voxel_count(volume, loc))) {
    // The leaf is the last one with no more than n voxels before it.
    Int low = 0, high = detail::leaf_count(v);
    While (low + 1 < high) {
      const Int middle = (low + high) >> 1;
      const Bool beyond = v.voxels_before[middle] > n;
      high = select(beyond, middle, high);
      low = select(beyond, low, middle);
    }
    const Int leaf = v.leaf + low * v.leaf_words;
    Int rank = n - v.voxels_before[low], word = 0;
    UInt bits = v.words[leaf + int(grids::kLeafMask / 4)];
    Int here = Int(popcount(bits));
    While (rank >= here) {
      rank -= here;
      word += 1;
      bits = v.words[leaf + int(grids::kLeafMask / 4) + word];
      here = Int(popcount(bits));
    }
    // Drops the voxels before it from the mask, one by one; what is left begins with its bit.
    While (rank > 0) {
      bits = bits & (bits - 1u);
      rank -= 1;
    }
    const Int at = word * 32 + Int(popcount((bits & (~bits + 1u)) - 1u));
    found = voxel_in_leaf(v, leaf, at);
  }
  return found;
}

Int volume_lookup_index(const VolumeInKernel& volume, In<vec3i> voxel, Loc loc) {
  tracing::CallPlace place(loc);
  const Var<VolumeArrays>& v = volume.arrays;
  const Vec3i ijk = value(voxel);
  const Int leaf = detail::find_leaf(v, ijk.x, ijk.y, ijk.z);
  const Int at = detail::place_in_leaf(ijk.x, ijk.y, ijk.z);
  Int number = -1;
  If (leaf != 0) {
    If (v.type == int(VolumeType::index)) {
      number = bitcast<int>(v.words[leaf + int(grids::kLeafFirstIndex / 4)]) + at - 1;
    }
    ElseIf (v.type == int(VolumeType::on_index)) {
      // A word of 64 bits is two here. The leaf counts the voxels before each, but the first, in 9 bits.
      const Int word = at >> 6, half_word = at >> 5;
      const Int mask = leaf + int(grids::kLeafMask / 4);
      const UInt bits = v.words[mask + half_word], bit = UInt(1u) << bitcast<unsigned>(at & 31);
      If ((bits & bit) != 0u) {
        Int before = Int(popcount(bits & (bit - 1u)));
        If ((half_word & 1) != 0) {
          before += Int(popcount(v.words[mask + half_word - 1]));
        }
        If (word > 0) {
          const Int prefix = leaf + int(grids::kLeafPrefix / 4);
          const UInt64 counts = UInt64(v.words[prefix]) | (UInt64(v.words[prefix + 1]) << UInt64(32ull));
          before += Int((counts >> UInt64(UInt(9 * (word - 1)))) & UInt64(511ull));
        }
        number = bitcast<int>(v.words[leaf + int(grids::kLeafFirstIndex / 4)]) + before - 1;
      }
    }
    Else { number = ((leaf - v.leaf) / v.leaf_words) * 512 + at; }
  }
  return number;
}

}  // namespace weft
