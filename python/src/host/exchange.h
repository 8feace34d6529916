// What both ways of exchange with other libraries have in common.
#pragma once
#include "../../../runtime/dlpack.h"
#include "arrays.h"

namespace weft::python {

constexpr const char* kNewCapsule = "dltensor_versioned";
constexpr const char* kOldCapsule = "dltensor";

/// An element as DLPack describes it. Errors: TypeError for structs.
detail::DlpackElement dlpack_element_of(const DType& dtype);

/// Adds __dlpack__(), __dlpack_device__() and __cuda_array_interface__ to the class of arrays.
void add_exports(nb::handle array);

}  // namespace weft::python
