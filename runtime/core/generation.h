// The number of the data that a device holds of a structure. Internal to the runtime.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "../array.h"
#include "../detail/given_structures.h"

namespace weft::detail {

/// The state of a structure (a mesh, a hierarchy, a hash grid) on the device, shared with graphs that use it and with
/// the memory by which its data are recognised (Storage::structure). Thread-safe; threads that change one structure
/// order their changes themselves.
class Generation {
 public:
  /// The number when the device holds no data to query: nothing was built, a change failed, or the mesh's indices
  /// changed.
  static constexpr std::uint64_t kNone = 0;

  /// \param name, of  for messages: "a hash grid", "points"
  Generation(const char* name, const char* of) : name(name), of(of) {}
  /// The number of the data that the device holds. Kernels would misread data of another number.
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  void hold(std::uint64_t number) { held_.store(number, std::memory_order_relaxed); }

  const char *const name, *const of;

 private:
  std::atomic<std::uint64_t> held_ = kNone;
};

/// Computes the number of data from the sizes and the memory that kernels are given by value. It is never
/// Generation::kNone.
class GenerationNumber {
 public:
  /// Makes the number a polynomial of the words, modulo 2^64. Differences of sizes and addresses are too small to
  /// cancel in it.
  GenerationNumber& add(std::uint64_t word) {
    number_ = number_ * 0x9e3779b97f4a7c15u + word + 1;
    return *this;
  }
  /// Adds memory, shape and strides; of a null array, which data may have, only a zero.
  GenerationNumber& add(const ArrayBase& a);
  std::uint64_t value() const { return number_ == Generation::kNone ? 1 : number_; }

 private:
  std::uint64_t number_ = 0;
};

}  // namespace weft::detail
