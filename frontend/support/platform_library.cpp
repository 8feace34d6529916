// Shared libraries: where they are looked for, and what is found in them.
#include <fmt/format.h>

#include <string>
#include <system_error>
#include <vector>

#include "platform.h"
#include "platform_windows.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace weft::platform {

namespace fs = std::filesystem;

namespace {
// Why the last library could not be loaded.
std::string last_reason() {
#ifdef _WIN32
  return std::error_code(int(GetLastError()), std::system_category()).message();
#else
  const char* const why = dlerror();
  return why ? why : "it cannot be loaded";
#endif
}

// Whether the reason is that there is no library of that name, and not that it needs another one.
bool is_absent(const std::string& name, const std::string& reason) {
  std::error_code error;
  const fs::path path(name);
  if (path.has_parent_path()) return !fs::exists(path, error);
#ifdef _WIN32
  return true;
#else
  // The system's C libraries: GNU's names the file that it misses first, others say what needs it.
  if (reason.find(": cannot open shared object file: No such file") != reason.npos) return reason.starts_with(name);
  return reason.find("o such file") != reason.npos && reason.find("needed by") == reason.npos;
#endif
}
}  // namespace

std::string load_library(const fs::path& path) {
  // A name without a folder would be looked for elsewhere.
  std::error_code error;
  const fs::path file = fs::absolute(path, error);
  if (error) return error.message();
#ifdef _WIN32
  return LoadLibraryW(file.c_str()) ? std::string() : last_reason();
#else
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) ? std::string() : last_reason();
#endif
}

void* find_library(const std::string& name, std::string* why) {
#ifdef _WIN32
  // A name is not looked for in the current folder, where anybody may have put a library of that name. What a library
  // at a path needs is looked for beside it first.
  const fs::path path(name);
  const DWORD beside = path.is_absolute() ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0;
  void* const library =
      reinterpret_cast<void*>(LoadLibraryExW(path.c_str(), nullptr, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | beside));
#else
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
#endif
  if (library || !why) return library;
  *why = last_reason();
  if (is_absent(name, *why)) why->clear();
  return nullptr;
}

std::vector<std::string> llvm_libraries(unsigned version) {
#if defined(_WIN32)
  // It does not tell its version by its name.
  (void)version;
  const fs::path programs = environment_folder("ProgramFiles");
  std::vector<std::string> names{"LLVM-C.dll"};  // beside the program
  if (programs.is_absolute()) names.push_back((programs / "LLVM" / "bin" / "LLVM-C.dll").string());
  return names;
#elif defined(__APPLE__)
  // Homebrew's, for both kinds of processors. Names without a folder would be looked for in the current one, too.
  std::vector<std::string> names;
  for (const char* prefix : {"/opt/homebrew", "/usr/local"})
    for (const std::string& package : {fmt::format("llvm@{}", version), std::string("llvm")})
      names.push_back(fmt::format("{}/opt/{}/lib/libLLVM.dylib", prefix, package));
  return names;
#else
  // Debian's and Fedora's, Arch's, FreeBSD's.
  std::vector<std::string> names;
  if (version >= 18) names.push_back(fmt::format("libLLVM.so.{}.1", version));
  names.push_back(fmt::format("libLLVM-{}.so.1", version));
  names.push_back(fmt::format("libLLVM-{}.so", version));
  names.push_back(fmt::format("/usr/local/llvm{}/lib/libLLVM.so", version));
  return names;
#endif
}

void* find_function(void* library, const char* name) {
#ifdef _WIN32
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
#else
  return dlsym(library, name);
#endif
}

fs::path library_file(void* function) {
#ifdef _WIN32
  HMODULE library = nullptr;
  const DWORD by_address = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (!GetModuleHandleExW(by_address, static_cast<LPCWSTR>(function), &library)) return {};
  std::wstring name(32768, L'\0');
  name.resize(GetModuleFileNameW(library, name.data(), DWORD(name.size())));
  return name;
#else
  Dl_info info{};
  if (!dladdr(function, &info) || !info.dli_fname) return {};
  const fs::path file = info.dli_fname;
  if (file.is_absolute()) return file;
  // The C library names a program as it was called, which may be a bare name, and a library as it was asked for.
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return !error && program.filename() == file.filename() ? program : fs::path();
#endif
}

}  // namespace weft::platform
