// Volumes against OpenVDB: its level sets of meshes load and give its samples, its tools and NanoVDB's read what weft
// saves, and weft's own level sets of meshes have its distances.
#include <weft/geometry.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_from.h>
#include <weft/runtime/volume/volume_query.h>
#include <weft/runtime/volume/volume_ray.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "../../frontend/support/platform.h"
#include "../common/mesh_oracle.h"
#include "../common/openvdb_grid.h"
#include "../device/device_test.h"
#include "../device/mesh/real_meshes.h"

using namespace weft;

namespace {

DEVICE_TEST(VolumeOpenvdb);

namespace fs = std::filesystem;
using test::OpenvdbGrid;

constexpr float kVoxel = 0.05f, kHalfWidth = 3;

struct Folder {
  const fs::path path = platform::temporary_folder();
  std::string file(const char* name) const { return (path / name).string(); }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

/// Runs one of the tools of NanoVDB. Returns whether it says that all is well.
bool runs(std::vector<std::string> command) { return platform::run_program(command) == 0; }
bool has_tools() { return platform::run_program({"nanovdb_convert", "--version"}).has_value(); }

std::vector<vec3> points_in_box(int count) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> number(-1.2f, 1.2f);
  std::vector<vec3> points;
  for (int k = 0; k < count; ++k) {
    const float x = number(random), y = number(random), z = number(random);
    points.push_back({x, y, z});
  }
  return points;
}

std::vector<float> world_samples(const Volume& volume, std::span<const vec3> points) {
  const Array<vec3> p(volume.device(), points);
  const Array<float> values = zeros<float>(volume.device(), p.size());
  launch(kernel("world samples",
                [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<float> values) {
                  values[tid()] = volume_sample_world<float>(volume, points[tid()]);
                }),
         p.size(), volume, p, values);
  return values.to_vector();
}

std::vector<float> lookups(const Volume& volume, std::span<const vec3i> voxels) {
  const Array<vec3i> v(volume.device(), voxels);
  const Array<float> values = zeros<float>(volume.device(), v.size());
  launch(kernel("lookups", [](Var<VolumeArrays> volume, Arr<const vec3i> voxels,
                              Arr<float> values) { values[tid()] = volume_lookup<float>(volume, voxels[tid()]); }),
         v.size(), volume, v, values);
  return values.to_vector();
}

/// Coordinates are computed in float32 here and in float64 there: a step of a voxel changes a distance by at most one.
void expect_samples(const Volume& volume, const OpenvdbGrid& grid, const std::string& what) {
  const std::vector<vec3> points = points_in_box(20000);
  const std::vector<float> expected = grid.sample(points), values = world_samples(volume, points);
  for (std::size_t k = 0; k < points.size(); ++k)
    ASSERT_NEAR(values[k], expected[k], 2e-5 * kVoxel) << what << ", point " << points[k].x << " " << points[k].y;
}

std::vector<test::NamedMesh> some_meshes(bool on_reference) {
  auto meshes = test::with_real_meshes(shapes::torus(0.7f, 0.3f, 64, 48), on_reference);
  if (meshes.size() > 3) meshes.erase(meshes.begin() + 3, meshes.end());
  return meshes;
}

TEST_P(VolumeOpenvdb, level_sets_of_meshes_load_and_give_its_samples) {
  if (!has_tools()) GTEST_SKIP() << "NanoVDB's tools are not there";
  const Folder folder;
  const std::vector<std::pair<const char*, std::vector<std::string>>> codecs = {
      {"none.nvdb", {}}, {"zip.nvdb", {"-z"}}, {"blosc.nvdb", {"-b"}}};
  for (const test::NamedMesh& mesh : some_meshes(on_reference())) {
    const OpenvdbGrid grid = OpenvdbGrid::of_mesh(mesh.data, kVoxel, kHalfWidth);
    grid.write(folder.file("grid.vdb"), mesh.name);
    const std::vector<vec3i> active = grid.active_voxels();
    for (const auto& [name, flags] : codecs) {
      std::vector<std::string> command = {"nanovdb_convert", "-f"};
      command.insert(command.end(), flags.begin(), flags.end());
      command.insert(command.end(), {folder.file("grid.vdb"), folder.file(name)});
      ASSERT_TRUE(runs(command));
      const Volume volume = Volume::load(device(), folder.file(name));
      EXPECT_EQ(volume.info().name, mesh.name);
      EXPECT_EQ(volume.info().grid_class, VolumeClass::level_set);
      EXPECT_EQ(std::size_t(volume.info().voxels), active.size());
      EXPECT_FLOAT_EQ(volume.info().background.x, kVoxel * kHalfWidth);
      expect_samples(volume, grid, mesh.name + " in " + name);
    }
  }
}

/// The depths of a picture along z, and the cosine at which its rays meet the surface; 0 where they meet none.
struct Depths {
  std::vector<float> depth, cosine;
};
constexpr int kSide = 96;
Vec3 start_of_ray(const Int& i) {
  const Float step = 2.4f / kSide;
  return Vec3((Float(i % kSide) + 0.5f) * step - 1.2f, (Float(i / kSide) + 0.5f) * step - 1.2f, 3.f);
}

Depths depths_of(const Volume& volume) {
  const Array<float> depth = zeros<float>(volume.device(), kSide * kSide), cosine = zeros_like(depth);
  launch(kernel("picture of a volume",
                [](Var<VolumeArrays> volume, Arr<float> depth, Arr<float> cosine) {
                  const Int i = tid();
                  const VolumeRayHit hit = volume_ray<float>(volume, start_of_ray(i), Vec3(0, 0, -1), 10.f);
                  depth[i] = hit.t;
                  cosine[i] = hit.normal.z;
                }),
         depth.size(), volume, depth, cosine);
  return {depth.to_vector(), cosine.to_vector()};
}

Depths depths_of(const Mesh& mesh) {
  const Array<float> depth = zeros<float>(mesh.points().device(), kSide * kSide), cosine = zeros_like(depth);
  launch(kernel("picture of a mesh",
                [](Var<MeshArrays> mesh, Arr<float> depth, Arr<float> cosine) {
                  const Int i = tid();
                  const MeshRayHit hit = mesh_query_ray(mesh, start_of_ray(i), Vec3(0, 0, -1), 10.f);
                  depth[i] = select(hit.hit, hit.t, 0.f);
                  cosine[i] = select(hit.hit, hit.normal.z, 0.f);
                }),
         depth.size(), mesh, depth, cosine);
  return {depth.to_vector(), cosine.to_vector()};
}

// A level set rounds off what is finer than its voxels, so rays that graze the surface are left out, and a few others
// may see something else.
TEST_P(VolumeOpenvdb, level_sets_of_meshes_look_like_the_meshes) {
  if (!has_tools()) GTEST_SKIP() << "NanoVDB's tools are not there";
  const Folder folder;
  for (const test::NamedMesh& mesh : some_meshes(on_reference())) {
    OpenvdbGrid::of_mesh(mesh.data, kVoxel, kHalfWidth).write(folder.file("grid.vdb"), mesh.name);
    ASSERT_TRUE(runs({"nanovdb_convert", "-f", folder.file("grid.vdb"), folder.file("grid.nvdb")}));
    const Depths seen = depths_of(Volume::load(device(), folder.file("grid.nvdb")));
    const Depths expected = depths_of(Mesh(device(), mesh.data));
    int compared = 0, differing = 0;
    for (std::size_t k = 0; k < expected.depth.size(); ++k) {
      if (expected.cosine[k] < 0.5f) continue;
      ++compared;
      differing += std::abs(seen.depth[k] - expected.depth[k]) > 0.5f * kVoxel;
    }
    EXPECT_GT(compared, kSide * kSide / 20) << mesh.name;
    EXPECT_LE(differing * 10, compared) << mesh.name << ": " << differing << " of " << compared << " rays";
  }
}

TEST_P(VolumeOpenvdb, files_that_weft_saves_are_read_by_its_tools) {
  if (!has_tools()) GTEST_SKIP() << "NanoVDB's tools are not there";
  const Folder folder;
  const Mesh mesh(device(), shapes::torus(0.7f, 0.3f, 64, 48));
  const Volume volume = volume_from_mesh(mesh, MeshSign::normal, {kVoxel, kHalfWidth, "saved"});
  for (const VolumeCodec codec : {VolumeCodec::none, VolumeCodec::zip, VolumeCodec::blosc}) {
    volume.save(folder.file("saved.nvdb"), codec);
    EXPECT_TRUE(runs({"nanovdb_validate", folder.file("saved.nvdb")}));
    ASSERT_TRUE(runs({"nanovdb_convert", "-f", folder.file("saved.nvdb"), folder.file("saved.vdb")}));
    const OpenvdbGrid grid = OpenvdbGrid::read(folder.file("saved.vdb"));
    const std::vector<vec3i> active = grid.active_voxels();
    EXPECT_EQ(std::size_t(volume.info().voxels), active.size());
    const std::vector<float> values = lookups(volume, active);
    for (std::size_t k = 0; k < active.size(); ++k) ASSERT_EQ(values[k], grid.at(active[k]));
    expect_samples(volume, grid, "saved");
  }
}

TEST_P(VolumeOpenvdb, level_sets_of_closed_meshes_have_its_distances) {
  for (const MeshData& data : {shapes::torus(0.7f, 0.3f, 64, 48), shapes::icosphere(1, 3)}) {
    const OpenvdbGrid grid = OpenvdbGrid::of_mesh(data, kVoxel, kHalfWidth);
    const Volume volume = volume_from_mesh(Mesh(device(), data), MeshSign::normal, {kVoxel, kHalfWidth, "own"});
    const std::vector<vec3i> active = grid.active_voxels();
    const std::vector<float> values = lookups(volume, active);
    const test::Oracle oracle(data);
    for (std::size_t k = 0; k < active.size(); k += 31) {
      // OpenVDB renormalises its distances, which moves them by some hundredths of a voxel near the surface and by more
      // at the rim of the band; weft's are those of the triangles.
      const float theirs = grid.at(active[k]);
      const bool on_surface = std::abs(theirs) <= 1e-4f * kVoxel;
      ASSERT_TRUE(on_surface || (values[k] < 0) == (theirs < 0));
      ASSERT_NEAR(values[k], theirs, 0.25f * kVoxel);
      ASSERT_NEAR(std::abs(double(values[k])), oracle.distance(vec3(active[k]) * kVoxel), 1e-4 * double(kVoxel));
    }
    EXPECT_NEAR(double(volume.info().voxels), double(active.size()), 0.01 * double(active.size()));
  }
}

}  // namespace
