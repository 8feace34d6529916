// Scans by runs: each thread adds up a run of elements, the sums are scanned in the same way, and each thread scans its
// run from there on. No thread waits for another, and nothing depends on the size of subgroups.
//
// With coarse grain some 4000 threads have runs as long as it takes: a CPU's prefetchers follow them, and what a thread
// costs is paid once for many elements. With fine grain a run is 16 elements, which lie in one or two cache lines and
// are read by four at once where the memory's alignment allows it.
#include "scan.h"

#include "../tape_core.h"
#include "scan_runs.h"

namespace weft::detail {

namespace {

constexpr std::int64_t kCoarseThreads = 4096, kCoarseLeast = 64;
constexpr int kFineRun = 16;
// The highest levels are short: longer runs save launches.
constexpr std::int64_t kFewElements = 1 << 14, kLongRun = 64;

std::int64_t run_length(std::int64_t n, bool coarse) {
  if (coarse) return std::max(kCoarseLeast, ceil_div(n, kCoarseThreads));
  return n <= kFewElements ? kLongRun : kFineRun;
}

std::uint64_t scratch_of(std::int64_t n, std::uint32_t element_bytes, bool coarse) {
  std::uint64_t bytes = 0;
  for (std::int64_t runs = n; (runs = ceil_div(runs, run_length(runs, coarse))) > 1;)
    bytes += scratch_piece(runs, element_bytes);
  return bytes;
}

// The kernels of one type. Elements are counted from the end where the scan goes there.
template <class T>
struct Kernels {
  static auto make_sums(bool reverse) {
    return kernel("sums of runs",
                  [=](Arr<const T> in, Arr<T> sums, Int n, Int run) {
                    Int t = tid(), first = t * run, last = min(first + run, n);
                    Var<T> sum = T(0);
                    for (auto i : range(first, last)) sum += in[reverse ? n - 1 - i : i];
                    sums[t] = sum;
                  },
                  {.block = 64});
  }
  static auto make_scan(bool reverse, bool inclusive, bool whole) {
    return kernel("scan of runs",
                  [=](Arr<const T> in, Arr<const T> before, Arr<T> out, Int n, Int run) {
                    Int t = tid(), first = t * run, last = min(first + run, n);
                    Var<T> sum = T(0);
                    if (!whole) sum = before[t];
                    for (auto i : range(first, last)) {
                      const Int at = reverse ? n - 1 - i : i;
                      const Var<T> x = in[at];
                      if (inclusive) sum += x;
                      out[at] = sum;
                      if (!inclusive) sum += x;
                    }
                  },
                  {.block = 64});
  }
  static auto make_wide_sums() {
    return kernel("sums of short runs", [](Arr<const T> in, Arr<const vec<4, T>> quads, Arr<T> sums, Int n) {
      Int t = tid(), first = t * kFineRun;
      Var<T> sum = T(0);
      If (first + kFineRun <= n) {
        for (int q = 0; q < kFineRun / 4; ++q) {
          const Vec<4, T> x = quads[t * (kFineRun / 4) + q];
          for (int k = 0; k < 4; ++k) sum += x[k];
        }
      }
      Else {
        for (auto i : range(first, n)) sum += in[i];
      }
      sums[t] = sum;
    });
  }
  static auto make_wide_scan(bool inclusive) {
    return kernel("scan of short runs", [=](Arr<const T> in, Arr<const vec<4, T>> quads, Arr<const T> before,
                                            Arr<T> out, Arr<vec<4, T>> out_quads, Int n) {
      Int t = tid(), first = t * kFineRun;
      Var<T> sum = before[t];
      If (first + kFineRun <= n) {
        for (int q = 0; q < kFineRun / 4; ++q) {
          const Int at = t * (kFineRun / 4) + q;
          const Vec<4, T> x = quads[at];
          Vec<4, T> sums;
          for (int k = 0; k < 4; ++k) {
            if (inclusive) sum += x[k];
            sums[k] = sum;
            if (!inclusive) sum += x[k];
          }
          out_quads[at] = sums;
        }
      }
      Else {
        for (auto i : range(first, n)) {
          const Var<T> x = in[i];
          if (inclusive) sum += x;
          out[i] = sum;
          if (!inclusive) sum += x;
        }
      }
    });
  }

