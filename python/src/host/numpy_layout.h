// NumPy's arrays as its binary interface lays them out: to ask for a description by Python's buffer protocol takes
// longer than the launch of a small kernel.
#pragma once
#include <optional>

#include "tensors.h"

namespace weft::python {

/// The description of an array of NumPy's whose numbers are the machine's own and may be written. Nothing for other
/// objects and arrays, and before know_numpy().
std::optional<HostTensor> numpy_tensor(PyObject* object);

/// Whether an object is an array of NumPy's with memory of its own, not a view.
bool owns_numpy_memory(PyObject* object);

/// Lets numpy_tensor() describe arrays of the class of this one, if what it reads of it is what the buffer protocol
/// says.
void know_numpy(nb::handle sample);

}  // namespace weft::python
