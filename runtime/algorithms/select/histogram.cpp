// Histograms by atomic additions: to counters shared by a workgroup if the bins fit there, which are then added to the
// counts; otherwise to the counts themselves. These are sums of integers, so the order of threads does not matter.
#include "../histogram.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "../common/call.h"

namespace weft::detail {

namespace {

constexpr int kThreads = 128, kSharedBins = 2048;
/// Elements of a workgroup with shared counters: enough that adding up the counters costs little beside them.
constexpr std::int64_t kLeastShare = 16 * kThreads, kMostGroups = 512;

/// The scalar arguments of the kernels.
template <class T>
struct Bins {
  T lo, hi, scale;
};

/// The bin of an element, or -1.
template <class T>
Int bin_of(const Var<T>& x, const Var<T>& lo, const Var<T>& hi, const Var<T>& scale, const Int& bins) {
  if constexpr (RealScalar<T>) {
    // Halves come first, because the difference of two finite numbers may be infinite.
    return select(x >= lo && x <= hi, min(Int((x * T(0.5) - lo * T(0.5)) * scale), bins - 1), -1);
  } else {
    return select(x >= T(0) && x < Var<T>(bins), Int(x), -1);
  }
}

template <class T>
void count(const AlgorithmCall& call, const Array<T>& x, const Array<int>& counts, const Bins<T>& b) {
  static const auto direct =
      kernel("histogram", [](Arr<const T> x, Arr<int> counts, Var<T> lo, Var<T> hi, Var<T> scale, Int bins) {
        const Int bin = bin_of<T>(x[tid()], lo, hi, scale, bins);
        If (bin >= 0) {
          atomic_add(counts[bin], 1);
        }
      });
  static const auto by_groups =
      kernel("histogram by workgroups",
             [](Arr<const T> x, Arr<int> counts, Var<T> lo, Var<T> hi, Var<T> scale, Int bins, Int n, Int share) {
               auto own = shared<int>(kSharedBins);
               for (auto k : range(local_id(), bins, kThreads)) own[k] = 0;
               barrier();
               const Int first = workgroup_id() * share;
               for (auto i : range(first + local_id(), min(first + share, n), kThreads)) {
                 const Int bin = bin_of<T>(x[i], lo, hi, scale, bins);
                 If (bin >= 0) {
                   atomic_add(own[bin], 1);
                 }
               }
               barrier();
               for (auto k : range(local_id(), bins, kThreads)) {
                 const Int some = own[k];
                 If (some != 0) {
                   atomic_add(counts[k], some);
                 }
               }
             },
             {.block = kThreads});
  const std::int64_t n = x.size(), bins = counts.size();
  set_all(call, counts, 0);
  if (n == 0) return;
  if (bins > kSharedBins) return call.run(direct, n, x, counts, b.lo, b.hi, b.scale, bins);
  const std::int64_t share = std::max(kLeastShare, ceil_div(n, kMostGroups));
  call.run(by_groups, ceil_div(n, share) * kThreads, x, counts, b.lo, b.hi, b.scale, bins, n, share);
}

}  // namespace

void histogram(const ArrayBase& x, const ArrayBase& counts, ir::Type type, double lo, double hi,
               const AlgorithmOptions& options) {
  AlgorithmCall call("histogram", options);
  call.takes(x, "the input");
  call.takes(counts, "the array of counts");
  call.are_apart(x, "the input", counts, "the array of counts");
  if (counts.size() == 0) call.refuse(ErrorKind::invalid_argument, "the array of counts has no bins");
  const bool real = ir::is_float(type);
  if (real && !(std::isfinite(lo) && std::isfinite(hi) && lo < hi))
    call.refuse(ErrorKind::invalid_argument, fmt::format("bins between {} and {}", lo, hi));
  call.begin(0);
  const Array<int> to = Row<int>(counts);
  const auto as = [&]<class T>(T) {
    const Array<T> from = Row<T>(x);
    Bins<T> bins{};
    if constexpr (RealScalar<T>) {
      bins = {T(lo), T(hi), T(double(to.size()) / (hi * 0.5 - lo * 0.5))};
      if (!std::isfinite(bins.scale) || bins.scale < std::numeric_limits<T>::min())
        call.refuse(ErrorKind::invalid_argument,
                    fmt::format("{} bins between {} and {}: too narrow or too wide for the type", to.size(), lo, hi));
    }
    count<T>(call, from, to, bins);
  };
  switch (type) {
    case ir::Type::f32: return as(float());
    case ir::Type::f64: return as(double());
    case ir::Type::i32: return as(std::int32_t());
    case ir::Type::u32: return as(std::uint32_t());
    case ir::Type::i64: return as(std::int64_t());
    default: return as(std::uint64_t());
  }
}

}  // namespace weft::detail
