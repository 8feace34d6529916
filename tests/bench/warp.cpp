// The other process, and the files between it and this one.
#include "warp.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "../../frontend/support/platform.h"

namespace weft::bench {

std::optional<std::vector<double>> ask_warp(const std::string& script, const std::string& arguments,
                                            std::size_t figures, const std::function<void(std::ofstream&)>& write) {
  namespace fs = std::filesystem;
  const auto name = [](const char* what) {
    return fs::temp_directory_path() / fmt::format("weft_bench_{}.{}", platform::process_id(), what);
  };
  std::string command = fmt::format("{} \"{}\" {}", platform::environment("WEFT_PYTHON").value_or("python3"),
                                    (fs::path(WEFT_SOURCE_DIR) / "tests/bench" / script).string(), arguments);
  if (write) {
    std::ofstream file(name("bin"), std::ios::binary);
    write(file);
    command += fmt::format(" \"{}\"", name("bin").string());
  }
  command += fmt::format(" \"{}\"", name("txt").string());
  std::vector<double> found(figures);
  bool read = std::system(command.c_str()) == 0;
  if (read) {
    std::ifstream file(name("txt"));
    for (double& figure : found) read = read && bool(file >> figure);
  }
  fs::remove(name("bin"));
  fs::remove(name("txt"));
  if (!read) return {};
  return found;
}

}  // namespace weft::bench
