// Numbers of threads, and messages, of the kernel that Python traces.
#include <nanobind/stl/string.h>

#include "../../../frontend/kernels/group.h"
#include "../../../frontend/language/report.h"
#include "../module.h"
#include "../types.h"
#include "ids.h"

namespace weft::python {

namespace {

Id thread(int k, int n, int code) {
  if (n < 1 || n > 4 || k < 0 || k >= n) throw nb::value_error("a thread has 1 to 4 coordinates");
  const ir::Type type = type_from_code(code);
  if (type != ir::Type::i32 && type != ir::Type::i64) throw nb::type_error("a coordinate is an int32 or an int64");
  return tracing::thread_coordinate(type, k, n, here());
}

void add_text(detail::Item& item, std::string text) {
  ir::MessagePiece& piece = item.pieces.emplace_back();
  piece.joined = true;
  piece.text = std::move(text);
}

/// Adds a value as detail::Item does with one of C++.
void add_value(detail::Item& item, const DType& dtype) {
  if (dtype.is_struct()) {
    add_text(item, dtype.name + "(");
    bool first = true;
    for (const Field& f : dtype.fields) {
      if (f.ndim) continue;
      add_text(item, (first ? "" : ", ") + f.name + "=");
      first = false;
      add_value(item, *f.dtype);
    }
    add_text(item, ")");
    return;
  }
  ir::MessagePiece& piece = item.pieces.emplace_back();
  piece.joined = true;
  piece.type = dtype.type;
  piece.composite = dtype.kind != DType::Kind::scalar;
  piece.columns = std::uint32_t(dtype.kind == DType::Kind::matrix ? dtype.columns : 1);
  piece.rows = std::uint32_t(dtype.count()) / piece.columns;
}

std::vector<detail::Item> items_of(nb::tuple given) {
  std::vector<detail::Item> items;
  for (nb::handle h : given) {
    items.emplace_back("", here()).pieces.clear();
    detail::Item& item = items.back();
    if (nb::isinstance<nb::str>(h)) {
      add_text(item, nb::cast<std::string>(h));
      continue;
    }
    const nb::tuple pair = nb::cast<nb::tuple>(h);
    if (pair.size() != 2) throw nb::type_error("a part of a message is a text, or a type with a value");
    const DType& dtype = type_from(pair[0]);
    const Ids ids = nb::cast<Ids>(pair[1]);
    check_ids(ids.span());
    expect_count(ids.size(), std::size_t(dtype.count()), "a printed value");
    add_value(item, dtype);
    item.ids.assign(ids.span().begin(), ids.span().end());
  }
  return items;
}

}  // namespace

void add_threads(nb::module_& m) {
  m.def("thread", &thread, nb::arg("k"), nb::arg("n"), nb::arg("code") = int(ir::Type::i32));
  m.def("block_dim", [] { return tracing::block_dim(here()); });
  m.def("local_id", [] { return tracing::thread_number(ir::Op::local_id, here()); });
  m.def("workgroup_id", [] { return tracing::thread_number(ir::Op::workgroup_id, here()); });
  m.def("barrier", [] { tracing::barrier(here()); });
  m.def("print_items", [](nb::tuple items) {
    std::vector<detail::Item> list = items_of(items);
    detail::record_print(list, here());
  });
  m.def("assert_items", [](Id condition, nb::tuple items) {
    check_id(condition);
    expect_type(condition, ir::Type::b1, "the condition of an assertion");
    std::vector<detail::Item> list = items_of(items);
    detail::record_assertion(condition, list, here());
  });
}

}  // namespace weft::python
