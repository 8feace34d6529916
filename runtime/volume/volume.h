// Volumes: sparse grids of voxels, in NanoVDB's form, that kernels sample and write.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../array.h"
#include "tree/volume_arrays.h"
#include "volume_codec.h"
#include "volume_value.h"

namespace weft {

/// The grid of a file that is wanted.
struct VolumeChoice {
  std::string name = {};  ///< the first grid of that name; empty: by number
  int index = 0;          ///< counted over the whole file
};

/// Nodes for which a volume has memory, so that rebuild_by_voxels() and rebuild_by_tiles() may give it as many.
struct VolumeRoom {
  int leaves = 0;       ///< cubes of 8 voxels a side
  int lower_nodes = 0;  ///< cubes of 128 voxels a side, 34 to 131 KB each
  int upper_nodes = 0;  ///< cubes of 4096 voxels a side, 270 KB to 1 MB each
};

/// The facts of a volume that is made from voxels.
struct VolumeOptions {
  std::string name = {};
  VolumeClass grid_class = VolumeClass::unknown;
  /// From index to world space.
  mat33d matrix = mat33d::identity();
  vec3d translation = {};
  /// Of a volume that is made on its device: memory for so many nodes, or for those that it has, if there are more.
  VolumeRoom room = {};
};

namespace detail {
struct VolumeState;
}

/// A sparse grid of voxels in memory of a device, for the functions of volume_query.h. A handle: copies are the same
/// volume.
///
/// A grid has values in leaves of 8 x 8 x 8 voxels, some of which are active; larger cubes may have one value as a
/// tile; everywhere else it has its background. Which leaves it has is fixed when it is made. Kernels take a volume as
/// `Var<VolumeArrays>`, or by id().
///
/// Files are those of NanoVDB 32.x, with any codec: several grids in one are told apart by name or number. Index grids
/// are those of version 32.6 on. Nothing in a file is trusted: every offset, count and checksum is checked before a
/// device has the grid.
///
/// Errors: Error(invalid_argument) for calls of a null volume; Error(out_of_memory).
/// Cost: the grid's size, and 4 bytes for each leaf.
/// Source: Museth, "NanoVDB: A GPU-Friendly and Portable VDB Data Structure" (2021).
class Volume {
 public:
  /// A null volume.
  Volume() = default;
  /// Takes a grid that lies in an array, as NanoVDB has it in memory. The array is copied, and read back to be checked.
  /// Errors: Error(invalid_argument), with the reason, for bytes that are no grid.
  explicit Volume(const Array<std::uint8_t>& grid, Loc loc = Loc::here());

  /// Reads a grid of a file.
  /// Errors: Error(io), which names the file and the reason, for a file that cannot be read, is damaged, or holds a
  /// grid that weft does not support; Error(invalid_argument) for a name or number that it does not have.
  static Volume load(const Device& device, const std::string& path, const VolumeChoice& which = {},
                     Loc loc = Loc::here());
  /// Reads a grid of a file's content. Errors: likewise, as "the bytes".
  static Volume load(const Device& device, std::span<const std::byte> file, const VolumeChoice& which = {},
                     Loc loc = Loc::here());
  /// The names of the grids of a file, in its order. Errors: as load().
  static std::vector<std::string> names(const std::string& path, Loc loc = Loc::here());
  /// Writes a file with this grid, which NanoVDB 32.4 and later read (index grids: 32.6 and later). Replaces a file of
  /// that name. Waits.
  /// Errors: Error(unsupported) for a codec that this build does not have; Error(io) if it cannot be written.
  void save(const std::string& path, VolumeCodec codec = VolumeCodec::none, Loc loc = Loc::here()) const;
  /// The grid as NanoVDB has it in memory: with the values and the transform as they are now, with checksums, and
  /// without statistics of nodes, which stores do not keep. Waits. Errors: Error(invalid_argument) for a transform that
  /// has no inverse.
  std::vector<std::byte> bytes(Loc loc = Loc::here()) const;

