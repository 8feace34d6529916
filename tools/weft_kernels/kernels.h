// The sources of the tool's kernels: shared libraries, programs that run, and files that were exported before.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "../../runtime/kernel_spirv.h"

namespace weft::tool {

/// A kernel, or an adjoint, that was found.
struct Found {
  std::string stem;     ///< of its files
  std::string name;     ///< of the kernel
  std::string refused;  ///< why it cannot be exported; empty: it can
  SpirvKernel kernel;
};

/// The request for kernels.
struct Request {
  std::vector<std::string> files;    ///< shared libraries, NAME.json, and folders of these
  std::vector<std::string> program;  ///< the program to run, with its arguments; or empty
  std::string target = "portable";
  bool adjoint = false;   ///< also finds the adjoints of libraries' kernels
  bool optimise = false;  ///< modules go through SPIRV-Tools' passes
};

/// Finds the requested kernels, in order. Errors: weft::Error.
std::vector<Found> find_kernels(const Request& request);

}  // namespace weft::tool
