// Programs beside this file that measure warp-lang, Taichi and CUB, for the suites that are compared with them.
#pragma once
#include <fstream>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "../harness.h"

namespace weft::bench {

/// Runs `script`, which stands beside this file, with `arguments`, then the name of a file that `write` has written,
/// if it is given, then the name of the file that receives the script's figures.
/// \return as many figures as are asked for, or nothing if the package that the script needs is not installed
/// Cost: seconds; the packages compile their kernels at the first run.
std::optional<std::vector<double>> ask_python(const std::string& script, const std::string& arguments,
                                              std::size_t figures,
                                              const std::function<void(std::ofstream&)>& write = {});

/// warp-lang's CPU device, of one thread. Its time is the sum of these of the figures that ask_python() has given.
Reference warp_reference(const std::optional<std::vector<double>>& figures, std::initializer_list<std::size_t> which);

/// taichi's CPU device, likewise. \param threads  text for its name
Reference taichi_reference(const std::optional<std::vector<double>>& figures, const std::string& threads);

/// Compiles cub.cu by WEFT_NVCC, else nvcc, and runs it with `arguments` on the first CUDA device.
/// \return as many figures as are asked for, or nothing if there is no compiler or no such device
/// Errors: std::runtime_error if the program fails, or CUB's results are wrong.
/// Cost: half a minute, once for the same arguments: cases of a run share what they ask for together.
std::optional<std::vector<double>> ask_cub(const std::string& arguments, std::size_t figures);

}  // namespace weft::bench
