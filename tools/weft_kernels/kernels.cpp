// Finds kernels: loads libraries, runs programs, reads exported files.
#include "kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "../../frontend/kernels/kernel.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/platform.h"
#include "../../spirv/emit.h"

namespace weft::tool {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(ErrorKind kind, const std::string& message) { throw Error(kind, message); }

std::string read_text(const fs::path& path) {
  const auto bytes = platform::read_file(path);
  if (!bytes) fail(ErrorKind::io, fmt::format("{} cannot be read", path.string()));
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// Reads a kernel that was exported before.
Found read_exported(const fs::path& json) {
  Found found;
  found.stem = json.stem().string();
  try {
    found.kernel.reflection = reflection_from_json(read_text(json));
  } catch (const Error& e) {
    fail(ErrorKind::io, fmt::format("{}: {}", json.string(), e.message()));
  }
  found.name = found.kernel.reflection.name;
  const std::string words = read_text(fs::path(json).replace_extension(".spv"));
  found.kernel.words.resize(words.size() / 4);
  std::memcpy(found.kernel.words.data(), words.data(), found.kernel.words.size() * 4);
  if (words.size() % 4 || detail::hash_of_words(found.kernel.words) != found.kernel.reflection.spirv_hash)
    fail(ErrorKind::io, fmt::format("{}: the .spv beside it is another module", json.string()));
  const fs::path ir = fs::path(json).replace_extension(".ir");
  if (fs::exists(ir)) found.kernel.ir = read_text(ir);
  return found;
}

void read_folder(const fs::path& folder, std::vector<Found>& all) {
  std::vector<fs::path> paths;
  for (const platform::FileInfo& file : platform::list_files(folder)) paths.push_back(file.path);
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    if (path.extension() == ".json") all.push_back(read_exported(path));
    if (path.extension() != ".refused") continue;
    const std::string text = read_text(path);
    const std::size_t line = std::min(text.find('\n'), text.size());
    Found& found = all.emplace_back();
    found.stem = path.stem().string();
    found.name = text.substr(0, line);
    found.refused = text.substr(std::min(line + 1, text.size()));
    while (found.refused.ends_with('\n')) found.refused.pop_back();
  }
}

Found export_one(detail::KernelCore& kernel, const std::string& stem, const Request& request, bool adjoint) {
  Found found;
  found.stem = stem + (adjoint ? ".adjoint" : "");
  found.name = kernel.name();
  try {
    SpirvOptions options;
    options.adjoint = adjoint;
    options.target = spirv::Target::named(request.target);
    found.kernel = export_spirv(kernel, options);
  } catch (const Error& e) {
    found.refused = e.what();
  }
  return found;
}

void load(const std::string& path, const Request& request, std::vector<Found>& all) {
  // Only regular files are opened: opening a pipe would wait for its writer.
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error))
    fail(ErrorKind::io, fmt::format("{} is no regular file", path));
  const auto before = detail::KernelCore::all();
  if (const std::string why = platform::load_library(path); !why.empty())
    fail(ErrorKind::io, fmt::format("{}: {}; a program is run: weft-kernels list -- PROGRAM ARGUMENTS", path, why));
  std::map<std::string, int> counts;
  for (const auto& kernel : detail::KernelCore::all()) {
    if (std::ranges::find(before, kernel) != before.end()) continue;
    std::string stem = detail::file_stem(kernel->name());
    if (const int number = ++counts[stem]; number > 1) stem += fmt::format(".{}", number);
    all.push_back(export_one(*kernel, stem, request, false));
    if (request.adjoint) all.push_back(export_one(*kernel, stem, request, true));
  }
  if (counts.empty())
    fail(ErrorKind::invalid_argument,
         fmt::format(
             "{} has no kernels at namespace scope, or a weft of its own inside (BUILD_SHARED_LIBS off); kernels "
             "that functions make are found while they run: weft-kernels list -- PROGRAM ARGUMENTS",
             path));
}

/// A temporary folder, removed at the end of this object.
struct TemporaryFolder {
  fs::path path = platform::temporary_folder();
  TemporaryFolder() {
    if (path.empty()) fail(ErrorKind::io, "no folder for temporary files can be made");
  }
  ~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

void run(const Request& request, std::vector<Found>& all) {
  const TemporaryFolder folder;
  platform::set_environment_folder("WEFT_EXPORT_KERNELS", folder.path);
  platform::set_environment("WEFT_EXPORT_TARGET", request.target.c_str());
  const std::optional<int> code = platform::run_program(request.program);
  platform::set_environment("WEFT_EXPORT_KERNELS", nullptr);
  if (!code) fail(ErrorKind::io, fmt::format("{} cannot be run", request.program.front()));
  if (*code != 0)
    fail(ErrorKind::invalid_argument,
         fmt::format("the program \"{}\" ended with {}", fmt::join(request.program, " "), *code));
  const std::size_t before = all.size();
  read_folder(folder.path, all);
  if (all.size() == before)
    fail(ErrorKind::invalid_argument, fmt::format("{} launched no kernels of weft", request.program.front()));
}

// Numbers the file names of kernels from several files that have one name.
void number_stems(std::vector<Found>& all) {
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::string stem = all[k].stem;
    const auto taken = [&] {
      return std::any_of(all.begin(), all.begin() + std::ptrdiff_t(k),
                         [&](const Found& other) { return other.stem == all[k].stem; });
    };
    for (int number = 2; taken(); ++number) all[k].stem = fmt::format("{}.{}", stem, number);
  }
}

}  // namespace

std::vector<Found> find_kernels(const Request& request) {
  (void)spirv::Target::named(request.target);  // fails before any work
  const auto holds_exported = [](const std::string& file) {
    return fs::is_directory(file) || fs::path(file).extension() == ".json";
  };
  if (request.adjoint && !request.program.empty())
    fail(ErrorKind::invalid_argument,
         "--adjoint is for libraries: of a program's kernels those adjoints are found that its tapes need");
  if (request.adjoint && std::ranges::any_of(request.files, holds_exported))
    fail(ErrorKind::invalid_argument,
         "--adjoint is for libraries: of what was exported before those adjoints are found that were exported then");
  std::vector<Found> all;
  for (const std::string& file : request.files) {
    const fs::path path = file;
    if (!holds_exported(file))
      load(file, request, all);
    else if (fs::is_directory(path))
      read_folder(path, all);
    else
      all.push_back(read_exported(path));
  }
  if (!request.program.empty()) run(request, all);
  number_stems(all);
  for (Found& found : all) {
    if (!request.optimise || !found.refused.empty()) continue;
    found.kernel.words = spirv::optimise(found.kernel.words);
    found.kernel.reflection.spirv_bytes = found.kernel.words.size() * 4;
    found.kernel.reflection.spirv_hash = detail::hash_of_words(found.kernel.words);
  }
  return all;
}

}  // namespace weft::tool
