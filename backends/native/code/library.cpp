// Finds LLVM's library by the names that distributions give it, and loads its functions.
#include "library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../frontend/support/platform.h"

namespace weft::backend::native {

namespace {

constexpr unsigned kNewestThought = 40;

#if defined(__aarch64__) || defined(_M_ARM64)
#define WEFT_LLVM_TARGET "AArch64"
constexpr const char* kTriple = "aarch64-unknown-linux-gnu";
#else
#define WEFT_LLVM_TARGET "X86"
constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
#endif

// The names to try, each once: a library that came with weft, in a folder beside weft's own, then tested versions.
std::vector<std::string> usual_names() {
  std::vector<std::string> names;
  const std::filesystem::path own = platform::library_file(reinterpret_cast<void*>(&usual_names));
  std::error_code error;
  const std::filesystem::path brought = own.parent_path() / "llvm" / "libLLVM.so";
  if (!own.empty() && std::filesystem::exists(brought, error)) names.push_back(brought.string());
  const auto add = [&](unsigned version) {
    for (std::string& name : platform::llvm_libraries(version))
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  };
  for (unsigned v = kNewestLlvm; v >= kOldestLlvm; --v) add(v);
  for (unsigned v = kNewestLlvm + 1; v <= kNewestThought; ++v) add(v);
  return names;
}

// The text of a message of LLVM's, which is disposed of.
std::string taken(const abi::Functions& calls, char* message) {
  std::string result = message ? message : "";
  if (message) calls.dispose_message(message);
  return result;
}

// The version in words. Version 15 cannot be asked for it.
std::string version_of(void* loaded, unsigned& major) {
  const auto get =
      reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(platform::find_function(loaded, "LLVMGetVersion"));
  major = 15;
  if (!get) return "LLVM 15";
  unsigned minor = 0, patch = 0;
  get(&major, &minor, &patch);
  return fmt::format("LLVM {}.{}.{}", major, minor, patch);
}

// Calls the functions that make LLVM know a kind of processor. Returns the name of one that is missing, or null.
const char* initialise(void* loaded) {
  for (const char* name :
       {"LLVMInitialize" WEFT_LLVM_TARGET "TargetInfo", "LLVMInitialize" WEFT_LLVM_TARGET "Target",
        "LLVMInitialize" WEFT_LLVM_TARGET "TargetMC", "LLVMInitialize" WEFT_LLVM_TARGET "AsmPrinter"}) {
    const auto call = reinterpret_cast<void (*)()>(platform::find_function(loaded, name));
    if (!call) return name;
    call();
  }
  return nullptr;
}

// Fills a library from what is loaded. Returns what is wrong with it, or an empty text.
std::string start(Library& library, void* loaded) {
  const char* missing = nullptr;
  const auto load = [&](auto& function, const char* symbol) {
    void* const found = platform::find_function(loaded, symbol);
    if (!found) missing = symbol;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
#define WEFT_LLVM_LOAD(field, name, result, arguments) load(library.calls.field, name);
  WEFT_LLVM_FUNCTIONS(WEFT_LLVM_LOAD)
#undef WEFT_LLVM_LOAD
  const abi::Functions& calls = library.calls;
  if (!calls.context_create) return "it is no library of LLVM";
  if (!calls.pointer_type) return fmt::format("it is too old: version {} is needed", kOldestLlvm);
  if (!missing) missing = initialise(loaded);
  if (missing) return fmt::format("it lacks {}", missing);
  Toolchain& toolchain = library.toolchain;
  toolchain.version = version_of(loaded, library.major);
  toolchain.path = platform::library_file(reinterpret_cast<void*>(calls.context_create)).string();
  toolchain.identity = file_identity(toolchain.path);
  toolchain.host = {taken(calls, calls.host_name()), taken(calls, calls.host_features())};
  char* message = nullptr;
  if (calls.target_from_triple(kTriple, &library.target, &message)) return taken(calls, message);
  const abi::Handle machine = library.create_machine({}, {});
  if (!machine) return fmt::format("it makes no code for {}", kTriple);
  const abi::Handle layout = calls.create_layout(machine);
  library.layout = taken(calls, calls.layout_text(layout));
  calls.dispose_layout(layout);
  calls.dispose_machine(machine);
  return {};
}

struct Found {
  std::unique_ptr<const Library> library;
  std::string why;
};

// Loads the library of one name. Returns what is wrong with it, or an empty text; nothing if there is none.
std::optional<std::string> load(const std::string& name, std::unique_ptr<const Library>& into) {
  std::string reason;
  void* const loaded = platform::find_library(name, &reason);
  if (!loaded) return reason.empty() ? std::nullopt : std::optional(std::move(reason));
  auto library = std::make_unique<Library>();
  std::string fault = start(*library, loaded);
  if (fault.empty()) into = std::move(library);
  return fault;
}

Found load_named(const std::string& name) {
  Found found;
  const auto fault = load(name, found.library);
  if (!found.library) found.why = fault ? *fault : "it is not there";
  return found;
}

Found load_newest() {
  Found found;
  std::string faults;
  const auto note = [&](const std::string& name) {
    const auto fault = load(name, found.library);
    if (fault && !fault->empty()) faults += fmt::format("; {}: {}", name, *fault);
    return fault.has_value();
  };
  for (const std::string& name : usual_names())
    if (note(name) && found.library) return found;
  // An older one that is there is named, so that nobody looks for why it is not taken.
  for (unsigned v = kOldestLlvm - 1; v >= 11; --v)
    if (std::ranges::any_of(platform::llvm_libraries(v), note)) break;
  found.why = fmt::format(
      "LLVM is missing: no library of version {} or later was found ({} and those of later versions){}. On Debian and "
      "Ubuntu, `apt-get install libllvm19` or libllvm15 installs one; WEFT_LLVM names one that is elsewhere",
      kOldestLlvm, fmt::join(platform::llvm_libraries(kOldestLlvm), ", "), faults);
  return found;
}

}  // namespace

const char* triple() { return kTriple; }

std::string file_identity(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) return {};
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) return {};
  return fmt::format("{}:{}", bytes, static_cast<std::int64_t>(time.time_since_epoch().count()));
}

abi::Handle Library::create_machine(const std::string& processor, const std::string& features) const {
  return calls.create_machine(target, kTriple, processor.c_str(), features.c_str(), abi::kDefaultLevel,
                              abi::kPositionIndependent, abi::kSmallCode);
}

const Library* Library::find(const std::string& name, std::string* why) {
  // Libraries stay until the process ends, because threads may compile until then.
  struct All {
    std::mutex mutex;
    std::map<std::string, Found> found;
  };
  static All* const all = new All;
  std::lock_guard lock(all->mutex);
  const auto [at, first] = all->found.try_emplace(name);
  Found& found = at->second;
  if (first && kHostMachine == Machine::none)
    found.why = "there is no machine code for processors of this kind";
  else if (first && name == kNoLibrary)
    found.why = fmt::format("WEFT_LLVM is '{}'", kNoLibrary);
  else if (first)
    found = name.empty() ? load_newest() : load_named(name);
  if (why) *why = found.why;
  return found.library.get();
}

}  // namespace weft::backend::native
