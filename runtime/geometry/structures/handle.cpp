// Reads structures by their handles in kernels.
#include "handle.h"

#include <map>

#include "../../../frontend/language/checks.h"
#include "../../../frontend/language/report.h"
#include "../../core/state.h"

namespace weft {

namespace detail {

void become_handle(const ArrayBase& element, std::shared_ptr<const Generation> structure) {
  element.storage()->device->handles.add(element.storage(), std::move(structure));
}

namespace {

/// The data behind a handle: always the tag, and the rest if the tag is the right one; else zeros.
template <class T>
struct Found {
  Var<T> data;
  UInt tag;
};

// Checks the tag first, because elements of another kind may be shorter. Then the whole struct is read at once.
template <class T>
Found<T> read_at(tracing::Id id, unsigned wanted, Loc loc) {
  tracing::Trace& t = tracing::Trace::current(loc);
  t.kernel().module().by_handles = true;
  ir::Builder& b = t.builder();
  tracing::Address at;
  at.base = id;
  at.index = tracing::literal_int(ir::Type::i32, 0, loc);
  at.stride = Layout<T>::size;
  at.align = 8;
  at.loc = loc;
  const ir::RegionId outer = b.region();
  const std::uint32_t tag = b.local(ir::Type::u32);
  b.local_set_in(outer, tag, tracing::zero(ir::Type::u32), loc);
  b.open_if(tracing::binary(ir::Op::ne, id, tracing::zero(ir::Type::u64), loc), loc);
  tracing::Id first = 0;
  tracing::load(at, ir::Type::u32, 1, &first, loc);
  b.local_set(tag, first, loc);
  b.close_if();
  const tracing::Id found = b.local_get(tag, loc);
  b.open_if(tracing::binary(ir::Op::eq, found, tracing::literal_uint(ir::Type::u32, wanted, loc), loc), loc);
  FuncArgs fields;
  Passed<Var<T>>::put({element_at<T>(at), loc}, fields);
  std::map<tracing::Id, std::uint32_t> locals;
  for (const tracing::Id field : fields.ids) {
    if (locals.contains(field)) continue;
    const ir::Type type = b.module()[field].type;
    const std::uint32_t local = b.local(type);
    b.local_set_in(outer, local, tracing::zero(type), loc);
    b.local_set(local, field, loc);
    locals[field] = local;
  }
  b.close_if();
  std::map<tracing::Id, tracing::Id> outside;
  for (const auto& [field, local] : locals) outside[field] = b.local_get(local, loc);
  for (tracing::Id& field : fields.ids) field = outside.at(field);
  for (ArrLayout& a : fields.arrays) {
    a.base = outside.at(a.base);
    for (int k = 0; k < a.ndim; ++k) a.shape[std::size_t(k)] = outside.at(a.shape[std::size_t(k)]);
  }
  FuncInputs inputs(fields, true);
  return {Passed<Var<T>>::make(inputs), UInt(found, FromId{})};
}

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
