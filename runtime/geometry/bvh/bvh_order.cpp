// Sorts primitives along a space-filling curve, the order in which a hierarchy is built.
#include <algorithm>
#include <cfloat>
#include <limits>

#include "../../../frontend/language/report.h"
#include "../../algorithms/common/call.h"
#include "../../algorithms/sort.h"
#include "../../core/view.h"
#include "bvh_build.h"
#include "curve.h"

namespace weft::detail {

namespace {

constexpr int kBlock = 256;
/// Boxes per thread in the search for the bounds: few threads then meet in the atomic operations at the end.
constexpr int kPerThread = 16;

Bool is_box(const Vec3& lower, const Vec3& upper) {
  return all(less_equal(lower, upper)) & all(less_equal(abs(lower), vec3(FLT_MAX))) &
         all(less_equal(abs(upper), vec3(FLT_MAX)));
}

// The bounds are halved first, because the sum of two finite numbers may be infinite.
Vec3 center_of(const Vec3& lower, const Vec3& upper) { return lower * 0.5f + upper * 0.5f; }

// Finds the bounds of all centres, and counts the boxes that are none. Each thread visits every `threads`-th box.
auto bounds_kernel() {
  return kernel("bvh_bounds",
                [](Arr<const vec3> lowers, Arr<const vec3> uppers, Arr<unsigned> info, Int n, Int threads) {
                  const tracing::AsWritten as_written;
                  CurveBounds bounds;
                  UInt ignored = 0u;
                  Int bad = -1;
                  for (auto i : range(tid(), n, threads)) {
                    Vec3 lower = lowers[i], upper = uppers[i];
                    If (is_box(lower, upper)) {
                      bounds.add(center_of(lower, upper));
                    }
                    Else {
                      ignored += 1u;
                      bad = select(bad < 0, i, bad);
                    }
                  }
                  bounds.join_into(info, kBvhBounds);
                  ignored = subgroup_add(ignored);
                  If (subgroup_elect() & (ignored > 0u)) {
                    atomic_add(info[kBvhIgnored], ignored);
                  }
                  if (tracing::Trace::current().debug().checks)
                    assert_(bad < 0, "a hierarchy of boxes ignores primitive", bad,
                            "and others like it: its box is none");
                },
                {.block = kBlock});
}

// Computes Morton codes (Morton 1966): the cells of a grid around all centres, 2^10 or 2^20 along each axis, in the
// order in which nested halving visits them. Primitives without a box come last.
//
// \param again  keys of the primitives in their present order; if false, of each primitive, and begins the order
template <class B>
auto keys_kernel(bool again) {
  constexpr bool fine = sizeof(B) == 8;
  return kernel("bvh_keys", [again](Arr<const vec3> lowers, Arr<const vec3> uppers, Arr<const unsigned> info,
                                    Arr<B> keys, Arr<int> order) {
    const tracing::AsWritten as_written;
    Int i = tid();
    Int primitive = again ? Int(order[i]) : i;
    Vec3 lower = lowers[primitive], upper = uppers[primitive];
    Vec3 c = center_of(lower, upper);
    const CurveGrid grid(info, kBvhBounds, fine ? 20 : 10);
    Var<B> key = B(0);
    if constexpr (fine) {
      for (int k = 0; k < 3; ++k) {
        const UInt cell = grid.cell(c, k);
        key |= (Var<B>(spread(cell >> 10u)) << B(32 - k)) | (Var<B>(spread(cell & 1023u)) << B(2 - k));
      }
    } else {
      key = morton_code(grid, c);
    }
    keys[i] = select(is_box(lower, upper), key, B(fine ? 0xfffffffffffffffull : 0x3fffffffu));
    if (!again) order[i] = i;
  });
}

// Sorts in the memory of the nodes, which are written later, unless the tree is so small that it does not suffice.
template <class K>
void sort_pairs(const BvhBuild& build, const Array<K>& keys, int bits) {
  const Row<std::uint8_t> nodes(build.data.nodes);
  SortOptions options{.end_bit = bits};
  if (std::uint64_t(nodes.size()) >= weft::radix_sort_scratch_bytes<K, int>(keys.size())) options.scratch = nodes;
  radix_sort_pairs(keys, build.data.primitives, options);
}

template <class B>
void order_by(const BvhBuild& build, const Array<B>& keys, const Array<int>& groups) {
  const BvhData& d = build.data;
  static const auto first_keys = keys_kernel<B>(false);
  static const auto keys_again = keys_kernel<B>(true);
  launch(first_keys, build.count(), d.lowers, d.uppers, d.info, keys, build.data.primitives);
  sort_pairs(build, keys, sizeof(B) == 8 ? 60 : 30);
  if (!build.grouped) return;
  // The sort is stable: the order within a group stays.
  launch(gather_kernel<int, int>(), build.count(), d.groups, groups, build.data.primitives);
  sort_pairs(build, d.groups, 32);
  launch(keys_again, build.count(), d.lowers, d.uppers, d.info, keys, build.data.primitives);
}

}  // namespace

TracedBox empty_box() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  return {Vec3(vec3(inf)), Vec3(vec3(-inf))};
}

TracedBox box_of(const Arr<vec3>& lowers, const Arr<vec3>& uppers, const Int& primitive) {
  Vec3 lower = lowers[primitive], upper = uppers[primitive];
  Bool real = is_box(lower, upper);
  const TracedBox none = empty_box();
  return {select(real, lower, none.lower), select(real, upper, none.upper)};
}

void order_by_curve(const BvhBuild& build, const Array<int>& groups) {
  const BvhData& d = build.data;
  const std::int64_t n = build.count();
  static const auto bounds = bounds_kernel();
  const std::int64_t blocks = std::clamp<std::int64_t>(n / (kBlock * kPerThread), 1, 1024);
  launch(bounds, blocks * kBlock, d.lowers, d.uppers, d.info, n, blocks * kBlock);
  if (build.fine_keys.is_null())
    order_by(build, build.keys, groups);
  else
    order_by(build, build.fine_keys, groups);
}

}  // namespace weft::detail
