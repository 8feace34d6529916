// Reads the data behind a handle in kernels. Internal to the runtime.
#pragma once
#include <map>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/struct_var.h"
#include "../../array.h"

namespace weft::detail {

/// A kind of structures that have handles.
struct HandleKind {
  unsigned tag;
  const char* name;  ///< in messages: "a mesh"
  const char* none;  ///< the message about a handle that names no structure of this kind
};

/// Makes debug mode report a handle at which another tag was found than that of the wanted kind.
void check_handle(tracing::Id handle, const UInt& tag, const HandleKind& wanted, Loc loc);

/// Reads the data at a handle, a struct that begins with a tag of 32 bits. Checks the tag first, because elements of
/// another kind may be shorter. Then the whole struct is read at once. It is zeros if the tag is another one.
template <class T>
Var<T> structure_at(const In<std::uint64_t>& handle, const HandleKind& kind, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const tracing::Id id = handle.id;
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
  b.open_if(tracing::binary(ir::Op::eq, found, tracing::literal_uint(ir::Type::u32, kind.tag, loc), loc), loc);
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
  const Var<T> data = Passed<Var<T>>::make(inputs);
  check_handle(id, UInt(found, FromId{}), kind, loc);
  return data;
}

}  // namespace weft::detail
