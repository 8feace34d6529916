// The records of a stream's kernels on their way from the device to the user.
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

/// What kernels reported: read from a device, not yet shown.
struct Reports {
  struct Failure {
    std::string message, kernel;
    Loc loc;
    ErrorKind kind = ErrorKind::kernel_fault;
    Loc launched = {};  ///< where in the host's code
  };
  std::vector<std::string> lines;
  Failure first;               ///< of the failures
  std::uint64_t failures = 0;  ///< how many there were

  bool empty() const { return lines.empty() && failures == 0; }
  /// Appends what another stream, or the same one later, reported.
  void add(Reports&& more);
  /// Gives the lines to the sink.
  void show();
  /// Shows the lines, then throws Error(kernel_fault) if anything failed, or Error(not_differentiable) for what an
  /// adjoint found. No stream may be locked.
  void deliver();
  /// The same where nothing may be thrown: failures go to the standard error stream.
  void deliver_quietly() noexcept;
};

/// The buffer (ir::report) of one stream, of a graph or of a recording, and the launches whose records it holds.
/// Guarded by the lock of the stream, of that on which the graph was launched last, or of the stream of recordings.
///
/// Records are read when something waits for one of these launches. All of them are waited for then: records of a
/// launch that still runs could not be told from those not yet written. Those of a recording, of which others say when
/// it runs, are read by the first wait that finds it done.
class ReportBuffer {
 public:
  /// \param of_graph  launches are recorded once, and run whenever restart() was called
  explicit ReportBuffer(backend::Device& device, bool of_graph = false) : device_(device), of_graph_(of_graph) {}
  ReportBuffer(const ReportBuffer&) = delete;
  ReportBuffer& operator=(const ReportBuffer&) = delete;
  ~ReportBuffer();

  struct Launch {
    const std::shared_ptr<const ir::Interface>& kernel;
    std::span<const std::int64_t> threads;  ///< of the whole launch, by dimension
    std::int64_t first;                     ///< number of the first thread of this dispatch
    Loc launched;                           ///< where in the host's code, or empty
  };
  /// Before a dispatch is recorded: makes the buffer ready and fills the dispatch's part of the argument block.
  /// \return what the dispatch touches of it
  backend::MemoryRange begin(backend::Stream& stream, const Launch& launch, std::byte* arguments);
  /// After it was recorded, or all of a graph, or when a recording was submitted.
  void recorded(backend::Ticket ticket);

  /// Of a graph: gives each operation that reports a number of its own. Rounds of a loop are copies of what was
  /// captured.
  void number(std::span<backend::Operation> operations);
  /// Makes a graph's buffer that of a recording: the operations empty it themselves, as the first that they do, and
  /// copy it to memory of the host's, as the last. Reading it needs no queue then, which others may have made wait.
  void record_into(backend::Operations& operations);
  /// Of a graph: before its operations run. What they reported the last time has been collected.
  void restart(backend::Stream& stream);

  /// After a wait: reads what was reported if the ticket is one of the launches' or later; of a recording if it has
  /// run.
  void collect(backend::Stream& stream, backend::Ticket waited, Reports& into);
  /// Whether a wait for the ticket reads what is here, which waits for last().
  bool is_read_by(backend::Ticket waited) const { return pending() && !of_recording_ && waited >= first_; }
  backend::Ticket last() const { return last_; }
  bool pending() const { return of_graph_ ? last_ != 0 : !runs_.empty(); }

 private:
  using Kernel = std::shared_ptr<const ir::Interface>;
  /// Dispatches in a row of one kernel over the same threads, launched at one place.
  struct Run {
    Kernel kernel;
    std::uint32_t first = 0;  ///< number of the first of them
    std::int64_t first_thread = 0;
    Loc launched;
    std::vector<std::int64_t> threads;
  };
  struct Record {
    std::uint32_t launch, thread;
    const std::uint32_t* words;  ///< of the values
    const Run* run;
    const ir::Message* message;
  };

  void make_room();
  std::array<std::uint32_t, ir::report::kHeaderWords> empty_header() const;
  void clear_header(backend::Stream& stream);
  const Run* run_of(std::uint32_t launch) const;
  std::uint32_t slot_of(const Kernel& kernel);
  /// The records of one part of the buffer, sorted by launch and thread. False when they make no sense.
  bool parse(std::span<const std::uint32_t> words, std::vector<Record>& into) const;
  std::vector<std::uint32_t> read(std::uint32_t first, std::uint32_t count) const;
  Reports::Failure failure(const Record& record) const;

  backend::Device& device_;
  const bool of_graph_;
  bool of_recording_ = false;  ///< and of_graph_
  backend::Allocation memory_;
  backend::Allocation copy_;    ///< of a recording: what its last submission left in memory_
  std::uint32_t capacity_ = 0;  ///< words for lines
  bool clean_ = false;          ///< the header is as it was written by clear_header()
  std::vector<Run> runs_;
  std::uint32_t launches_ = 0;
  backend::Ticket first_ = 0, last_ = 0;  ///< of the launches; first_ is 0 while one has none
  std::vector<Kernel> kernels_;           ///< by slot: the number of a kernel's counter of lost lines
};

}  // namespace weft::detail
