// The library's functions that take arrays.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

namespace weft::python {

/// Calls lower_bound, upper_bound or sample_cdf, of which one argument is an ArrayRef.
/// Errors: TypeError for other functions and types.
nanobind::object call_search(const std::string& name, nanobind::tuple dtypes, nanobind::tuple values);

}  // namespace weft::python
