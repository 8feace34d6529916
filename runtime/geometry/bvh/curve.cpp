// Places along a space-filling curve: bounds by atomic maxima, and cells that are the same on every device.
#include "curve.h"

namespace weft::detail {

namespace {

// Maps floats to integers in the same order.
UInt ordered(const Float& x) {
  UInt bits = bitcast<unsigned>(x);
  return select((bits >> 31u) != 0u, ~bits, bits | 0x80000000u);
}
Float unordered(const UInt& bits) { return bitcast<float>(select((bits >> 31u) != 0u, bits & 0x7fffffffu, ~bits)); }

// The greatest scale s of 12 bits with extent * s <= cells, the same on every device: devices round divisions as they
// like, but multiplication and comparison are exact. The quotient is therefore only a guess, at most one step of those
// 12 bits off.
Float scale_of(const Float& extent, float cells) {
  UInt guess = bitcast<unsigned>(Float(cells) / extent) & ~0xfffu;
  Float best = bitcast<float>(guess - 0x1000u);
  for (unsigned step : {0u, 0x1000u}) {
    Float candidate = bitcast<float>(guess + step);
    best = select(extent * candidate <= cells, candidate, best);
  }
  // Extents beyond these limits put all points into one cell.
  return select(extent > 1e-30f && extent < 1e30f, best, 0.f);
}

}  // namespace

void CurveBounds::add(const Vec3& point) {
  for (int k = 0; k < 3; ++k) {
    words_[k] = max(words_[k], ~ordered(point[k]));
    words_[3 + k] = max(words_[3 + k], ordered(point[k]));
  }
}

// Reduces over the subgroup first; then one atomic operation per component joins the subgroups' results.
void CurveBounds::join_into(const Arr<unsigned>& words, int first) {
  for (UInt& w : words_) w = subgroup_max(w);
  If (subgroup_elect()) {
    for (int k = 0; k < kCurveBounds; ++k) atomic_max(words[first + k], words_[k]);
  }
}

CurveGrid::CurveGrid(const Arr<const unsigned>& words, int first, int bits) : cells_(float(1 << bits)) {
  for (int k = 0; k < 3; ++k) {
    low_[k] = unordered(~words[first + k]);
    scale_[k] = scale_of(unordered(words[first + 3 + k]) - low_[k], cells_);
  }
}

CurveGrid::CurveGrid(const Float& half, int bits) : cells_(float(1 << bits)) {
  for (int k = 0; k < 3; ++k) low_[k] = -half, scale_[k] = scale_of(half + half, cells_);
}

UInt CurveGrid::cell(const Vec3& point, int k) const {
  return UInt(clamp((point[k] - low_[k]) * scale_[k], 0.f, cells_ - 1));
}

UInt spread(UInt x) {
  x = (x | x << 16u) & 0x030000ffu;
  x = (x | x << 8u) & 0x0300f00fu;
  x = (x | x << 4u) & 0x030c30c3u;
  return (x | x << 2u) & 0x09249249u;
}

UInt morton_code(const CurveGrid& grid, const Vec3& point) {
  return spread(grid.cell(point, 0)) << 2u | spread(grid.cell(point, 1)) << 1u | spread(grid.cell(point, 2));
}

}  // namespace weft::detail
