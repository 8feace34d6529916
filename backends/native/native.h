// The native device: kernels as machine code on all cores of the host.
#pragma once
#include <memory>
#include <string>

#include "../backend.h"

namespace weft::backend {

/// Opens a new device named "cpu". Several are independent of each other, each with threads of its own.
///
/// Its memory is host memory: an address is a host pointer, memory of any alignment is wrapped without a copy, and
/// allocations of 2 MiB and more are in pages of that size where the system has them. A stream runs each operation when
/// it is recorded, on as many host threads as it is worth, and operations of a device run one at a time. So every
/// ticket is done at once, and the call that causes an error throws it. A subgroup is a vector of the processor.
///
/// Accesses are not checked, as on GPUs: one outside of memory may end the process. WEFT_CATCH_FAULTS=1 has a line
/// written before, which names the kernel. WEFT_THREADS is the number of host threads, else that of the processors on
/// which the process may run.
/// Errors: Error(no_device) where no LLVM is found, with what was tried and what to install; Error(invalid_argument)
/// for what WEFT_LLVM, WEFT_CPU_LEVEL, WEFT_CPU_LANES or WEFT_THREADS asks for and cannot have; Error(device_lost) in
/// the child of a fork that left such a device behind.
std::unique_ptr<Device> open_native();

/// Whether open_native() would find an LLVM. \param why  what was tried, if it would not
/// Errors: as open_native(), but for no LLVM.
bool has_native(std::string* why = nullptr);

}  // namespace weft::backend
