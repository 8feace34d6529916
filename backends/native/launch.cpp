// The units of a launch, what they will take by what earlier ones took, and their way to the pool.
#include "launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "../../frontend/support/error.h"
#include "../../frontend/support/platform.h"
#include "../host/memory.h"
#include "faults.h"

namespace weft::backend::native {

namespace {

// Times in nanoseconds.
constexpr double kAlone = 20000;          ///< what takes less runs on the calling thread
constexpr double kPerhapsAlone = 100000;  ///< what is looked at now and then whether it does
constexpr std::uint32_t kLooks = 8;       ///< launches from one look to the next
constexpr double kWorthAThread = 10000;   ///< work for which one more thread is woken
constexpr double kPiece = 4000;           ///< what runs on the calling thread between two looks at the time
constexpr double kLeastChunk = 2000;
constexpr double kTrials = 16;              ///< first pieces in a launch of which nobody knows that it takes kPiece
constexpr double kWorthOtherCode = 200000;  ///< work for which a kernel is compiled once more
constexpr double kCallOverhead = 60;        ///< of a call of the entry and of two looks at the clock

constexpr double kChunkThreads = 16384;  ///< threads of a chunk at most, unless a single unit has more
constexpr double kChunksPerThread = 16;  ///< at least, so that uneven work spreads evenly
constexpr std::int64_t kStep = 64;       ///< ranges of threads begin at multiples: whole vectors, whole cache lines
constexpr std::uint32_t kShortRow = 4;   ///< vectors of a row
constexpr double kMuchIdle = 4;          ///< host threads for each that has a row
constexpr double kFirstPiece = 1024;     ///< most threads of the first piece of a kernel that has never run

double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::uint32_t word_at(const std::byte* args, std::uint32_t offset) {
  std::uint32_t word;
  std::memcpy(&word, args + offset, sizeof word);
  return word;
}

std::int64_t parts_of(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

}  // namespace

// A moment in which the system runs another program makes a piece seem long, so the cost rises slowly. The lanes of a
// vector take as long as one of them; workgroups have the same lanes in every launch.
void Body::took(double nanoseconds, double threads) const {
  const double least = split == llvm::Split::groups ? 1 : double(kStep);
  const auto cost = float(std::max(nanoseconds - kCallOverhead, 1.) / std::max(threads, least));
  const float before = cost_.load(std::memory_order_relaxed);
  cost_.store(before < 0 || cost < before ? cost : (before + cost) / 2, std::memory_order_relaxed);
}

// All host threads have as much, because each of those that are awake may take part in a launch.
void Arenas::prepare(const DeviceProgram& program, const Body& body) {
  const std::uint64_t bytes = body.arena_bytes;
  most_ = std::max(most_, bytes);
  if (++launches_ == kPeriod) {
    if (most_ < bytes_ / 4) hold(0);
    most_ = bytes;
    launches_ = 0;
  }
  if (bytes <= bytes_) return;
  hold(bytes);
  if (!memory_)
    throw Error(ErrorKind::out_of_memory,
                fmt::format("the kernel's private and shared arrays take {} bytes for each of {} host threads, which "
                            "are not to be had",
                            bytes, workers_.size()),
                program.name(), program.loc);
}

void Arenas::hold(std::uint64_t bytes) {
  if (memory_) counted_.give_share(bytes_ * workers_.size());
  memory_.reset();
  bytes_ = 0;
  // Whole pages, so that no two host threads write to one.
  constexpr auto page = std::uint64_t(kPage);
  if (bytes != 0 && bytes <= host_memory_limit() / workers_.size() - page) {
    const std::uint64_t each = (bytes + page - 1) / page * page, all = each * workers_.size();
    if (counted_.take_share(all)) {
      memory_.reset(static_cast<std::byte*>(::operator new(all, kPage, std::nothrow)));
      if (memory_)
        bytes_ = each;
      else
        counted_.give_share(all);
    }
  }
  for (std::size_t k = 0; k < workers_.size(); ++k) workers_[k].arena = memory_ ? memory_.get() + k * bytes_ : nullptr;
}

/// The units of a launch that have not run.
struct Launcher::Call {
  const DeviceProgram& program;
  const Body& body;
  const std::byte* args;
  std::int64_t begin, end;
  double unit_threads;  ///< threads of a unit

