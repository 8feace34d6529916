// Level sets of meshes: the leaves near triangles, a query of the mesh for each of their voxels, and signs for the
// rest.
#include <cmath>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/support/invalid.h"
#include "../../array_create.h"
#include "../../geometry/mesh_query.h"
#include "../../launch.h"
#include "../../work/observe.h"
#include "../volume_from.h"
#include "band.h"
#include "pairs.h"
#include "signs.h"
#include "with_nodes.h"

namespace weft {

namespace detail {

namespace {

/// The distance of a voxel within the limit; unknown beyond.
auto make_distances(MeshSign sign) {
  return kernel("volume_mesh_distances", [sign](Var<VolumeArrays> volume, Arr<unsigned> words, Var<MeshArrays> mesh,
                                                Float size, Float limit, Int values) {
    auto [leaf, n] = tid<2>();
    const MeshPointHit hit = mesh_query_point(mesh, voxel_at(volume, leaf, n) * size, limit, sign);
    const Float distance = hit.sign * hit.distance;
    words[volume.leaf + leaf * volume.leaf_words + values + n] =
        select(hit.hit, bitcast<unsigned>(distance), UInt(kUnknown));
  });
}

/// Leaves without any known voxel, which no sign could reach: the first voxel asks how far the mesh is.
auto make_far_leaves(MeshSign sign) {
  return kernel("volume_far_leaves", [sign](Var<VolumeArrays> volume, Arr<unsigned> words, Var<MeshArrays> mesh,
                                            Float size, Float limit, Int values) {
    Int leaf = tid();
    const Int first = volume.leaf + leaf * volume.leaf_words + values;
    If (words[first] == kUnknown) {
      const MeshPointHit hit = mesh_query_point(mesh, voxel_at(volume, leaf, 0) * size, INFINITY, sign);
      words[first] = bitcast<unsigned>(select(hit.sign < 0.f, -limit, limit));
    }
  });
}

/// Kernels that are made for each sign.
template <class Kernel>
struct BySign {
  explicit BySign(Kernel (*make)(MeshSign))
      : all{make(MeshSign::none), make(MeshSign::majority), make(MeshSign::normal), make(MeshSign::winding)} {}
  const Kernel& operator[](MeshSign sign) const { return all[int(sign)]; }
  const Kernel all[4];
};
const auto& distances_kernel(MeshSign sign) {
  static const BySign all(&make_distances);
  return all[sign];
}
const auto& far_leaves_kernel(MeshSign sign) {
  static const BySign all(&make_far_leaves);
  return all[sign];
}

std::shared_ptr<VolumeState> from_mesh(const Mesh& mesh, MeshSign sign, const VolumeFromOptions& o) {
  const HeardBy nobody(nullptr);
  const Device device = mesh.device();
  const float limit = o.half_width * o.voxel_size, size = o.voxel_size;
  std::int64_t pairs = 0;
  TopologyMemory memory = leaves_of_triangles(mesh.points(), mesh.indices(), 1 / size, o.half_width, pairs);
  return explained(ErrorKind::invalid_argument, "a volume cannot be made", [&] {
    auto made = with_nodes(device, std::move(memory), pairs, band_plan(o, VolumeClass::level_set, limit), {});
    const VolumeMaking& m = *made->making;
    const Array<unsigned>& words = made->arrays.words;
    link_nodes(m.memory, pairs, true, m.templates, m.places, words);
    const int leaves = m.places.room.x, values = m.places.values.x;
    if (leaves > 0) {
      made->grid.info.leaves = leaves;
      launch(distances_kernel(sign), {leaves, 512}, made->arrays, words, mesh, size, limit, values);
      spread_in_leaves(words, m.places, limit);
      launch(far_leaves_kernel(sign), leaves, made->arrays, words, mesh, size, limit, values);
      spread_in_leaves(words, m.places, limit);
      mask_band(*made, true, limit);
    }
    if (sign != MeshSign::none) spread_in_nodes(words, m.places, limit);
    finish_nodes(m.memory, pairs, m.places, words, made->arrays.voxels_before);
    made->read_counts();
    return made;
  });
}

}  // namespace
}  // namespace detail

Volume volume_from_mesh(const Mesh& mesh, MeshSign sign, const VolumeFromOptions& options, Loc loc) {
  return detail::called_from(loc, [&] {
    if (mesh.is_null()) invalid("a volume of a null mesh");
    if (sign == MeshSign::winding && mesh.kernel_argument().has_far_fields == 0)
      invalid("a volume of a mesh by winding numbers, which the mesh does not have: MeshOptions::winding_number");
    detail::check_band(mesh.points(), options, "a volume of a mesh");
    return Volume(detail::from_mesh(mesh, sign, options));
  });
}

}  // namespace weft
