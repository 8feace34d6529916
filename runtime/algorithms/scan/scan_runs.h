// The scan as part of other algorithms. Internal to the runtime.
#pragma once
#include "../common/call.h"

namespace weft::detail {

/// Scratch memory that scan_runs() takes, for any grain.
std::uint64_t scan_scratch(std::int64_t n, std::uint32_t element_bytes);

/// Scans contiguous arrays of at least one element; `in` and `out` may be the same. T: unsigned, std::uint64_t, float
/// or double; signed integers are scanned by their bits.
template <class T>
void scan_runs(AlgorithmCall& call, const Array<T>& in, const Array<T>& out, bool inclusive);

}  // namespace weft::detail
