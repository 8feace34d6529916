// Random inputs: their number, their seeds, and how a failure is repeated.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

#include "../../frontend/support/platform.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());
extern "C" void __ubsan_on_report();
#endif

namespace weft::test {

using Random = std::mt19937_64;

/// The number of the present input, for reports when the process ends.
inline std::uint64_t& current_input() {
  static std::uint64_t seed = 0;
  return seed;
}
inline std::string how_to_repeat(std::uint64_t seed) {
  return "WEFT_FUZZ_SEED=" + std::to_string(seed) + " WEFT_FUZZ_INPUTS=1";
}

inline void tell_input() { std::fprintf(stderr, "%s\n", how_to_repeat(current_input()).c_str()); }

/// Makes the end of the process report its input, too.
inline void tell_input_of_crashes() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(tell_input);
#else
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL})
    std::signal(number, [](int caught) {
      tell_input();
      std::signal(caught, SIG_DFL);
      std::raise(caught);
    });
#endif
}

/// Calls f(random) for each input until one fails: `few` of them, or WEFT_FUZZ_INPUTS; the first is number 1, or
/// WEFT_FUZZ_SEED. An input follows from its number alone.
template <class F>
void for_each_input(std::uint64_t few, F f) {
  tell_input_of_crashes();
  const std::uint64_t first = platform::environment_number("WEFT_FUZZ_SEED", 1);
  const std::uint64_t count = platform::environment_number("WEFT_FUZZ_INPUTS", few);
  for (std::uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    current_input() = seed;
    Random random(seed);
    try {
      f(random);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "thrown: " << e.what();
    }
    if (testing::Test::HasFailure()) ADD_FAILURE() << how_to_repeat(seed);
  }
}

/// A number from 0 to n - 1.
inline std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }
inline bool one_in(Random& random, std::uint64_t n) { return random() % n == 0; }
template <class T, std::size_t N>
const T& one_of(Random& random, const T (&list)[N]) {
  return list[random() % N];
}

/// Changes some bytes of a text or file: flips, cuts, repeats, exchanges and adds.
template <class Bytes>
void damage(Random& random, Bytes& bytes, int most = 4) {
  using Byte = typename Bytes::value_type;
  for (std::uint64_t k = 1 + below(random, std::uint64_t(most)); k > 0; --k) {
    const std::size_t n = bytes.size();
    const std::size_t at = n ? below(random, n) : 0,
                      length = n ? below(random, std::min<std::size_t>(n - at, 40) + 1) : 0;
    const auto from = bytes.begin() + std::ptrdiff_t(at), to = from + std::ptrdiff_t(length);
    switch (below(random, 7)) {
      case 0:
        if (n) bytes[at] = Byte(std::uint8_t(bytes[at]) ^ 1u << below(random, 8));
        break;
      case 1:
        if (n) bytes[at] = Byte(random());
        break;
      case 2: bytes.erase(from, to); break;
      case 3: bytes.resize(at); break;
      case 4: {
        const Bytes copy(from, to);
        bytes.insert(bytes.begin() + std::ptrdiff_t(below(random, n + 1)), copy.begin(), copy.end());
        break;
      }
      case 5: std::fill(from, to, Byte(random())); break;
      default: bytes.insert(from, std::size_t(1 + below(random, 8)), Byte(random())); break;
    }
  }
}

}  // namespace weft::test

#if defined(__SANITIZE_ADDRESS__)
// UndefinedBehaviorSanitizer does not end the process as AddressSanitizer does; it calls this function before.
extern "C" __attribute__((used)) inline void __ubsan_on_report() { weft::test::tell_input(); }
#endif
