// What kernels read behind a handle.
#include "handle.h"

#include <map>

#include "../../frontend/edsl/checks.h"
#include "../../frontend/edsl/report.h"
#include "../state.h"

namespace weft {

namespace detail {

void become_handle(const ArrayBase& element, std::shared_ptr<const std::atomic<bool>> stale) {
  element.storage()->device->handles.add(element.storage(), std::move(stale));
}

namespace {

// All of the struct is read at once, under one condition; zeros where the handle is 0, as in a structure that is gone.
template <class T>
Var<T> read_at(tracing::Id id, Loc loc) {
  Trace& t = Trace::current(loc);
  t.kernel().module().by_handles = true;
  ir::Builder& b = t.builder();
  tracing::Address at;
  at.base = id;
  at.index = tracing::literal_int(ir::Type::i32, 0, loc);
  at.stride = Layout<T>::size;
  at.align = 8;
  at.loc = loc;
  const ir::RegionId outer = b.region();
  b.open_if(tracing::binary(ir::Op::ne, id, tracing::zero(ir::Type::u64), loc), loc);
  FuncArgs fields;
  Passed<Var<T>>::put({Ref<const T>(at), loc}, fields);
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
  return Passed<Var<T>>::make(inputs);
}

// \param some  the length of an array of the structure that is never empty
void report_dead(const Int& some, const In<std::uint64_t>& id, const char* what) {
  if (!Trace::current(id.loc).debug().checks) return;
  assert_(In<bool>(some > 0, id.loc), "the handle", UInt64(id.id, FromId{}), what);
}

}  // namespace
}  // namespace detail

Var<BvhData> bvh_at(In<std::uint64_t> id, Loc loc) {
  tracing::CallPlace place(loc);
  const Var<BvhData> found = detail::read_at<BvhData>(id.id, loc);
  detail::report_dead(found.nodes.shape(0), id, "names no hierarchy of boxes, or one that is no more");
  return found;
}

Var<MeshArrays> mesh_at(In<std::uint64_t> id, Loc loc) {
  tracing::CallPlace place(loc);
  const Var<MeshArrays> found = detail::read_at<MeshArrays>(id.id, loc);
  detail::report_dead(found.tree.nodes.shape(0), id, "names no mesh, or one that is no more");
  return found;
}

Var<HashGridArrays> hash_grid_at(In<std::uint64_t> id, Loc loc) {
  tracing::CallPlace place(loc);
  const Var<HashGridArrays> found = detail::read_at<HashGridArrays>(id.id, loc);
  detail::report_dead(found.begins.shape(0), id, "names no hash grid, or one that was not built or is no more");
  return found;
}

}  // namespace weft
