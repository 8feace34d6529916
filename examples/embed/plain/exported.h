// A step of the drops that was exported as SPIR-V, launched in plain Vulkan with the help of weft's loader.
#pragma once
#include <string>

#include "show.h"

/// A guest that launches an exported step.
/// \param json  describes a kernel with the arguments of the one that `embed --export FOLDER` writes
/// Errors: std::runtime_error that says what is wrong with the files, or what the device lacks.
Guest exported_guest(const std::string& json);
