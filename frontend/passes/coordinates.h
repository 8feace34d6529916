// Recognises the coordinates of tid<N>(), as tracing::thread_coordinate() computes them.
#pragma once
#include "../ir/module.h"

namespace weft::ir {

/// Whether a value is the quotient of dimension k, from 1: the thread's number, divided by the extents of this
/// dimension and of all that run faster. That of the last dimension is the number of the row.
bool is_tid_quotient(const Module& module, Id value, int k);

/// The number of the thread's coordinate that the value is, perhaps converted to another integer of 32 bits or more; -1
/// for other values. In a wide launch the first coordinate counts from where the dispatch begins.
int tid_coordinate(const Module& module, Id value);

}  // namespace weft::ir
