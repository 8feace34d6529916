// Atomic access to words of arrays.
#pragma once
#include <atomic>

namespace weft::backend {

#ifdef __cpp_lib_atomic_ref
template <class Word>
using AtomicWord = std::atomic_ref<Word>;
#else
/// The part of std::atomic_ref that weft uses, for libraries that lack it (libc++ before version 19). Relaxed.
template <class Word>
class AtomicWord {
 public:
  explicit AtomicWord(Word& word) : word_(&word) {}
  Word load(std::memory_order) const { return __atomic_load_n(word_, __ATOMIC_RELAXED); }
  bool compare_exchange_weak(Word& expected, Word desired, std::memory_order) const {
    return __atomic_compare_exchange_n(word_, &expected, desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }

 private:
  Word* const word_;
};
#endif

}  // namespace weft::backend
