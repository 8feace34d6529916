// The one file that includes OpenVDB's headers, which take seconds to compile.
#include "openvdb_grid.h"

#ifdef WEFT_OPENVDB
#include <openvdb/openvdb.h>
#include <openvdb/tools/MeshToVolume.h>
#include <tbb/global_control.h>

#include <utility>
#include <vector>

namespace weft::bench {

using openvdb::FloatGrid;

struct OpenvdbGrid::Held {
  FloatGrid::Ptr grid;
};

OpenvdbGrid::OpenvdbGrid(std::unique_ptr<Held> held) : held_(std::move(held)) {}
OpenvdbGrid::OpenvdbGrid(OpenvdbGrid&&) noexcept = default;
OpenvdbGrid::~OpenvdbGrid() = default;

OpenvdbGrid OpenvdbGrid::of_mesh(const MeshData& mesh, float voxel_size, float half_width) {
  openvdb::initialize();
  std::vector<openvdb::Vec3s> points;
  points.reserve(mesh.points.size());
  for (const vec3& p : mesh.points) points.emplace_back(p.x, p.y, p.z);
  std::vector<openvdb::Vec3I> triangles;
  triangles.reserve(mesh.indices.size() / 3);
  for (std::size_t k = 0; k + 2 < mesh.indices.size(); k += 3)
    triangles.emplace_back(std::uint32_t(mesh.indices[k]), std::uint32_t(mesh.indices[k + 1]),
                           std::uint32_t(mesh.indices[k + 2]));
  const auto transform = openvdb::math::Transform::createLinearTransform(double(voxel_size));
  auto grid = openvdb::tools::meshToLevelSet<FloatGrid>(*transform, points, triangles, half_width);
  return OpenvdbGrid(std::make_unique<Held>(Held{std::move(grid)}));
}

std::uint64_t OpenvdbGrid::active_voxels() const { return held_->grid->activeVoxelCount(); }

struct OpenvdbThreads::Held {
  tbb::global_control control;
};
OpenvdbThreads::OpenvdbThreads(int most)
    : held_(std::make_unique<Held>(
          tbb::global_control(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(most)))) {}
OpenvdbThreads::~OpenvdbThreads() = default;

}  // namespace weft::bench
#endif
