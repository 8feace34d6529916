// Writes each launched module once, under a name that stays the same from run to run.
#include "export_launched.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "../../frontend/support/error.h"
#include "../../frontend/support/platform.h"
#include "../kernel_spirv.h"

namespace weft::detail {

namespace {

/// The files written so far.
struct Written {
  const std::filesystem::path folder;
  const spirv::Target target;
  std::mutex mutex;
  /// The hashes of the modules of each stem, or of the reasons for refusing them, in order of their numbers.
  std::map<std::string, std::vector<std::uint64_t>> stems;

  static Written* get() {
    static const std::filesystem::path folder = platform::environment_folder("WEFT_EXPORT_KERNELS");
    if (folder.empty()) return nullptr;
    static Written written{
        folder, spirv::Target::named(platform::environment("WEFT_EXPORT_TARGET").value_or("portable")), {}, {}};
    return &written;
  }

  /// The name of the next files; empty if files with this hash were written already.
  std::string stem_for(const std::string& stem, std::uint64_t hash) {
    std::vector<std::uint64_t>& known = stems[stem];
    if (std::ranges::find(known, hash) != known.end()) return {};
    known.push_back(hash);
    return known.size() == 1 ? stem : fmt::format("{}.{}", stem, known.size());
  }

  void write_text(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder / name;
    std::string why;
    if (!platform::write_file(path, std::as_bytes(std::span(text)), &why))
      throw Error(ErrorKind::io, fmt::format("{} cannot be written (WEFT_EXPORT_KERNELS): {}", path.string(), why));
  }
};

template <class F>
void write(Written& written, const ir::Module& module, const char* ending, F make) {
  std::lock_guard lock(written.mutex);
  const std::string stem = file_stem(module.name) + ending;
  SpirvKernel made;
  try {
    SpirvOptions options;
    options.target = written.target;
    made = make(options);
  } catch (const Error& e) {
    const std::string name = written.stem_for(stem, std::hash<std::string>()(e.what()));
    if (!name.empty()) written.write_text(name + ".refused", fmt::format("{}\n{}\n", module.name, e.what()));
    return;
  }
  const std::string name = written.stem_for(stem, made.reflection.spirv_hash);
  if (name.empty()) return;
  write_spirv(made, written.folder.string(), name);
  written.write_text(name + ".ir", made.ir);
}

[[noreturn]] void refuse(const ir::Module& module, const char* what) {
  throw Error(ErrorKind::unsupported, what, module.name, module.loc);
}

}  // namespace

void export_launched(const ir::Module& module) {
  Written* written = Written::get();
  if (!written) return;
  write(*written, module, "", [&](const SpirvOptions& options) {
    if (module.wide) refuse(module, "it cannot be exported: it is launched over 2^31 threads or more");
    return export_module(module, options);
  });
}

void export_launched_adjoint(const ir::Module& module, const ir::AdjointOptions& how) {
  Written* written = Written::get();
  if (!written) return;
  write(*written, module, ".adjoint", [&](SpirvOptions options) {
    if (!how.groups.empty())
      refuse(module, "its adjoint cannot be exported: it is launched with one array as several arguments");
    if (how.deterministic) refuse(module, "its adjoint cannot be exported: the tape is deterministic");
    if (module.wide) refuse(module, "its adjoint cannot be exported: it is launched over 2^31 threads or more");
    options.loop_slots = how.slots;
    return export_adjoint(module, how.with_gradient, options);
  });
}

}  // namespace weft::detail
