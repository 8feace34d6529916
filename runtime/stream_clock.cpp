// Places of a clock that go round, and what waits for their moments.
#include "stream_clock.h"

#include <utility>

namespace weft::detail {

void StreamClock::make_room(backend::Stream& own) {
  if (pending_.size() < kMost / 2) return;
  take(own);
  if (pending_.size() < kMost) return;
  own.wait(pending_.front().ticket);
  take(own);
}

void StreamClock::keep(backend::Ticket ticket, std::vector<Known>&& known) {
  pending_.push_back({next_, ticket, std::move(known)});
  next_ = (next_ + 2) % (2 * kMost);
}

void StreamClock::take(backend::Stream& own) {
  while (!pending_.empty() && own.done(pending_.front().ticket)) take_first();
}

void StreamClock::take_first() {
  const Pending first = std::move(pending_.front());
  pending_.pop_front();
  if (const auto moments = moments_->read(first.place))
    for (const Known& known : first.known) known((*moments)[0], (*moments)[1]);
}

void StreamClock::finish(backend::Stream& own, backend::Ticket ticket) {
  if (pending_.empty() || pending_.front().ticket > ticket) return;
  own.wait(ticket);
  while (!pending_.empty() && pending_.front().ticket <= ticket) take_first();
}

}  // namespace weft::detail
