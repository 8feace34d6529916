// The ids of structures among the arguments of a launch.
#pragma once
#include <utility>
#include <vector>

#include "../host/arguments.h"
#include "../trace/kernels.h"

namespace weft::python {

/// Checks the numbers that a kernel uses as ids, and adds the values of the volumes that it writes by them. 0 names no
/// structure, and nothing is found by it: programs pass it for one that they do not have.
/// \param handle  the package's kernel, for the names of its parameters
/// Errors: ValueError that names the kernel, the argument and what the number is, if it is no id of a structure of the
/// kind that lives on the device, and for a volume without values of the type that the kernel writes.
void take_ids(nb::handle handle, const KernelIds& ids, const Kernel& kernel, const detail::DeviceState* device,
              Arguments& arguments);

/// The meshes among the ids that a kernel uses, if the points of one have gradients, and there is room for their data
/// among the kernel's parameters; else nothing. The meshes live until the launch lets go of the GIL.
std::vector<std::pair<IdPlace, const Mesh*>> meshes_to_give(const KernelIds& ids, const detail::DeviceState* device,
                                                            const Arguments& arguments);

}  // namespace weft::python
