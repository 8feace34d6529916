// The platform: everything that differs between operating systems, such as environment, files, processes.
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

/// The value of an environment variable; nothing if it is unset or empty.
std::optional<std::string> environment(const char* name);

/// The folder that an environment variable names; empty if it is unset or empty.
std::filesystem::path environment_folder(const char* name);

/// The variable as a switch: "0", "false", "off" and "no", or "1", "true", "on" and "yes"; `otherwise` if unset.
/// Errors: Error(invalid_argument) for anything else.
bool environment_flag(const char* name, bool otherwise);

/// The variable as a non-negative number; `otherwise` if unset. Errors: Error(invalid_argument) for anything else.
std::uint64_t environment_number(const char* name, std::uint64_t otherwise);

/// Sets a variable for this process; null unsets it. Do not call it while other threads read the environment.
void set_environment(const char* name, const char* value);

/// Sets a variable to a folder, whatever letters its name has; environment_folder() returns it unchanged.
void set_environment_folder(const char* name, const std::filesystem::path& folder);

/// The folder for data that weft can rebuild: WEFT_CACHE_DIR, else "weft" in the user's cache folder (XDG_CACHE_HOME,
/// ~/.cache or LOCALAPPDATA). Empty if none of them is known. Not created.
std::filesystem::path cache_folder();

/// The name that the processor's maker gives it ("AMD EPYC 9354 32-Core Processor"); empty if it does not say.
std::string processor_name();

/// The processor time that the calling thread has used, in seconds; other threads do not count.
double thread_seconds();

/// The number of processors on which the calling thread may run, as far as the quota of the process goes; at least one.
int processors();

/// The processors that the quotas of Linux's control groups, by which containers are limited, leave the process at a
/// time; nothing if there is no quota. \param root  the folder that has proc and sys
std::optional<double> processor_quota(const std::filesystem::path& root = "/");

/// The memory that the process may use: that of the machine, or less where a control group has a limit; nothing if the
/// system does not tell. \param root  the folder that has proc and sys
std::optional<std::uint64_t> memory_bytes(const std::filesystem::path& root = "/");

/// The calling thread's mode for floats while the object lives: rounding to nearest, subnormals kept, no traps. Its end
/// restores what was there before, with the flags of what has happened.
class FloatMode {
 public:
  FloatMode();
  ~FloatMode();
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  struct State {
    std::uint64_t mode = 0, flags = 0;
    bool operator==(const State&) const = default;
  };
  static State read();
  static void write(const State& state);
  const State before_;
};

/// Tells the processor that the thread looks at something again and again until another thread changes it.
void pause();

/// Text that tells processors with other instructions apart, and counts only instructions that the system lets programs
/// use; empty if it cannot be found out. The same for all processors of a machine whose processors are equal.
std::string processor_id();

/// How functions call each other on this system, where processors leave that open.
struct CallRules {
  bool windows = false;       ///< on x86-64, the calling convention of Windows
  bool reserves_x18 = false;  ///< on AArch64, the system has register x18 to itself
};
CallRules call_rules();

/// Starts a thread of the library's own, with a name of at most 15 characters for debuggers. Other threads handle the
/// signals that the process is sent. The thread may run on the processors of the calling thread.
/// Errors: std::system_error if the system has no more threads.
std::thread helper_thread(const char* name, std::function<void()> work);

/// A new, empty folder for temporary files; empty if none can be made. The caller removes it.
std::filesystem::path temporary_folder();

/// Loads a shared library into this process until its end, which runs its initialisation.
/// \return the reason of a failure; empty: none
std::string load_library(const std::filesystem::path& path);

/// Loads a shared library for its functions, until the process ends. The name is a path, or is looked for where the
/// system looks for libraries; on Windows beside the program and among the system's, but not in the current folder.
/// Null if none can be loaded; then `why` has the system's reason, and is empty if there is no library of that name.
void* find_library(const std::string& name, std::string* why = nullptr);
/// The names, for find_library(), under which this system may have a version of LLVM. A library of another version may
/// have such a name where names do not tell versions apart.
std::vector<std::string> llvm_libraries(unsigned version);
/// The function of that name; null if the library has none.
void* find_function(void* library, const char* name);

/// The file of the loaded library that this function is in; empty if the system does not say.
std::filesystem::path library_file(void* function);

/// Runs a program with this process's environment and input, and waits. All of its output goes to this process's error
/// output.
/// \param command  the program (looked for in PATH if it names no folder) and its arguments
/// \return its exit code, or 128 + the signal that ended it; nothing if it cannot be started
std::optional<int> run_program(const std::vector<std::string>& command);

