// Which data of a structure the device holds, as a number. Internal to the runtime.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "../array.h"

namespace weft::detail {

/// The state of a structure (a mesh, a hierarchy, a hash grid) on the device, shared with graphs that use it and with
/// the memory by which its data are known (Storage::structure). Thread-safe; those who change one structure from
/// several threads order that themselves.
class Generation {
 public:
  /// The device holds nothing that may be asked: nothing was built, a change failed, or indices of the mesh changed.
  static constexpr std::uint64_t kNone = 0;

  /// \param name, of  for messages: "a hash grid", "points"
  Generation(const char* name, const char* of) : name(name), of(of) {}
  /// The number of the data that the device holds: data of another number would be read as what they are not.
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  void hold(std::uint64_t number) { held_.store(number, std::memory_order_relaxed); }

  const char *const name, *const of;

 private:
  std::atomic<std::uint64_t> held_ = kNone;
};

/// The number of data: of the sizes and the memory that kernels are given by value. It is never Generation::kNone.
class GenerationNumber {
 public:
  /// A polynomial of the words, modulo 2^64: sizes and addresses that differ are too small to cancel in it.
  GenerationNumber& add(std::uint64_t word) {
    number_ = number_ * 0x9e3779b97f4a7c15u + word + 1;
    return *this;
  }
  /// Nothing of a null array, which whoever fills in data may leave there.
  GenerationNumber& add(const ArrayBase& a);
  std::uint64_t value() const { return number_ == Generation::kNone ? 1 : number_; }

 private:
  std::uint64_t number_ = 0;
};

/// Work is given the data of a structure, or builds it as they say.
struct StructureUse {
  std::shared_ptr<Generation> structure;
  std::uint64_t number = 0;
  std::int64_t size = 0;  ///< for messages

  /// Whether the device holds these data.
  bool holds() const { return structure->held() == number; }
  /// "a hash grid of 100 points"
  std::string what() const;
};

/// A launch takes the data of a structure as an argument: noted where a graph or a tape asks for it again.
/// Errors: Error(invalid_argument), of launches that run now, where the device holds other data.
/// Cost: some 30 nanoseconds.
void use_structure(const StructureUse& use);

}  // namespace weft::detail
