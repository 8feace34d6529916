// Scripts that measure warp-lang, for the suites that are compared with it.
#pragma once
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weft::bench {

/// What leave_out() says where there is nothing to ask.
inline constexpr const char* kNoWarp = "the Python of WEFT_PYTHON has no warp-lang";

/// Runs `script`, which stands beside this file, with `arguments`, then the name of a file that `write` has written,
/// if it is given, then the name of the file that receives the script's figures.
/// \return as many figures as are asked for, or nothing where there is no warp-lang
/// Cost: seconds; Warp compiles its kernels at the first run.
std::optional<std::vector<double>> ask_warp(const std::string& script, const std::string& arguments,
                                            std::size_t figures, const std::function<void(std::ofstream&)>& write = {});

}  // namespace weft::bench
