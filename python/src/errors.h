// Exceptions on their way from C++ to Python.
#pragma once

namespace weft::python {

/// Makes the exception that is being handled, in a catch block, the one of Python's that is raised.
void raise_current();

}  // namespace weft::python
