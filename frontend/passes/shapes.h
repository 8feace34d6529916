// How the values of a kernel differ among threads with neighbouring numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// The shape of a value among the lanes of a vector: threads whose numbers follow each other.
struct Shape {
  enum class Kind : std::uint8_t {
    launch,     ///< the same in all threads of a launch
    workgroup,  ///< the same in all threads of a workgroup
    vector,     ///< the same in all lanes of a vector
    affine,     ///< lane k has the first lane's value plus k times `step`, modulo the type's range
    varying,
  };
  Kind kind = Kind::launch;
  std::int64_t step = 0;  ///< of an affine value, not 0
  bool is_uniform() const { return kind <= Kind::vector; }
  bool operator==(const Shape&) const = default;
};

/// The shapes of all values of a kernel in normal form.
struct Shapes {
  std::vector<Shape> of;  ///< by instruction; of a load, an if_ or a loop those of its results differ: see `result`
  std::vector<bool> divergent;  ///< by instruction: an if_ or a loop whose condition is not the same in all lanes
  /// Vectors lie along the last dimension of the launch: each is in one row, so that tid()'s last coordinate is affine
  /// and the others are uniform in a vector.
  bool rows = false;
  Id row = kNone, column = kNone;  ///< with `rows`: the values of these; row is the number of the row in the launch
};

/// Finds the shapes.
/// \param kernel  in normal form, without calls
/// \param lanes   of a vector
Shapes find_shapes(const Module& kernel, std::uint32_t lanes);

}  // namespace weft::ir
