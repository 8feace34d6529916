// Functions that kernels of Python's call: their code is traced by functions of Python's, once for each form.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "../../../frontend/kernels/func.h"
#include "../held.h"
#include "../module.h"
#include "array_refs.h"
#include "ids.h"

namespace weft::python {

namespace {

/// A function, with the derivatives that its author gives.
struct Func : detail::FuncCore {
  HeldPointer body, gradient, replay;  ///< the last two may be null
};

/// The arguments of the call that is being traced: the function's code is traced within it, or not at all.
struct CallNow {
  nb::tuple args;
  CallNow* outer;
  static CallNow*& innermost() {
    thread_local CallNow* call = nullptr;
    return call;
  }
  explicit CallNow(nb::tuple given) : args(std::move(given)), outer(innermost()) { innermost() = this; }
  CallNow(const CallNow&) = delete;
  ~CallNow() { innermost() = outer; }
};

/// The arguments inside the function.
nb::tuple take_arguments(detail::FuncInputs& inputs) {
  nb::list inside;
  for (nb::handle given : CallNow::innermost()->args) {
    if (const ArrayRef* const array = as<const ArrayRef>(given)) {
      inside.append(nb::cast(ArrayRef{inputs.next_array(), array->dtype}));
      continue;
    }
    const DType& dtype = type_from(nb::cast<nb::tuple>(given)[0]);
    Ids ids(std::size_t(dtype.count()));
    inputs.next(ids.data(), int(ids.size()));
    inside.append(nb::cast(ids));
  }
  return nb::tuple(inside);
}

/// Adds the scalars that a function of Python's has returned.
void append_result(nb::handle result, std::vector<Id>& outputs) {
  Ids ids;
  if (!result.is_none() && !nb::try_cast<Ids>(result, ids))
    throw nb::type_error("the code of a function gives a tuple of values");
  check_ids(ids.span());
  outputs.insert(outputs.end(), ids.span().begin(), ids.span().end());
}

/// Calls a function of Python's, which closes what it opens.
template <class... A>
nb::object run(const Held& code, const A&... args) {
  const std::size_t depth = tracing::Trace::current(here()).builder().depth();
  nb::object result = nb::borrow(code.get())(args...);
  if (tracing::Trace::current(here()).builder().depth() != depth)
    throw nb::value_error("the code of a function ends inside a block that it has opened");
  return result;
}

void run_body(const detail::FuncCore& core, detail::FuncInputs& inputs, std::vector<Id>& outputs) {
  const nb::tuple args = take_arguments(inputs);
  const HeldPointer body = static_cast<const Func&>(core).body;
  if (!body) throw nb::value_error("the function has ended");
  append_result(run(*body, args), outputs);
}

void run_replay(const detail::FuncCore& core, detail::FuncInputs& inputs, std::vector<Id>& outputs) {
  const nb::tuple args = take_arguments(inputs);
  append_result(run(*static_cast<const Func&>(core).replay, args), outputs);
}

/// The number of real scalars among the arguments.
std::size_t count_reals(nb::tuple args) {
  std::size_t reals = 0;
  for (nb::handle given : args) {
    if (as<const ArrayRef>(given)) continue;
    for (const detail::Leaf& l : type_from(nb::cast<nb::tuple>(given)[0]).leaves) reals += ir::is_float(l.type);
  }
  return reals;
}

void run_gradient(const detail::FuncCore& core, detail::FuncInputs& inputs, std::vector<Id>& outputs) {
  const nb::tuple args = take_arguments(inputs);
  // The gradients of the real results follow the function's own inputs.
  Ids adjoints;
  const ir::Module& function = tracing::Trace::current().module();
  std::size_t taken = 0;
  for (nb::handle given : args) {
    if (const ArrayRef* const array = as<const ArrayRef>(given)) {
      const detail::ArrLayout& l = array->layout;
      if (l.base == ir::kNone) continue;
      taken += 1 + (l.start != ir::kNone) + std::size_t(l.ndim - l.first) * (l.strided ? 2 : 1);
    } else {
      taken += nb::cast<Ids>(given).size();
    }
  }
  adjoints.resize(function.num_inputs - taken);
  for (std::size_t k = 0; k < adjoints.size(); ++k) adjoints[k] = inputs.next();
  const std::size_t before = outputs.size(), reals = count_reals(CallNow::innermost()->args);
  append_result(run(*static_cast<const Func&>(core).gradient, args, nb::cast(adjoints)), outputs);
  if (outputs.size() - before != reals)
    throw nb::type_error(("the gradient function of \"" + core.name + "\" gives " +
                          std::to_string(outputs.size() - before) + " numbers, and the function has " +
                          std::to_string(reals) + " real parameters")
                             .c_str());
}

Ids call(nb::object callee, nb::tuple args, nb::tuple form) {
  const Func& func = nb::cast<const Func&>(callee);
  detail::FuncArgs given;
  // FuncInputs takes the facts of arrays from the front of the form: what else decides the code comes after them.
  std::vector<std::uint32_t> further;
  for (nb::handle arg : args) {
    if (const ArrayRef* const array = as<const ArrayRef>(arg)) {
      given.add(array->layout, here());
      further.push_back(array->dtype->number);
      continue;
    }
    const nb::tuple pair = nb::cast<nb::tuple>(arg);
    if (pair.size() != 2) throw nb::type_error("an argument of a function is an array, or a type with a value");
    const DType& dtype = type_from(pair[0]);
    const Ids ids = nb::cast<Ids>(pair[1]);
    check_ids(ids.span());
    expect_count(ids.size(), std::size_t(dtype.count()), "an argument");
    for (std::size_t k = 0; k < ids.size(); ++k) expect_type(ids[k], dtype.leaves[k].type, "an argument");
    given.ids.insert(given.ids.end(), ids.span().begin(), ids.span().end());
    further.push_back(dtype.number);
  }
  for (nb::handle fact : form) further.push_back(nb::cast<std::uint32_t>(fact));
  given.form.insert(given.form.end(), further.begin(), further.end());
  const CallNow now(args);
  detail::FuncBodies bodies{&run_body};
  if (func.gradient) bodies.gradient = &run_gradient;
  if (func.replay) bodies.replay = &run_replay;
  const CallerPlace caller;
  return Ids(detail::call_func(func, bodies, given, caller.loc));
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Func& func = *nb::inst_ptr<Func>(self);
  for (const HeldPointer* code : {&func.body, &func.gradient, &func.replay})
    if (*code) Py_VISIT((*code)->get().ptr());
  return 0;
}

int clear(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  Func& func = *nb::inst_ptr<Func>(self);
  func.body.reset(), func.gradient.reset(), func.replay.reset();
  drop_now();
  return 0;
}

PyType_Slot func_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};

}  // namespace

void add_functions(nb::module_& m) {
  nb::class_<Func>(m, "Func", nb::type_slots(func_slots), "A function of kernels.")
      .def(
          "__init__",
          [](Func* self, std::string name, std::string_view file, int line, nb::object body, nb::object gradient,
             nb::object replay) {
            new (self) Func;
            self->name = std::move(name);
            self->loc = self->gradient_loc = self->replay_loc = place(file, line);
            self->body = hold(std::move(body));
            if (!gradient.is_none()) self->gradient = hold(std::move(gradient));
            if (!replay.is_none()) self->replay = hold(std::move(replay));
          },
          nb::arg("name"), nb::arg("file"), nb::arg("line"), nb::arg("body"), nb::arg("gradient").none() = nb::none(),
          nb::arg("replay").none() = nb::none())
      .def_prop_ro("name", [](const Func& f) { return f.name; })
      .def_prop_ro("number", [](const Func& f) { return f.number; });
  m.def("call_func", &call, nb::arg("func"), nb::arg("args"), nb::arg("form") = nb::tuple());
}

}  // namespace weft::python
