// Calls that differ between operating systems. Only this file has such calls, and those beside it:
// platform_processor.cpp, platform_library.cpp, platform_code.cpp and platform_windows.h.
#include "platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "error.h"
#include "file_descriptor.h"
#include "invalid.h"
#include "platform_windows.h"

#ifdef __linux__
#include <sys/mman.h>
#include <sys/syscall.h>
#endif
#ifdef __APPLE__
#include <crt_externs.h>
#define environ (*_NSGetEnviron())  // libraries do not get it by name
#endif
#ifdef _WIN32
#include <io.h>
#include <process.h>
#else
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#endif

namespace weft::platform {

namespace fs = std::filesystem;

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

File open(const fs::path& path, bool write) {
#ifdef _WIN32
  return File(_wfopen(path.c_str(), write ? L"wb" : L"rb"));
#else
  return File(std::fopen(path.c_str(), write ? "wb" : "rb"));
#endif
}

// A temporary name is unique, because threads, processes and machines that share the folder must not write one file.
fs::path temporary_beside(const fs::path& path) {
  static std::atomic<std::uint64_t> counter{0};
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  fs::path result = path;
  result += fmt::format(".{:x}-{:x}-{:x}.tmp", process_id(), counter.fetch_add(1), static_cast<std::uint64_t>(ticks));
  return result;
}

#ifdef _WIN32
// Quotes an argument as Microsoft's C library takes a command line apart: in quotation marks, before which backslashes
// are doubled. A command line on Windows has no other way to say where an argument ends.
std::string on_command_line(const std::string& argument) {
  std::string result = "\"";
  std::size_t backslashes = 0;
  for (const char c : argument) {
    if (c == '"') result.append(backslashes + 1, '\\');
    backslashes = c == '\\' ? backslashes + 1 : 0;
    result += c;
  }
  return result.append(backslashes, '\\') + '"';
}
#endif

}  // namespace

std::optional<std::string> environment(const char* name) {
  // A program with raised rights must not take code from where its caller says.
#ifdef __GLIBC__
  const char* value = secure_getenv(name);
#else
  const char* value = std::getenv(name);
#endif
  if (!value || !*value) return std::nullopt;
  return std::string(value);
}

fs::path environment_folder(const char* name) {
#ifdef _WIN32
  // The system is asked, because the C library's environment holds only narrow characters.
  const std::wstring wide(name, name + std::strlen(name));
  std::wstring value(GetEnvironmentVariableW(wide.c_str(), nullptr, 0), L'\0');
  value.resize(GetEnvironmentVariableW(wide.c_str(), value.data(), DWORD(value.size())));
  return value;
#else
  return environment(name).value_or("");
#endif
}

bool environment_flag(const char* name, bool otherwise) {
  const auto value = environment(name);
  if (!value) return otherwise;
  std::string lower = *value;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  for (const char* on : {"1", "true", "on", "yes"})
    if (lower == on) return true;
  for (const char* off : {"0", "false", "off", "no"})
    if (lower == off) return false;
  invalid("{} is '{}'; 1, true, on or yes is needed, or 0, false, off or no", name, *value);
}

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const auto value = environment(name);
  if (!value) return otherwise;
  std::uint64_t number = 0;
  const char* end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end) invalid("{} is '{}'; a non-negative number is needed", name, *value);
  return number;
}

void set_environment(const char* name, const char* value) {
#ifdef _WIN32
  _putenv_s(name, value ? value : "");
#else
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
#endif
}

void set_environment_folder(const char* name, const fs::path& folder) {
#ifdef _WIN32
  const std::wstring wide(name, name + std::strlen(name));
  _wputenv_s(wide.c_str(), folder.c_str());
#else
  set_environment(name, folder.c_str());
#endif
}

fs::path cache_folder() {
  if (const auto folder = environment_folder("WEFT_CACHE_DIR"); !folder.empty()) return folder;
#ifdef _WIN32
  if (const auto folder = environment_folder("LOCALAPPDATA"); !folder.empty()) return folder / "weft";
#else
  if (const auto folder = environment_folder("XDG_CACHE_HOME"); !folder.empty()) return folder / "weft";
  if (const auto home = environment_folder("HOME"); !home.empty()) return home / ".cache" / "weft";
#endif
  return {};
}

double thread_seconds() {
#ifdef _WIN32
  FILETIME made, ended, kernel, user;
  GetThreadTimes(GetCurrentThread(), &made, &ended, &kernel, &user);
  const auto ticks = [](const FILETIME& t) { return double(std::uint64_t(t.dwHighDateTime) << 32 | t.dwLowDateTime); };
  return (ticks(kernel) + ticks(user)) * 1e-7;
#else
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
#endif
}

