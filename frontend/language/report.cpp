// Records: how print(), assert_() and failed checks write to the report buffer.
#include "report.h"

#include <algorithm>
#include <iterator>

#include "../support/error.h"
#include "checks.h"

namespace weft {

using ir::Op;
using ir::Type;
using tracing::Id;

namespace tracing {

void report(ir::Message message, std::span<const Id> values, Loc loc) {
  ir::Builder& b = Trace::current(loc).builder();
  if (Trace::current().adjoint()) return;  // the launch itself has said it
  ir::append_report(b, Trace::current().kernel().module(), std::move(message), values, loc);
}

}  // namespace tracing

namespace detail {

ir::MessagePiece& Item::add() {
  const bool joined = !pieces.empty();
  pieces.emplace_back().joined = joined;
  return pieces.back();
}

void Item::add_text(std::string text) { add().text = std::move(text); }

namespace {

// The message of the items, with their values in order.
ir::Message message_of(ir::Message::Kind kind, std::span<Item> items, std::vector<Id>& values) {
  ir::Message message;
  message.kind = kind;
  for (Item& item : items) {
    std::ranges::move(item.pieces, std::back_inserter(message.pieces));
    values.insert(values.end(), item.ids.begin(), item.ids.end());
  }
  return message;
}

}  // namespace

void record_print(std::span<Item> items, Loc loc) {
  std::vector<Id> values;
  ir::Message message = message_of(ir::Message::Kind::print, items, values);
  tracing::report(std::move(message), values, loc);
}

void record_assertion(Id condition, std::span<Item> items, Loc loc) {
  if (const ir::Inst& known = tracing::Trace::current(loc).module()[condition];
      known.op == Op::constant && known.imm != 0)
    return;
  std::vector<Id> values;
  ir::Message message = message_of(ir::Message::Kind::assertion, items, values);
  tracing::fail_unless(condition, std::move(message), values, loc);
}

}  // namespace detail
}  // namespace weft