  std::int64_t units() const { return end - begin; }
  /// What they will take on one thread; negative: nobody knows.
  double cost() const { return body.cost() * unit_threads * double(units()); }
  /// The number of units that has so many threads, at least one.
  std::int64_t units_for(double threads) const {
    const auto found = std::int64_t(std::max(1., threads / unit_threads));
    const bool by_threads = body.split == llvm::Split::threads;
    return std::min(by_threads ? parts_of(found, kStep) * kStep : found, units());
  }
  void run(const llvm::Worker& worker, std::int64_t first, std::int64_t last) const {
    body.entry(args, &worker, first, last);
  }
};

// Vectors lie in rows: rows that are not much longer leave lanes idle, and a few rows leave host threads idle. The code
// that is split by threads has no such limits, but a thread may take several times as long there; so it is taken for
// few rows only if it promises much, and kept if it holds that. All parts of a launch take the same code, because its
// units decide what belongs to a part.
const Body& Launcher::choose(const DeviceProgram& program, const Grid& grid, const std::byte* args) const {
  const Body& body = program.body();
  if (body.split != llvm::Split::rows) return body;
  const std::uint32_t threads = word_at(args, 0), row = word_at(args, program.row_at);
  if (threads > row && row < kShortRow * lanes_) return program.by_threads();
  if (row == 0 || grid.part || body.cost() * double(threads) < kWorthOtherCode) return body;
  // By rows a launch takes as long as if it had `idle` times as many threads.
  const auto rows = double(parts_of(threads, row)), hosts = double(pool_.threads());
  const double idle = std::ceil(rows / hosts) * hosts / rows;
  if (idle < kMuchIdle) return body;
  const Body& other = program.by_threads();
  return other.cost() < idle * body.cost() ? other : body;
}

// A part of a launch has whole workgroups. It runs the units (rows, or the threads of a range) whose first thread it
// has, so that each unit runs in one of the parts.
Launcher::Call Launcher::call_of(const DeviceProgram& program, const Body& body, const Grid& grid,
                                 const std::byte* args) {
  std::int64_t first = 0, end = word_at(args, 0);
  if (grid.part) {
    first = std::min(std::int64_t(grid.first_y) * grid.x * program.block, end);
    end = std::min(first + std::int64_t(grid.x) * grid.y * program.block, end);
  }
  if (body.split == llvm::Split::threads) {
    const std::int64_t whole = parts_of(end, kStep) * kStep, count = word_at(args, 0);
    return {program, body, args, parts_of(first, kStep) * kStep, std::min(whole, count), 1};
  }
  const std::int64_t unit =
      body.split == llvm::Split::groups ? program.block : std::max(1u, word_at(args, program.row_at));
  return {program, body, args, parts_of(first, unit), parts_of(end, unit), double(unit)};
}

void Launcher::run(const DeviceProgram& program, const Grid& grid, std::span<const std::byte> args) {
  if (args.size() < std::max<std::size_t>(program.args_bytes, 4))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the argument block has {} bytes, the kernel takes {}", args.size(), program.args_bytes),
                program.name(), program.loc);
  const std::byte* const block = aligned(args);
  const Body& body = choose(program, grid, block);
  Call call = call_of(program, body, grid, block);
  if (call.units() <= 0) return;
  arenas_.prepare(program, body);
  const platform::FloatMode mode;
  if (!run_here(call)) run_shared(call);
}

// Kernels load arguments by their natural alignment, which blocks on a caller's stack need not have.
const std::byte* Launcher::aligned(std::span<const std::byte> args) {
  if (reinterpret_cast<std::uintptr_t>(args.data()) % 16 == 0) return args.data();
  args_.resize(args.size() / 8 + 3);
  std::byte* const first = reinterpret_cast<std::byte*>(args_.data());
  std::byte* const at = first + (16 - reinterpret_cast<std::uintptr_t>(first) % 16) % 16;
  std::memcpy(at, args.data(), args.size());
  return at;
}

// Runs units on the calling thread as long as what is left is not worth waking others, looking at the time in between:
// a kernel may take another time with other arguments. Returns whether all have run.
bool Launcher::run_here(Call& call) {
  const Running running(call.program);
  const llvm::Worker& worker = arenas_.worker(0);
  // Shared work may take longer than alone, and would stay shared: a piece tells now and then.
  bool looks = launches_++ % kLooks == 0;
  for (bool first = true; call.units() > 0; first = false) {
    std::int64_t piece = call.units();
    if (pool_.threads() > 1) {
      const double cost = call.cost();
      if (cost > kAlone && (!looks || cost > kPerhapsAlone)) return false;
      looks = false;
      if (cost < 0)  // a workgroup of few threads may have much to do
        piece =
            call.body.split == llvm::Split::groups
                ? 1
                : call.units_for(std::clamp(double(piece) * call.unit_threads / kTrials, double(kStep), kFirstPiece));
      else if (cost > kPiece)
        piece = call.units_for(kPiece / call.body.cost());
      else if (first)  // there may be more to do than in the launches before
        piece = call.units_for(double(piece) * call.unit_threads / kTrials);
    }
    const double before = now();
    call.run(worker, call.begin, call.begin + piece);
    call.body.took(now() - before, double(piece) * call.unit_threads);
    call.begin += piece;
  }
  return true;
}

void Launcher::run_shared(const Call& call) {
  const double cost = call.cost(), threads = double(call.units()) * call.unit_threads;
  const auto most = int(std::min(double(pool_.threads()), 1 + std::ceil(cost / kWorthAThread)));
  const double even = threads / (kChunksPerThread * most), least = kLeastChunk / call.body.cost();
  const std::int64_t chunk = call.units_for(std::min(std::max(even, least), kChunkThreads));
  double own_time = 0, own_threads = 0;  // of the calling thread, whose chunks tell what the kernel costs
  pool_.run(call.units(), chunk, most, [&](int thread, std::int64_t begin, std::int64_t end) noexcept {
    const Running running(call.program);
    const double before = thread == 0 ? now() : 0;
    call.run(arenas_.worker(thread), call.begin + begin, call.begin + end);
    if (thread != 0) return;
    own_time += now() - before;
    own_threads += double(end - begin) * call.unit_threads;
  });
  if (own_threads > 0) call.body.took(own_time, own_threads);
}

}  // namespace weft::backend::native
