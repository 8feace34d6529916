// What machine code made at run time needs of the platform: the processor's features, calling rules, executable memory.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "platform.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(_M_X64)
#include <intrin.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif
#ifdef __APPLE__
#include <libkern/OSCacheControl.h>
#include <sys/sysctl.h>
#endif
#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <pthread.h>
#include <sys/mman.h>
#endif

namespace weft::platform {

#if defined(__x86_64__) || defined(_M_X64)
namespace {

using Registers = std::array<std::uint32_t, 4>;  // eax, ebx, ecx, edx

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Registers r{};
#ifdef __x86_64__
  __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
#else
  __cpuidex(reinterpret_cast<int*>(r.data()), int(leaf), int(subleaf));
#endif
  return r;
}

// The register states that the system saves. May be asked only if the processor says so.
std::uint64_t saved_states() {
#ifdef __x86_64__
  std::uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t(high) << 32 | low;
#else
  return _xgetbv(0);
#endif
}

}  // namespace

std::string processor_id() {
  constexpr std::uint32_t kExtended = 0x80000000;
  // Without those registers in which processors of one machine differ, such as their number.
  struct Leaf {
    std::uint32_t leaf, subleaf;
    std::array<bool, 4> taken;
  };
  constexpr Leaf kLeaves[] = {
      {0, 0, {false, true, true, true}},                // maker
      {1, 0, {true, false, true, true}},                // model, features
      {7, 0, {false, true, true, true}},                // features
      {7, 1, {true, true, true, true}},                 //
      {0xd, 1, {true, false, false, false}},            //
      {0x14, 0, {false, true, false, false}},           //
      {0x19, 0, {false, true, false, false}},           //
      {0x24, 0, {false, true, false, false}},           //
      {kExtended + 1, 0, {false, false, true, true}},   //
      {kExtended + 8, 0, {false, true, false, false}},  //
  };
  const std::uint32_t most = cpuid(0, 0)[0], most_extended = cpuid(kExtended, 0)[0];
  std::string result = "x86-64";
  bool saves = false;
  for (const Leaf& l : kLeaves) {
    if (l.leaf > (l.leaf < kExtended ? most : most_extended)) continue;
    const Registers r = cpuid(l.leaf, l.subleaf);
    for (std::size_t k = 0; k < r.size(); ++k)
      if (l.taken[k]) result += fmt::format(":{:x}", r[k]);
    if (l.leaf == 1) saves = r[2] >> 27 & 1;
  }
  return fmt::format("{}:{:x}", result, saves ? saved_states() : 0);
}
#elif defined(__aarch64__) && defined(__linux__)
std::string processor_id() {
  // All processors are taken, because those of one machine may differ in their model.
  std::string models;
  for (int k = 0;; ++k) {
    const auto model =
        read_file(fmt::format("/sys/devices/system/cpu/cpu{}/regs/identification/midr_el1", k), 64, nullptr);
    if (!model) break;
    const std::string text(reinterpret_cast<const char*>(model->data()), model->size());
    if (models.find(text) == std::string::npos) models += text;
  }
  if (models.empty()) return {};
  return fmt::format("aarch64:{:x}:{:x}:{}", getauxval(AT_HWCAP), getauxval(AT_HWCAP2), models);
}
#elif defined(__aarch64__) && defined(__APPLE__)
std::string processor_id() {
  char name[128] = {};
  std::size_t size = sizeof name - 1;
  if (sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0) != 0) return {};
  return fmt::format("aarch64:{}", name);
}
#else
std::string processor_id() { return {}; }
#endif

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

void unmap_code(std::byte* memory, std::size_t bytes) {
#ifdef _WIN32
  (void)bytes;
  if (memory) VirtualFree(memory, 0, MEM_RELEASE);
#else
  if (memory) munmap(memory, bytes);
#endif
}

}  // namespace weft::platform
