// The processor's state for floats, in which kernels run whatever the program around them has set.
#pragma once
#include <cstdint>

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace weft::backend::native {

/// Sets rounding to nearest, subnormals kept and no traps on the calling thread, and restores what was there at its
/// end, with the flags of what has happened.
class FloatMode {
 public:
  FloatMode() : before_(read()) {
    if (before_ != kMode) write(kMode);
  }
  ~FloatMode() {
    if (read() != before_) write(before_);
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

  using Word = std::uint64_t;
#if defined(__SSE__) || defined(_M_X64)
  static constexpr Word kMode = 0x1f80;  ///< MXCSR: all exceptions masked
  static Word read() { return _mm_getcsr(); }
  static void write(Word word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
  static constexpr Word kMode = 0;  ///< FPCR
  static Word read() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void write(Word word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
  static constexpr Word kMode = 0;
  static Word read() { return kMode; }
  static void write(Word) {}
#endif

 private:
  const Word before_;
};

}  // namespace weft::backend::native
