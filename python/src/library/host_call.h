// The library's functions on numbers of the host.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

namespace weft::python {

/// Calls a function of the library with values of these types. It runs as kernels run it: traced, on constants.
/// \return  a list with the scalars of each result, as a list
/// Errors: TypeError, Error(invalid_kernel) while a kernel is traced.
/// Cost: some ten microseconds; functions with branches run on the interpreter, which takes some hundred.
nanobind::object call_host(const std::string& name, nanobind::tuple dtypes, nanobind::tuple values);

}  // namespace weft::python
