// What Python does with arrays in a kernel: elements, their parts, slices, shapes, atomic operations.
#include "array_refs.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "../../../frontend/kernels/func_derivatives.h"
#include "../../../frontend/kernels/group.h"
#include "../../../frontend/language/flatten.h"
#include "../module.h"
#include "ids.h"

namespace weft::python {

using ir::Op;
using ir::Type;

namespace {

ir::Builder& builder() { return tracing::Trace::current(here()).builder(); }

/// Code that uses an array which the launch leaves out is right only where no thread comes.
bool is_left_out(const ArrayRef& a) {
  if (!a.is_null()) return false;
  if (builder().in_dead_block()) return true;
  tracing::refuse(here(),
                  "argument " + std::to_string(a.layout.param + 1) + " is None, and the kernel uses its elements");
}

/// The extent of dimension k as an integer of this type.
Id extent(const ArrayRef& a, int k, Type type) {
  if (a.is_null()) return tracing::zero(type);
  if (ir::bits(type) == 64) {
    const Id size = detail::shape_of(a.layout, k, Type::i64, here());
    return type == Type::i64 ? size : tracing::convert(type, size, here());
  }
  const Id size = detail::shape_of(a.layout, k, Type::i32, here());
  return type == Type::i32 ? size : tracing::convert(type, size, here());
}

/// An index that counts from the end if it is negative.
Id wrapped(const ArrayRef& a, int k, Id index) {
  const Type type = type_of(index);
  if (!ir::is_signed(type)) return index;
  const ir::Inst& inst = builder().module()[index];
  const bool known = inst.op == Op::constant;
  if (known && !(inst.imm >> (ir::bits(type) - 1) & 1)) return index;
  const Type wide = ir::bits(type) == 64 ? Type::i64 : Type::i32;
  if (type != wide) index = tracing::convert(wide, index, here());
  const Id from_end = tracing::binary(Op::add, index, extent(a, k, wide), here());
  if (known) return from_end;
  const Id negative = tracing::binary(Op::lt, index, tracing::zero(wide), here());
  return tracing::ternary(Op::select, negative, from_end, index, here());
}

detail::Index index_of(Id id) {
  detail::Index index(id, here(), detail::FromId{});
  const ir::Inst& inst = builder().module()[id];
  if (inst.op == Op::constant) {
    const int unused = 64 - ir::bits(inst.type);
    index.is_known = true;
    index.known = ir::is_signed(inst.type) ? std::int64_t(inst.imm << unused) >> unused : std::int64_t(inst.imm);
  }
  return index;
}

void check_index(Id id) {
  check_id(id);
  if (!ir::is_int(type_of(id))) throw nb::type_error("an index is an integer");
}

ElementRef element(const ArrayRef& a, const Ids& given, unsigned wrap) {
  if (int(given.size()) != a.ndim())
    throw nb::type_error(("an element of an array of " + std::to_string(a.ndim()) + " dimension(s) is named by " +
                          std::to_string(given.size()) + " index(es)")
                             .c_str());
  for (const Id id : given.span()) check_index(id);
  if (is_left_out(a)) return {{}, a.dtype, true};
  detail::Index indices[4] = {index_of(given[0]), index_of(given[0]), index_of(given[0]), index_of(given[0])};
  for (std::size_t k = 0; k < given.size(); ++k)
    indices[k] = index_of(wrap >> k & 1 ? wrapped(a, int(k), given[k]) : given[k]);
  return {detail::address_of(a.layout, indices, int(given.size())), a.dtype, false};
}

void refuse_arrays(const ElementRef& e) {
  if (e.dtype->holds_arrays)
    tracing::refuse(here(),
                    "a struct that holds arrays is not read or assigned as a whole in a kernel: use its fields");
}

Ids zeros_of(const DType& type) {
  Ids out(std::size_t(type.count()));
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = tracing::zero(type.leaves[k].type);
  return out;
}

Ids load(const ElementRef& e) {
  refuse_arrays(e);
  if (e.is_null) return zeros_of(*e.dtype);
  Ids out(std::size_t(e.dtype->count()));
  detail::load_leaves(e.at, e.dtype->leaves, out.data(), here());
  return out;
}

void check_values(const ElementRef& e, const Ids& values) {
  check_ids(values.span());
  expect_count(values.size(), std::size_t(e.dtype->count()), "an assigned value");
  for (std::size_t k = 0; k < values.size(); ++k) expect_type(values[k], e.dtype->leaves[k].type, "an assigned value");
}

void store(const ElementRef& e, const Ids& values) {
  refuse_arrays(e);
  check_values(e, values);
  if (!e.is_null) detail::store_leaves(e.at, e.dtype->leaves, values.data(), here());
}

void expect_flat(const ElementRef& e, const char* what) {
  if (e.dtype->is_struct()) throw nb::type_error((std::string(what) + " is not defined for structs").c_str());
}

/// Does `element op= values`.
void update(const ElementRef& e, int op, const Ids& values) {
  expect_flat(e, "an assignment with an operator");
  const ir::OpInfo* info = op >= 0 && op < int(Op::count) ? &ir::info(Op(op)) : nullptr;
  if (!info || info->arity != 2 || info->effect != ir::Effect::pure || info->result != ir::ResultRule::same)
    throw nb::value_error("this is no operator of an assignment");
  check_ids(values.span());
  const std::size_t count = std::size_t(e.dtype->count());
  if (values.size() != 1) expect_count(values.size(), count, "an operand");
  for (const Id id : values.span()) expect_type(id, e.dtype->type, "an operand");
  if (e.is_null) return;
  tracing::update(Op(op), e.at, e.dtype->type, int(count), values.data(), values.size() == 1 ? 0 : 1, here());
}

/// Scalars `first` to `first + count` of an element, as a value of this type.
ElementRef part(const ElementRef& e, int first, const DType& dtype) {
  ElementRef p{e.at, &dtype, e.is_null};
  p.at.offset += std::uint32_t(first * ir::bytes(e.dtype->type));
  return p;
}

ElementRef component(const ElementRef& e, int k) {
  expect_flat(e, "a component");
  if (k < 0 || k >= e.dtype->count()) throw nb::index_error("no component has this number");
  return part(e, k, scalar_type_of(e.dtype->type));
}

ElementRef row(const ElementRef& e, int k) {
  if (e.dtype->kind != DType::Kind::matrix) throw nb::type_error("only a matrix has rows");
  if (k < 0 || k >= e.dtype->rows) throw nb::index_error("no row has this number");
  return part(e, k * e.dtype->columns, vector_type_of(e.dtype->type, e.dtype->columns));
}

/// Part `index` of n parts of `step` scalars each.
ElementRef at(const ElementRef& e, Id index, int n, int step) {
  expect_flat(e, "an index");
  check_index(index);
  if (n < 1 || step < 1 || n * step > e.dtype->count()) throw nb::value_error("an element has no such parts");
  const DType& dtype = step == 1 ? scalar_type_of(e.dtype->type) : vector_type_of(e.dtype->type, step);
  const detail::Index known = index_of(index);
  if (known.is_known) return part(e, int(std::clamp<std::int64_t>(known.known, 0, n - 1)) * step, dtype);
  ElementRef p{e.at, &dtype, e.is_null};
  if (!e.is_null) p.at = tracing::part_at(e.at, std::uint32_t(step * ir::bytes(e.dtype->type)), index, n, here());
  return p;
}

nb::object field(const ElementRef& e, std::string_view name) {
  for (const Field& f : e.dtype->fields) {
    if (f.name != name) continue;
    ElementRef p{e.at, f.dtype, e.is_null};
    p.at.offset += f.offset;
    if (f.ndim == 0) return nb::cast(p);
    if (e.is_null) tracing::refuse(here(), "an array of an element that the launch leaves out");
    return nb::cast(ArrayRef{detail::load_array_handle(p.at, f.ndim, f.dtype->size, here()), f.dtype});
  }
  throw nb::attribute_error(("struct " + e.dtype->name + " has no field \"" + std::string(name) + "\"").c_str());
}

// ---- Atomic operations

struct AtomicName {
  const char* name;
  Op op;
  bool (*takes)(Type);
};
constexpr bool takes_all(Type) { return true; }
constexpr AtomicName kAtomics[] = {
    {"add", Op::atomic_add, &ir::is_numeric},
    {"min", Op::atomic_min, &ir::is_numeric},
    {"max", Op::atomic_max, &ir::is_numeric},
    {"and", Op::atomic_and, &ir::is_int},
    {"or", Op::atomic_or, &ir::is_int},
    {"xor", Op::atomic_xor, &ir::is_int},
    {"exchange", Op::atomic_exchange, &takes_all},
    {"cas", Op::atomic_cas, &takes_all},
};

Ids atomic(const ElementRef& e, std::string_view name, Ids values, std::optional<Ids> expected) {
  expect_flat(e, "an atomic operation");
  check_values(e, values);
  if (expected) check_values(e, *expected);
  if (name == "sub") {
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = tracing::unary(Op::neg, values[k], here());
    name = "add";
  }
  const auto known = std::ranges::find_if(kAtomics, [&](const AtomicName& a) { return a.name == name; });
  if (known == std::end(kAtomics)) throw nb::value_error("no atomic operation has this name");
  if (!known->takes(e.dtype->type))
    throw nb::type_error((std::string("atomic_") + known->name + " is not defined for " + e.dtype->name).c_str());
  if ((known->op == Op::atomic_cas) != bool(expected))
    throw nb::type_error("a compare-and-swap takes an expected value, and nothing else does");
  if (e.is_null) return zeros_of(*e.dtype);
  Ids before(values.size());
  tracing::atomic(known->op, e.at, e.dtype->type, int(values.size()), values.data(),
                  expected ? expected->data() : nullptr, before.data(), here());
  return before;
}

// ---- Parts of arrays

ArrayRef row_of(const ArrayRef& a, Id index, bool wrap) {
  check_index(index);
  if (a.ndim() < 2) throw nb::type_error("an array of one dimension has no rows");
  if (is_left_out(a)) {
    ArrayRef r = a;
    ++r.layout.first;
    return r;
  }
  return {detail::slice_of(a.layout, index_of(wrap ? wrapped(a, 0, index) : index)), a.dtype};
}

ArrayRef slice(const ArrayRef& a, Id lo, Id hi, Id step) {
  for (const Id id : {lo, hi, step}) check_index(id);
  if (is_left_out(a)) return a;
  return {detail::range_of(a.layout, index_of(lo), index_of(hi), index_of(step)), a.dtype};
}

ArrayRef transposed(const ArrayRef& a) {
  if (is_left_out(a)) return a;
  return {detail::transposed(a.layout, here()), a.dtype};
}

/// An array of the thread's own, whose elements are undefined.
ArrayRef private_array(nb::handle type, const std::vector<int>& shape) {
  const DType& dtype = type_from(type);
  if (dtype.is_struct() || dtype.holds_arrays) throw nb::type_error("an array of a thread holds no structs");
  if (shape.empty() || shape.size() > 4 || std::ranges::any_of(shape, [](int n) { return n < 1; }))
    throw nb::value_error("an array of a thread has 1 to 4 dimensions of at least one element");
  return {detail::make_kernel_array(true, dtype.type, dtype.count(), shape.data(), int(shape.size()), here()), &dtype};
}

Id shape(const ArrayRef& a, int k, int code) {
  const Type type = type_from_code(code);
  if (!ir::is_int(type)) throw nb::type_error("an extent is an integer");
  if (k < 0 || k >= a.ndim()) throw nb::index_error("no dimension of the array has this number");
  return extent(a, k, type);
}

}  // namespace

void add_array_refs(nb::module_& m) {
  m.def("private_array", &private_array, nb::arg("dtype"), nb::arg("shape"));
  nb::class_<ElementRef>(m, "Address", "The place of an element of an array, or of a part of one, in a kernel.")
      .def_prop_ro("dtype", [](const ElementRef& e) { return e.dtype->object(); })
      .def("load", &load)
      .def("store", &store)
      .def("update", &update)
      .def("component", &component)
      .def("row", &row)
      .def("at", &at)
      .def("field", &field)
      .def("atomic", &atomic, nb::arg("name"), nb::arg("ids"), nb::arg("expected").none() = nb::none());
  nb::class_<ArrayRef>(m, "ArrayRef", "An array in a kernel.")
      .def_prop_ro("dtype", [](const ArrayRef& a) { return a.dtype->object(); })
      .def_prop_ro("ndim", &ArrayRef::ndim)
      .def_prop_ro("is_null", &ArrayRef::is_null)
      .def_prop_ro("number", [](const ArrayRef& a) { return int(a.layout.param); })
      .def("shape", &shape, nb::arg("k"), nb::arg("code") = int(Type::i32))
      .def("element", &element, nb::arg("indices"), nb::arg("wrap") = 0u)
      .def(
          "load", [](const ArrayRef& a, const Ids& i, unsigned wrap) { return load(element(a, i, wrap)); },
          nb::arg("indices"), nb::arg("wrap") = 0u)
      .def(
          "store",
          [](const ArrayRef& a, const Ids& i, const Ids& values, unsigned wrap) { store(element(a, i, wrap), values); },
          nb::arg("indices"), nb::arg("values"), nb::arg("wrap") = 0u)
      .def("row", &row_of, nb::arg("index"), nb::arg("wrap") = false)
      .def("slice", &slice)
      .def("transpose", &transposed)
      .def("gradient", [](const ArrayRef& a) {
        return ArrayRef{detail::gradient_of(a.layout, here()), a.dtype};
      });
}

}  // namespace weft::python
