// Makes the types that Python names at run time, with the layouts that C++ has for them.
#include "types.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "../../frontend/language/arr.h"
#include "module.h"

namespace weft::python {

namespace {

constexpr int kMostScalars = 4096;

std::uint32_t next_number() {
  static std::uint32_t last = 0;  // under the GIL, as all that makes types
  return ++last;
}

/// Completes a type and gives it its object.
const DType& publish(DType* type) {
  type->number = next_number();
  type->self = nb::cast(type, nb::rv_policy::reference).release().ptr();
  return *type;
}

std::string name_of(DType::Kind kind, ir::Type type, int rows, int columns) {
  if (kind == DType::Kind::quaternion) return detail::named_type("quat", type);
  if (kind == DType::Kind::transform) return detail::named_type("transform", type);
  return detail::type_name(type, rows, columns);
}

const DType& flat(DType::Kind kind, ir::Type type, int rows, int columns) {
  static auto& known = *new std::map<std::tuple<DType::Kind, ir::Type, int, int>, const DType*>;
  const auto key = std::tuple(kind, type, rows, columns);
  if (const auto found = known.find(key); found != known.end()) return *found->second;
  if (type == ir::Type::none || int(type) >= ir::kTypeCount) throw nb::value_error("no scalar type has this code");
  if (rows < 1 || columns < 1 || std::int64_t(rows) * columns > kMostScalars)
    throw nb::value_error("a vector or matrix has 1 to 4096 components");
  if ((kind == DType::Kind::quaternion || kind == DType::Kind::transform) && !ir::is_float(type))
    throw nb::value_error("quaternions and transforms are of real numbers");
  auto* made = new DType;
  made->kind = kind;
  made->type = type;
  made->rows = rows;
  made->columns = columns;
  made->name = name_of(kind, type, rows, columns);
  made->align = std::uint32_t(ir::bytes(type));
  made->size = made->align * std::uint32_t(rows * columns);
  for (int k = 0; k < rows * columns; ++k) made->leaves.push_back({type, k == 0, std::uint32_t(k) * made->align});
  known.emplace(key, made);
  return publish(made);
}

std::uint32_t round_up(std::uint32_t n, std::uint32_t to) { return (n + to - 1) / to * to; }

// Lays the fields out as a compiler of C++ would, as detail::StructLayout does.
const DType& make_struct(std::string name, nb::sequence fields) {
  auto made = std::make_unique<DType>();
  made->kind = DType::Kind::structure;
  made->name = std::move(name);
  for (nb::handle given : fields) {
    const nb::tuple pair = nb::cast<nb::tuple>(given);
    if (pair.size() != 2) throw nb::type_error("a field of a struct is a pair of a name and a type");
    Field field;
    field.name = nb::cast<std::string>(pair[0]);
    field.key = PyUnicode_InternFromString(field.name.c_str());
    std::uint32_t size = 0, align = 1;
    if (nb::isinstance<nb::tuple>(pair[1])) {
      const nb::tuple array = nb::cast<nb::tuple>(pair[1]);
      field.dtype = &type_from(array[0]);
      field.ndim = nb::cast<int>(array[1]);
      if (field.ndim < 1 || field.ndim > 4) throw nb::value_error("an array has 1 to 4 dimensions");
      align = 8;
      size = round_up(8 + 4 * std::uint32_t(field.ndim), align);
      made->holds_arrays = true;
    } else {
      field.dtype = &type_from(pair[1]);
      size = field.dtype->size;
      align = field.dtype->align;
      made->holds_arrays = made->holds_arrays || field.dtype->holds_arrays;
    }
    made->size = round_up(made->size, align);
    made->align = std::max(made->align, align);
    field.offset = made->size;
    field.first_leaf = made->count();
    if (field.ndim == 0)
      for (const detail::Leaf& l : field.dtype->leaves)
        made->leaves.push_back({l.type, l.first, field.offset + l.offset});
    made->size += size;
    made->fields.push_back(std::move(field));
  }
  if (made->count() > kMostScalars) throw nb::value_error("a struct has at most 4096 numbers");
  made->size = std::max(round_up(made->size, made->align), 1u);
  return publish(made.release());
}

const char* kind_name(const DType& type) {
  switch (type.kind) {
    case DType::Kind::scalar: return "scalar";
    case DType::Kind::vector: return "vector";
    case DType::Kind::matrix: return "matrix";
    case DType::Kind::quaternion: return "quaternion";
    case DType::Kind::transform: return "transform";
    case DType::Kind::structure: return "struct";
  }
  return "";
}

nb::tuple codes_of(const DType& type) {
  nb::list codes;
  for (const detail::Leaf& l : type.leaves) codes.append(int(l.type));
  return nb::tuple(codes);
}

nb::tuple fields_of(const DType& type) {
  nb::list fields;
  for (const Field& f : type.fields) {
    nb::object what = f.dtype->object();
    if (f.ndim) what = nb::make_tuple(what, f.ndim);
    fields.append(nb::make_tuple(f.name, what, f.offset, f.first_leaf, f.ndim ? 0 : f.dtype->count()));
  }
  return nb::tuple(fields);
}

ir::Type code(int given) {
  if (given <= 0 || given >= ir::kTypeCount) throw nb::value_error("no scalar type has this code");
  return ir::Type(given);
}

}  // namespace

bool DType::has_reals() const {
  return std::ranges::any_of(leaves, [](const detail::Leaf& l) { return ir::is_float(l.type); });
}

const DType& scalar_type_of(ir::Type type) { return flat(DType::Kind::scalar, type, 1, 1); }
const DType& vector_type_of(ir::Type type, int n) { return flat(DType::Kind::vector, type, n, 1); }
const DType& matrix_type_of(ir::Type type, int rows, int columns) {
  return flat(DType::Kind::matrix, type, rows, columns);
}
const DType& quaternion_type_of(ir::Type type) { return flat(DType::Kind::quaternion, type, 4, 1); }
const DType& transform_type_of(ir::Type type) { return flat(DType::Kind::transform, type, 7, 1); }

const DType& type_from(nb::handle object) {
  // Compared by address first: a failed cast takes longer than the rest of a call.
  static const PyTypeObject* const own = reinterpret_cast<PyTypeObject*>(nb::type<DType>().ptr());
  if (Py_TYPE(object.ptr()) == own) return *nb::inst_ptr<DType>(object);
  const auto is = [&](const PyTypeObject& type) { return object.ptr() == reinterpret_cast<const PyObject*>(&type); };
  if (is(PyFloat_Type)) return scalar_type_of(ir::Type::f32);
  if (is(PyLong_Type)) return scalar_type_of(ir::Type::i32);
  if (is(PyBool_Type)) return scalar_type_of(ir::Type::b1);
  static PyObject* const native = PyUnicode_InternFromString("native");
  if (PyObject* held = PyObject_GetAttr(object.ptr(), native)) {
    const nb::object owned = nb::steal(held);
    if (Py_TYPE(held) == own) return *nb::inst_ptr<DType>(owned);
  } else {
    PyErr_Clear();
  }
  throw nb::type_error("this is no type of elements");
}

void add_types(nb::module_& m) {
  nb::class_<DType>(m, "DType", "A type of values and elements. One object for each type: compare with `is`.")
      .def_ro("name", &DType::name)
      .def_prop_ro("kind", &kind_name)
      .def_prop_ro("code", [](const DType& t) { return int(t.type); })
      .def_ro("rows", &DType::rows)
      .def_ro("cols", &DType::columns)
      .def_prop_ro("count", &DType::count)
      .def_ro("size", &DType::size)
      .def_ro("align", &DType::align)
      .def_ro("number", &DType::number)
      .def_ro("holds_arrays", &DType::holds_arrays)
      .def_prop_ro("has_reals", &DType::has_reals)
      .def_prop_ro("codes", &codes_of)
      .def_prop_ro("fields", &fields_of)
      .def_prop_rw(
          "python", [](const DType& t) { return t.python ? nb::borrow(t.python) : nb::none(); },
          [](DType& t, nb::object python) {
            Py_XDECREF(t.python);
            t.python = python.release().ptr();
          },
          nb::for_setter(nb::arg("value").none()),
          "The package's class for values of the type; arrays show it as dtype.")
      .def("__repr__", [](const DType& t) { return "<weft type " + t.name + ">"; });
  m.def(
      "scalar_dtype", [](int c) { return scalar_type_of(code(c)).object(); }, nb::arg("code"),
      "The one type of a scalar. Errors: ValueError for sizes and scalars that it cannot have.");
  m.def(
      "vector_dtype", [](int c, int n) { return vector_type_of(code(c), n).object(); }, nb::arg("code"), nb::arg("n"),
      "The one type of a vector. Errors: ValueError for sizes and scalars that it cannot have.");
  m.def(
      "matrix_dtype", [](int c, int rows, int cols) { return matrix_type_of(code(c), rows, cols).object(); },
      nb::arg("code"), nb::arg("rows"), nb::arg("cols"),
      "The one type of a matrix. Errors: ValueError for sizes and scalars that it cannot have.");
  m.def(
      "quaternion_dtype", [](int c) { return quaternion_type_of(code(c)).object(); }, nb::arg("code"),
      "The one type of a quaternion: x, y, z, w. Errors: ValueError for sizes and scalars that it cannot have.");
  m.def(
      "transform_dtype", [](int c) { return transform_type_of(code(c)).object(); }, nb::arg("code"),
      "The one type of a transform: a translation, then a rotation. Errors: ValueError for sizes and scalars that it "
      "cannot have.");
  m.def(
      "struct_dtype",
      [](std::string name, nb::sequence fields) { return make_struct(std::move(name), fields).object(); },
      nb::arg("name"), nb::arg("fields"),
      "A new type of structs, of pairs of a name and a type, or a name and (type, dimensions) for an array.");
  constexpr const char* names[ir::kTypeCount] = {nullptr,  "BOOL",   "INT8",   "INT16",   "INT32",   "INT64",  "UINT8",
                                                 "UINT16", "UINT32", "UINT64", "FLOAT16", "FLOAT32", "FLOAT64"};
  for (int k = 1; k < ir::kTypeCount; ++k) m.attr(names[k]) = k;
}

}  // namespace weft::python