  decltype(make_sums(false)) sums[2] = {make_sums(false), make_sums(true)};
  decltype(make_scan(false, false, false)) scan[2][2][2] = {
      {{make_scan(false, false, false), make_scan(false, false, true)},
       {make_scan(false, true, false), make_scan(false, true, true)}},
      {{make_scan(true, false, false), make_scan(true, false, true)},
       {make_scan(true, true, false), make_scan(true, true, true)}}};
  decltype(make_wide_sums()) wide_sums = make_wide_sums();
  decltype(make_wide_scan(false)) wide_scan[2] = {make_wide_scan(false), make_wide_scan(true)};
};

}  // namespace

std::uint64_t scan_scratch(std::int64_t n, std::uint32_t element_bytes) {
  return std::max(scratch_of(n, element_bytes, false), scratch_of(n, element_bytes, true));
}

template <class T>
void scan_runs(Work& work, const Array<T>& in, const Array<T>& out, ScanKind kind) {
  static const Kernels<T> kernels;
  const std::int64_t n = in.size(), run = run_length(n, work.coarse()), runs = ceil_div(n, run);
  const auto& scan = kernels.scan[kind.reverse][kind.inclusive];
  if (runs == 1) return work.run(scan[true], 1, in, in, out, n, run);
  const Array<T> sums = work.take<T>(runs);
  const bool wide = run == kFineRun && !kind.reverse && is_wide(in) && is_wide(out);
  if (wide)
    work.run(kernels.wide_sums, runs, in, static_cast<const Array<vec<4, T>>&>(Quads<T>(in)), sums, n);
  else
    work.run(kernels.sums[kind.reverse], runs, in, sums, n, run);
  scan_runs(work, sums, sums, {});
  if (!wide) return work.run(scan[false], runs, in, sums, out, n, run);
  const Array<vec<4, T>> quads = Quads<T>(in), out_quads = Quads<T>(out);
  work.run(kernels.wide_scan[kind.inclusive], runs, in, quads, sums, out, out_quads, n);
}

template void scan_runs(Work&, const Array<std::uint32_t>&, const Array<std::uint32_t>&, ScanKind);
template void scan_runs(Work&, const Array<std::uint64_t>&, const Array<std::uint64_t>&, ScanKind);
template void scan_runs(Work&, const Array<float>&, const Array<float>&, ScanKind);
template void scan_runs(Work&, const Array<double>&, const Array<double>&, ScanKind);

namespace {

void scan_elements(Work& work, const ArrayBase& in, const ArrayBase& out, ir::Type type, ScanKind kind) {
  const auto as = [&]<class T>(T) { scan_runs<T>(work, Row<T>(in), Row<T>(out), kind); };
  if (type == ir::Type::f32) return as(float());
  if (type == ir::Type::f64) return as(double());
  ir::bytes(type) == 8 ? as(std::uint64_t()) : as(std::uint32_t());
}

// An element adds to all sums from its own on, or from the next on: its gradient is the sum of theirs.
class ScanRecord : public TapeRecord {
 public:
  ScanRecord(const ArrayBase& in, const ArrayBase& out, ir::Type type, bool inclusive)
      : in_(in), out_(out), type_(type), inclusive_(inclusive) {}

  void backward(TapeCore& tape) override {
    if (!tape.nonzero(out_)) return;
    View of_sums = tape.gradient(out_);
    const View of_elements = tape.gradient(in_);
    tape.mark_nonzero(in_);
    const View passed = View::like(of_sums);
    const AlgorithmOptions options;
    Work work("gradient of a scan", options);
    work.takes(of_sums, "the gradient");
    work.begin(scan_scratch(in_.size(), in_.element_bytes()));
    scan_elements(work, of_sums, passed, type_, {.inclusive = inclusive_, .reverse = true});
    of_sums.zero();
    const Leaf leaf{type_, true, 0};
    accumulate(of_elements, passed, {&leaf, 1});
  }

 private:
  const View in_, out_;
  const ir::Type type_;
  const bool inclusive_;
};

}  // namespace

std::uint64_t scan_scratch_bytes(std::int64_t n, std::uint32_t element_bytes) {
  return scan_scratch(checked_count("scan", n), element_bytes);
}

void scan(const ArrayBase& in, const ArrayBase& out, ir::Type type, bool inclusive, const AlgorithmOptions& options) {
  Work work(inclusive ? "inclusive_scan" : "exclusive_scan", options);
  work.takes(in, "the input");
  work.takes(out, "the output");
  work.has_length(out, "the output", in.size());
  work.are_same_or_apart(in, "the input", out, "the output");
  if (in.size() == 0) return;
  if (Recorder* r = recorder()) {
    const ArrayBase* const from[] = {&in};
    r->deriving(out, from, [&](TapeCore&) { return std::make_unique<ScanRecord>(in, out, type, inclusive); });
  }
  work.begin(scan_scratch(in.size(), in.element_bytes()));
  scan_elements(work, in, out, type, {.inclusive = inclusive});
}

}  // namespace weft::detail
