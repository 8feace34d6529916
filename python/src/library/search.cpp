// Searches in arrays of the kernel that is traced.
#include "search.h"

#include "../../../frontend/library/random.h"
#include "../../../frontend/library/search.h"
#include "../trace/array_refs.h"
#include "../trace/ids.h"

namespace weft::python {

namespace {

[[noreturn]] void refuse(const std::string& name) {
  throw nb::type_error((name +
                        ": it takes (a one-dimensional array of numbers, a value of their type), (such an array, "
                        "int32, int32, a value), or for sample_cdf (uint32, an array of float32)")
                           .c_str());
}

Id scalar(nb::handle value, ir::Type type, const char* what) {
  const Ids ids = nb::cast<Ids>(value);
  check_ids(ids.span());
  expect_count(ids.size(), 1, what);
  expect_type(ids[0], type, what);
  return ids[0];
}

nb::object one(const DType& dtype, Id id) { return nb::make_tuple(dtype.object(), nb::cast(Ids({&id, 1}))); }

nb::object sample(nb::tuple values, const std::string& name) {
  const ArrayRef* const cdf = values.size() == 2 ? as<const ArrayRef>(values[1]) : nullptr;
  if (!cdf) refuse(name);
  if (cdf->ndim() != 1 || cdf->is_null() || cdf->dtype != &scalar_type_of(ir::Type::f32)) refuse(name);
  Var<std::uint32_t> state(scalar(values[0], ir::Type::u32, "the state"), detail::FromId{});
  const Var<int> index = detail::cdf_index(state, cdf->layout, here());
  nb::list results;
  results.append(one(scalar_type_of(ir::Type::i32), index.read({})));
  results.append(one(scalar_type_of(ir::Type::u32), state.read({})));
  return results;
}

}  // namespace

nb::object call_search(const std::string& name, nb::tuple, nb::tuple values) {
  if (name == "sample_cdf") return sample(values, name);
  const bool above = name == "upper_bound";
  if (!above && name != "lower_bound") refuse(name);
  const ArrayRef* const sorted = values.size() == 2 || values.size() == 4 ? as<const ArrayRef>(values[0]) : nullptr;
  if (!sorted) refuse(name);
  if (sorted->ndim() != 1 || sorted->is_null() || sorted->dtype->kind != DType::Kind::scalar) refuse(name);
  const ir::Type type = sorted->dtype->type;
  if (!ir::is_numeric(type)) refuse(name);
  const tracing::CallPlace place(here());
  Id lo = tracing::literal_int(ir::Type::i32, 0, here()), hi;
  if (values.size() == 4) {
    lo = scalar(values[1], ir::Type::i32, "the first index of a search");
    hi = scalar(values[2], ir::Type::i32, "the end of a search");
  } else {
    hi = detail::shape_of(sorted->layout, 0, ir::Type::i32, here());
  }
  const Id value = scalar(values[values.size() - 1], type, "the value of a search");
  return one(scalar_type_of(ir::Type::i32), detail::search(sorted->layout, type, lo, hi, value, above, here()));
}

}  // namespace weft::python
