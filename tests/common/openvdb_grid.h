// Level sets by OpenVDB, against which tests and benchmarks hold weft's.
#pragma once
#ifdef WEFT_OPENVDB

#include <weft/runtime/geometry/mesh_data.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::test {

/// A grid of float that OpenVDB has made of a mesh, or has read.
class OpenvdbGrid {
 public:
  /// meshToLevelSet(), with the sides told apart by what is outside. \param half_width  of the band, in voxels
  static OpenvdbGrid of_mesh(const MeshData& mesh, float voxel_size, float half_width);
  /// The first grid of a .vdb file.
  static OpenvdbGrid read(const std::string& path);
  OpenvdbGrid(OpenvdbGrid&&) noexcept;
  ~OpenvdbGrid();

  /// Writes a .vdb file.
  void write(const std::string& path, const std::string& name) const;
  /// Linear samples by OpenVDB's own BoxSampler.
  std::vector<float> sample(std::span<const vec3> world) const;
  float at(const vec3i& voxel) const;
  std::vector<vec3i> active_voxels() const;

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

}  // namespace weft::test
#endif
