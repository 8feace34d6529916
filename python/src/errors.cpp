// The exception of Python's for errors of the library.
#include "errors.h"

#include <nanobind/nanobind.h>

#include <string_view>

#include "../../frontend/support/error.h"
#include "module.h"

namespace weft::python {

namespace {

PyObject* error_class = nullptr;

/// Whether a place is in this module, which tells users nothing: Python names its own.
bool is_here(Loc loc) {
  constexpr std::string_view here = __FILE__;
  constexpr std::string_view folder = here.substr(0, here.find_last_of("/\\") + 1);
  return loc && std::string_view(loc.file).starts_with(folder);
}

void raise(Error e) {
  const auto text = [](std::string_view s) { return nb::str(s.data(), s.size()); };
  if (is_here(e.caller())) e.set_caller({});
  try {
    nb::object error = nb::borrow(error_class)(text(e.what()));
    error.attr("kind") = to_string(e.kind());
    error.attr("message") = text(e.message());
    error.attr("kernel") = text(e.kernel());
    error.attr("file") = e.loc() ? nb::object(nb::str(e.loc().file)) : nb::none();
    error.attr("line") = e.loc() ? nb::object(nb::int_(e.loc().line)) : nb::none();
    PyErr_SetObject(error_class, error.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

}  // namespace

void raise_current() {
  try {
    throw;
  } catch (const Error& e) {
    raise(e);
  } catch (nb::python_error& e) {
    e.restore();
  } catch (nb::builtin_exception& e) {
    PyObject* type = PyExc_RuntimeError;
    switch (e.type()) {
      case nb::exception_type::stop_iteration: type = PyExc_StopIteration; break;
      case nb::exception_type::index_error: type = PyExc_IndexError; break;
      case nb::exception_type::key_error: type = PyExc_KeyError; break;
      case nb::exception_type::value_error: type = PyExc_ValueError; break;
      case nb::exception_type::type_error: type = PyExc_TypeError; break;
      case nb::exception_type::buffer_error: type = PyExc_BufferError; break;
      case nb::exception_type::import_error: type = PyExc_ImportError; break;
      case nb::exception_type::attribute_error: type = PyExc_AttributeError; break;
      default: break;
    }
    PyErr_SetString(type, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

void add_errors(nb::module_& m) {
  error_class = PyErr_NewExceptionWithDoc("weft._weft.Error",
                                          "An error of the library: kind, message, kernel, and the file and line of "
                                          "the kernel's source or of the call, where they are known.",
                                          PyExc_RuntimeError, nullptr);
  if (!error_class) throw nb::python_error();
  m.attr("Error") = nb::borrow(error_class);
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void*) {
        try {
          std::rethrow_exception(p);
        } catch (const Error& e) {
          raise(e);
        }
      },
      nullptr);
}

}  // namespace weft::python
