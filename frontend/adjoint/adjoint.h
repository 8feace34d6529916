// The adjoint of a kernel: another kernel, which carries gradients from the elements that the first one wrote back to
// those that it read.
#pragma once
#include <cstdint>
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// The decisions of a launch about an adjoint's code.
struct AdjointOptions {
  std::uint64_t with_gradient = 0;  ///< by parameter: arrays that have gradient storage
  std::uint32_t slots = 8;  ///< saved states for each loop that must be run again; gradients do not depend on it
  /// By parameter: the number of the first parameter in its group. A group holds arrays that overlap, directly or
  /// through others of the group, or one array that overlaps none. An element written through one of them may be read
  /// through another, and they have gradients in common. Empty: no arguments overlap.
  std::vector<std::uint32_t> groups = {};
  bool deterministic = false;  ///< additions of many threads to one element are exact: see ExactSum
  bool operator==(const AdjointOptions&) const = default;
};

/// A parameter that an adjoint has after those of its kernel.
struct AdjointParam {
  enum class Kind : std::uint8_t {
    gradient,      ///< array: the gradient of parameter `of`, in the same layout
    after,         ///< array: parameter `of` as it was after the launch
    owners,        ///< contiguous array of u32, zeros: a word for each `unit` bytes from the start of parameter `of`;
                   ///< one for all parameters that are the same array
    scratch,       ///< contiguous array of u32; see Adjoint::scratch_bytes
    first_thread,  ///< u32: the number of the first thread of this dispatch
    sums,          ///< contiguous array of u64, zeros: see Adjoint::sums
    log,           ///< contiguous array of u32: log_bytes for each lane and entry
    lanes,         ///< u32, a multiple of 8: the threads for which the scratch has room; a dispatch has no more
  };
  Kind kind = Kind::gradient;
  std::uint32_t of = 0;
  std::uint32_t unit = 4;  ///< 2 or 4
};

/// An array in which atomic_min or atomic_max replaces elements.
struct Extremum {
  std::uint32_t of = 0;     ///< parameter
  std::uint32_t bytes = 0;  ///< of a scalar
  bool operator==(const Extremum&) const = default;
};

/// The gradient of an array, gathered in numbers so long that no addition is rounded. The order in which threads add
/// therefore does not matter. Each scalar (from the start of the parameter, in steps of its size) has words() of 64
/// bits. Word k counts, with a sign, units of 2^(32 k) times the smallest positive number of the type; the last word
/// has bits for summands that are not finite (kNan, kPlusInfinity, kMinusInfinity).
/// Source: Kulisch, Computer Arithmetic and Validity, 2013, chapter 8.
struct ExactSum {
  std::uint32_t of = 0;    ///< parameter
  Type type = Type::none;  ///< f32 or f64

  static constexpr std::uint64_t kNan = 1, kPlusInfinity = 2, kMinusInfinity = 4;
  /// The number of words that count units in a sum of this type; 2^30 additions overflow none of them. One more word
  /// holds the bits.
  static constexpr std::uint32_t units(Type type) { return type == Type::f64 ? 66 : 9; }
  static constexpr std::uint32_t words(Type type) { return units(type) + 1; }
  bool operator==(const ExactSum&) const = default;
};

/// A kernel's adjoint, and how to launch it. It is launched over the threads of the kernel's launch, with the arguments
/// of that launch and then those of `extra`; if it has scratch, in dispatches of at most `lanes` threads.
struct Adjoint {
  Module module;
  std::vector<AdjointParam> extra;  ///< describes the last of module.params, which follow those of the kernel
  /// As bits, by parameter: arrays whose elements the adjoint, or `counter`, needs as they were before the launch.
  std::uint64_t reads = 0;
  /// Those of `reads` that the adjoint changes while it runs and then puts back, or that `counter` changes.
  std::uint64_t writes = 0;
  /// Arrays with extrema. When the adjoint has run for all threads, the gradients of scalars whose bits the launch has
  /// changed are to be set to zero, because the value before the launch has no part in the one after it.
  std::vector<Extremum> extrema;
  /// Sums that are to be added to the gradients when the adjoint has run for all threads.
  std::vector<ExactSum> sums;
  std::uint32_t scratch_bytes = 0;  ///< of scratch, for each lane; the scratch has at least 4 bytes
  std::uint32_t log_bytes = 0;      ///< of one entry in a lane's undo log; 0: there is no log
  std::uint32_t log_entries = 0;    ///< the most that a thread needs; kNone: unknown before `counter` has run
  /// The kernel that counts the entries, if `log_entries` is unknown or may be far more than threads need. It is
  /// launched as the kernel is, on copies of the arrays in `writes`. It has the parameters of the adjoint, writes no
  /// gradient, and leaves the largest count of a thread in the first word of its scratch, which must be 0 before.
  std::vector<Module> counter;  ///< one or none
};

/// The arrays, as bits by parameter, in whose elements the kernel reads or writes real numbers.
std::uint64_t real_arrays(const Module& kernel);

/// Builds the adjoint of a kernel, for arrays that have gradient storage.
/// \param kernel  as Kernel traces it with Variant::adjoint
/// Errors: Error(not_differentiable) with the kernel, the line and the operation that has no derivative;
/// Error(unsupported) for more than 65,536 slots.
/// Cost: some milliseconds for a kernel of thousands of operations; the result has about twice the operations outside
/// loops, and those of a loop at depth d some 2 (d + 1) times.
Adjoint adjoint(const Module& kernel, const AdjointOptions& options);

}  // namespace weft::ir
