// Meshes that people have made, where they lie beside the project: slivers, open edges, triangles over each other.
#pragma once
#include <weft/runtime/geometry/mesh_data.h>

#include <cstddef>
#include <limits>
#include <span>
#include <string>

#include "full_sizes.h"

namespace weft::test {

struct RealMesh {
  std::string name;
  /// In a box around 0 with a longest side of 2.
  MeshData data;
  std::size_t faces() const { return data.indices.size() / 3; }
};

/// Those of at most so many triangles, the smallest first: none where the folder is not there.
std::span<const RealMesh> real_meshes(std::size_t most_faces = std::numeric_limits<std::size_t>::max());
/// Those that a test of a few seconds has the time for: at full sizes all of them on every device.
inline std::span<const RealMesh> real_meshes_for(bool on_reference) {
  return on_reference && !full_sizes() ? real_meshes(6000) : real_meshes();
}

}  // namespace weft::test
