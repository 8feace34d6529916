// What machine code made at run time needs of the platform: calling rules, executable memory.
#include <cerrno>
#include <system_error>

#include "platform.h"
#include "platform_windows.h"

#ifdef __APPLE__
#include <libkern/OSCacheControl.h>
#endif
#ifndef _WIN32
#include <pthread.h>
#include <sys/mman.h>
#endif

namespace weft::platform {

CallRules call_rules() {
  CallRules rules;
#ifdef _WIN32
  rules.windows = true;
#endif
#if defined(_WIN32) || defined(__APPLE__)
  rules.reserves_x18 = true;
#endif
  return rules;
}

namespace {

#ifdef _WIN32
std::byte* map_writable(std::size_t bytes, std::string& why) {
  void* const memory = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (!memory) why = std::error_code(int(GetLastError()), std::system_category()).message();
  return static_cast<std::byte*>(memory);
}

bool make_executable(std::byte* memory, std::size_t bytes, std::string& why) {
  DWORD before = 0;
  if (VirtualProtect(memory, bytes, PAGE_EXECUTE_READ, &before)) {
    FlushInstructionCache(GetCurrentProcess(), memory, bytes);
    return true;
  }
  why = std::error_code(int(GetLastError()), std::system_category()).message();
  return false;
}
#elif defined(__APPLE__) && defined(__aarch64__)
// Such pages are writable to threads that ask for it, and executable to all others.
std::byte* map_writable(std::size_t bytes, std::string& why) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_JIT, -1, 0);
  if (memory != MAP_FAILED) {
    pthread_jit_write_protect_np(0);
    return static_cast<std::byte*>(memory);
  }
  why = std::error_code(errno, std::generic_category()).message();
  return nullptr;
}

bool make_executable(std::byte* memory, std::size_t bytes, std::string&) {
  pthread_jit_write_protect_np(1);
  sys_icache_invalidate(memory, bytes);
  return true;
}
#else
std::byte* map_writable(std::size_t bytes, std::string& why) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) return static_cast<std::byte*>(memory);
  why = std::error_code(errno, std::generic_category()).message();
  return nullptr;
}

bool make_executable(std::byte* memory, std::size_t bytes, std::string& why) {
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) == 0) {
    // Instructions that were written as data may still be missing where a processor fetches instructions.
    __builtin___clear_cache(reinterpret_cast<char*>(memory), reinterpret_cast<char*>(memory + bytes));
    return true;
  }
  why = std::error_code(errno, std::generic_category()).message();
  return false;
}
#endif

}  // namespace

std::byte* map_code(std::size_t bytes, const std::function<void(std::byte*)>& write, std::string* why) {
  std::string reason;
  if (!why) why = &reason;
  std::byte* const memory = map_writable(bytes, *why);
  if (!memory) return nullptr;
  try {
    write(memory);
  } catch (...) {
    make_executable(memory, bytes, reason);  // ends this thread's right to write
    unmap_code(memory, bytes);
    throw;
  }
  if (make_executable(memory, bytes, *why)) return memory;
  unmap_code(memory, bytes);
  return nullptr;
}

bool allows_code(std::string* why) {
  std::string reason;
  std::byte* const memory = map_code(
      1, [](std::byte*) {}, &reason);
  if (!memory && why) *why = "the system runs no code that a process has written: " + reason;
  if (memory) unmap_code(memory, 1);
  return memory != nullptr;
}

void unmap_code(std::byte* memory, std::size_t bytes) {
#ifdef _WIN32
  (void)bytes;
  if (memory) VirtualFree(memory, 0, MEM_RELEASE);
#else
  if (memory) munmap(memory, bytes);
#endif
}

}  // namespace weft::platform
