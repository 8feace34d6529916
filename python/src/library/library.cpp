// Finds and calls the functions of the library by name and types.
#include "library.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>

#include "../module.h"
#include "../trace/array_refs.h"
#include "host_call.h"
#include "search.h"

namespace weft::python {

namespace {

struct Function {
  std::vector<Form> forms;
  Sized sized = nullptr;
  const char* sized_forms = "";
};
using Functions = std::map<std::string, Function, std::less<>>;
Functions& functions() {
  static auto& all = *new Functions;
  return all;
}

std::string text_of(std::span<const DType* const> types) {
  std::string text;
  for (const DType* t : types) text += (text.empty() ? "" : ", ") + t->name;
  return text;
}

[[noreturn]] void refuse(const std::string& name, std::span<const DType* const> types) {
  std::string text = name + "(" + text_of(types) + "): the library has no such function";
  if (const auto known = functions().find(name); known != functions().end()) {
    text += "; it has";
    std::size_t shown = 0;
    for (const Form& f : known->second.forms)
      if (shown++ < 8) text += " (" + text_of(f.takes) + ")";
    if (shown > 8) text += " and " + std::to_string(shown - 8) + " more";
    if (known->second.sized) text += std::string(shown ? ", and " : " ") + known->second.sized_forms;
  }
  throw nb::type_error(text.c_str());
}

nb::object object_of(const Result& r) { return nb::make_tuple(r.dtype->object(), nb::cast(r.ids)); }

nb::object objects_of(const std::vector<Result>& results) {
  if (results.size() == 1) return object_of(results[0]);
  nb::list list;
  for (const Result& r : results) list.append(object_of(r));
  return list;
}

std::vector<Result> run(const Form& form, const std::vector<Ids>& values) {
  std::vector<const Id*> in;
  for (const Ids& v : values) in.push_back(v.data());
  std::size_t count = 0;
  for (const DType* t : form.gives) count += std::size_t(t->count());
  Ids out(count);
  form.run(in.data(), out.data());
  std::vector<Result> results;
  std::size_t at = 0;
  for (const DType* t : form.gives) {
    results.push_back({t, Ids(out.span().subspan(at, std::size_t(t->count())))});
    at += std::size_t(t->count());
  }
  return results;
}

nb::object call(const std::string& name, nb::tuple dtypes, nb::tuple values) {
  if (dtypes.size() != values.size()) throw nb::type_error("there is a type for each value");
  for (nb::handle v : values)
    if (as<ArrayRef>(v)) return call_search(name, dtypes, values);
  std::vector<const DType*> types;
  std::vector<Ids> ids;
  for (std::size_t k = 0; k < dtypes.size(); ++k) {
    types.push_back(&type_from(dtypes[k]));
    ids.push_back(nb::cast<Ids>(values[k]));
    check_ids(ids.back().span());
    expect_count(ids.back().size(), std::size_t(types.back()->count()), "an argument");
    for (std::size_t i = 0; i < ids.back().size(); ++i)
      expect_type(ids.back()[i], types.back()->leaves[i].type, "an argument");
  }
  return objects_of(call_library(name, types, ids));
}

nb::dict names() {
  nb::dict all;
  for (const auto& [name, function] : functions()) {
    nb::list forms;
    for (const Form& f : function.forms) forms.append("(" + text_of(f.takes) + ") -> " + text_of(f.gives));
    if (function.sized) forms.append(function.sized_forms);
    all[name.c_str()] = forms;
  }
  return all;
}

}  // namespace

std::vector<Result> call_library(const std::string& name, const std::vector<const DType*>& types,
                                 const std::vector<Ids>& values) {
  const auto known = functions().find(name);
  if (known == functions().end()) refuse(name, types);
  // What the library records carries the place of the call.
  const tracing::CallPlace place(here());
  if (const Form* const form = find_form(name, types)) return run(*form, values);
  if (known->second.sized) {
    std::vector<Operand> operands;
    for (std::size_t k = 0; k < types.size(); ++k) operands.push_back({types[k], values[k].data()});
    std::vector<Result> results;
    if (known->second.sized(operands, results)) return results;
  }
  refuse(name, types);
}

const Form* find_form(std::string_view name, std::span<const DType* const> types) {
  const auto known = functions().find(name);
  if (known == functions().end()) return nullptr;
  const auto& forms = known->second.forms;
  const auto form = std::ranges::find_if(forms, [&](const Form& f) { return std::ranges::equal(f.takes, types); });
  return form == forms.end() ? nullptr : &*form;
}

void add_form(const char* name, Form form) { functions()[name].forms.push_back(std::move(form)); }

void add_sized(const char* name, Sized function, const char* forms) {
  Function& f = functions()[name];
  f.sized = function;
  f.sized_forms = forms;
}

void add_library(nb::module_& m) {
  add_number_functions();
  add_sized_functions();
  add_matrix_functions();
  add_rotation_functions();
  add_random_functions();
  add_shape_functions();
  add_mesh_functions();
  add_volume_functions();
  m.def("library", &names, "The names of the library's functions, each with the types that it takes and gives.");
  m.def("call_host", &call_host, nb::arg("name"), nb::arg("dtypes"), nb::arg("values"),
        "Calls a function of the library on numbers of the host; gives lists of numbers.");
  m.def("call", &call, nb::arg("name"), nb::arg("dtypes"), nb::arg("values"));
}

}  // namespace weft::python
