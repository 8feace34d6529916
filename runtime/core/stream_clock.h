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
  /// Measures the operation that `record` gives the stream and whose ticket it returns; `known` is called when the
  /// times are known, by collect(), finish() or a later measurement. A measurement within `record` is of the same
  /// operation.
  template <class F>
  backend::Ticket measure(backend::Stream& own, F record, Known known) {
    if (open_) {
      open_->push_back(std::move(known));
      return record();
    }
    std::vector<Known> all;
    all.push_back(std::move(known));
    make_room(own);
    const Opened opened(*this, own, all);
    const backend::Ticket ticket = record();
    if (!own.measure(nullptr, 0)) keep(ticket, std::move(all));
    return ticket;
  }
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
  struct Opened {
    StreamClock& clock;
    backend::Stream& own;
    Opened(StreamClock& clock, backend::Stream& own, std::vector<Known>& known) : clock(clock), own(own) {
      own.measure(clock.moments_.get(), clock.next_);
      clock.open_ = &known;
    }
    Opened(const Opened&) = delete;
    ~Opened() {
      clock.open_ = nullptr;
      own.measure(nullptr, 0);
    }
  };
  void make_room(backend::Stream& own);
  void keep(backend::Ticket ticket, std::vector<Known>&& known);
  void take(backend::Stream& own);
  void take_first();

  backend::Device& device_;
  std::shared_ptr<backend::Timestamps> moments_;  ///< places for the next operations
  std::uint32_t next_ = 0;                        ///< the next free place
  std::deque<Pending> pending_;
  std::vector<Known>* open_ = nullptr;  ///< the callbacks of the measurement that is being recorded
};

}  // namespace weft::detail
