// Places along a space-filling curve, for kernels: bounds of points, cells in them, Morton codes. Internal to the
// runtime.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/library/vector.h"

namespace weft::detail {

/// Bounds of points as six words of memory, initially 0: the least coordinates as complements of integers in the order
/// of floats, and the greatest as such integers. Thus atomic maxima join them.
inline constexpr int kCurveBounds = 6;

/// The bounds that one thread has found, on their way to memory.
class CurveBounds {
 public:
  void add(const Vec3& point);
  /// Joins what the threads of each subgroup have found into words[first] and the five after it. All threads come here.
  void join_into(const Arr<unsigned>& words, int first);

 private:
  UInt words_[kCurveBounds] = {0u, 0u, 0u, 0u, 0u, 0u};
};

/// The grid of 2^bits cells along each axis around all points, from words[first] on.
class CurveGrid {
 public:
  /// \param bits  up to 20
  CurveGrid(const Arr<const unsigned>& words, int first, int bits);
  /// The grid over the cube from -half to half.
  CurveGrid(const Float& half, int bits);
  /// The cell along axis k, from 0 to 2^bits - 1, the same on every device.
  UInt cell(const Vec3& point, int k) const;

 private:
  Float low_[3], scale_[3];
  float cells_;
};

/// Bits 0 to 9 of x with two zeros before each: 00000000000000000000009876543210 -> 0009008007006005004003002001000.
UInt spread(UInt x);

/// Morton code (Morton 1966) of a cell of up to 10 bits, x first: the order in which nested halving visits the cells.
UInt morton_code(const CurveGrid& grid, const Vec3& point);

}  // namespace weft::detail
