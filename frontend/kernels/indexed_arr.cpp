// Sends indices through a list before they choose an element.
#include "indexed_arr.h"

#include <fmt/format.h>

namespace weft::detail {

IndexedLayout make_indices(const ArrLayout& data) {
  IndexedLayout a;
  a.data = data;
  for (int k = 0; k < data.ndim; ++k) {
    tracing::Trace::current().begin_part(fmt::format("indices of dimension {}", k));
    a.indices[std::size_t(k)] = make_array_param(4, 4, 1, true, type_name(ir::Type::i32, 1, 1));
  }
  return a;
}

Index through_list(const IndexedLayout& a, int k, const Index& index) {
  if (!a.has_list(k)) return index;
  tracing::Id value;
  tracing::load(address_of(a.indices[std::size_t(a.data.first + k)], &index, 1), ir::Type::i32, 1, &value, index.loc);
  return {value, index.loc, FromId{}};
}

tracing::Address address_of(const IndexedLayout& a, const Index* indices, int n) {
  Index through[4] = {indices[0], indices[0], indices[0], indices[0]};
  for (int k = 0; k < n; ++k) through[k] = through_list(a, k, indices[k]);
  return address_of(a.data, through, n);
}

IndexedLayout slice_of(const IndexedLayout& a, const Index& index) {
  IndexedLayout s = a;
  s.data = slice_of(a.data, through_list(a, 0, index));
  return s;
}

tracing::Id shape_of(const IndexedLayout& a, int k, ir::Type type, Loc loc) {
  const int left = a.data.ndim - a.data.first;
  if (k >= 0 && k < left && a.has_list(k)) return shape_of(a.indices[std::size_t(a.data.first + k)], 0, type, loc);
  return shape_of(a.data, k, type, loc);
}

}  // namespace weft::detail
