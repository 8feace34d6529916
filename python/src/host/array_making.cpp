// Makes arrays: empty ones, filled ones, copies of the host's memory, and around memory of the host.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "../module.h"
#include "../pack.h"
#include "arrays.h"

namespace weft::python {

namespace {

nb::object finish(Array array, bool requires_grad) {
  if (requires_grad && array.dtype().has_reals()) array.need_gradient();
  return make_object(std::move(array));
}

nb::object empty(nb::handle shape, nb::handle dtype, nb::handle device, bool requires_grad) {
  drop_now();
  return finish(
      Array::empty(device.is_none() ? current_device() : device_from(device), extent_from(shape), type_from(dtype)),
      requires_grad);
}

nb::object zeros(nb::handle shape, nb::handle dtype, nb::handle device, bool requires_grad) {
  drop_now();
  Array a =
      Array::empty(device.is_none() ? current_device() : device_from(device), extent_from(shape), type_from(dtype));
  a.zero();
  return finish(std::move(a), requires_grad);
}

nb::object full(nb::handle shape, nb::handle value, nb::handle dtype, nb::handle device, bool requires_grad) {
  const DType& type = type_from(dtype);
  std::vector<std::byte> element(type.size);
  pack_value(value.ptr(), type, element.data());
  Array a = Array::empty(device_from(device), extent_from(shape), type);
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

}  // namespace

void add_array_making(nb::module_& m) {
  const auto device = [] { return nb::arg("device").none() = nb::none(); };
  m.def("empty", &empty, nb::arg("shape"), nb::arg("dtype"), device(), nb::arg("requires_grad") = false);
  m.def("zeros", &zeros, nb::arg("shape"), nb::arg("dtype"), device(), nb::arg("requires_grad") = false);
  m.def("full", &full, nb::arg("shape"), nb::arg("value"), nb::arg("dtype"), device(),
        nb::arg("requires_grad") = false);
  m.def("from_host", &from_host, nb::arg("buffer"), nb::arg("dtype"), nb::arg("shape"), device());
  m.def("wrap_host", &wrap_host, nb::arg("owner"), nb::arg("address"), nb::arg("dtype"), nb::arg("shape"),
        nb::arg("strides").none() = nb::none(), device());
}

}  // namespace weft::python
