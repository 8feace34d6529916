// The volume programs of Warp's documents: "Volumes" of the runtime's reference, and the blog post's calls.
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_query.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(VolumeDocuments);

/// A file with the field x + 2 y + 3 z on eight voxels a side of 0.5.
std::filesystem::path mygrid(const Device& device) {
  std::vector<float> values;
  for (int x = 0; x < 8; ++x)
    for (int y = 0; y < 8; ++y)
      for (int z = 0; z < 8; ++z) values.push_back(float(x + 2 * y + 3 * z));
  VolumeOptions options;
  options.matrix = mat33d::identity() * 0.5;
  const auto path = std::filesystem::path(testing::TempDir()) / "weft_mygrid.nvdb";
  Volume::from_dense<float>(device, values, {8, 8, 8}, {}, -1.f, options).save(path.string(), VolumeCodec::zip);
  return path;
}

TEST_P(VolumeDocuments, runtime_reference_volumes) {
  // open NanoVDB file on disk
  std::ifstream file(mygrid(device()), std::ios::binary);
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  // create Volume object
  Volume volume = Volume::load(device(), std::as_bytes(std::span(content)));

  auto sample_grid = kernel("sample_grid", [](UInt64 volume, Arr<const vec3> points, Arr<float> samples) {
    Int i = tid();
    // load sample point in world-space
    Vec3 p = points[i];
    // transform position to the volume's local-space
    Vec3 q = volume_world_to_index(volume, p);
    // sample volume with trilinear interpolation
    Float f = volume_sample<float>(volume, q, VolumeSampling::linear);
    // write result
    samples[i] = f;
  });
  const Array<vec3> points(device(), {vec3{0.25f, 1, 2.125f}, vec3{3, 3, 3}});
  const Array<float> samples = zeros<float>(device(), 2);
  launch(sample_grid, 2, volume.id(), points, samples);
  EXPECT_EQ(samples.to_vector(), std::vector<float>({17.25f, 36}));
}

TEST_P(VolumeDocuments, blog_sparse_volumes) {
  const Volume vol = Volume::load(device(), mygrid(device()).string());
  const auto values = zeros<float>(device(), 3);
  const auto places = zeros<vec3>(device(), 2);
  launch(kernel("calls",
                [](UInt64 vol, Arr<float> values, Arr<vec3> places) {
                  const Vec3 xyz(0.25f, 1.f, 1.5f), uvw(0.5f, 2.f, 3.f);
                  values[0] = volume_sample_world<float>(vol, xyz);       // world space sample
                  values[1] = volume_sample<float>(vol, uvw);             // volume space sample
                  values[2] = volume_lookup<float>(vol, vec3i{1, 2, 3});  // direct voxel lookup
                  places[0] = volume_index_to_world(vol, uvw);            // from voxel space to world space
                  places[1] = volume_world_to_index(vol, xyz);            // from world space to volume space
                }),
         1, vol.id(), values, places);
  EXPECT_EQ(values.to_vector(), std::vector<float>({13.5f, 13.5f, 14}));
  EXPECT_EQ(places.to_vector(), (std::vector<vec3>{{0.25f, 1, 1.5f}, {0.5f, 2, 3}}));
}

}  // namespace
