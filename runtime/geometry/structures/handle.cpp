// Reads structures by their handles in kernels.
#include "handle.h"

#include <fmt/format.h>

#include "../../../frontend/language/checks.h"
#include "../../../frontend/language/report.h"
#include "read_handle.h"

namespace weft {

namespace detail {

namespace {

constexpr HandleKind kBvh{kBvhTag, "a hierarchy of boxes", "names no hierarchy of boxes, or one that is no more"};
constexpr HandleKind kMesh{kMeshTag, "a mesh", "names no mesh, or one that is no more"};
constexpr HandleKind kHashGrid{kHashGridTag, "a hash grid",
                               "names no hash grid, or one that was not built or is no more"};

}  // namespace

void check_handle(tracing::Id handle, const UInt& tag, const HandleKind& wanted, Loc loc) {
  if (!tracing::Trace::current(loc).debug().checks) return;
  const UInt64 id(handle, FromId{});
  for (const HandleKind& other : {kBvh, kMesh, kHashGrid})
    if (other.tag != wanted.tag)
      assert_(In<bool>(tag != other.tag, loc), "the handle", id,
              fmt::format("is that of {}, but used for {}", other.name, wanted.name));
  assert_(In<bool>(tag == wanted.tag, loc), "the handle", id, wanted.none);
}

}  // namespace detail

Var<BvhData> bvh_at(In<std::uint64_t> id, Loc loc) { return detail::structure_at<BvhData>(id, detail::kBvh, loc); }
Var<MeshArrays> mesh_at(In<std::uint64_t> id, Loc loc) {
  return detail::structure_at<MeshArrays>(id, detail::kMesh, loc);
}
Var<HashGridArrays> hash_grid_at(In<std::uint64_t> id, Loc loc) {
  return detail::structure_at<HashGridArrays>(id, detail::kHashGrid, loc);
}

}  // namespace weft
