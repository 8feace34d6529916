// Damaged .nvdb files: each is refused with words, or holds grids whose every node lies inside, so that a walk over all
// of them reads nothing else.
#include <string>
#include <vector>

#include "../../runtime/volume/files/codec.h"
#include "../../runtime/volume/files/nvdb_file.h"
#include "../common/volume_grids.h"
#include "inputs.h"

namespace weft {
namespace {

using test::below;
using test::one_in;
using test::one_of;
using test::Random;

/// Good files, of every codec, with and without checksums: those without let damage come further.
std::vector<std::vector<std::byte>> seeds() {
  std::vector<std::vector<std::byte>> files;
  const std::vector<vec3i> voxels = {{1, 2, 3}, {-1, 300, 5}};
  for (const VolumeType type : {VolumeType::float32, VolumeType::vec3d, VolumeType::on_index})
    for (const VolumeCodec codec : {VolumeCodec::none, VolumeCodec::zip, VolumeCodec::blosc}) {
      if (!grids::has_codec(codec)) continue;
      files.push_back(test::file_of({test::some_grid(type, voxels)}, codec));
    }
  files.push_back(test::some_grid(VolumeType::float32, voxels, false));  // a grid as it is in memory
  return files;
}

/// Damage of one number where the structure is: headers and tables, more often than values.
void damage_number(Random& random, std::vector<std::byte>& file) {
  if (file.size() < 16) return;
  const std::uint64_t most = one_in(random, 3) ? file.size() : std::min<std::uint64_t>(file.size(), 1200);
  const std::uint64_t at = below(random, most - 7) & ~std::uint64_t(one_in(random, 4) ? 0 : 3);
  static constexpr std::uint64_t kNumbers[] = {0,          1,          32,         64,         288,  672,
                                               0x7fffffff, 0xffffffff, 1ull << 32, 1ull << 62, ~0ull};
  const std::uint64_t value =
      one_in(random, 2) ? one_of(random, kNumbers) : grids::get<std::uint64_t>(file, at) + 32 * (below(random, 9) - 4);
  std::memcpy(file.data() + at, &value, one_in(random, 2) ? 8 : 4);
}

TEST(FuzzVolumes, damaged_files_are_refused_or_safe) {
  const std::vector<std::vector<std::byte>> good = seeds();
  std::uint64_t accepted = 0, refused = 0;
  test::for_each_input(1500, [&](Random& random) {
    std::vector<std::byte> file = good[below(random, good.size())];
    if (one_in(random, 2))
      for (std::uint64_t k = 1 + below(random, 3); k > 0; --k) damage_number(random, file);
    else
      test::damage(random, file);
    try {
      for (const grids::Entry& e : grids::entries_of(file)) {
        const grids::Grid grid = grids::check_grid(test::grid_of(file, e));
        // The next owner of the grid relies on these.
        ASSERT_LE(grid.levels.first[0] + std::uint64_t(grid.levels.count[0]) * grid.layout->leaf.bytes, e.grid_bytes);
        ASSERT_EQ(grid.voxels_before.size(), grid.levels.count[0] + 1u);
        ++accepted;
      }
    } catch (const grids::NoGrid& e) {
      ASSERT_FALSE(std::string(e.what()).empty());
      ++refused;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
  });
  RecordProperty("accepted", int(accepted));
  RecordProperty("refused", int(refused));
}

}  // namespace
}  // namespace weft
