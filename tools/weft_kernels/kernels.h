// Where the tool's kernels come from: shared libraries, programs that run, and what was exported before.
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

/// What to find.
struct Request {
  std::vector<std::string> files;    ///< shared libraries, NAME.json, folders of these
  std::vector<std::string> program;  ///< to be run, with its arguments; or empty
  std::string target = "portable";
  bool adjoint = false;   ///< those of libraries' kernels too
  bool optimise = false;  ///< modules go through SPIRV-Tools' passes
};

/// All of them, in order. Errors: weft::Error.
std::vector<Found> find_kernels(const Request& request);

}  // namespace weft::tool
