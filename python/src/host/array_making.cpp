// Makes arrays: empty ones, filled ones, copies of the host's memory, and around memory of the host.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "../../../runtime/indexed_array.h"
#include "../module.h"
#include "../pack.h"
#include "arrays.h"

namespace weft::python {

namespace {

nb::object finish(Array array, bool requires_grad) {
  if (requires_grad && array.dtype().has_reals()) array.need_gradient();
  return make_object(std::move(array));
}

/// The shape of a new array. Errors: those of extent_from(); ValueError for a negative size.
Extent new_extent(nb::handle shape) {
  const Extent extent = extent_from(shape);
  for (int k = 0; k < extent.rank; ++k)
    if (extent[k] < 0) throw nb::value_error("Array shapes must be non-negative");
  return extent;
}

nb::object empty(nb::handle shape, nb::handle dtype, nb::handle device, bool requires_grad) {
  drop_now();
  return finish(
      Array::empty(device.is_none() ? current_device() : device_from(device), new_extent(shape), type_from(dtype)),
      requires_grad);
}

nb::object zeros(nb::handle shape, nb::handle dtype, nb::handle device, bool requires_grad) {
  drop_now();
  Array a =
      Array::empty(device.is_none() ? current_device() : device_from(device), new_extent(shape), type_from(dtype));
  a.zero();
  return finish(std::move(a), requires_grad);
}

nb::object full(nb::handle shape, nb::handle value, nb::handle dtype, nb::handle device, bool requires_grad) {
  const DType& type = type_from(dtype);
  std::vector<std::byte> element(type.size);
  pack_value(value.ptr(), type, element.data());
  Array a = Array::empty(device_from(device), new_extent(shape), type);
  a.fill(element.data());
  return finish(std::move(a), requires_grad);
}

nb::object from_host(nb::handle buffer, nb::handle dtype, nb::handle shape, nb::handle device) {
  nb::object array = make_object(Array::empty(device_from(device), extent_from(shape), type_from(dtype)));
  array.attr("assign_bytes")(buffer);
  return array;
}

nb::object wrap_host(nb::object owner, std::uintptr_t address, nb::handle dtype, nb::handle shape, nb::handle strides,
                     nb::handle device) {
  const Extent extent = extent_from(shape);
  std::optional<Extent> steps;
  if (!strides.is_none()) {
    steps = extent_from(strides);
    if (steps->rank != extent.rank) throw nb::value_error("there is a stride for each dimension");
  }
  return make_object(Array::around(device_from(device), extent, steps ? steps->n.data() : nullptr, type_from(dtype),
                                   reinterpret_cast<void*>(address), std::move(owner)));
}

/// Copies the elements of `data` that lists of indices choose to `packed`, or, with `scatter`, back.
/// \param lists  for each dimension an array of int32, or None for all its indices
void indexed_copy(const Array& packed, const Array& data, nb::sequence lists, bool scatter) {
  if (&packed.dtype() != &data.dtype() || packed.ndim() != data.ndim())
    throw nb::type_error("the elements of an indexed array are copied to an array of their type and dimensions");
  detail::IndexLists chosen;
  std::size_t k = 0;
  for (const nb::handle list : lists) {
    if (k == chosen.size()) throw nb::value_error("an array has 1 to 4 dimensions");
    if (!list.is_none()) chosen[k] = typed<int>(list, "a list of indices");
    ++k;
  }
  detail::check_indexed(data, chosen);
  Released released;
  detail::indexed_copy(packed, data, chosen, scatter);
}

}  // namespace

void add_array_making(nb::module_& m) {
  const auto device = [] { return nb::arg("device").none() = nb::none(); };
  m.def("empty", &empty, nb::arg("shape"), nb::arg("dtype"), device(), nb::arg("requires_grad") = false);
  m.def("zeros", &zeros, nb::arg("shape"), nb::arg("dtype"), device(), nb::arg("requires_grad") = false);
  m.def("full", &full, nb::arg("shape"), nb::arg("value"), nb::arg("dtype"), device(),
        nb::arg("requires_grad") = false);
  m.def("from_host", &from_host, nb::arg("buffer"), nb::arg("dtype"), nb::arg("shape"), device());
  m.def("indexed_copy", &indexed_copy, nb::arg("packed"), nb::arg("data"), nb::arg("lists"), nb::arg("scatter"));
  m.def("wrap_host", &wrap_host, nb::arg("owner"), nb::arg("address"), nb::arg("dtype"), nb::arg("shape"),
        nb::arg("strides").none() = nb::none(), device());
}

}  // namespace weft::python
