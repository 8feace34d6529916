// weft's headers compile after those that define common words as macros.
#include <algorithm>  // the standard library cannot stand these macros either
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <ranges>
#include <string>
#include <unordered_map>

// These macros are defined by windows.h.
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define near
#define far
#define interface struct
#define small char
// X11 defines these; the real headers are used if they are installed.
#if __has_include(<X11/Xlib.h>)
#include <X11/Xlib.h>
#else
#define Bool int
#define Status int
#define True 1
#define False 0
#define None 0L
#define Always 2
#define Success 0
#endif

// clang-format off
#include <weft/weft.h>
// clang-format on

#ifndef Bool
#error "the caller's Bool is gone"
#endif
#undef min
#undef max
#undef None
#undef Bool
#undef Status
#undef Success
#undef Always
#undef True
#undef False
#include <gtest/gtest.h>

namespace {

TEST(Names, of_macros_may_come_before) {
  auto k = weft::kernel("clash", [](weft::Arr<float> x, weft::Float s) {
    using namespace weft;
    Int i = tid();
    Var<bool> big = x[i] > s;
    If (big) {
      x[i] = s;
    }
    Else { x[i] = -s; }
    for (auto j : range(4)) {
      If (x[j] < 0) {
        Break();
      }
    }
  });
  EXPECT_FALSE(k.trace().regions[0].insts.empty());
}

}  // namespace