std::thread helper_thread(const char* name, std::function<void()> work) {
#ifdef _WIN32
  (void)name;
  return std::thread(std::move(work));
#else
  // A thread inherits the blocked signals of its maker. Signals for its own faults are not blocked: they reach it in
  // any case, and would end the process unheard. Neither is SIGPROF, which profilers send to each thread.
  sigset_t sent, before;
  sigfillset(&sent);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) sigdelset(&sent, own);
  struct Blocked {
    const sigset_t& before;
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  };
  pthread_sigmask(SIG_BLOCK, &sent, &before);
  const Blocked blocked{before};
  return std::thread([name = std::string(name), work = std::move(work)] {
#ifdef __linux__
    pthread_setname_np(pthread_self(), name.c_str());
#endif
    work();
  });
#endif
}

fs::path temporary_folder() {
  std::error_code error;
  const fs::path root = fs::temp_directory_path(error);
  if (error) return {};
  for (int tries = 0; tries < 16; ++tries) {
    const fs::path folder = temporary_beside(root / "weft");
    if (fs::create_directory(folder, error)) return folder;
  }
  return {};
}

std::optional<int> run_program(const std::vector<std::string>& command) {
  std::vector<std::string> parts = command;
#ifdef _WIN32
  for (std::string& part : parts) part = on_command_line(part);
#endif
  std::vector<char*> arguments;
  for (std::string& part : parts) arguments.push_back(part.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
#ifdef _WIN32
  const int output = _dup(1);
  _dup2(2, 1);
  const auto code = _spawnvp(_P_WAIT, command[0].c_str(), arguments.data());
  _dup2(output, 1);
  _close(output);
  if (code == -1) return std::nullopt;
  return static_cast<int>(code);
#else
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return std::nullopt;
  pid_t child = 0;
  const bool started = posix_spawn_file_actions_adddup2(&actions, 2, 1) == 0 &&
                       posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (!started) return std::nullopt;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
#endif
}

std::uint64_t process_id() {
#ifdef _WIN32
  return static_cast<std::uint64_t>(_getpid());
#else
  return static_cast<std::uint64_t>(getpid());
#endif
}

#ifdef _WIN32
void at_exit(void (*)()) {}
void around_forks(void (*)(), void (*)(), void (*)()) {}
#else
namespace {

bool is_main_thread() {
#ifdef __linux__
  return syscall(SYS_gettid) == getpid();
#elif defined(__APPLE__)
  return pthread_main_np() != 0;
#else
  return false;
#endif
}

// A driver makes static objects while it works, on threads of its own. They are destroyed before anything that was
// registered earlier, and work that still runs would meet a driver without its compiler. Thread-local objects of the
// thread that ends the process are destroyed before all static ones.
struct CallAtEnd {
  void (*f)();
  ~CallAtEnd() {
    if (is_main_thread()) f();
  }
};

}  // namespace

void at_exit(void (*f)()) {
  static void (*const first)() = f;
  if (f != first) internal_error("at_exit() takes one function");
  static const bool registered = std::atexit(f) == 0;
  if (!registered) throw Error(ErrorKind::out_of_memory, "no memory to note what is done when the process ends");
  thread_local const CallAtEnd at_end{f};
  (void)at_end;
}

void around_forks(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  if (pthread_atfork(before, in_parent, in_child) != 0)
    throw Error(ErrorKind::out_of_memory, "no memory to note what is done around forks");
}
#endif

namespace {

std::atomic<std::size_t (*)(char*, std::size_t, const void*)> fault_text = nullptr;

// Calls only what is allowed in a signal handler. Returns whether there was something to say.
bool write_fault(const void* address) {
  const auto describe = fault_text.load();
  if (!describe) return false;
  char text[512];
  const std::size_t n = describe(text, sizeof text, address);
#ifdef _WIN32
  DWORD written = 0;
  if (n) WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, DWORD(n), &written, nullptr);
#else
  if (n && write(2, text, n) < 0) return true;  // there is nobody to tell
#endif
  return n != 0;
}

#ifdef _WIN32
LONG CALLBACK on_fault(EXCEPTION_POINTERS* what) {
  const EXCEPTION_RECORD& record = *what->ExceptionRecord;
  if (record.ExceptionCode == EXCEPTION_ACCESS_VIOLATION)
    write_fault(reinterpret_cast<const void*>(record.ExceptionInformation[1]));
  return EXCEPTION_CONTINUE_SEARCH;
}
#else
constexpr int kFaults[] = {SIGSEGV, SIGBUS};
struct sigaction handled_before[2];

// Faults of others belong to the handler that was there before: some runtimes meet them all the time. After one that
// was described, or where there was no handler, the instruction runs again after the return, and meets what was there
// before. A signal that a program has sent does not come again by itself.
void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool is_sent = info->si_code <= 0;
  const bool is_ours = !is_sent && write_fault(info->si_addr);
  const struct sigaction& before = handled_before[signal == kFaults[0] ? 0 : 1];
  const bool takes_more = before.sa_flags & SA_SIGINFO;
  if (is_ours || (!takes_more && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN))) {
    sigaction(signal, &before, nullptr);
    if (is_sent) raise(signal);
  } else if (takes_more) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
  errno = saved;
}
#endif

}  // namespace

