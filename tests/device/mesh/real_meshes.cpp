// Reads the meshes beside the project, once.
#include "real_meshes.h"

#include <weft/runtime/geometry/mesh_file.h>
#include <weft/weft.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace weft::test {

namespace {

std::vector<RealMesh> read_all() {
  std::vector<RealMesh> meshes;
  for (const char* name : {"suzanne", "teapot", "spot", "stanford-bunny", "nefertiti"}) {
    const std::filesystem::path file =
        std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/data" / (name + std::string(".obj"));
    if (!std::filesystem::exists(file)) continue;
    MeshData data = load_mesh(file.string());
    vec3 lower = data.points[0], upper = lower;
    for (const vec3& p : data.points) lower = min(lower, p), upper = max(upper, p);
    const vec3 size = upper - lower;
    const float scale = 2 / std::max({size.x, size.y, size.z});
    for (vec3& p : data.points) p = (p - (lower + upper) * 0.5f) * scale;
    meshes.push_back({name, std::move(data)});
  }
  std::ranges::sort(meshes, {}, &RealMesh::faces);
  return meshes;
}

}  // namespace

std::span<const RealMesh> real_meshes(std::size_t most_faces) {
  static const std::vector<RealMesh> all = read_all();
  const auto end = std::ranges::upper_bound(all, most_faces, {}, &RealMesh::faces);
  return {all.begin(), end};
}

}  // namespace weft::test
