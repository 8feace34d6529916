// The native device: kernels as machine code on all cores of the host.
#pragma once
#include <memory>
#include <string>

#include "../backend.h"

namespace weft::backend {

/// Opens the device.
/// Errors: Error(no_device) where no LLVM is found, with what was tried and what to install.
std::unique_ptr<Device> open_native();

/// Whether open_native() would find an LLVM. \param why  what was tried, if it would not
bool has_native(std::string* why = nullptr);

}  // namespace weft::backend
