// Times of a stream's operations by the clock of its device. Internal to the runtime.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "../../backends/backend.h"

namespace weft::detail {

/// Measures operations of one stream. A measured operation runs by itself. Guarded by the stream's lock.
class StreamClock {
 public:
  /// Errors: Error(unsupported) when the device has no clock.
  explicit StreamClock(backend::Device& device) : device_(device), moments_(device.create_timestamps(2 * kMost)) {}
  StreamClock(const StreamClock&) = delete;
  StreamClock& operator=(const StreamClock&) = delete;

  /// Called with the moments at which an operation began and ended, in nanoseconds of the device's clock.
  using Known = std::function<void(std::int64_t begin, std::int64_t end)>;
  /// The measurement of the operation that the stream is given next. A measurement that begins while another is open
  /// is of the same operation.
  class Measurement {
   public:
    /// \param known  called when the times are known, by collect(), finish() or a later measurement
    Measurement(StreamClock& clock, backend::Stream& own, Known known);
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;
    ~Measurement();
    /// The stream has the operation, and gave it this ticket. Without this call nothing is measured.
    void given(backend::Ticket ticket);

   private:
    StreamClock& clock_;
    backend::Stream& own_;
    const bool first_;  ///< no other was open
    std::vector<Known> known_;
  };
  /// Takes the times of the operations that have run.
  void collect(backend::Stream& own) {
    if (!pending_.empty()) take(own);
  }
  /// The ticket of the last measured operation whose times have not been taken; 0: none.
  backend::Ticket last() const { return pending_.empty() ? 0 : pending_.back().ticket; }
  /// Waits for the operations measured up to a ticket, and takes their times.
  void finish(backend::Stream& own, backend::Ticket ticket);

 private:
  static constexpr std::uint32_t kMost = 1024;  ///< operations for which places are made at once
  struct Pending {
    std::shared_ptr<backend::Timestamps> moments;
    std::uint32_t place;
    backend::Ticket ticket;
    std::vector<Known> known;
  };
  void make_room(backend::Stream& own);
  void keep(backend::Ticket ticket, std::vector<Known>&& known);
  void take(backend::Stream& own);
  void take_first();

  backend::Device& device_;
  std::shared_ptr<backend::Timestamps> moments_;  ///< places for the next operations
  std::uint32_t next_ = 0;                        ///< the next free place
  std::deque<Pending> pending_;
  std::vector<Known>* open_ = nullptr;  ///< the callbacks of the measurement that is open
};

}  // namespace weft::detail
