// launch(): from a call in Python to the library's launch, without code of Python's in between.
#include "../../../runtime/launch.h"

#include <nanobind/nanobind.h>

#include <optional>

#include "../../../runtime/tape/adjoint_launch.h"
#include "../../../runtime/work/observe.h"
#include "../errors.h"
#include "../module.h"
#include "../structures/launch_ids.h"
#include "arguments.h"
#include "reports.h"
#include "streams.h"
#include "tapes.h"

namespace weft::python {

namespace {

enum Parameter {
  kernel_,
  dim_,
  inputs_,
  outputs_,
  adj_inputs_,
  adj_outputs_,
  device_,
  stream_,
  adjoint_,
  record_tape_,
  record_cmd_,
  max_blocks_,
  block_dim_,
  count_
};
constexpr const char* kNames[count_] = {"kernel",      "dim",        "inputs",   "outputs", "adj_inputs",
                                        "adj_outputs", "device",     "stream",   "adjoint", "record_tape",
                                        "record_cmd",  "max_blocks", "block_dim"};
PyObject* keys[count_];         // the names as strings of Python's
PyObject* resolve_ = nullptr;   // "resolve"
PyObject* recorder_ = nullptr;  // the package's function for record_cmd; never let go

/// The arguments of a call by name.
struct Call {
  PyObject* given[count_] = {};

  PyObject* operator[](Parameter p) const { return given[p]; }
  bool has(Parameter p) const { return given[p] && given[p] != Py_None; }
  bool truth(Parameter p, bool otherwise) const {
    if (!given[p]) return otherwise;
    const int truth = PyObject_IsTrue(given[p]);
    if (truth < 0) throw nb::python_error();
    return truth != 0;
  }
};

int parameter_of(PyObject* key) {
  for (int p = 0; p < count_; ++p)
    if (keys[p] == key) return p;
  for (int p = 0; p < count_; ++p)
    if (PyUnicode_Compare(keys[p], key) == 0) return p;
  PyErr_Format(PyExc_TypeError, "launch() has no parameter %R", key);
  throw nb::python_error();
}

Call call_of(PyObject* const* args, Py_ssize_t n, PyObject* names) {
  Call call;
  if (n > count_) throw nb::type_error("launch() is given more arguments than it has parameters");
  for (Py_ssize_t k = 0; k < n; ++k) call.given[k] = args[k];
  const Py_ssize_t named = names ? NB_TUPLE_GET_SIZE(names) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    const int p = parameter_of(NB_TUPLE_GET_ITEM(names, k));
    if (call.given[p]) {
      PyErr_Format(PyExc_TypeError, "launch() is given its parameter %s twice", kNames[p]);
      throw nb::python_error();
    }
    call.given[p] = args[n + k];
  }
  if (!call.given[kernel_] || !call.given[dim_]) throw nb::type_error("launch() takes a kernel and its dimensions");
  return call;
}

[[noreturn]] void refuse_list(PyObject* given) {
  PyErr_Format(PyExc_TypeError, "the arguments of a launch are given as a list, as in inputs=[array], not as a %s",
               Py_TYPE(given)->tp_name);
  throw nb::python_error();
}

/// The items of a list or a tuple; of another sequence, of a copy that `kept` holds.
struct Items {
  PyObject* sequence = nullptr;
  Py_ssize_t count = 0;
  nb::object kept;

