// Suite volume: samples of a level set against NanoVDB's accessor on the host, the way from a file to the device, and
// level sets of meshes.
#include "../../../runtime/volume/volume.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "../../../runtime/geometry/mesh.h"
#include "../../../runtime/volume/volume_from.h"
#include "../../../runtime/volume/volume_query.h"
#include "../../../runtime/volume/volume_surface.h"
#include "../../common/openvdb_grid.h"
#include "../geometry_shapes.h"
#include "../harness.h"
#include "../peers/host_threads.h"
#ifdef WEFT_NANOVDB
#include <nanovdb/util/GridHandle.h>
#include <nanovdb/util/SampleFromVoxels.h>
#endif

namespace weft::bench {

namespace {

constexpr int kSamples = 4'000'000;

/// The level set of a ball of 100 voxels' radius, as tests of NanoVDB have it.
Volume ball(const Device& device, float radius) {
  const Array<vec3> center(device, {vec3{}});
  const Mesh mesh(device, shapes::icosphere(radius, 5));
  return volume_from_mesh(mesh, MeshSign::normal, {.voxel_size = 1});
}

/// Points in the band of the ball: anywhere, or one beside the other as a sweep over its leaves meets them.
std::vector<vec3> points_in_band(const Volume& volume, bool coherent) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<vec3> points;
  points.reserve(kSamples);
  if (coherent) {
    const auto voxels = empty<vec3i>(volume.device(), volume.info().voxels);
    launch(kernel("list voxels",
                  [](Var<VolumeArrays> volume, Arr<vec3i> voxels) { voxels[tid()] = volume_voxel(volume, tid()); }),
           voxels.size(), volume, voxels);
    const std::vector<vec3i> list = voxels.to_vector();
    for (std::size_t k = 0; points.size() < kSamples; k = (k + 1) % list.size())
      points.push_back(vec3(list[k]) + vec3{0.3f, 0.4f, 0.2f});
    return points;
  }
  while (points.size() < kSamples) {
    const vec3 d{number(random), number(random), number(random)};
    const float square = dot(d, d);
    if (square > 1 || square < 0.01f) continue;
    points.push_back(d * ((100 + 2.5f * number(random)) / std::sqrt(square)));
  }
  return points;
}

#ifdef WEFT_NANOVDB
/// The library's grid, from the bytes of weft's.
class HostGrid {
 public:
  explicit HostGrid(const std::vector<std::byte>& grid) : buffer_(nanovdb::HostBuffer::create(grid.size())) {
    std::memcpy(buffer_.data(), grid.data(), grid.size());
  }
  const nanovdb::FloatGrid& grid() const { return *reinterpret_cast<const nanovdb::FloatGrid*>(buffer_.data()); }

 private:
  nanovdb::HostBuffer buffer_;
};

void sample_on_host(HostThreads& threads, const nanovdb::FloatGrid& grid, const std::vector<vec3>& points,
                    std::vector<float>& out) {
  threads.run(std::int64_t(points.size()), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    const auto accessor = grid.getAccessor();
    const auto sample = nanovdb::createSampler<1>(accessor);
    for (std::int64_t k = begin; k < end; ++k) {
      const vec3& p = points[std::size_t(k)];
      out[std::size_t(k)] = sample(nanovdb::Vec3f(p.x, p.y, p.z));
    }
  });
}
#endif

void race_samples(Run& run, bool coherent) {
  const Volume volume = ball(run.device(), 100);
  const std::vector<vec3> points = points_in_band(volume, coherent);
  const Array<vec3> p(run.device(), points);
  const auto out = zeros<float>(run.device(), kSamples);
  static const auto sample = kernel("sample", [](Var<VolumeArrays> volume, Arr<const vec3> p, Arr<float> out) {
    Int i = tid();
    out[i] = volume_sample<float>(volume, p[i]);
  });
  std::vector<std::function<void()>> sides{[&] {
    launch(sample, kSamples, volume, p, out);
    run.device().synchronize();
  }};
  sides[0]();
  const std::vector<float> own = out.to_vector();
  Reference reference{fmt::format("NanoVDB, {}", run.threads_text()), {}, "its headers are not installed"};
#ifdef WEFT_NANOVDB
  const HostGrid host(volume.bytes());
  std::vector<float> wanted(kSamples);
  HostThreads threads(run.threads());
  sides.push_back([&] { sample_on_host(threads, host.grid(), points, wanted); });
  sides[1]();
  for (std::size_t k = 0; k < own.size(); ++k)
    if (!(std::abs(own[k] - wanted[k]) < 1e-4f))
      throw std::runtime_error(fmt::format("sample {} is {}, and NanoVDB's {}", k, own[k], wanted[k]));
#endif
  const auto timings = interleave(sides, std::min(run.rounds(), 11), 2);
  if (timings.size() > 1) reference.timing = timings[1];
  run.compare(timings[0], reference, "ms");
  run.note(fmt::format("{:.1f} million samples/s", kSamples / timings[0].seconds / 1e6));
}

