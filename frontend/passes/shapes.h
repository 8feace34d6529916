// How the values of a kernel differ among threads with neighbouring numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// The shape of a value among the lanes of a vector: threads whose numbers follow each other.
///
/// A shape speaks of threads that come to the same place together: they run, and are in the same iteration of every
/// loop around it. So the counter of a loop is uniform inside the loop, however many iterations each thread makes, and
/// in a region that some lanes of a vector do not run, a shape says nothing about those lanes.
struct Shape {
  enum class Kind : std::uint8_t {
    uniform,  ///< the same in all lanes
    affine,   ///< an integer: lane k has what lane 0 has or would have, plus k times `step`, modulo the type's range
    varying,
  };
  Kind kind = Kind::uniform;
  std::int64_t step = 0;  ///< of an affine value: not 0, and within the type's range if that had a sign
  bool is_uniform() const { return kind == Kind::uniform; }
  bool operator==(const Shape&) const = default;
};

/// The shapes of all values of a kernel in normal form.
///
/// **One lane is enough.** A value that is not varying is known by one number for each vector, the base: the value of
/// all lanes, or of lane 0. The base of a pure operation is the operation on the bases of its operands: these are not
/// varying either, except those of `row` and `column`, whose bases the place of the vector gives. This holds whether
/// lane 0 runs or not; the base of an affine value is then no thread's value.
///
/// **Where lanes part.** After a divergent branch or loop all of its results are varying. Inside a divergent loop its
/// carried values keep their shapes, because the lanes that run are in the same iteration: a counter needs no vector
/// there, only a copy of its last value in each lane for what reads the result. Regions that no lane runs must not be
/// entered, unless they only compute: bases mean nothing there, so that a load or a loop by them could do anything.
///
/// **Loads.** One load gives all lanes what it finds at a uniform address, whoever writes there, because they would all
/// read at that moment. It must stay where it is. Each thread's private arrays are its own, so that nothing read from
/// them is uniform.
///
/// **Workgroups of one thread** (`lone`). A vector has one lane that runs, so that everything is uniform, private
/// arrays and results of atomics too. Such a kernel becomes scalar code.
///
/// **Wrapping.** Integers wrap between two lanes where their type ends, and steps are counted modulo its range.
/// Conversions to a wider type are affine only where that is excluded (`exact`). For addresses see address_shape().
struct Shapes {
  std::vector<Shape> of;        ///< by instruction; of an if_ or a loop, that of its condition; see `result` for theirs
  std::vector<char> divergent;  ///< by instruction: an if_ or a loop whose condition is not the same in all lanes
  /// By instruction: an affine value that does not wrap between any two threads of a vector, whether they run here or
  /// not. As numbers of its type, lane k's is the base plus k times the step.
  std::vector<char> exact;
  /// Vectors lie along the last dimension of the launch: each is in one row, so that tid()'s last coordinate is affine
  /// and the others are uniform in a vector. A row's vectors begin at multiples of `lanes`.
  bool rows = false;
  /// With `rows`: all values that are the row's number in the launch, and all that are tid()'s last coordinate.
  std::vector<Id> row, column;
  /// Vectors lie in workgroups and begin at multiples of `lanes` there; a whole vector is a subgroup. Without `rows`
  /// and `groups`, vectors begin at multiples of `lanes` in the launch.
  bool groups = false;
  /// With `groups`: these have one thread each, which has a vector to itself.
  bool lone = false;
  std::uint32_t lanes = 1;
};

/// Finds the shapes.
/// \param kernel  in normal form, without calls
/// \param lanes   of a vector, a power of two
/// \param by_rows whether vectors may lie in rows. Else threads of several rows share one: better where rows are short
Shapes find_shapes(const Module& kernel, std::uint32_t lanes, bool by_rows = true);

/// The shape of a memory operation's address in bytes, of that in the thread's own array if it is private.
///
/// Affine addresses of lanes that run are as far from each other as the shape says. An index of 32 bits that may wrap
/// (not `exact`) cannot do so between two of them, because only the elements 0 to 2^31 - 2 exist for such indices, and
/// accesses to others are the program's mistake (docs/semantics.md). But it can wrap between a lane that runs and one
/// that does not (`tid() - 3` as u32). Code takes the index of lane 0 as a signed number where the step is positive,
/// and as one beyond the range where it is negative, and goes on from there in 64 bits.
Shape address_shape(const Module& kernel, const Shapes& shapes, Id memory);

}  // namespace weft::ir
