// Lays out the memory of volumes that kernels write.
#include "with_nodes.h"

#include <algorithm>

#include "../../../frontend/support/invalid.h"
#include "../../array_create.h"
#include "../../work/capture.h"

namespace weft::detail {

namespace {
/// The room of volumes whose nodes are only counted.
constexpr int kAnyRoom = 1 << 30;
}  // namespace

void refuse_making_in_capture() {
  if (Capture::current()) invalid("a volume is made in a capture: make it before, with room, and rebuild it there");
}

void refuse_far(std::int64_t far) {
  if (far > 0)
    invalid("{} voxels of a volume lie beyond the coordinates from {} to {}, in which a device makes volumes", far,
            -kMostCoordinate, kMostCoordinate - 1);
}

std::shared_ptr<VolumeState> with_nodes(const Device& device, TopologyMemory memory, std::int64_t voxels,
                                        const grids::GridPlan& plan, const VolumeRoom& wanted) {
  const grids::LeafPlan leaf{};
  const std::vector<std::byte> bytes = grids::build_grid(plan, {&leaf, 1});
  auto made = std::make_shared<VolumeState>();
  grids::Grid& grid = made->grid;
  grid = grids::check_grid(bytes);
  const grids::Grid of_templates = grid;
  count_nodes(memory, voxels, {kAnyRoom, kAnyRoom, kAnyRoom});
  const std::vector<int> counts = memory.counts.to_vector();
  refuse_far(counts[3]);
  const vec3i room{std::max(counts[0], wanted.leaves), std::max(counts[1], wanted.lower_nodes),
                   std::max(counts[2], wanted.upper_nodes)};
  grid.levels = levels_with(*grid.layout, room);
  grid.info.bytes = bytes_with(*grid.layout, grid.levels);
  NodeTemplates templates = templates_of(device, bytes, of_templates, grid.levels);
  // Scalars of 8 bytes are read too.
  const auto words = empty<unsigned>(device, std::int64_t((grid.info.bytes + 7) / 8 * 2));
  made->arrays = arrays_of(grid, words, map_of(bytes), empty<int>(device, std::int64_t(room.x) + 1));
  made->making.emplace(VolumeMaking{std::move(templates), places_of(*grid.layout, grid.levels), std::move(memory)});
  return made;
}

}  // namespace weft::detail
