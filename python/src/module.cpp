// The module `_weft`: the library as the package `weft` of Python's needs it. See docs/tour.md.
#include "module.h"

namespace weft::python {
namespace {

// In order: signatures name the classes that stand before.
constexpr void (*kParts[])(nb::module_&) = {
    &add_errors,        &add_types,        &add_values,         &add_control,   &add_array_refs,    &add_threads,
    &add_library,       &add_kernels,      &add_kernel_ids,     &add_functions, &add_host_values,   &add_devices,
    &add_arrays,        &add_array_making, &add_launch,         &add_tapes,     &add_graphs,        &add_reports,
    &add_profiles,      &add_queries,      &add_volume_queries, &add_geometry,  &add_mesh_files,    &add_volumes,
    &add_volume_making, &add_algorithms,   &add_exchange,       &add_jax,       &add_jax_callbacks,
};

}  // namespace
}  // namespace weft::python

NB_MODULE(_weft, m) {
  // Types of elements, and the package's classes, live as long as the process.
  nanobind::set_leak_warnings(false);
  m.attr("version") = WEFT_VERSION;
  for (auto add : weft::python::kParts) add(m);
}