  explicit Items(PyObject* given) {
    if (!given || given == Py_None) return;
    sequence = given;
    if (!PyList_Check(given) && !PyTuple_Check(given)) {
      if (array_of(given) || PyUnicode_Check(given) || PyDict_Check(given)) refuse_list(given);
      kept = nb::steal(PySequence_List(given));
      if (!kept.is_valid()) {
        PyErr_Clear();
        refuse_list(given);
      }
      sequence = kept.ptr();
    }
    count = PyList_Check(sequence) ? NB_LIST_GET_SIZE(sequence) : NB_TUPLE_GET_SIZE(sequence);
  }
  PyObject* operator[](Py_ssize_t k) const {
    return PyList_Check(sequence) ? NB_LIST_GET_ITEM(sequence, k) : NB_TUPLE_GET_ITEM(sequence, k);
  }
};

nb::tuple all_of(const Items& inputs, const Items& outputs) {
  nb::list all;
  for (Py_ssize_t k = 0; k < inputs.count; ++k) all.append(nb::handle(inputs[k]));
  for (Py_ssize_t k = 0; k < outputs.count; ++k) all.append(nb::handle(outputs[k]));
  return nb::tuple(all);
}

KernelHandle& handle_of(PyObject* object) {
  KernelHandle* const handle = as<KernelHandle>(object);
  if (!handle) throw nb::type_error("launch() takes a kernel: a function decorated with @weft.kernel");
  return *handle;
}

/// The kernel for these arguments.
Kernel& kernel_of(KernelHandle& handle, PyObject* object, const Items& inputs, const Items& outputs, nb::object& kept) {
  if (handle.kernel) {
    kept = handle.native;  // which another thread may replace meanwhile
    return *handle.kernel;
  }
  const nb::object resolve = nb::steal(PyObject_GetAttr(object, resolve_));
  if (!resolve.is_valid()) throw nb::python_error();
  kept = resolve(all_of(inputs, outputs));
  Kernel* const kernel = as<Kernel>(kept);
  if (!kernel) throw nb::type_error("resolve() gives a Kernel");
  return *kernel;
}

[[noreturn]] void refuse_count(const Kernel& kernel, Py_ssize_t given) {
  throw nb::type_error(("kernel \"" + kernel.core().name() + "\" takes " + std::to_string(kernel.params().size()) +
                        " argument(s), and " + std::to_string(given) + " are given")
                           .c_str());
}

/// Launches without the GIL: the first launch compiles, devices on the host compute before they return, and another
/// thread may hold the kernel's lock while it traces, which takes the GIL.
void run(Kernel& kernel, const Stream* stream, const Extent& dim, const Arguments& arguments) {
  const detail::Threads threads(dim, Loc{});
  Released released;
  detail::launch(kernel.core(), stream, threads, arguments.parts());
}

/// The first array among the arguments; null without any.
const ArrayBase* first_array(const Arguments& arguments) {
  for (const detail::HostArg& arg : arguments.parts())
    if (arg.array && !arg.array->is_null()) return arg.array;
  return nullptr;
}

/// The device that a launch runs on.
const detail::DeviceState* device_of(const Stream* stream, const Arguments& arguments) {
  return stream ? detail::state_of(*stream).device : first_array(arguments)->device().state().get();
}

/// Launches for the tape that records: with the data of meshes that have gradients, where the kernel has their ids.
void run_recorded(Kernel& kernel, const Stream* stream, const Extent& dim, Arguments& arguments) {
  if (kernel.ids().used.empty()) return run(kernel, stream, dim, arguments);
  std::vector<IdPlace> places;
  const detail::Threads threads(dim, Loc{});
  detail::GivenStructures given(detail::GivenStructures::For::launch);
  for (const auto& [place, mesh] : meshes_to_give(kernel.ids(), device_of(stream, arguments), arguments)) {
    places.push_back(place);
    arguments.add(*mesh, given);
  }
  detail::KernelCore& core = places.empty() ? kernel.core() : kernel.core_with(places);
  Released released;
  detail::launch(core, stream, threads, arguments.parts(), &given);
}

/// An array of zeros like another.
nb::object zeros_like(const Array& array) {
  Array zeros = Array::empty(array.device(), array.extent(), array.dtype());
  zeros.zero();
  return make_object(std::move(zeros));
}

/// The gradients that a call gives for the arrays among its arguments, and in structs among them.
/// \param kept  receives those that nothing else may hold
std::vector<detail::GivenGradient> gradients_of(const Kernel& kernel, const Arguments& arguments, const Items& inputs,
                                                const Items& adj_inputs, const Items& adj_outputs,
                                                std::vector<nb::object>& kept) {
  std::vector<detail::GivenGradient> gradients(arguments.parts().size());
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const detail::HostArg& arg = arguments.parts()[k];
    const Array* const array = arguments.array(k);
    if (!array) continue;
    gradients[k].leaves = array->leaves();
    const Py_ssize_t of = arg.argument - 1;
    const bool input = of < inputs.count;
    const Items& given = input ? adj_inputs : adj_outputs;
    const Py_ssize_t place = input ? of : of - inputs.count;
    nb::object found = nb::none();
    const bool is_of_argument = k < kernel.parts().size();  // others follow all arguments
    if (is_of_argument && place < given.count && given[place] != Py_None)
      found = follow(given[place], kernel.parts()[k].path);
    if (!found.is_none()) {
      const Array* const gradient = array_of(found.ptr());
      if (!gradient || &gradient->dtype() != &array->dtype())
        throw nb::type_error(
            ("the gradient of argument " + std::to_string(arg.argument) + " is no array of " + array->dtype().name)
                .c_str());
    } else if (array->gradient_is_taken) {
      found = zeros_like(*array);
    } else if (array->has_given_gradient()) {
      found = gradient_of(*array);
    } else {
      continue;
    }
    gradients[k].array = &array_from(found);
    kept.push_back(std::move(found));
  }
  return gradients;
}

