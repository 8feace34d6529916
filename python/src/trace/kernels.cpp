// Makes kernels of functions of Python's, and the arguments that these are given while they are traced.
#include "kernels.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <utility>

#include "../../../frontend/passes/passes.h"
#include "../module.h"
#include "ids.h"

namespace weft::python {

namespace {

/// Thrown at the end of a trace that was made to find ids alone.
struct IdsFound {};
thread_local bool finding_ids = false;

/// Makes the parameter for a value that is no spread struct.
/// \param part  the number of parameters before it
nb::object make_part(const DType& dtype, int ndim, std::size_t& part) {
  const std::size_t number = part++;
  if (ndim)
    return nb::cast(ArrayRef{detail::make_array_param(dtype.size, dtype.align, ndim, false, dtype.name), &dtype});
  Ids ids(std::size_t(dtype.count()));
  detail::make_value_param(dtype.size, dtype.align, dtype.name, dtype.leaves, ids.data());
  IdTrace::current()->add_part(number, dtype, ids);
  return nb::cast(ids);
}

/// Makes the parameters for a struct that holds arrays: a dict of its fields.
nb::object make_spread(const DType& dtype, const std::string& path, std::size_t& part) {
  nb::dict fields;
  for (const Field& f : dtype.fields) {
    const std::string name = path + "." + f.name;
    if (f.ndim == 0 && f.dtype->holds_arrays) {
      fields[f.name.c_str()] = make_spread(*f.dtype, name, part);
      continue;
    }
    tracing::Trace::current().begin_field(name);
    fields[f.name.c_str()] = make_part(*f.dtype, f.ndim, part);
  }
  return fields;
}

nb::object make_argument(const Param& param, std::size_t& part) {
  tracing::Trace::current().begin_argument();
  if (param.ndim == 0 && param.dtype->holds_arrays) return make_spread(*param.dtype, "", part);
  return make_part(*param.dtype, param.ndim, part);
}

bool has_wide_numbers(const Part& part) {
  const auto is_wide = [](const detail::Leaf& leaf) { return leaf.type == ir::Type::u64; };
  return part.ndim == 0 && std::ranges::any_of(part.dtype->leaves, is_wide);
}

std::string ir_text(Kernel& kernel, const std::string& form) {
  kernel.ids();
  Released released;
  return kernel.core().dump(form);
}

std::string ir_hash(Kernel& kernel) {
  kernel.ids();
  ir::Variant variant;
  variant.debug = kernel.core().debug();
  Released released;
  return to_hex(ir::hash(kernel.core().trace(variant)));
}

int traverse_kernel(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Kernel>(self)->body());
  return 0;
}

int clear_kernel(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Kernel>(self)->clear();
  return 0;
}

int traverse_handle(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<KernelHandle>(self)->native.ptr());
  return 0;
}

int clear_handle(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  KernelHandle& handle = *nb::inst_ptr<KernelHandle>(self);
  handle.kernel = nullptr;
  handle.native = nb::none();
  return 0;
}

PyType_Slot kernel_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_kernel)},
                              {Py_tp_clear, reinterpret_cast<void*>(&clear_kernel)},
                              {0, nullptr}};
PyType_Slot handle_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_handle)},
                              {Py_tp_clear, reinterpret_cast<void*>(&clear_handle)},
                              {0, nullptr}};

}  // namespace

std::vector<Param> params_from(nb::sequence given) {
  std::vector<Param> params;
  for (nb::handle h : given) {
    if (!nb::isinstance<nb::tuple>(h)) {
      params.push_back({&type_from(h)});
      continue;
    }
    const nb::tuple array = nb::cast<nb::tuple>(h);
    if (array.size() < 2) throw nb::type_error("an array among parameters is a type and a number of dimensions");
    params.push_back({&type_from(array[0]), nb::cast<int>(array[1])});
    if (params.back().ndim < 1 || params.back().ndim > 4) throw nb::value_error("an array has 1 to 4 dimensions");
  }
  return params;
}

Kernel::Kernel(std::string name, std::string_view file, int line, nb::sequence params, nb::object body,
               const KernelOptions& options)
    : params_(params_from(params)), options_(options) {
  for (std::size_t k = 0; k < params_.size(); ++k) add_parts(*params_[k].dtype, params_[k].ndim, int(k) + 1, {}, "");
  if (parts_.size() > std::size_t(detail::kMostParameters))
    throw nb::type_error(("kernel \"" + name + "\" has " + std::to_string(parts_.size()) +
                          " parameters, with the fields of structs that hold arrays; 64 are possible")
                             .c_str());
  // Shared with the body, because tapes and graphs may keep the kernel longer than this object.
  state_ = std::make_shared<const State>(State{params_, hold(std::move(body)), {}});
  core_ = std::make_shared<detail::KernelCore>(std::move(name), place(file, line), options,
                                               [state = state_] { trace(*state, {}); });
  ids_are_known_ = std::ranges::none_of(parts_, &has_wide_numbers);
}