/// Reads a file, and makes what a reader cannot leave out: one crc32 of its grid, or zlib's work.
double read_plainly(const std::filesystem::path& path, std::uint64_t grid_bytes, bool zip) {
  const std::uintmax_t size = std::filesystem::file_size(path);
  std::vector<char> content(size);
  std::ifstream(path, std::ios::binary).read(content.data(), std::streamsize(size));
  const auto* const packed = reinterpret_cast<const Bytef*>(content.data());
  if (!zip) return double(crc32_z(0, packed, size));
  // The grid is the file's end: one blob after its size.
  std::vector<Bytef> grid(grid_bytes);
  for (std::uintmax_t at = 16 + 176; at < std::min<std::uintmax_t>(size, 700); ++at) {
    std::uint64_t blob = 0;
    std::memcpy(&blob, content.data() + at, sizeof blob);
    if (at + sizeof blob + blob != size) continue;
    uLongf made = grid.size();
    if (uncompress(grid.data(), &made, packed + at + sizeof blob, blob) == Z_OK) return double(grid[made / 2]);
  }
  throw std::runtime_error("the file has no blob at its end");
}

void race_load(Run& run, bool zip) {
  const auto path = std::filesystem::temp_directory_path() / (zip ? "weft_bench_zip.nvdb" : "weft_bench.nvdb");
  const Volume made = ball(run.device(), 300);
  made.save(path.string(), zip ? VolumeCodec::zip : VolumeCodec::none);
  const std::uint64_t bytes = made.info().bytes;
  double sum = 0;
  const auto timings = interleave({[&] { sum += double(Volume::load(run.device(), path.string()).info().voxels); },
                                   [&] { sum += read_plainly(path, bytes, zip); }},
                                  std::min(run.rounds(), 5), 1);
  std::filesystem::remove(path);
  run.compare(timings[0], {zip ? "reading, zlib's uncompress()" : "reading, one crc32 of zlib's", timings[1]}, "ms");
  run.note(fmt::format("a grid of {:.0f} MB", double(bytes) / 1e6));
}

void race_from_mesh(Run& run, MeshSign sign) {
  const MeshData data = torus(100'000);
  const Mesh mesh(run.device(), data, {.winding_number = sign == MeshSign::winding});
  const VolumeFromOptions options{.voxel_size = 2.7f / 256};
  std::int64_t voxels = 0;
  std::vector<std::function<void()>> makers = {[&] { voxels = volume_from_mesh(mesh, sign, options).info().voxels; }};
  std::string note = "OpenVDB is not there";
#ifdef WEFT_OPENVDB
  const test::OpenvdbThreads threads(run.threads());
  makers.push_back([&] { (void)test::OpenvdbGrid::of_mesh(data, options.voxel_size, options.half_width); });
  const auto active = test::OpenvdbGrid::of_mesh(data, options.voxel_size, options.half_width).active_voxels().size();
  note = fmt::format("{} active voxels there", active);
#endif
  const auto timings = interleave(makers, std::min(run.rounds(), 5), 1);
  if (timings.size() > 1)
    run.compare(timings[0], {"OpenVDB's meshToLevelSet", timings[1]}, "ms");
  else
    run.compare(timings[0], {"OpenVDB's meshToLevelSet", {}, "not there"}, "ms");
  run.note(fmt::format("{} active voxels; {}", voxels, note));
}

}  // namespace

void add_volume(Harness& harness) {
  harness.add("volume", "4M linear samples in a band, anywhere", [](Run& run) { race_samples(run, false); });
  harness.add("volume", "4M linear samples in a band, leaf by leaf", [](Run& run) { race_samples(run, true); });
  harness.add("volume", "load of a grid", [](Run& run) { race_load(run, false); });
  harness.add("volume", "load of a grid, zip", [](Run& run) { race_load(run, true); });
  harness.add("volume", "level set of 100k triangles, 256 voxels",
              [](Run& run) { race_from_mesh(run, MeshSign::normal); });
  harness.add("volume", "the same by winding numbers", [](Run& run) { race_from_mesh(run, MeshSign::winding); });
}

}  // namespace weft::bench
