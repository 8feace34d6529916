// What kernels print, on its way to Python.
#pragma once

namespace weft::python {

/// Gives Python the lines that kernels have printed and waits have brought. Under the GIL, and under no lock of the
/// library's. Cost: a load where there are none.
/// Errors: whatever the package's function raises.
void show_reports();
/// The same on a thread without the GIL, which is taken if there are lines.
void show_reports_without_gil();

}  // namespace weft::python
