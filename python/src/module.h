// The parts of the module `_weft`. Each adds what it offers.
#pragma once
#include <nanobind/nanobind.h>

#include "gil.h"

namespace weft::python {

namespace nb = nanobind;

void add_errors(nb::module_& m);
void add_types(nb::module_& m);
// In kernels
void add_values(nb::module_& m);
void add_control(nb::module_& m);
void add_array_refs(nb::module_& m);
void add_threads(nb::module_& m);
void add_library(nb::module_& m);
void add_queries(nb::module_& m);
void add_volume_queries(nb::module_& m);
// Kernels and launches
void add_kernels(nb::module_& m);
void add_kernel_ids(nb::module_& m);
void add_functions(nb::module_& m);
void add_launch(nb::module_& m);
// On the host
void add_host_values(nb::module_& m);
void add_devices(nb::module_& m);
void add_arrays(nb::module_& m);
void add_array_making(nb::module_& m);
void add_exchange(nb::module_& m);
void add_tapes(nb::module_& m);
void add_graphs(nb::module_& m);
void add_geometry(nb::module_& m);
void add_volumes(nb::module_& m);
void add_volume_making(nb::module_& m);
void add_algorithms(nb::module_& m);
void add_reports(nb::module_& m);
void add_profiles(nb::module_& m);
void add_mesh_files(nb::module_& m);
// For JAX
void add_jax(nb::module_& m);
void add_jax_callbacks(nb::module_& m);

}  // namespace weft::python
