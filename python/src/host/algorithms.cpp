// The library's algorithms on arrays of Python's: scans, reductions, sorts, run lengths.
#include "../../../runtime/algorithms/algorithms.h"

#include "../../../runtime/geometry/spatial_order.h"
#include "../module.h"
#include "arrays.h"

namespace weft::python {

namespace {

/// The type of numbers in which an algorithm works.
/// Errors: TypeError for elements that are no numbers of 32 or 64 bits.
ir::Type number_type(const Array& a, const char* what) {
  const ir::Type type = a.dtype().type;
  if (a.dtype().kind != DType::Kind::scalar || !ir::is_numeric(type) || ir::bytes(type) < 4)
    throw nb::type_error((std::string(what) + " works on numbers of 32 and 64 bits, not on " + a.dtype().name).c_str());
  return type;
}

void expect_same(const Array& a, const Array& b, const char* what) {
  if (&a.dtype() != &b.dtype())
    throw nb::type_error((std::string(what) + ": arrays of " + a.dtype().name + " and " + b.dtype().name).c_str());
}

void expect_line(const Array& a, const char* what) {
  if (a.ndim() != 1) throw nb::type_error((std::string(what) + " works on arrays of one dimension").c_str());
}

void expect_integers(const Array& a, const char* what) {
  if (&a.dtype() != &scalar_type_of(ir::Type::i32))
    throw nb::type_error((std::string(what) + ": arrays of int32, not of " + a.dtype().name).c_str());
}

void scan(const Array& in, const Array& out, bool inclusive) {
  const ir::Type type = number_type(in, "a scan");
  expect_same(in, out, "a scan");
  expect_line(in, "a scan");
  expect_line(out, "a scan");
  Released released;
  detail::scan(in, out, type, inclusive, {});
}

/// Sums, least and greatest elements, and inner products, into an array of one element.
void reduce(detail::Reduction reduction, const Array& a, const Array* b, const Array& out, const char* what) {
  expect_line(out, what);
  if (b) {
    expect_same(a, *b, what);
    if (a.ndim() != b->ndim()) throw nb::type_error((std::string(what) + ": arrays of different dimensions").c_str());
  }
  const ir::Type in_type = a.dtype().type, out_type = out.dtype().type;
  const bool sums = reduction == detail::Reduction::sum;
  if (!sums || a.dtype().kind == DType::Kind::scalar) number_type(a, what);
  if (a.dtype().is_struct() || a.dtype().count() != out.dtype().count() || !ir::is_numeric(in_type) ||
      ir::bytes(in_type) < 4 || !(in_type == out_type || (in_type == ir::Type::f32 && out_type == ir::Type::f64)))
    throw nb::type_error((std::string(what) + " of " + a.dtype().name + " gives no " + out.dtype().name).c_str());
  Released released;
  detail::reduce(reduction, a, b, out, {a.dtype().count(), in_type, out_type}, {});
}

void sort_pairs(const Array& keys, const Array& values, int begin_bit, int end_bit) {
  const ir::Type type = number_type(keys, "a sort");
  expect_line(keys, "a sort");
  expect_line(values, "a sort");
  if (values.dtype().holds_arrays || (values.dtype().size != 4 && values.dtype().size != 8))
    throw nb::type_error("the values of a sort have 4 or 8 bytes");
  SortOptions options;
  options.begin_bit = begin_bit;
  options.end_bit = end_bit;
  Released released;
  detail::radix_sort(keys, &values, type, options);
}

/// \param values   sorted along with the keys; null for none
/// \param offsets  segment k is that from offsets[k] up to offsets[k + 1]
void segmented_sort(const Array& keys, const Array* values, const Array& offsets) {
  const ir::Type type = number_type(keys, "a sort");
  for (const Array* a : {&keys, values, &offsets})
    if (a) expect_line(*a, "a sort");
  if (values && (values->dtype().holds_arrays || (values->dtype().size != 4 && values->dtype().size != 8)))
    throw nb::type_error("the values of a sort have 4 or 8 bytes");
  if (&offsets.dtype() != &scalar_type_of(ir::Type::i32))
    throw nb::type_error("the offsets of a sort in segments are of int32");
  Released released;
  detail::segmented_sort(keys, values, offsets, type, {});
}

void sort_keys(const Array& keys) {
  const ir::Type type = number_type(keys, "a sort");
  expect_line(keys, "a sort");
  Released released;
  detail::radix_sort(keys, nullptr, type, {});
}

void encode_runs(const Array& in, const Array& values, const Array& lengths, const Array& count) {
  const ir::Type type = number_type(in, "an encoding of runs");
  expect_same(in, values, "an encoding of runs");
  for (const Array* a : {&in, &values, &lengths, &count}) expect_line(*a, "an encoding of runs");
  for (const Array* a : {&lengths, &count})
    if (&a->dtype() != &scalar_type_of(ir::Type::i32))
      throw nb::type_error("the lengths of runs, and their number, are arrays of int32");
  Released released;
  detail::run_length_encode(in, values, lengths, count, type, {});
}

/// \param low, high  of the bins of real numbers; integers count as the numbers of bins
void histogram(const Array& x, const Array& counts, double low, double high) {
  const ir::Type type = number_type(x, "a histogram");
  for (const Array* a : {&x, &counts}) expect_line(*a, "a histogram");
  expect_integers(counts, "the counts of a histogram");
  Released released;
  detail::histogram(x, counts, type, low, high, {});
}

/// Whether the flags of a compaction are bools. Errors: TypeError for flags that are neither bools nor integers of 32
/// bits.
bool flags_are_bool(const Array& flags) {
  expect_line(flags, "a compaction");
  const ir::Type type = flags.dtype().type;
  if (flags.dtype().kind != DType::Kind::scalar ||
      (type != ir::Type::b1 && type != ir::Type::i32 && type != ir::Type::u32))
    throw nb::type_error(
        ("the flags of a compaction are bools or integers of 32 bits, not " + flags.dtype().name).c_str());
  return type == ir::Type::b1;
}

void compact(const Array& in, const Array& flags, const Array& out, const Array& count) {
  expect_same(in, out, "a compaction");
  for (const Array* a : {&in, &out, &count}) expect_line(*a, "a compaction");
  expect_integers(count, "the count of a compaction");
  if (in.dtype().holds_arrays || in.dtype().size % 4 != 0)
    throw nb::type_error(("elements that are compacted have a multiple of 4 bytes and hold no arrays, unlike " +
                          in.dtype().name + ": compact_indices() gives their places")
                             .c_str());
  const bool bools = flags_are_bool(flags);
  Released released;
  detail::compact(in, flags, bools, out, count, {});
}

void compact_indices(const Array& flags, const Array& out, const Array& count) {
  for (const Array* a : {&out, &count}) {
    expect_line(*a, "a compaction");
    expect_integers(*a, "the indices of a compaction, and their number");
  }
  const bool bools = flags_are_bool(flags);
  Released released;
  detail::compact_indices(flags, bools, out, count, {});
}

/// \param directions  of rays; None for points
void order_in_space(nb::handle points, nb::handle directions, nb::handle order) {
  const auto at = typed<vec3>(points, "the points of an order");
  const auto out = typed<int>(order, "an order");
  weft::Array<vec3> along;
  if (!directions.is_none()) along = typed<vec3>(directions, "the directions of an order");
  const bool rays = !directions.is_none();
  Released released;
  rays ? spatial_order(at, along, out) : spatial_order(at, out);
}

}  // namespace

void add_algorithms(nb::module_& m) {
  m.def("array_scan", &scan, nb::arg("source"), nb::arg("out"), nb::arg("inclusive") = true);
  m.def("array_sum",
        [](const Array& a, const Array& out) { reduce(detail::Reduction::sum, a, nullptr, out, "a sum"); });
  m.def("array_min",
        [](const Array& a, const Array& out) { reduce(detail::Reduction::min, a, nullptr, out, "a minimum"); });
  m.def("array_max",
        [](const Array& a, const Array& out) { reduce(detail::Reduction::max, a, nullptr, out, "a maximum"); });
  m.def("array_inner", [](const Array& a, const Array& b, const Array& out) {
    reduce(detail::Reduction::inner, a, &b, out, "an inner product");
  });
  m.def("sort_pairs", &sort_pairs, nb::arg("keys"), nb::arg("values"), nb::arg("begin_bit") = 0,
        nb::arg("end_bit") = 0);
  m.def(
      "segmented_sort_pairs",
      [](const Array& keys, const Array& values, const Array& offsets) { segmented_sort(keys, &values, offsets); },
      nb::arg("keys"), nb::arg("values"), nb::arg("offsets"));
  m.def("segmented_sort_keys", [](const Array& keys, const Array& offsets) { segmented_sort(keys, nullptr, offsets); });
  m.def("histogram", &histogram, nb::arg("values"), nb::arg("counts"), nb::arg("low"), nb::arg("high"));
  m.def("compact", &compact, nb::arg("source"), nb::arg("flags"), nb::arg("out"), nb::arg("count"));
  m.def("compact_indices", &compact_indices, nb::arg("flags"), nb::arg("out"), nb::arg("count"));
  m.def("spatial_order", &order_in_space, nb::arg("points"), nb::arg("directions").none(), nb::arg("order"));
  m.def("sort_keys", &sort_keys);
  m.def("run_length_encode", &encode_runs, nb::arg("source"), nb::arg("values"), nb::arg("lengths"), nb::arg("count"));
}

}  // namespace weft::python
