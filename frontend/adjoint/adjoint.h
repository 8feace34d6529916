// The adjoint of a kernel: a kernel that carries gradients from what the kernel wrote back to what it read.
#pragma once
#include <cstdint>
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// What a launch decides about an adjoint's code.
struct AdjointOptions {
  std::uint64_t with_gradient = 0;  ///< by parameter: arrays that have gradient storage
  std::uint32_t slots = 8;  ///< saved states for each loop that must be run again; the result is the same for all
  /// By parameter: the first one of those that it overlaps, or that overlap these; itself where there is none. What is
  /// written to one array may be read from the others, and they have gradients in common. Empty: no arguments overlap.
  std::vector<std::uint32_t> groups = {};
  bool deterministic = false;  ///< what many threads add to one element is added exactly: see ExactSum
  bool operator==(const AdjointOptions&) const = default;
};

/// A parameter that an adjoint has behind those of its kernel.
struct AdjointParam {
  enum class Kind : std::uint8_t {
    gradient,      ///< array: the gradient of parameter `of`, laid out as that is
    after,         ///< array: parameter `of` as it was after the launch
    owners,        ///< contiguous array of u32, zeros: a word for each `unit` bytes from the start of parameter `of`;
                   ///< one for all parameters that are the same array
    scratch,       ///< contiguous array of u32; see Adjoint::scratch_bytes
    first_thread,  ///< u32: the number of the first thread of this dispatch
    sums,          ///< contiguous array of u64, zeros: see Adjoint::sums
    log,           ///< contiguous array of u32: log_bytes for each lane and entry
    lanes,         ///< u32, a multiple of 8: threads for which the scratch has room; a dispatch has no more
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

/// The gradient of an array, gathered in numbers so long that no addition is rounded: the order of the threads cannot
/// be seen. For each scalar (from the start of the parameter, in steps of its size) there are words() of 64 bits. Word
/// k counts, with a sign, units of 2^(32 k) times the smallest positive number of the type; the last one has bits for
/// what is no finite number (kNan, kPlusInfinity, kMinusInfinity). Kulisch, Computer Arithmetic and Validity, 2013,
/// chapter 8.
struct ExactSum {
  std::uint32_t of = 0;    ///< parameter
  Type type = Type::none;  ///< f32 or f64

  static constexpr std::uint64_t kNan = 1, kPlusInfinity = 2, kMinusInfinity = 4;
  /// Words with units of a sum of this type; one more holds the bits. 2^30 additions overflow none.
  static constexpr std::uint32_t units(Type type) { return type == Type::f64 ? 66 : 9; }
  static constexpr std::uint32_t words(Type type) { return units(type) + 1; }
  bool operator==(const ExactSum&) const = default;
};

/// A kernel's adjoint and how it is launched: over the threads of the kernel's launch, in dispatches of at most
/// `lanes` threads where it has scratch, with the arguments of that launch and then those of `extra`.
struct Adjoint {
  Module module;
  std::vector<AdjointParam> extra;  ///< module.params from that number on that the kernel's end with
  /// By parameter: arrays whose elements it, or `counter`, needs as they were before the launch.
  std::uint64_t reads = 0;
  /// Of these: arrays that it changes while it runs and then puts back, or that `counter` changes.
  std::uint64_t writes = 0;
  /// When the adjoint has run for all threads, gradients of scalars whose bits the launch has changed are to be set to
  /// zero: what was there before has no part in what came after.
  std::vector<Extremum> extrema;
  /// When the adjoint has run for all threads, these sums are to be added to the gradients.
  std::vector<ExactSum> sums;
  std::uint32_t scratch_bytes = 0;  ///< of the scratch, for each lane; at least 4 bytes are given
  std::uint32_t log_bytes = 0;      ///< for each lane and entry of the undo log; 0: there is no log
  std::uint32_t log_entries = 0;    ///< that a thread needs at most; kNone: not known before `counter` has run
  /// Where they are not known, or may be far fewer. Counts the entries: launched as the kernel is, on copies of the
  /// arrays in `writes`. It has the parameters of the adjoint, writes no gradient, and leaves the largest count of a
  /// thread in the first word of its scratch, which must be 0 before.
  std::vector<Module> counter;  ///< one or none
};

/// By parameter: arrays of whose elements the kernel reads or writes real numbers.
std::uint64_t real_arrays(const Module& kernel);

/// Builds the adjoint of a kernel, for the gradients that there are.
/// \param kernel  as Kernel traces it with Variant::adjoint
/// Errors: Error(not_differentiable) with the kernel, the line and what has no derivative; Error(unsupported) for more
/// than 65,536 slots.
/// Cost: some milliseconds for a kernel of thousands of operations; the result has about twice the operations outside
/// loops, and those of a loop at depth d some 2 (d + 1) times.
Adjoint adjoint(const Module& kernel, const AdjointOptions& options);

}  // namespace weft::ir
