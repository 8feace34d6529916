// All that differs between operating systems: environment, files, process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace weft::platform {

/// The value of an environment variable; nothing when it is unset or empty.
std::optional<std::string> environment(const char* name);

/// A folder that a variable names; empty when it is unset or empty.
std::filesystem::path environment_folder(const char* name);

/// False for "0", "false", "off" and "no", true for any other value, `otherwise` when unset.
bool environment_flag(const char* name, bool otherwise);

/// The value as a non-negative number; `otherwise` when unset. Errors: Error(invalid_argument) for anything else.
std::uint64_t environment_number(const char* name, std::uint64_t otherwise);

/// Sets a variable for this process; null unsets it. Not to be called while other threads read the environment.
void set_environment(const char* name, const char* value);

/// As set_environment(), with whatever letters the folder has. environment_folder() gives it back as it is.
void set_environment_folder(const char* name, const std::filesystem::path& folder);

/// Where weft keeps what it can rebuild: WEFT_CACHE_DIR, else the user's cache folder (XDG_CACHE_HOME, ~/.cache or
/// LOCALAPPDATA) with "weft" below it. Empty when none of them is known. Not created.
std::filesystem::path cache_folder();

/// Processor time that the calling thread has used, in seconds; what others do meanwhile does not count.
double thread_seconds();

/// How many processors the calling thread may run on; at least one.
int processors();

/// Starts a thread of the library's own, with a name for debuggers (of 15 characters at most). Signals that the process
/// is sent are handled by other threads. It may run where the calling thread may. Errors: std::system_error where the
/// system has no more of them.
std::thread helper_thread(const char* name, std::function<void()> work);

/// A new, empty folder for temporary files. Empty when none can be made. The caller removes it.
std::filesystem::path temporary_folder();

/// Loads a shared library into this process until its end, with what it does when it is loaded.
/// \return what went wrong; empty: nothing
std::string load_library(const std::filesystem::path& path);

/// A shared library for its functions, until the process ends: looked for where the system looks for libraries, or at
/// the path that the name is. Null where there is none that can be loaded.
void* find_library(const std::string& name);
/// Null where the library has none of that name.
void* find_function(void* library, const char* name);

/// Runs a program with this process's environment and input, and waits. All that it prints goes to this process's error
/// output.
/// \param command  the program (looked for in PATH where it names no folder) and its arguments
/// \return its exit code, 128 + the signal that ended it; nothing when it cannot be started
std::optional<int> run_program(const std::vector<std::string>& command);

/// A number that no other running process on this machine has.
std::uint64_t process_id();

/// Calls `f` when the process ends, by the return of main() or by exit(): before static objects are destroyed, those of
/// libraries that were loaded meanwhile included, where the main thread ends it and has called this; else before those
/// that were made before the first call. One function per process; it may be called several times. Does nothing on
/// Windows, where the other threads are gone by then.
void at_exit(void (*f)());

/// Calls `before` before each fork of the process, and after it one of the others. Nothing on systems without fork.
void around_forks(void (*before)(), void (*in_parent)(), void (*in_child)());

/// Memory of the process, zeros, in pages of 2 MiB where the system has such: what is read here and there in it misses
/// the translation of addresses less often. Begins at a multiple of 2 MiB; null where there is none to have (always but
/// on Linux). Given back by unmap_large_pages() with the same number of bytes.
std::byte* map_large_pages(std::uint64_t bytes);
void unmap_large_pages(std::byte* memory, std::uint64_t bytes);
inline constexpr std::uint64_t kLargePageBytes = 2u << 20;

/// The whole file; nothing when it cannot be read or is larger than `limit` bytes. What is no regular file is not read:
/// to open a pipe would wait for who writes into it.
/// \param why  is told the reason of a failure, where it is not null
std::optional<std::vector<std::byte>> read_file(const std::filesystem::path& path, std::uint64_t limit = ~0ull,
                                                std::string* why = nullptr);

/// All that a reader gives; nothing when it fails midway or gives more than `limit` bytes.
/// \param read  fills its bytes from the first on and says how many it has filled: 0 at the end, nothing when it fails
std::optional<std::vector<std::byte>> read_all(
    const std::function<std::optional<std::size_t>(std::span<std::byte>)>& read, std::uint64_t limit = ~0ull);

/// Replaces a file so that readers see the old content or the new, never a part. Creates missing folders.
/// \param why  is told the reason of a failure, where it is not null
/// \return false, and the old file as it was, when that is impossible.
bool write_file(const std::filesystem::path& path, std::span<const std::byte> content, std::string* why = nullptr);

/// \return false when the file is still there.
bool remove_file(const std::filesystem::path& path);

/// A file in a folder.
struct FileInfo {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::int64_t age_seconds = 0;  ///< since it was last modified
  std::int64_t time = 0;         ///< of the last modification; grows with time, in units of its own
};

/// The regular files of a folder; empty when it cannot be read.
std::vector<FileInfo> list_files(const std::filesystem::path& folder);

/// Makes now the time of a file's last modification, where that is allowed, if it is older than `seconds`.
void touch_file(const std::filesystem::path& path, std::int64_t seconds);

/// Of a descriptor that this process has open.
void close_descriptor(int number);
/// Another one of the same; negative where the process may open no more.
int duplicate_descriptor(int number);

}  // namespace weft::platform