  /// Makes a volume with the leaves in which these voxels lie, all of whose voxels are active and have the background's
  /// value.
  /// \param voxels  in any order; voxels of one leaf count once
  /// Errors: Error(invalid_argument) for a transform without inverse, or a name of more than 255 bytes.
  template <VolumeValue T>
  static Volume allocate_by_tiles(const Device& device, std::span<const vec3i> voxels, const T& background,
                                  const VolumeOptions& options = {}, Loc loc = Loc::here());
  /// Makes a volume in which these voxels alone are active. Errors: likewise.
  template <VolumeValue T>
  static Volume allocate_by_voxels(const Device& device, std::span<const vec3i> voxels, const T& background,
                                   const VolumeOptions& options = {}, Loc loc = Loc::here());
  /// Makes a volume of a dense block of values. Those that differ from the background are active; leaves without any
  /// are left out.
  /// \param values  (size.x * size.y * size.z) row-major: z varies fastest
  /// \param lower  the voxel of the first value
  /// Errors: likewise; Error(invalid_argument) for another number of values.
  template <VolumeValue T>
  static Volume from_dense(const Device& device, std::span<const T> values, vec3i size, vec3i lower,
                           const T& background, const VolumeOptions& options = {}, Loc loc = Loc::here());

  // ---- On the device

  /// The same from voxels in an array of the device, by kernels there.
  /// \param voxels  (n) from -2^20 up to 2^20 - 1 along each axis
  /// Errors: likewise; Error(invalid_argument) for null arrays, voxels farther away, and in a capture.
  /// Cost: a sort of n keys of 64 bits, and passes over voxels and nodes. Waits.
  template <VolumeValue T>
  static Volume allocate_by_tiles(const Array<vec3i>& voxels, const T& background, const VolumeOptions& options = {},
                                  Loc loc = Loc::here());
  template <VolumeValue T>
  static Volume allocate_by_voxels(const Array<vec3i>& voxels, const T& background, const VolumeOptions& options = {},
                                   Loc loc = Loc::here());
  /// The same of a dense block of values in an array of the device. Values that compare unequal to the background are
  /// active.
  template <VolumeValue T>
  static Volume from_dense(const Array<T, 3>& values, vec3i lower, const T& background,
                           const VolumeOptions& options = {}, Loc loc = Loc::here());
  /// Gives a volume that was made on its device other leaves, in the memory that it has (VolumeOptions::room), so that
  /// kernels find them where they found the old ones: in graphs and by handles, too. All values become the background.
  /// In a capture, leaves for which there is no room and voxels farther away are left out: info().left_out counts
  /// them, and debug mode reports such voxels.
  /// Errors: Error(invalid_argument) for a volume that was made otherwise, more nodes than there is room for, voxels
  /// farther away, and in a capture for more voxels than in all earlier builds.
  /// Cost: as allocate_by_voxels(). Waits, but not in a capture.
  void rebuild_by_tiles(const Array<vec3i>& voxels, Loc loc = Loc::here());
  void rebuild_by_voxels(const Array<vec3i>& voxels, Loc loc = Loc::here());

  /// A volume that the library has made. Internal.
  explicit Volume(std::shared_ptr<detail::VolumeState> state) : state_(std::move(state)) {}

  bool is_null() const { return !state_; }
  Device device() const;
  /// The facts; of a volume that was rebuilt those of the moment, for which this waits.
  const VolumeInfo& info() const;

  /// The values of the voxels of all leaves: element (l, 64 x + 8 y + z) is voxel (x, y, z) of leaf l. A view.
  /// Errors: Error(invalid_argument) for another type than the volume's.
  template <VolumeValue T>
  Array<T, 2> values(Loc loc = Loc::here()) const;
  /// Gives the volume's values gradient storage, which values().grad() shows. Errors: Error(invalid_argument) for
  /// integers and index grids, and after id().
  /// Cost: the grid's size.
  const Volume& requires_grad(Loc loc = Loc::here()) const;
  /// The transform that kernels apply: the matrix from index to world space, its inverse, row by row, and the
  /// translation. A program that writes it keeps the inverse right itself; info() stays as it was. It has gradients
  /// after transform().requires_grad().
  const Array<float>& transform() const;

  /// A value by which kernels find the volume (volume_at()), in arrays and structs too. It stays the same as long as
  /// the volume lives. Values and transform are constants by it.
  /// Errors: Error(invalid_argument) if they require gradients; requires_grad() is refused afterwards.
  std::uint64_t id(Loc loc = Loc::here()) const;
  /// The value that kernels take.
  const VolumeArrays& kernel_argument() const;

 private:
  detail::VolumeState& state() const;
  std::shared_ptr<detail::VolumeState> state_;
};

}  // namespace weft
