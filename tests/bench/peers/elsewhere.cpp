// The other process, and the files between it and this one.
#include "elsewhere.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "../../../frontend/support/platform.h"

namespace weft::bench {

namespace {

namespace fs = std::filesystem;

// A file of this process, which is removed at the end of the object.
class OwnFile {
 public:
  explicit OwnFile(const char* what)
      : path_(fs::temp_directory_path() / fmt::format("weft_bench_{}.{}", platform::process_id(), what)) {}
  ~OwnFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  std::string quoted() const { return fmt::format("\"{}\"", path_.string()); }

 private:
  fs::path path_;
};

std::string source(const std::string& name) {
  return fmt::format("\"{}\"", (fs::path(WEFT_SOURCE_DIR) / "tests/bench/peers" / name).string());
}

// Runs a program, which takes the name of the file for its figures as its last argument. Returns nothing if the program
// writes none: it then had nothing to measure, or, if it may fail, has failed.
std::optional<std::vector<double>> ask(const std::string& command, std::size_t figures, bool may_fail) {
  const OwnFile answer("txt");
  if (std::system(fmt::format("{} {}", command, answer.quoted()).c_str()) != 0) {
    if (may_fail) return {};
    throw std::runtime_error(command + " failed");
  }
  std::vector<double> found(figures);
  std::ifstream file(answer.path());
  for (double& figure : found)
    if (!(file >> figure)) return {};
  return found;
}

}  // namespace

std::optional<std::vector<double>> ask_python(const std::string& script, const std::string& arguments,
                                              std::size_t figures, const std::function<void(std::ofstream&)>& write) {
  std::string command =
      fmt::format("{} {} {}", platform::environment("WEFT_PYTHON").value_or("python3"), source(script), arguments);
  const OwnFile input("bin");
  if (write) {
    std::ofstream file(input.path(), std::ios::binary);
    write(file);
    command += fmt::format(" {}", input.quoted());
  }
  return ask(command, figures, true);
}

Reference warp_reference(const std::optional<std::vector<double>>& figures, std::initializer_list<std::size_t> which) {
  Reference warp{"warp-lang, CPU", {}, "the Python of WEFT_PYTHON has no warp-lang"};
  if (!figures) return warp;
  warp.timing.emplace();
  for (const std::size_t k : which) warp.timing->seconds += figures->at(k);
  return warp;
}

Reference taichi_reference(const std::optional<std::vector<double>>& figures, const std::string& threads) {
  Reference taichi{"Taichi, CPU, " + threads, {}, "the Python of WEFT_PYTHON has no taichi"};
  if (figures) taichi.timing = Timing{figures->at(0), 0};
  return taichi;
}

std::optional<std::vector<double>> ask_cub(const std::string& arguments, std::size_t figures) {
  static std::map<std::string, std::vector<double>> known;
  if (const auto found = known.find(arguments); found != known.end()) return found->second;
  static const OwnFile program("cub");
  static const bool compiled = [] {
    const std::string compile =
        fmt::format("{} -O3 -std=c++17 -arch=native -o {} {}", platform::environment("WEFT_NVCC").value_or("nvcc"),
                    program.quoted(), source("cub.cu"));
    return std::system(compile.c_str()) == 0;
  }();
  if (!compiled) return {};
  const auto answer = ask(program.quoted() + " " + arguments, figures, false);
  if (answer) known.emplace(arguments, *answer);
  return answer;
}

}  // namespace weft::bench
