// Places for the moments of a device's clock, and the operations that wait for their times.
#include "stream_clock.h"

#include <utility>

namespace weft::detail {

StreamClock::Measurement::Measurement(StreamClock& clock, backend::Stream& own, Known known)
    : clock_(clock), own_(own), first_(!clock.open_) {
  std::vector<Known>& all = first_ ? known_ : *clock.open_;
  all.push_back(std::move(known));
  if (!first_) return;
  clock.make_room(own);
  own.measure(clock.moments_.get(), clock.next_);
  clock.open_ = &known_;
}

void StreamClock::Measurement::given(backend::Ticket ticket) {
  if (first_ && !own_.measure(nullptr, 0)) clock_.keep(ticket, std::move(known_));
}

StreamClock::Measurement::~Measurement() {
  if (!first_) return;
  clock_.open_ = nullptr;
  own_.measure(nullptr, 0);
}

// Never waits, because earlier work may itself wait for another program.
void StreamClock::make_room(backend::Stream& own) {
  if (pending_.size() >= kMost / 2) take(own);
  if (next_ < 2 * kMost) return;
  take(own);
  if (moments_.use_count() > 1) moments_ = device_.create_timestamps(2 * kMost);
  next_ = 0;
}

void StreamClock::keep(backend::Ticket ticket, std::vector<Known>&& known) {
  pending_.push_back({moments_, next_, ticket, std::move(known)});
  next_ += 2;
}

void StreamClock::take(backend::Stream& own) {
  while (!pending_.empty() && own.done(pending_.front().ticket)) take_first();
}

void StreamClock::take_first() {
  const Pending first = std::move(pending_.front());
  pending_.pop_front();
  if (const auto moments = first.moments->read(first.place))
    for (const Known& known : first.known) known((*moments)[0], (*moments)[1]);
}

void StreamClock::finish(backend::Stream& own, backend::Ticket ticket) {
  if (pending_.empty() || pending_.front().ticket > ticket) return;
  own.wait(ticket);
  while (!pending_.empty() && pending_.front().ticket <= ticket) take_first();
}

}  // namespace weft::detail