/// A number that no other running process on this machine has.
std::uint64_t process_id();

/// Calls `f` when the process ends, by the return of main() or by exit(). If the main thread ends the process and has
/// called this, `f` runs before static objects are destroyed, including those of libraries that were loaded meanwhile;
/// otherwise it runs before those that were made before the first call. One function per process; it may be registered
/// several times. Does nothing on Windows, where the other threads are gone by then.
void at_exit(void (*f)());

/// Calls `before` before each fork of the process, and after it one of the others. Does nothing on systems without
/// fork.
void around_forks(void (*before)(), void (*in_parent)(), void (*in_child)());

/// Has `describe` asked for text when a thread touches memory that it may not, writes that to the error output, and
/// lets the fault take its way: to a handler that was there before, or to the end of the process. One function per
/// process, asked until it has described one.
/// \param describe  writes at most `room` characters and returns how many; runs in a signal handler, where it may
///                  neither allocate nor lock. 0: the fault is not its concern
void describe_faults(std::size_t (*describe)(char* text, std::size_t room, const void* address));

/// Maps zeroed memory in pages of 2 MiB if the system has them, so that scattered reads miss the translation of
/// addresses less often. The memory begins at a multiple of 2 MiB; null if none is to be had, which is always so except
/// on Linux. unmap_large_pages() gives it back, with the same number of bytes.
std::byte* map_large_pages(std::uint64_t bytes);
void unmap_large_pages(std::byte* memory, std::uint64_t bytes);
inline constexpr std::uint64_t kLargePageBytes = 2u << 20;

/// Maps pages, calls `write` with their first byte, and makes them executable; from then on they cannot be written. If
/// `write` throws, the pages are given back. They begin at a multiple of kCodeAlignment. Null if the system refuses.
/// \param why  receives the reason of a refusal, unless null
std::byte* map_code(std::size_t bytes, const std::function<void(std::byte*)>& write, std::string* why = nullptr);
void unmap_code(std::byte* memory, std::size_t bytes);
/// Whether the system runs code that a process has written, which some refuse to hardened services.
/// \param why  if it does not
bool allows_code(std::string* why = nullptr);
inline constexpr std::size_t kCodeAlignment = 4096;

/// The whole file; nothing if it cannot be read or is larger than `limit` bytes. Only regular files are read: opening a
/// pipe would wait for its writer.
/// \param why  receives the reason of a failure, unless null
std::optional<std::vector<std::byte>> read_file(const std::filesystem::path& path, std::uint64_t limit = ~0ull,
                                                std::string* why = nullptr);

/// All bytes that a reader gives; nothing if it fails midway or gives more than `limit` bytes.
/// \param read  fills its bytes from the first on and returns how many it has filled: 0 at the end, nothing if it fails
std::optional<std::vector<std::byte>> read_all(
    const std::function<std::optional<std::size_t>(std::span<std::byte>)>& read, std::uint64_t limit = ~0ull);

/// Replaces a file so that readers see the old content or the new, never a part. Creates missing folders.
/// \param why  receives the reason of a failure, unless null
/// \return false if it is impossible, which leaves the old file as it was
bool write_file(const std::filesystem::path& path, std::span<const std::byte> content, std::string* why = nullptr);

/// A file that is trusted with code, or why it is not. All texts are empty if there is no such file.
struct OwnFile {
  std::optional<std::vector<std::byte>> content;
  std::string fault;         ///< why the file is not trusted: "it belongs to another user"
  std::string folder_fault;  ///< why nothing in its folder is: "others may write to its folder"
};
/// Reads a file if it and its folder belong to the user that the process acts for, if nobody else may write to either,
/// and if neither is a link. On Windows it reads any file: the folder's access list decides there who writes.
OwnFile read_own_file(const std::filesystem::path& path);
/// Replaces a file like write_file(), for read_own_file(): nobody else may read it. A folder that is missing is created
/// so, too; its parents are created as usual. Fails if read_own_file() would not trust the folder.
bool write_own_file(const std::filesystem::path& path, std::span<const std::byte> content, std::string* why = nullptr);

/// Removes a file. \return false if the file is still there
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

/// Sets the time of a file's last modification to now if it is older than `seconds` and the system allows it.
void touch_file(const std::filesystem::path& path, std::int64_t seconds);

/// Closes a descriptor that this process has open.
void close_descriptor(int number);
/// Another descriptor of the same file; negative if the process may open no more.
int duplicate_descriptor(int number);

}  // namespace weft::platform