void describe_faults(std::size_t (*describe)(char* text, std::size_t room, const void* address)) {
  if (fault_text.exchange(describe)) return;
#ifdef _WIN32
  AddVectoredExceptionHandler(1, on_fault);
#else
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;  // on the thread's other stack where it has one: its own may be full
  sigemptyset(&action.sa_mask);
  for (int k = 0; k < 2; ++k) sigaction(kFaults[k], &action, &handled_before[k]);
#endif
}

std::optional<std::vector<std::byte>> read_all(
    const std::function<std::optional<std::size_t>(std::span<std::byte>)>& read, std::uint64_t limit) {
  std::vector<std::byte> content;
  std::byte chunk[16384];
  for (;;) {
    const auto n = read(chunk);
    if (!n || *n > limit - content.size()) return std::nullopt;
    if (*n == 0) return content;
    content.insert(content.end(), chunk, chunk + *n);
  }
}

std::optional<std::vector<std::byte>> read_file(const fs::path& path, std::uint64_t limit, std::string* why) {
  std::string reason;
  if (!why) why = &reason;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    *why = error ? error.message() : "there is no such file";
    return std::nullopt;
  }
  if (!fs::is_regular_file(status)) {
    *why = fs::is_directory(status) ? "it is a folder" : "it is no regular file";
    return std::nullopt;
  }
  const auto last_error = [] { return std::error_code(errno, std::generic_category()).message(); };
  errno = 0;
  const File file = open(path, false);
  if (!file) {
    *why = last_error();
    return std::nullopt;
  }
  // The opened file is read to its end: its name may belong to another file meanwhile.
  *why = fmt::format("it has more than {} bytes", limit);
  return read_all(
      [&](std::span<std::byte> chunk) -> std::optional<std::size_t> {
        const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), file.get());
        // Bytes that were read before the failure are useless.
        if (!std::ferror(file.get())) return n;
        *why = last_error();
        return std::nullopt;
      },
      limit);
}

bool write_file(const fs::path& path, std::span<const std::byte> content, std::string* why) {
  const auto fail = [&](const std::error_code& error) {
    if (why) *why = error.message();
    return false;
  };
  const auto last_error = [] { return std::error_code(errno ? errno : EIO, std::generic_category()); };
  std::error_code error;
  const fs::path folder = path.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    fs::create_directories(folder, error);
    if (error) return fail(error);
  }
  const fs::path temporary = temporary_beside(path);
  File file = open(temporary, true);
  if (!file) return fail(last_error());
  if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size()) error = last_error();
  // Only closing the file reports a full disk.
  if (std::fclose(file.release()) != 0 && !error) error = last_error();
  if (!error) fs::rename(temporary, path, error);
  if (!error) return true;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return fail(error);
}

#ifdef _WIN32
OwnFile read_own_file(const fs::path& path) {
  OwnFile result;
  std::error_code error;
  std::string why;
  result.content = read_file(path, ~0ull, &why);
  if (!result.content && fs::exists(path, error)) result.fault = why;
  return result;
}

bool write_own_file(const fs::path& path, std::span<const std::byte> content, std::string* why) {
  return write_file(path, content, why);
}
#else
namespace {

std::string error_text(int number) { return std::error_code(number, std::generic_category()).message(); }

// Why something open is not the user's own, or is what others may write to; empty if all is well. `it` stands for it.
std::string not_own(int descriptor, bool folder, const char* it) {
  struct stat found {};
  if (fstat(descriptor, &found) != 0) return error_text(errno);
  if (folder ? !S_ISDIR(found.st_mode) : !S_ISREG(found.st_mode))
    return fmt::format("{} is no {}", it, folder ? "folder" : "regular file");
  if (found.st_uid != geteuid()) return fmt::format("{} belongs to another user", it);
  if (found.st_mode & (S_IWGRP | S_IWOTH)) return fmt::format("others may write to {}", it);
  return {};
}

// Opens a file's folder if it may be trusted; otherwise `fault` says why not, and is empty if there is none.
int open_own_folder(const fs::path& folder, std::string& fault) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor >= 0)
    fault = not_own(descriptor, true, "its folder");
  else if (errno == ELOOP || errno == ENOTDIR)
    fault = "its folder is a link, or no folder";
  else if (errno != ENOENT)
    fault = error_text(errno);
  return descriptor;
}

}  // namespace

