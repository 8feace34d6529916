// The processors: what they are, how many the process has, and their mode for floats.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "platform.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(_M_X64)
#include <intrin.h>
#endif
#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif
#ifdef __linux__
#include <sched.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

namespace weft::platform {

namespace fs = std::filesystem;

std::string processor_name() {
#if defined(__x86_64__) || defined(__i386__)
  // Three answers of 16 characters each.
  constexpr unsigned kFirst = 0x80000002, kLast = 0x80000004;
  if (__get_cpuid_max(0x80000000, nullptr) < kLast) return {};
  char text[48];
  for (unsigned k = kFirst; k <= kLast; ++k) {
    unsigned words[4];
    __cpuid(k, words[0], words[1], words[2], words[3]);
    std::memcpy(text + (k - kFirst) * sizeof words, words, sizeof words);
  }
  std::string name(text, std::find(text, text + sizeof text, '\0'));
  name.erase(name.find_last_not_of(' ') + 1);
  name.erase(0, name.find_first_not_of(' '));
  return name;
#else
  return {};
#endif
}

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

namespace {

int allowed_processors() {
#ifdef __linux__
  // The system refuses a set with room for fewer processors than it may have.
  for (std::size_t sets = 1; sets <= 128; sets *= 2) {
    std::vector<cpu_set_t> allowed(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, allowed.data()) == 0) return CPU_COUNT_S(bytes, allowed.data());
    if (errno != EINVAL) break;
  }
#endif
  return int(std::thread::hardware_concurrency());
}

}  // namespace

int processors() {
  const int allowed = std::max(1, allowed_processors());
  const auto quota = processor_quota();
  return quota && *quota < allowed ? int(std::ceil(*quota)) : allowed;
}

// ---- The mode for floats

#if defined(__SSE__) || defined(_M_X64)
// MXCSR has the flags too.
FloatMode::State FloatMode::read() { return {_mm_getcsr(), 0}; }
void FloatMode::write(const State& state) { _mm_setcsr(static_cast<unsigned>(state.mode)); }
constexpr std::uint64_t kUsualMode = 0x1f80;  // all exceptions are masked
#elif defined(__aarch64__)
FloatMode::State FloatMode::read() {
  State state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state.mode));
  __asm__ volatile("mrs %0, fpsr" : "=r"(state.flags));
  return state;
}
void FloatMode::write(const State& state) {
  __asm__ volatile("msr fpcr, %0" : : "r"(state.mode));
  __asm__ volatile("msr fpsr, %0" : : "r"(state.flags));
}
constexpr std::uint64_t kUsualMode = 0;
#else
FloatMode::State FloatMode::read() { return {}; }
void FloatMode::write(const State&) {}
constexpr std::uint64_t kUsualMode = 0;
#endif

FloatMode::FloatMode() : before_(read()) {
  if (before_.mode != kUsualMode) write({kUsualMode, before_.flags});
}

FloatMode::~FloatMode() {
  if (read() != before_) write(before_);
}

void pause() {
#if defined(__SSE__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace weft::platform
