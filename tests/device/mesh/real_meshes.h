// Meshes that people have made, if they lie beside the project: slivers, open edges, triangles over each other.
#pragma once
#include <weft/runtime/geometry/mesh_data.h>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../full_sizes.h"

namespace weft::test {

struct NamedMesh {
  std::string name;
  MeshData data;
  std::size_t faces() const { return data.indices.size() / 3; }
};
/// A mesh that people have made, in a box around 0 whose longest side is 2.
using RealMesh = NamedMesh;

/// The meshes of at most this many triangles, the smallest first: none if the folder is not there.
std::span<const RealMesh> real_meshes(std::size_t most_faces = std::numeric_limits<std::size_t>::max());
/// The meshes for which a test of a few seconds has the time: at full sizes all of them on every device.
inline std::span<const RealMesh> real_meshes_for(bool on_reference) {
  return on_reference && !full_sizes() ? real_meshes(6000) : real_meshes();
}
/// A mesh that the test has made, named "made", and after it the meshes that people have made.
inline std::vector<NamedMesh> with_real_meshes(MeshData made, bool on_reference) {
  const auto real = real_meshes_for(on_reference);
  std::vector<NamedMesh> all{{"made", std::move(made)}};
  all.insert(all.end(), real.begin(), real.end());
  return all;
}

}  // namespace weft::test