void run_adjoint(Kernel& kernel, const Stream* stream, const Extent& dim, const Arguments& arguments,
                 const std::vector<detail::GivenGradient>& gradients) {
  const detail::Threads threads(dim, Loc{});
  Released released;
  detail::launch_adjoint(kernel.core(), stream, threads, arguments.parts(), gradients);
}

/// Notes a launch on a tape, with the place of the call.
void note_launch(PyTape& tape, const Call& call, const Items& inputs, const Items& outputs) {
  const auto or_none = [&](Parameter p) { return call[p] ? call[p] : Py_None; };
  nb::object code = nb::none();
  int place = -1;
  if (PyFrameObject* const frame = PyEval_GetFrame()) {
    code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
#if PY_VERSION_HEX >= 0x030b0000
    place = PyFrame_GetLasti(frame);
#else
    place = PyFrame_GetLineNumber(frame);
#endif
  }
  tape.begin_note(
      {or_none(kernel_), or_none(dim_), or_none(device_), or_none(block_dim_), or_none(max_blocks_), code.ptr()},
      inputs.count, outputs.count, place);
  for (Py_ssize_t k = 0; k < inputs.count; ++k) tape.add_to_note(inputs[k]);
  for (Py_ssize_t k = 0; k < outputs.count; ++k) tape.add_to_note(outputs[k]);
}

/// What is called after each launch, with the kernel and its dimensions; null: nothing.
PyObject* watcher_ = nullptr;

/// Keeps a function of Python's in place of the one before; None: nothing.
void hold_function(PyObject*& held, nb::object function) {
  Py_XDECREF(held);
  held = function.is_none() ? nullptr : function.release().ptr();
}

/// The extents of a launch. Throws a TypeError or a ValueError that names dim.
Extent dim_from(PyObject* dim) {
  try {
    return extent_from(dim);
  } catch (const nb::python_error& e) {
    if (e.matches(PyExc_OverflowError))
      PyErr_Format(PyExc_ValueError, "dim=%R: a launch has fewer than 2^63 threads along a dimension", dim);
    else if (e.matches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "dim=%R: the dimensions of a launch are 1 to 4 whole numbers", dim);
    else
      throw;
  }
  throw nb::python_error();
}

void tell_watcher(const Call& call) {
  if (watcher_) nb::borrow(watcher_)(nb::handle(call[kernel_]), nb::handle(call[dim_]));
}

