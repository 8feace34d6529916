// Functions of Python's that XLA calls, with its buffers as arrays of NumPy's.
#include "../host/numbers.h"
#include "../module.h"
#include "../pack.h"
#include "calls.h"

namespace weft::python {

namespace {

using xla::Frame;

/// Memory of XLA's as an array of NumPy's, which is valid during the call.
nb::object shared(void* data, std::span<const std::int64_t> shape, xla::Type type) {
  const ir::Type scalar = xla::type_of(type);
  if (scalar == ir::Type::none) throw nb::type_error("a buffer has numbers of a type that weft lacks");
  std::vector<std::size_t> extents(shape.begin(), shape.end());
  const nb::ndarray<nb::numpy> array(data, extents.size(), extents.data(), nb::handle(), nullptr, number_of(scalar));
  return nb::cast(array, nb::rv_policy::reference);
}

nb::list arrays_of(const xla::Buffers& buffers) {
  nb::list list;
  for (std::int64_t k = 0; k < buffers.size; ++k) {
    const xla::Buffer& b = *buffers.items[k];
    list.append(shared(b.data, xla::shape_of(b), b.type));
  }
  return list;
}

nb::dict attributes_of(const xla::Attributes& attributes);

nb::object attribute_of(xla::AttributeKind kind, const void* item) {
  switch (kind) {
    case xla::AttributeKind::array: {
      const auto& values = *static_cast<const xla::Values*>(item);
      const std::int64_t size = std::int64_t(values.size);
      return shared(const_cast<void*>(values.data), {&size, 1}, values.type).attr("copy")();
    }
    case xla::AttributeKind::dictionary: return attributes_of(*static_cast<const xla::Attributes*>(item));
    case xla::AttributeKind::scalar: {
      const auto& scalar = *static_cast<const xla::Scalar*>(item);
      return unpack_scalar(static_cast<const std::byte*>(scalar.value), xla::type_of(scalar.type));
    }
    case xla::AttributeKind::string: {
      const auto& text = *static_cast<const xla::Text*>(item);
      return nb::str(text.data, text.size);
    }
  }
  return nb::none();
}

nb::dict attributes_of(const xla::Attributes& attributes) {
  nb::dict made;
  for (std::int64_t k = 0; k < attributes.size; ++k) {
    const xla::Text& name = *attributes.names[k];
    made[nb::str(name.data, name.size)] = attribute_of(attributes.kinds[k], attributes.items[k]);
  }
  return made;
}

void call(const Frame& frame, nb::handle function) {
  function(arrays_of(frame.inputs), arrays_of(frame.outputs), attributes_of(frame.attributes));
}

/// Answers a call of XLA's by a function of Python's, `function(inputs, outputs, attributes)`. \return its error's
/// address
std::uintptr_t answer(std::uintptr_t frame, nb::handle function) {
  return reinterpret_cast<std::uintptr_t>(xla::run(reinterpret_cast<Frame*>(frame), &call, function));
}

}  // namespace

void add_jax_callbacks(nb::module_& m) { m.def("answer_xla", &answer, nb::arg("frame"), nb::arg("function")); }

}  // namespace weft::python
