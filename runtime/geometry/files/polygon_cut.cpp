// Cuts ears off large polygons; the last corners, and small polygons, are cut in the best of all ways.
#include "polygon_cut.h"

#include <numeric>

#include "polygon_ears.h"

namespace weft::polygons {

namespace {

// Most corners for which all ways to cut are tried, over n^3 / 6 triangles.
constexpr std::size_t kFew = 12;

}  // namespace

bool Cutter::cut(std::span<const vec3> points, std::span<const int> corners, std::vector<int>& indices) {
  if (corners.size() == 3) {
    indices.insert(indices.end(), corners.begin(), corners.end());
    return true;
  }
  lay_flat(points, corners, flat_);
  triangles_.clear();
  if (corners.size() > kFew) {
    left_ = cut_ears(flat_, kFew, triangles_);
    if (left_.size() > kMostCrossed) return false;
  } else {
    left_.resize(corners.size());
    std::iota(left_.begin(), left_.end(), 0);
  }
  cut_best(left_);
  for (const int k : triangles_) indices.push_back(corners[std::size_t(k)]);
  return true;
}

Cutter::Cost Cutter::cost_of(int a, int b, int c) const {
  const PlanePoint &p = flat_[std::size_t(a)], &q = flat_[std::size_t(b)], &r = flat_[std::size_t(c)];
  const double area = orientation(p, q, r);
  if (area < 0) return {1, 0, 0};
  if (area == 0) return {0, 1, 0};
  return {0, 0, shape_of(p, q, r, area)};
}

/// Finds the best of all ways to cut: for the corners from i to k that is one triangle over the edge between them and
/// the best ways of the parts on its two sides (Gilbert 1979, Klincsek 1980).
void Cutter::cut_best(std::span<const int> corners) {
  const std::size_t n = corners.size();
  best_.assign(n * n, {});
  for (std::size_t length = 2; length < n; ++length)
    for (std::size_t i = 0; i + length < n; ++i) {
      const std::size_t k = i + length;
      Best& best = best_[i * n + k];
      for (std::size_t by = i + 1; by < k; ++by) {
        const Cost cost =
            cost_of(corners[i], corners[by], corners[k]) + best_[i * n + by].cost + best_[by * n + k].cost;
        // The last of equal ways wins, which is a fan around the first corner.
        if (best.by == 0 || cost <= best.cost) best = {cost, by};
      }
    }
  take(corners, 0, n - 1);
}

void Cutter::take(std::span<const int> corners, std::size_t first, std::size_t last) {
  if (last - first < 2) return;
  const std::size_t by = best_[first * corners.size() + last].by;
  take(corners, first, by);
  take(corners, by, last);
  triangles_.insert(triangles_.end(), {corners[first], corners[by], corners[last]});
}

}  // namespace weft::polygons
