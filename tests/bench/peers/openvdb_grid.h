// Level sets by OpenVDB, against which weft's are measured.
#pragma once
#ifdef WEFT_OPENVDB

#include <weft/runtime/geometry/mesh_data.h>

#include <cstdint>
#include <memory>

namespace weft::bench {

/// A grid of float that OpenVDB has made of a mesh.
class OpenvdbGrid {
 public:
  /// meshToLevelSet(), with the sides told apart by what is outside. \param half_width  of the band, in voxels
  static OpenvdbGrid of_mesh(const MeshData& mesh, float voxel_size, float half_width);
  OpenvdbGrid(OpenvdbGrid&&) noexcept;
  ~OpenvdbGrid();

  std::uint64_t active_voxels() const;

 private:
  struct Held;
  explicit OpenvdbGrid(std::unique_ptr<Held> held);
  std::unique_ptr<Held> held_;
};

/// The most threads that OpenVDB may use, while this lives.
class OpenvdbThreads {
 public:
  explicit OpenvdbThreads(int most);
  OpenvdbThreads(const OpenvdbThreads&) = delete;
  ~OpenvdbThreads();

 private:
  struct Held;
  std::unique_ptr<Held> held_;
};

}  // namespace weft::bench
#endif
