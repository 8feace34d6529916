// Reads structures by their handles in kernels.
#include "handle.h"

#include "../../../frontend/language/checks.h"
#include "../../../frontend/language/report.h"
#include "../../core/state.h"
#include "read_handle.h"

namespace weft {

namespace detail {

void become_handle(const ArrayBase& element, std::shared_ptr<const Generation> structure) {
  element.storage()->device->handles.add(element.storage(), std::move(structure));
}

namespace {

struct Kind {
  unsigned tag;
  const char *wrong, *none;  ///< parts of messages: for a handle of another kind; for one that names nothing
};
constexpr Kind kBvh{kBvhTag, "is that of a hierarchy of boxes, but used for",
                    "names no hierarchy of boxes, or one that is no more"};
constexpr Kind kMesh{kMeshTag, "is that of a mesh, but used for", "names no mesh, or one that is no more"};
constexpr Kind kHashGrid{kHashGridTag, "is that of a hash grid, but used for",
                         "names no hash grid, or one that was not built or is no more"};

// \param use  in messages: what the handle is used for
void report(const UInt& tag, const Kind& wanted, const char* use, const In<std::uint64_t>& id) {
  if (!tracing::Trace::current(id.loc).debug().checks) return;
  const UInt64 handle(id.id, FromId{});
  for (const Kind& other : {kBvh, kMesh, kHashGrid})
    if (other.tag != wanted.tag) assert_(In<bool>(tag != other.tag, id.loc), "the handle", handle, other.wrong, use);
  assert_(In<bool>(tag == wanted.tag, id.loc), "the handle", handle, wanted.none);
}

}  // namespace
}  // namespace detail

Var<BvhData> bvh_at(In<std::uint64_t> id, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const detail::Found<BvhData> found = detail::read_at<BvhData>(id.id, detail::kBvhTag, loc);
  detail::report(found.tag, detail::kBvh, "a hierarchy of boxes", id);
  return found.data;
}

Var<MeshArrays> mesh_at(In<std::uint64_t> id, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const detail::Found<MeshArrays> found = detail::read_at<MeshArrays>(id.id, detail::kMeshTag, loc);
  detail::report(found.tag, detail::kMesh, "a mesh", id);
  return found.data;
}

Var<HashGridArrays> hash_grid_at(In<std::uint64_t> id, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const detail::Found<HashGridArrays> found = detail::read_at<HashGridArrays>(id.id, detail::kHashGridTag, loc);
  detail::report(found.tag, detail::kHashGrid, "a hash grid", id);
  return found.data;
}

}  // namespace weft