OwnFile read_own_file(const fs::path& path) {
  OwnFile result;
  const FileDescriptor folder(open_own_folder(path.parent_path(), result.folder_fault));
  if (folder.is_empty() || !result.folder_fault.empty()) return result;
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const FileDescriptor file(
      openat(folder.get(), path.filename().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.is_empty()) {
    if (errno != ENOENT) result.fault = errno == ELOOP ? "it is a link" : error_text(errno);
    return result;
  }
  result.fault = not_own(file.get(), false, "it");
  if (!result.fault.empty()) return result;
  result.content = read_all([&](std::span<std::byte> chunk) -> std::optional<std::size_t> {
    ssize_t n;
    do n = read(file.get(), chunk.data(), chunk.size());
    while (n < 0 && errno == EINTR);
    if (n >= 0) return std::size_t(n);
    result.fault = error_text(errno);
    return std::nullopt;
  });
  return result;
}

bool write_own_file(const fs::path& path, std::span<const std::byte> content, std::string* why) {
  const auto fail = [&](const std::string& text) {
    if (why) *why = text;
    return false;
  };
  std::error_code error;
  const fs::path name = path.parent_path();
  if (!fs::exists(fs::symlink_status(name, error))) {
    if (name.has_parent_path()) fs::create_directories(name.parent_path(), error);
    if (mkdir(name.c_str(), 0700) != 0 && errno != EEXIST) return fail(error ? error.message() : error_text(errno));
  }
  std::string fault;
  const FileDescriptor folder(open_own_folder(name, fault));
  if (folder.is_empty() || !fault.empty()) return fail(fault.empty() ? error_text(errno) : fault);
  const fs::path temporary = temporary_beside(path).filename();
  int failed = 0;
  {
    const FileDescriptor file(
        openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.is_empty()) return fail(error_text(errno));
    while (!content.empty() && !failed) {
      const ssize_t n = write(file.get(), content.data(), content.size());
      if (n >= 0)
        content = content.subspan(std::size_t(n));
      else if (errno != EINTR)
        failed = errno;
    }
  }
  if (!failed && renameat(folder.get(), temporary.c_str(), folder.get(), path.filename().c_str()) != 0) failed = errno;
  if (!failed) return true;
  unlinkat(folder.get(), temporary.c_str(), 0);
  return fail(error_text(failed));
}
#endif

bool remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  return !error;
}

std::vector<FileInfo> list_files(const fs::path& folder) {
  std::vector<FileInfo> result;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    // A file may vanish between two of these calls: other processes share the folder.
    std::error_code gone;
    if (!it->is_regular_file(gone) || gone) continue;
    const std::uint64_t bytes = it->file_size(gone);
    if (gone) continue;
    const auto time = it->last_write_time(gone);
    if (gone) continue;
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(now - time).count();
    result.push_back({it->path(), bytes, age, static_cast<std::int64_t>(time.time_since_epoch().count())});
  }
  return result;
}

void touch_file(const fs::path& path, std::int64_t seconds) {
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  const auto time = fs::last_write_time(path, error);
  if (error || now - time < std::chrono::seconds(seconds)) return;
  fs::last_write_time(path, now, error);
}

#ifdef __linux__
namespace {
std::uint64_t whole_large_pages(std::uint64_t bytes) {
  return (bytes + kLargePageBytes - 1) / kLargePageBytes * kLargePageBytes;
}
}  // namespace

std::byte* map_large_pages(std::uint64_t bytes) {
  if (bytes == 0 || bytes > std::uint64_t(-1) / 4) return nullptr;
  const std::uint64_t size = whole_large_pages(bytes);
  // Mappings may begin at any page, so one large page more is mapped, and the parts around the aligned one are given
  // back.
  void* const mapped =
      mmap(nullptr, size + kLargePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  std::byte* const first = static_cast<std::byte*>(mapped);
  const std::uint64_t before =
      (kLargePageBytes - reinterpret_cast<std::uintptr_t>(first) % kLargePageBytes) % kLargePageBytes;
  std::byte* const memory = first + before;
  if (before) munmap(first, before);
  munmap(memory + size, kLargePageBytes - before);
  (void)madvise(memory, size, MADV_HUGEPAGE);  // only a hint: small pages will do
  return memory;
}

void unmap_large_pages(std::byte* memory, std::uint64_t bytes) {
  if (memory) munmap(memory, whole_large_pages(bytes));
}
#else
std::byte* map_large_pages(std::uint64_t) { return nullptr; }
void unmap_large_pages(std::byte*, std::uint64_t) {}
#endif

void close_descriptor(int number) {
#ifdef _WIN32
  _close(number);
#else
  close(number);
#endif
}

int duplicate_descriptor(int number) {
#ifdef _WIN32
  return _dup(number);
#else
  return fcntl(number, F_DUPFD_CLOEXEC, 0);
#endif
}

}  // namespace weft::platform
