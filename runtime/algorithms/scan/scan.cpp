// Scans by runs: the elements of each run are added up, the sums are scanned in the same way, and each run is scanned
// from its sum on. No thread waits for another.
#include "../scan.h"

#include "../../tape/tape_core.h"
#include "scan_kernels.h"
#include "scan_runs.h"

namespace weft::detail {

namespace {

// With coarse grain some 4000 threads have one long run each: a CPU's prefetchers follow them, and the cost of a thread
// is paid once for many elements. Runs are an odd number of cache lines long, because otherwise neighbouring threads
// would compete for the same places in the cache. As many elements as one such run are left to one thread alone, which
// takes as long as one or two launches.
constexpr std::int64_t kCoarseThreads = 4096, kCoarseLines = 5, kLine = 16;
// With fine grain a subgroup has a run: of 16 rows, fewer if these would be too few runs for a large device, or up to
// 64 if those are all rows. On a device without subgroups for kernels, each thread has a run.
constexpr std::int64_t kRows = 16, kFewRows = 4, kMostRows = 64, kManyRuns = 1024, kShortRun = 64;
// On a processor a vector has a run, which is still in the first cache when the next launch comes to it; so many
// elements take a few microseconds, and are left to one vector if there are no more than four runs. Integers of any
// number are, where the device has a single host thread: then one pass is enough. The sum of reals does not depend on
// the number of host threads.
constexpr std::int64_t kVectorRun = 4096, kFewVectorRuns = 4;

/// How runs are traversed: by what.
enum class By { threads, pairs, subgroups, vectors };

std::int64_t vector_run(std::int64_t n, bool alone) {
  return alone || n <= kFewVectorRuns * kVectorRun ? std::max(n, kVectorRun) : kVectorRun;
}

std::int64_t run_length(std::int64_t n, bool coarse, std::int64_t lanes) {
  if (coarse)
    return n <= kCoarseThreads ? kCoarseThreads
                               : kLine * (std::max(kCoarseLines, ceil_div(n, kCoarseThreads * kLine)) | 1);
  if (lanes == 0) return kShortRun;
  const std::int64_t row = kQuad * lanes;
  if (n <= row * kMostRows) return row * kMostRows;
  return row * (n <= row * kRows * kManyRuns ? kFewRows : kRows);
}

std::uint64_t scratch_of(std::int64_t n, std::uint32_t element_bytes, bool coarse) {
  std::uint64_t bytes = 0;
  for (std::int64_t runs = n; (runs = ceil_div(runs, run_length(runs, coarse, 0))) > 1;)
    bytes += scratch_piece(runs, element_bytes);
  return bytes;
}

/// One level of a scan: its division into runs, and the kernels that go through them.
template <class T>
class Level {
 public:
  Level(AlgorithmCall& call, const Array<T>& in, const Array<T>& out, ScanKind kind)
      : work_(call), in_(in), out_(out), sums_(in), kind_(kind) {
    const backend::DeviceInfo& device = call.device().device->info();
    wide_ = !kind.reverse && is_wide(in) && is_wide(out);
    if (call.on_processor())
      by_ = By::vectors;
    else if (!call.coarse() && device.subgroup_size > 0)
      by_ = By::subgroups;
    else if (wide_ && call.coarse() && sizeof(T) == 4 && device.int64)
      by_ = By::pairs;
    if (by_ == By::vectors || by_ == By::subgroups) lanes_ = device.subgroup_size;
    run_ = by_ == By::vectors ? vector_run(in.size(), device.host_threads == 1 && !RealScalar<T>)
                              : run_length(in.size(), call.coarse(), lanes_);
    runs_ = ceil_div(in.size(), run_);
    if (runs_ > 1) sums_ = call.take<T>(runs_);
  }

  std::int64_t runs() const { return runs_; }
  /// The sum of each run.
  const Array<T>& sums() const { return sums_; }

  void add_up() const {
    const std::int64_t n = in_.size();
    if (by_ == By::vectors) return work_.run(vectors().sums[kind_.reverse], runs_ * lanes_, in_, sums_, n, run_);
    if (by_ == By::subgroups)
      return work_.run(rows().sums[access()], threads(), in_, quads(in_), sums_, n, runs_, rows_of_run());
    if constexpr (sizeof(T) == 4)
      if (by_ == By::pairs) return work_.run(pairs().sums, runs_, in_, two_pairs(in_), sums_, n, run_);
    work_.run(one_by_one().sums[kind_.reverse], runs_, in_, sums_, n, run_);
  }

