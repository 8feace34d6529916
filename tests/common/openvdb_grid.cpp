// The one file that includes OpenVDB's headers, which take seconds to compile.
#include "openvdb_grid.h"

#ifdef WEFT_OPENVDB
#include <openvdb/openvdb.h>
#include <openvdb/tools/Interpolation.h>
#include <openvdb/tools/MeshToVolume.h>
#include <tbb/global_control.h>

#include <utility>

namespace weft::test {

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

OpenvdbGrid OpenvdbGrid::read(const std::string& path) {
  openvdb::initialize();
  openvdb::io::File file(path);
  file.open();
  auto grid = openvdb::gridPtrCast<FloatGrid>(file.readGrid(file.beginName().gridName()));
  return OpenvdbGrid(std::make_unique<Held>(Held{std::move(grid)}));
}

void OpenvdbGrid::write(const std::string& path, const std::string& name) const {
  const auto named = held_->grid->copy();
  named->setName(name);
  openvdb::io::File file(path);
  file.write({named});
  file.close();
}

std::vector<float> OpenvdbGrid::sample(std::span<const vec3> world) const {
  const openvdb::tools::GridSampler<FloatGrid::ConstAccessor, openvdb::tools::BoxSampler> sampler(
      held_->grid->getConstAccessor(), held_->grid->transform());
  std::vector<float> values;
  values.reserve(world.size());
  for (const vec3& p : world) values.push_back(sampler.wsSample(openvdb::Vec3d(p.x, p.y, p.z)));
  return values;
}

float OpenvdbGrid::at(const vec3i& voxel) const {
  return held_->grid->tree().getValue(openvdb::Coord(voxel.x, voxel.y, voxel.z));
}

std::vector<vec3i> OpenvdbGrid::active_voxels() const {
  std::vector<vec3i> voxels;
  for (auto it = held_->grid->cbeginValueOn(); it; ++it) {
    const openvdb::Coord c = it.getCoord();
    voxels.push_back({c.x(), c.y(), c.z()});
  }
  return voxels;
}

struct OpenvdbThreads::Held {
  tbb::global_control control;
};
OpenvdbThreads::OpenvdbThreads(int most)
    : held_(std::make_unique<Held>(
          tbb::global_control(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(most)))) {}
OpenvdbThreads::~OpenvdbThreads() = default;

}  // namespace weft::test
#endif
