// The stream that Python gives to a call.
#pragma once
#include <nanobind/nanobind.h>

#include "../../../runtime/device.h"

namespace weft::python {

/// The stream of a Stream, or of an object with one in its attribute `native`.
/// Errors: TypeError.
Stream stream_from(nanobind::handle object);

}  // namespace weft::python
