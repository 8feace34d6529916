// Records of a stream's kernels on their way from the device to the user.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../../backends/operations.h"
#include "../../frontend/support/error.h"

namespace weft::detail {

/// Reports of kernels: read from a device, not yet shown.
struct Reports {
  struct Failure {
    std::string message, kernel;
    Loc loc;
    ErrorKind kind = ErrorKind::kernel_fault;
    Loc launched = {};  ///< place of the launch in the host's code
  };
  std::vector<std::string> lines;
  Failure first;               ///< the first failure
  std::uint64_t failures = 0;  ///< number of failures

  bool empty() const { return lines.empty() && failures == 0; }
  /// Appends later reports of the same stream, or those of another.
  void add(Reports&& more);
  /// Gives the lines to the sink.
  void show();
  /// Shows the lines, then throws Error(kernel_fault) if anything failed, or Error(not_differentiable) if an adjoint
  /// reported. No stream may be locked.
  void deliver();
  /// Shows the lines where nothing may be thrown: failures go to the standard error stream.
  void deliver_quietly() noexcept;
};

/// The buffer (ir::report) of one stream, graph or recording, and the launches whose records it holds. The lock that
/// guards it is that of the stream, of the stream on which the graph was last launched, or of the stream of recordings.
///
/// Records are read when something waits for one of these launches. That waits for all of them, because records of a
/// launch that still runs could not be told from those not yet written. A recording runs when the caller submits it;
/// its records are read by the first wait that finds it done.
class ReportBuffer {
 public:
  /// \param of_graph  launches are recorded once, and run each time after restart() was called
  explicit ReportBuffer(backend::Device& device, bool of_graph = false) : device_(device), of_graph_(of_graph) {}
  ReportBuffer(const ReportBuffer&) = delete;
  ReportBuffer& operator=(const ReportBuffer&) = delete;
  ~ReportBuffer();

  struct Launch {
    const std::shared_ptr<const ir::Interface>& kernel;
    std::span<const std::int64_t> threads;  ///< of the whole launch, by dimension
    std::int64_t first;                     ///< number of the first thread of this dispatch
    Loc launched;                           ///< place in the host's code, or empty
  };
  /// Prepares the buffer and fills the dispatch's part of the argument block. Call before a dispatch is recorded.
  /// \return the part of the buffer that the dispatch accesses
  backend::MemoryRange begin(backend::Stream& stream, const Launch& launch, std::byte* arguments);
  /// Call after a dispatch, or all of a graph, was recorded, or when a recording was submitted.
  void recorded(backend::Ticket ticket);

  /// Gives each operation of a graph that reports a number of its own, because rounds of a loop are copies of what was
  /// captured.
  void number(std::span<backend::Operation> operations);
  /// Makes a graph's buffer that of a recording: the first operation empties it, and the last copies it to host memory.
  /// Reading it then needs no queue, which may be waiting for another program.
  void record_into(backend::Operations& operations);
  /// Call before a graph's operations run, when the reports of their last run have been collected.
  void restart(backend::Stream& stream);

  /// Reads the reports after a wait, if the ticket covers one of the launches; those of a recording if it has run.
  void collect(backend::Stream& stream, backend::Ticket waited, Reports& into);
  /// Whether a wait for the ticket reads these reports, which waits for last().
  bool is_read_by(backend::Ticket waited) const { return pending() && !of_recording_ && waited >= first_; }
  backend::Ticket last() const { return last_; }
  bool of_graph() const { return of_graph_; }
  bool pending() const { return of_graph_ ? last_ != 0 : !runs_.empty(); }

 private:
  using Kernel = std::shared_ptr<const ir::Interface>;
  /// Successive dispatches of one kernel over the same threads, launched at one place.
  struct Run {
    Kernel kernel;
    std::uint32_t first = 0;  ///< number of the first dispatch
    std::int64_t first_thread = 0;
    Loc launched;
    std::vector<std::int64_t> threads;
  };
  struct Record {
    std::uint32_t launch, thread;
    const std::uint32_t* words;  ///< the values
    const Run* run;
    const ir::Message* message;
  };

  void make_room();
  std::array<std::uint32_t, ir::report::kHeaderWords> empty_header() const;
  void clear_header(backend::Stream& stream);
  const Run* run_of(std::uint32_t launch) const;
  std::uint32_t slot_of(const Kernel& kernel);
  /// Parses the records of one part of the buffer, sorted by launch and thread. False if they are malformed.
  bool parse(std::span<const std::uint32_t> words, std::vector<Record>& into) const;
  std::vector<std::uint32_t> read(std::uint32_t first, std::uint32_t count) const;
  Reports::Failure failure(const Record& record) const;

  backend::Device& device_;
  const bool of_graph_;
  bool of_recording_ = false;  ///< then of_graph_ as well
  backend::Allocation memory_;
  backend::Allocation copy_;    ///< for a recording: what its last submission left in memory_
  std::uint32_t capacity_ = 0;  ///< words for lines
  bool clean_ = false;          ///< the header is as clear_header() wrote it
  std::vector<Run> runs_;
  std::uint32_t launches_ = 0;
  backend::Ticket first_ = 0, last_ = 0;  ///< range of the launches; first_ is 0 before the first has a ticket
  std::vector<Kernel> kernels_;           ///< by slot: the kernel that counts lost lines there
};

}  // namespace weft::detail