  /// Call after the sums have been scanned.
  void scan() const {
    const std::int64_t n = in_.size();
    const bool inclusive = kind_.inclusive, whole = runs_ == 1;
    if (by_ == By::vectors)
      return work_.run(vectors().scan(kind_.reverse, inclusive, whole), runs_ * lanes_, in_, sums_, out_, n, run_);
    if (by_ == By::subgroups)
      return work_.run(rows().scan(access(), inclusive, whole), threads(), in_, quads(in_), sums_, out_, quads(out_), n,
                       runs_, rows_of_run());
    if constexpr (sizeof(T) == 4)
      if (by_ == By::pairs)
        return work_.run(pairs().scan[inclusive][whole], runs_, in_, two_pairs(in_), sums_, out_, two_pairs(out_), n,
                         run_);
    work_.run(one_by_one().scan[kind_.reverse][inclusive][whole], runs_, in_, sums_, out_, n, run_);
  }

 private:
  static const RowKernels<T>& rows() {
    static const RowKernels<T> kernels;
    return kernels;
  }
  static const PairKernels<T>& pairs() {
    static const PairKernels<T> kernels;
    return kernels;
  }
  static const RunKernels<T>& one_by_one() {
    static const RunKernels<T> kernels;
    return kernels;
  }
  const VectorKernels<T>& vectors() const {
    return made_once<VectorKernels<T>>(int(lanes_), [&] { return VectorKernels<T>(int(lanes_)); });
  }
  static Array<vec<4, T>> quads(const Array<T>& a) { return Quads<T>(a); }
  static Array<TwoPairs> two_pairs(const Array<T>& a) { return Quads<T, TwoPairs>(a); }

  typename RowKernels<T>::Access access() const {
    using K = RowKernels<T>;
    return kind_.reverse ? K::reverse : wide_ ? K::wide : K::narrow;
  }
  std::int64_t rows_of_run() const { return run_ / (kQuad * lanes_); }
  std::int64_t threads() const {
    constexpr std::int64_t block = RowKernels<T>::kBlock;
    return ceil_div(runs_ * lanes_, block) * block;
  }

  AlgorithmCall& work_;
  const Array<T>&in_, &out_;
  Array<T> sums_;
  const ScanKind kind_;
  By by_ = By::threads;
  std::int64_t lanes_ = 0, run_, runs_;  ///< lanes: of subgroups and vectors
  bool wide_;
};

}  // namespace

// No device has shorter runs than those of threads with fine grain.
std::uint64_t scan_scratch(std::int64_t n, std::uint32_t element_bytes) {
  return std::max(scratch_of(n, element_bytes, false), scratch_of(n, element_bytes, true));
}

template <class T>
void scan_runs(AlgorithmCall& call, const Array<T>& in, const Array<T>& out, ScanKind kind) {
  const Level<T> level(call, in, out, kind);
  if (level.runs() > 1) {
    level.add_up();
    scan_runs(call, level.sums(), level.sums(), {});
  }
  level.scan();
}

template void scan_runs(AlgorithmCall&, const Array<std::uint32_t>&, const Array<std::uint32_t>&, ScanKind);
template void scan_runs(AlgorithmCall&, const Array<std::uint64_t>&, const Array<std::uint64_t>&, ScanKind);
template void scan_runs(AlgorithmCall&, const Array<float>&, const Array<float>&, ScanKind);
template void scan_runs(AlgorithmCall&, const Array<double>&, const Array<double>&, ScanKind);

namespace {

void scan_elements(AlgorithmCall& call, const ArrayBase& in, const ArrayBase& out, ir::Type type, ScanKind kind) {
  const auto as = [&]<class T>(T) { scan_runs<T>(call, Row<T>(in), Row<T>(out), kind); };
  if (type == ir::Type::f32) return as(float());
  if (type == ir::Type::f64) return as(double());
  ir::bytes(type) == 8 ? as(std::uint64_t()) : as(std::uint32_t());
}

// An element adds to all sums from its own on, or from the next on, so its gradient is the sum of theirs.
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
    AlgorithmCall call("gradient of a scan", options);
    call.takes(of_sums, "the gradient");
    call.begin(scan_scratch(in_.size(), in_.element_bytes()));
    scan_elements(call, of_sums, passed, type_, {.inclusive = inclusive_, .reverse = true});
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
  AlgorithmCall call(inclusive ? "inclusive_scan" : "exclusive_scan", options);
  call.takes(in, "the input");
  call.takes(out, "the output");
  call.has_length(out, "the output", in.size());
  call.are_same_or_apart(in, "the input", out, "the output");
  if (in.size() == 0) return;
  if (recorder()) {
    const ArrayBase* const from[] = {&in};
    const MakeRecord record = [&](TapeCore&) { return std::make_unique<ScanRecord>(in, out, type, inclusive); };
    tell_recorder({.kind = OperationKind::derive, .to = &out, .others = from, .record = &record});
  }
  call.begin(scan_scratch(in.size(), in.element_bytes()), &out);
  scan_elements(call, in, out, type, {.inclusive = inclusive});
}

}  // namespace weft::detail