const KernelIds& Kernel::ids() {
  if (ids_are_known_) return state_->ids;
  ir::Variant variant;
  variant.debug = core_->debug();
  finding_ids = true;
  try {
    core_->trace(variant);
  } catch (const IdsFound&) {
  } catch (const std::exception&) {  // what the launch says, too
    state_->ids = {};
  }
  finding_ids = false;
  ids_are_known_ = true;  // now: other threads may have come here meanwhile
  return state_->ids;
}

detail::KernelCore& Kernel::core_with(const std::vector<IdPlace>& meshes) {
  auto& made = with_meshes_[meshes];
  if (!made)
    made = std::make_shared<detail::KernelCore>(core_->name(), core_->loc(), options_,
                                                [state = state_, meshes] { trace(*state, meshes); });
  return *made;
}

bool Kernel::is_held() const {
  const auto held = [](const auto& core) { return core.use_count() != 1; };
  return held(core_) || std::ranges::any_of(with_meshes_, [&](const auto& entry) { return held(entry.second); });
}

void Kernel::add_parts(const DType& dtype, int ndim, int argument, const std::vector<PyObject*>& path,
                       const std::string& name) {
  if (ndim || !dtype.holds_arrays) {
    parts_.push_back({&dtype, ndim, argument, path, name});
    return;
  }
  for (const Field& f : dtype.fields) {
    std::vector<PyObject*> further = path;
    further.push_back(f.key);
    add_parts(*f.dtype, f.ndim, argument, further, name + "." + f.name);
  }
}

void Kernel::clear() {
  if (!body()) return;
  state_->body.reset();
  drop_now();
}

void Kernel::trace(const State& state, const std::vector<IdPlace>& meshes) {
  Acquired gil;
  const bool finding = std::exchange(finding_ids, false);
  const CallerPlace caller;
  begin_variables();
  IdTrace ids(state.ids, finding);
  nb::list arguments;
  std::size_t part = 0;
  for (const Param& param : state.params) arguments.append(make_argument(param, part));
  ids.make_values();
  ids.make_meshes(meshes);
  if (!state.body) throw nb::value_error("the kernel has ended");
  nb::borrow(state.body->get())(nb::tuple(arguments));
  if (finding) throw IdsFound();
  if (tracing::Trace::current(here()).builder().depth() != 1)
    throw nb::value_error("the code of a kernel ends inside a block that it has opened");
}

void add_kernels(nb::module_& m) {
  nb::class_<Kernel>(m, "Kernel", nb::type_slots(kernel_slots), "A kernel of which all types are known.")
      .def(
          "__init__",
          [](Kernel* self, std::string name, std::string_view file, int line, nb::sequence params, nb::object body,
             std::uint32_t block, bool contract, bool checks, bool finite) {
            KernelOptions options;
            options.block = block;
            options.contract = contract;
            options.debug.checks = checks;
            options.debug.finite = finite;
            new (self) Kernel(std::move(name), file, line, params, std::move(body), options);
          },
          nb::arg("name"), nb::arg("file"), nb::arg("line"), nb::arg("params"), nb::arg("body"), nb::kw_only(),
          nb::arg("block") = 0u, nb::arg("contract") = true, nb::arg("checks") = false, nb::arg("finite") = false)
      .def_prop_ro("name", [](const Kernel& k) { return k.core().name(); })
      .def_prop_ro("params",
                   [](const Kernel& k) {
                     nb::list list;
                     for (const Param& p : k.params())
                       list.append(p.ndim ? nb::object(nb::make_tuple(p.dtype->object(), p.ndim)) : p.dtype->object());
                     return nb::tuple(list);
                   })
      .def("dump", &ir_text, nb::arg("form") = "ir")
      .def("ir_hash", &ir_hash);
  nb::class_<KernelHandle>(m, "KernelHandle", nb::type_slots(handle_slots), nb::is_weak_referenceable(),
                           "The base of the package's kernels.")
      .def(nb::init<>())
      .def_prop_rw(
          "native", [](const KernelHandle& h) { return h.native; },
          [](KernelHandle& h, nb::object native) {
            h.kernel = native.is_none() ? nullptr : nb::cast<Kernel*>(native);
            h.native = std::move(native);
          },
          nb::for_setter(nb::arg("value").none()));
}

}  // namespace weft::python