PyObject* launch(const Call& call) {
  drop_now();
  KernelHandle& handle = handle_of(call[kernel_]);
  const Items inputs(call[inputs_]), outputs(call[outputs_]);
  if (call.truth(record_cmd_, false)) {
    if (!recorder_) throw nb::type_error("nothing takes recorded launches");
    const auto or_none = [&](Parameter p) { return call[p] ? nb::handle(call[p]) : nb::handle(Py_None); };
    return nb::borrow(recorder_)(nb::handle(call[kernel_]), nb::handle(call[dim_]), all_of(inputs, outputs),
                                 or_none(device_), or_none(stream_), call.truth(adjoint_, false), int(inputs.count),
                                 or_none(adj_inputs_), or_none(adj_outputs_))
        .release()
        .ptr();
  }
  nb::object kept;
  Kernel& kernel = kernel_of(handle, call[kernel_], inputs, outputs, kept);
  const Py_ssize_t given = inputs.count + outputs.count;
  if (std::size_t(given) != kernel.params().size()) refuse_count(kernel, given);
  const nb::handle device = call[device_] ? call[device_] : Py_None;
  Arguments arguments;
  for (Py_ssize_t k = 0; k < given; ++k)
    arguments.take(call[kernel_], kernel, int(k), k < inputs.count ? inputs[k] : outputs[k - inputs.count], device);

  std::optional<Stream> stream;
  if (call.has(stream_))
    stream = stream_from(call[stream_]);
  else if (call.has(device_))
    stream = device_from(device).stream();
  else if (!first_array(arguments))
    stream = current_device().stream();
  if (!kernel.ids().empty())
    take_ids(call[kernel_], kernel.ids(), kernel, device_of(stream ? &*stream : nullptr, arguments), arguments);
  const Extent dim = dim_from(call[dim_]);
  if (dim.rank == 0) throw nb::value_error("a launch has 1 to 4 dimensions");
  if (call.truth(adjoint_, false)) {
    std::vector<nb::object> gradients;
    run_adjoint(
        kernel, stream ? &*stream : nullptr, dim, arguments,
        gradients_of(kernel, arguments, inputs, Items(call[adj_inputs_]), Items(call[adj_outputs_]), gradients));
    tell_watcher(call);
    Py_RETURN_NONE;
  }
  if (!call.truth(record_tape_, true)) {
    const detail::Quiet unrecorded;
    run(kernel, stream ? &*stream : nullptr, dim, arguments);
  } else if (PyTape* const tape = PyTape::current()) {
    for (PyObject* const array : arguments.objects()) tape->note(array);
    note_launch(*tape, call, inputs, outputs);
    try {
      run_recorded(kernel, stream ? &*stream : nullptr, dim, arguments);
    } catch (...) {
      tape->drop_note();
      throw;
    }
  } else {
    run(kernel, stream ? &*stream : nullptr, dim, arguments);
  }
  show_reports();
  tell_watcher(call);
  Py_RETURN_NONE;
}

PyObject* launch_call(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) noexcept {
  try {
    return launch(call_of(args, n, names));
  } catch (...) {
    raise_current();
    return nullptr;
  }
}

constexpr const char* kLaunch =
    "launch(kernel, dim, inputs=(), outputs=(), adj_inputs=(), adj_outputs=(), device=None, stream=None, "
    "adjoint=False, "
    "record_tape=True, record_cmd=False, max_blocks=0, block_dim=256)\n--\n\n"
    "Launches a kernel over dim threads, an int or up to four ints.\n\n"
    "The kernel's arguments are the inputs and then the outputs. The device is that of the arrays, or the one that is "
    "given. Nothing waits: reading an array waits for the work that writes it.";

PyMethodDef methods[] = {
    {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&launch_call)), METH_FASTCALL | METH_KEYWORDS,
     kLaunch},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_launch(nb::module_& m) {
  for (int p = 0; p < count_; ++p) keys[p] = PyUnicode_InternFromString(kNames[p]);
  resolve_ = PyUnicode_InternFromString("resolve");
  if (PyModule_AddFunctions(m.ptr(), methods) != 0) throw nb::python_error();
  m.def("set_converter", &set_converter, nb::arg("function").none());
  m.def(
      "set_launch_watcher", [](nb::object function) { hold_function(watcher_, std::move(function)); },
      nb::arg("function").none());
  m.def(
      "set_recorder", [](nb::object function) { hold_function(recorder_, std::move(function)); },
      nb::arg("function").none());
}

}  // namespace weft::python
