// A triangle mesh in host memory, as files contain and generators make it.
#pragma once
#include <vector>

#include "../../frontend/types/names.h"

namespace weft {

/// Triangles over shared points. Triangle i has the points indices[3 i], indices[3 i + 1] and indices[3 i + 2], which
/// run counter-clockwise seen from its front.
struct MeshData {
  std::vector<vec3> points;
  std::vector<int> indices;
};

}  // namespace weft
